//! The arenas of a system: the input queues of every port of every node, and the flits and credits under way. Nodes and
//! the sending sides of ports have files of their own (`node`, `ports`), and so have the entries of queues and links
//! (`queue`), their movement (`flow`), and the view that a block has of its ports (`io`).
//!
//! ```text
//!   node n ──┬─ port p ──┬─ vc v:  input queue ◀── Arrival ◀── link ◀── peer      q = (port_base(n)+p) << vc_shift | v
//!            │           └─ vc v:  credits + owner ──▶ link ──▶ peer              the same index, output side
//!            └─ words of queue bits: who is occupied, who waits for a channel, who holds one
//! ```
//!
//! All state lives in flat arrays indexed by (node, port, channel), because a system may have millions of idle
//! switches: an idle input queue is 16 bytes and holds no buffer. All queued flits are in one pool, as linked lists, so
//! memory grows with the number of live flits and not with the number of buffers. The last freed entry is used next, so
//! a small system runs in the first-level cache. A hop touches three cache lines of a switch: the node's record, the
//! queues of a port, and the sending side of a port.
//!
//! Timing (requirements K-CLK-1, P-SW-6): a flit sent in cycle t on a link of latency L is committed to the far queue
//! at the start of t + L + 1; the channel delivers it in cycle t + L. A credit takes as long on its way back. From the
//! send to the cycle in which the returned credit can be spent again, a switch that takes the flit at once needs
//! [`credit_round_trip`] cycles.

use flow::{Delays, FreeList, PartBoundary, SerializingPort, channel_mask};
use queue::{append, shuffle_apart};

use super::arena::Arena;
use super::awake::{Awake, NodeAlarms};
use super::node::{Flags, NodeInfo, Nodes, number};
use super::partition::Partition;
use super::ports::{Link, NONE, Output, Ports, channel, channel_mut};
use super::portset::each;
use super::span::Span;
use super::{Flit, FlitSize, NodeKind, Plan, PortSet, monitor};
use watershed_kernel::prefetch::prefetch;
use watershed_kernel::{Cycle, Wake, Wheel};
use watershed_state::state;

mod flow;
mod io;
mod queue;

pub(crate) use flow::{ExtraWords, Flow};
pub use io::{Channels, FramePart, Io};
#[cfg(test)]
pub(crate) use queue::Destination;
pub use queue::Phase;
pub(crate) use queue::{Arrival, CreditReturn, Crossing, Input, NOTED, RETRY_ROUTE, Slot, State};

/// Cycles from granting a flit to being able to spend its credit again, when the receiver takes it at once.
///
/// | part | cycles |
/// |---|---|
/// | stages of the sender after switch allocation: `post` of a switch, 0 of a bump or an end point | `post` |
/// | the link, and the edge at its far end | `latency + cycles_per_flit` |
/// | stages of the receiver before switch allocation: `front` of a switch, 0 of a bump or an end point | `front` |
/// | the credit's way back | `latency + 1` |
///
/// See [`Pipeline`](super::Pipeline) for `post` and `front`. A buffer of this depth sustains one flit a cycle (on a
/// link that takes one); with depth d below it the rate is d / round trip, exactly. Point-to-point channels: exact for
/// packets of one flit while the rate is below that of their pipeline. (A queue of a switch starts a packet every 1 +
/// `front` cycles, because its steps begin when the tail before has left.) Body flits pass no front stages, so longer
/// packets reach a higher rate. A [`RouterCfg::credit_delay`](super::RouterCfg::credit_delay) adds to it.
pub fn credit_round_trip(latency: u16, cycles_per_flit: u16, post: u16, front: u16) -> u64 {
    2 * u64::from(latency) + 1 + u64::from(cycles_per_flit) + u64::from(post) + u64::from(front)
}

/// Nodes or events of a cycle from which on their registers are not in a near cache when their turn comes, so that memory is
/// asked ahead of time.
pub(super) const FAR_AWAY: usize = 1024;

