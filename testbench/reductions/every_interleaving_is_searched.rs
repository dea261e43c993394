//! H-CHECK-1 for the armed family: arming, time-out and retry of one engine over two leaves in an opening barrier and a data
//! round, every order of frames, frames in consecutive cycles, one fault anywhere, time-outs in every order.
//!
//! A station is the simulator's own [`Root`], [`Engine`] or [`Leaf`]; only the links between them are the search's.

use std::collections::hash_map::DefaultHasher;
use std::sync::Arc;

use watershed::arith::quad::Opcode;
use watershed::arith::{Quad, ResultCode};
use watershed::armed::job::Timeouts;
use watershed::armed::root::{Outbox, RootRound};
use watershed::armed::station::Merges;
use watershed::armed::{
    Engine, EngineCfg, Entry, Frame, Hazard, Job, Keys, Leaf, LeafState, Root, RootState, RoundEnd, Tables, TablesCfg,
    Tokens,
};
use watershed::fabric::PortSet;
use watershed::fabric::routing::{Routes, Routing};
use watershed::fabric::topology::Mesh;
use watershed::kernel::{Cycle, Wake};
use watershed::scenario::armed::result::RoundResult;
use watershed::scenario::result::Document;

use crate::search::{Faults, Out, System, scenario, search, walk, walk_each};
use crate::support::{armed, passed, text};

const ROOT: u8 = 0;
const ENGINE: u8 = 1;
const LEAVES: [u8; 2] = [2, 3];
/// Contributions by rank, and their sum.
const OPERANDS: [u64; 3] = [1, 0x10, 0x100];
const SUM: [u64; 4] = [0x111, 0, 0, 0];

#[derive(Clone)]
struct Tree {
    root: Root,
    engine: Engine,
    leaves: Vec<Leaf>,
    merges: Vec<Merges>,
    now: [Cycle; 4],
    tables: Arc<Tables>,
    /// Whether time-outs come in the order of their lengths, as those of a run do: the engine's before the root's.
    in_turn: bool,
}

/// A root over one engine over two leaves, and the frames that it sends first.
fn tree(hazard: Hazard) -> (Tree, Out<Frame>) {
    let keys = Keys { vni: 7, cookie: 0xc00c };
    let quads: Vec<Quad> = OPERANDS.iter().map(|&word| Quad::of([word, 0, 0, 0])).collect();
    let op = Opcode::from_number(0x14).unwrap();
    let job = Arc::new(Job {
        opening: true,
        timeouts: Timeouts { retry_after: 4000, max_retries: 1, patience: 1 << 20 },
        ..Job::of(op, 3, Arc::from([0, 1, 2]), keys, quads.into())
    });
    let cfg = EngineCfg { descriptors: 1, stages: 2, hazard, timeouts: [1; 4], ..EngineCfg::default() };
    let routes = Routes { routing: Routing::Mesh(Mesh { size: vec![1], concentration: 1 }), ends: Vec::new() };
    let tables_cfg = TablesCfg { entries: 1, engine: cfg, record: false, log: false };
    let mut tables = Tables::new(tables_cfg, vec!["switch".into()], 3, routes);
    let children = PortSet::one(1) | PortSet::one(2);
    let entry = Entry { multicast_id: 3, parent: 0, children, wait_count: 2, owner: job.owner() };
    tables.insert(0, entry).unwrap();
    let tokens = Tokens::new(4);
    let mut tree = Tree {
        root: Root::new(job.clone(), 0, 0),
        engine: Engine::new(&cfg, 0, 0, 1, tokens),
        leaves: [1, 2].map(|rank| Leaf::new(job.clone(), 0, rank, rank)).to_vec(),
        merges: (0..4).map(|station| Merges::new(station, tokens)).collect(),
        now: [0; 4],
        tables: Arc::new(tables),
        in_turn: false,
    };
    let mut out = Vec::new();
    tree.act(ROOT, &mut out);
    (tree, out)
}

