//! A whole system: arenas, switches, engines and end points, and the loop that clocks them.
//!
//! A cycle has three parts, in this order:
//!
//! 1. *commit*: flits and credits that the channels deliver enter queues and credit counters, and wake the nodes there;
//! 2. *sample*: waves read the registers that may have changed (`waves`);
//! 3. *tick*: every awake node is evaluated, in any order.
//!
//! With skipping on (the default) cycles in which no node is awake are skipped; with skipping off every node is
//! evaluated in every cycle. The results and the waveform are the same byte for byte, in any order of evaluation
//! (K-CLK-1, K-CLK-2; [`Evaluation`]).

use super::activity::Activity;
use super::arena::{Arena, BlockSlices, Bumps};
use super::class::ClassRegisters;
use super::exchange::{Peers, SyncLevel};
use super::frames::check_buffers;
use super::journal::Journal;
use super::node::{Masks, NodeInfo};
use super::partition::{Partition, Parts};
use super::pipeline::SwitchCfg;
use super::ports::{LinkCount, Port, channel, stride_shift};
use super::shared::Shared;
use super::switch_parts::{Arbiters, Cx, Forks, Scratch};
use super::tables::Tables;
use super::waves::Waves;
use super::wires::{Depths, FAR_AWAY, Input, Io, Wires};
use super::{Block, Flit, Join, NodeKind, Plan, PortSet};
use crate::topology::Shape;
use std::borrow::Cow;
use std::sync::Arc;
use watershed_kernel::{Cycle, OffloadControl, Rng, Wake, WorkerPool};
use watershed_state::{State, state};

/// How a run evaluates its blocks; none of it may change a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// Evaluates every node in every cycle instead of only those that are awake.
    pub no_skip: bool,
    /// Evaluates the nodes of a cycle, and commits what arrives in it, in an order shuffled with this seed.
    pub shuffle: Option<u64>,
}

/// What a call of [`Network::step`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A cycle was simulated.
    Ran,
    /// Nothing is under way, nobody is awake and no alarm is set: nothing will ever happen again.
    Quiet,
    /// The next cycle in which something happens is not before the given end.
    End,
}

/// Traffic and place of one direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkLoad {
    /// Sending node and port, as `core0.P5`.
    pub from: String,
    /// Receiving node and port.
    pub to: String,
    /// Level of the link.
    pub level: u8,
    /// What it carried.
    pub count: LinkCount,
    /// Cycles one flit keeps it busy.
    pub cycles_per_flit: u16,
}

