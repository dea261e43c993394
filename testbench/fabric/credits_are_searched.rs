//! H-CHECK-1 for credits: small systems of the simulator's own switches, links and buffers, and everything that their end points may
//! do: in every cycle each may send or not, and take what stands in its buffers or not, for as long as it likes.
//!
//! A state is what the system saves into a checkpoint; two are one if they go on in the same way ([`CanonicalState`]).

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Mutex;

use stateright::{Checker, HasDiscoveries, Model, Property};
use watershed::fabric::arbiter::Policy;
use watershed::fabric::traffic::{MayHaveTraffic, Traffic};
use watershed::fabric::{
    Block, Blocks, CanonicalState, Flit, Io, Join, JoinCx, JoinOut, Network, NoBump, NodeKind, Pipeline, Plan,
    PlanLink, PlanNode, PortSet, Route, RouteView, RouterCfg, Simulation, SwitchCfg, Tables, Vcs,
};
use watershed::kernel::Wake;
use watershed::probe::Scope;
use watershed::state::{Loader, Saver, State as _, state};

use crate::share;

const REQUEST: u8 = 0;
const RESPONSE: u8 = 1;

/// Switch, input port, channel and id.
type Key = (u32, u16, u8, u16);

/// Outputs of each, and the flits of the longest frame.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct Ways(Vec<(Key, Vec<u16>)>, u32);

impl Tables<1> for Ways {
    fn outputs(&self, switch: u32, port: u16, flit: &Flit) -> PortSet<1> {
        let key = (switch, port, flit.tag.vc(), flit.tag.id());
        self.0.iter().filter(|(of, _)| *of == key).flat_map(|(_, outputs)| outputs).copied().collect()
    }

    fn longest_multicast(&self, _: u8) -> u32 {
        self.1
    }

    fn unicast(&self, _: &RouteView<'_>, _: &Flit) -> Route {
        unreachable!("there are no packets")
    }

    fn no_route(&self, switch: u32, port: u16, _: &Flit) -> String {
        format!("no way from port {port} of switch {switch}")
    }
}

/// An end point that does what it is told, flit by flit.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct Puppet {
    /// Flits by id that are to be sent, in turn, and the number of the next one.
    id: u16,
    left: u64,
    next: u64,
    /// Flits of a frame.
    frame: u32,
    /// What it may do in the coming cycle.
    goes: bool,
    takes: bool,
    /// The next flit of each id that is due, and whether another one came.
    due: [u64; 2],
    wrong: bool,
}

impl Block for Puppet {
    type Tables = Ways;

    fn tick(&mut self, io: &mut Io<'_>, _: &Ways) -> Wake {
        for vc in [REQUEST, RESPONSE] {
            if self.takes && io.head(0, vc).is_some() {
                let flit = io.take(0, vc);
                let due = &mut self.due[usize::from(flit.tag.id())];
                self.wrong |= flit.tag.seq() != *due;
                *due += 1;
            }
        }
        if self.goes && self.left > 0 && io.can_send(0, REQUEST) {
            let at = (self.next % u64::from(self.frame)) as u32;
            io.send(0, REQUEST, Flit::part(self.id, REQUEST, self.next, at, self.frame, 1 << self.next));
            (self.left, self.next) = (self.left - 1, self.next + 1);
        }
        Wake::OnInput
    }

    fn open(&self) -> Option<String> {
        None
    }

    fn probe(&self, _: &mut Scope<'_>) {}
}

impl MayHaveTraffic for Puppet {
    fn traffic(&self) -> Option<&Traffic> {
        None
    }

    fn traffic_mut(&mut self) -> Option<&mut Traffic> {
        None
    }
}

/// An engine that joins the requests of two ports, with one operand slot for each, and answers on the response channel.
#[derive(Clone, Debug, Default)]
struct Pair {
    slots: [Option<(u64, u64)>; 2],
    ports: [u16; 2],
    results: usize,
}

state!(Pair { saved: slots; built: ports, results });

impl Pair {
    fn slot(&self, port: u16) -> usize {
        self.ports.iter().position(|of| *of == port).expect("a port of the engine")
    }
}

impl Join for Pair {
    type Tables = Ways;

    fn has_room(&self, port: u16, _: u8) -> bool {
        self.slots[self.slot(port)].is_none()
    }

    fn operands_missing(&self, _: &Ways, _: u32, _: (u16, u8), _: u64) -> bool {
        self.slots.contains(&None)
    }

    fn put_flit(&mut self, port: u16, _: u8, flit: Flit, _: u64) {
        assert!(self.has_room(port, REQUEST), "has_room() was asked first");
        let slot = self.slot(port);
        self.slots[slot] = Some((flit.tag.seq(), flit.word));
    }

