//! Systems of the PBV family: switches with packet engines, nodes, links; the source's examples (B-STR-3).
//!
//! | parameter | default | unit | effect |
//! |---|---|---|---|
//! | `link`, `local` | latency 1 | cycles | links between switches; links to nodes |
//! | `cycles_per_flit` of a link | 1 | cycles | time of a flit of 8 bytes: with a clock of 2 GHz, 1 is two lanes of PCIe 6 (16 bytes a ns: 1056 bytes in 66 ns); with 4 GHz, of PCIe 7 (33 ns) |
//! | `inner` | 1 | cycles | the half link between a switch's port and its engine |
//! | `stages` | 1 | cycles | pipeline of the switches |
//! | `buffer` | [`credit_loop`] | flits, from 2 | input buffers; the address is in the second flit |
//! | `engine_port` | own | | a port of its own, or the port of a node |
//!
//! Ports of a switch: links to other switches in the order of the list, then nodes, then the engine's own port if it
//! has one. An engine's own port leads to an idle end point, because every link of the model has two ends.

use std::collections::{BTreeMap, BTreeSet};

use super::ce::CeCfg;
use super::engine::{Engine, EngineCfg};
use super::event::Event;
use super::node::Node;
use super::plan::{EngineId, Tables};
use super::routes::{Directory, FRAMES, route_flits};
use super::tables::{ENGINE_BASE, ENGINE_SPAN, Owners};
use super::view::View;
use watershed_fabric::arbiter::Policy;
use watershed_fabric::fault::FaultyLink;
use watershed_fabric::topology::LinkParams;
use watershed_fabric::traffic::WithTraffic;
use watershed_fabric::{
    Block, Blocks, FlitSize, Io, NoJoin, NodeKind, Parts, Pipeline, Plan, PlanLink, PlanNode, RouterCfg, Step,
    SwitchCfg, Vcs, credit_round_trip,
};
use watershed_kernel::{Cycle, Wake};
use watershed_probe::Scope;
use watershed_state::state;

watershed_fabric::system!(
    /// A PBV system: up to 128 ports a switch.
    Directory, NoJoin<Directory>, WireBlock, WithTraffic<Node>, 2
);

/// Where a switch's engine joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnginePort {
    /// A port of its own.
    Own,
    /// In the wire of the node with this number at its switch.
    Node(usize),
    /// In the wire of the inter-switch link with this number at its switch.
    Link(usize),
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchSpec {
    /// Device ID.
    pub device: u16,
    /// Device IDs of its nodes.
    pub nodes: Vec<u16>,
    /// Where its engine joins.
    pub engine_port: EnginePort,
}

/// A system before it is built.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Switches.
    pub switches: Vec<SwitchSpec>,
    /// Links between switches, by their numbers.
    pub links: Vec<(usize, usize)>,
    /// Latency and width of links between switches.
    pub link: LinkParams,
    /// Of links to nodes.
    pub local: LinkParams,
    /// Latency of the half link between switch and engine.
    pub inner: u16,
    /// Pipeline stages of switches.
    pub stages: u8,
    /// Flits of input buffers; `None`: the credit round trip.
    pub buffer: Option<u16>,
    /// Collective engines.
    pub ce: CeCfg,
    /// Flits of frames that wait in an engine.
    pub inbox: usize,
    /// Messages that wait to leave an engine.
    pub output: u32,
    /// Link monitors check every event.
    pub monitors: bool,
    /// Events are kept.
    pub log: bool,
}

/// Device ID of the idle end points behind engines' own ports: nobody's.
const IDLE: u16 = super::packet::NO_DEVICE;

impl Spec {
    /// A system with the defaults.
    pub fn new(switches: Vec<SwitchSpec>, links: Vec<(usize, usize)>) -> Spec {
        let one = LinkParams { latency: 1, cycles_per_flit: 1 };
        Spec {
            switches,
            links,
            link: one,
            local: one,
            inner: 1,
            stages: 1,
            buffer: None,
            ce: CeCfg::default(),
            inbox: EngineCfg::of(0).inbox,
            output: EngineCfg::of(0).output,
            monitors: true,
            log: true,
        }
    }

    /// Switches with device IDs 0x0000, 0x0010, … of this many nodes each (`stride` apart), linked as the list says.
    pub fn regular(switches: usize, nodes: usize, stride: u16, links: Vec<(usize, usize)>) -> Spec {
        let switch = |k: usize| {
            let device = k as u16 * stride;
            let nodes = (1..=nodes as u16).map(|n| device + n).collect();
            SwitchSpec { device, nodes, engine_port: EnginePort::Own }
        };
        Spec::new((0..switches).map(switch).collect(), links)
    }