/// Events for which memory is asked together, and how far ahead of them.
const TOGETHER: usize = 4;
const AHEAD: usize = 12;

/// Without observers of flits and credits.
pub(super) const UNOBSERVED: u8 = 0;
/// With link monitors.
pub(super) const CHECKED: u8 = 1;
/// A bit: the system is divided into parts, and links may lead into others.
pub(super) const DIVIDED: u8 = 2;
/// Nobody, in a part; and link monitors in one.
const UNOBSERVED_PART: u8 = UNOBSERVED | DIVIDED;
const CHECKED_PART: u8 = CHECKED | DIVIDED;
/// The observers there are: link monitors, the journal, waves, links that are busy for several cycles, other parts.
pub(super) const WATCHED: u8 = 7;

// Who is watched is looked at in every way there is; and code for parts is not the code for all.
const _: () = assert!(WATCHED & CHECKED_PART == CHECKED_PART && WATCHED > CHECKED_PART);

/// Buffer depths: one function of the link and the channel, given when the arenas are made.
pub type Depths<'a> = &'a (dyn Fn(&super::PlanLink, u8) -> u16 + Sync);

/// Events of a cycle for waveforms; present only while they are recorded.
#[derive(Clone, Debug)]
pub(super) struct WaveCapture {
    /// Ports of which something is recorded.
    pub traced: Vec<bool>,
    /// Output channels whose credits or owner changed since the last sample; may repeat.
    pub channels: Vec<u32>,
    /// Ports that sent in this cycle, and those that did in the last one.
    pub sent: Vec<u32>,
    pub sent_before: Vec<u32>,
    /// The flit each port sent last, and when.
    pub last: Vec<(Cycle, Flit)>,
    /// Its words behind the first.
    pub more: Vec<Box<[u64]>>,
}

state!(WaveCapture { saved: channels, sent, sent_before, last, more; built: traced });

/// The arenas; see the module's text.
#[derive(Clone, Debug)]
pub struct Wires {
    pub(super) nodes: Nodes,
    pub(super) inputs: Arena<Input>,
    /// The sending sides.
    pub(super) ports: Ports,
    pub(super) flow: Flow,
    /// The bits of the first channel of every port in a word of queue bits.
    pub(super) first_bits: u64,
    /// The bits of point-to-point queues in a word of queue bits.
    pub(super) unicast_bits: u64,
    pub(super) alarms: NodeAlarms,
    pub(super) wake: Awake,
    /// Set-routed and point-to-point flits that blocks other than switches took or sent: the pulse that tells work
    /// from going round in circles.
    pub(super) served: [u64; 2],
    /// Completions that end points reported: the driver's pulse.
    pub(super) completions: u64,
    /// The cycle of the last one.
    pub(super) completed: Cycle,
    /// The first breach of a rule that only shows while running.
    pub(super) fault: Option<String>,
}

state!(Wires {
    saved: nodes, inputs, ports, flow, alarms, wake, served, completions, completed, fault;
    built: first_bits, unicast_bits
});

/// What switches and blocks are, in the order of the plan.
fn node_infos(plan: &Plan, cfg: &super::SwitchCfg, vc_shift: u32) -> Vec<NodeInfo> {
    let mut nodes: Vec<NodeInfo> = Vec::with_capacity(plan.nodes.len());
    for node in &plan.nodes {
        let words = (u32::from(node.ports) << vc_shift).div_ceil(64);
        let heeds = node.kind != NodeKind::Switch;
        let xbar_inputs = node.ports * u16::from(cfg.router.input_speedup);
        let one_word = words == 1 && !cfg.pipeline.is_slow() && !cfg.router.speculative && xbar_inputs <= 64;
        let plain = one_word && !node.engine && plan.vcs.set == 0 && node.kind == NodeKind::Switch;
        let mut flags = Flags::default();
        flags.set_engine(node.engine);
        flags.set_one_word(one_word);
        flags.set_plain(plain);
        flags.set_heeds(heeds);
        nodes.push(NodeInfo::new(node.ports, flags));
    }
    nodes
}

