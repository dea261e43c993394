//! What every test of the fabric is made of: plans built by hand, tables that say one thing, end points that play a
//! script and write down what lands and when, and engines of both forms that do one simple thing each.

use std::collections::{HashMap, VecDeque};

use watershed::fabric::arbiter::Policy;
use watershed::fabric::{
    Block, Blocks, Evaluation, Flit, Io, Join, JoinCx, JoinOut, Network, NodeKind, Pipeline, Plan, PlanLink, PlanNode,
    PortSet, Route, RouteView, RouterCfg, Step, SwitchCfg, Tables, Vcs, pass_through,
};
use watershed::kernel::{Cycle, Wake};
use watershed::probe::Scope;

/// The lengths the other families will send.
pub const LENGTHS: [u32; 4] = [1, 11, 33, 132];

pub type Net<const W: usize> = Network<Map, Engine, Wire, Player, W>;

/// The seed of random tests; `WATERSHED_SEED` sets another one.
pub fn seed() -> u64 {
    std::env::var("WATERSHED_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0x5eed)
}

/// What flit `index` of packet `seq` of stream `id` carries. Written down here once more, so that nothing of the model
/// says what is right.
pub fn word(id: u16, seq: u64, index: u32) -> u64 {
    (u64::from(id) << 48 | seq << 16 | u64::from(index)).wrapping_mul(0x2545_f491_4f6c_dd1d).rotate_left(23)
}

// --------------------------------------------------------------------------------------------------------- tables

/// Tables that are written out.
#[derive(Clone, Debug, Default)]
pub struct Map {
    /// Outputs by (switch, input port, id).
    pub sets: HashMap<(u32, u16, u16), Vec<u16>>,
    /// Output by (switch, destination).
    pub unicast: HashMap<(u32, u32), u16>,
    /// Flits of the longest multicast.
    pub longest: u32,
    /// Whether an id and a destination are simply the number of the output: a star that reaches everything.
    pub direct: bool,
}

impl Map {
    pub fn set(&mut self, switch: u32, port: u16, id: u16, outputs: &[u16]) -> &mut Map {
        self.sets.insert((switch, port, id), outputs.to_vec());
        self
    }

    pub fn to(&mut self, switch: u32, dst: u32, output: u16) -> &mut Map {
        self.unicast.insert((switch, dst), output);
        self
    }

    pub fn longest(&mut self, flits: u32) -> &mut Map {
        self.longest = flits;
        self
    }
}

impl<const W: usize> Tables<W> for Map {
    fn outputs(&self, switch: u32, port: u16, flit: &Flit) -> PortSet<W> {
        if self.direct {
            return PortSet::one(flit.tag.id());
        }
        self.sets.get(&(switch, port, flit.tag.id())).into_iter().flatten().copied().collect()
    }

    fn longest_multicast(&self, _: u8) -> u32 {
        self.longest.max(1)
    }

    fn unicast(&self, at: &RouteView<'_>, flit: &Flit) -> Route {
        Route::over(if self.direct { flit.dst() as u16 } else { self.unicast[&(at.switch, flit.dst())] })
    }

    fn no_route(&self, switch: u32, port: u16, flit: &Flit) -> String {
        format!("no entry for id {} at port {port} of switch {switch}", flit.tag.id())
    }
}

// ----------------------------------------------------------------------------------------------------- end points

/// A packet an end point is to send, not before `at`.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub at: Cycle,
    pub vc: u8,
    pub id: u16,
    pub seq: u64,
    pub flits: u32,
    /// Destination of a point-to-point packet.
    pub dst: u32,
}

impl Packet {
    pub fn new(vc: u8, id: u16, seq: u64, flits: u32) -> Packet {
        Packet { at: 0, vc, id, seq, flits, dst: 0 }
    }

    pub fn to(self, dst: u32) -> Packet {
        Packet { dst, ..self }
    }

    pub fn at(self, at: Cycle) -> Packet {
        Packet { at, ..self }
    }

