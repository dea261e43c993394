//! H-CHECK-1 for claims: every order of calls, pulses, ends, messages and takes on small systems whose trees overlap. What runs in
//! a step is what the simulator clocks ([`deliver`], [`Arbiter`], [`QueueClaim`]); the search chooses what comes next.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use stateright::{Checker, HasDiscoveries, Model, Property};
use watershed::piuma::claim::{Arbiter, Holder, QueueClaim, Rewrite, Signal, Unit, Units, Wire, Wiring, deliver};

use crate::share;
use crate::support::{mesh, ready};

/// What the participants of a search do.
#[derive(Clone, Debug)]
struct Plan {
    wiring: Wiring,
    /// By core: trees that it calls in this order, and whether it waits for each.
    programs: Vec<Vec<(u16, bool)>>,
    /// By tree and leaf: the core.
    cores: Vec<Vec<usize>>,
    /// Messages of a multicast's source, and the slots of its receivers' queues.
    messages: u8,
    slots: u32,
    /// Messages that the source may send before one is taken.
    credits: u32,
    /// Whether receivers take messages.
    drains: bool,
    /// A tree that is written between its first two calls, and the wiring from then on.
    rewrite: Option<Rewrite>,
}

/// How far a tree is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Phase {
    #[default]
    Before,
    Written,
    /// Calls that wait for the change: tree and leaf.
    Closing(Vec<(u16, usize)>),
    Loaded,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Switches(BTreeMap<u32, Unit>);

impl Units for Switches {
    fn unit(&mut self, switch: u32) -> &mut Unit {
        self.0.entry(switch).or_default()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Part {
    #[default]
    Idle,
    Ready,
    Started,
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    units: Switches,
    /// Pulses under way: those on one wire keep their order, and are all the same.
    pulses: Vec<Signal>,
    /// By core: the next call.
    next: Vec<usize>,
    /// By tree and leaf.
    parts: Vec<Vec<Part>>,
    /// Of each multicast: the source's registers, messages that were not sent, those under way and in the queue by receiver.
    sources: Vec<Option<(QueueClaim, u8)>>,
    flying: Vec<Vec<u8>>,
    queued: Vec<Vec<u8>>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Write,
    Load,
    Call(usize),
    Pulse(Signal),
    End(u16, usize),
    Ask(u16),
    Send(u16),
    Arrive(u16, usize),
    Take(u16, usize),
}

/// What is wrong with the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Arbiters know no conflicts.
    Blind,
    /// When registers move, claims that are held are taken for done.
    Forgets,
}

struct Search {
    plan: Plan,
    fault: Option<Fault>,
    /// The property that is looked at, instead of all.
    only: Option<&'static str>,
}

impl Search {
    /// The wiring that is in force.
    fn wiring(&self, state: &State) -> &Wiring {
        match &self.plan.rewrite {
            Some(rewrite) if state.phase == Phase::Loaded => &rewrite.wiring,
            _ => &self.plan.wiring,
        }
    }

    fn is_written(&self, tree: u16) -> bool {
        self.plan.rewrite.as_ref().is_some_and(|rewrite| rewrite.trees.contains(&tree))
    }

    /// Calls of the written tree that a core has made.
    fn rounds(&self, state: &State, core: usize) -> usize {
        self.plan.programs[core][..state.next[core]].iter().filter(|(tree, _)| self.is_written(*tree)).count()
    }

    /// Whether the tree may be written: everybody is through with the first round.
    fn may_write(&self, state: &State) -> bool {
        state.phase == Phase::Before
            && self.trees().filter(|&tree| self.is_written(tree)).all(|tree| {
                let at = usize::from(tree);
                let through = self.plan.cores[at].iter().all(|&core| self.rounds(state, core) == 1);
                through && state.parts[at].iter().all(|part| *part == Part::Idle)
            })
    }

    /// Whether registers may move.
    fn may_load(&self, state: &State) -> bool {
        let (Phase::Closing(_), Some(rewrite)) = (&state.phase, &self.plan.rewrite) else { return false };
        let ends = |signal: &Signal| match *signal {
            Signal::Close(_) => true,
            Signal::Up { tree, .. } | Signal::Free(tree) | Signal::Down { tree, .. } | Signal::Start { tree, .. } => {
                rewrite.trees.contains(&tree)
            }
            _ => false,
        };
        !state.pulses.iter().any(ends) && rewrite.is_due(&self.plan.wiring, &mut state.units.clone())
    }

