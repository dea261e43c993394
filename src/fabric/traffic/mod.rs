//! Point-to-point traffic: sources that create packets and sinks that take and check them.
//!
//! ```text
//!              ┌───────────── end point ─────────────┐
//!   trace ────▶│ source ─▶ waiting ─┐                │
//!              │ source ─▶ waiting ─┼─▶ enter ───────┼─▶ link     a flit a cycle, sources in turn
//!              │ source ─▶ waiting ─┘                │
//!              │    ▲ replies, window                │
//!              │    └──────────────────────── sink ◀─┼── link     all that arrives, at once
//!              └─────────────────────────────────────┘
//! ```
//!
//! | file | holds |
//! |---|---|
//! | [`source`](Spec) | processes, packet lengths, targets |
//! | [`with_traffic`](WithTraffic) | an end point of a family with traffic beside it |
//! | [`gap`](Gaps) | geometric gaps in one draw |
//! | [`pattern`](Permutation) | patterns in which every source has one destination |
//! | [`histogram`](Histogram) | latencies counted |
//!
//! **Timing.** A packet created in cycle t waits in an unbounded queue at its source and may enter the network in cycle
//! t, a flit a cycle; a started packet goes on whenever its channel has credit. Its latency counts from creation to the
//! arrival of its tail. Sources of an end point take turns, packets take the point-to-point channels in turn.
//!
//! **Lanes.** Channels can be divided into lanes of equal size: packets of one lane use its channels only, from the
//! source to the sink, and enter independently of those of other lanes. Requests and replies of a closed loop have a
//! lane each, so that neither can ever wait for the other. The first channels can be left to the end point's own block
//! ([`Traffic::leave`]); the lanes divide those behind them.
//!
//! **Numbers.** A packet carries the number of its class in the tag's id, so that sinks count by class. Its own number
//! (`seq`) starts at a random value of the source's own stream. Requests and replies have no room for their sender in
//! the header, so their number is the sender and 12 random bits (*chosen*). A reply's header holds the cycle in which
//! its *request* was created: the latency of a reply is the round trip.
//!
//! **Sinks** take every flit in the cycle of its arrival and check it: packets whole, words as sent, addressed to them.
//! With checks off they only count. Counts are exact for any length of run.
//!
//! **Cost.** An end point is evaluated in cycles in which a packet is created or a flit or credit arrives, and in no
//! other. Packets allocate no memory once the queues have grown to their size.
//!
//! **Limitations.** A header holds 40 bits of the creation cycle: latencies of 2^40 cycles and more are reported modulo
//! 2^40.
//!
//! ```
//! use watershed_fabric::bench::{Bench, NoTables};
//! use watershed_fabric::traffic::{SourceCfg, Target, Traffic, TrafficEnd};
//! use watershed_fabric::{Flit, Vcs};
//!
//! // A packet for end point 1 in cycles 0 and 1; nothing else is ever created.
//! let target = Target::Fixed(1);
//! let source = SourceCfg { rate: 1.0, packet_flits: 1, target, start: 0, stop: 2, class: 0 };
//! let end = TrafficEnd::new(Traffic::new(0, &[source], 1));
//! // A packet of one flit, created in cycle 2, arrives in cycle 9.
//! let packet = Flit::part(0, 0, 0, 0, 1, Flit::header(0, 2));
//! let mut bench = Bench::<NoTables, _, 1>::at_the_end(end, NoTables, Vcs { set: 0, unicast: 1 }, [(9, 0, packet)]);
//! while bench.tick() {}
//! assert_eq!(bench.sent().iter().map(|(cycle, ..)| *cycle).collect::<Vec<_>>(), [0, 1]);
//! let received = bench.block().traffic.received()[0];
//! assert_eq!((received.packets, received.latency_sum), (1, 7));
//! ```

mod gap;
mod histogram;
mod pattern;
mod source;
mod with_traffic;