    /// Flit `index`; `header` says whether the head carries a point-to-point header.
    fn flit(&self, index: u32, header: bool) -> Flit {
        let word = if header && index == 0 { Flit::header(self.dst, self.at) } else { word(self.id, self.seq, index) };
        Flit::part(self.id, self.vc, self.seq, index, self.flits, word)
    }
}

/// An end point with a script: sends packets, a flit a cycle, the highest channel first, and writes down what lands.
#[derive(Clone, Debug, Default)]
pub struct Player {
    script: HashMap<u8, (VecDeque<Packet>, u32)>,
    /// Takes nothing before this cycle.
    pub opens: Cycle,
    /// Takes nothing from this cycle on.
    pub closes: Option<Cycle>,
    /// Every flit that landed, and the cycle in which it was taken.
    pub landed: Vec<(Cycle, Flit)>,
    /// Every flit that was sent, and when.
    pub sent: Vec<(Cycle, u8)>,
}

impl Player {
    pub fn new() -> Player {
        Player::default()
    }

    pub fn send(&mut self, packet: Packet) {
        self.script.entry(packet.vc).or_default().0.push_back(packet);
    }

    /// Whole packets of a channel as (first cycle, last cycle, id, seq, flits), after checking that they are whole, in
    /// order and undamaged.
    pub fn packets(&self, vc: u8, header: bool) -> Vec<(Cycle, Cycle, u16, u64, u32)> {
        let mut packets = Vec::new();
        let mut open: Option<(Cycle, u16, u64, u32)> = None;
        for &(cycle, flit) in self.landed.iter().filter(|(_, flit)| flit.tag.vc() == vc) {
            assert_eq!(flit.tag.head(), open.is_none(), "a head exactly where a packet begins, cycle {cycle}");
            let (start, id, seq, index) = open.unwrap_or((cycle, flit.tag.id(), flit.tag.seq(), 0));
            assert_eq!((flit.tag.id(), flit.tag.seq()), (id, seq), "all flits are of one packet, cycle {cycle}");
            if !(header && index == 0) {
                assert_eq!(flit.word, word(id, seq, index), "flit {index} of packet {seq} is as it was sent");
            }
            if flit.tag.tail() {
                packets.push((start, cycle, id, seq, index + 1));
                open = None;
            } else {
                open = Some((start, id, seq, index + 1));
            }
        }
        assert!(open.is_none(), "the last packet is whole");
        packets
    }

    fn pending(&self) -> usize {
        self.script.values().map(|(queue, _)| queue.len()).sum()
    }
}

impl Block for Player {
    type Tables = Map;

    fn tick(&mut self, io: &mut Io<'_>, _: &Map) -> Wake {
        let (now, vcs) = (io.now(), io.vcs());
        let mut wake = Wake::OnInput;
        for vc in 0..vcs.total() {
            if io.head(0, vc).is_none() || self.closes.is_some_and(|cycle| now >= cycle) {
                continue;
            }
            if now < self.opens {
                wake = wake.or(Wake::At(self.opens));
                continue;
            }
            let flit = io.take(0, vc);
            self.landed.push((now, flit));
            if io.head(0, vc).is_some() {
                wake = Wake::Next;
            }
        }
        let mut sent = false;
        for vc in (0..vcs.total()).rev() {
            let Some((queue, index)) = self.script.get_mut(&vc) else { continue };
            let Some(&packet) = queue.front() else { continue };
            if packet.at > now {
                wake = wake.or(Wake::At(packet.at));
                continue;
            }
            if sent || io.busy_until(0).is_some() {
                wake = wake.or(io.busy_until(0).map_or(Wake::Next, Wake::At));
                continue;
            }
            if !io.can_send(0, vc) {
                continue;
            }
            io.send(0, vc, packet.flit(*index, !vcs.is_set(vc)));
            self.sent.push((now, vc));
            sent = true;
            *index += 1;
            if *index == packet.flits {
                queue.pop_front();
                *index = 0;
            }
            if !queue.is_empty() {
                wake = Wake::Next;
            }
        }
        wake
    }

