//! The arenas of a system: the input queues of every port of every node, and what is under way. Nodes and the sending
//! sides of ports have files of their own (`node`, `ports`).
//!
//! ```text
//!   node n ──┬─ port p ──┬─ vc v:  input queue ◀── Arrival ◀── link ◀── peer      q = (port_base(n)+p) << vc_shift | v
//!            │           └─ vc v:  credits + owner ──▶ link ──▶ peer              the same index, output side
//!            └─ words of queue bits: who is occupied, who waits for a channel, who holds one
//! ```
//!
//! All state lives in flat arrays indexed by (node, port, channel), because a system may have millions of idle
//! switches: an idle input queue is 16 bytes and holds no buffer. Flits that are queued anywhere stand in one pool as
//! linked lists; memory follows the number of live flits, not the number of buffers, and the pool's last freed entry
//! is the next one used, so a small system runs in the first-level cache. What a hop touches of a switch is a line of the
//! cache each: the node's record, the queues of a port, the sending side of a port.
//!
//! Timing (requirements K-CLK-1, P-SW-6): what a block sends in cycle t on a link of latency L is committed to the
//! far queue at the start of t + L + 1 (cycle t + L is the cycle in which the channel delivers). A credit travels the
//! same way back. From the send to the cycle in which the returned credit can be spent again, a switch that takes the
//! flit at once needs [`credit_round_trip`] cycles.

use super::arena::Arena;
use super::awake::{Awake, NodeAlarms, Span};
use super::division::Division;
use super::node::{Flags, NodeInfo, Nodes, number};
use super::ports::{Carries, DRAINING, Link, NONE, Output, Port, Ports, channel, channel_mut};
use super::unicast::each;
use super::{Flit, MAX_NODES, NodeKind, Plan, PortSet, Vcs, monitor};
use std::collections::{BTreeMap, VecDeque};
use watershed_kernel::ahead::ask;
use watershed_kernel::{Cycle, Wake, Wheel};

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
/// packets of one flit while the rate is below that of their pipeline (a queue of a switch starts a packet every
/// 1 + `front` cycles, because its steps begin when the tail before has left); body flits pass no front stages, so
/// longer packets do better than this. A [`RouterCfg::credit_delay`](super::RouterCfg::credit_delay) adds to it.
pub fn credit_round_trip(latency: u16, cycles_per_flit: u16, post: u16, front: u16) -> u64 {
    2 * u64::from(latency) + 1 + u64::from(cycles_per_flit) + u64::from(post) + u64::from(front)
}

/// What the packet at the head of an input queue is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// No packet, or its head has not been looked at.
    Idle,
    /// Its output port is known.
    Routed,
    /// It holds an output virtual channel.
    Active,
    /// A multicast of several flits: independent copies are under way.
    Fork,
}

/// The phase of a packet, and the output channel it holds in [`Phase::Active`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State(u8);

impl State {
    pub const IDLE: State = State(0);
    pub const ROUTED: State = State((Phase::Routed as u8) << 5);
    pub const FORK: State = State((Phase::Fork as u8) << 5);

    /// Of a packet that holds this output channel.
    #[inline(always)]
    pub fn active(vc: u8) -> State {
        debug_assert!(vc < 32, "channel {vc} does not fit");
        State((Phase::Active as u8) << 5 | vc)
    }

    #[inline]
    pub fn phase(self) -> Phase {
        match self.0 >> 5 {
            0 => Phase::Idle,
            1 => Phase::Routed,
            2 => Phase::Active,
            _ => Phase::Fork,
        }
    }

    /// The output channel, if the packet holds one.
    #[inline(always)]
    pub fn out_vc(self) -> u8 {
        self.0 & 0x1f
    }
}

/// Input side of a virtual channel of a port: a list in the pool and the state of the packet at its head. 16 bytes; what
/// else is known of the packet stands with its head flit ([`Slot`]).
///
/// The two sides of a channel have nothing to do with each other: flits of one link enter the input side, flits that come
/// from other ports leave by the output side. They stand apart, so that who looks at credits looks at nothing else.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    pub head: u32,
    pub tail: u32,
    pub len: u16,
    /// Output port of the packet at the head; in [`Phase::Fork`] the number of its fork record.
    pub out_port: u16,
    /// The output channel that is picked or accepted first, counted over all outputs (separable, iSLIP).
    pub accept_q: u16,
    pub state: State,
    /// For link monitors: the number of the flit that arrives next.
    pub arrived: u8,
}

impl Input {
    pub const IDLE: Input =
        Input { head: NONE, tail: NONE, len: 0, out_port: 0, accept_q: 0, state: State::IDLE, arrived: 0 };
}

/// Nodes or events of a cycle from which on their registers are not in a near cache when their turn comes, so that memory is
/// asked ahead of time.
pub(super) const FAR_AWAY: usize = 1024;

