//! Exhaustive search over the interleavings of a protocol (H-CHECK-1), with `stateright`. What runs in a step is the code that the
//! simulator clocks; what the search chooses is what a network chooses: which frame arrives next, whether it arrives right
//! behind the one before, which time-out comes first, and where the faults are.
//!
//! Wires are queues, one for each pair of stations: frames between two stations never overtake each other, and have no other
//! order. Time stands still but for time-outs: one comes when no frame is under way, which is what a time-out that is long
//! enough means, and so many of them come too early.

pub mod scenario;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt::{self, Debug};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use stateright::{Checker, HasDiscoveries, Model, Property};
use watershed::kernel::Digest;

/// Frames that stations send: from, to, frame.
pub type Out<F> = Vec<(u8, u8, F)>;

/// Stations and what they are in the middle of.
pub trait System: Clone + Send + Sync + 'static {
    /// What is on a wire.
    type Frame: Clone + Debug + Send + Sync + 'static;

    /// A frame arrives. `follows`: the next one arrives there in the next cycle.
    fn deliver(&mut self, from: u8, to: u8, frame: &Self::Frame, follows: bool, out: &mut Out<Self::Frame>);

    /// Whether it matters to a station that a frame comes right behind another one.
    fn is_pipelined(&self, station: u8) -> bool;

    /// The stations that may send to this one.
    fn hears(&self, station: u8) -> Vec<u8>;

    /// Stations with a time-out that runs, and whether it is longer than all others.
    fn timers(&self) -> Vec<(u8, bool)>;

    /// The next time-out of a station comes.
    fn expire(&mut self, station: u8, out: &mut Out<Self::Frame>);

    /// How many stations there are that take frames.
    fn stations(&self) -> u8;

    /// Takes into a hash what decides what a station does next: nothing but its own steps changes that.
    fn digest(&self, station: u8, to: &mut DefaultHasher);

    /// A result that is wrong and called right.
    fn is_wrong(&self) -> bool;

    /// Who waits for ever, or what is left behind, when nothing happens any more.
    fn left(&self) -> Option<String>;

    /// Whether everybody has every result.
    fn is_whole(&self) -> bool;
}

/// A frame under way, with the hash of it, and whether a planned fault is for it.
struct Sent<F> {
    frame: Arc<F>,
    hash: u64,
    marked: bool,
}

impl<F> Clone for Sent<F> {
    fn clone(&self) -> Sent<F> {
        Sent { frame: Arc::clone(&self.frame), hash: self.hash, marked: self.marked }
    }
}

impl<F: Debug> Debug for Sent<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.frame.fmt(f)
    }
}

fn hash_by(take: impl FnOnce(&mut DefaultHasher)) -> u64 {
    let mut hasher = DefaultHasher::new();
    take(&mut hasher);
    hasher.finish()
}

/// What a planned fault does to its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is lost.
    Lose,
    /// It is there twice.
    Repeat,
    /// It is held up, and others overtake it.
    Delay,
}

/// A fault that is chosen before the search, so that what comes before it commutes as if there were none.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// From where to where its frame goes.
    pub wire: (u8, u8),
    /// Which one of the wire's frames it is, from 1 on.
    pub number: u16,
    /// What happens to it.
    pub kind: Kind,
}

/// A system with what is under way between its stations.
#[derive(Clone)]
pub struct State<S: System> {
    /// The stations.
    pub system: S,
    /// The digest of each station.
    digests: Vec<u64>,
    wires: BTreeMap<(u8, u8), VecDeque<Sent<S::Frame>>>,
    /// A frame that a fault delays.
    held: Option<(u8, u8, Sent<S::Frame>)>,
    faults: u8,
    early: u8,
    /// The only station whose time-out comes early, if one is chosen.
    early_at: Option<u8>,
    /// A fault that is chosen, and how many frames of its wire are to be sent until its own: none, if that is sent.
    plan: Option<(Plan, u16)>,
    /// Whether the chosen fault has done something.
    struck: bool,
    /// The station at which the next frame arrives right behind the last.
    next_at: Option<u8>,
}

