//! Measuring traffic: warm-up, window, drain; latencies with their confidence; accepted traffic.
//!
//! ```text
//!   0            W                         E                 D
//!   ├─ warm-up ──┼──────── window ─────────┼──── drain ──────┤
//!                packets created here count;  ... and all of them are waited for
//! ```
//!
//! Sources go on until D, so that the last packets of the window meet the same traffic as the first. A run without
//! `[measure]` counts every packet of its life and has no interval of confidence.
//!
//! | figure | definition |
//! |---|---|
//! | latency | of packets *created* in the window, from creation to the arrival of the tail |
//! | network latency | the same without the cycles at the source: mean latency less mean wait, over the same packets |
//! | offered | flits created in the window, a node and cycle |
//! | accepted | flits that arrived in the window, a node and cycle; the mean over nodes, and the least of those that the patterns address |
//! | hops | switches a flit visits: flits over links between switches, divided by flits that entered, plus 1 |
//! | links | flits in the window |
//!
//! **Confidence.** The window is cut into 32 batches of equal length; a packet belongs to the batch it was created in.
//! The mean is the ratio of two sums (latencies, packets), and its variance is estimated from the batches as that of a
//! ratio; half-widths are Student's t with one degree of freedom less than there are batches. Batches without a packet
//! are joined with their neighbours (16, 8, 4, 2 batches). Batches are cut by the cycle of creation, so the result does
//! not depend on how often a run is sampled. With `precision` the window is doubled until the half-width is small
//! enough.
//!
//! **Saturation** (*chosen*): a run is saturated if the packets of its window have not all arrived `drain_cycles` after
//! its end, or if less than 95 % of what was created in the window was accepted in it. Latencies of a saturated run
//! grow with the window and are meaningless; its accepted traffic is not.

use serde::{Deserialize, Serialize};

use watershed_fabric::traffic::{Histogram, LatencySample};
use watershed_reader::config::{Confidence, Measure as Cfg};
use watershed_state::state;

/// Batches of a window.
const BATCHES: usize = 32;
/// Cycles between two looks whether all packets of the window have arrived.
pub const LOOK: u64 = 64;
/// A share of the offered load below which a run is saturated.
const STABLE: f64 = 0.95;

/// The latencies of one traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyResult {
    /// Packets that were measured.
    pub packets: u64,
    /// Mean latency in cycles.
    pub mean: f64,
    /// Half-width of the confidence interval of the mean; null without a window or with too few packets.
    pub half_width: Option<f64>,
    /// Mean latency without the wait at the source; null for replies, whose latency is the round trip.
    pub network_mean: Option<f64>,
    /// The shortest.
    pub min: u64,
    /// Half of the packets took no longer.
    pub p50: u64,
    /// 90 % took no longer.
    pub p90: u64,
    /// 99 % took no longer.
    pub p99: u64,
    /// 99.9 % took no longer.
    pub p999: u64,
    /// The longest.
    pub max: u64,
    /// Largest relative error of percentiles of 1024 cycles and more; shorter ones are exact.
    pub percentile_error: f64,
    /// Buckets that are not empty: first and last latency, packets.
    pub histogram: HistogramResult,
}

/// Buckets of a histogram that are not empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramResult {
    /// First latency of each.
    pub from: Vec<u64>,
    /// Last latency of each.
    pub to: Vec<u64>,
    /// Packets in each.
    pub packets: Vec<u64>,
}

/// The window, and the network in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasureResult {
    /// First cycle of the window.
    pub from_cycle: u64,
    /// First cycle after it.
    pub to_cycle: u64,
    /// Cycle by which all packets of the window had arrived; null if they had not.
    pub drained_cycle: Option<u64>,
    /// Whether the network carried what it was offered.
    pub saturated: bool,
    /// Why it is called so, in words.
    pub verdict: String,
    /// Level of the confidence intervals.
    pub confidence: f64,
    /// Flits created, a node and cycle, over all traffic.
    pub offered: f64,
    /// Flits that arrived, a node and cycle: the mean.
    pub accepted_mean: f64,
    /// The same of the node that got least of those that are addressed.
    pub accepted_min: f64,
    /// Switches visited on average; null if nothing entered.
    pub hops_mean: Option<f64>,
}

