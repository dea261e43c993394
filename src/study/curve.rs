//! Latency and accepted throughput over offered load: a run a point.
//!
//! Offered loads are taken in ascending order. Up to `jobs` points run at once, each on a thread of its own; points are
//! independent of each other and are reported in the order of their loads, so the number of threads changes nothing. A
//! curve stops rising after the first saturated point.
//!
//! **Saturated** (*chosen*) is a load that the network does not carry as [`measure`](watershed_scenario_interface::measure)
//! defines it, or at which the mean latency exceeds [`LATENCY_LIMIT`] times that of zero load. The second criterion is
//! the usual one of the literature. Just beyond the knee, queues at the sources grow so slowly that a window of some
//! thousand cycles accepts nearly all of the offered load; the latency then only reflects the length of the window. The
//! latency of zero load is that of a run at [`ZERO_LOAD`], or at the lowest load of the curve if that is lower.
//!
//! **The knee**: between the last point that is not saturated and the first that is, the offered load is halved until the
//! bracket is no wider than `tolerance`; stable points so found, and the lowest saturated one, are points of the curve.
//!
//! **Saturation throughput** (*chosen*): what is accepted at the highest offered load that is not saturated. The load of
//! the last stable run, the throughput in it and the one just beyond are reported, so that a reader with another
//! definition sees both sides.

use serde::{Deserialize, Serialize};
use watershed_scenario_interface::result::Document;

/// Version of the shape of a curve as JSON.
pub const SCHEMA_VERSION: u32 = 1;

/// Mean latency from which on a load counts as saturated, in multiples of the latency of zero load; the default.
pub const LATENCY_LIMIT: f64 = 3.0;
/// Offered load whose latency is taken as that of zero load, in flits a node and cycle.
pub const ZERO_LOAD: f64 = 0.01;

/// What makes a load a saturated one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The network did not deliver the packets of the window in time, or accepted too little of what was offered.
    Throughput,
    /// The mean latency is beyond the limit.
    Latency,
}

impl Cause {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
        }
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Offered load that was asked for, in flits a node and cycle.
    pub rate: f64,
    /// Load that was offered in the window.
    pub offered: f64,
    /// What was accepted: the mean over nodes.
    pub accepted: f64,
    /// The least accepted at a node.
    pub accepted_min: f64,
    /// Mean latency in cycles over all traffic; null if no packet was measured.
    pub latency: Option<f64>,
    /// Half-width of its confidence interval: the widest of the traffics.
    pub half_width: Option<f64>,
    /// Mean latency in the network.
    pub network_latency: Option<f64>,
    /// 99th percentile: the greatest of the traffics.
    pub p99: Option<u64>,
    /// Switches visited on average.
    pub hops: Option<f64>,
    /// Whether the network is saturated.
    pub saturated: bool,
    /// What says so, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturated_by: Option<Cause>,
}

/// Where a network saturates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saturation {
    /// The highest offered load that was stable.
    pub stable: Point,
    /// The lowest that was not; null if all are stable up to 1.
    pub unstable: Option<Point>,
}

/// A curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The scenario.
    pub name: String,
    /// Mean latency in cycles of zero load; null if no packet was measured there, or the network carries not even that.
    #[serde(default)]
    pub zero_load_latency: Option<f64>,
    /// Mean latency in cycles beyond which a point is saturated; null without that criterion.
    #[serde(default)]
    pub latency_limit: Option<f64>,
    /// Its points, ascending.
    pub points: Vec<Point>,
    /// Where it saturates, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturation: Option<Saturation>,
}

impl Point {
    /// What a measured run says.
    pub fn of(rate: f64, document: &Document) -> Option<Point> {
        let measure = document.measure.as_ref()?;
        let latencies: Vec<_> = document.traffic.iter().filter_map(|traffic| traffic.latency.as_ref()).collect();
        let packets: u64 = latencies.iter().map(|latency| latency.packets).sum();
        let weighted = |of: &dyn Fn(&watershed_scenario_interface::measure::LatencyResult) -> Option<f64>| {
            let sum: Option<f64> = latencies.iter().map(|latency| Some(of(latency)? * latency.packets as f64)).sum();
            sum.filter(|_| packets > 0).map(|sum| sum / packets as f64)
        };
        Some(Point {
            rate,
            offered: measure.offered,
            accepted: measure.accepted_mean,
            accepted_min: measure.accepted_min,
            latency: weighted(&|latency| Some(latency.mean)),
            half_width: latencies.iter().filter_map(|latency| latency.half_width).reduce(f64::max),
            network_latency: weighted(&|latency| latency.network_mean),
            p99: latencies.iter().map(|latency| latency.p99).max(),
            hops: measure.hops_mean,
            saturated: measure.saturated,
            saturated_by: measure.saturated.then_some(Cause::Throughput),
        })
    }

