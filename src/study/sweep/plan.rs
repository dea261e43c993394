//! Which points a sweep runs: grids, samples, and the searches that look at the outcome of earlier points.
//!
//! A plan hands out its points in batches. A batch depends on the sweep file and on the outcome of the batches before,
//! and on nothing else: not on the number of threads, not on what was computed in an earlier process. So the points of
//! a sweep and their order are the same each time.

use super::file::{Levels, Sample, SearchKind, Sweep, number};
use super::pareto::Pareto;
pub use super::points::Point;
use super::points::{grid, passes, repeated, sample};
use super::table::PointResult;

/// Why a plan cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// More points than a sweep may have.
    #[error("the sweep has {0} points; up to {MOST} can be run")]
    TooMany(u128),
    /// The filters let nothing through.
    #[error("the filters leave no point")]
    Nothing,
}

/// Points of a sweep, at most.
pub const MOST: u64 = 1_000_000;

/// The points of a sweep, batch by batch.
pub struct Plan<'a> {
    sweep: &'a Sweep,
    kind: Kind,
    /// How many points have been handed out.
    handed: usize,
}

enum Kind {
    /// Everything at once.
    Fixed(Vec<Point>),
    Saturation(Vec<Bracket>),
    Pareto(Pareto),
}

impl<'a> Plan<'a> {
    /// The plan of a sweep.
    ///
    /// # Errors
    /// It has no point, or too many.
    pub fn new(sweep: &'a Sweep) -> Result<Self, PlanError> {
        let kind = match sweep.file.search.as_ref().map(|search| search.kind) {
            Some(SearchKind::Saturation) => Kind::Saturation(brackets(sweep)?),
            Some(SearchKind::Pareto) => Kind::Pareto(Pareto::default()),
            None => Kind::Fixed(repeated(sweep, combinations(sweep, None)?)),
        };
        let nothing = match &kind {
            Kind::Fixed(points) => points.is_empty(),
            Kind::Saturation(brackets) => brackets.is_empty(),
            Kind::Pareto(_) => false,
        };
        if nothing { Err(PlanError::Nothing) } else { Ok(Self { sweep, kind, handed: 0 }) }
    }

    /// How many points there will be, if that is known.
    pub fn size(&self) -> Option<usize> {
        match &self.kind {
            Kind::Fixed(points) => Some(points.len()),
            _ => None,
        }
    }

    /// The next batch; empty at the end. `facts` is the outcome of every point handed out so far, `None` where it
    /// failed.
    pub fn next(&mut self, facts: &[Option<PointResult>]) -> Vec<Point> {
        let sweep = self.sweep;
        let batch = match &mut self.kind {
            Kind::Fixed(points) if self.handed == 0 => points.clone(),
            Kind::Fixed(_) => Vec::new(),
            Kind::Saturation(brackets) => next_loads(sweep, brackets, facts),
            Kind::Pareto(pareto) => pareto.next(sweep, facts),
        };
        self.handed += batch.len();
        batch
    }

    /// What a search for saturation has found, when its last batch is done.
    pub fn brackets(&self) -> &[Bracket] {
        match &self.kind {
            Kind::Saturation(brackets) => brackets,
            _ => &[],
        }
    }
}

/// The points of grid or sample; an axis that is left out has its first value.
fn combinations(sweep: &Sweep, without: Option<&str>) -> Result<Vec<Point>, PlanError> {
    let mut points = Vec::new();
    for scenario in 0..sweep.scenarios.len() {
        let axes = &sweep.scenarios[scenario].axes;
        let count = |axis: &super::file::Axis| match &axis.levels {
            Levels::List(list) if without != Some(axis.name.as_str()) => list.len() as u128,
            _ => 1,
        };
        let wanted = match sweep.file.sample {
            Sample::Grid => axes.iter().map(count).fold(1, u128::saturating_mul),
            Sample::Random | Sample::LatinHypercube => u128::from(sweep.file.points.unwrap_or(1)),
        };
        let all = wanted.saturating_mul(u128::from(sweep.file.repetitions)).saturating_add(points.len() as u128);
        if all > u128::from(MOST) {
            return Err(PlanError::TooMany(all));
        }
        let made = match sweep.file.sample {
            Sample::Grid => grid(sweep, scenario, without),
            Sample::Random => sample(sweep, scenario, wanted as usize, false, 0),
            Sample::LatinHypercube => sample(sweep, scenario, wanted as usize, true, 0),
        };
        points.extend(made.into_iter().filter(|point| passes(sweep, point)));
    }
    Ok(points)
}

// ------------------------------------------------------------------------------------------------------ saturation