    fn tick(&mut self, cx: &JoinCx<'_, Ways>) -> JoinOut {
        let mut out = JoinOut { result: None, changed: false, wake: Wake::OnInput, fault: None };
        if let [Some((seq, a)), Some((other, b))] = self.slots
            && cx.queued.all() < self.results
        {
            assert_eq!(seq, other, "operands of one element meet");
            self.slots = [None; 2];
            out.result = Some(Flit::collective(0, RESPONSE, seq, a + b));
            out.changed = true;
        }
        if self.slots != [None; 2] {
            out.wake = Wake::Next;
        }
        out
    }

    fn is_idle(&self) -> bool {
        self.slots == [None; 2]
    }

    fn waits_for(&self, _: &Ways, _: u32) -> Vec<(u16, u8, String)> {
        Vec::new()
    }

    fn probe(&self, _: &mut Scope<'_>) {}
}

type Net = Network<Ways, Pair, NoBump<Ways>, Puppet, 1>;

/// Two switches with two end points each. Port 0 is the link between them, 1 and 2 are those of end points.
#[derive(Clone, Debug)]
struct System {
    ways: Ways,
    /// Flits of each end point, and their id.
    sends: [(u16, u64); 4],
    /// Flits that each end point gets, by id.
    gets: [[u64; 2]; 4],
    engine: bool,
    depth: u16,
    /// Flits of a frame.
    frame: u32,
}

impl System {
    /// End points 0 and 2, one at each switch, send this many flits each to all others: multicasts that cross each other and fork twice.
    fn multicasts(flits: [u64; 2], depth: u16) -> System {
        let mut ways = Vec::new();
        for (switch, id) in [(0, 0), (1, 1)] {
            ways.push(((switch, 1, REQUEST, id), vec![0, 2]));
            ways.push(((1 - switch, 0, REQUEST, id), vec![1, 2]));
        }
        let gets = [[0, flits[1]], flits, [flits[0], 0], flits];
        System {
            ways: Ways(ways, 1),
            sends: [(0, flits[0]), (0, 0), (1, flits[1]), (0, 0)],
            gets,
            engine: false,
            depth,
            frame: 1,
        }
    }

    /// Frames of so many flits, from end point 0 alone to the others, or to all but the last: then only one switch copies.
    fn long_multicasts(frame: u32, frames: u64, depth: u16, all: bool) -> System {
        let mut system = System::multicasts([u64::from(frame) * frames, 0], depth);
        (system.ways.1, system.frame) = (frame, frame);
        if !all {
            system.ways.0.retain(|(key, _)| key.0 == 0);
            system.ways.0.push(((1, 0, REQUEST, 0), vec![1]));
            system.gets[3][0] = 0;
        }
        system
    }

    /// An all-reduce of end points 0 and 2 in the engine of switch 0, whose result goes to end points 0 and 2; beside it end point 3
    /// sends to 1 over the same link, by the request channel.
    fn reduction(flits: u64, depth: u16) -> System {
        let ways = vec![
            ((0, 1, REQUEST, 0), vec![3]),
            ((1, 1, REQUEST, 0), vec![0]),
            ((0, 0, REQUEST, 0), vec![3]),
            ((0, 3, RESPONSE, 0), vec![0, 1]),
            ((1, 0, RESPONSE, 0), vec![1]),
            ((1, 2, REQUEST, 1), vec![0]),
            ((0, 0, REQUEST, 1), vec![2]),
        ];
        let gets = [[flits, 0], [0, flits], [flits, 0], [0, 0]];
        System {
            ways: Ways(ways, 1),
            sends: [(0, flits), (0, 0), (0, flits), (1, flits)],
            gets,
            engine: true,
            depth,
            frame: 1,
        }
    }

    fn net(&self) -> Net {
        let node = |kind, ports: u16, engine, name: String| PlanNode { kind, ports, engine, path: name.clone(), name };
        let ports = 3 + u16::from(self.engine);
        let mut nodes: Vec<PlanNode> =
            (0..2).map(|switch| node(NodeKind::Switch, ports, self.engine, format!("s{switch}"))).collect();
        nodes.extend((0..4).map(|end| node(NodeKind::End, 1, false, format!("e{end}"))));
        let link = |a, b| PlanLink { a, b, latency: 1, cycles_per_flit: 1, level: 0 };
        let mut links = vec![link((0, 0), (1, 0))];
        links.extend((0..4).map(|end| link((2 + end, 0), (end / 2, 1 + (end % 2) as u16))));
        let vcs = Vcs { set: 2, unicast: 0 };
        let plan = Plan { vcs, nodes, links, levels: vec!["all".into()] };
        let ends = self.sends.map(|(id, left)| Puppet { id, left, frame: self.frame, ..Puppet::default() });
        let join = Pair { ports: [0, 1], results: 1, ..Pair::default() };
        let joins = if self.engine { vec![join.clone(); 2] } else { Vec::new() };
        let blocks = Blocks { joins, no_join: join, bumps: Vec::new(), ends: ends.to_vec() };
        let cfg = SwitchCfg {
            pipeline: Pipeline::new(1),
            policy: Policy::RoundRobin,
            monitors: false,
            router: RouterCfg::default(),
        };
        let depth = self.depth;
        Network::new(plan, self.ways.clone(), blocks, cfg, &|_, _| depth, vec!["request".into(), "response".into()])
    }
}

/// A fault that is planted once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// A credit is returned twice.
    Twice,
    /// A credit is lost.
    Lost,
}

/// What end points may do in a cycle, a bit each; or the fault happens to a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Cycle { go: u8, take: u8 },
    Plant(u32, u8),
}