    fn load(&self, state: &mut State) {
        let Some(rewrite) = &self.plan.rewrite else { return };
        state.pulses.retain(|signal| rewrite.forward(&self.plan.wiring, *signal).is_some());
        let out = rewrite.load(&self.plan.wiring, &mut state.units);
        state.pulses.extend(out.into_iter().map(|(_, signal)| signal));
        if self.fault == Some(Fault::Forgets) {
            let arbiters = state.units.0.values().flat_map(|unit| &unit.arbiters);
            state.pulses.extend(arbiters.flat_map(|(_, of)| of.held()).map(|&tree| Signal::Free(tree)));
        }
        let Phase::Closing(held) = std::mem::replace(&mut state.phase, Phase::Loaded) else { return };
        for (tree, leaf) in held {
            self.up(state, tree, leaf, Wire::First);
        }
    }

    fn is_multicast(&self, tree: u16) -> bool {
        self.plan.wiring.trees[usize::from(tree)].source.is_some()
    }

    fn trees(&self) -> std::ops::Range<u16> {
        0..self.plan.wiring.trees.len() as u16
    }

    /// Whether words of a tree may be in its switches.
    fn runs(state: &State, tree: u16) -> bool {
        let at = usize::from(tree);
        state.parts[at].contains(&Part::Started) || state.flying[at].iter().any(|&count| count > 0)
    }

    fn is_over(&self, state: &State) -> bool {
        let called = state.next.iter().zip(&self.plan.programs).all(|(next, calls)| *next == calls.len());
        let idle = state.parts.iter().flatten().all(|part| *part == Part::Idle);
        let sent = |source: &(QueueClaim, u8)| source.1 == 0 && source.0.holder() == Holder::Idle;
        called && idle && state.sources.iter().flatten().all(sent)
    }

    fn up(&self, state: &mut State, tree: u16, leaf: usize, wire: Wire) {
        let (join, input, _) = self.wiring(state).trees[usize::from(tree)].leaves[leaf].up;
        state.pulses.push(Signal::Up { tree, join, input, wire });
    }

    /// Whether a core may make its next call: nothing it waits for is left, and its part in the last one of the tree is over.
    fn may_call(&self, state: &State, core: usize) -> bool {
        let (calls, next) = (&self.plan.programs[core], state.next[core]);
        let part = |tree: u16| {
            let leaf = self.plan.cores[usize::from(tree)].iter().position(|&of| of == core).expect("it takes part");
            state.parts[usize::from(tree)][leaf]
        };
        let waits = calls[..next].iter().any(|&(tree, blocks)| blocks && part(tree) != Part::Idle);
        // The second round of the tree that is written comes behind that.
        let early = |tree: u16| self.is_written(tree) && self.rounds(state, core) == 1 && state.phase == Phase::Before;
        calls.get(next).is_some_and(|&(tree, _)| !waits && part(tree) == Part::Idle && !early(tree))
    }

    /// Whether an arbiter has a tree among those that hold.
    fn holds(state: &State, tree: u16) -> bool {
        let mut arbiters = state.units.0.values().flat_map(|unit| &unit.arbiters);
        arbiters.any(|(_, of)| of.held().contains(&tree))
    }

