//! A source of packets: times of creation, lengths, destinations.
//!
//! | process | packets are created | parameters |
//! |---|---|---|
//! | Bernoulli | in each cycle with the same probability | mean rate |
//! | bursty | the same while *on*, never while *off*; in each cycle off turns on with probability alpha, on turns off with probability beta | mean rate, alpha, beta |
//! | periodic | evenly, from a random phase on; gaps differ by one cycle at most | mean rate |
//! | closed loop | when fewer than `window` requests are outstanding, `think` cycles after the reply that made room | window, think time |
//! | fed | as a trace says | |
//! | answers | when a request has arrived whole, `service` cycles later | service time |
//!
//! A bursty source is on for a share alpha / (alpha + beta) of the time. Its probability while on is the mean's divided
//! by that share, and whether it is on in its first cycle is drawn with that share: so the mean rate is exact from the
//! first cycle on. Bursts last 1 / beta cycles on average, pauses 1 / alpha.
//!
//! All draws come from the source's own stream, and gaps are drawn whole ([`Gaps`]): a source that has nothing to create
//! for a thousand cycles is not evaluated in them.

use super::{Gaps, QueuedPacket};
use std::collections::VecDeque;
use std::sync::Arc;
use watershed_kernel::{Cycle, Rng};
use watershed_state::state;

/// Where a source's packets go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Any of the end points `0..ends` with equal probability, the source itself included.
    Uniform {
        /// How many end points there are.
        ends: u32,
    },
    /// Any of the end points `0..ends` but the source itself, with equal probability.
    Others {
        /// How many end points there are, at least 2.
        ends: u32,
    },
    /// Always this end point.
    Fixed(u32),
    /// Some end points more often than the others.
    Hotspots(Arc<Hotspots>),
    /// All other end points in turn, the next number first: an all-to-all exchange.
    InTurn {
        /// How many end points there are, at least 2.
        ends: u32,
    },
}

/// End points that get a share of all packets of their own; the rest goes to all end points alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hotspots {
    /// How many end points there are.
    ends: u32,
    /// Shares summed up so far, times 2^64, and the end point.
    spots: Vec<(u64, u32)>,
}

impl Hotspots {
    /// Hot spots with their shares, which together are 1 at most.
    pub fn new(ends: u32, shares: &[(u32, f64)]) -> Hotspots {
        let mut sum = 0.0;
        let spots = shares.iter().map(|&(end, share)| {
            sum += share;
            (Rng::threshold(sum), end)
        });
        Hotspots { ends, spots: spots.collect() }
    }

    fn draw(&self, rng: &mut Rng) -> u32 {
        let drawn = rng.bits();
        match self.spots.iter().find(|(sum, _)| drawn < *sum) {
            Some((_, end)) => *end,
            None => rng.below(u64::from(self.ends)) as u32,
        }
    }
}

/// How long packets are, in flits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// All the same.
    Fixed(u32),
    /// Evenly from the first to the second.
    Range(u32, u32),
    /// Sums of weights so far, and the length that gets the weight.
    Weighted(Arc<[(u64, u32)]>),
}

impl Lengths {
    /// Lengths with weights.
    pub fn weighted(list: &[(u32, u64)]) -> Lengths {
        let mut sum = 0;
        let sums = list.iter().map(|&(flits, weight)| {
            sum += weight;
            (sum, flits)
        });
        Lengths::Weighted(sums.collect())
    }

    /// The mean length in flits.
    pub fn mean(&self) -> f64 {
        match self {
            Lengths::Fixed(flits) => f64::from(*flits),
            Lengths::Range(least, most) => f64::midpoint(f64::from(*least), f64::from(*most)),
            Lengths::Weighted(list) => {
                let mut before = 0;
                let mut flits = 0u128;
                for &(sum, length) in list.iter() {
                    flits += u128::from(sum - before) * u128::from(length);
                    before = sum;
                }
                flits as f64 / before as f64
            }
        }
    }