/// A whole system. `T` are the family's tables, `J` the engine behind the internal port, `B` the engine in the wire,
/// `E` the end point, `W` the words of a port set.
///
/// ```
/// use watershed_fabric::arbiter::Policy;
/// use watershed_fabric::routing::Routes;
/// use watershed_fabric::topology::{Common, LinkParams, Mesh};
/// use watershed_fabric::traffic::{SourceCfg, Target, Traffic, TrafficEnd};
/// use watershed_fabric::{Blocks, Network, NoBump, NoJoin, Pipeline, RouterCfg, Step, SwitchCfg, Vcs};
///
/// // One switch of two stages between two end points; the links take one cycle.
/// let link = LinkParams { latency: 1, cycles_per_flit: 1 };
/// let common = Common { vcs: Vcs { set: 0, unicast: 1 }, engine: false, link, local: link };
/// let layout = Mesh { size: vec![1], concentration: 2 }.layout(&common);
/// let routes = Routes { routing: layout.routing.clone(), ends: layout.ends.clone() };
/// // End point 0 creates a packet of one flit for end point 1, in cycle 0.
/// let source = SourceCfg { rate: 1.0, packet_flits: 1, target: Target::Fixed(1), start: 0, stop: 1, class: 0 };
/// let ends = [vec![source], vec![]];
/// let ends = ends.iter().zip(0..).map(|(sources, end)| TrafficEnd::new(Traffic::new(end, sources, 1)));
/// let blocks = Blocks { joins: vec![], no_join: NoJoin::default(), bumps: vec![], ends: ends.collect() };
/// let (pipeline, policy, router) = (Pipeline::new(2), Policy::RoundRobin, RouterCfg::default());
/// let cfg = SwitchCfg { pipeline, policy, monitors: true, router };
/// let mut net: Network<Routes, NoJoin<Routes>, NoBump<Routes>, TrafficEnd<Routes>, 1> =
///     Network::new(layout.plan, routes, blocks, cfg, &|_, _| 8, vec!["p2p".into()]);
///
/// let mut landed = None;
/// while net.step() != Step::Quiet {
///     if net.end(1).traffic.received().first().is_some_and(|received| received.packets == 1) && landed.is_none() {
///         landed = Some(net.now() - 1);
///     }
/// }
/// // Link 1 + 1, switch 2 + link 1, the boundary at the end point.
/// assert_eq!(landed, Some(5));
/// assert!(net.at_rest()); // every credit is back
/// ```
pub struct Network<T, J, B, E, const W: usize> {
    pub(super) plan: Plan,
    /// The whole system, or the first part of one that is divided; recording and the journal need it whole.
    pub(super) first: Part<J, B, E, W>,
    /// The other parts.
    pub(super) others: Vec<Box<Part<J, B, E, W>>>,
    pub(super) cfg: SwitchCfg,
    evaluation: Evaluation,
    order: Option<Rng>,
    /// The family's tables; constant while a cycle runs, see [`Tables::commit`].
    pub tables: Shared<T>,
    pub(super) switches: u32,
    pub(super) all_bumps: u32,
    pub(super) waves: Option<Box<Waves>>,
    pub(super) vc_names: Vec<String>,
    pub(super) activity: Activity,
    pub(super) partition: Partition,
    /// Cycles that a part may be ahead of the others, if it may.
    pub(super) window: Option<Cycle>,
    /// Threads that evaluate parts in windows.
    pub(super) threads: usize,
    /// Knows the names of nodes that have none in the plan.
    shape: Option<Shape>,
    /// Other processes that evaluate parts of it.
    pub(super) peers: Option<Box<Peers>>,
    /// Copies the state that other ranks evaluate into this rank.
    pub(super) sync_others: Option<fn(&mut Self, SyncLevel)>,
    /// Threads that evaluate parts of systems that go in step, once there was enough to do for them.
    pub(super) workers: Option<PartWorkers<T, J, B, E, W>>,
    pub(super) offload: OffloadControl,
}

state!([T: State, J: State, B: State, E: State, const W: usize] Network<T, J, B, E, W> {
    saved: first, order, tables, activity;
    boxed: others;
    built: waves, plan, cfg, evaluation, switches, all_bumps, vc_names, partition, window, threads, shape,
        peers, sync_others, workers, offload
});

/// What one thread evaluates: wires, switches with their engines, end points.
pub(super) struct Part<J, B, E, const W: usize> {
    pub(super) wires: Wires,
    pub(super) arbiters: Arbiters<W>,
    pub(super) forks: Forks,
    scratch: Scratch<W>,
    pub(super) joins: Arena<J>,
    idle_join: J,
    /// Its engines in the wire, in the order of their numbers, and where the first of them stands among its nodes.
    pub(super) bumps: Vec<B>,
    pub(super) first_bump: usize,
    pub(super) ends: Arena<E>,
    pub(super) awake: Vec<u32>,
    /// The next cycle in which something happens here; kept between windows.
    pub(super) due: Cycle,
    /// The cycle after the last one in which something happened here; kept in windows.
    pub(super) alive_until: Cycle,
    /// Nodes that were evaluated since other processes have seen them, if there are some; may repeat.
    pub(super) changed: Option<Vec<u32>>,
}

state!([J: State, B: State, E: State, const W: usize] Part<J, B, E, W> {
    saved: wires, arbiters, forks, joins, ends, awake, due, alive_until;
    each: bumps;
    built: scratch, idle_join, first_bump, changed
});

/// Shared inputs of all parts in one cycle.
pub(super) struct CycleContext<'a, T> {
    pub tables: &'a T,
    pub cfg: SwitchCfg,
    pub switches: u32,
    /// The first end point.
    pub first_end: u32,
}