/// Wires the ports of some parts, a range of all, to the far ends of their links.
fn connect(
    plan: &Plan,
    depths: Depths<'_>,
    cfg: &super::SwitchCfg,
    (nodes, homes, range): (&[NodeInfo], &[std::ops::Range<u32>], std::ops::Range<u32>),
    parts: &mut [Wires],
) {
    for link in &plan.links {
        for (here, there) in [(link.a, link.b), (link.b, link.a)] {
            let port = |(node, port): (u32, u16)| nodes[node as usize].port_base + u32::from(port);
            let (at, to_port) = (port(here), port(there));
            if !range.contains(&at) {
                continue;
            }
            let wires = &mut parts[homes.partition_point(|home| home.end <= at)];
            // A switch takes its time with a credit, other blocks do not.
            let at_switch = plan.nodes[there.0 as usize].kind == NodeKind::Switch;
            let processing = if at_switch { cfg.router.credit_delay } else { 0 };
            let ahead = u32::from(link.latency) + u32::from(link.cycles_per_flit);
            let back = u32::from(link.latency) + 1 + u32::from(processing);
            let side = wires.ports.port_mut(at);
            side[0].link = Link { to_port, to_node: there.0, ahead, back };
            for vc in 0..plan.vcs.total() {
                let depth = depths(link, vc);
                let sent = monitor::first_number((to_port as usize) << wires.flow.vc_shift | usize::from(vc));
                *channel_mut(side, vc) = Output { credits: depth, depth, sent, ..Output::default() };
                side[0].vc_masks.credit |= u32::from(depth > 0) << vc;
            }
            if let Some(busy) = wires.flow.busy.get_mut(at as usize) {
                busy.cycles_per_flit = link.cycles_per_flit;
            }
        }
    }
}