    /// FIG. 7: switches 0x0000, 0x0010, 0x0020 with three nodes each; the second and third hang on the first.
    pub fn figure_7() -> Spec {
        Spec::regular(3, 3, 0x10, vec![(0, 1), (0, 2)])
    }

    /// FIG. 3: two boards of two switches with two nodes each. Devices: 306 is 0x0000 with nodes 316 = 0x0001 and
    /// 318 = 0x0002; 308 is 0x0010, 330 is 0x0020, 332 is 0x0030. Links within the boards and across.
    pub fn figure_3() -> Spec {
        Spec::regular(4, 2, 0x10, vec![(0, 1), (2, 3), (0, 2), (1, 3)])
    }

    /// A fully connected system (one-dimensional flattened butterfly): Table 1 is `butterfly(32, 32)`.
    pub fn butterfly(switches: usize, nodes: usize) -> Spec {
        let links = (0..switches).flat_map(|a| (a + 1..switches).map(move |b| (a, b))).collect();
        Spec::regular(switches, nodes, 0x40, links)
    }

    /// Two boards, each fully connected, with a link from every switch to its counterpart (paragraph 149:
    /// `two_boards(16, 32)`).
    pub fn two_boards(switches: usize, nodes: usize) -> Spec {
        let mut links: Vec<(usize, usize)> = Vec::new();
        for board in 0..2 {
            for a in 0..switches {
                links.extend((a + 1..switches).map(|b| (board * switches + a, board * switches + b)));
            }
        }
        links.extend((0..switches).map(|a| (a, switches + a)));
        Spec::regular(2 * switches, nodes, 0x40, links)
    }

    /// A tree of switches of this many levels below the top, each with `fan` switches below it.
    pub fn tree(levels: u32, fan: usize, nodes: usize) -> Spec {
        let (mut links, mut level, mut count) = (Vec::new(), vec![0], 1);
        for _ in 0..levels {
            let mut next = Vec::new();
            for parent in level {
                for _ in 0..fan {
                    links.push((parent, count));
                    next.push(count);
                    count += 1;
                }
            }
            level = next;
        }
        Spec::regular(count, nodes, 0x40, links)
    }

    /// Links between switches with their ports.
    pub fn ported_links(&self) -> Vec<(u32, u16, u32, u16)> {
        let mut used = vec![0u16; self.switches.len()];
        let mut port = |switch: usize| {
            used[switch] += 1;
            used[switch] - 1
        };
        self.links.iter().map(|&(a, b)| (a as u32, port(a), b as u32, port(b))).collect()
    }

    /// The route tables.
    pub fn directory(&self) -> Directory {
        let links = self.ported_links();
        let mut directory = Directory::new(self.switches.len(), &links);
        for (number, switch) in self.switches.iter().enumerate() {
            let number = number as u32;
            let isl = links.iter().filter(|link| link.0 == number || link.2 == number).count() as u16;
            directory.add_switch(switch.device, number);
            for (k, &node) in switch.nodes.iter().enumerate() {
                directory.add_end(node, number, isl + k as u16);
            }
            directory.add_engine(
                number,
                match switch.engine_port {
                    EnginePort::Own => isl + switch.nodes.len() as u16,
                    EnginePort::Node(k) => isl + k as u16,
                    EnginePort::Link(k) => k as u16,
                },
            );
        }
        directory
    }