/// Nobody looks at what moves.
pub(super) const UNSEEN: u8 = 0;
/// Link monitors do.
pub(super) const CHECKED: u8 = 1;
/// A bit: the system is divided into parts, and links may lead into others.
pub(super) const DIVIDED: u8 = 2;
/// Nobody, in a part; and link monitors in one.
const UNSEEN_PART: u8 = UNSEEN | DIVIDED;
const CHECKED_PART: u8 = CHECKED | DIVIDED;
/// Whoever there is: link monitors, the journal, waves, links that are busy for several cycles, other parts.
pub(super) const WATCHED: u8 = 7;

// Who is watched is looked at in every way there is; and code for parts is not the code for all.
const _: () = assert!(WATCHED & CHECKED_PART == CHECKED_PART && WATCHED > CHECKED_PART);

/// The bit of [`Slot::allowed`] that says that route computation is asked again.
pub(super) const AGAIN: u32 = 1 << 31;

/// One flit in the pool. 32 bytes, so that none lies across two lines of the cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Slot {
    pub flit: Flit,
    pub next: u32,
    /// Head flits: point-to-point channels that route computation allows, from the first such channel on; bit 31: it is
    /// asked again if none is free.
    pub allowed: u32,
    /// The first cycle in which switch allocation may serve the flit; not before the one after that in which the flit
    /// before it has left its queue.
    pub ready: Cycle,
}

impl Slot {
    fn new(flit: Flit, ready: Cycle) -> Slot {
        Slot { flit, next: NONE, ready, allowed: 0 }
    }
}

/// The node that something reaches, and its number for link monitors: 24 and 8 bits, for as much of these is read and written
/// as of anything that moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whither(u32);

impl Whither {
    #[inline(always)]
    pub fn new(node: u32, number: u8) -> Whither {
        debug_assert!(node < MAX_NODES, "node {node} does not fit");
        Whither(node | u32::from(number) << 24)
    }

    #[inline(always)]
    pub fn node(self) -> u32 {
        self.0 & (MAX_NODES - 1)
    }

    #[inline(always)]
    pub fn number(self) -> u8 {
        (self.0 >> 24) as u8
    }
}

/// A flit that reaches an input queue; it stands in the pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub queue: u32,
    pub to: Whither,
    pub entry: u32,
}

/// A credit that reaches an output virtual channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Return {
    pub queue: u32,
    pub to: Whither,
}

/// Buffer depths: one function of the link and the channel, given when the arenas are made.
pub type Depths<'a> = &'a (dyn Fn(&super::PlanLink, u8) -> u16 + Sync);

/// What waves want to know of a cycle; there only while they are recorded.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// Ports of which something is recorded.
    pub traced: Vec<bool>,
    /// Output channels whose credits or owner changed since the last sample; may repeat.
    pub channels: Vec<u32>,
    /// Ports that sent in this cycle, and those that did in the last one.
    pub sent: Vec<u32>,
    pub sent_before: Vec<u32>,
    /// The flit each port sent last, and when.
    pub last: Vec<(Cycle, Flit)>,
}

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

/// A port whose link may be narrower than a flit.
#[derive(Clone, Copy, Debug)]
struct Busy {
    until: Cycle,
    cycles_per_flit: u16,
}

/// What moves, flits and credits, and the rules it moves by: all of a system that belongs to no port.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub now: Cycle,
    pub vcs: Vcs,
    pub vc_shift: u32,
    pub pool: Vec<Slot>,
    free: u32,
    /// Entries of the pool that are in use.
    live: usize,
    pub arrivals: Wheel<Arrival>,
    pub returns: Wheel<Return>,
    /// Until when a port narrower than a flit is busy; empty if all links take a flit a cycle.
    busy: Arena<Busy>,
    /// Whether link monitors look at what moves.
    pub monitored: bool,
    pub seen: Option<Box<Seen>>,
    /// Flits moved since cycle 0: the watchdog's pulse.
    pub moves: u64,
    /// Cycle the front stages of a switch's pipeline add before switch allocation.
    pub front: u16,
    /// Cycles after switch allocation until the flit is on the link.
    pub post: u16,
    /// How closely single events are looked at everywhere: [`UNSEEN`] or [`CHECKED`], either with [`DIVIDED`], or
    /// [`WATCHED`]; what moves flits is compiled for each. Set at the start of every cycle. Waves look only at what goes
    /// on at the nodes they trace.
    pub(super) look: u8,
    /// Cycles a switch takes to process a credit.
    pub(super) credit_delay: u16,
    /// Whether any route computation has said that it is asked again.
    pub(super) asks_again: bool,
    /// What flits did, if somebody wants to know.
    pub(super) journal: Option<Box<super::Journal>>,
    /// Whether a point-to-point channel stays with its packet until the tail's credit is back.
    drains: bool,
    pub first_switchless_node: u32,
    /// The ports of this part of the system: all, unless it is divided.
    pub(super) home: std::ops::Range<u32>,
    /// Whether there are other parts. A part may have all ports and not all nodes.
    divided: bool,
    /// What goes to other parts, until the end of the cycle.
    pub(super) crossings: Vec<Crossing>,
}