impl Tree {
    /// An end point acts.
    fn act(&mut self, station: u8, out: &mut Out<Frame>) {
        let (now, merges) = (self.now[usize::from(station)], &mut self.merges[usize::from(station)]);
        let mut sent: Outbox = Vec::new();
        match station {
            ROOT => self.root.act(now, false, merges, &mut sent),
            leaf => self.leaves[usize::from(leaf - LEAVES[0])].act(now, false, merges, &mut sent),
        }
        out.extend(sent.into_iter().map(|(frame, _)| (station, ENGINE, frame)));
    }

    /// The engine works until it waits, or for a cycle.
    fn clock(&mut self, descends: Option<Frame>, follows: bool, out: &mut Out<Frame>) {
        let now = self.now[usize::from(ENGINE)];
        let mut moved = self.engine.step(&self.tables, now, descends.map(|frame| Ok((frame, 0))));
        while !follows && moved {
            moved = self.engine.step(&self.tables, now, None);
        }
        while let Some((frame, _)) = self.engine.leave() {
            out.push((ENGINE, ROOT, frame));
        }
    }

    fn due(&self, station: u8) -> Option<Cycle> {
        let now = self.now[usize::from(station)];
        let wake = match station {
            ROOT => self.root.next_wake(now),
            ENGINE => return self.engine.due(now),
            leaf => self.leaves[usize::from(leaf - LEAVES[0])].next_wake(),
        };
        if let Wake::At(cycle) = wake { Some(cycle) } else { None }
    }

    fn is_right(quad: &Quad, data: Option<u32>) -> bool {
        quad.lanes == if data.is_some() { SUM } else { [0; 4] }
    }
}

impl System for Tree {
    type Frame = Frame;

    fn deliver(&mut self, from: u8, to: u8, frame: &Frame, follows: bool, out: &mut Out<Frame>) {
        let now = self.now[usize::from(to)];
        match (from, to) {
            (ROOT, ENGINE) => {
                // It goes on to all children as it is, whatever the engine makes of it.
                out.extend(LEAVES.map(|leaf| (ENGINE, leaf, *frame)));
                self.clock(Some(*frame), follows, out);
            }
            (_, ENGINE) => {
                self.engine.climb(*frame, 0);
                self.clock(None, follows, out);
            }
            (_, ROOT) => {
                self.root.receive(0, frame, 0);
                self.act(ROOT, out);
            }
            (_, leaf) => {
                self.leaves[usize::from(leaf - LEAVES[0])].receive(now, 0, frame, 0);
                self.act(leaf, out);
            }
        }
    }

    fn is_pipelined(&self, station: u8) -> bool {
        station == ENGINE
    }

    fn hears(&self, station: u8) -> Vec<u8> {
        if station == ENGINE { vec![ROOT, LEAVES[0], LEAVES[1]] } else { vec![ENGINE] }
    }

    fn timers(&self) -> Vec<(u8, bool)> {
        // Leaves are more patient than all attempts of the root together.
        let due = [ENGINE, ROOT].into_iter().chain(LEAVES).filter(|&station| self.due(station).is_some());
        let all = if self.in_turn { 1 } else { 4 };
        due.take(all).map(|station| (station, station >= LEAVES[0])).collect()
    }

    fn expire(&mut self, station: u8, out: &mut Out<Frame>) {
        self.now[usize::from(station)] = self.due(station).expect("it runs");
        if station == ENGINE { self.clock(None, false, out) } else { self.act(station, out) }
    }

    fn stations(&self) -> u8 {
        4
    }

    fn digest(&self, station: u8, to: &mut DefaultHasher) {
        match station {
            ROOT => self.root.digest(to),
            ENGINE => self.engine.digest(self.now[usize::from(ENGINE)], to),
            leaf => self.leaves[usize::from(leaf - LEAVES[0])].digest(to),
        }
    }

    fn is_wrong(&self) -> bool {
        let says = |quad: &Quad| matches!(quad.code, ResultCode::OpMismatch | ResultCode::ContrOverflow);
        let wrong = |quad: &Quad, data| !says(quad) && !Tree::is_right(quad, data);
        let called_right = |state| matches!(state, RoundEnd::Complete | RoundEnd::AfterRetry);
        let mut rounds = self.root.rounds().iter().filter(|round| called_right(round.state));
        let mut results = self.leaves.iter().flat_map(Leaf::results);
        rounds.any(|round| wrong(&round.quad, round.round.data))
            || results.any(|result| wrong(&result.quad, result.round.data))
    }