pub use gap::Gaps;
pub use histogram::Histogram;
pub use pattern::{Needs, Permutation};
pub use source::{Bursts, Hotspots, Lengths, Process, SourceCfg, Spec, Target};
pub use with_traffic::WithTraffic;

use super::{Block, Flit, Io, Shares};
use source::{PlannedPacket, Source, sender};
use watershed_kernel::{Cycle, Rng, Wake};
use watershed_probe::Scope;
use watershed_state::state;

/// A packet that was created and waits to enter, or enters.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
struct QueuedPacket {
    /// What its latency counts from.
    created: Cycle,
    /// What its waiting counts from: the same, but for replies.
    ready: Cycle,
    seq: u64,
    dst: u32,
    flits: u32,
    class: u16,
    lane: u8,
}

/// Counters of a sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct SinkCounts {
    /// Whole packets.
    pub packets: u64,
    /// Flits.
    pub flits: u64,
    /// Sum of packet latencies in cycles.
    pub latency_sum: u64,
    /// Longest packet latency in cycles.
    pub latency_max: u64,
}

/// Counters of the sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct SourceCounts {
    /// Packets.
    pub packets: u64,
    /// Flits.
    pub flits: u64,
}

/// A packet of which something was measured: that it arrived after this many cycles, or waited this many to enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct LatencySample {
    /// The cycle in which it was created.
    pub created: Cycle,
    /// Cycles in the upper bits, class in the lower 12.
    packed: u64,
}

impl LatencySample {
    /// A packet of a class, created in a cycle, and the cycles that were measured.
    #[inline]
    pub fn new(created: Cycle, cycles: u64, class: u16) -> LatencySample {
        LatencySample { created, packed: cycles << 12 | u64::from(class) }
    }

    /// What was measured.
    #[inline]
    pub fn cycles(&self) -> u64 {
        self.packed >> 12
    }

    /// The class of the packet.
    #[inline]
    pub fn class(&self) -> usize {
        (self.packed & 0xfff) as usize
    }
}

/// A packet that is arriving on a channel.
#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
struct ArrivingPacket {
    open: bool,
    created: Cycle,
    seq: u64,
    index: u64,
}

/// A lane at the entrance.
#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
struct Lane {
    /// The packet that is entering the network: its source, its channel, and the index of its next flit.
    entering: Option<(usize, u8, u32)>,
    next_source: usize,
    next_vc: u8,
}

/// The effect of the arrival of a packet of a class.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
enum ArrivalEffect {
    /// This source answers.
    Answer(usize),
    /// This source has room for another request.
    Room(usize, u64),
}

/// The traffic part of an end point: any number of sources that share its port, and a sink.
#[derive(Clone, Debug)]
pub struct Traffic {
    end: u32,
    sources: Vec<Source>,
    /// The earliest cycle in which a source must be looked at.
    due: Cycle,
    /// Packets that wait to enter or are entering.
    pending: usize,
    lanes: Vec<Lane>,
    next_lane: usize,
    /// Point-to-point channels before those of the lanes, which belong to the end point's own block.
    left: u8,
    arriving: Vec<ArrivingPacket>,
    received: Vec<SinkCounts>,
    created: Vec<SourceCounts>,
    effects: Vec<(u16, ArrivalEffect)>,
    sent_flits: u64,
    checked: bool,
    /// Packets that arrived and packets that entered, for measurements; `None` if nothing is measured.
    measured: Option<Box<(Vec<LatencySample>, Vec<LatencySample>)>>,
    /// Cycle from which the sink takes flits; before it, it blocks its port.
    consume_from: Cycle,
}

state!(Traffic {
    saved: due, pending, lanes, next_lane, left, arriving, received, created, effects, sent_flits, measured, consume_from;
    each: sources;
    built: end, checked
});