/// Sums of one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Batch {
    /// Latencies.
    pub sum: u64,
    /// Packets.
    pub packets: u64,
}

/// The latencies of one class of packets.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub struct Latencies {
    /// All of them.
    pub histogram: Histogram,
    batches: Vec<Batch>,
    waits: u64,
    entered: u64,
}

impl Latencies {
    /// The results; `None` without a packet.
    pub fn result(&self, confidence: Option<Confidence>) -> Option<LatencyResult> {
        let mean = self.histogram.mean()?;
        let percentile = |per_mille| self.histogram.percentile(per_mille).unwrap_or(0);
        let mut histogram = HistogramResult::default();
        for (from, to, packets) in self.histogram.buckets() {
            histogram.from.push(from);
            histogram.to.push(to);
            histogram.packets.push(packets);
        }
        Some(LatencyResult {
            packets: self.histogram.count(),
            mean,
            half_width: confidence.and_then(|level| half_width(&self.batches, level)),
            network_mean: (self.entered > 0).then(|| mean - self.waits as f64 / self.entered as f64),
            min: self.histogram.least(),
            p50: percentile(500),
            p90: percentile(900),
            p99: percentile(990),
            p999: percentile(999),
            max: self.histogram.greatest(),
            percentile_error: 1.0 / 512.0,
            histogram,
        })
    }
}

/// The half-width of the confidence interval of the ratio of sums over batches of equal length in time. Batches are
/// joined until each has a packet; `None` if two are too many.
pub fn half_width(batches: &[Batch], level: Confidence) -> Option<f64> {
    // Student's t, two-sided, for 31, 15, 7, 3 and 1 degrees of freedom.
    let quantiles: [f64; 5] = match level {
        Confidence::P90 => [1.695_519, 1.753_050, 1.894_579, 2.353_363, 6.313_752],
        Confidence::P95 => [2.039_513, 2.131_450, 2.364_624, 3.182_446, 12.706_205],
        Confidence::P99 => [2.744_042, 2.946_713, 3.499_483, 5.840_909, 63.656_741],
    };
    for (power, quantile) in quantiles.into_iter().enumerate() {
        let count = BATCHES >> power;
        let joined = join(batches, count);
        if joined.len() < count || joined.iter().any(|batch| batch.packets == 0) {
            continue;
        }
        let (sum, packets) = joined.iter().fold((0, 0), |(sum, n), batch| (sum + batch.sum, n + batch.packets));
        let mean = sum as f64 / packets as f64;
        let squares: f64 = joined.iter().map(|batch| (batch.sum as f64 - mean * batch.packets as f64).powi(2)).sum();
        let size = packets as f64 / count as f64;
        let variance = squares / (count as f64 - 1.0) / count as f64 / (size * size);
        return Some(quantile * variance.sqrt());
    }
    None
}

/// Joins neighbours until there are `count` batches of equal length in time.
fn join(batches: &[Batch], count: usize) -> Vec<Batch> {
    let each = batches.len().div_ceil(count).max(1);
    let sums = batches.chunks(each).map(|chunk| {
        chunk.iter().fold(Batch::default(), |a, b| Batch { sum: a.sum + b.sum, packets: a.packets + b.packets })
    });
    sums.collect()
}

/// The phase of a measured run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum Phase {
    /// Before the window, until this cycle.
    Warmup(u64),
    /// In the window, until this cycle.
    Window(u64),
    /// After it; the next look is in this cycle.
    Drain(u64),
    /// All is measured.
    Done,
}

/// A measurement under way.
#[derive(Clone, Debug)]
pub struct Measurement {
    cfg: Option<Cfg>,
    /// The current phase.
    pub phase: Phase,
    /// The window: first cycle, first cycle after it.
    pub from: u64,
    /// See `from`.
    pub to: u64,
    /// Latencies, by class.
    pub classes: Vec<Latencies>,
    /// Packets created after the window, which count if it grows.
    late: [Vec<LatencySample>; 2],
    /// Cycle by which all had arrived.
    pub drained: Option<u64>,
}