    /// Builds the system; `nodes` says what the nodes do, and those it does not name do nothing.
    ///
    /// # Panics
    /// If `nodes` names a device that is no node, or the specification is none (a port without a link).
    pub fn build(&self, nodes: Vec<Node>) -> System {
        let links = self.ported_links();
        let directory = self.directory();
        let directory_cut = directory.cut;
        let mut plan = Plan {
            vcs: Vcs { set: 0, unicast: FRAMES + 1 },
            nodes: Vec::new(),
            links: Vec::new(),
            levels: vec!["local".into(), "inter-switch".into()],
        };
        let mut isl = vec![0u16; self.switches.len()];
        for &(a, _, b, _) in &links {
            isl[a as usize] += 1;
            isl[b as usize] += 1;
        }
        for (number, switch) in self.switches.iter().enumerate() {
            let name = format!("sw{:04x}", switch.device);
            let own = u16::from(switch.engine_port == EnginePort::Own);
            let ports = isl[number] + switch.nodes.len() as u16 + own;
            let path = format!("{name}.switch");
            plan.nodes.push(PlanNode { kind: NodeKind::Switch, ports, engine: false, name, path });
        }
        let mut given: BTreeMap<u16, Node> = nodes.into_iter().map(|node| (node.device(), node)).collect();
        let mut ends = Vec::new();
        for (number, switch) in self.switches.iter().enumerate() {
            for (k, &device) in switch.nodes.iter().enumerate() {
                let (name, path) = (format!("node{device:04x}"), format!("sw{:04x}.node{device:04x}", switch.device));
                push_end(&mut plan, (number as u32, isl[number] + k as u16), self.local, name, path);
                ends.push(given.remove(&device).unwrap_or_else(|| Node::new(device)));
            }
        }
        assert!(given.is_empty(), "no node has device ID {:#06x}", given.keys().next().copied().unwrap_or(0));
        for &(a, a_port, b, b_port) in &links {
            plan.links.push(PlanLink {
                a: (a, a_port),
                b: (b, b_port),
                latency: self.link.latency,
                cycles_per_flit: self.link.cycles_per_flit,
                level: 1,
            });
        }
        let (ce, inbox, output) = (self.ce, self.inbox, self.output);
        let engines =
            self.switches.iter().map(|switch| EngineCfg { inbox, output, ce, ..EngineCfg::of(switch.device) });
        let engines = engines.collect();
        let (side_port, side_port_cycles, owners) = (Tables::default(), BTreeMap::new(), BTreeMap::new());
        let ground =
            SystemPlan { plan, directory, engines, ends, faults: Vec::new(), side_port, side_port_cycles, owners };
        let pipeline = Pipeline::new(self.stages);
        let cut = directory_cut;
        let depths = |link: &PlanLink, _: u8| self.buffer.unwrap_or_else(|| credit_loop(link, pipeline, cut) as u16);
        let switch =
            SwitchCfg { pipeline, policy: Policy::RoundRobin, monitors: self.monitors, router: RouterCfg::default() };
        let placed = ground.place((self.inner, self.local), self.log, false);
        placed.build(&WireCfg { switch, depths: &depths, threads: 1 }, |ends| {
            ends.into_iter().map(WithTraffic::from).collect()
        })
    }
}

/// Cycles from granting a flit to being able to spend its credit again: the head of a frame waits in its queue for the flit with
/// the address, and so do all behind it. With less, frames that follow each other leave gaps.
pub fn credit_loop(link: &PlanLink, pipeline: Pipeline, cut: FlitSize) -> u64 {
    let address = u64::from(route_flits(cut) - 1) * u64::from(link.cycles_per_flit);
    credit_round_trip(link.latency, link.cycles_per_flit, pipeline.post(), pipeline.front()) + address
}

fn push_end(plan: &mut Plan, at: (u32, u16), local: LinkParams, name: String, path: String) {
    let node = plan.nodes.len() as u32;
    plan.nodes.push(PlanNode { kind: NodeKind::End, ports: 1, engine: false, name, path });
    let LinkParams { latency, cycles_per_flit } = local;
    plan.links.push(PlanLink { a: (node, 0), b: at, latency, cycles_per_flit, level: 0 });
}

/// The plan of a system before engines are put into the wires.
pub struct SystemPlan {
    /// Switches, end points and links.
    pub plan: Plan,
    /// Devices, routes, and the ports of engines.
    pub directory: Directory,
    /// Engines, in the order in which the directory has their ports.
    pub engines: Vec<EngineCfg>,
    /// End points, as the plan has them.
    pub ends: Vec<Node>,
    /// Links that misbehave: switch, port and what sits there, beyond an engine if there is one.
    pub faults: Vec<((u32, u16), FaultyLink)>,
    /// Tables that engines get out of band.
    pub side_port: Tables,
    /// Who owns tables and contexts, written out of band too. Engines that are missing here belong to the first device
    /// that writes them.
    pub owners: BTreeMap<EngineId, Owners>,
    /// When the last bit of each is there; those that are not named have theirs before the run.
    pub side_port_cycles: BTreeMap<EngineId, Cycle>,
}

/// Parameters of wires and switches.
pub struct WireCfg<'a> {
    /// Switches.
    pub switch: SwitchCfg,
    /// Input buffers by link and channel.
    pub depths: &'a (dyn Fn(&PlanLink, u8) -> u16 + Sync),
    /// Threads that the system is divided between; 0 and 1: it is whole.
    pub threads: usize,
}