impl Traffic {
    /// The traffic part of end point `end` with simple sources. `seed` is the run's.
    pub fn new(end: u32, sources: &[SourceCfg], seed: u64) -> Traffic {
        Traffic::with(end, sources.iter().map(Spec::from).collect(), 1, seed)
    }

    /// The traffic part of end point `end`. Channels are divided into `lanes`; `seed` is the run's.
    pub fn with(end: u32, specs: Vec<Spec>, lanes: u8, seed: u64) -> Traffic {
        let stream = |i: usize| 0x7aff_1c00_0000_0000 | u64::from(end) << 16 | i as u64;
        let effects = specs.iter().enumerate().filter_map(|(i, spec)| match spec.process {
            Process::ClosedLoop { think, replies, .. } => Some((replies, ArrivalEffect::Room(i, think))),
            Process::Answers { requests, .. } => Some((requests, ArrivalEffect::Answer(i))),
            _ => None,
        });
        let effects = effects.collect();
        let sources: Vec<Source> =
            specs.into_iter().enumerate().map(|(i, spec)| Source::new(spec, end, Rng::new(seed, stream(i)))).collect();
        Traffic {
            end,
            due: sources.iter().map(|source| source.next).min().unwrap_or(Cycle::MAX),
            sources,
            pending: 0,
            lanes: vec![Lane::default(); usize::from(lanes)],
            next_lane: 0,
            left: 0,
            arriving: Vec::new(),
            received: Vec::new(),
            created: Vec::new(),
            effects,
            sent_flits: 0,
            checked: true,
            measured: None,
            consume_from: 0,
        }
    }

    /// Lets the sink take nothing before `cycle`: a blocked consumer.
    pub fn block_until(&mut self, cycle: Cycle) {
        self.consume_from = cycle;
    }

    /// Leaves the first `channels` point-to-point channels of this port to the end point's own block.
    pub fn leave(&mut self, channels: u8) {
        self.left = channels;
    }

    /// Creates nothing from `now` on; what was created is sent.
    pub fn stop(&mut self, now: Cycle) {
        self.sources.iter_mut().for_each(|source| source.stop(now));
        self.due = self.sources.iter().map(|source| source.next).min().unwrap_or(Cycle::MAX);
    }

    /// Whether the sink checks every flit; it does unless told otherwise.
    pub fn check(&mut self, checked: bool) {
        self.checked = checked;
    }

    /// Writes down every packet that arrives or enters from now on, for [`Traffic::measured`].
    pub fn measure(&mut self) {
        self.measured = Some(Box::default());
    }

    /// Takes what was written down since the last time: packets that arrived, with their latency, and packets that
    /// entered, with the cycles they waited at their source (replies are not among the latter).
    pub fn measured(&mut self, mut arrived: impl FnMut(&LatencySample), mut entered: impl FnMut(&LatencySample)) {
        if let Some(measured) = &mut self.measured {
            measured.0.iter().for_each(&mut arrived);
            measured.1.iter().for_each(&mut entered);
            measured.0.clear();
            measured.1.clear();
        }
    }

    /// Has source `source`, which must be [`Process::Fed`], create a packet in cycle `at`; not before the present cycle
    /// and not before what it was told last.
    pub fn feed(&mut self, source: usize, at: Cycle, dst: u32, flits: u32, class: u16, lane: u8) {
        self.sources[source].plan(PlannedPacket { at, created: at, dst, flits, class, lane });
        self.due = self.due.min(self.sources[source].next);
    }

    /// The number of the source that is fed with packets of this class.
    pub fn fed(&self, class: u16) -> Option<usize> {
        self.sources.iter().position(|source| source.spec.class == class && source.spec.process == Process::Fed)
    }

    /// What the sink counted, by class of traffic.
    pub fn received(&self) -> &[SinkCounts] {
        &self.received
    }

    /// What the sources created, by class of traffic.
    pub fn created(&self) -> &[SourceCounts] {
        &self.created
    }