    fn open(&self) -> Option<String> {
        (self.pending() > 0).then(|| format!("{} packets wait to be sent", self.pending()))
    }

    fn probe(&self, _: &mut Scope<'_>) {}
}

// -------------------------------------------------------------------------------------------------------- engines

/// What an engine behind an internal port does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// There is none.
    None,
    /// Returns every packet unchanged, whole, `latency` cycles after it came.
    Pass { latency: u64 },
    /// Swallows everything.
    Absorb,
    /// Answers every flit with a point-to-point packet of one flit to this end point, on channel 1.
    Answer { dst: u32 },
    /// Takes a flit of each of these ports together and returns their sum on the first one's header.
    Gather { ports: Vec<u16> },
}

/// An engine behind an internal port: a queue of `slots` flits for every input port.
#[derive(Clone, Debug)]
pub struct Engine {
    pub role: Role,
    pub slots: usize,
    /// Results that may stand in the crossbar input before the engine pauses.
    pub results: usize,
    slot: HashMap<u16, VecDeque<(Cycle, Flit)>>,
    /// The port whose packet is passing.
    passing: Option<u16>,
    pub taken: u64,
}

impl Engine {
    pub fn new(role: Role, slots: usize) -> Engine {
        Engine { role, slots, results: 8, slot: HashMap::new(), passing: None, taken: 0 }
    }

    fn visible(&self, port: u16, now: Cycle) -> Option<Flit> {
        self.slot.get(&port)?.front().filter(|(at, _)| *at <= now).map(|(_, flit)| *flit)
    }

    fn take(&mut self, port: u16) -> Flit {
        self.taken += 1;
        self.slot.get_mut(&port).and_then(VecDeque::pop_front).expect("visible").1
    }
}

impl Join for Engine {
    type Tables = Map;

    fn has_room(&self, port: u16, _: u8) -> bool {
        self.slot.get(&port).is_none_or(|slot| slot.len() < self.slots)
    }

    fn operands_missing(&self, _: &Map, _: u32, _: (u16, u8), visible: Cycle) -> bool {
        match &self.role {
            Role::Gather { ports } => ports.iter().any(|&port| self.visible(port, visible).is_none()),
            _ => false,
        }
    }

    fn put_flit(&mut self, port: u16, _: u8, flit: Flit, visible: Cycle) {
        assert!(self.has_room(port, flit.tag.vc()), "has_room() was asked first");
        self.slot.entry(port).or_default().push_back((visible, flit));
    }

    fn tick(&mut self, cx: &JoinCx<'_, Map>) -> JoinOut {
        let mut out = JoinOut { result: None, changed: false, wake: Wake::OnInput, fault: None };
        match self.role.clone() {
            Role::None => {}
            Role::Absorb => {
                let ports: Vec<u16> = self.slot.keys().copied().collect();
                for port in ports {
                    if self.visible(port, cx.now).is_some() {
                        self.take(port);
                        out.changed = true;
                    }
                }
            }
            Role::Answer { dst } => {
                if self.visible(0, cx.now).is_some() {
                    let seq = self.take(0).tag.seq();
                    out.result = Some(Flit::part(0, 1, seq, 0, 1, Flit::header(dst, cx.now)));
                    out.changed = true;
                }
            }
            Role::Pass { latency } => {
                // One packet at a time; the lowest port first.
                let mut ports: Vec<u16> = self.slot.keys().copied().collect();
                ports.sort_unstable();
                let due =
                    |engine: &Engine, port: u16| cx.now >= latency && engine.visible(port, cx.now - latency).is_some();
                let port = self.passing.or_else(|| ports.iter().copied().find(|&port| due(self, port)));
                if let Some(port) = port.filter(|&port| due(self, port) && cx.queued.all() < self.results) {
                    let flit = self.take(port);
                    self.passing = (!flit.tag.tail()).then_some(port);
                    out.result = Some(flit);
                    out.changed = true;
                }
            }
            Role::Gather { ports } => {
                let heads: Vec<Flit> = ports.iter().filter_map(|&port| self.visible(port, cx.now)).collect();
                if heads.len() == ports.len() && cx.queued.all() < self.results {
                    let mut sum = heads[0];
                    sum.word = heads.iter().fold(0, |sum, flit| sum.wrapping_add(flit.word));
                    for port in ports {
                        self.take(port);
                    }
                    out.result = Some(sum);
                    out.changed = true;
                }
            }
        }
        // Simple engines: looked at in every cycle while they hold anything.
        if !self.is_idle() {
            out.wake = Wake::Next;
        }
        out
    }