/// One cycle of one part, as work for a thread.
pub(super) struct PartTask<T, J, B, E, const W: usize> {
    pub part: Box<Part<J, B, E, W>>,
    pub tables: Arc<T>,
    pub cfg: SwitchCfg,
    pub switches: u32,
    pub first_end: u32,
}

/// The threads that do.
pub(super) type PartWorkers<T, J, B, E, const W: usize> = WorkerPool<PartTask<T, J, B, E, W>, Box<Part<J, B, E, W>>>;

/// As many items as are left behind the first `at`.
fn tail<X>(items: &mut Vec<X>, at: usize) -> Vec<X> {
    let mut tail = if at == 0 { std::mem::take(items) } else { items.split_off(at) };
    tail.shrink_to_fit();
    tail
}

/// The blocks of a system that are not switches.
#[derive(Clone, Debug)]
pub struct Blocks<J, B, E> {
    /// An engine for every switch, in switch order; empty if no switch has an internal port.
    pub joins: Vec<J>,
    /// The placeholder for the engine of a switch without one.
    pub no_join: J,
    /// Engines in the wire.
    pub bumps: Vec<B>,
    /// End points.
    pub ends: Vec<E>,
}

impl<T, J, B, E, const W: usize> Network<T, J, B, E, W>
where
    T: Tables<W> + Sync,
    J: Join<Tables = T> + Clone + Send,
    B: Block<Tables = T> + Send,
    E: Block<Tables = T> + Send,
{
    /// Builds the arenas of a plan. `depths` gives the buffer depth of a link and channel, `vc_names` the channels'
    /// names in waves and reports.
    ///
    /// # Panics
    /// If the plan and the blocks do not fit each other, or if a buffer is too short for a multicast frame: ask
    /// [`check_buffers`] first where users choose depths.
    pub fn new(
        plan: Plan,
        tables: T,
        blocks: Blocks<J, B, E>,
        cfg: SwitchCfg,
        depths: Depths<'_>,
        vc_names: Vec<String>,
    ) -> Self {
        Self::in_parts(Parts::default(), plan, tables, blocks, cfg, depths, vc_names)
    }

    /// As [`Network::new`], divided into parts; the results are the same. A system that is divided cannot be recorded.
    ///
    /// # Panics
    /// As [`Network::new`].
    pub fn in_parts(
        parts: Parts,
        plan: Plan,
        tables: T,
        blocks: Blocks<J, B, E>,
        cfg: SwitchCfg,
        depths: Depths<'_>,
        vc_names: Vec<String>,
    ) -> Self {
        if let Err(short) = check_buffers::<T, W>(&plan, &tables, depths) {
            panic!("{short}");
        }
        let partition = Partition::new(&plan, parts);
        let window = parts.windows.then(|| super::windows::length(&plan, &partition));
        let wires = Wires::new(&plan, depths, &cfg, &partition, (parts.threads, tables.cut()));
        let switches = plan.count(NodeKind::Switch);
        let widest = plan.nodes.iter().map(|node| usize::from(node.ports)).max().unwrap_or(1);
        assert_eq!(vc_names.len(), usize::from(plan.vcs.total()), "one name for every channel");
        assert_eq!(blocks.bumps.len(), plan.count(NodeKind::Bump), "one block for every bump of the plan");
        assert_eq!(blocks.ends.len(), plan.count(NodeKind::End), "one block for every end point of the plan");
        assert!(blocks.joins.is_empty() || blocks.joins.len() == switches, "an engine for every switch or for none");
        // Arbiters of point-to-point channels are numbered through the whole system.
        let all = plan.nodes.iter().map(|node| usize::from(node.ports)).sum();
        let ports = if plan.vcs.unicast == 0 { 0 } else { all };
        let (mut joins, mut ends) = (blocks.joins, blocks.ends);
        let all_bumps = blocks.bumps.len() as u32;
        let (mut bumps, threads) = (partition.by_part(blocks.bumps), parts.threads);
        let mut parts = Vec::with_capacity(partition.len());
        // From the last part on, so that each takes the end of what is left.
        for (part, wires) in wires.into_iter().enumerate().rev() {
            let (first_switch, first_end) =
                (partition.switches(part).start as usize, partition.ends(part).start as usize);
            let from = if joins.is_empty() { 0 } else { first_switch };
            parts.push(Part {
                arbiters: Arbiters {
                    classes: ClassRegisters::new(T::CLASSES, ports, wires.flow.vc_shift),
                    ..Arbiters::new(&cfg, partition.switches(part), widest, plan.vcs, ports, wires.flow.vc_shift)
                },
                forks: Forks::default(),
                scratch: Scratch::new(
                    if plan.vcs.unicast == 0 { 0 } else { widest },
                    wires.flow.vc_shift,
                    usize::from(cfg.router.input_speedup),
                ),
                joins: Arena::new(from, tail(&mut joins, from)),
                idle_join: blocks.no_join.clone(),
                bumps: std::mem::take(&mut bumps[part]),
                first_bump: partition.switches(part).len(),
                ends: Arena::new(first_end, tail(&mut ends, first_end)),
                awake: Vec::new(),
                due: 0,
                alive_until: 0,
                changed: None,
                wires,
            });
        }
        let mut network = Network {
            first: parts.pop().expect("a system has at least one part"),
            others: parts.into_iter().rev().map(Box::new).collect(),
            cfg,
            evaluation: Evaluation::default(),
            order: None,
            tables: Shared::new(tables),
            switches: switches as u32,
            all_bumps,
            waves: None,
            vc_names,
            activity: Activity::default(),
            window,
            threads,
            partition,
            shape: None,
            peers: None,
            sync_others: None,
            workers: None,
            offload: OffloadControl::default(),
            plan,
        };
        // Every block but the switches is asked once at the start; switches wait for their first flit.
        for part in 0..network.partition.len() {
            let blocks = network.partition.nodes(part).filter(|node| *node >= switches as u32);
            for node in blocks.collect::<Vec<u32>>() {
                network.part_mut(part).wires.wake.insert(node);
            }
        }
        network
    }

    /// The number of parts it is evaluated in.
    pub fn parts(&self) -> usize {
        1 + self.others.len()
    }

    pub(super) fn each_part(&self) -> impl Iterator<Item = &Part<J, B, E, W>> {
        std::iter::once(&self.first).chain(self.others.iter().map(|part| &**part))
    }

    pub(super) fn each_part_mut(&mut self) -> impl Iterator<Item = &mut Part<J, B, E, W>> {
        std::iter::once(&mut self.first).chain(self.others.iter_mut().map(|part| &mut **part))
    }

    pub(super) fn part(&self, part: usize) -> &Part<J, B, E, W> {
        if part == 0 { &self.first } else { &self.others[part - 1] }
    }

    pub(super) fn part_mut(&mut self, part: usize) -> &mut Part<J, B, E, W> {
        if part == 0 { &mut self.first } else { &mut self.others[part - 1] }
    }

    /// The part with this system-wide port.
    pub(super) fn with_port(&self, port: u32) -> &Part<J, B, E, W> {
        self.part(self.part_with_port(port))
    }

    pub(super) fn part_with_port(&self, port: u32) -> usize {
        self.others.partition_point(|part| part.wires.flow.boundary.home.start <= port)
    }

    /// The engine of a switch.
    pub(super) fn join_of(&self, switch: u32) -> Option<&J> {
        self.part(self.partition.part_of(switch)).joins.get(switch as usize)
    }

    /// Chooses how blocks are evaluated; before the first cycle.
    ///
    /// # Panics
    /// If the system is divided and this is not the default.
    pub fn evaluate(&mut self, how: Evaluation) {
        assert!(self.others.is_empty() || how == Evaluation::default(), "a divided system has one way to be evaluated");
        self.evaluation = how;
        self.order = how.shuffle.map(|seed| Rng::new(seed, 0x0de5));
    }

    /// Lets nodes without a name in the plan have that of a shape: switches, and end points as its cores.
    pub fn name_by(&mut self, shape: Shape) {
        self.shape = Some(shape);
    }

    /// Short name of a node.
    pub fn node_name(&self, node: u32) -> Cow<'_, str> {
        let known = &self.plan.nodes[node as usize];
        match (&self.shape, node.checked_sub(self.switches)) {
            (Some(shape), None) if known.name.is_empty() => shape.switch_name(node).into(),
            (Some(shape), Some(end)) if known.name.is_empty() => {
                format!("{}.memory", shape.switch_name(shape.end_place(end).switch)).into()
            }
            _ => known.name.as_str().into(),
        }
    }

    /// The present cycle: the one the next [`Network::step`] simulates.
    pub fn now(&self) -> Cycle {
        self.first.wires.flow.now
    }

    /// Whether a step is a window of cycles: see [`Parts`].
    pub fn runs_in_windows(&self) -> bool {
        self.window.is_some()
    }

    /// The plan the system was built from.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Gives a node a name in waves: large systems are built without.
    pub fn name_node(&mut self, node: u32, path: String) {
        self.plan.nodes[node as usize].path = path;
    }

    /// The end points.
    pub fn ends(&self) -> BlockSlices<'_, E> {
        self.assert_synced(SyncLevel::Blocks);
        BlockSlices::new(self.each_part().map(|part| &part.ends))
    }

    pub(super) fn end_total(&self) -> usize {
        self.each_part().map(|part| part.ends.len()).sum()
    }

    pub(super) fn end_node(&self, end: usize) -> u32 {
        self.switches + self.all_bumps + end as u32
    }

    /// One end point.
    ///
    /// # Panics
    /// If there is none with this number.
    pub fn end(&self, end: usize) -> &E {
        self.assert_synced(SyncLevel::Blocks);
        let part = self.partition.part_of(self.end_node(end));
        self.part(part).ends.get(end).expect("the system has that many end points")
    }

    /// The engines in the wire.
    pub fn bumps(&self) -> Bumps<'_, B> {
        self.assert_synced(SyncLevel::Blocks);
        Bumps::new(self.each_part().map(|part| &part.bumps[..]), self.partition.places())
    }

    /// The engines behind internal ports.
    pub fn joins(&self) -> BlockSlices<'_, J> {
        self.assert_synced(SyncLevel::Blocks);
        BlockSlices::new(self.each_part().map(|part| &part.joins))
    }

    /// Whether any flit is queued, under way, or in an engine behind an internal port; with `set_only`, only set-routed
    /// ones count. Looks at every node.
    pub fn has_flits(&self, set_only: bool) -> bool {
        let last = if set_only { self.plan.vcs.set } else { self.plan.vcs.total() };
        let here = self.home_parts().any(|part| {
            let flow = &part.wires.flow;
            let mut arrivals = flow.arrivals.iter(flow.now);
            arrivals.any(|(_, arrival)| flow.pool[arrival.entry as usize].flit.tag.vc() < last)
                || part.joins.items().iter().any(|join| !join.is_idle())
                || part
                    .wires
                    .inputs
                    .items()
                    .chunks(1 << flow.vc_shift)
                    .any(|port| port[..usize::from(last)].iter().any(|q| q.len > 0))
        });
        self.gather_from_ranks(here).contains(&true)
    }

    /// Shows every set-routed flit that is on its way to a node or stands in a queue there: the node and the flit.
    pub fn each_set_flit(&self, mut see: impl FnMut(u32, &Flit)) {
        if self.peers.is_some() {
            self.set_flits_of_all().iter().for_each(|(node, flit)| see(*node, flit));
        } else {
            (0..self.parts()).for_each(|part| self.set_flits_of(part, &mut see));
        }
    }

    /// The same of a part.
    pub(super) fn set_flits_of(&self, number: usize, see: &mut dyn FnMut(u32, &Flit)) {
        let (set, part) = (self.plan.vcs.set, self.part(number));
        let flow = &part.wires.flow;
        for (_, arrival) in flow.arrivals.iter(flow.now) {
            let flit = &flow.pool[arrival.entry as usize].flit;
            if flit.tag.vc() < set {
                see(arrival.to.node(), flit);
            }
        }
        for node in self.partition.nodes(number) {
            let info = &part.wires.nodes[node as usize];
            let ports = info.port_base..info.port_base + u32::from(info.ports);
            for queue in ports.flat_map(|port| (0..set).map(move |vc| part.wires.queue(port, vc))) {
                let channel = &part.wires.inputs[queue];
                let mut entry = channel.head;
                for _ in 0..channel.len {
                    let slot = &flow.pool[entry as usize];
                    see(node, &slot.flit);
                    entry = slot.next;
                }
            }
        }
    }

    /// Whether every credit is back where it began and nothing is under way (checked runs; true otherwise).
    pub fn at_rest(&self) -> bool {
        let here = self.home_parts().all(|part| {
            let flow = &part.wires.flow;
            let nothing_moves = flow.arrivals.under_way() + flow.returns.under_way() == 0;
            !flow.monitored || nothing_moves && super::monitor::at_rest(&part.wires.ports)
        });
        !self.gather_from_ranks(here).contains(&false)
    }

    /// Simulates one cycle, or jumps to the next one in which something happens and simulates that.
    pub fn step(&mut self) -> Step {
        self.step_before(Cycle::MAX)
    }

    /// As [`Network::step`], but simulates no cycle from `end` on: a jump over idle cycles ends there.
    pub fn step_before(&mut self, end: Cycle) -> Step {
        if let Some(window) = self.window {
            return self.step_window(window, end);
        }
        if !self.others.is_empty() {
            return self.step_parts(end);
        }
        let recording = self.waves.as_ref().is_some_and(|waves| waves.is_due());
        let mut next = self.first.wires.flow.now;
        if !self.evaluation.no_skip && !recording && self.first.wires.wake.is_empty() {
            match self.first.wires.next_event() {
                Some(cycle) => next = cycle.max(next),
                None => return self.quiet(),
            }
        }
        if next >= end {
            self.first.wires.flow.now = self.first.wires.flow.now.max(end);
            return Step::End;
        }
        self.first.wires.flow.now = next;
        self.first.awake.clear();
        let before = (
            self.first.wires.flow.arrivals.under_way(),
            self.first.wires.flow.returns.under_way(),
            self.first.wires.flow.moves,
        );
        self.first.wires.commit(&mut self.first.awake, self.order.as_mut());
        let any_awake = !self.first.awake.is_empty();
        self.activity.awake_cycles += u64::from(any_awake);
        if self.evaluation.no_skip {
            self.first.awake.clear();
            self.first.awake.extend(0..self.plan.nodes.len() as u32);
        }
        if let Some(rng) = &mut self.order {
            rng.shuffle(&mut self.first.awake);
        }
        self.sample();
        let first_end = self.switches + self.all_bumps;
        let common = CycleContext { tables: &*self.tables, cfg: self.cfg, switches: self.switches, first_end };
        let awake = std::mem::take(&mut self.first.awake);
        self.first.clock(&common, &awake);
        self.first.awake = awake;
        self.tables.commit();
        self.first.wires.flow.now += 1;
        let alive = any_awake || before != (0, 0, self.first.wires.flow.moves) || !self.first.wires.wake.is_empty();
        if alive {
            self.activity.alive_until = self.first.wires.flow.now;
        }
        if self.evaluation.no_skip && !alive && self.first.wires.next_event().is_none() {
            self.quiet()
        } else {
            Step::Ran
        }
    }

    /// However the cycles were walked, with waves or without, a system that fell silent stands at the same one.
    pub(super) fn quiet(&mut self) -> Step {
        let now = self.first.wires.flow.now.max(self.activity.alive_until + 2);
        self.each_part_mut().for_each(|part| part.wires.flow.now = now);
        Step::Quiet
    }

    /// Traffic of every direction of every link, in the order of the plan.
    pub fn link_loads(&self) -> impl Iterator<Item = LinkLoad> + '_ {
        self.link_counts().enumerate().map(|(at, (level, count, cycles_per_flit))| {
            let (from, to) = self.link_ends(at);
            LinkLoad { from, to, level, count, cycles_per_flit }
        })
    }

    /// Level, traffic and cycles a flit of every direction of every link, in the order of the plan: cheap in systems of
    /// any size.
    pub fn link_counts(&self) -> impl Iterator<Item = (u8, LinkCount, u16)> + '_ {
        self.plan.links.iter().flat_map(move |link| {
            [link.a, link.b].map(|(node, port)| {
                let wires = self.wires_of(node);
                (link.level, wires.ports.count(wires.port(node, port)), link.cycles_per_flit)
            })
        })
    }

    /// Names of the sending and the receiving port of one direction of a link, numbered as [`Network::link_counts`] does.
    pub fn link_ends(&self, direction: usize) -> (String, String) {
        let link = &self.plan.links[direction / 2];
        let (from, to) = if direction.is_multiple_of(2) { (link.a, link.b) } else { (link.b, link.a) };
        (self.port_name(from.0, from.1), self.port_name(to.0, to.1))
    }

    fn port_name(&self, node: u32, port: u16) -> String {
        let name = self.node_name(node);
        if self.plan.nodes[node as usize].kind == NodeKind::Switch {
            return format!("{name}.P{}", self.tables.port_number(node, port));
        }
        if self.plan.nodes[node as usize].kind == NodeKind::End { name.into_owned() } else { format!("{name}.P{port}") }
    }

    /// Bytes of state per switch, idle, all arenas together (engines without what they allocate when they work).
    pub fn idle_bytes_per_switch(&self) -> usize {
        let Some(info) = self.first.wires.nodes.iter().find(|node| node.ports > 0) else { return 0 };
        let ports = usize::from(info.ports);
        let queues = ports << self.first.wires.flow.vc_shift;
        let per_port = size_of::<Port>() << stride_shift(self.first.wires.flow.vc_shift);
        // Of the cursors of channel allocation there is a kind or none.
        let Arbiters { va_cursor_q, va_grant_q, .. } = &self.first.arbiters;
        let cursors = if va_cursor_q.is_empty() { 0 } else { ports } + if va_grant_q.is_empty() { 0 } else { queues };
        let words = info.words(self.first.wires.flow.vc_shift);
        let wide = if words > 1 { words } else { 0 };
        let arbiters = ports * (self.first.arbiters.input.bytes_each() + self.first.arbiters.output.bytes_each());
        queues * size_of::<Input>()
            + ports * per_port
            + arbiters
            + cursors * size_of::<u16>()
            + size_of::<NodeInfo>()
            + wide * size_of::<Masks>()
            + if self.first.joins.len() == 0 { 0 } else { size_of::<J>() }
    }
}

