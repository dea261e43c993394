//! Point-to-point traffic: sources that create packets and sinks that take and check them.
//!
//! A source draws, in every cycle of its window, whether it creates a packet (Bernoulli; the mean is `rate` flits a
//! cycle). Created packets wait in an unbounded queue at the source and enter the network a flit a cycle; latency
//! counts from creation to the arrival of the tail. Drawing is by integer comparison and from a stream of the source's
//! own, so neither the order of evaluation nor skipped cycles change what is drawn.
//!
//! A packet carries the number of its class (its traffic description) in the tag's id, so that sinks count by class.
//!
//! A sink takes whatever arrives at once and checks every flit: packets whole, words as sent, addressed to it. Its
//! counters are the proof that nothing was lost.

use super::{Block, Flit, Io};
use crate::kernel::{Cycle, Rng, Wake};
use crate::probe::Scope;
use std::collections::VecDeque;

/// Where a source's packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Any of the end points `0..ends` with equal chance, the source itself included.
    Uniform {
        /// How many end points there are.
        ends: u32,
    },
    /// Always this end point.
    Fixed(u32),
}

/// A source's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SourceCfg {
    /// Mean offered load in flits a cycle, 0 to 1.
    pub rate: f64,
    /// Flits a packet, at least 1.
    pub packet_flits: u32,
    /// Where packets go.
    pub target: Target,
    /// First cycle in which a packet may be created.
    pub start: Cycle,
    /// First cycle in which none is created any more.
    pub stop: Cycle,
    /// Number of the traffic description in the scenario, for reports.
    pub class: usize,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    created: Cycle,
    dst: u32,
    seq: u64,
}

/// One source.
#[derive(Clone, Debug)]
struct Source {
    cfg: SourceCfg,
    threshold: u64,
    rng: Rng,
    /// Next cycle in which a packet is created, drawn ahead; `Cycle::MAX` if none is known yet.
    next: Cycle,
    /// First cycle for which nothing has been drawn yet.
    drawn_until: Cycle,
    created: u64,
    waiting: VecDeque<Waiting>,
}

impl Source {
    fn new(cfg: SourceCfg, rng: Rng) -> Source {
        let threshold = Rng::threshold(cfg.rate / f64::from(cfg.packet_flits));
        let waiting = VecDeque::new();
        let mut source = Source { cfg, threshold, rng, next: Cycle::MAX, drawn_until: cfg.start, created: 0, waiting };
        source.draw();
        source
    }

    /// Draws cycle by cycle until one creates a packet, at most a million of them, so that a source with a vanishing
    /// rate does not draw for ever.
    fn draw(&mut self) {
        self.next = Cycle::MAX;
        if self.threshold == 0 {
            return;
        }
        let end = self.drawn_until.saturating_add(1 << 20).min(self.cfg.stop);
        while self.drawn_until < end {
            self.drawn_until += 1;
            if self.rng.chance(self.threshold) {
                self.next = self.drawn_until - 1;
                return;
            }
        }
    }

    /// When the source must be looked at again to create a packet or to draw on.
    fn due(&self) -> Option<Cycle> {
        if self.next != Cycle::MAX {
            Some(self.next)
        } else if self.threshold > 0 && self.drawn_until < self.cfg.stop {
            Some(self.drawn_until)
        } else {
            None
        }
    }

    fn create(&mut self, now: Cycle) {
        while self.due().is_some_and(|due| due <= now) {
            if self.next == Cycle::MAX {
                self.draw();
                continue;
            }
            let dst = match self.cfg.target {
                Target::Uniform { ends } => self.rng.below(u64::from(ends)) as u32,
                Target::Fixed(end) => end,
            };
            self.waiting.push_back(Waiting { created: self.next, dst, seq: self.created });
            self.created += 1;
            self.draw();
        }
    }
}