    #[inline]
    fn draw(&self, rng: &mut Rng) -> u32 {
        match self {
            Lengths::Fixed(flits) => *flits,
            Lengths::Range(least, most) => least + rng.below(u64::from(most - least) + 1) as u32,
            Lengths::Weighted(list) => {
                let drawn = rng.below(list.last().map_or(1, |(sum, _)| *sum));
                list.iter().find(|(sum, _)| drawn < *sum).map_or(1, |(_, flits)| *flits)
            }
        }
    }
}

/// The tables of a bursty source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// Gaps between packets while on.
    packet: Gaps,
    /// Cycles on and off, less one.
    on: Gaps,
    off: Gaps,
    /// The share of time on, times 2^64.
    share: u64,
}

/// When packets are created; see the module's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Process {
    /// Independently in each cycle.
    Bernoulli(Arc<Gaps>),
    /// On and off.
    Bursty(Arc<Bursts>),
    /// Evenly: this many packets a cycle, times 2^64.
    Periodic(u64),
    /// With a window of outstanding requests.
    ClosedLoop {
        /// Most requests outstanding.
        window: u32,
        /// Cycles from a reply to the request that takes its place.
        think: u64,
        /// Class of the replies.
        replies: u16,
    },
    /// As it is told by [`Traffic::feed`](super::Traffic::feed).
    Fed,
    /// When a request of this class has arrived.
    Answers {
        /// Class of the requests.
        requests: u16,
        /// Cycles from the request's arrival to the reply's creation.
        service: u64,
    },
}

impl Process {
    /// Bernoulli with a mean of `rate` flits a cycle.
    pub fn bernoulli(rate: f64, lengths: &Lengths) -> Process {
        Process::Bernoulli(Arc::new(Gaps::new(Rng::threshold(rate / lengths.mean()))))
    }

    /// On and off with a mean of `rate` flits a cycle. The probability while on is 1 at most: see
    /// [`Process::burst_peak`].
    pub fn bursty(rate: f64, lengths: &Lengths, alpha: f64, beta: f64) -> Process {
        let gaps = |probability| Gaps::new(Rng::threshold(probability));
        Process::Bursty(Arc::new(Bursts {
            packet: gaps(Process::burst_peak(rate, lengths, alpha, beta)),
            on: gaps(beta),
            off: gaps(alpha),
            share: Rng::threshold(alpha / (alpha + beta)),
        }))
    }

    /// The probability of a packet in a cycle in which a bursty source is on; more than 1 cannot be had.
    pub fn burst_peak(rate: f64, lengths: &Lengths, alpha: f64, beta: f64) -> f64 {
        rate / lengths.mean() * ((alpha + beta) / alpha)
    }

    /// Periodic with a mean of `rate` flits a cycle.
    pub fn periodic(rate: f64, lengths: &Lengths) -> Process {
        Process::Periodic(Rng::threshold(rate / lengths.mean()))
    }
}

/// The specification of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// When it creates packets.
    pub process: Process,
    /// How long they are.
    pub lengths: Lengths,
    /// Where they go.
    pub target: Target,
    /// First cycle in which a packet may be created.
    pub start: Cycle,
    /// First cycle in which none is created any more.
    pub stop: Cycle,
    /// Class of its packets: what sinks count them as.
    pub class: u16,
    /// Which group of channels its packets use.
    pub lane: u8,
}

/// A simple source: Bernoulli, with packets of one length.
#[derive(Clone, Debug, PartialEq)]
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

impl From<&SourceCfg> for Spec {
    fn from(cfg: &SourceCfg) -> Spec {
        let lengths = Lengths::Fixed(cfg.packet_flits);
        Spec {
            process: Process::bernoulli(cfg.rate, &lengths),
            lengths,
            target: cfg.target.clone(),
            start: cfg.start,
            stop: cfg.stop,
            class: cfg.class as u16,
            lane: 0,
        }
    }
}

/// Bits of a packet's number.
const SEQ_BITS: u32 = 36;
/// Low bits of a request's or reply's number that are random; those above them are its sender.
const SALT_BITS: u32 = 12;