/// The search for the greatest load of one combination of the other axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Bracket {
    /// The combination; the load is its least.
    pub point: Point,
    /// The greatest load that was carried.
    pub carried: Option<f64>,
    /// The least load that was not.
    pub saturated: Option<f64>,
    /// Whether the search is over.
    pub done: bool,
    /// Mean latency of packets at the least load, in cycles.
    unloaded: Option<f64>,
    /// Load and first number of the point that is under way.
    asked: Option<(f64, usize)>,
}

fn load_axis(sweep: &Sweep, scenario: usize) -> (usize, f64, f64) {
    let name = sweep.file.search.as_ref().and_then(|search| search.axis.as_deref()).unwrap_or("");
    let axes = &sweep.scenarios[scenario].axes;
    let at = axes.iter().position(|axis| axis.name == name).expect("the file was checked");
    match axes[at].levels {
        Levels::Between { from, to, .. } => (at, from, to),
        Levels::List(_) => unreachable!("the file was checked"),
    }
}

fn brackets(sweep: &Sweep) -> Result<Vec<Bracket>, PlanError> {
    let name = sweep.file.search.as_ref().and_then(|search| search.axis.as_deref());
    let points = combinations(sweep, name)?;
    Ok(points
        .into_iter()
        .map(|point| Bracket { point, carried: None, saturated: None, done: false, unloaded: None, asked: None })
        .collect())
}