/// A state of the search: equal if it goes on in the same way.
#[derive(Clone, Debug)]
struct State {
    saved: Vec<u8>,
    key: Vec<u8>,
    planted: bool,
    /// What there is to choose: end points with something to send, and with something to take.
    choices: (u8, u8),
    /// Channels with a credit.
    channels: Vec<(u32, u8)>,
    /// A rule that does not hold.
    broken: Option<&'static str>,
    over: bool,
}

impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        (&self.key, self.planted) == (&other.key, other.planted)
    }
}

impl Eq for State {}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.key, self.planted).hash(state);
    }
}

struct Search {
    system: System,
    fault: Option<Fault>,
    /// States from which everything arrives if everybody does what he can: they are met again and again.
    arrives: Mutex<HashSet<(Vec<u8>, bool)>>,
}

impl Search {
    fn new(system: System, fault: Option<Fault>) -> Search {
        Search { system, fault, arrives: Mutex::default() }
    }

    fn state(&self, net: &Net, planted: bool) -> State {
        let mut saver = Saver::default();
        Simulation::save(net, &mut saver);
        let CanonicalState { bytes: mut key, places } = net.canonical_state();
        let mut blocks = Saver::default();
        let ends: Vec<&Puppet> = (0..4).map(|end| net.end(end)).collect();
        for end in &ends {
            blocks.value(&(end.left, end.due, end.wrong));
        }
        net.joins().iter().for_each(|join| join.save(&mut blocks));
        key.extend(blocks.into_bytes());
        let bits = |is: &dyn Fn(usize) -> bool| (0..4).fold(0u8, |mask, end| mask | u8::from(is(end)) << end);
        // The buffer of an end point is the far end of a channel of its switch.
        let held = |end: usize| places.iter().any(|of| of.port == port_to(&self.system, end) && of.held > 0);
        let full = places.iter().any(|of| of.held > of.depth);
        let sum = !planted && !places.iter().all(watershed::fabric::BufferCredits::credits_conserved);
        let broken = if full {
            Some("a buffer overflows")
        } else if sum {
            Some("a place is lost or made")
        } else {
            ends.iter().any(|end| end.wrong).then_some("a flit is lost, made or overtaken")
        };
        State {
            saved: saver.into_bytes(),
            key,
            planted,
            choices: (bits(&|end| ends[end].left > 0), bits(&held)),
            channels: places.iter().filter(|of| of.credits > 0).map(|of| (of.port, of.vc)).collect(),
            broken,
            over: ends.iter().zip(self.system.gets).all(|(end, gets)| end.left == 0 && end.due == gets),
        }
    }

    fn at(&self, state: &State) -> Net {
        let mut net = self.system.net();
        Simulation::load(&mut net, &mut Loader::new(&state.saved)).expect("a state of this system");
        net
    }

    fn cycle(&self, state: &State, go: u8, take: u8) -> State {
        let mut net = self.at(state);
        for end in 0..4 {
            let puppet = net.end_mut(end);
            (puppet.goes, puppet.takes) = (go >> end & 1 == 1, take >> end & 1 == 1);
        }
        net.step_before(net.now() + 1);
        self.state(&net, state.planted)
    }

    /// Whether everybody does what he can from now on, and yet work is left in the end.
    fn is_stuck(&self, state: &State) -> bool {
        let mut seen = HashSet::new();
        let mut state = state.clone();
        while !state.over {
            let key = (state.key.clone(), state.planted);
            if self.arrives.lock().unwrap().contains(&key) {
                break;
            }
            if !seen.insert(key) {
                return true;
            }
            state = self.cycle(&state, !0, !0);
        }
        self.arrives.lock().unwrap().extend(seen);
        false
    }
}

/// The system-wide port of a switch to which an end point is attached.
fn port_to(system: &System, end: usize) -> u32 {
    let ports = 3 + u32::from(system.engine);
    (end as u32 / 2) * ports + 1 + end as u32 % 2
}