impl SystemPlan {
    /// Puts engines and faults into the wires, with half links of latency `inner` between switch and engine. An engine on a port
    /// without a link gets an idle end point behind it, on a link as those to end points (`local`) are; these come after all other
    /// end points.
    ///
    /// # Panics
    /// If the plan is unsound, or an engine's port does not exist.
    pub fn place(self, (inner, local): (u16, LinkParams), log: bool, record: bool) -> PlacedSystem {
        let SystemPlan { mut plan, directory, engines, mut ends, faults, side_port, side_port_cycles, mut owners } =
            self;
        let switches = plan.count(NodeKind::Switch);
        let base = |plan: &Plan, switch: u32| {
            let path = &plan.nodes[switch as usize].path;
            path.strip_suffix(".switch").unwrap_or(path).to_owned()
        };
        let mut bumps = Vec::new();
        for (number, cfg) in engines.into_iter().enumerate() {
            let (switch, port) = directory.engine_place(number as u32);
            let k = (cfg.base - ENGINE_BASE) / ENGINE_SPAN;
            let mut suffix = if k == 0 { String::new() } else { k.to_string() };
            if cfg.part > 0 {
                suffix = format!("{suffix}_part{}", cfg.part);
            }
            let (home, name) = (base(&plan, switch), plan.nodes[switch as usize].name.clone());
            if !plan.links.iter().any(|link| link.a == (switch, port) || link.b == (switch, port)) {
                let (end, path) = (format!("{name}.idle{suffix}"), format!("{home}.idle{suffix}"));
                push_end(&mut plan, (switch, port), local, end, path);
                ends.push(Node::new(IDLE));
            }
            // Further parts of a larger engine are behind the part that others address.
            let (at, side) = if cfg.part > 0 { plan.outermost(switch, port) } else { (switch, port) };
            let bump = plan.insert_bump(at, side, inner, &format!("{name}.engine{suffix}"));
            plan.nodes[switches + bump].path = format!("{home}.engine{suffix}");
            let mut engine = Engine::new(EngineCfg { cut: directory.cut, ..cfg }, number as u32);
            engine.log.on = log;
            let engine_id = (cfg.device, k as u8);
            if let Some(owners) = owners.remove(&engine_id) {
                engine.own(owners);
            }
            if let Some(table) = side_port.engines.get(&engine_id) {
                let there = side_port_cycles.get(&engine_id).copied().unwrap_or(0);
                engine.side_port(there, table.clone());
            }
            if record {
                engine.keep_record();
            }
            bumps.push(WireBlock::Engine(Box::new(engine)));
        }
        let own: BTreeSet<(u32, u16)> = (0..bumps.len() as u32).map(|engine| directory.engine_place(engine)).collect();
        for ((switch, port), link) in faults {
            let (home, name) = (base(&plan, switch), plan.nodes[switch as usize].name.clone());
            // The wire is beyond the switch's own engine, and before that of another switch.
            let (node, side) = if own.contains(&(switch, port)) { plan.beyond(switch, port) } else { (switch, port) };
            let what = if link.is_plain() { "link" } else { "fault" };
            let bump = plan.insert_bump(node, side, 1, &format!("{name}.P{port}.{what}"));
            plan.nodes[switches + bump].path = format!("{home}.P{port}.{what}");
            if link.replays() {
                // The bump models the wire and both its ends, which are one register each from their nodes.
                let bump = (switches + bump) as u32;
                let outer = plan.links.iter_mut().find(|link| link.a == (bump, 1)).expect("a bump has two sides");
                outer.latency = 1;
            }
            bumps.push(WireBlock::Fault(Box::new(link)));
        }
        debug_assert_eq!(plan.fault(), None);
        for end in &mut ends {
            end.log.on = log;
        }
        PlacedSystem { plan, directory, bumps, ends }
    }
}

/// A planned system with its blocks.
pub struct PlacedSystem {
    /// Nodes and links, engines and faults among them.
    pub plan: Plan,
    /// Devices and routes.
    pub directory: Directory,
    /// What is in the wires, as the plan has them.
    pub bumps: Vec<WireBlock>,
    /// End points, as the plan has them.
    pub ends: Vec<Node>,
}