    /// Requests without a reply, of all sources with a window.
    pub fn outstanding(&self) -> u32 {
        self.sources.iter().map(|source| source.outstanding).sum()
    }

    /// Whether every source has created its last packet and sent it.
    pub fn is_drained(&self) -> bool {
        self.pending == 0 && self.due == Cycle::MAX
    }

    /// Flits that entered the network.
    pub fn sent_flits(&self) -> u64 {
        self.sent_flits
    }

    /// Packets that wait at the source or are entering.
    pub fn waiting(&self) -> usize {
        self.pending
    }

    /// Whether packets wait that a returning credit could let in.
    pub fn wants_credits(&self) -> bool {
        self.pending > 0
    }

    /// One clock on port 0.
    pub fn tick(&mut self, io: &mut Io<'_>) -> Wake {
        let now = io.now();
        let mut wake = self.sink(io);
        if self.due <= now {
            self.create(now);
        }
        if self.pending > 0 {
            self.enter(io);
            if self.pending > 0 && self.has_credit(io) {
                // Blocked by credits only, it is woken by an arriving one.
                wake = wake.or(io.busy_until(0).map_or(Wake::Next, Wake::At));
            }
        }
        if self.due == Cycle::MAX { wake } else { wake.or(Wake::At(self.due)) }
    }

    // ------------------------------------------------------------------------------------------------ sources

    fn create(&mut self, now: Cycle) {
        self.due = Cycle::MAX;
        for source in &mut self.sources {
            let before = source.waiting.len();
            source.create(now, |class, flits| {
                let class = usize::from(class);
                if self.created.len() <= class {
                    self.created.resize(class + 1, SourceCounts::default());
                }
                self.created[class].packets += 1;
                self.created[class].flits += u64::from(flits);
            });
            self.pending += source.waiting.len() - before;
            self.due = self.due.min(source.next);
        }
    }

    // ----------------------------------------------------------------------------------------------- entrance

    /// The channels of a lane.
    #[inline]
    fn channels(&self, lane: usize, io: &Io<'_>) -> (u8, u8) {
        Shares { messages: self.left, lanes: self.lanes.len() as u8 }.lane(io.vcs(), lane as u8)
    }

    /// Whether a packet has begun to enter on a channel and its last flit has not entered.
    pub fn is_entering_on(&self, vc: u8) -> bool {
        self.lanes.iter().any(|lane| lane.entering.is_some_and(|(_, on, _)| on == vc))
    }

    /// Whether anything that waits has a credit.
    #[inline]
    fn has_credit(&self, io: &Io<'_>) -> bool {
        self.lanes.iter().enumerate().any(|(at, lane)| {
            if let Some((_, vc, _)) = lane.entering {
                return io.credits(0, vc) > 0;
            }
            let (first, each) = self.channels(at, io);
            (self.lanes.len() == 1 || self.sources.iter().any(|source| heads_for(source, at)))
                && (first..first + each).any(|vc| io.has_room(0, vc))
        })
    }

    /// Lets at most one flit enter the network.
    #[inline]
    fn enter(&mut self, io: &mut Io<'_>) {
        let lanes = self.lanes.len();
        for i in 0..lanes {
            let lane = if lanes == 1 { 0 } else { (self.next_lane + i) % lanes };
            if self.enter_on(lane, io) {
                self.next_lane = lane + 1;
                return;
            }
        }
    }

    /// Chooses the next packet of a lane and a channel for it.
    fn start(&mut self, at: usize, io: &Io<'_>) -> Option<(usize, u8, u32)> {
        let count = self.sources.len();
        let start = self.lanes[at].next_source;
        let turn = |i: usize| if start + i < count { start + i } else { start + i - count };
        let source = (0..count).map(turn).find(|&s| heads_for(&self.sources[s], at))?;
        let (first, each) = self.channels(at, io);
        let vc = io.channel_to_start(0, (first, each), self.lanes[at].next_vc)?;
        let lane = &mut self.lanes[at];
        lane.next_source = if source + 1 == count { 0 } else { source + 1 };
        lane.next_vc = if vc - first + 1 == each { 0 } else { vc - first + 1 };
        Some((source, vc, 0))
    }