impl Model for Search {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![self.state(&self.system.net(), false)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        if state.broken.is_some() {
            return;
        }
        let subsets = |of: u8| (0..16u8).filter(move |mask| mask & !of == 0);
        let (goes, takes) = state.choices;
        actions.extend(subsets(goes).flat_map(|go| subsets(takes).map(move |take| Step::Cycle { go, take })));
        if self.fault.is_some() && !state.planted {
            actions.extend(state.channels.iter().map(|&(port, vc)| Step::Plant(port, vc)));
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        Some(match step {
            Step::Cycle { go, take } => self.cycle(state, go, take),
            Step::Plant(port, vc) => {
                let mut net = self.at(state);
                net.plant_credit(port, vc, self.fault == Some(Fault::Twice));
                self.state(&net, true)
            }
        })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        // One property, so that the first state in which it does not hold ends the search: no trace is shorter.
        vec![Property::always("everything arrives", |search: &Search, state: &State| {
            state.broken.is_none() && !search.is_stuck(state)
        })]
    }
}

/// What a search finds: how many states there are, and what breaks first.
fn search(system: &System, fault: Option<Fault>) -> (usize, Option<(&'static str, Vec<Step>)>) {
    let search = Search::new(system.clone(), fault);
    let checker = search.checker().finish_when(HasDiscoveries::Any).spawn_bfs().join();
    let found = checker.discoveries().into_iter().next();
    let found = found.map(|(name, path)| {
        let broken = path.last_state().broken;
        (broken.unwrap_or(name), path.into_actions())
    });
    (checker.unique_state_count(), found)
}

/// In `make test` one of the two that send has one flit, not two, and buffers have one place.
#[test]
fn no_order_of_multicasts_loses_a_credit_or_stands() {
    for (flits, depth) in share::one_in(2, [([2, if share::is_whole() { 2 } else { 1 }], 1), ([1, 1], 2)]) {
        let (states, found) = search(&System::multicasts(flits, depth), None);
        assert!(found.is_none(), "{flits:?} flits, depth {depth}: {found:?}");
        println!("multicasts, {flits:?} flits, depth {depth}: {states} states");
        assert!(states > 500, "{states}");
    }
}

/// Searches frames whose copies leave a buffer that holds them whole, each in its own time.
fn long(frame: u32, frames: u64, depth: u16, all: bool) {
    let (states, found) = search(&System::long_multicasts(frame, frames, depth, all), None);
    assert!(found.is_none(), "{frame} flits, depth {depth}: {found:?}");
    println!("multicasts of {frame} flits, depth {depth}: {states} states");
    assert!(states > 100, "{states}");
}

#[test]
fn no_order_of_long_multicasts_loses_a_credit_or_stands() {
    long(2, 2, 2, false);
}

#[test]
#[ignore = "minutes: part of make soak"]
fn no_order_of_two_long_multicasts_loses_a_credit_or_stands() {
    long(2, 2, 2, true);
    let (_, found) = search(&System::long_multicasts(2, 2, 2, true), Some(Fault::Twice));
    assert_eq!(found.expect("the fault is found").0, "a buffer overflows");
}

#[test]
fn no_order_of_reductions_loses_a_credit_or_stands() {
    let (states, found) = search(&System::reduction(1, 1), None);
    assert!(found.is_none(), "{found:?}");
    println!("reductions: {states} states");
    assert!(states > 500, "{states}");
}

#[test]
fn a_credit_that_comes_back_twice_overflows_a_buffer() {
    let (_, found) = search(&System::multicasts([2, 2], 1), Some(Fault::Twice));
    let (name, steps) = found.expect("the fault is found");
    assert_eq!(name, "a buffer overflows");
    // No step is idle: without the fault nothing breaks, nor on the way.
    let search = Search::new(System::multicasts([2, 2], 1), Some(Fault::Twice));
    let walk = |steps: &[Step]| {
        steps
            .iter()
            .fold(search.init_states().remove(0), |state, step| search.next_state(&state, *step).expect("a step"))
    };
    assert_eq!(walk(&steps).broken, Some("a buffer overflows"));
    assert_eq!(walk(&steps[..steps.len() - 1]).broken, None);
    let without: Vec<Step> = steps.iter().copied().filter(|step| !matches!(step, Step::Plant(..))).collect();
    assert_eq!((walk(&without).broken, without.len()), (None, steps.len() - 1), "{steps:?}");
}

#[test]
fn a_credit_that_is_lost_lets_a_flit_wait_for_ever() {
    let (_, found) = search(&System::multicasts([1, 1], 1), Some(Fault::Lost));
    let (name, steps) = found.expect("the fault is found");
    assert_eq!(name, "everything arrives");
    // A buffer of one place: whoever loses its only credit never sends again.
    assert!(matches!(steps[..], [Step::Plant(..)]), "{steps:?}");
}