fn next_loads(sweep: &Sweep, brackets: &mut [Bracket], facts: &[Option<PointResult>]) -> Vec<Point> {
    let repetitions = sweep.file.repetitions as usize;
    let mut batch = Vec::new();
    for bracket in brackets {
        let (axis, from, to) = load_axis(sweep, bracket.point.scenario);
        let search = sweep.file.search.as_ref();
        let tolerance = search.and_then(|search| search.tolerance).unwrap_or((to - from) / 100.0);
        let times = search.and_then(|search| search.latency_limit).unwrap_or(crate::curve::LATENCY_LIMIT);
        if let Some((load, first)) = bracket.asked.take() {
            let facts = &facts[first..first + repetitions];
            if (bracket.carried, bracket.saturated) == (None, None) {
                // The first load that is asked for is the least.
                let latencies: Option<Vec<f64>> = facts.iter().map(|facts| facts.as_ref()?.packet_latency()).collect();
                bracket.unloaded = latencies.map(|all| all.iter().sum::<f64>() / all.len() as f64);
            }
            let limit = bracket.unloaded.map_or(f64::INFINITY, |unloaded| unloaded * times);
            let fast = |facts: &PointResult| facts.packet_latency().is_none_or(|latency| latency <= limit);
            let carries = |facts: &PointResult| !facts.is_saturated() && fast(facts);
            if facts.iter().all(|facts| facts.as_ref().is_some_and(carries)) {
                bracket.carried = Some(load);
            } else {
                bracket.saturated = Some(load);
            }
        }
        let load = match (bracket.carried, bracket.saturated) {
            _ if bracket.done => continue,
            // Both ends first: the least load tells what latency is without load, and the whole range may be carried.
            (None, None) => from,
            (Some(low), None) if low < to => to,
            (Some(low), Some(high)) if high - low > tolerance => f64::midpoint(low, high),
            _ => {
                bracket.done = true;
                continue;
            }
        };
        let mut point = bracket.point.clone();
        let text = number(load);
        let load = text.parse().unwrap_or(load);
        point.values[axis] = vec![text];
        bracket.asked = Some((load, facts.len() + batch.len()));
        batch.extend(repeated(sweep, vec![point]));
    }
    batch
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::sweep::front::{front, hypervolume};

    fn sweep(text: &str) -> Sweep {
        let text = format!("{text}\n[[scenario]]\nfile = \"allreduce-die\"\nname = \"die\"\n");
        Sweep::parse("s.toml", &text, Path::new(".")).unwrap_or_else(|problems| panic!("{problems}"))
    }

    const AXES: &str = "[[axis]]\nkey = \"a\"\nvalues = [1, 2, 3, 4]\n[[axis]]\nkey = \"b\"\nvalues = [10, 20, 30]\n";

    #[test]
    fn a_grid_has_all_combinations_in_order_and_filters_cut_it() {
        let sweep = sweep(&format!("repetitions = 2\nfilter = [\"a * 10 <= b\"]\n{AXES}"));
        let points = Plan::new(&sweep).unwrap().next(&[]);
        let shown: Vec<String> = points
            .iter()
            .map(|point| format!("{} {} {}", point.shown(&sweep, "a"), point.shown(&sweep, "b"), point.repetition))
            .collect();
        assert_eq!(
            shown,
            [
                "1 10 0", "1 10 1", "1 20 0", "1 20 1", "1 30 0", "1 30 1", "2 20 0", "2 20 1", "2 30 0", "2 30 1",
                "3 30 0", "3 30 1"
            ]
        );
        assert_eq!(points[2].sets(&sweep), ["a=1", "b=20"]);
    }

    #[test]
    fn a_latin_hypercube_covers_each_axis_evenly() {
        let sweep = sweep(&format!("sample = \"latin-hypercube\"\npoints = 12\n{AXES}"));
        let points = Plan::new(&sweep).unwrap().next(&[]);
        for (name, each) in [("a", 3), ("b", 4)] {
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            for point in &points {
                *counts.entry(point.shown(&sweep, name)).or_default() += 1;
            }
            assert!(counts.values().all(|count| *count == each), "{counts:?}");
        }
        assert_eq!(points, Plan::new(&sweep).unwrap().next(&[]), "the same seed, the same sample");
        let random = self::sweep(&format!("sample = \"random\"\npoints = 400\n{AXES}"));
        let points = Plan::new(&random).unwrap().next(&[]);
        let ones = points.iter().filter(|point| point.shown(&random, "a") == "1").count();
        assert!(points.len() == 400 && (60..140).contains(&ones), "{ones}");
    }

    #[test]
    fn a_sweep_that_is_too_big_is_refused_before_it_is_made() {
        let axis = "[[axis]]\nkey = \"KEY\"\nrange = { from = 1, to = 10000, step = 1 }\n";
        let text: String = ["a", "b", "c"].iter().map(|key| axis.replace("KEY", key)).collect();
        assert_eq!(Plan::new(&sweep(&text)).err(), Some(PlanError::TooMany(1_000_000_000_000)));
        assert_eq!(Plan::new(&sweep(&format!("filter = [\"a > 9\"]\n{AXES}"))).err(), Some(PlanError::Nothing));
    }

    /// A front of many points on a grid of 20 x 20 is found with a quarter of its points.
    #[test]
    fn the_search_finds_a_front_with_fewer_points_than_the_grid_has() {
        finds_a_front(20, 14);
    }

    #[test]
    #[ignore = "takes long: make soak"]
    fn the_search_finds_a_front_with_fewer_points_than_a_larger_grid_has() {
        finds_a_front(40, 36);
    }

    /// Finds at least this many points of the front on a grid with this side, with a quarter of all points.
    fn finds_a_front(side: u32, least: usize) {
        let axis =
            |name: &str| format!("[[axis]]\nkey = \"{name}\"\nrange = {{ from = 0, to = {}, step = 1 }}\n", side - 1);
        let budget = (side * side / 4) as usize;
        let text = format!(
            "[search]\nkind = \"pareto\"\nbudget = {budget}\n[[objective]]\nname = \"f\"\nvalue = \"p\"\n\
             [[objective]]\nname = \"g\"\nvalue = \"q\"\n{}{}",
            axis("a"),
            axis("b")
        );
        let sweep = sweep(&text);
        let (middle, last) = (side / 2, f64::from(side - 1));
        let measure = |point: &Point| {
            let [a, b] = ["a", "b"].map(|name| point.shown(&sweep, name).parse::<f64>().unwrap());
            // The front: b in the middle, any a.
            let aside = (b - f64::from(middle)).abs();
            PointResult::of(serde_json::json!({ "p": a + aside, "q": last - a + aside }))
        };
        let run = || {
            let mut plan = Plan::new(&sweep).unwrap();
            let (mut points, mut facts) = (Vec::new(), Vec::new());
            loop {
                let batch = plan.next(&facts);
                if batch.is_empty() {
                    return points;
                }
                facts.extend(batch.iter().map(|point| Some(measure(point))));
                points.extend(batch);
            }
        };
        let points = run();
        assert!(points.len() <= budget);
        let found = points.iter().filter(|point| point.shown(&sweep, "b") == middle.to_string()).count();
        assert!(found >= least, "{found} of {side} points of the front");
        assert_eq!(points, run());
    }

    /// As many random points have nine tenths of it.
    #[test]
    fn most_of_the_front_of_a_million_points_is_found_in_200() {
        front_of_a_million(200, 0.92);
    }

    #[test]
    #[ignore = "takes long: make soak"]
    fn the_front_of_a_million_points_is_found_in_500() {
        front_of_a_million(500, 0.95);
    }

    /// Six axes of ten levels; a front that can be known: two of them cost what they win, the others only cost. This share of what
    /// it dominates is found with this many points.
    fn front_of_a_million(budget: usize, least: f64) {
        let axis = |name: &str| format!("[[axis]]\nkey = \"{name}\"\nrange = {{ from = 0, to = 9, step = 1 }}\n");
        let text: String = ["a", "b", "c", "d", "e", "f"].map(axis).concat();
        let text = format!(
            "[search]\nkind = \"pareto\"\nbudget = {budget}\n[[objective]]\nname = \"t\"\nvalue = \"p\"\n[[objective]]\nname = \"g\"\nvalue = \"q\"\n{text}"
        );
        let sweep = sweep(&text);
        let cost = |[a, b, c, d, e, f]: [f64; 6]| {
            let time =
                900.0 / (1.0 + a) + 400.0 / (1.0 + b) + 20.0 * (c - 4.0).abs() + 15.0 * (d - 7.0).abs() + 9.0 * e;
            vec![time, 100.0 + 30.0 * a + 55.0 * b + 4.0 * (e + f)]
        };
        let best: Vec<Option<Vec<f64>>> =
            (0..100u8).map(|at| Some(cost([f64::from(at / 10), f64::from(at % 10), 4.0, 7.0, 0.0, 0.0]))).collect();
        let mut plan = Plan::new(&sweep).unwrap();
        let (mut found, mut facts) = (Vec::new(), Vec::new());
        loop {
            let batch = plan.next(&facts);
            if batch.is_empty() {
                break;
            }
            for point in batch {
                let values =
                    ["a", "b", "c", "d", "e", "f"].map(|name| point.shown(&sweep, name).parse::<f64>().unwrap());
                let value = cost(values);
                facts.push(Some(PointResult::of(serde_json::json!({ "p": value[0], "q": value[1] }))));
                found.push(Some(value));
            }
        }
        assert!(found.len() <= budget);
        let whole: Vec<Vec<f64>> = front(&best).into_iter().filter_map(|at| best[at].clone()).collect();
        let reference: Vec<f64> =
            (0..2).map(|at| whole.iter().map(|value| value[at]).fold(0.0, f64::max) * 1.000_1).collect();
        let reached: Vec<Vec<f64>> = front(&found).into_iter().filter_map(|at| found[at].clone()).collect();
        let share = hypervolume(&reached, &reference) / hypervolume(&whole, &reference);
        assert!(share >= least, "{share} with {} points", found.len());
    }

    #[test]
    fn saturation_is_bracketed_for_every_combination() {
        let text = "[search]\nkind = \"saturation\"\naxis = \"rate\"\ntolerance = 0.01\n\
                    [[axis]]\nkey = \"t.rate\"\nrange = { from = 0.1, to = 0.9 }\n[[axis]]\nkey = \"c\"\nvalues = [0.05, 0.33, 0.71, 2]\n";
        let sweep = sweep(text);
        let mut plan = Plan::new(&sweep).unwrap();
        let mut facts = Vec::new();
        loop {
            let batch = plan.next(&facts);
            if batch.is_empty() {
                break;
            }
            for point in batch {
                let [rate, capacity] = ["rate", "c"].map(|name| point.shown(&sweep, name).parse::<f64>().unwrap());
                facts.push(Some(PointResult::of(serde_json::json!({ "measure": { "saturated": rate > capacity } }))));
            }
        }
        let found: Vec<(Option<f64>, Option<f64>)> =
            plan.brackets().iter().map(|bracket| (bracket.carried, bracket.saturated)).collect();
        assert_eq!((found[0].0, found[3]), (None, (Some(0.9), None)));
        for (bracket, capacity) in found[1..3].iter().zip([0.33, 0.71]) {
            let (low, high) = (bracket.0.unwrap(), bracket.1.unwrap());
            assert!(low <= capacity && capacity < high && high - low <= 0.01, "{low} {high}");
        }
        assert!(facts.len() < 30);
    }

    #[test]
    fn a_load_of_long_latency_is_saturated() {
        for (limit, expected) in [("", 0.7), ("latency_limit = 2\n", 0.55), ("latency_limit = 1000\n", 0.9)] {
            let text = format!(
                "[search]\nkind = \"saturation\"\naxis = \"rate\"\ntolerance = 0.01\n{limit}\
                 [[axis]]\nkey = \"t.rate\"\nrange = {{ from = 0.1, to = 0.9 }}\n"
            );
            let sweep = sweep(&text);
            let mut plan = Plan::new(&sweep).unwrap();
            let mut facts = Vec::new();
            while let Some(point) = plan.next(&facts).first() {
                let rate: f64 = point.shown(&sweep, "rate").parse().unwrap();
                // As of a queue: 11.1 at the least load; three times that is reached at 0.7.
                let json = serde_json::json!({
                    "measure": { "saturated": false }, "columns": { "packet_latency": 10.0 / (1.0 - rate) }
                });
                facts.push(Some(PointResult::of(json)));
            }
            let carried = plan.brackets()[0].carried.unwrap();
            assert!((expected - carried).abs() <= 0.01, "{limit}: {carried}");
        }
    }
}