/// What a sink counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Whole packets.
    pub packets: u64,
    /// Flits.
    pub flits: u64,
    /// Sum of packet latencies in cycles.
    pub latency_sum: u64,
    /// Longest packet latency in cycles.
    pub latency_max: u64,
}

/// A packet that is arriving on a channel.
#[derive(Clone, Copy, Debug, Default)]
struct Arriving {
    open: bool,
    created: Cycle,
    seq: u64,
    index: u64,
}

/// The traffic part of an end point: any number of sources that share its port, and a sink.
#[derive(Clone, Debug)]
pub struct Traffic {
    end: u32,
    sources: Vec<Source>,
    /// The packet that is entering the network: its source, its channel, and the index of its next flit.
    entering: Option<(usize, u8, u32)>,
    next_source: usize,
    next_vc: u8,
    arriving: Vec<Arriving>,
    received: Vec<Received>,
    sent_flits: u64,
    /// Cycle from which the sink takes flits; before it, it blocks its port.
    consume_from: Cycle,
}

impl Traffic {
    /// The traffic part of end point `end`. `seed` is the run's.
    pub fn new(end: u32, sources: &[SourceCfg], seed: u64) -> Traffic {
        let stream = |i: usize| 0x7aff_1c00_0000_0000 | u64::from(end) << 16 | i as u64;
        Traffic {
            end,
            sources: sources.iter().enumerate().map(|(i, &cfg)| Source::new(cfg, Rng::new(seed, stream(i)))).collect(),
            entering: None,
            next_source: 0,
            next_vc: 0,
            arriving: Vec::new(),
            received: Vec::new(),
            sent_flits: 0,
            consume_from: 0,
        }
    }

    /// Lets the sink take nothing before `cycle`: a blocked consumer.
    pub fn block_until(&mut self, cycle: Cycle) {
        self.consume_from = cycle;
    }

    /// What the sink counted, by class of traffic.
    pub fn received(&self) -> &[Received] {
        &self.received
    }