state!(Measurement { saved: phase, from, to, classes, late, drained; built: cfg });

impl Measurement {
    /// A measurement of this many classes of packets.
    pub fn new(cfg: Option<Cfg>, classes: usize) -> Measurement {
        let (phase, from, to) = match cfg {
            Some(cfg) => (Phase::Warmup(cfg.warmup_cycles), cfg.warmup_cycles, cfg.warmup_cycles + cfg.measure_cycles),
            None => (Phase::Done, 0, u64::MAX),
        };
        let classes = vec![Latencies::default(); classes];
        Measurement { cfg, phase, from, to, classes, late: [Vec::new(), Vec::new()], drained: None }
    }

    /// Whether there is a window.
    pub fn has_window(&self) -> bool {
        self.cfg.is_some()
    }

    /// The cycle before which something is to be looked at.
    pub fn next(&self) -> u64 {
        match self.phase {
            Phase::Warmup(at) | Phase::Window(at) | Phase::Drain(at) => at,
            Phase::Done => u64::MAX,
        }
    }

    /// A packet has arrived.
    #[inline]
    pub fn arrived(&mut self, packet: &LatencySample) {
        if packet.created < self.from {
            return;
        }
        if packet.created >= self.to {
            self.late[0].push(*packet);
            return;
        }
        let class = &mut self.classes[packet.class()];
        class.histogram.add(packet.cycles());
        if let Some(cfg) = &self.cfg {
            let at = ((packet.created - self.from) / batch_cycles(cfg)) as usize;
            if at >= class.batches.len() {
                class.batches.resize(at + 1, Batch::default());
            }
            class.batches[at].sum += packet.cycles();
            class.batches[at].packets += 1;
        }
    }

    /// A packet has entered the network.
    #[inline]
    pub fn entered(&mut self, packet: &LatencySample) {
        if packet.created < self.from {
            return;
        }
        if packet.created >= self.to {
            self.late[1].push(*packet);
            return;
        }
        let class = &mut self.classes[packet.class()];
        class.waits += packet.cycles();
        class.entered += 1;
    }

    /// Packets of the window that have arrived.
    pub fn count(&self) -> u64 {
        self.classes.iter().map(|class| class.histogram.count()).sum()
    }

    /// The window has been measured whole: doubles it if its mean is not sure enough yet. Returns whether it did.
    pub fn grow(&mut self, now: u64) -> bool {
        let Some(cfg) = self.cfg else { return false };
        let Some(precision) = cfg.precision else { return false };
        let length = self.to - self.from;
        let sure = self.classes.iter_mut().all(|class| {
            let batches = (length / batch_cycles(&cfg)) as usize;
            class.batches.resize(batches, Batch::default());
            class.histogram.mean().is_none_or(|mean| {
                half_width(&class.batches, cfg.confidence).is_some_and(|half_width| half_width <= precision * mean)
            })
        });
        let longer = self.from + (2 * length).max((now - self.from).next_multiple_of(length));
        if sure || longer - self.from > cfg.max_measure_cycles {
            return false;
        }
        self.to = longer;
        self.phase = Phase::Window(longer);
        let [arrived, entered] = std::mem::take(&mut self.late);
        for packet in &arrived {
            self.arrived(packet);
        }
        for packet in &entered {
            self.entered(packet);
        }
        true
    }

    /// Cycle from which on what has not arrived will not be waited for.
    pub fn patience(&self) -> u64 {
        self.to.saturating_add(self.cfg.map_or(0, |cfg| cfg.drain_cycles))
    }

    /// Cuts all classes into the batches of the window, so that those without a packet at the end are seen.
    pub fn close(&mut self) {
        if let Some(cfg) = self.cfg {
            let batches = ((self.to - self.from) / batch_cycles(&cfg)) as usize;
            self.classes.iter_mut().for_each(|class| class.batches.resize(batches, Batch::default()));
        }
    }