    fn left(&self) -> Option<String> {
        if self.engine.active() > 0 {
            return Some("a descriptor is active".into());
        }
        if !self.root.is_over() {
            return Some(format!("the root is {:?}", self.root.state()));
        }
        self.leaves
            .iter()
            .find(|leaf| !leaf.is_over())
            .map(|leaf| format!("leaf {} is {:?}", leaf.rank(), leaf.state()))
    }

    fn is_whole(&self) -> bool {
        let rounds = self.root.rounds();
        self.root.state() == RootState::Done
            && rounds.iter().all(|round| round.state == RoundEnd::Complete)
            && self.leaves.iter().all(|leaf| leaf.state() == LeafState::Done && leaf.results().len() == rounds.len())
    }
}

const NO_FAULT: Faults = Faults { budget: 0, delays: true, repeats: false, early: 0, follow: true };

#[test]
fn arming_and_two_rounds_end_right_in_every_order() {
    let (system, first) = tree(Hazard::Interlock);
    let found = search(system.clone(), first.clone(), NO_FAULT);
    assert!(found.states > 20, "{} states", found.states);
    assert_eq!(found.broken, []);
    assert!(!walk(system, first, NO_FAULT).returns, "it need not end");
}

#[test]
fn one_fault_makes_no_round_wrong_and_nobody_wait() {
    let faults = Faults { budget: 1, ..NO_FAULT };
    let (system, first) = tree(Hazard::Interlock);
    let found = search(system.clone(), first.clone(), faults);
    assert!(found.states > 500, "{} states", found.states);
    assert_eq!(found.broken, []);
    assert!(!walk(system, first, faults).returns, "it need not end");
}

/// Faults that are chosen first end where faults of any moment end.
#[test]
fn chosen_faults_end_as_those_of_any_moment() {
    for faults in
        [NO_FAULT, Faults { budget: 1, follow: false, ..NO_FAULT }, Faults { early: 1, follow: false, ..NO_FAULT }]
    {
        let (system, first) = tree(Hazard::Interlock);
        let (any, chosen) = (walk(system.clone(), first.clone(), faults), walk_each(&system, &first, faults));
        assert!(any.broken.is_none() && chosen.broken.is_none(), "{faults:?}");
        assert!(any.ends == chosen.ends, "{faults:?}: {} and {} ends", any.ends.len(), chosen.ends.len());
    }
}

#[test]
#[ignore = "minutes: part of make soak"]
fn two_faults_and_early_time_outs_make_no_round_wrong() {
    let faults = Faults { budget: 2, early: 2, ..NO_FAULT };
    let (system, first) = tree(Hazard::Interlock);
    let found = search(system.clone(), first.clone(), faults);
    assert!(found.states > 10_000, "{} states", found.states);
    assert_eq!(found.broken, []);
    assert!(!walk(system, first, faults).returns, "it need not end");
}

#[test]
fn the_search_finds_what_counting_cannot_tell() {
    // R-ERR-1: no sequence check on the links, and one leaf counted twice takes the place of the other.
    let faults = Faults { budget: 1, repeats: true, ..NO_FAULT };
    let (system, first) = tree(Hazard::Interlock);
    let found = search(system, first, faults);
    let (_, trace) = found.broken.iter().find(|(name, _)| name.contains("wrong")).expect("a planted fault is found");
    assert!(trace.iter().any(|step| step.starts_with("Repeat")), "{trace:?}");
}

#[test]
fn the_search_finds_an_engine_that_loses_a_contribution() {
    let (system, first) = tree(Hazard::Ignore);
    let found = search(system, first, NO_FAULT);
    assert!(!found.broken.is_empty(), "a planted fault is found");
    assert!(found.broken.iter().all(|(_, trace)| trace.iter().any(|step| step.contains("follows: true"))));
}