impl<S: System> State<S> {
    /// The first one of a search: frames are under way, and so much may go wrong.
    fn first(system: S, first: Out<S::Frame>, faults: Faults) -> State<S> {
        let digests = vec![0; usize::from(system.stations())];
        let mut start = State {
            system,
            digests,
            wires: BTreeMap::new(),
            held: None,
            faults: faults.budget,
            early: faults.early,
            early_at: None,
            plan: None,
            struck: false,
            next_at: None,
        };
        (0..start.system.stations()).for_each(|station| start.note(station));
        start.put(first);
        start
    }

    /// The first one of a search in which what goes wrong is chosen.
    fn planned(system: S, first: Out<S::Frame>, plan: Option<Plan>, early_at: Option<u8>) -> State<S> {
        let faults = Faults { budget: 0, early: u8::from(early_at.is_some()), ..Faults::default() };
        let mut start = State::first(system, Vec::new(), faults);
        start.plan = plan.map(|plan| (plan, plan.number));
        start.early_at = early_at;
        start.put(first);
        start
    }

    /// A station has made a step.
    fn note(&mut self, station: u8) {
        self.digests[usize::from(station)] = hash_by(|hasher| self.system.digest(station, hasher));
    }

    fn deliver(&mut self, (from, to): (u8, u8), frame: &S::Frame, follows: bool, out: &mut Out<S::Frame>) {
        self.system.deliver(from, to, frame, follows, out);
        self.note(to);
    }

    fn put(&mut self, out: Out<S::Frame>) {
        for (from, to, frame) in out {
            let wire = (from, to);
            assert!(from >= self.system.stations() || self.system.hears(to).contains(&from), "{wire:?}: {frame:?}");
            let hash = hash_by(|hasher| Digest(hasher).of(&frame));
            let mut sent = Sent { frame: Arc::new(frame), hash, marked: false };
            if let Some((plan, left)) = self.plan.as_mut().filter(|(plan, left)| plan.wire == wire && *left > 0) {
                *left -= 1;
                sent.marked = *left == 0;
                if sent.marked && plan.kind == Kind::Lose {
                    self.struck = true;
                    continue;
                }
            }
            self.wires.entry(wire).or_default().push_back(sent);
        }
        self.hold_up();
    }

    /// A chosen frame is held up as soon as those before it have arrived.
    fn hold_up(&mut self) {
        if let Some((Plan { wire, kind: Kind::Delay, .. }, 0)) = self.plan
            && self.wires.get(&wire).is_some_and(|frames| frames[0].marked)
        {
            let frame = self.pop(wire);
            self.held = Some((wire.0, wire.1, frame));
            self.struck = true;
        }
    }

    fn pop(&mut self, wire: (u8, u8)) -> Sent<S::Frame> {
        let frames = self.wires.get_mut(&wire).expect("a frame is there");
        let frame = frames.pop_front().expect("a frame is there");
        if frames.is_empty() {
            self.wires.remove(&wire);
        }
        frame
    }

    fn take(&mut self, wire: (u8, u8)) -> Sent<S::Frame> {
        let frame = self.pop(wire);
        self.hold_up();
        frame
    }

    /// Whether a time-out of a station may come early.
    fn may_be_early(&self, station: u8) -> bool {
        self.early > 0 && self.early_at.is_none_or(|at| at == station)
    }

    /// A station whose steps are all that need be looked at now (a persistent set): nothing that others can do before one of them
    /// changes which they are, nor what comes of them. Others can do so only if they send to it: a frame behind those that are on
    /// their wire already changes nothing, unless the station takes frames in consecutive cycles, or a copy could go behind it. No
    /// time-out comes in time while a frame is on a wire to it. Every state in which nothing happens any more is still reached, a
    /// wrong result that is held is held there, too, and a system that need not end has an endless run left, which is found.
    fn persistent(&self, follow: bool) -> Option<u8> {
        if self.next_at.is_some() || self.faults > 0 || self.early > 0 && self.early_at.is_none() {
            return None;
        }
        let to: Vec<u8> = self.wires.keys().map(|wire| wire.1).collect();
        let held = self.held.as_ref().map(|&(_, to, _)| to);
        let early = self.early_at.filter(|&at| self.early > 0 && self.system.timers().contains(&(at, false)));
        let alone = |&station: &u8| {
            let mut acts: Vec<u8> = to.iter().copied().chain(held).chain(early).filter(|&at| at != station).collect();
            let mut next = 0;
            while let Some(&from) = acts.get(next) {
                next += 1;
                for at in (0..self.system.stations()).filter(|&at| at != station) {
                    if !acts.contains(&at) && self.system.hears(at).contains(&from) {
                        acts.push(at);
                    }
                }
            }
            let in_turn = follow && self.system.is_pipelined(station);
            self.system
                .hears(station)
                .into_iter()
                .filter(|from| acts.contains(from))
                .all(|from| self.wires.get(&(from, station)).is_some_and(|frames| !frames[0].marked) && !in_turn)
        };
        let steps = |station: u8| {
            to.iter().map(|&at| usize::from(at == station)).sum::<usize>()
                + usize::from(held == Some(station))
                + usize::from(early == Some(station))
        };
        to.iter().copied().filter(alone).min_by_key(|&station| steps(station))
    }

