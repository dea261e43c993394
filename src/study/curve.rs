//! Latency and accepted throughput over offered load: a run a point.
//!
//! Offered loads are taken in ascending order. Up to `jobs` points run at once, each on a thread of its own; points are
//! independent of each other and are reported in the order of their loads, so the number of threads changes nothing. A
//! curve stops rising after the first saturated point (what *saturated* means is defined in
//! [`measure`](crate::scenario::measure)).
//!
//! **Saturation** (*chosen*): the saturation throughput is what is accepted at the highest offered load that is not
//! saturated. It is bracketed by the points of the curve (or 0 and 1) and found by halving the bracket until it is no wider than
//! `tolerance`. The load of the last stable run, the throughput in it and the one just beyond are reported, so that a
//! reader with another definition sees both sides.

use crate::scenario::result::Document;
use serde::{Deserialize, Serialize};

/// Version of the shape of a curve as JSON.
pub const SCHEMA_VERSION: u32 = 1;

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
    /// Switches visited in the mean.
    pub hops: Option<f64>,
    /// Whether the network is saturated.
    pub saturated: bool,
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
        let weighted = |of: &dyn Fn(&crate::scenario::measure::LatencyResult) -> Option<f64>| {
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
        })
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

/// Finds the highest stable load to within `tolerance`, starting from what a curve knows.
///
/// # Errors
/// The first error of a run.
pub fn saturation<E>(
    known: &[Point],
    tolerance: f64,
    mut run: impl FnMut(f64) -> Result<Point, E>,
) -> Result<Option<Saturation>, E> {
    let mut stable = known.iter().rfind(|point| !point.saturated).cloned();
    let mut unstable = known.iter().find(|point| point.saturated).cloned();
    if unstable.is_none() && stable.as_ref().is_none_or(|point| point.rate < 1.0) {
        let most = run(1.0)?;
        if most.saturated {
            unstable = Some(most);
        } else {
            stable = Some(most);
        }
    }
    while let Some(above) = &unstable {
        let below = stable.as_ref().map_or(0.0, |point| point.rate);
        if above.rate - below <= tolerance {
            break;
        }
        let middle = run(f64::midpoint(below, above.rate))?;
        if middle.saturated {
            unstable = Some(middle);
        } else {
            stable = Some(middle);
        }
    }
    Ok(stable.map(|stable| Saturation { stable, unstable }))
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
    fn a_curve_ends_with_its_first_saturated_point_on_any_number_of_threads() {
        let loads = rates("0.1..0.9:0.1").unwrap();
        let run = |rate| Ok::<_, ()>(network(rate, 0.45));
        let one = points(&loads, 1, &run).unwrap();
        assert_eq!(one.iter().map(|point| point.rate).collect::<Vec<_>>(), [0.1, 0.2, 0.3, 0.4, 0.5]);
        for jobs in [2, 3, 16] {
            assert_eq!(points(&loads, jobs, &run).unwrap(), one);
        }
    }

    #[test]
    fn saturation_is_found_by_halving() {
        for capacity in [0.0371, 0.45, 0.9999] {
            let found = saturation(&[], 0.001, |rate| Ok::<_, ()>(network(rate, capacity))).unwrap().unwrap();
            assert!(found.stable.rate <= capacity && capacity - found.stable.rate <= 0.001, "{capacity}");
            assert!(found.unstable.unwrap().rate - found.stable.rate <= 0.001);
        }
        let all = saturation(&[], 0.01, |rate| Ok::<_, ()>(network(rate, 2.0))).unwrap().unwrap();
        assert_eq!((all.stable.rate, all.unstable), (1.0, None));
        let mut runs = 0;
        let known = [network(0.4, 0.45), network(0.5, 0.45)];
        let found = saturation(&known, 0.02, |rate| {
            runs += 1;
            Ok::<_, ()>(network(rate, 0.45))
        });
        assert!(runs == 3 && (found.unwrap().unwrap().stable.rate - 0.45).abs() < 0.02, "a known bracket is used");
    }
}