    /// Whether a run is saturated, and why it is called so or not.
    pub fn verdict(&self, created: u64, offered: f64, accepted: f64) -> (bool, String) {
        let missing = created - self.count().min(created);
        if missing > 0 {
            return (true, format!("{missing} of {created} packets of the window had not arrived in time"));
        }
        if created == 0 {
            return (false, "no packet was created in the window".into());
        }
        let share = if offered > 0.0 { accepted / offered } else { 1.0 };
        let percent = share * 100.0;
        if share < STABLE {
            (true, format!("{percent:.1} % of what was offered in the window was accepted in it"))
        } else {
            (false, "all packets of the window arrived, and what was offered was accepted".into())
        }
    }
}

/// Cycles of one batch of the first window.
fn batch_cycles(cfg: &Cfg) -> u64 {
    (cfg.measure_cycles / BATCHES as u64).max(1)
}

/// A level as a number.
pub fn level(confidence: Confidence) -> f64 {
    match confidence {
        Confidence::P90 => 0.90,
        Confidence::P95 => 0.95,
        Confidence::P99 => 0.99,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_kernel::Rng;

    /// Latencies that depend on their predecessors: a sum of the last `memory` draws from 0 to 20, of known mean. The share of trials
    /// in which each of these levels covers it.
    fn covered(memory: usize, levels: [Confidence; 3], trials: u64) -> [f64; 3] {
        let mut hits = [0; 3];
        for trial in 0..trials {
            let mut rng = Rng::new(trial, memory as u64);
            let mut last = vec![0u64; memory];
            for draw in &mut last {
                *draw = rng.below(21);
            }
            let mut batches = vec![Batch::default(); BATCHES];
            for batch in &mut batches {
                for i in 0..200 {
                    last[i % memory] = rng.below(21);
                    // Some cycles have no packet: batches differ in size.
                    if rng.below(4) > 0 {
                        batch.sum += last.iter().sum::<u64>();
                        batch.packets += 1;
                    }
                }
            }
            let (sum, packets) = batches.iter().fold((0, 0), |(s, n), batch| (s + batch.sum, n + batch.packets));
            let mean = sum as f64 / packets as f64;
            for (hits, level) in hits.iter_mut().zip(levels) {
                let is_hit = (mean - 10.0 * memory as f64).abs() <= half_width(&batches, level).unwrap();
                *hits += u64::from(is_hit);
            }
        }
        hits.map(|hits| hits as f64 / trials as f64)
    }

    #[test]
    fn intervals_cover_the_true_mean_as_often_as_they_say() {
        // 1500 trials: four standard deviations are 3.1 %, 2.3 % and 1 %.
        for memory in [1, 8] {
            let levels = [Confidence::P90, Confidence::P95, Confidence::P99];
            let found = covered(memory, levels, 1500);
            for ((confidence, within), found) in levels.into_iter().zip([0.031, 0.023, 0.011]).zip(found) {
                assert!((found - level(confidence)).abs() < within, "memory {memory}, {confidence:?}: {found}");
            }
        }
    }

    #[test]
    fn batches_without_packets_are_joined() {
        let mut batches = vec![Batch { sum: 10, packets: 1 }; BATCHES];
        assert_eq!(half_width(&batches, Confidence::P95), Some(0.0));
        batches[3] = Batch::default();
        let wide = half_width(&batches, Confidence::P95);
        assert_eq!(wide, Some(0.0), "a missing packet changes no mean");
        batches[0] = Batch { sum: 30, packets: 1 };
        assert!(half_width(&batches, Confidence::P95).unwrap() > 1.0);
        assert_eq!(half_width(&vec![Batch::default(); BATCHES], Confidence::P95), None);
        assert_eq!(half_width(&batches[..1], Confidence::P95), None);
    }

    #[test]
    fn only_packets_created_in_the_window_are_measured() {
        let cfg = Cfg { warmup_cycles: 100, measure_cycles: 64, precision: Some(0.01), ..Cfg::default() };
        let mut measurement = Measurement::new(Some(cfg), 1);
        for created in [99, 100, 163, 164, 227, 228] {
            measurement.arrived(&LatencySample::new(created, created - 90, 0));
        }
        assert_eq!(measurement.count(), 2);
        assert!(measurement.grow(170));
        assert_eq!((measurement.to, measurement.count()), (228, 4));
    }
}