    fn is_idle(&self) -> bool {
        self.slot.values().all(VecDeque::is_empty)
    }

    fn waits_for(&self, _: &Map, _: u32) -> Vec<(u16, u8, String)> {
        match &self.role {
            Role::Gather { ports } => ports
                .iter()
                .filter(|port| self.slot.get(port).is_none_or(VecDeque::is_empty))
                .map(|&port| (port, 0, format!("no operand of port {port}")))
                .collect(),
            _ => Vec::new(),
        }
    }

    fn probe(&self, _: &mut Scope<'_>) {}
}

/// An engine in the wire.
#[derive(Clone, Debug)]
pub enum Wire {
    /// Passes everything on.
    Pass,
    /// Swallows what comes from the switch (port 0) on set-routed channels; passes the rest.
    Absorb { taken: u64 },
    /// Passes everything on, and sends packets of its own on channel 0 out of port 1, between two packets.
    Inject { script: VecDeque<Packet>, index: u32, open: bool },
    /// Holds what comes from the switch until a cycle; passes the rest.
    Hold { until: Cycle },
    /// Passes this many flits of the switch on and none after them.
    Cut { after: u32 },
}

impl Wire {
    pub fn inject(packets: impl IntoIterator<Item = Packet>) -> Wire {
        Wire::Inject { script: packets.into_iter().collect(), index: 0, open: false }
    }
}

impl Block for Wire {
    type Tables = Map;

    fn tick(&mut self, io: &mut Io<'_>, _: &Map) -> Wake {
        let now = io.now();
        let mut wake = Wake::OnInput;
        let moved = match self {
            Wire::Pass => pass_through(io, |_, _, _| true),
            Wire::Absorb { taken } => {
                let set = io.vcs().set;
                let mut moved = pass_through(io, |from, flit, _| from == 1 || flit.tag.vc() >= set);
                for vc in 0..set {
                    if io.head(0, vc).is_some() {
                        io.take(0, vc);
                        *taken += 1;
                        moved = true;
                    }
                }
                moved
            }
            Wire::Inject { script, index, open } => {
                let mut moved = false;
                if let Some(&packet) = script.front() {
                    if packet.at > now {
                        wake = Wake::At(packet.at);
                    } else if (*index > 0 || !*open) && io.can_send(1, packet.vc) {
                        io.send(1, packet.vc, packet.flit(*index, false));
                        *index += 1;
                        if *index == packet.flits {
                            script.pop_front();
                            *index = 0;
                        }
                        moved = true;
                    }
                }
                let own = *index > 0;
                moved |= pass_through(io, |from, flit, _| {
                    if from == 0 && own {
                        return false;
                    }
                    if from == 0 && flit.tag.vc() == 0 {
                        *open = !flit.tag.tail();
                    }
                    true
                });
                moved
            }
            Wire::Cut { after } => pass_through(io, |from, _, _| {
                let passes = from == 1 || *after > 0;
                *after -= u32::from(passes && from == 0);
                passes
            }),
            Wire::Hold { until } => {
                if now < *until {
                    wake = Wake::At(*until);
                }
                let until = *until;
                pass_through(io, |from, _, _| from == 1 || now >= until)
            }
        };
        if moved { Wake::Next } else { wake }
    }

    fn open(&self) -> Option<String> {
        None
    }