    fn enter_on(&mut self, at: usize, io: &mut Io<'_>) -> bool {
        let (s, vc, index) = match self.lanes[at].entering {
            Some(entering) if io.can_send(0, entering.1) => entering,
            Some(_) => return false,
            None => match self.start(at, io) {
                Some(starting) => starting,
                None => return false,
            },
        };
        let source = &mut self.sources[s];
        let Some(&packet) = source.waiting.front() else { return false };
        let word =
            if index == 0 { Flit::header(packet.dst, packet.created) } else { body_word(packet.seq, u64::from(index)) };
        io.send(0, vc, Flit::part(packet.class, vc, packet.seq, index, packet.flits, word));
        self.sent_flits += 1;
        if index == 0
            && packet.created == packet.ready
            && let Some(measured) = &mut self.measured
        {
            measured.1.push(LatencySample::new(packet.created, io.now() - packet.ready, packet.class));
        }
        if index + 1 == packet.flits {
            source.waiting.pop_front();
            self.pending -= 1;
            self.lanes[at].entering = None;
        } else {
            self.lanes[at].entering = Some((s, vc, index + 1));
        }
        true
    }

    // --------------------------------------------------------------------------------------------------- sink

    /// Takes what arrived and checks it.
    #[inline]
    fn sink(&mut self, io: &mut Io<'_>) -> Wake {
        let vcs = io.vcs();
        let now = io.now();
        if now < self.consume_from {
            let blocked = (vcs.set + self.left..vcs.total()).any(|vc| io.queued(0, vc) > 0);
            return if blocked { Wake::At(self.consume_from) } else { Wake::OnInput };
        }
        let mut more = false;
        let mut queues = io.occupied(0) >> vcs.set >> self.left << self.left;
        while queues != 0 {
            let channel = queues.trailing_zeros() as u8;
            queues &= queues - 1;
            more |= io.queued(0, vcs.set + channel) > 1;
            let flit = io.take(0, vcs.set + channel);
            self.land(flit, channel, io);
        }
        if more { Wake::Next } else { Wake::OnInput }
    }

    /// A flit has arrived on a channel.
    fn land(&mut self, flit: Flit, channel: u8, io: &mut Io<'_>) {
        let (now, end) = (io.now(), self.end);
        let channel = usize::from(channel);
        if self.arriving.len() <= channel {
            self.arriving.resize(channel + 1, ArrivingPacket::default());
        }
        let packet = &mut self.arriving[channel];
        if flit.tag.head() {
            if self.checked && (packet.open || flit.dst() != end) {
                io.fail(|| format!("end point {end}: a head flit for {} in the wrong place", flit.dst()));
            }
            // The header holds 40 bits of the creation cycle; the distance to now is far below that.
            let age = now.wrapping_sub(flit.created()) & ((1 << 40) - 1);
            *packet = ArrivingPacket { open: true, created: now - age, seq: flit.tag.seq(), index: 0 };
        } else if self.checked {
            packet.index += 1;
            if !packet.open || flit.word != body_word(packet.seq, packet.index) || flit.tag.seq() != packet.seq {
                let index = packet.index;
                io.fail(|| format!("end point {end}: flit {index} of packet {} is damaged", flit.tag.seq()));
            }
        }
        let class = usize::from(flit.tag.id());
        if self.received.len() <= class {
            self.received.resize(class + 1, SinkCounts::default());
        }
        let received = &mut self.received[class];
        received.flits += 1;
        if flit.tag.tail() {
            packet.open = false;
            let packet = *packet;
            let latency = now - packet.created;
            received.packets += 1;
            received.latency_sum += latency;
            received.latency_max = received.latency_max.max(latency);
            if let Some(measured) = &mut self.measured {
                measured.0.push(LatencySample::new(packet.created, latency, class as u16));
            }
            if !self.effects.is_empty() {
                self.arrived(class as u16, packet, now);
            }
        }
    }