impl Wires {
    /// The arenas of each part of a system whose flits carry so much, made by this many threads.
    pub(super) fn new(
        plan: &Plan,
        depths: Depths<'_>,
        cfg: &super::SwitchCfg,
        partition: &Partition,
        (threads, cut): (usize, FlitSize),
    ) -> Vec<Wires> {
        let (front, post) = (cfg.pipeline.front(), cfg.pipeline.post());
        if let Some(fault) = plan.fault() {
            panic!("unsound plan: {fault}");
        }
        assert!(plan.vcs.unicast <= queue::MOST_UNICAST, "{} point-to-point channels", plan.vcs.unicast);
        let vc_shift = u32::from(plan.vcs.total()).next_power_of_two().trailing_zeros();
        let mut nodes = node_infos(plan, cfg, vc_shift);
        let firsts = number(&mut nodes, partition, vc_shift);
        let homes: Vec<_> = firsts.windows(2).map(|pair| pair[0].0..pair[1].0).collect();
        // The longest ways of a flit and of a credit.
        let ahead = plan.links.iter().map(|link| u64::from(link.latency) + u64::from(link.cycles_per_flit)).max();
        let back = plan.links.iter().map(|link| u64::from(link.latency) + 1).max();
        let (ahead, back) =
            (ahead.unwrap_or(1) + u64::from(post), back.unwrap_or(1) + u64::from(cfg.router.credit_delay));
        let narrow = plan.links.iter().any(|link| link.cycles_per_flit > 1);
        let unicast = (1u64 << plan.vcs.unicast) - 1;
        let switches = plan.count(NodeKind::Switch) as u32;
        // Of known length, so that memory is asked for once: a list that grows is copied, and touches twice the pages.
        let inputs = |home: &std::ops::Range<u32>| {
            let queues = (home.start as usize) << vc_shift..(home.end as usize) << vc_shift;
            queues.map(|queue| Input { arrived: monitor::first_number(queue), ..Input::IDLE }).collect()
        };
        let part = |(part, home): (usize, &std::ops::Range<u32>)| {
            let (from, ports) = (home.start as usize, home.len());
            let span = Span::new(partition, part);
            let flow = Flow {
                now: 0,
                vcs: plan.vcs,
                vc_shift,
                pool: Vec::new(),
                more: ExtraWords::new(cut.more()),
                places: FreeList { free: NONE, live: 0 },
                arrivals: Wheel::new(ahead),
                returns: Wheel::new(back),
                busy: Arena::new(
                    from,
                    vec![SerializingPort { until: 0, cycles_per_flit: 1 }; if narrow { ports } else { 0 }],
                ),
                monitored: cfg.monitors,
                capture: None,
                journal: None,
                moves: 0,
                delays: Delays { front, post, credit: cfg.router.credit_delay },
                observers: WATCHED,
                asks_again: false,
                drains: cfg.router.wait_for_tail_credit,
                first_switchless_node: switches,
                boundary: PartBoundary { home: home.clone(), divided: partition.len() > 1, crossings: Vec::new() },
            };
            Wires {
                nodes: Nodes::new(&nodes, partition, part, (firsts[part].1, firsts[part + 1].1), vc_shift),
                inputs: Arena::new(from << vc_shift, inputs(home)),
                ports: Ports::new(from, ports, vc_shift, cfg.monitors),
                flow,
                first_bits: channel_mask(vc_shift),
                unicast_bits: channel_mask(vc_shift).wrapping_mul(unicast << plan.vcs.set),
                alarms: NodeAlarms::new(span.clone()),
                wake: Awake::new(span),
                served: [0; 2],
                completions: 0,
                completed: 0,
                fault: None,
            }
        };
        // A stretch of the parts with the links that leave them.
        let make = |range: std::ops::Range<usize>| -> Vec<Wires> {
            let homes = &homes[range.clone()];
            let (from, to) = (homes[0].start, homes[homes.len() - 1].end);
            let mut parts: Vec<Wires> = range.clone().zip(homes).map(part).collect();
            connect(plan, depths, cfg, (&nodes, homes, from..to), &mut parts);
            parts
        };
        let parts = partition.len();
        let stretches: Vec<_> = (0..threads).map(|t| t * parts / threads..(t + 1) * parts / threads).collect();
        if threads < 2 || parts < threads {
            return make(0..parts);
        }
        std::thread::scope(|scope| {
            let work = stretches.into_iter().map(|range| scope.spawn(|| make(range)));
            let work: Vec<_> = work.collect();
            let join = |work: std::thread::ScopedJoinHandle<'_, Vec<Wires>>| {
                work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            work.into_iter().flat_map(join).collect()
        })
    }

    /// The system-wide number of a node's port.
    #[inline]
    pub(super) fn port(&self, node: u32, port: u16) -> u32 {
        self.nodes[node as usize].port_base + u32::from(port)
    }

    /// The number of a queue, which is also that of the output virtual channel of the same port.
    #[inline]
    pub(super) fn queue(&self, port: u32, vc: u8) -> usize {
        (port as usize) << self.flow.vc_shift | usize::from(vc)
    }

    /// The input ports of a node that have something queued on channel `vc`.
    #[inline]
    pub(super) fn occupied<const W: usize>(&self, node: u32, vc: u8) -> PortSet<W> {
        let mut set = PortSet::EMPTY;
        // Every 2^shift-th bit of the occupancy words belongs to this channel.
        let shift = self.flow.vc_shift;
        let per_word = 64u32 >> shift;
        let stride = self.first_bits << vc;
        for (w, word) in self.nodes.masks(node).iter().enumerate() {
            let mut bits = word.occupied & stride;
            while bits != 0 {
                set.insert((w as u32 * per_word + (bits.trailing_zeros() >> shift)) as u16);
                bits &= bits - 1;
            }
        }
        set
    }

    /// Lets the packet with owner number `owner` hold an output channel; 0 frees it.
    #[inline(always)]
    pub(super) fn hold(&mut self, port: u32, vc: u8, owner: u16) {
        self.flow.hold::<WATCHED>(self.ports.port_mut(port), port, vc, owner);
    }