impl PlacedSystem {
    /// Builds the system; `beside` puts traffic beside the nodes.
    ///
    /// # Panics
    /// If the plan is unsound.
    pub fn build(self, wires: &WireCfg<'_>, beside: impl FnOnce(Vec<Node>) -> Vec<WithTraffic<Node>>) -> System {
        let PlacedSystem { plan, directory, bumps, ends } = self;
        let unicast = plan.vcs.unicast;
        let blocks = Blocks { joins: Vec::new(), no_join: NoJoin::default(), bumps, ends: beside(ends) };
        let names = (0..unicast).map(|vc| format!("p2p{vc}")).collect();
        let parts = Parts::by_threads(wires.threads);
        system(parts, plan, directory, blocks, wires.switch, wires.depths, names)
    }
}

/// A block in a wire.
#[derive(Clone, Debug)]
pub enum WireBlock {
    /// A packet engine.
    Engine(Box<Engine>),
    /// A link that misbehaves.
    Fault(Box<FaultyLink>),
}

state!(
    enum WireBlock {
        Engine,
        Fault,
    }
);

impl WireBlock {
    /// The engine, if it is one.
    pub fn engine(&self) -> Option<&Engine> {
        match self {
            WireBlock::Engine(engine) => Some(engine),
            WireBlock::Fault(_) => None,
        }
    }

    /// Whether something of a context waits here for a time that will come: a watchdog, a frame that a fault delays.
    pub fn expects(&self, cc_id: u16, now: Cycle) -> bool {
        match self {
            WireBlock::Engine(engine) => engine.ce().expects(cc_id, now),
            WireBlock::Fault(link) => link.holds(now),
        }
    }

    /// The link that misbehaves, if it is one.
    pub fn fault(&self) -> Option<&FaultyLink> {
        match self {
            WireBlock::Engine(_) => None,
            WireBlock::Fault(link) => Some(link),
        }
    }
}

impl Block for WireBlock {
    type Tables = Directory;

    fn tick(&mut self, io: &mut Io<'_>, directory: &Directory) -> Wake {
        match self {
            WireBlock::Engine(engine) => engine.tick(io, directory),
            WireBlock::Fault(link) => link.tick(io, &super::fault::Frames { cut: directory.cut }),
        }
    }

    fn open(&self) -> Option<String> {
        match self {
            WireBlock::Engine(engine) => engine.open(),
            WireBlock::Fault(link) => link.open(),
        }
    }

    fn probe(&self, scope: &mut Scope<'_>) {
        match self {
            WireBlock::Engine(engine) => engine.probe(scope),
            WireBlock::Fault(link) => link.probe(scope),
        }
    }

    const STAGES: &'static [&'static str] = &["ce.tree"];

    fn watch(&mut self, watched: bool, directory: &Directory) {
        if let WireBlock::Engine(engine) = self {
            engine.watch(watched, directory);
        }
    }

    fn stages_moved(&self) -> bool {
        self.engine().is_some_and(|engine| engine.ce().stages_moved())
    }

    fn probe_stages(&self, scope: &mut Scope<'_>) {
        if let WireBlock::Engine(engine) = self {
            engine.probe_stages(scope);
        }
    }
}

/// Clocks a system until nothing will ever happen again; returns the cycle after the last one in which something did.
///
/// # Errors
/// A breach of a rule, or that it still moves at `limit`.
pub fn run(system: &mut System, limit: Cycle) -> Result<Cycle, String> {
    while system.now() < limit {
        let step = system.step_before(limit);
        if let Some(fault) = system.fault() {
            return Err(fault.to_owned());
        }
        match step {
            Step::Ran => {}
            Step::Quiet => return Ok(system.alive_until()),
            Step::End => break,
        }
    }
    Err(format!("still moving in cycle {limit}: {:?}", system.autopsy()))
}

/// The node with this device ID.
///
/// # Panics
/// If there is none.
pub fn node(system: &System, device: u16) -> &Node {
    system.ends().iter().find(|end| end.device() == device).expect("a node of this system")
}

/// The engine of the switch with this device ID.
///
/// # Panics
/// If there is none.
pub fn engine(system: &System, device: u16) -> &Engine {
    engines(system).find(|engine| engine.cfg().device == device).expect("a switch of this system")
}

/// All engines.
pub fn engines<S: View + ?Sized>(system: &S) -> impl Iterator<Item = &Engine> {
    system.bumps().flatten().filter_map(WireBlock::engine)
}

/// All events, by cycle; of one cycle those of engines first, then those of nodes, each in the order of the system.
pub fn events<S: View + ?Sized>(system: &S) -> Vec<Event> {
    let engines = engines(system).flat_map(|engine| engine.log.events());
    let nodes = system.ends().flat_map(|node| node.log.events());
    let mut all: Vec<Event> = engines.chain(nodes).copied().collect();
    all.sort_by_key(|event| event.cycle);
    all
}