    /// Class, packets created so far, and flits a packet, of every source.
    pub fn created(&self) -> impl Iterator<Item = (usize, u64, u32)> + '_ {
        self.sources.iter().map(|source| (source.cfg.class, source.created, source.cfg.packet_flits))
    }

    /// Whether every source has created its last packet and sent it.
    pub fn is_drained(&self) -> bool {
        self.waiting() == 0 && self.sources.iter().all(|source| source.due().is_none())
    }

    /// Flits that entered the network.
    pub fn sent_flits(&self) -> u64 {
        self.sent_flits
    }

    /// Packets that wait at the source or are entering.
    pub fn waiting(&self) -> usize {
        self.sources.iter().map(|source| source.waiting.len()).sum()
    }

    /// One clock on port 0.
    pub fn tick(&mut self, io: &mut Io<'_>) -> Wake {
        let mut wake = self.sink(io);
        let now = io.now();
        for source in &mut self.sources {
            source.create(now);
            if let Some(due) = source.due() {
                wake = wake.or(Wake::At(due));
            }
        }
        self.enter(io);
        if self.waiting() > 0 {
            // Blocked by credits only: an arriving credit wakes the end point.
            let vcs = io.vcs();
            let any_credit = match self.entering {
                Some((_, vc, _)) => io.credits(0, vc) > 0,
                None => (vcs.set..vcs.total()).any(|vc| io.credits(0, vc) > 0),
            };
            if any_credit {
                wake = wake.or(io.busy_until(0).map_or(Wake::Next, Wake::At));
            }
        }
        wake
    }

    /// Takes what arrived and checks it.
    fn sink(&mut self, io: &mut Io<'_>) -> Wake {
        let vcs = io.vcs();
        let now = io.now();
        if now < self.consume_from {
            let blocked = (vcs.set..vcs.total()).any(|vc| io.head(0, vc).is_some());
            return if blocked { Wake::At(self.consume_from) } else { Wake::OnInput };
        }
        self.arriving.resize(usize::from(vcs.unicast), Arriving::default());
        let mut more = false;
        for vc in vcs.set..vcs.total() {
            if io.head(0, vc).is_none() {
                continue;
            }
            let flit = io.take(0, vc);
            more |= io.head(0, vc).is_some();
            let packet = &mut self.arriving[usize::from(vc - vcs.set)];
            let end = self.end;
            if flit.tag.head() {
                if packet.open || flit.dst() != end {
                    io.fail(|| format!("end point {end}: a head flit for {} in the wrong place", flit.dst()));
                }
                // The header holds 40 bits of the creation cycle; the distance to now is far below that.
                let age = now.wrapping_sub(flit.created()) & ((1 << 40) - 1);
                *packet = Arriving { open: true, created: now - age, seq: flit.tag.seq(), index: 0 };
            } else {
                packet.index += 1;
                if !packet.open || flit.word != body_word(packet.seq, packet.index) || flit.tag.seq() != packet.seq {
                    let index = packet.index;
                    io.fail(|| format!("end point {end}: flit {index} of packet {} is damaged", flit.tag.seq()));
                }
            }
            let class = usize::from(flit.tag.id());
            if self.received.len() <= class {
                self.received.resize(class + 1, Received::default());
            }
            let received = &mut self.received[class];
            received.flits += 1;
            if flit.tag.tail() {
                packet.open = false;
                let latency = now - packet.created;
                received.packets += 1;
                received.latency_sum += latency;
                received.latency_max = received.latency_max.max(latency);
            }
        }
        if more { Wake::Next } else { Wake::OnInput }
    }

    /// Lets at most one flit enter the network.
    fn enter(&mut self, io: &mut Io<'_>) {
        let vcs = io.vcs();
        if self.entering.is_none() {
            let count = self.sources.len();
            let source =
                (0..count).map(|i| (self.next_source + i) % count).find(|&s| !self.sources[s].waiting.is_empty());
            let vc =
                (0..vcs.unicast).map(|i| vcs.set + (self.next_vc + i) % vcs.unicast).find(|&vc| io.can_send(0, vc));
            let (Some(source), Some(vc)) = (source, vc) else { return };
            self.entering = Some((source, vc, 0));
            self.next_source = source + 1;
            self.next_vc = vc - vcs.set + 1;
        }
        let Some((s, vc, index)) = self.entering else { return };
        if !io.can_send(0, vc) {
            return;
        }
        let source = &mut self.sources[s];
        let length = source.cfg.packet_flits;
        let packet = source.waiting[0];
        let word =
            if index == 0 { Flit::header(packet.dst, packet.created) } else { body_word(packet.seq, u64::from(index)) };
        let class = source.cfg.class as u16;
        io.send(0, vc, Flit::part(class, vc, packet.seq & ((1 << 36) - 1), index, length, word));
        self.sent_flits += 1;
        self.entering = Some((s, vc, index + 1));
        if index + 1 == length {
            source.waiting.pop_front();
            self.entering = None;
        }
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

/// What flit `index` of packet `seq` carries.
fn body_word(seq: u64, index: u64) -> u64 {
    (seq << 16 ^ index).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// An end point that only has traffic, over any tables.
#[derive(Clone, Debug)]
pub struct TrafficEnd<T> {
    /// Its sources and sink.
    pub traffic: Traffic,
    tables: std::marker::PhantomData<T>,
}

impl<T> TrafficEnd<T> {
    /// An end point around a traffic part.
    pub fn new(traffic: Traffic) -> Self {
        TrafficEnd { traffic, tables: std::marker::PhantomData }
    }
}

impl<T> Block for TrafficEnd<T> {
    type Tables = T;

    fn tick(&mut self, io: &mut Io<'_>, _: &T) -> Wake {
        self.traffic.tick(io)
    }

    fn open(&self) -> Option<String> {
        self.traffic.open()
    }

    fn probe(&self, scope: &mut Scope<'_>) {
        self.traffic.probe(scope);
    }
}
