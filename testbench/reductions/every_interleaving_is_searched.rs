//! H-CHECK-1 for the armed family: arming, time-out and retry of one engine over two leaves in an opening barrier and a data
//! round, every order of frames, frames in consecutive cycles, one fault anywhere, time-outs in every order.
//!
//! A station is the simulator's own [`Root`], [`Engine`] or [`Leaf`]; only the links between them are the search's.

use std::collections::hash_map::DefaultHasher;
use std::sync::Arc;

use watershed::arith::quad::Opcode;
use watershed::arith::{Quad, ResultCode};
use watershed::armed::root::Outbox;
use watershed::armed::station::Merges;
use watershed::armed::{
    Engine, EngineCfg, Entry, Frame, Hazard, Job, Keys, Leaf, LeafState, Root, RootState, RoundEnd, Tables, TablesCfg,
    Tokens,
};
use watershed::fabric::PortSet;
use watershed::fabric::routing::{Routes, Routing};
use watershed::fabric::topology::Mesh;
use watershed::kernel::{Cycle, Wake};

use crate::search::{Faults, Out, System, search, walk};

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
}

/// A root over one engine over two leaves, and the frames that it sends first.
fn tree(hazard: Hazard) -> (Tree, Out<Frame>) {
    let keys = Keys { vni: 7, cookie: 0xc00c };
    let quads: Vec<Quad> = OPERANDS.iter().map(|&word| Quad::of([word, 0, 0, 0])).collect();
    let op = Opcode::from_number(0x14).unwrap();
    let job = Arc::new(Job {
        opening: true,
        retry_after: 4000,
        max_retries: 1,
        patience: 1 << 20,
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

    fn hears_only(&self, station: u8) -> Option<u8> {
        (station != ENGINE).then_some(ENGINE)
    }

    fn timers(&self) -> Vec<(u8, bool)> {
        // Leaves are more patient than all attempts of the root together.
        (0..4).filter(|&station| self.due(station).is_some()).map(|station| (station, station >= LEAVES[0])).collect()
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