/// The system of a search as a scenario in which frames are one flit, so that they can follow each other in consecutive cycles.
fn scenario_of(engine: &str, faults: &str) -> String {
    format!(
        "family = \"armed\"\n[topology]\nkind = \"mesh\"\nsize = [1]\nconcentration = 3\n[link]\nflit_bits = 1024\n\
         latency_cycles = 2\n[armed.engine]\ndescriptors = 1\nstages = 2\ntimeouts_1024_cycles = [1, 1, 1, 1]\n{engine}\
         [[armed.reduction]]\nop = \"int-sum\"\nrounds = 1\nroot = 0\nretry_after_cycles = 4000\nmax_retries = 1\n\
         patience_cycles = 1_000_000\ndata.values = [[1, 0, 0, 0], [16, 0, 0, 0], [256, 0, 0, 0]]\n{faults}"
    )
}

/// How rounds ended, by the root of the trace and by the document of the run: outcome, attempts, counts, the first lane.
type Ended = Vec<(String, u32, Vec<u32>, u64)>;

fn told(document: &Document) -> Ended {
    let of = |round: &RoundResult| {
        let lane =
            round.result.first().map_or(0, |word| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap());
        (round.outcome.clone(), round.attempts, round.counts.clone(), lane)
    };
    armed(document).reductions[0].rounds.iter().map(of).collect()
}

fn held(root: &Root) -> Ended {
    let of = |round: &RootRound| {
        let lane = if round.state == RoundEnd::Incomplete { 0 } else { round.quad.lanes[0] };
        let outcome = match round.state {
            RoundEnd::Complete if !Tree::is_right(&round.quad, round.round.data) => "silent",
            RoundEnd::Complete => "complete",
            RoundEnd::AfterRetry => "after-retry",
            RoundEnd::Incomplete => "incomplete",
            RoundEnd::Open => "open",
        };
        (outcome.to_owned(), round.attempts, round.frames.clone(), lane)
    };
    root.rounds().iter().map(of).collect()
}

/// The links of the leaves can hold frames up; nothing does between the engine and the root.
fn link(wire: (u8, u8)) -> Option<(String, &'static str)> {
    match wire {
        (ENGINE, ROOT) | (ROOT, ENGINE) => None,
        (ENGINE, leaf) => Some((format!("s0.node{}", leaf - 1), "down")),
        (leaf, _) => Some((format!("s0.node{}", leaf - 1), "up")),
    }
}

#[test]
fn the_trace_of_a_lost_contribution_runs_as_a_scenario() {
    let (mut system, first) = tree(Hazard::Ignore);
    system.in_turn = true;
    let trace = search(system, first, NO_FAULT).trace.expect("a planted fault is found");
    let faults = scenario::faults(&trace.flights, "armed.fault", |_| 10, link);
    let run = |hazard: &str| text(&scenario_of(&format!("hazard = \"{hazard}\"\n"), &faults));
    let wrong = told(&run("ignore"));
    println!("{faults}\n{wrong:?}");
    assert_eq!(wrong, held(&trace.end.root));
    assert!(wrong.iter().any(|round| round.0 != "complete"), "{wrong:?}");
    let right = run("interlock");
    passed(&right);
    assert!(told(&right).iter().all(|round| round.0 == "complete" && round.1 == 1), "{:?}", told(&right));
}

#[test]
fn the_trace_of_a_repeated_frame_runs_as_a_scenario() {
    let (mut system, first) = tree(Hazard::Interlock);
    system.in_turn = true;
    let found = search(system, first, Faults { budget: 1, repeats: true, ..NO_FAULT });
    let trace = found.trace.expect("a planted fault is found");
    let faults = scenario::faults(&trace.flights, "armed.fault", |_| 10, link);
    let run = |check: bool| text(&scenario_of(&format!("[armed.link_layer]\nsequence_check = {check}\n"), &faults));
    let wrong = told(&run(false));
    println!("{faults}\n{wrong:?}");
    assert_eq!(wrong, held(&trace.end.root));
    assert!(wrong.iter().any(|round| round.0 == "silent"), "{wrong:?}");
    let right = run(true);
    passed(&right);
    assert!(told(&right).iter().all(|round| round.0 == "complete" && round.1 == 1), "{:?}", told(&right));
}