/// The sender of a request, from its number.
#[inline]
pub(super) fn sender(seq: u64) -> u32 {
    (seq >> SALT_BITS) as u32
}

/// Phases a bursty source goes through at most before it is asked again.
const MOST_PHASES: u32 = 1 << 14;

/// One source at work.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub spec: Spec,
    /// First cycle in which it creates nothing: that of its specification, or earlier if it was told so.
    stop: Cycle,
    end: u32,
    rng: Rng,
    /// When it must be looked at again; `Cycle::MAX` if it need not be.
    pub next: Cycle,
    /// At `next` it only draws on.
    hollow: bool,
    seq: u64,
    /// bursty: whether it is on, and the first cycle in which that changes.
    on: bool,
    until: Cycle,
    /// periodic: the fraction of a packet that is due.
    due: u64,
    /// in turn: the distance of the last destination.
    turn: u32,
    /// closed loop: requests that wait for their reply.
    pub outstanding: u32,
    /// closed loop: when the next requests may be created. fed, answers: what is to be created, and when.
    planned: VecDeque<PlannedPacket>,
    /// Packets that were created and wait to enter.
    pub waiting: VecDeque<QueuedPacket>,
}

state!(Source {
    saved: stop, rng, next, hollow, seq, on, until, due, turn, outstanding, planned, waiting;
    built: spec, end
});

/// A packet that is to be created.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub(super) struct PlannedPacket {
    pub at: Cycle,
    pub created: Cycle,
    pub dst: u32,
    pub flits: u32,
    pub class: u16,
    pub lane: u8,
}

impl Source {
    pub fn new(spec: Spec, end: u32, mut rng: Rng) -> Source {
        // Routing draws from the packet's number, so numbers of different sources must have nothing in common.
        let seq = rng.bits() >> (u64::BITS - SEQ_BITS);
        let mut source = Source {
            end,
            next: Cycle::MAX,
            hollow: false,
            seq,
            on: false,
            until: spec.start,
            due: 0,
            turn: 0,
            outstanding: 0,
            planned: VecDeque::new(),
            waiting: VecDeque::new(),
            rng,
            stop: spec.stop,
            spec,
        };
        match &source.spec.process {
            Process::Bursty(bursts) => {
                // The first phase starts now: which one it is, is drawn; the draw below turns it round.
                source.on = !source.rng.chance(bursts.share);
            }
            Process::Periodic(_) => source.due = source.rng.bits(),
            Process::ClosedLoop { window, .. } => {
                let at = source.spec.start;
                let slot = PlannedPacket { at, created: at, dst: 0, flits: 0, class: 0, lane: 0 };
                source.planned.extend((0..*window).map(|_| slot));
            }
            _ => {}
        }
        source.draw(source.spec.start);
        source
    }

    /// Draws when the next packet is created, from cycle `from` on.
    fn draw(&mut self, from: Cycle) {
        self.hollow = false;
        let next = match &self.spec.process {
            Process::Bernoulli(gaps) => from.saturating_add(gaps.draw(&mut self.rng)),
            Process::Bursty(bursts) => {
                let bursts = Arc::clone(bursts);
                self.draw_burst(&bursts, from)
            }
            Process::Periodic(0) => Cycle::MAX,
            Process::Periodic(step) => {
                let cycles = ((1u128 << 64) - u128::from(self.due)).div_ceil(u128::from(*step)) as u64;
                self.due = self.due.wrapping_add(cycles.wrapping_mul(*step));
                from.saturating_add(cycles - 1)
            }
            Process::ClosedLoop { .. } | Process::Fed | Process::Answers { .. } => {
                self.planned.front().map_or(Cycle::MAX, |planned| planned.at)
            }
        };
        // Replies are owed even after the stop.
        let owed = matches!(self.spec.process, Process::Answers { .. });
        self.next = if next < self.stop || owed { next } else { Cycle::MAX };
    }