    /// A packet of a class that may ask for something has arrived whole.
    fn arrived(&mut self, class: u16, packet: ArrivingPacket, now: Cycle) {
        let Some(&(_, effect)) = self.effects.iter().find(|(of, _)| *of == class) else { return };
        let (s, planned) = match effect {
            ArrivalEffect::Answer(s) => {
                let spec = &self.sources[s].spec;
                let Process::Answers { service, .. } = spec.process else { return };
                let (class, lane, dst) = (spec.class, spec.lane, sender(packet.seq));
                (s, PlannedPacket { at: now + service, created: packet.created, dst, flits: 0, class, lane })
            }
            ArrivalEffect::Room(s, think) => {
                self.sources[s].outstanding -= 1;
                let at = now + think;
                (s, PlannedPacket { at, created: at, dst: 0, flits: 0, class: 0, lane: 0 })
            }
        };
        self.sources[s].plan(planned);
        self.due = self.due.min(self.sources[s].next);
    }

    /// Work that is left, in words.
    pub fn open(&self) -> Option<String> {
        let waiting = self.waiting();
        (waiting > 0).then(|| format!("{waiting} packets wait to enter"))
    }

    /// Describes the sources and the sink to a wave.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        scope.scope("traffic", |scope| {
            scope.bits("waiting", 32, self.waiting() as u64);
            scope.bits("sent_flits", 48, self.sent_flits);
            scope.bits("received_flits", 48, self.received.iter().map(|class| class.flits).sum());
            scope.bits("received_packets", 48, self.received.iter().map(|class| class.packets).sum());
        });
    }
}

/// Whether the packet at the head of a source's queue goes by this lane.
#[inline]
fn heads_for(source: &Source, lane: usize) -> bool {
    source.waiting.front().is_some_and(|packet| usize::from(packet.lane) == lane)
}

/// What flit `index` of packet `seq` carries.
fn body_word(seq: u64, index: u64) -> u64 {
    (seq << 16 ^ index).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// An end point that may have traffic.
pub trait MayHaveTraffic {
    /// Its traffic, if it has some.
    fn traffic(&self) -> Option<&Traffic>;

    /// The same, to be changed.
    fn traffic_mut(&mut self) -> Option<&mut Traffic>;
}

/// An end point that only has traffic, over any tables.
#[derive(Clone, Debug)]
pub struct TrafficEnd<T> {
    /// Its sources and sink.
    pub traffic: Traffic,
    tables: std::marker::PhantomData<T>,
}

state!([T] TrafficEnd<T> { saved: traffic; built: tables });

impl<T> TrafficEnd<T> {
    /// An end point around a traffic part.
    pub fn new(traffic: Traffic) -> Self {
        TrafficEnd { traffic, tables: std::marker::PhantomData }
    }
}

impl<T: 'static> Block for TrafficEnd<T> {
    type Tables = T;

    fn tick(&mut self, io: &mut Io<'_>, _: &T) -> Wake {
        let wake = self.traffic.tick(io);
        io.heed_credits(self.traffic.wants_credits());
        wake
    }

    fn open(&self) -> Option<String> {
        self.traffic.open()
    }

    fn probe(&self, scope: &mut Scope<'_>) {
        self.traffic.probe(scope);
    }
}

impl<T> MayHaveTraffic for TrafficEnd<T> {
    fn traffic(&self) -> Option<&Traffic> {
        Some(&self.traffic)
    }

    fn traffic_mut(&mut self) -> Option<&mut Traffic> {
        Some(&mut self.traffic)
    }
}