/// What goes from one part of a system into another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Crossing {
    /// A flit that arrives in this cycle.
    Flit(Cycle, Arrival, Flit),
    /// A credit that arrives in this cycle.
    Credit(Cycle, Return),
}

impl Crossing {
    /// The queue or channel it goes to.
    pub fn queue(&self) -> u32 {
        match self {
            Self::Flit(_, arrival, _) => arrival.queue,
            Self::Credit(_, back) => back.queue,
        }
    }

    /// When it arrives.
    pub fn at(&self) -> Cycle {
        let (Self::Flit(at, ..) | Self::Credit(at, _)) = self;
        *at
    }
}

/// Shuffles what reaches different queues in a cycle; what reaches the same one stays in order.
fn shuffle_apart<T: Copy>(items: &mut [T], queue: impl Fn(&T) -> u32, rng: &mut watershed_kernel::Rng) {
    let mut of_queue: BTreeMap<u32, VecDeque<T>> = BTreeMap::new();
    for item in &*items {
        of_queue.entry(queue(item)).or_default().push_back(*item);
    }
    rng.shuffle(items);
    for item in items {
        if let Some(first) = of_queue.get_mut(&queue(item)).and_then(VecDeque::pop_front) {
            *item = first;
        }
    }
}

/// Appends a flit of the pool, which is nobody's successor, to an input queue.
#[inline(always)]
fn append(queue: &mut Input, pool: &mut [Slot], entry: u32) {
    let last = std::mem::replace(&mut queue.tail, entry);
    if queue.len == 0 {
        queue.head = entry;
    } else {
        pool[last as usize].next = entry;
    }
    queue.len += 1;
}