    fn probe(&self, _: &mut Scope<'_>) {}
}

// ---------------------------------------------------------------------------------------------------------- plans

/// A plan in the making: switches first, then end points, then links.
#[derive(Clone, Debug)]
pub struct Lab {
    pub plan: Plan,
    pub tables: Map,
    pub players: Vec<Player>,
    pub engine: Engine,
    pub bumps: Vec<Wire>,
    pub stages: u8,
    /// Steps of the pipeline one by one, instead of `stages`.
    pub steps: Option<Pipeline>,
    pub router: RouterCfg,
    pub policy: Policy,
    pub depth: u16,
    /// Depths of single links, by their number.
    pub depth_of: HashMap<usize, u16>,
    pub evaluation: Evaluation,
    /// Whether link monitors look on.
    pub monitors: bool,
}

impl Lab {
    pub fn new(set: u8, unicast: u8) -> Lab {
        let vcs = Vcs { set, unicast };
        Lab {
            plan: Plan { vcs, nodes: Vec::new(), links: Vec::new(), levels: vec!["all".into()] },
            tables: Map::default(),
            players: Vec::new(),
            engine: Engine::new(Role::None, 0),
            bumps: Vec::new(),
            stages: 1,
            steps: None,
            router: RouterCfg::default(),
            policy: Policy::RoundRobin,
            depth: 200,
            depth_of: HashMap::new(),
            evaluation: Evaluation::default(),
            monitors: true,
        }
    }

    /// Adds a switch; before any end point. With an engine, its port comes on top of `ports`.
    pub fn switch(&mut self, ports: u16, engine: bool) -> u32 {
        assert!(self.players.is_empty(), "switches come first");
        let name = format!("s{}", self.plan.nodes.len());
        let path = format!("lab.{name}");
        let ports = ports + u16::from(engine);
        self.plan.nodes.push(PlanNode { kind: NodeKind::Switch, ports, engine, name, path });
        self.plan.nodes.len() as u32 - 1
    }

    pub fn link(&mut self, a: (u32, u16), b: (u32, u16), latency: u16) -> usize {
        self.plan.links.push(PlanLink { a, b, latency, cycles_per_flit: 1, level: 0 });
        self.plan.links.len() - 1
    }

    /// Adds an end point at a port of a switch.
    pub fn end(&mut self, switch: u32, port: u16, latency: u16) -> usize {
        let end = self.players.len();
        let name = format!("e{end}");
        let path = format!("lab.{name}");
        self.plan.nodes.push(PlanNode { kind: NodeKind::End, ports: 1, engine: false, name, path });
        self.players.push(Player::new());
        self.link((self.plan.nodes.len() as u32 - 1, 0), (switch, port), latency);
        end
    }

    /// One switch with an end point on every port.
    pub fn star(set: u8, unicast: u8, ports: u16, engine: bool, latency: u16) -> Lab {
        let mut lab = Lab::new(set, unicast);
        lab.switch(ports, engine);
        for port in 0..ports {
            lab.end(0, port, latency);
        }
        lab
    }

    /// A row of switches: port 0 left, port 1 right; end 0 at the left, end 1 at the right. All packets go right by
    /// either class (id 0, destination 1), or left (id 1, destination 0).
    pub fn row(set: u8, unicast: u8, switches: u32, latency: u16) -> Lab {
        let mut lab = Lab::new(set, unicast);
        for _ in 0..switches {
            lab.switch(2, false);
        }
        for s in 1..switches {
            lab.link((s - 1, 1), (s, 0), latency);
        }
        lab.end(0, 0, latency);
        lab.end(switches - 1, 1, latency);
        for s in 0..switches {
            lab.tables.set(s, 0, 0, &[1]).set(s, 1, 1, &[0]).to(s, 1, 1).to(s, 0, 0);
        }
        lab
    }

    pub fn bump(&mut self, switch: u32, port: u16, inner: u16, wire: Wire) -> usize {
        let name = format!("b{}", self.bumps.len());
        let bump = self.plan.insert_bump(switch, port, inner, &name);
        self.bumps.push(wire);
        bump
    }