    /// The same point, saturated also if its mean latency is beyond `limit` cycles.
    #[must_use]
    pub fn with_latency_limit(mut self, limit: Option<f64>) -> Point {
        if !self.saturated && self.latency.zip(limit).is_some_and(|(latency, limit)| latency > limit) {
            self.saturated = true;
            self.saturated_by = Some(Cause::Latency);
        }
        self
    }
}

/// Runs the points of a curve, `jobs` at a time, until one is saturated. `run` runs one.
///
/// # Errors
/// The first error of a run, in the order of the loads.
pub fn points<E: Send>(
    rates: &[f64],
    jobs: usize,
    run: &(dyn Fn(f64) -> Result<Point, E> + Sync),
) -> Result<Vec<Point>, E> {
    let mut points = Vec::new();
    for some in rates.chunks(jobs.max(1)) {
        let done: Vec<Result<Point, E>> = std::thread::scope(|scope| {
            let threads: Vec<_> = some.iter().map(|&rate| scope.spawn(move || run(rate))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a run does not panic")).collect()
        });
        for point in done {
            let point = point?;
            let last = point.saturated;
            points.push(point);
            if last {
                // Points beyond the first saturated one are the same for any number of threads: none.
                return Ok(points);
            }
        }
    }
    Ok(points)
}

/// Refines a curve at its knee: halves the loads between its last stable and its first saturated point until they are no
/// farther apart than `tolerance`. If none is saturated and `search` says so, a load of 1 is the other end. Points that are
/// found join the curve, but of saturated ones the lowest only.
///
/// # Errors
/// The first error of a run.
pub fn refine<E>(
    points: &mut Vec<Point>,
    tolerance: f64,
    search: bool,
    mut run: impl FnMut(f64) -> Result<Point, E>,
) -> Result<(), E> {
    let mut stable = points.iter().rfind(|point| !point.saturated).map_or(0.0, |point| point.rate);
    let mut unstable = points.iter().find(|point| point.saturated).cloned();
    let mut found: Vec<Point> = Vec::new();
    if unstable.is_none() && search && stable < 1.0 {
        let most = run(1.0)?;
        if most.saturated { unstable = Some(most) } else { found.push(most) }
    }
    while let Some(above) = &unstable
        && above.rate - stable > tolerance
    {
        // Six digits are more than any tolerance asks for, and are what tables and files then show.
        let middle = run((f64::midpoint(stable, above.rate) * 1e6).round() / 1e6)?;
        if middle.saturated {
            unstable = Some(middle);
        } else {
            stable = middle.rate;
            found.push(middle);
        }
    }
    found.extend(unstable);
    for point in found {
        let at = points.partition_point(|other| other.rate < point.rate);
        if points.get(at).is_none_or(|other| other.rate > point.rate) {
            points.insert(at, point);
        }
    }
    Ok(())
}

/// Where a curve saturates, as far as its points say; nothing is known if none is stable.
pub fn saturation(points: &[Point]) -> Option<Saturation> {
    let stable = points.iter().rfind(|point| !point.saturated)?.clone();
    Some(Saturation { stable, unstable: points.iter().find(|point| point.saturated).cloned() })
}

/// Reads loads: numbers and ranges `FROM..TO:STEP` (both ends included), separated by commas.
///
/// # Errors
/// What was expected.
pub fn rates(text: &str) -> Result<Vec<f64>, String> {
    const EXPECTED: &str = "loads are numbers from 0 to 1 and ranges FROM..TO:STEP, for example 0.01..0.6:0.05,0.62";
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|rate| (0.0..=1.0).contains(rate));
    let mut list = Vec::new();
    for part in text.split(',') {
        if let Some((from, rest)) = part.split_once("..") {
            let (to, step) = rest.split_once(':').ok_or(EXPECTED)?;
            let (from, to, step) =
                (number(from).ok_or(EXPECTED)?, number(to).ok_or(EXPECTED)?, number(step).ok_or(EXPECTED)?);
            if step < 1e-6 || to < from {
                return Err(EXPECTED.into());
            }
            // Multiples, not sums, and as short as they were written: 0.3 is 0.3.
            let count = ((to - from) / step + 1e-9) as u32;
            list.extend((0..=count).map(|i| ((from + f64::from(i) * step) * 1e9).round() / 1e9));
        } else {
            list.push(number(part).ok_or(EXPECTED)?);
        }
    }
    list.sort_by(f64::total_cmp);
    list.dedup();
    if list.len() > 1000 { Err("more than 1000 points".into()) } else { Ok(list) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A network that carries `capacity` at most.
    fn network(rate: f64, capacity: f64) -> Point {
        Point {
            rate,
            offered: rate,
            accepted: rate.min(capacity),
            accepted_min: rate.min(capacity),
            latency: Some(10.0),
            half_width: None,
            network_latency: None,
            p99: None,
            hops: None,
            saturated: rate > capacity,
            saturated_by: (rate > capacity).then_some(Cause::Throughput),
        }
    }

    #[test]
    fn loads_are_lists_and_ranges() {
        assert_eq!(rates("0.1..0.3:0.1"), Ok(vec![0.1, 0.2, 0.3]));
        assert_eq!(rates("0.05,0.01..0.06:0.05, 0.5"), Ok(vec![0.01, 0.05, 0.06, 0.5]));
        for wrong in ["", "x", "0.1..0.3", "0.3..0.1:0.1", "0..1:0", "2", "-0.1", "0..1:0.000001", "nan"] {
            assert!(rates(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_curve_ends_at_saturation_on_any_number_of_threads() {
        let loads = rates("0.1..0.9:0.1").unwrap();
        let run = |rate| Ok::<_, ()>(network(rate, 0.45));
        let one = points(&loads, 1, &run).unwrap();
        assert_eq!(one.iter().map(|point| point.rate).collect::<Vec<_>>(), [0.1, 0.2, 0.3, 0.4, 0.5]);
        for jobs in [2, 3, 16] {
            assert_eq!(points(&loads, jobs, &run).unwrap(), one);
        }
    }

    /// A curve of these loads, refined; and how many runs that took.
    fn refined(loads: &[f64], capacity: f64, tolerance: f64, search: bool) -> (Vec<Point>, u32) {
        let mut points: Vec<Point> = loads.iter().map(|&rate| network(rate, capacity)).collect();
        let mut runs = 0;
        let run = |rate| {
            runs += 1;
            Ok::<_, ()>(network(rate, capacity))
        };
        refine(&mut points, tolerance, search, run).unwrap();
        (points, runs)
    }

    #[test]
    fn saturation_is_found_by_halving() {
        for capacity in [0.0371, 0.45, 0.9999] {
            let found = saturation(&refined(&[], capacity, 0.001, true).0).unwrap();
            assert!(found.stable.rate <= capacity && capacity - found.stable.rate <= 0.001, "{capacity}");
            assert!(found.unstable.unwrap().rate - found.stable.rate <= 0.001);
        }
        let all = saturation(&refined(&[], 2.0, 0.01, true).0).unwrap();
        assert_eq!((all.stable.rate, all.unstable), (1.0, None));
        assert_eq!(refined(&[0.1], 2.0, 0.01, false), (vec![network(0.1, 2.0)], 0), "nobody asked for more");
    }

    #[test]
    fn a_curve_is_refined_at_its_knee() {
        let (points, runs) = refined(&[0.1, 0.4, 0.5], 0.44, 0.02, false);
        assert_eq!(runs, 3, "a known bracket is used");
        let short = |rate: f64| (rate * 1e6).round() / 1e6;
        let found: Vec<(f64, bool)> = points.iter().map(|point| (short(point.rate), point.saturated)).collect();
        // 0.45 is saturated and joins, 0.425 and 0.4375 are not.
        assert_eq!(found, [(0.1, false), (0.4, false), (0.425, false), (0.4375, false), (0.45, true), (0.5, true)]);
        assert_eq!(refined(&[0.4, 0.41], 0.405, 0.02, false).1, 0, "it is as fine as was asked for");
    }

    #[test]
    fn latency_beyond_its_limit_is_saturation() {
        let at = |latency, limit| {
            let point = Point { latency, ..network(0.4, 0.45) }.with_latency_limit(limit);
            assert_eq!(point.saturated, point.saturated_by.is_some());
            point.saturated_by
        };
        assert_eq!(at(Some(30.0), Some(30.0)), None);
        assert_eq!(at(Some(30.1), Some(30.0)), Some(Cause::Latency));
        assert_eq!(at(Some(30.1), None), None);
        assert_eq!(at(None, Some(30.0)), None);
        let carried_too_little = Point { latency: Some(99.0), ..network(0.5, 0.45) }.with_latency_limit(Some(30.0));
        assert_eq!(carried_too_little.saturated_by, Some(Cause::Throughput));
    }
}