impl<T, J, B, E, const W: usize> Network<T, J, B, E, W> {
    /// Keeps a journal of set-routed flits, or of all; before the first cycle.
    ///
    /// # Panics
    /// If the system is divided: the journal would see one part of it.
    pub fn keep_journal(&mut self, all: bool)
    where
        T: Tables<W>,
    {
        let channels = 0..self.plan.vcs.unicast;
        let route_flits = channels.map(|channel| self.tables.route_flits(channel)).max().unwrap_or(1);
        assert!(self.others.is_empty(), "a divided system keeps no journal");
        let (wires, flow) = (&self.first.wires, &self.first.wires.flow);
        let of_port = flow.vcs.total();
        let mut credits = Vec::with_capacity(wires.ports.len() * usize::from(of_port));
        for port in 0..wires.ports.len() as u32 {
            credits.extend((0..of_port).map(|vc| channel(wires.ports.port(port), vc).credits));
        }
        let journal = Journal {
            entries: Vec::new(),
            credits,
            of_port,
            front: flow.delays.front,
            post: flow.delays.post,
            route_flits,
            credit_delay: flow.delays.credit,
            channels: if all { flow.vcs.total() } else { flow.vcs.set },
            comes_from: None,
        };
        self.first.wires.flow.journal = Some(Box::new(journal));
    }