    pub fn depths(&self) -> impl Fn(&PlanLink, u8) -> u16 {
        let (depth, plan, single) = (self.depth, self.plan.links.clone(), self.depth_of.clone());
        move |link, _| {
            plan.iter().position(|other| other == link).and_then(|at| single.get(&at)).copied().unwrap_or(depth)
        }
    }

    pub fn build<const W: usize>(&self) -> Net<W> {
        let switches = self.plan.count(NodeKind::Switch);
        let engines = self.plan.nodes.iter().any(|node| node.engine);
        let blocks = Blocks {
            joins: if engines { vec![self.engine.clone(); switches] } else { Vec::new() },
            no_join: Engine::new(Role::None, 0),
            bumps: self.bumps.clone(),
            ends: self.players.clone(),
        };
        let cfg = SwitchCfg {
            pipeline: self.steps.unwrap_or_else(|| Pipeline::new(self.stages)),
            policy: self.policy,
            monitors: self.monitors,
            router: self.router,
        };
        let names = (0..self.plan.vcs.total()).map(|vc| format!("c{vc}")).collect();
        let mut net = if self.depth_of.is_empty() {
            let depth = self.depth;
            Net::new(self.plan.clone(), self.tables.clone(), blocks, cfg, &|_, _| depth, names)
        } else {
            Net::new(self.plan.clone(), self.tables.clone(), blocks, cfg, &self.depths(), names)
        };
        net.evaluate(self.evaluation);
        net
    }

    /// Builds, runs until nothing ever happens again, and checks that nothing is left.
    pub fn run<const W: usize>(&self) -> Net<W> {
        let mut net = self.build::<W>();
        quiet(&mut net, 2_000_000);
        clean(&net);
        net
    }
}

/// Steps until nothing will ever happen again; returns the number of steps.
pub fn quiet<const W: usize>(net: &mut Net<W>, limit: u64) -> u64 {
    for steps in 0..limit {
        if net.step() == Step::Quiet {
            return steps;
        }
    }
    panic!("still moving after {limit} steps, in cycle {}", net.now());
}

/// Nothing queued, nothing under way, every credit back, no rule broken, every script played.
pub fn clean<const W: usize>(net: &Net<W>) {
    assert_eq!(net.fault(), None);
    assert_eq!(net.live_flits(), 0, "{}", net.autopsy());
    assert!(net.at_rest(), "every credit is back");
    assert_eq!(net.head_waits_add_up(), Ok(()));
    assert!(net.ends().iter().all(|end| end.pending() == 0), "everything was sent");
    assert!(net.joins().iter().all(Join::is_idle));
}

/// Simulates every cycle before `cycle`, and no other (a step with skipping on may jump beyond).
pub fn until<const W: usize>(net: &mut Net<W>, cycle: Cycle) {
    net.evaluate(Evaluation { no_skip: true, shuffle: None });
    while net.now() < cycle {
        net.step();
    }
    net.evaluate(Evaluation::default());
}

/// Simulates every cycle up to `cycle`, asserts that `ready` is false before it and true after it.
pub fn earliest<const W: usize>(net: &mut Net<W>, cycle: Cycle, ready: impl Fn(&Net<W>) -> bool) {
    until(net, cycle);
    assert!(!ready(net), "blocked until cycle {cycle}");
    net.step();
    assert!(ready(net), "ready in cycle {cycle}");
}

/// Counts of every link, and what landed at every end point.
pub type Trace = (Vec<(u64, u64, u64)>, Vec<Vec<(Cycle, Flit)>>);

/// Everything a run leaves behind, for comparing two of them.
pub fn trace<const W: usize>(net: &Net<W>) -> Trace {
    let counts = net.link_loads().map(|load| (load.count.set, load.count.unicast, load.count.waited)).collect();
    (counts, net.ends().iter().map(|end| end.landed.clone()).collect())
}