    fn hash_of(&self) -> u64 {
        hash_by(|hasher| {
            self.digests.hash(hasher);
            for (wire, frames) in &self.wires {
                wire.hash(hasher);
                frames.iter().map(|sent| sent.hash).collect::<Vec<_>>().hash(hasher);
            }
            let held = self.held.as_ref().map(|(from, to, sent)| (*from, *to, sent.hash));
            (held, self.faults, self.early, self.next_at).hash(hasher);
            let left = self.plan.map(|(_, left)| left);
            let marked =
                self.plan.and_then(|(plan, _)| self.wires.get(&plan.wire)?.iter().position(|sent| sent.marked));
            (left, marked, self.struck).hash(hasher);
        })
    }
}

impl<S: System> Hash for State<S> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash_of());
    }
}

impl<S: System> PartialEq for State<S> {
    fn eq(&self, other: &State<S>) -> bool {
        self.hash_of() == other.hash_of()
    }
}

impl<S: System> Debug for State<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, held {:?}, left: {:?}", self.wires, self.held, self.system.left())
    }
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The first frame of a wire arrives; `follows`: another one in the next cycle.
    Arrive { wire: (u8, u8), follows: bool },
    /// It is lost.
    Lose { wire: (u8, u8) },
    /// It is there twice.
    Repeat { wire: (u8, u8) },
    /// It is there twice: so many frames come between.
    RepeatBehind { wire: (u8, u8), frames: usize },
    /// It is held up, and others overtake it.
    Delay { wire: (u8, u8) },
    /// What was held up arrives.
    ArriveLate,
    /// A time-out comes.
    Expire { station: u8 },
}

/// What may go wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Frames that are lost, repeated or held up.
    pub budget: u8,
    /// Whether frames are held up.
    pub delays: bool,
    /// Whether frames are repeated: nothing removes those that a link sends twice.
    pub repeats: bool,
    /// Time-outs that come although frames are under way.
    pub early: u8,
    /// Whether frames arrive in consecutive cycles.
    pub follow: bool,
}

/// A search.
pub struct Search<S: System> {
    start: State<S>,
    faults: Faults,
}

impl<S: System> Model for Search<S> {
    type State = State<S>;
    type Action = Step;

    fn init_states(&self) -> Vec<State<S>> {
        vec![self.start.clone()]
    }

    fn actions(&self, state: &State<S>, actions: &mut Vec<Step>) {
        let alone = state.persistent(self.faults.follow);
        let here = |station: u8| alone.is_none_or(|alone| alone == station);
        let wires = || state.wires.keys().copied().filter(|wire| here(wire.1));
        for wire in wires().filter(|wire| state.next_at.is_none_or(|at| at == wire.1)) {
            let queued = &state.wires[&wire];
            if queued[0].marked {
                actions.extend((0..queued.len()).map(|frames| Step::RepeatBehind { wire, frames }));
                continue;
            }
            actions.push(Step::Arrive { wire, follows: false });
            let frames = |(from, to)| state.wires.get(&(from, to)).map_or(0, VecDeque::len);
            let more: usize = wires().filter(|other| other.1 == wire.1).map(frames).sum();
            if self.faults.follow && more > 1 && state.system.is_pipelined(wire.1) {
                actions.push(Step::Arrive { wire, follows: true });
            }
        }
        if state.next_at.is_some() {
            return;
        }
        if state.faults > 0 {
            for wire in wires() {
                actions.push(Step::Lose { wire });
                if self.faults.delays {
                    actions.push(Step::Delay { wire });
                }
                if self.faults.repeats {
                    actions.push(Step::Repeat { wire });
                }
            }
        }
        if state.held.as_ref().is_some_and(|&(_, to, _)| here(to)) {
            actions.push(Step::ArriveLate);
        }
        let timers = state.system.timers();
        let patient = timers.iter().all(|&(_, long)| long);
        let in_time = state.wires.is_empty();
        let due = timers.into_iter().filter(|&(station, long)| {
            here(station) && (in_time || state.may_be_early(station)) && (!long || patient && in_time)
        });
        actions.extend(due.map(|(station, _)| Step::Expire { station }));
    }