    /// Whether a packet may start on a channel of a block's port: there is a credit, and if channels are kept until the
    /// tail's credit is back, all of them are.
    #[inline]
    fn may_start(&self, port: u32, vc: u8) -> bool {
        let Output { credits, depth, .. } = *channel(self.ports.port(port), vc);
        credits > 0 && (self.flow.vcs.is_set(vc) || !self.flow.drains || credits == depth)
    }

    /// Sets the occupancy bit of a queue.
    #[inline(always)]
    fn occupy(&mut self, node: u32, q: usize) {
        let (word, bit) = self.nodes.occupancy(node, q as u32);
        *word |= bit;
    }

    /// Appends what a switch's own engine made to its input queue.
    #[inline]
    pub(super) fn push(&mut self, node: u32, port: u32, (flit, more): (Flit, &[u64]), ready: Cycle) {
        let (q, entry) = (self.queue(port, flit.tag.vc()), self.flow.store_with(flit, more.iter().copied()));
        self.flow.pool[entry as usize].ready = ready;
        self.flow.note(q, entry, super::FlitEvent::Entered { ready });
        append(&mut self.inputs[q], &mut self.flow.pool, entry);
        self.occupy(node, q);
    }

    /// The flit at the head of a queue, and whether it may be served in this cycle (or else from when on).
    #[inline]
    pub(super) fn head(&self, q: usize) -> Option<(Flit, Result<(), Cycle>)> {
        let channel = &self.inputs[q];
        if channel.len == 0 {
            return None;
        }
        let slot = &self.flow.pool[channel.head as usize];
        Some((slot.flit, if slot.ready <= self.flow.now { Ok(()) } else { Err(slot.ready) }))
    }