    fn draw_burst(&mut self, bursts: &Bursts, mut from: Cycle) -> Cycle {
        if bursts.packet.is_never() {
            return Cycle::MAX;
        }
        for _ in 0..MOST_PHASES {
            if self.on {
                let at = from.saturating_add(bursts.packet.draw(&mut self.rng));
                if at < self.until {
                    return at;
                }
            }
            from = self.until;
            if from >= self.stop {
                return Cycle::MAX;
            }
            self.on = !self.on;
            let stay = if self.on { &bursts.on } else { &bursts.off };
            self.until = from.saturating_add(1).saturating_add(stay.draw(&mut self.rng));
        }
        self.hollow = true;
        from
    }

    /// Creates what is due; gives the class and the flits of each packet to `count`.
    #[inline]
    pub fn create(&mut self, now: Cycle, mut count: impl FnMut(u16, u32)) {
        while self.next <= now {
            let at = self.next;
            if self.hollow {
                self.draw(at);
                continue;
            }
            let mut packet = QueuedPacket {
                created: at,
                ready: at,
                seq: self.seq,
                dst: 0,
                flits: 0,
                class: self.spec.class,
                lane: self.spec.lane,
            };
            match self.spec.process {
                Process::Fed => {
                    let Some(planned) = self.planned.pop_front() else { break };
                    (packet.dst, packet.flits) = (planned.dst, planned.flits);
                    (packet.class, packet.lane) = (planned.class, planned.lane);
                }
                Process::Answers { .. } => {
                    let Some(planned) = self.planned.pop_front() else { break };
                    packet.created = planned.created;
                    (packet.dst, packet.flits) = (planned.dst, self.spec.lengths.draw(&mut self.rng));
                    packet.seq = self.signed();
                }
                Process::ClosedLoop { .. } => {
                    self.planned.pop_front();
                    self.outstanding += 1;
                    (packet.dst, packet.flits) = (self.draw_destination(), self.spec.lengths.draw(&mut self.rng));
                    packet.seq = self.signed();
                }
                _ => (packet.dst, packet.flits) = (self.draw_destination(), self.spec.lengths.draw(&mut self.rng)),
            }
            self.seq = (self.seq + 1) & ((1 << SEQ_BITS) - 1);
            count(packet.class, packet.flits);
            self.waiting.push_back(packet);
            self.draw(at + 1);
        }
    }

    /// Creates nothing of its own from `now` on. Replies are owed even then.
    pub fn stop(&mut self, now: Cycle) {
        self.stop = self.stop.min(now);
        match self.spec.process {
            Process::Answers { .. } => return,
            Process::Fed => self.planned.clear(),
            _ => {}
        }
        if self.next >= self.stop {
            self.next = Cycle::MAX;
        }
    }

    /// A packet number that names the sender.
    fn signed(&mut self) -> u64 {
        u64::from(self.end) << SALT_BITS | self.rng.bits() >> (u64::BITS - SALT_BITS)
    }

    /// The destination of the next packet.
    #[inline]
    fn draw_destination(&mut self) -> u32 {
        match &self.spec.target {
            Target::Uniform { ends } => self.rng.below(u64::from(*ends)) as u32,
            Target::Others { ends } => {
                let drawn = self.rng.below(u64::from(*ends) - 1) as u32;
                drawn + u32::from(drawn >= self.end)
            }
            Target::Fixed(end) => *end,
            Target::Hotspots(spots) => spots.draw(&mut self.rng),
            Target::InTurn { ends } => {
                self.turn = self.turn % (ends - 1) + 1;
                (self.end % ends + self.turn) % ends
            }
        }
    }