    fn next_state(&self, last: &State<S>, step: Step) -> Option<State<S>> {
        let mut next = last.clone();
        let mut out = Vec::new();
        next.next_at = None;
        match step {
            Step::Arrive { wire, follows } => {
                let frame = next.take(wire);
                next.deliver(wire, &frame.frame, follows, &mut out);
                next.next_at = follows.then_some(wire.1);
            }
            Step::Lose { wire } => {
                next.take(wire);
                next.faults -= 1;
            }
            Step::Repeat { wire } => {
                let frame = next.wires[&wire][0].clone();
                next.wires.entry(wire).or_default().push_back(frame);
                next.faults -= 1;
            }
            Step::RepeatBehind { wire, frames } => {
                let queued = next.wires.get_mut(&wire).expect("a frame is there");
                queued[0].marked = false;
                let copy = queued[0].clone();
                queued.insert(1 + frames, copy);
                next.struck = true;
                next.next_at = last.next_at;
            }
            Step::Delay { wire } => {
                let frame = next.take(wire);
                next.held = Some((wire.0, wire.1, frame));
                next.faults -= 1;
            }
            Step::ArriveLate => {
                let (from, to, frame) = next.held.take()?;
                next.deliver((from, to), &frame.frame, false, &mut out);
            }
            Step::Expire { station } => {
                next.early -= u8::from(!last.wires.is_empty());
                next.system.expire(station, &mut out);
                next.note(station);
            }
        }
        next.put(out);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Search<S>>> {
        let ends = |search: &Search<S>, state: &State<S>| {
            let mut actions = Vec::new();
            search.actions(state, &mut actions);
            let clean = !state.struck && (state.faults, state.early) == (search.start.faults, search.start.early);
            !actions.is_empty() || state.system.left().is_none() && (!clean || state.system.is_whole())
        };
        vec![
            Property::always("nothing wrong is called right", |_, state: &State<S>| !state.system.is_wrong()),
            Property::always("everything ends, whole without a fault", ends),
        ]
    }
}

/// What a search came to.
pub struct Found<S: System> {
    /// Different states.
    pub states: usize,
    /// Properties that do not hold, each with its shortest trace.
    pub broken: Vec<(&'static str, Vec<String>)>,
    /// What the first of these traces does, and where the system is then.
    pub trace: Option<Trace<S>>,
}

/// A trace, as what becomes of every frame.
pub struct Trace<S> {
    /// Every frame, in the order in which they were sent.
    pub flights: Vec<Flight>,
    /// The system at the end.
    pub end: S,
}

/// A frame of a trace. Steps are counted from 1 on; what was under way at first was sent in step 0.
#[derive(Clone, Debug)]
pub struct Flight {
    /// From where to where.
    pub wire: (u8, u8),
    /// The step in which it was sent.
    pub sent: usize,
    /// The steps in which it arrives: none if it is lost or still under way, two if it is repeated.
    pub arrives: Vec<usize>,
    /// Whether it is lost.
    pub lost: bool,
    /// Whether the next step is an arrival in the cycle behind its own.
    pub follows: bool,
}

impl<S: System> Trace<S> {
    /// Takes the steps again, and looks at the frames.
    fn of(start: &State<S>, faults: Faults, steps: &[Step]) -> Trace<S> {
        let search = Search { start: start.clone(), faults };
        let mut flights: Vec<Flight> = Vec::new();
        let mut wires: BTreeMap<(u8, u8), VecDeque<usize>> = BTreeMap::new();
        let mut held = None;
        let mut state = start.clone();
        let put =
            |state: &State<S>, wires: &mut BTreeMap<(u8, u8), VecDeque<usize>>, flights: &mut Vec<Flight>, sent| {
                for (&wire, frames) in &state.wires {
                    let known = wires.entry(wire).or_default();
                    while known.len() < frames.len() {
                        known.push_back(flights.len());
                        flights.push(Flight { wire, sent, arrives: Vec::new(), lost: false, follows: false });
                    }
                }
            };
        put(&state, &mut wires, &mut flights, 0);
        for (&step, number) in steps.iter().zip(1..) {
            let mut pop = |wire| wires.get_mut(&wire).and_then(VecDeque::pop_front).expect("a frame is there");
            match step {
                Step::Arrive { wire, follows } => {
                    let flight: &mut Flight = &mut flights[pop(wire)];
                    flight.arrives.push(number);
                    flight.follows = follows;
                }
                Step::Lose { wire } => flights[pop(wire)].lost = true,
                Step::Repeat { wire } => {
                    let frames = wires.get_mut(&wire).expect("a frame is there");
                    frames.push_back(frames[0]);
                }
                Step::RepeatBehind { .. } => unreachable!("a trace has no chosen faults"),
                Step::Delay { wire } => held = Some(pop(wire)),
                Step::ArriveLate => flights[held.take().expect("it is held")].arrives.push(number),
                Step::Expire { .. } => {}
            }
            state = search.next_state(&state, step).expect("it was taken before");
            put(&state, &mut wires, &mut flights, number);
        }
        Trace { flights, end: state.system }
    }
}

/// Searches all states that a system can reach, or as far as to the first in which a property does not hold.
pub fn search<S: System>(system: S, first: Out<S::Frame>, faults: Faults) -> Found<S> {
    let start = State::first(system, first, faults);
    let checker = Search { start: start.clone(), faults }.checker().finish_when(HasDiscoveries::Any).spawn_bfs().join();
    let discoveries: BTreeMap<_, _> = checker.discoveries().into_iter().collect();
    let broken = discoveries.into_iter().map(|(name, path)| {
        let last = format!("{:?}", path.last_state());
        (name, path.into_actions(), last)
    });
    let broken: Vec<(&str, Vec<Step>, String)> = broken.collect();
    let trace = broken.first().map(|(_, steps, _)| Trace::of(&start, faults, steps));
    let words = |steps: Vec<Step>| steps.into_iter().map(|step| format!("{step:?}"));
    let broken = broken.into_iter().map(|(name, steps, last)| (name, words(steps).chain([last]).collect()));
    let found = Found { states: checker.unique_state_count(), broken: broken.collect(), trace };
    println!(
        "{} states, at most {} steps to one, {:?}: {:#?}",
        found.states,
        checker.max_depth(),
        faults,
        found.broken
    );
    found
}

/// What a walk came to.
pub struct Walked {
    /// Different states.
    pub states: usize,
    /// The first property that was found not to hold, with the way there, which need not be the shortest.
    pub broken: Option<(&'static str, Vec<String>)>,
    /// Whether the system can come back to a state it was in: then it need not end.
    pub returns: bool,
    /// Whether a chosen fault did something, and whether a time-out came early.
    used: (bool, bool),
    /// What a system may end as, as a hash of its stations.
    pub ends: BTreeSet<u64>,
}

impl Walked {
    /// What another walk came to is added.
    fn add(&mut self, other: Walked) {
        self.states += other.states;
        self.broken = self.broken.take().or(other.broken);
        self.returns |= other.returns;
        self.ends.extend(other.ends);
    }
}

/// Walks as [`walk`] does, once for each fault that may be chosen and each station whose time-out may come early: an order of steps
/// with one fault is one without it in which one frame fares otherwise, and what commutes without a fault commutes with a chosen one.
///
/// # Panics
///
/// If more than one fault or more than one early time-out is asked for.
pub fn walk_each<S: System>(system: &S, first: &Out<S::Frame>, faults: Faults) -> Walked {
    assert!(faults.budget <= 1 && faults.early <= 1, "{faults:?}");
    let start = |plan, early_at| State::planned(system.clone(), first.clone(), plan, early_at);
    let mut kinds = vec![Kind::Lose];
    kinds.extend(faults.repeats.then_some(Kind::Repeat));
    kinds.extend(faults.delays.then_some(Kind::Delay));
    let stations = 0..system.stations();
    let senders = stations.clone().flat_map(|to| system.hears(to).into_iter().map(move |from| (from, to)));
    let choices: Vec<((u8, u8), Kind)> = senders.flat_map(|wire| kinds.iter().map(move |&kind| (wire, kind))).collect();
    let mut all = walk_from(&start(None, None), faults);
    let early = stations.filter(|_| faults.early > 0).map(Some);
    for early_at in early.chain([None].into_iter().filter(|_| faults.early == 0)) {
        let plain = walk_from(&start(None, early_at), faults);
        let used = plain.used.1;
        all.add(plain);
        if !used && early_at.is_some() {
            continue;
        }
        for &(wire, kind) in choices.iter().filter(|_| faults.budget > 0) {
            for number in 1.. {
                let walked = walk_from(&start(Some(Plan { wire, number, kind }), early_at), faults);
                let used = walked.used.0;
                all.add(walked);
                if !used {
                    break;
                }
            }
            println!("{} states, {} ends, {early_at:?}, {wire:?}, {kind:?}", all.states, all.ends.len());
        }
    }
    all
}

/// Walks through all states that a system can reach, depth first, or as far as to the first in which a property does not hold or
/// that comes again on its own way. Whole states are kept along that way alone, and of all others a hash of 64 bits: two of them
/// that agree would hide what follows the second.
pub fn walk<S: System>(system: S, first: Out<S::Frame>, faults: Faults) -> Walked {
    walk_from(&State::first(system, first, faults), faults)
}

fn walk_from<S: System>(start: &State<S>, faults: Faults) -> Walked {
    let search = Search { start: start.clone(), faults };
    let properties = search.properties();
    let broken = |state: &State<S>| properties.iter().find(|of| !(of.condition)(&search, state)).map(|of| of.name);
    let actions = |state: &State<S>| {
        let mut actions = Vec::new();
        search.actions(state, &mut actions);
        actions
    };
    // By hash: whether a state lies on the way.
    let mut open: HashMap<u64, bool> = HashMap::from([(start.hash_of(), true)]);
    let mut way: Vec<(u64, State<S>, Vec<Step>)> = vec![(start.hash_of(), start.clone(), actions(start))];
    let mut taken: Vec<Step> = Vec::new();
    let broken_at_first = broken(start).map(|name| (name, Vec::new()));
    let mut walked =
        Walked { states: 0, broken: broken_at_first, returns: false, used: (false, false), ends: BTreeSet::new() };
    while walked.broken.is_none()
        && !walked.returns
        && let Some((hash, state, left)) = way.last_mut()
    {
        let Some(step) = left.pop() else {
            open.insert(*hash, false);
            way.pop();
            taken.pop();
            continue;
        };
        let Some(next) = search.next_state(state, step) else { continue };
        let at = next.hash_of();
        match open.get(&at) {
            Some(true) => walked.returns = true,
            Some(false) => {}
            None => {
                taken.push(step);
                walked.broken = broken(&next).map(|name| {
                    let steps = taken.iter().map(|step| format!("{step:?}"));
                    (name, steps.chain([format!("{next:?}")]).collect())
                });
                open.insert(at, true);
                let left = actions(&next);
                walked.used.0 |= next.struck;
                walked.used.1 |= next.early < start.early;
                if left.is_empty() {
                    walked.ends.insert(hash_by(|hasher| next.digests.hash(hasher)));
                }
                way.push((at, next, left));
                if open.len().is_multiple_of(1_000_000) {
                    println!("{} states, {} steps deep", open.len(), way.len());
                }
            }
        }
    }
    walked.states = open.len();
    if walked.broken.is_some() || walked.returns || start.plan.is_none() {
        let chosen = start.plan.map(|(plan, _)| plan);
        println!(
            "{} states walked, {faults:?}, {chosen:?}: returns: {}, {:#?}",
            walked.states, walked.returns, walked.broken
        );
    }
    walked
}