    fn pulse(&self, state: &mut State, signal: Signal) {
        let at = state.pulses.iter().position(|of| *of == signal).expect("it is under way");
        state.pulses.remove(at);
        match signal {
            // The end of a claim that was forgotten.
            Signal::Free(tree) if self.fault == Some(Fault::Forgets) && !Search::holds(state, tree) => {}
            Signal::Start { tree, leaf } if !self.is_multicast(tree) => {
                state.parts[usize::from(tree)][leaf as usize] = Part::Started;
            }
            Signal::Start { tree, .. } => {
                let (claim, left) = state.sources[usize::from(tree)].as_mut().expect("a multicast has a source");
                claim.grant(u32::from(*left), 0);
            }
            Signal::Source { tree, wire } => {
                let (claim, _) = state.sources[usize::from(tree)].as_mut().expect("a multicast has a source");
                match wire {
                    Wire::First => claim.credit(),
                    Wire::Done => {
                        if claim.came() {
                            state.pulses.push(Signal::Free(tree));
                        }
                    }
                }
            }
            _ => {
                let mut out = Vec::new();
                deliver(self.wiring(state), &mut state.units, signal, &mut out);
                state.pulses.extend(out.into_iter().map(|(_, signal)| signal));
            }
        }
    }
}

impl Model for Search {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let wiring = &self.plan.wiring;
        let mut units = Switches::default();
        wiring.build(&mut units);
        if self.fault == Some(Fault::Blind) {
            for (_, arbiter) in units.0.values_mut().flat_map(|unit| &mut unit.arbiters) {
                *arbiter = Arbiter::default();
            }
        }
        let leaves = |tree: u16| wiring.trees[usize::from(tree)].leaves.len();
        let source = |tree: u16| {
            let registers = QueueClaim::new(Some(0), self.plan.credits, self.plan.slots);
            self.is_multicast(tree).then_some((registers, self.plan.messages))
        };
        vec![State {
            units,
            pulses: Vec::new(),
            next: vec![0; self.plan.programs.len()],
            parts: self.trees().map(|tree| vec![Part::Idle; leaves(tree)]).collect(),
            sources: self.trees().map(source).collect(),
            flying: self.trees().map(|tree| vec![0; leaves(tree)]).collect(),
            queued: self.trees().map(|tree| vec![0; leaves(tree)]).collect(),
            phase: Phase::default(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        if self.plan.rewrite.is_some() && self.may_write(state) {
            actions.push(Step::Write);
        }
        if self.may_load(state) {
            actions.push(Step::Load);
        }
        actions.extend((0..state.next.len()).filter(|&core| self.may_call(state, core)).map(Step::Call));
        // In one order: the checker knows a step by its number.
        let different: BTreeSet<Signal> = state.pulses.iter().copied().collect();
        // On one way a call does not overtake the end of the one before it: both wires are as long.
        let overtakes = |of: &Signal| match *of {
            Signal::Ask(tree) => different.contains(&Signal::Free(tree)),
            Signal::Up { tree, join, input, wire: Wire::First } => {
                different.contains(&Signal::Up { tree, join, input, wire: Wire::Done })
            }
            _ => false,
        };
        actions.extend(different.iter().filter(|of| !overtakes(of)).map(|of| Step::Pulse(*of)));
        for tree in self.trees() {
            let at = usize::from(tree);
            if let Some((claim, left)) = &state.sources[at] {
                if *left > 0 && claim.clone().wants(0, 0).is_some() {
                    actions.push(Step::Ask(tree));
                }
                if claim.may_send() {
                    actions.push(Step::Send(tree));
                }
                for leaf in 0..state.flying[at].len() {
                    if state.flying[at][leaf] > 0 {
                        actions.push(Step::Arrive(tree, leaf));
                    }
                    if self.plan.drains && state.queued[at][leaf] > 0 {
                        actions.push(Step::Take(tree, leaf));
                    }
                }
                continue;
            }
            // A result needs the contributions of all: nobody ends before everybody has started.
            let all = state.parts[at].iter().all(|part| matches!(part, Part::Started | Part::Ended));
            let started = state.parts[at].iter().enumerate().filter(|(_, part)| **part == Part::Started);
            actions.extend(
                started
                    .filter(|_| all || state.parts[at].contains(&Part::Ended))
                    .map(|(leaf, _)| Step::End(tree, leaf)),
            );
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Call(core) => {
                let (tree, _) = self.plan.programs[core][state.next[core]];
                state.next[core] += 1;
                let leaf = self.plan.cores[usize::from(tree)].iter().position(|&of| of == core)?;
                state.parts[usize::from(tree)][leaf] = Part::Ready;
                if let (true, Some(rewrite), Phase::Written) = (self.is_written(tree), &self.plan.rewrite, &state.phase)
                {
                    state.phase = Phase::Closing(Vec::new());
                    let closes = rewrite.close(&self.plan.wiring, (tree, Some(leaf as u32)));
                    state.pulses.extend(closes.into_iter().map(|(_, signal)| signal));
                }
                match &mut state.phase {
                    Phase::Closing(held) if self.is_written(tree) => {
                        held.push((tree, leaf));
                        held.sort_unstable();
                    }
                    _ => self.up(&mut state, tree, leaf, Wire::First),
                }
            }
            Step::Write => state.phase = Phase::Written,
            Step::Load => self.load(&mut state),
            Step::Pulse(signal) => self.pulse(&mut state, signal),
            Step::End(tree, leaf) => {
                let parts = &mut state.parts[usize::from(tree)];
                parts[leaf] = Part::Ended;
                if parts.iter().all(|part| *part == Part::Ended) {
                    for part in parts.iter_mut() {
                        *part = Part::Idle;
                    }
                }
                self.up(&mut state, tree, leaf, Wire::Done);
            }
            Step::Ask(tree) => {
                state.sources[usize::from(tree)].as_mut()?.0.wants(0, 0)?;
                state.pulses.push(Signal::Ask(tree));
            }
            Step::Send(tree) => {
                let (claim, left) = state.sources[usize::from(tree)].as_mut()?;
                claim.sent();
                *left -= 1;
                state.flying[usize::from(tree)].iter_mut().for_each(|count| *count += 1);
            }
            Step::Arrive(tree, leaf) => {
                state.flying[usize::from(tree)][leaf] -= 1;
                state.queued[usize::from(tree)][leaf] += 1;
                self.up(&mut state, tree, leaf, Wire::Done);
            }
            Step::Take(tree, leaf) => {
                state.queued[usize::from(tree)][leaf] -= 1;
                self.up(&mut state, tree, leaf, Wire::First);
            }
        }
        // Pulses on different wires have no order.
        state.pulses.sort_unstable();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let all: Vec<Property<Self>> = vec![
            Property::always("one of those that conflict runs", |search, state: &State| {
                let wiring = search.wiring(state);
                search.trees().all(|tree| {
                    !Search::runs(state, tree)
                        || !wiring.conflicts(tree).iter().any(|&other| Search::runs(state, other))
                })
            }),
            Property::always("every message has a slot", |search, state: &State| {
                state.queued.iter().flatten().all(|&count| u32::from(count) <= search.plan.slots)
            }),
            Property::always("who can do nothing has nothing left", |search, state: &State| {
                let mut actions = Vec::new();
                search.actions(state, &mut actions);
                if !actions.is_empty() {
                    return true;
                }
                let calls = state.next.iter().zip(&search.plan.programs).all(|(next, calls)| *next == calls.len());
                let parts = state.parts.iter().flatten().all(|part| *part == Part::Idle);
                // A source whose receivers take nothing ends with its messages, and holds nothing.
                let idle = |(claim, _): &(QueueClaim, u8)| claim.holder() == Holder::Idle;
                let arbiters = state.units.0.values().flat_map(|unit| &unit.arbiters);
                let free = arbiters.into_iter().all(|(_, of)| of.held().is_empty() && of.waiting().is_empty());
                let over = search.is_over(state) || !search.plan.drains;
                calls && parts && free && over && state.sources.iter().flatten().all(idle)
            }),
            Property::always("nothing is left in a register", |search, state: &State| {
                let mut joins = state.units.0.values().flat_map(|unit| &unit.joins);
                let over = search.plan.drains && search.is_over(state) && state.pulses.is_empty();
                let taken = state.queued.iter().flatten().all(|&count| count == 0);
                !over || !taken || joins.all(watershed::piuma::claim::Join::is_idle)
            }),
        ];
        all.into_iter().filter(|of| self.only.is_none_or(|only| of.name == only)).collect()
    }
}

/// What a search finds: how many states, a property that does not hold, and its shortest trace.
fn search(plan: &Plan, fault: Option<Fault>) -> (usize, Option<(&'static str, Vec<Step>)>) {
    let search = |only| {
        let search = Search { plan: plan.clone(), fault, only };
        let checker = search.checker().finish_when(HasDiscoveries::Any).spawn_bfs().join();
        let found = checker.discoveries().into_iter().next();
        (checker.unique_state_count(), found.map(|(name, path)| (name, path.into_actions())))
    };
    match search(None) {
        // With one property the first state in which it does not hold ends the search.
        (_, Some((name, _))) => search(Some(name)),
        nothing => nothing,
    }
}

/// The trees of a scenario, with what cores call.
fn plan(text: &str, programs: Vec<Vec<(u16, bool)>>, messages: u8, drains: bool) -> Plan {
    let ready = ready(text, &[]);
    let wiring = ready.claims.wiring;
    let core = |leaf: &watershed::piuma::claim::Leaf| ready.ends.iter().position(|place| *place == leaf.place);
    let cores = wiring.trees.iter().map(|tree| tree.leaves.iter().filter_map(core).collect()).collect();
    Plan { wiring, programs, cores, messages, slots: 1, credits: 1, drains, rewrite: None }
}

/// Cores 0 and 1, cores 2 and 3 of a row, and a change of the switch where the words of the latter meet; programs may write that.
fn written(roots: [u32; 2], rest: &str, programs: Vec<Vec<(u16, bool)>>) -> Plan {
    let text = |root: u32| {
        let pair = |id: u32, cores: [u32; 2], root: u32| {
            format!(
                "[[collective]]\nkind = \"allreduce\"\nid = {id}\ncalled = true\nparticipants = {cores:?}\nroot = \"s{root}\"\n"
            )
        };
        let writer = "[[program]]\ncores = [0]\ntext = 'store [0x2000000001001000], 0'\n";
        mesh(&[4], 1, &(pair(0, [0, 1], 1) + &pair(1, [2, 3], root) + rest + writer))
    };
    let after = plan(&text(roots[1]), Vec::new(), 0, true).wiring;
    let trees = (0..).zip(&after.trees).filter(|(_, tree)| tree.id == 1).map(|(number, _)| number).collect();
    let before = plan(&text(roots[0]), programs, 2, true);
    Plan { rewrite: Some(Rewrite { wiring: after, trees }), ..before }
}

fn called(id: u32, cores: &[u32]) -> String {
    format!("[[collective]]\nkind = \"allreduce\"\nid = {id}\ncalled = true\nparticipants = {cores:?}\n")
}

/// Cores 0 and 1 call their tree twice, in `make test` once; cores 2 and 3 theirs before and after it is written.
fn calls_of_pairs(blocks: bool) -> Vec<Vec<(u16, bool)>> {
    let others = vec![(0, blocks); if share::is_whole() { 2 } else { 1 }];
    let written = vec![(1, blocks); 2];
    vec![others.clone(), others, written.clone(), written]
}

const IDLE: &str = "[[program]]\ncores = [0]\ntext = 'halt'\n";

#[test]
fn overlapping_calls_end_in_every_order() {
    let text = mesh(&[3], 1, &(called(0, &[0, 1, 2]) + &called(1, &[0, 1]) + IDLE));
    // Blocking calls in one order; a second round of the first.
    let blocking =
        vec![vec![(0, true), (1, true), (0, true)], vec![(0, true), (1, true), (0, true)], vec![(0, true), (0, true)]];
    // Non-blocking ones in any order.
    let free = vec![vec![(0, false), (1, false)], vec![(1, false), (0, false)], vec![(0, false)]];
    for programs in [blocking, free] {
        let (states, found) = search(&plan(&text, programs, 0, true), None);
        assert_eq!(found, None);
        assert!(states > 500, "{states}");
    }
}

#[test]
fn a_multicast_delays_nobody_whether_it_drains_or_not() {
    let tree = "[[multicast]]\nid = 2\nsource = 0\nreceivers = [1, 2]\n";
    let text = mesh(&[3], 1, &(called(0, &[0, 1, 2]) + tree + IDLE));
    let calls = vec![vec![(0, true)]; 3];
    for drains in [true, false] {
        let (states, found) = search(&plan(&text, calls.clone(), 2, drains), None);
        assert_eq!(found, None, "drains: {drains}");
        assert!(states > 500, "{states}");
    }
}

#[test]
fn the_search_finds_an_arbiter_that_knows_no_conflicts() {
    let text = mesh(&[2], 1, &(called(0, &[0, 1]) + &called(1, &[0, 1]) + IDLE));
    let plan = plan(&text, vec![vec![(0, false), (1, false)]; 2], 0, true);
    let (_, found) = search(&plan, Some(Fault::Blind));
    let (name, steps) = found.expect("two run at once");
    assert_eq!(name, "one of those that conflict runs");
    // Both are called by both, ready, granted and started at one core.
    let starts = steps.iter().filter(|step| matches!(step, Step::Pulse(Signal::Start { .. }))).count();
    assert!(starts >= 2, "{steps:?}");
}

#[test]
fn the_search_finds_credits_without_slots() {
    let tree = "[[multicast]]\nid = 2\nsource = 0\nreceivers = [1]\n";
    let text = mesh(&[2], 1, &(called(0, &[0, 1]) + tree + IDLE));
    let mut plan = plan(&text, vec![vec![(0, true)]; 2], 2, true);
    assert_eq!(search(&plan, None).1, None);
    plan.credits = 2;
    let (_, found) = search(&plan, None);
    assert_eq!(found.expect("a queue overflows").0, "every message has a slot");
}

/// In `make test` each way round once, with fewer calls.
#[test]
fn sets_move_while_others_claim_and_hold() {
    // At first the two pairs meet nowhere, or in the engine of switch 1; then the other way round.
    for (roots, blocks) in share::one_in(3, [([2, 1], true), ([2, 1], false), ([1, 2], true), ([1, 2], false)]) {
        let plan = written(roots, "", calls_of_pairs(blocks));
        let meets = |wiring: &Wiring| !wiring.conflicts(0).is_empty();
        assert_eq!(
            [meets(&plan.wiring), meets(&plan.rewrite.as_ref().expect("one").wiring)],
            roots.map(|root| root == 1)
        );
        let (states, found) = search(&plan, None);
        assert_eq!(found, None, "{roots:?}, blocks: {blocks}");
        assert!(states > if share::is_whole() { 1000 } else { 300 }, "{states}");
    }
    // Messages of core 0 for core 1 beside them; in `make test` cores 0 and 1 do not call their tree as well.
    let messages = "[[multicast]]\nid = 2\nsource = 0\nreceivers = [1]\n";
    let others = vec![(0, true); usize::from(share::is_whole())];
    let plan = written([2, 1], messages, vec![others.clone(), others, vec![(1, true); 2], vec![(1, true); 2]]);
    assert_eq!(search(&plan, None).1, None);
}

#[test]
fn the_search_finds_a_hand_over_that_forgets_who_holds() {
    let plan = written([2, 1], "", calls_of_pairs(true));
    let (_, found) = search(&plan, Some(Fault::Forgets));
    let (name, steps) = found.expect("two run at once");
    assert_eq!(name, "one of those that conflict runs");
    // The tree that is not written was granted before registers moved; the other one, that conflicts with it from then on, after.
    let load = steps.iter().position(|step| *step == Step::Load).expect("registers move");
    let starts = |of: u16, steps: &[Step]| {
        steps.iter().any(|step| matches!(step, Step::Pulse(Signal::Start { tree, .. }) if *tree == of))
    };
    assert!(starts(1, &steps[load..]), "{steps:?}");
    assert!(starts(0, &steps), "{steps:?}");
    // Whoever holds is known where nothing is forgotten.
    assert_eq!(search(&plan, None).1, None);
}

/// The calls of a trace as a scenario: in its order, a few cycles apart, with vectors that no buffer holds.
fn scenario(steps: &[Step], programs: &[Vec<(u16, bool)>], tables: &str) -> String {
    const APART: usize = 3;
    let (mut text, mut next) = (vec![String::new(); programs.len()], vec![(0usize, 0usize); programs.len()]);
    let calls = steps.iter().filter_map(|step| if let Step::Call(core) = step { Some(*core) } else { None });
    for (number, core) in calls.enumerate() {
        let (call, since) = &mut next[core];
        let tree = programs[core][*call].0;
        let (waits, to) = ((number + 1) * APART - *since, 0x4000 + 0x4000 * tree);
        let _ = writeln!(text[core], "compute {waits}\nallreduce.nb r{call}, {tree}, 0, {to}, 200");
        (*call, *since) = (*call + 1, (number + 1) * APART);
    }
    for (text, (calls, _)) in text.iter_mut().zip(&next) {
        (0..*calls).for_each(|call| _ = writeln!(text, "wait r{call}"));
    }
    let mut rest = tables.to_owned();
    for (core, text) in text.iter().enumerate() {
        let _ = write!(rest, "[[program]]\ncores = [{core}]\ntext = '''\n{text}'''\n");
    }
    mesh(&[programs.len() as u32], 1, &rest)
}

#[test]
fn the_shortest_trace_of_a_fault_deadlocks_as_a_scenario() {
    // Two cores that call two trees in different orders. Arbiters that know no conflicts are a machine without claims.
    let tables = called(0, &[0, 1]) + &called(1, &[0, 1]);
    let programs = vec![vec![(0, false), (1, false)], vec![(1, false), (0, false)]];
    let plan = plan(&mesh(&[2], 1, &(tables.clone() + IDLE)), programs.clone(), 0, true);
    let (_, found) = search(&plan, Some(Fault::Blind));
    let (name, steps) = found.expect("two run at once");
    assert_eq!(name, "one of those that conflict runs");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.toml");
    std::fs::write(&file, scenario(&steps, &programs, &tables)).expect("it is written");
    let run = |claims: bool| {
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_watershed"));
        program
            .args(["run", "--set", &format!("checks.claims={claims}"), "--out"])
            .arg(folder.path().join("out"))
            .arg(&file);
        let output = program.output().expect("the program runs");
        (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (well, told) = run(false);
    assert!(!well && told.contains("deadlock"), "{told}");
    // With claims the same calls end.
    let (well, told) = run(true);
    assert!(well, "{told}");
}