    /// The journal, if one is kept.
    pub fn journal(&self) -> Option<&Journal> {
        self.first.wires.flow.journal.as_deref()
    }
}

impl<J, B, E, const W: usize> Part<J, B, E, W> {
    /// A cycle of a part of a divided system.
    pub(super) fn cycle<T>(&mut self, common: &CycleContext<'_, T>)
    where
        T: Tables<W>,
        J: Join<Tables = T>,
        B: Block<Tables = T>,
        E: Block<Tables = T>,
    {
        let mut awake = std::mem::take(&mut self.awake);
        awake.clear();
        self.wires.commit(&mut awake, None);
        self.clock(common, &awake);
        if let Some(changed) = &mut self.changed {
            changed.extend_from_slice(&awake);
        }
        self.awake = awake;
    }

    /// One clock of each of these nodes.
    #[inline(always)]
    fn clock<T>(&mut self, common: &CycleContext<'_, T>, awake: &[u32])
    where
        T: Tables<W>,
        J: Join<Tables = T>,
        B: Block<Tables = T>,
        E: Block<Tables = T>,
    {
        if awake.len() < FAR_AWAY {
            for &node in awake {
                self.tick(common, node);
            }
            return;
        }
        // Each step needs what the one before it brought, so there are some turns between them; nobody has tuned how many.
        for (k, &node) in awake.iter().enumerate() {
            self.wires.prefetch_nodes([9, 6, 3].map(|ahead| awake.get(k + ahead).copied()));
            self.tick(common, node);
        }
    }

    /// One clock of one node.
    #[inline(always)]
    fn tick<T>(&mut self, common: &CycleContext<'_, T>, node: u32)
    where
        T: Tables<W>,
        J: Join<Tables = T>,
        B: Block<Tables = T>,
        E: Block<Tables = T>,
    {
        let wake = if self.wires.nodes[node as usize].flags.plain() {
            let (wires, tables) = (&mut self.wires, common.tables);
            super::unicast::tick_word(wires, &mut self.arbiters, &mut self.scratch, tables, node, &common.cfg)
        } else if node < common.switches {
            self.tick_switch(common, node)
        } else {
            self.tick_block(common, node)
        };
        self.wires.schedule(node, wake);
    }

    /// The same of a switch that has more than point-to-point channels.
    fn tick_switch<T>(&mut self, common: &CycleContext<'_, T>, node: u32) -> Wake
    where
        T: Tables<W>,
        J: Join<Tables = T>,
        B: Block<Tables = T>,
        E: Block<Tables = T>,
    {
        let info = self.wires.nodes[node as usize];
        let shift = self.wires.flow.vc_shift;
        let join = if info.flags.engine() { &mut self.joins[node as usize] } else { &mut self.idle_join };
        super::switch::tick(Cx {
            wires: &mut self.wires,
            arbiters: &mut self.arbiters,
            forks: &mut self.forks,
            scratch: &mut self.scratch,
            join,
            tables: common.tables,
            node,
            base: info.port_base,
            first_queue: (info.port_base as usize) << shift,
            engine: if info.flags.engine() { info.ports - 1 } else { u16::MAX },
            pipeline: common.cfg.pipeline,
            router: common.cfg.router,
            taken_in: PortSet::EMPTY,
            taken_out: PortSet::EMPTY,
            reserved: PortSet::EMPTY,
            changed: false,
            wake: Wake::OnInput,
        })
    }

    /// The same of an end point, or of a block in the wire.
    #[inline(always)]
    fn tick_block<T>(&mut self, common: &CycleContext<'_, T>, node: u32) -> Wake
    where
        T: Tables<W>,
        J: Join<Tables = T>,
        B: Block<Tables = T>,
        E: Block<Tables = T>,
    {
        let end = node.checked_sub(common.first_end);
        let bump = self.wires.nodes.place(node).wrapping_sub(self.first_bump);
        let mut io = Io::new(&mut self.wires, node, end.is_none());
        match end {
            None => self.bumps[bump].tick(&mut io, common.tables),
            Some(end) => self.ends[end as usize].tick(&mut io, common.tables),
        }
    }
}