    /// Plans a packet; plans are in the order of time.
    pub fn plan(&mut self, planned: PlannedPacket) {
        self.planned.push_back(planned);
        if self.planned.len() == 1 {
            self.draw(planned.at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(process: Process, lengths: Lengths, target: Target, stop: Cycle, stream: u64) -> Source {
        let spec = Spec { process, lengths, target, start: 0, stop, class: 0, lane: 0 };
        Source::new(spec, 3, Rng::new(17, stream))
    }

    /// Creation cycles and lengths of everything a source creates.
    fn packets(mut source: Source) -> Vec<(Cycle, u32, u32)> {
        source.create(Cycle::MAX - 1, |_, _| ());
        source.waiting.iter().map(|packet| (packet.created, packet.flits, packet.dst)).collect()
    }

    const CYCLES: u64 = 1_000_000;

    #[test]
    fn bernoulli_offers_its_rate_within_statistics() {
        for (rate, lengths) in [
            (0.3, Lengths::Fixed(1)),
            (0.3, Lengths::Fixed(5)),
            (0.01, Lengths::Range(1, 8)),
            (0.7, Lengths::weighted(&[(1, 4), (9, 1)])),
        ] {
            let created =
                packets(source(Process::bernoulli(rate, &lengths), lengths.clone(), Target::Fixed(0), CYCLES, 1));
            let p = rate / lengths.mean();
            let sigma = (CYCLES as f64 * p * (1.0 - p)).sqrt();
            assert!((created.len() as f64 - CYCLES as f64 * p).abs() < 4.0 * sigma, "{rate}: {}", created.len());
            let flits: u64 = created.iter().map(|(_, flits, _)| u64::from(*flits)).sum();
            // The deviation of a length is below 4 flits in all of these.
            let spread = 4.0 * (sigma * lengths.mean() + 4.0 * (created.len() as f64).sqrt());
            assert!((flits as f64 - CYCLES as f64 * rate).abs() < spread, "{rate}: {flits}");
        }
        assert_eq!(
            packets(source(Process::bernoulli(0.0, &Lengths::Fixed(1)), Lengths::Fixed(1), Target::Fixed(0), 9, 1)),
            []
        );
        let all =
            packets(source(Process::bernoulli(1.0, &Lengths::Fixed(1)), Lengths::Fixed(1), Target::Fixed(0), 9, 1));
        assert!(all.iter().map(|(at, ..)| *at).eq(0..9));
    }

    #[test]
    fn bursts_and_pauses_have_their_lengths_and_the_exact_mean() {
        // On with certainty of a packet in every cycle: runs of packets are the bursts themselves.
        let (alpha, beta) = (0.02, 0.08);
        let rate = alpha / (alpha + beta);
        let process = Process::bursty(rate, &Lengths::Fixed(1), alpha, beta);
        let created = packets(source(process, Lengths::Fixed(1), Target::Fixed(0), CYCLES, 2));
        let mut bursts = vec![1u64];
        let mut pauses = Vec::new();
        for pair in created.windows(2) {
            if pair[1].0 == pair[0].0 + 1 {
                *bursts.last_mut().unwrap() += 1;
            } else {
                pauses.push(pair[1].0 - pair[0].0 - 1);
                bursts.push(1);
            }
        }
        let mean = |list: &[u64]| list.iter().sum::<u64>() as f64 / list.len() as f64;
        let bound = |mean: f64, list: &[u64]| 4.0 * mean / (list.len() as f64).sqrt();
        assert!((mean(&bursts) - 1.0 / beta).abs() < bound(1.0 / beta, &bursts), "{}", mean(&bursts));
        assert!((mean(&pauses) - 1.0 / alpha).abs() < bound(1.0 / alpha, &pauses), "{}", mean(&pauses));
        // The variance of the number of packets grows by the burstiness: 2 a b (2 - a - b) / (a + b)^3 a cycle here.
        for (rate, lengths) in [(rate, Lengths::Fixed(1)), (0.1, Lengths::Fixed(1)), (0.15, Lengths::Range(1, 4))] {
            let process = Process::bursty(rate, &lengths, alpha, beta);
            let created = packets(source(process, lengths.clone(), Target::Fixed(0), CYCLES, 3));
            let flits: u64 = created.iter().map(|(_, flits, _)| u64::from(*flits)).sum();
            let share = alpha / (alpha + beta);
            let burstiness = share * (1.0 - share) * (2.0 - alpha - beta) / (alpha + beta);
            let peak = Process::burst_peak(rate, &lengths, alpha, beta) * lengths.mean();
            let sigma = (CYCLES as f64 * (burstiness * peak * peak + rate * 4.0)).sqrt();
            assert!((flits as f64 - CYCLES as f64 * rate).abs() < 4.0 * sigma, "{rate}: {flits}, {sigma}");
        }
    }

    #[test]
    fn the_first_cycle_of_a_bursty_source_is_as_likely_as_any() {
        let process = Process::bursty(0.25, &Lengths::Fixed(1), 0.001, 0.003);
        let on = (0..20_000).filter(|&stream| {
            let created = source(process.clone(), Lengths::Fixed(1), Target::Fixed(0), 1, stream);
            created.next == 0
        });
        let on = on.count() as f64 / 20_000.0;
        assert!((on - 0.25).abs() < 0.0125, "{on}");
    }

    #[test]
    fn a_periodic_source_is_even_and_exact() {
        for (rate, flits) in [(0.3, 1), (0.1, 4), (1.0, 1), (0.999, 7)] {
            let lengths = Lengths::Fixed(flits);
            let created = packets(source(Process::periodic(rate, &lengths), lengths, Target::Fixed(0), 100_000, 4));
            let exact = 100_000.0 * rate / f64::from(flits);
            assert!((created.len() as f64 - exact).abs() <= 1.0, "{rate}: {} {exact}", created.len());
            let gaps: Vec<u64> = created.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
            let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
            assert!(most - least <= 1, "{rate}: {least} to {most}");
        }
    }

    #[test]
    fn lengths_have_their_weights() {
        let weighted = Lengths::weighted(&[(1, 3), (5, 1)]);
        assert!((weighted.mean() - 2.0).abs() < 1e-12);
        let mut rng = Rng::new(1, 7);
        let long = (0..40_000).filter(|_| weighted.draw(&mut rng) == 5).count();
        assert!((9_650..10_350).contains(&long), "{long}");
        let mut seen = [0u32; 5];
        for _ in 0..10_000 {
            seen[Lengths::Range(2, 4).draw(&mut rng) as usize] += 1;
        }
        assert!(seen[..2] == [0, 0] && seen[2..].iter().all(|n| (3_100..3_570).contains(n)), "{seen:?}");
    }

    #[test]
    fn targets_are_hit_as_often_as_they_should_be() {
        let hits = |target: Target| {
            let mut hits = [0u32; 8];
            let process = Process::bernoulli(1.0, &Lengths::Fixed(1));
            for (_, _, dst) in packets(source(process, Lengths::Fixed(1), target, 70_000, 5)) {
                hits[dst as usize] += 1;
            }
            hits
        };
        assert!(hits(Target::Uniform { ends: 7 })[..7].iter().all(|n| (9_600..10_400).contains(n)));
        let others = hits(Target::Others { ends: 8 });
        assert_eq!(others[3], 0, "the source itself is end point 3");
        assert_eq!(others.iter().filter(|n| (9_600..10_400).contains(*n)).count(), 7, "{others:?}");
        let hot = hits(Target::Hotspots(Arc::new(Hotspots::new(8, &[(2, 0.1), (5, 0.3)]))));
        assert!((12_000..12_500).contains(&hot[2]) && (25_900..26_600).contains(&hot[5]), "{hot:?}");
        assert!([0, 1, 3, 4, 6, 7].iter().all(|&end| (5_000..5_500).contains(&hot[end])), "{hot:?}");
        assert_eq!(hits(Target::InTurn { ends: 8 }), [10_000, 10_000, 10_000, 0, 10_000, 10_000, 10_000, 10_000]);
    }

    #[test]
    fn numbers_of_packets_start_anywhere() {
        let process = Process::bernoulli(1.0, &Lengths::Fixed(1));
        let first = |stream| source(process.clone(), Lengths::Fixed(1), Target::Fixed(0), 2, stream).seq;
        let mut numbers: Vec<u64> = (0..100).map(first).collect();
        assert!(numbers.iter().any(|n| *n < 1 << 35) && numbers.iter().any(|n| *n >= 1 << 35));
        assert!(numbers.iter().all(|n| *n < 1 << 36));
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 100);
    }
}