    /// The words behind the first of the flit at the head of a queue; none if there is no flit.
    pub(super) fn words_behind(&self, q: usize) -> std::slice::Iter<'_, u64> {
        let channel = &self.inputs[q];
        if channel.len == 0 { [].iter() } else { self.flow.more.of(channel.head).iter() }
    }

    /// For how many cycles the flit at the head of a queue could have left; 0 if there is none.
    pub(super) fn head_waited(&self, q: usize) -> u64 {
        let channel = &self.inputs[q];
        let ready = (channel.len > 0).then(|| self.flow.pool[channel.head as usize].ready);
        ready.map_or(0, |ready| self.flow.now.saturating_sub(ready))
    }

    /// Takes the flit at the head of a queue out and sends the credit back. Returns the flit and how many cycles it
    /// stood at the head although it was ready.
    #[inline]
    pub(super) fn pop(&mut self, node: u32, port: u32, vc: u8) -> (Flit, u64) {
        let (entry, waited) = self.unlink(node, port, vc);
        self.flow.more.take(entry);
        (self.flow.discard(entry), waited)
    }

    /// The same, but the flit stays in the pool, where it is the caller's.
    #[inline(always)]
    pub(super) fn unlink(&mut self, node: u32, port: u32, vc: u8) -> (u32, u64) {
        let q = self.queue(port, vc);
        let (occupied, bit) = self.nodes.occupancy(node, q as u32);
        let (channel, link) = (&mut self.inputs[q], self.ports.link(port));
        let vc = u32::from(vc);
        let (entry, waited, _) = match self.flow.observers {
            UNOBSERVED => self.flow.unlink::<UNOBSERVED>(channel, vc, link, occupied, bit),
            CHECKED => self.flow.unlink::<CHECKED>(channel, vc, link, occupied, bit),
            UNOBSERVED_PART => self.flow.unlink::<UNOBSERVED_PART>(channel, vc, link, occupied, bit),
            CHECKED_PART => self.flow.unlink::<CHECKED_PART>(channel, vc, link, occupied, bit),
            _ => {
                let left = self.flow.unlink::<WATCHED>(channel, vc, link, occupied, bit);
                self.flow.note(q, left.0, super::FlitEvent::Left);
                left
            }
        };
        (entry, waited)
    }

    /// Whether a port's link can take a flit in this cycle.
    #[inline]
    pub(super) fn is_free(&self, port: u32) -> Result<(), Cycle> {
        self.flow.is_free(port)
    }

    /// Sends a flit that stands in the pool over `port` on channel `vc`: spends the credit and enters it into the link.
    ///
    /// # Panics
    /// If there is no credit: the allocator must check for one first.
    #[inline(always)]
    pub(super) fn forward(&mut self, port: u32, vc: u8, entry: u32, pipeline: u16, waited: u64) {
        let side = self.ports.stretch_mut(port, 1);
        let traced = self.flow.capture.as_ref().is_some_and(|capture| capture.traced[port as usize]);
        match if traced { WATCHED } else { self.flow.observers } {
            UNOBSERVED => self.flow.send::<UNOBSERVED, false>(side, (port, vc), entry, pipeline, waited),
            CHECKED => self.flow.send::<CHECKED, false>(side, (port, vc), entry, pipeline, waited),
            UNOBSERVED_PART => self.flow.send::<UNOBSERVED_PART, false>(side, (port, vc), entry, pipeline, waited),
            CHECKED_PART => self.flow.send::<CHECKED_PART, false>(side, (port, vc), entry, pipeline, waited),
            _ => self.flow.send::<WATCHED, false>(side, (port, vc), entry, pipeline, waited),
        };
    }

    /// The start of a cycle: commits what the channels deliver, wakes the receiving nodes, and puts the awake nodes
    /// into `list`, ascending.
    pub(super) fn commit(&mut self, list: &mut Vec<u32>, shuffle: Option<&mut watershed_kernel::Rng>) {
        let now = self.flow.now;
        let mut arrivals = self.flow.arrivals.take(now);
        let mut returns = self.flow.returns.take(now);
        if let Some(rng) = shuffle {
            shuffle_apart(&mut arrivals, |arrival| arrival.queue, rng);
            shuffle_apart(&mut returns, |back| back.queue, rng);
        }
        self.flow.observers = self.flow.present_observers();
        match self.flow.observers {
            UNOBSERVED => self.deliver::<UNOBSERVED>(&arrivals, &returns),
            CHECKED => self.deliver::<CHECKED>(&arrivals, &returns),
            UNOBSERVED_PART => self.deliver::<UNOBSERVED_PART>(&arrivals, &returns),
            CHECKED_PART => self.deliver::<CHECKED_PART>(&arrivals, &returns),
            _ => self.deliver::<WATCHED>(&arrivals, &returns),
        }
        self.flow.arrivals.recycle(now, arrivals);
        self.flow.returns.recycle(now, returns);
        while let Some(node) = self.alarms.pop_due(now) {
            self.wake.insert(node);
        }
        self.wake.drain_into(list);
    }

    /// Prefetches what the next three switches will read. Of the last of them it fetches the record, of the second the
    /// queues with packets and the ports these came in by, of the next one the flits in these queues.
    #[inline(always)]
    pub(super) fn prefetch_nodes(&self, [far, near, next]: [Option<u32>; 3]) {
        let shift = self.flow.vc_shift;
        if let Some(node) = far {
            prefetch(&self.nodes[node as usize]);
        }
        if let Some(info) = near.map(|node| &self.nodes[node as usize]).filter(|info| info.flags.plain()) {
            let first = (info.port_base as usize) << shift;
            for local in each(info.occupied()) {
                prefetch(&self.inputs[first + local]);
                prefetch(self.ports.link(info.port_base + (local >> shift) as u32));
            }
        }
        if let Some(info) = next.map(|node| &self.nodes[node as usize]).filter(|info| info.flags.plain()) {
            let first = (info.port_base as usize) << shift;
            for local in each(info.occupied()) {
                prefetch(&self.flow.pool[self.inputs[first + local].head as usize]);
            }
        }
    }

    /// Flits enter their queues, credits their counters, and those they reach wake.
    fn deliver<const OBS: u8>(&mut self, arrivals: &[Arrival], returns: &[CreditReturn]) {
        let shift = self.flow.vc_shift;
        // Only parts of a divided system begin elsewhere.
        let divided = OBS & DIVIDED != 0;
        let first = if divided { self.inputs.range().start } else { 0 };
        // Many registers that no near cache holds: memory is asked for those of the events that follow, for some events at a time.
        let many = arrivals.len() + returns.len() >= FAR_AWAY && !divided;
        let together = |events: usize| if many { TOGETHER } else { events.max(1) };
        for (k, some) in (0..).step_by(TOGETHER).zip(arrivals.chunks(together(arrivals.len()))) {
            for soon in arrivals.iter().skip(k + AHEAD).take(if many { TOGETHER } else { 0 }) {
                prefetch(&self.inputs[soon.queue as usize]);
                prefetch(self.nodes.at(soon.to.node() as usize));
            }
            for &Arrival { queue, to, entry } in some {
                let q = queue as usize;
                if OBS == WATCHED {
                    let ready = self.flow.pool[entry as usize].ready;
                    self.flow.note(q, entry, super::FlitEvent::Entered { ready });
                }
                let entered = &mut self.inputs.items_mut()[q - first];
                append(entered, &mut self.flow.pool, entry);
                if OBS & CHECKED != 0 && (OBS != WATCHED || self.flow.monitored) {
                    monitor::flit_arrived(q, entered, to.number());
                }
                let place = if divided { self.nodes.place(to.node()) } else { to.node() as usize };
                let (word, bit) = self.nodes.occupancy_at(place, queue);
                *word |= bit;
                self.wake.insert_at(place);
            }
        }
        for (k, some) in (0..).step_by(TOGETHER).zip(returns.chunks(together(returns.len()))) {
            for soon in returns.iter().skip(k + AHEAD).take(if many { TOGETHER } else { 0 }) {
                prefetch(self.ports.link(soon.queue >> shift));
            }
            for back in some {
                let out = self.ports.credit(back.queue as usize);
                if OBS & CHECKED != 0 && (OBS != WATCHED || self.flow.monitored) {
                    monitor::credit_arrived(back.queue as usize, out, back.to.number());
                }
                let place = if divided { self.nodes.place(back.to.node()) } else { back.to.node() as usize };
                let flags = self.nodes.at(place).flags;
                if flags.heeds() {
                    self.wake.insert_at(place);
                }
                if flags.traced()
                    && let Some(capture) = &mut self.flow.capture
                    && capture.traced[(back.queue >> shift) as usize]
                {
                    capture.channels.push(back.queue);
                }
            }
        }
    }

    /// The next cycle in which anything happens, if nobody is awake.
    pub(super) fn next_event(&self) -> Option<Cycle> {
        let now = self.flow.now;
        let next = [self.flow.arrivals.next(now), self.flow.returns.next(now), self.alarms.next(now)];
        next.into_iter().flatten().min()
    }

    /// Schedules the next evaluation of a node.
    #[inline(always)]
    pub(super) fn schedule(&mut self, node: u32, wake: Wake) {
        match wake {
            Wake::OnInput => self.alarms.cancel(node),
            // It answers anew in the next cycle.
            Wake::Next => self.wake.insert(node),
            Wake::At(cycle) => self.book_at(node, cycle),
        }
    }

    /// Books a node's wish to be woken in a cycle.
    fn book_at(&mut self, node: u32, cycle: Cycle) {
        if cycle <= self.flow.now + 1 {
            self.wake.insert(node);
        } else {
            self.alarms.set(self.flow.now, cycle, node);
        }
    }

    /// Records the first breach of a rule.
    pub(super) fn fail(&mut self, text: impl FnOnce() -> String) {
        if self.fault.is_none() {
            self.fault = Some(text());
        }
    }

    /// The present cycle.
    pub fn now(&self) -> Cycle {
        self.flow.now
    }

    /// Flits that stand in queues or are under way.
    pub fn live_flits(&self) -> usize {
        self.flow.places.live
    }
}