impl Wires {
    /// The arenas of each part of a system, made by so many threads.
    pub(super) fn new(
        plan: &Plan,
        depths: Depths<'_>,
        cfg: &super::SwitchCfg,
        division: &Division,
        threads: usize,
    ) -> Vec<Wires> {
        let (front, post) = (cfg.pipeline.front(), cfg.pipeline.post());
        if let Some(fault) = plan.fault() {
            panic!("unsound plan: {fault}");
        }
        let vc_shift = u32::from(plan.vcs.total()).next_power_of_two().trailing_zeros();
        let mut nodes: Vec<NodeInfo> = Vec::with_capacity(plan.nodes.len());
        for node in &plan.nodes {
            let words = (u32::from(node.ports) << vc_shift).div_ceil(64);
            let heeds = node.kind != NodeKind::Switch;
            let passages = node.ports * u16::from(cfg.router.input_speedup);
            let one_word = words == 1 && !cfg.pipeline.is_slow() && !cfg.router.speculative && passages <= 64;
            let plain = one_word && !node.engine && plan.vcs.set == 0 && node.kind == NodeKind::Switch;
            let mut flags = Flags::default();
            flags.set_engine(node.engine);
            flags.set_one_word(one_word);
            flags.set_plain(plain);
            flags.set_heeds(heeds);
            nodes.push(NodeInfo::new(node.ports, flags));
        }
        let firsts = number(&mut nodes, division, vc_shift);
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
            let span = Span::new(division, part);
            let flow = Flow {
                now: 0,
                vcs: plan.vcs,
                vc_shift,
                pool: Vec::new(),
                free: NONE,
                live: 0,
                arrivals: Wheel::new(ahead),
                returns: Wheel::new(back),
                busy: Arena::new(from, vec![Busy { until: 0, cycles_per_flit: 1 }; if narrow { ports } else { 0 }]),
                monitored: cfg.monitors,
                seen: None,
                journal: None,
                moves: 0,
                front,
                post,
                look: WATCHED,
                credit_delay: cfg.router.credit_delay,
                asks_again: false,
                drains: cfg.router.wait_for_tail_credit,
                first_switchless_node: switches,
                home: home.clone(),
                divided: division.len() > 1,
                crossings: Vec::new(),
            };
            Wires {
                nodes: Nodes::new(&nodes, division, part, (firsts[part].1, firsts[part + 1].1), vc_shift),
                inputs: Arena::new(from << vc_shift, inputs(home)),
                ports: Ports::new(from, ports, vc_shift),
                flow,
                first_bits: channel_mask(vc_shift),
                unicast_bits: channel_mask(vc_shift).wrapping_mul(unicast << plan.vcs.set),
                alarms: NodeAlarms::new(span),
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
            for link in &plan.links {
                for (here, there) in [(link.a, link.b), (link.b, link.a)] {
                    let port = |(node, port): (u32, u16)| nodes[node as usize].port_base + u32::from(port);
                    let (at, to_port) = (port(here), port(there));
                    if !(from..to).contains(&at) {
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
                        let sent = monitor::first_number((to_port as usize) << vc_shift | usize::from(vc));
                        *channel_mut(side, vc) = Output { credits: depth, depth, sent, ..Output::default() };
                        side[0].gate.credit |= u32::from(depth > 0) << vc;
                    }
                    if let Some(busy) = wires.flow.busy.get_mut(at as usize) {
                        busy.cycles_per_flit = link.cycles_per_flit;
                    }
                }
            }
            parts
        };
        let parts = division.len();
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
    pub(super) fn push(&mut self, node: u32, port: u32, flit: Flit, ready: Cycle) {
        let (q, entry) = (self.queue(port, flit.tag.vc()), self.flow.store(flit));
        self.flow.pool[entry as usize].ready = ready;
        self.flow.note(q, entry, super::Moved::Entered { ready });
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

    /// Takes the flit at the head of a queue out and sends the credit back. Returns the flit and how many cycles it
    /// stood at the head although it was ready.
    #[inline]
    pub(super) fn pop(&mut self, node: u32, port: u32, vc: u8) -> (Flit, u64) {
        let (entry, waited) = self.unlink(node, port, vc);
        (self.flow.discard(entry), waited)
    }

    /// The same, but the flit stays in the pool, where it is the caller's.
    #[inline(always)]
    pub(super) fn unlink(&mut self, node: u32, port: u32, vc: u8) -> (u32, u64) {
        let q = self.queue(port, vc);
        let (occupied, bit) = self.nodes.occupancy(node, q as u32);
        let (channel, link) = (&mut self.inputs[q], self.ports.link(port));
        let vc = u32::from(vc);
        match self.flow.look {
            UNSEEN => self.flow.unlink::<UNSEEN>(channel, vc, link, occupied, bit),
            CHECKED => self.flow.unlink::<CHECKED>(channel, vc, link, occupied, bit),
            UNSEEN_PART => self.flow.unlink::<UNSEEN_PART>(channel, vc, link, occupied, bit),
            CHECKED_PART => self.flow.unlink::<CHECKED_PART>(channel, vc, link, occupied, bit),
            _ => {
                let (entry, waited) = self.flow.unlink::<WATCHED>(channel, vc, link, occupied, bit);
                self.flow.note(q, entry, super::Moved::Left);
                (entry, waited)
            }
        }
    }

    /// Whether a port's link can take a flit in this cycle.
    #[inline]
    pub(super) fn is_free(&self, port: u32) -> Result<(), Cycle> {
        self.flow.is_free(port)
    }

    /// Sends a flit that leaves over `port` on channel `vc`: spends the credit and enters it into the link.
    ///
    /// # Panics
    /// If there is no credit: whoever allocates must look at it first.
    #[inline]
    pub(super) fn send(&mut self, port: u32, vc: u8, flit: Flit, pipeline: u16, waited: u64) {
        let entry = self.flow.store(flit);
        self.forward(port, vc, entry, pipeline, waited);
    }

    /// The same with a flit that stands in the pool.
    #[inline(always)]
    pub(super) fn forward(&mut self, port: u32, vc: u8, entry: u32, pipeline: u16, waited: u64) {
        let side = self.ports.stretch_mut(port, 1);
        let traced = self.flow.seen.as_ref().is_some_and(|seen| seen.traced[port as usize]);
        match if traced { WATCHED } else { self.flow.look } {
            UNSEEN => self.flow.send::<UNSEEN, false>(side, (port, vc), entry, pipeline, waited),
            CHECKED => self.flow.send::<CHECKED, false>(side, (port, vc), entry, pipeline, waited),
            UNSEEN_PART => self.flow.send::<UNSEEN_PART, false>(side, (port, vc), entry, pipeline, waited),
            CHECKED_PART => self.flow.send::<CHECKED_PART, false>(side, (port, vc), entry, pipeline, waited),
            _ => self.flow.send::<WATCHED, false>(side, (port, vc), entry, pipeline, waited),
        };
    }

    /// The start of a cycle: commits what the channels deliver, wakes whom it reaches, and puts the awake nodes into
    /// `list`, ascending.
    pub(super) fn commit(&mut self, list: &mut Vec<u32>, shuffle: Option<&mut watershed_kernel::Rng>) {
        let now = self.flow.now;
        let mut arrivals = self.flow.arrivals.take(now);
        let mut returns = self.flow.returns.take(now);
        if let Some(rng) = shuffle {
            shuffle_apart(&mut arrivals, |arrival| arrival.queue, rng);
            shuffle_apart(&mut returns, |back| back.queue, rng);
        }
        self.flow.look = self.flow.looks();
        match self.flow.look {
            UNSEEN => self.deliver::<UNSEEN>(&arrivals, &returns),
            CHECKED => self.deliver::<CHECKED>(&arrivals, &returns),
            UNSEEN_PART => self.deliver::<UNSEEN_PART>(&arrivals, &returns),
            CHECKED_PART => self.deliver::<CHECKED_PART>(&arrivals, &returns),
            _ => self.deliver::<WATCHED>(&arrivals, &returns),
        }
        self.flow.arrivals.recycle(now, arrivals);
        self.flow.returns.recycle(now, returns);
        while let Some(node) = self.alarms.due(now) {
            self.wake.insert(node);
        }
        self.wake.drain_into(list);
    }

    /// Asks memory ahead of time for what the clocks of switches will look at: for the record of the first of three that are to
    /// come, for the queues with packets of the second and the ports these came in by, for the flits that stand in those of the
    /// third, which comes soonest.
    #[inline(always)]
    pub(super) fn ask_ahead(&self, [far, near, next]: [Option<u32>; 3]) {
        let shift = self.flow.vc_shift;
        if let Some(node) = far {
            ask(&self.nodes[node as usize]);
        }
        if let Some(info) = near.map(|node| &self.nodes[node as usize]).filter(|info| info.flags.plain()) {
            let first = (info.port_base as usize) << shift;
            for local in each(info.occupied()) {
                ask(&self.inputs[first + local]);
                ask(self.ports.link(info.port_base + (local >> shift) as u32));
            }
        }
        if let Some(info) = next.map(|node| &self.nodes[node as usize]).filter(|info| info.flags.plain()) {
            let first = (info.port_base as usize) << shift;
            for local in each(info.occupied()) {
                ask(&self.flow.pool[self.inputs[first + local].head as usize]);
            }
        }
    }

    /// Flits enter their queues, credits their counters, and those they reach wake.
    fn deliver<const LOOK: u8>(&mut self, arrivals: &[Arrival], returns: &[Return]) {
        let shift = self.flow.vc_shift;
        // Only parts of a divided system begin elsewhere.
        let divided = LOOK & DIVIDED != 0;
        let first = if divided { self.inputs.range().start } else { 0 };
        // Many registers that no near cache holds: memory is asked for those of the events that follow.
        let many = arrivals.len() + returns.len() >= FAR_AWAY && !divided;
        for (k, &Arrival { queue, to, entry }) in arrivals.iter().enumerate() {
            if many && let Some(soon) = arrivals.get(k + 12) {
                ask(&self.inputs[soon.queue as usize]);
                ask(self.nodes.at(soon.to.node() as usize));
            }
            let q = queue as usize;
            if LOOK == WATCHED {
                let ready = self.flow.pool[entry as usize].ready;
                self.flow.note(q, entry, super::Moved::Entered { ready });
            }
            let entered = &mut self.inputs.items_mut()[q - first];
            append(entered, &mut self.flow.pool, entry);
            if LOOK & CHECKED != 0 && (LOOK != WATCHED || self.flow.monitored) {
                monitor::flit_arrived(q, entered, to.number());
            }
            let place = if divided { self.nodes.place(to.node()) } else { to.node() as usize };
            let (word, bit) = self.nodes.occupancy_at(place, queue);
            *word |= bit;
            self.wake.insert_at(place);
        }
        for (k, back) in returns.iter().enumerate() {
            if many && let Some(soon) = returns.get(k + 12) {
                ask(self.ports.link(soon.queue >> shift));
            }
            let port = back.queue >> shift;
            let out = self.ports.credit(back.queue as usize);
            if LOOK & CHECKED != 0 && (LOOK != WATCHED || self.flow.monitored) {
                monitor::credit_arrived(back.queue as usize, out, back.to.number());
            }
            let place = if divided { self.nodes.place(back.to.node()) } else { back.to.node() as usize };
            let flags = self.nodes.at(place).flags;
            if flags.heeds() {
                self.wake.insert_at(place);
            }
            if flags.traced()
                && let Some(seen) = &mut self.flow.seen
                && seen.traced[port as usize]
            {
                seen.channels.push(back.queue);
            }
        }
    }

    /// The next cycle in which anything happens, if nobody is awake.
    pub(super) fn next_event(&self) -> Option<Cycle> {
        let now = self.flow.now;
        let next = [self.flow.arrivals.next(now), self.flow.returns.next(now), self.alarms.next(now)];
        next.into_iter().flatten().min()
    }

    /// Books a node's answer.
    #[inline(always)]
    pub(super) fn book(&mut self, node: u32, wake: Wake) {
        match wake {
            Wake::OnInput => {}
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
        self.flow.live
    }
}

impl Flow {
    /// Writes down what happened to a flit of the pool at queue or output channel `q`, if somebody wants to know.
    #[inline]
    pub fn note(&mut self, q: usize, entry: u32, what: super::Moved) {
        let channel = (q & ((1 << self.vc_shift) - 1)) as u8;
        if let Some(journal) = &mut self.journal
            && channel < journal.channels
        {
            journal.note(self.now, (q >> self.vc_shift) as u32, &self.pool[entry as usize].flit, what);
        }
    }

    /// Writes down that a flit went into an engine's slot, if somebody wants to know.
    #[inline]
    pub fn note_put(&mut self, port: u32, flit: &Flit, visible: Cycle) {
        if let Some(journal) = &mut self.journal {
            journal.note(self.now, port, flit, super::Moved::Put { visible });
        }
    }

    /// Cycles that a flit which has entered a queue waits before allocation looks at it: only a switch has stages before
    /// that, and only set-routed flits spend them waiting. Point-to-point packets walk through route computation and
    /// channel allocation one by one.
    #[inline]
    fn stay(&self, vc: u8, node: u32) -> u64 {
        if vc < self.vcs.set && node < self.first_switchless_node { u64::from(self.front) } else { 0 }
    }

    /// Takes over what another part sent in this cycle.
    pub fn cross(&mut self, crossing: Crossing) {
        match crossing {
            Crossing::Flit(at, arrival, flit) => {
                let entry = self.store(flit);
                let ready = at + self.stay(flit.tag.vc(), arrival.to.node());
                self.pool[entry as usize].ready = ready;
                self.arrivals.push(self.now, at - self.now, Arrival { entry, ..arrival });
            }
            Crossing::Credit(at, back) => self.returns.push(self.now, at - self.now, back),
        }
    }

    /// Gives back memory that links needed and do not need now.
    pub fn shed(&mut self) {
        self.arrivals.shed();
        self.returns.shed();
        if self.live == 0 {
            (self.pool, self.free) = (Vec::new(), NONE);
        }
    }

    /// For the journal: out of which queue of a switch the flits come that are sent from now on.
    #[inline]
    pub fn comes_from(&mut self, queue: Option<(u32, u8)>) {
        if let Some(journal) = &mut self.journal {
            journal.comes_from = queue;
        }
    }

    /// Puts a flit into the pool.
    #[inline]
    pub fn store(&mut self, flit: Flit) -> u32 {
        let slot = Slot::new(flit, 0);
        self.live += 1;
        if self.free == NONE {
            if self.pool.len() == self.pool.capacity() {
                self.pool.reserve_exact(self.pool.len().max(64));
            }
            self.pool.push(slot);
            return self.pool.len() as u32 - 1;
        }
        let entry = self.free;
        let place = &mut self.pool[entry as usize];
        self.free = place.next;
        *place = slot;
        entry
    }

    /// Takes a flit that stands in no queue out of the pool.
    #[inline]
    pub fn discard(&mut self, entry: u32) -> Flit {
        let slot = &mut self.pool[entry as usize];
        slot.next = self.free;
        self.free = entry;
        self.live -= 1;
        slot.flit
    }

    /// Takes the flit at the head of an input queue out and sends its credit back; the flit stays in the pool, where it
    /// is the caller's. `vc` and `link` are the queue's, `occupied` is the word with its occupancy
    /// bit, `bit` that bit. Returns the entry and how many cycles the flit stood at the head although it was ready.
    #[inline(always)]
    pub fn unlink<const LOOK: u8>(
        &mut self,
        channel: &mut Input,
        vc: u32,
        link: &Link,
        occupied: &mut u64,
        bit: u64,
    ) -> (u32, u64) {
        let now = self.now;
        debug_assert!(channel.len > 0, "pop from an empty queue: look at head() first");
        let entry = channel.head;
        let slot = &self.pool[entry as usize];
        let waited = now.saturating_sub(slot.ready);
        let number = if LOOK & CHECKED == 0 { 0 } else { monitor::credit_sent(channel) };
        channel.head = slot.next;
        channel.len -= 1;
        if channel.len > 0 {
            // The flit behind it comes to the head in the next cycle, and has not waited there before.
            let behind = &mut self.pool[channel.head as usize];
            behind.ready = behind.ready.max(now + 1);
        }
        *occupied &= !(bit * u64::from(channel.len == 0));
        if link.to_port != NONE {
            let upstream = (link.to_port << self.vc_shift) + vc;
            let back = Return { queue: upstream, to: Whither::new(link.to_node, number) };
            let delay = u64::from(link.back);
            if LOOK & DIVIDED == 0 || self.home.contains(&link.to_port) {
                self.returns.push(self.now, delay, back);
            } else {
                self.crossings.push(Crossing::Credit(self.now + delay, back));
            }
        }
        self.moves += 1;
        (entry, waited)
    }

    /// Sends a flit that stands in the pool and in no queue over a link, on channel `vc` of system-wide port `port`, whose
    /// records are `side`. Where packets are `HELD` to a channel, a tail frees it: now, or when its credit is back. Returns
    /// whether it is a tail.
    #[inline(always)]
    pub fn send<const LOOK: u8, const HELD: bool>(
        &mut self,
        (side, carries): (&mut [Port], &mut Carries),
        (port, vc): (u32, u8),
        entry: u32,
        pipeline: u16,
        waited: u64,
    ) -> bool {
        let flit = self.pool[entry as usize].flit.on(vc);
        let leaves = HELD && flit.tag.tail();
        let out = channel_mut(side, vc);
        assert!(out.credits > 0, "a flit was sent without a credit: allocation must check the credit count first");
        out.credits -= 1;
        let spent = out.credits == 0;
        let number = if LOOK & CHECKED != 0 && (LOOK != WATCHED || self.monitored) {
            monitor::flit_sent((port << self.vc_shift | u32::from(vc)) as usize, out, &flit)
        } else {
            0
        };
        if leaves {
            out.owner = if self.drains { DRAINING } else { 0 };
        }
        let side = &mut side[0];
        side.gate.credit &= !(u32::from(spent) << vc);
        side.gate.free |= u32::from(leaves && !self.drains) << vc;
        // What holds channels is point-to-point.
        let set = !HELD && vc < self.vcs.set;
        side.count(port, set, flit.tag.head(), waited, carries);
        let link = &side.link;
        let delay = u64::from(pipeline) + u64::from(link.ahead);
        let ready = self.now + delay + if HELD { 0 } else { self.stay(vc, link.to_node) };
        self.pool[entry as usize] = Slot::new(flit, ready);
        let queue = (link.to_port << self.vc_shift) + u32::from(vc);
        if LOOK == WATCHED {
            self.note_sent((port, vc), entry, flit);
        }
        let arrival = Arrival { queue, to: Whither::new(link.to_node, number), entry };
        if LOOK & DIVIDED == 0 || self.home.contains(&link.to_port) {
            self.arrivals.push(self.now, delay, arrival);
        } else {
            self.discard(entry);
            self.crossings.push(Crossing::Flit(self.now + delay, Arrival { entry: NONE, ..arrival }, flit));
        }
        flit.tag.tail()
    }

    /// What the journal, busy links and waves want to know of a flit that is sent.
    fn note_sent(&mut self, (port, vc): (u32, u8), entry: u32, flit: Flit) {
        let channel = port << self.vc_shift | u32::from(vc);
        self.note(channel as usize, entry, super::Moved::Sent { from: None });
        if let Some(busy) = self.busy.get_mut(port as usize)
            && busy.cycles_per_flit > 1
        {
            busy.until = self.now + u64::from(busy.cycles_per_flit);
        }
        if let Some(seen) = &mut self.seen
            && seen.traced[port as usize]
        {
            seen.channels.push(channel);
            seen.sent.push(port);
            seen.last[port as usize] = (self.now, flit);
        }
    }

    /// Lets the packet with owner number `owner` hold channel `vc` of system-wide port `port`; 0 frees it.
    #[inline(always)]
    pub fn hold<const LOOK: u8>(&mut self, side: &mut [Port], port: u32, vc: u8, owner: u16) {
        channel_mut(side, vc).owner = owner;
        let gate = &mut side[0].gate;
        gate.free = gate.free & !(1 << vc) | u32::from(owner == 0) << vc;
        if LOOK == WATCHED
            && let Some(seen) = &mut self.seen
            && seen.traced[port as usize]
        {
            seen.channels.push(port << self.vc_shift | u32::from(vc));
        }
    }

    /// How closely single events are looked at; see [`Flow::look`].
    fn looks(&self) -> u8 {
        if self.journal.is_some() || self.busy.len() > 0 {
            return WATCHED;
        }
        (if self.monitored { CHECKED } else { UNSEEN }) | if self.divided { DIVIDED } else { 0 }
    }

    /// Whether a port's link can take a flit in this cycle; or else from when on.
    #[inline]
    pub fn is_free(&self, port: u32) -> Result<(), Cycle> {
        match self.busy.get(port as usize) {
            Some(busy) if busy.until > self.now => Err(busy.until),
            _ => Ok(()),
        }
    }
}

/// A word with bit 0 of every group of 2^shift bits set.
#[inline]
fn channel_mask(shift: u32) -> u64 {
    u64::MAX / ((1u64 << (1 << shift)) - 1).max(1)
}

/// What a block between links or at the end of one sees of its ports in a cycle.
///
/// A block reads the heads of its input queues as they were at the start of the cycle, may take each head once, and
/// may send at most one flit a port. What it sends in cycle t is in the far queue at the start of t + latency + 1.
#[derive(Debug)]
pub struct Io<'a> {
    pub(super) wires: &'a mut Wires,
    pub(super) node: u32,
    /// System-wide number of its port 0.
    pub(super) base: u32,
    pub(super) sent: u8,
}

impl Io<'_> {
    /// The system-wide number of a port.
    #[inline]
    fn port(&self, port: u16) -> u32 {
        self.base + u32::from(port)
    }

    /// The present cycle.
    #[inline]
    pub fn now(&self) -> Cycle {
        self.wires.flow.now
    }

    /// The virtual channels.
    #[inline]
    pub fn vcs(&self) -> Vcs {
        self.wires.flow.vcs
    }

    /// The flit at the head of an input queue.
    #[inline]
    pub fn head(&self, port: u16, vc: u8) -> Option<Flit> {
        let q = self.wires.queue(self.port(port), vc);
        self.wires.head(q).map(|(flit, _)| flit)
    }

    /// The flit so many places behind the head of an input queue, if it is there.
    #[inline]
    pub fn behind_head(&self, port: u16, vc: u8, places: u16) -> Option<Flit> {
        let queue = &self.wires.inputs[self.wires.queue(self.port(port), vc)];
        let pool = &self.wires.flow.pool;
        let entry = |at: u32| (0..places).fold(at, |at, _| pool[at as usize].next);
        (queue.len > places).then(|| pool[entry(queue.head) as usize].flit)
    }

    /// How many flits are queued at an input.
    #[inline]
    pub fn queued(&self, port: u16, vc: u8) -> usize {
        usize::from(self.wires.inputs[self.wires.queue(self.port(port), vc)].len)
    }

    /// Takes the flit at the head of an input queue; its credit travels back.
    ///
    /// # Panics
    /// In debug builds, if the queue is empty.
    #[inline]
    pub fn take(&mut self, port: u16, vc: u8) -> Flit {
        let port = self.port(port);
        self.wires.served[usize::from(!self.wires.flow.vcs.is_set(vc))] += 1;
        self.wires.pop(self.node, port, vc).0
    }

    /// Whether a flit can be sent in this cycle: a credit is there, the link is free, and this port has not sent yet.
    #[inline(always)]
    pub fn can_send(&self, port: u16, vc: u8) -> bool {
        let at = self.port(port);
        self.sent >> port & 1 == 0
            && channel(self.wires.ports.port(at), vc).credits > 0
            && self.wires.is_free(at).is_ok()
    }

    /// As [`Io::can_send`], for the head flit of a point-to-point packet: where channels are kept until the tail's credit
    /// is back, a channel must have all its credits.
    #[inline]
    pub fn can_start(&self, port: u16, vc: u8) -> bool {
        self.can_send(port, vc) && self.has_room(port, vc)
    }

    /// The first of `count` channels from channel `first` on, in turn from the `from`-th of them, on which a packet can start now:
    /// [`Io::can_start`] of many channels at once. `from` is below `count`.
    #[inline]
    pub fn channel_to_start(&self, port: u16, (first, count): (u8, u8), from: u8) -> Option<u8> {
        let at = self.port(port);
        if self.sent >> port & 1 == 1 || self.wires.is_free(at).is_err() {
            return None;
        }
        debug_assert!(from < count, "turn {from} of {count} channels");
        let mut turn = from;
        for _ in 0..count {
            if self.wires.may_start(at, first + turn) {
                return Some(first + turn);
            }
            turn = if turn + 1 == count { 0 } else { turn + 1 };
        }
        None
    }

    /// Whether the credits of a channel let a packet start, whatever else its port does in this cycle.
    #[inline]
    pub fn has_room(&self, port: u16, vc: u8) -> bool {
        self.wires.may_start(self.port(port), vc)
    }

    /// The channels of an input port on which something is queued, a bit each.
    #[inline]
    pub fn occupied(&self, port: u16) -> u32 {
        let shift = self.wires.flow.vc_shift;
        let bit = u32::from(port) << shift;
        let word = self.wires.nodes.masks(self.node)[(bit >> 6) as usize].occupied;
        (word >> (bit & 63)) as u32 & (u32::MAX >> (32 - (1 << shift)))
    }

    /// Says whether the block wants to be ticked when a credit comes back (it does until it says otherwise): a block
    /// with nothing to send has nothing to do then.
    #[inline]
    pub fn heed_credits(&mut self, heeds: bool) {
        self.wires.nodes[self.node as usize].flags.set_heeds(heeds);
    }

    /// From when on the link of a port is free again, if it is busy.
    #[inline]
    pub fn busy_until(&self, port: u16) -> Option<Cycle> {
        self.wires.is_free(self.port(port)).err()
    }

    /// Credits of an output channel.
    #[inline]
    pub fn credits(&self, port: u16, vc: u8) -> u16 {
        channel(self.wires.ports.port(self.port(port)), vc).credits
    }

    /// Sends a flit.
    ///
    /// # Panics
    /// If [`Io::can_send`] is false.
    #[inline]
    pub fn send(&mut self, port: u16, vc: u8, flit: Flit) {
        assert!(self.can_send(port, vc), "port {port} cannot send on channel {vc} now: ask can_send() first");
        self.sent |= 1 << port;
        let port = self.port(port);
        self.wires.flow.comes_from(None);
        self.wires.send(port, vc, flit, 0, 0);
        self.wires.served[usize::from(!self.wires.flow.vcs.is_set(vc))] += 1;
        self.wires.flow.moves += 1;
    }

    /// Tells the driver that one unit of work is complete.
    pub fn complete(&mut self) {
        self.wires.completions += 1;
        self.wires.completed = self.wires.flow.now;
    }

    /// Reports a breach of a rule; the run ends with a failed check.
    pub fn fail(&mut self, text: impl FnOnce() -> String) {
        self.wires.fail(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_and_a_number_do_not_touch_each_other() {
        for node in [0, 1, 0x5a_5a5a, MAX_NODES - 1] {
            for number in [0, 1, 0xa5, u8::MAX] {
                let to = Whither::new(node, number);
                assert_eq!((to.node(), to.number()), (node, number));
            }
        }
        assert_eq!((size_of::<Arrival>(), size_of::<Return>()), (12, 8));
    }

    #[test]
    fn a_state_has_its_phase_and_its_channel() {
        let phases = [State::IDLE, State::ROUTED, State::FORK].map(State::phase);
        assert_eq!(phases, [Phase::Idle, Phase::Routed, Phase::Fork]);
        for vc in 0..32 {
            assert_eq!((State::active(vc).phase(), State::active(vc).out_vc()), (Phase::Active, vc));
        }
    }
}
