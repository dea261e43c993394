//! Which points a sweep runs: grids, samples, and the searches that look at what came of earlier points.
//!
//! A plan hands out its points in batches. A batch depends on the sweep file and on what came of the batches before, and
//! on nothing else: not on the number of threads, not on what was computed in an earlier process. So the points of a sweep and
//! their order are the same each time.

use std::collections::{BTreeMap, BTreeSet};

use super::file::{Goal, Levels, Sample, SearchKind, Sweep, number};
use super::table::Facts;
use watershed_kernel::Rng;
use watershed_scenario::expr::Value;

/// One point: values of all axes of one scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// Number of the scenario.
    pub scenario: usize,
    /// From 0 on.
    pub repetition: u64,
    /// The value of each axis of the scenario; of linked keys one for each.
    pub values: Vec<Vec<String>>,
}

impl Point {
    /// The `--set` arguments that make it of its scenario.
    pub fn sets(&self, sweep: &Sweep) -> Vec<String> {
        let entry = &sweep.scenarios[self.scenario];
        let axes = entry.axes.iter().zip(&self.values);
        let sets =
            axes.flat_map(|(axis, values)| axis.keys.iter().zip(values).map(|(key, value)| format!("{key}={value}")));
        entry.set.iter().cloned().chain(sets).collect()
    }

    /// What the table shows of axis `name`.
    pub fn shown(&self, sweep: &Sweep, name: &str) -> String {
        let axes = &sweep.scenarios[self.scenario].axes;
        axes.iter().position(|axis| axis.name == name).map_or_else(String::new, |at| shown(&self.values[at]))
    }
}

/// A value as people write it: words without quotes.
fn shown(values: &[String]) -> String {
    let plain =
        |text: &String| text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).to_owned();
    values.iter().map(plain).collect::<Vec<_>>().join(" ")
}

/// Why a plan cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
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
    pub fn new(sweep: &'a Sweep) -> Result<Self, Impossible> {
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
        if nothing { Err(Impossible::Nothing) } else { Ok(Self { sweep, kind, handed: 0 }) }
    }

    /// How many points there will be, if that is known.
    pub fn size(&self) -> Option<usize> {
        match &self.kind {
            Kind::Fixed(points) => Some(points.len()),
            _ => None,
        }
    }

    /// The next batch; empty at the end. `facts` is what came of every point handed out so far, `None` where it failed.
    pub fn next(&mut self, facts: &[Option<Facts>]) -> Vec<Point> {
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

/// Every point with all its repetitions.
fn repeated(sweep: &Sweep, points: Vec<Point>) -> Vec<Point> {
    let again = |point: Point| (0..sweep.file.repetitions).map(move |repetition| Point { repetition, ..point.clone() });
    points.into_iter().flat_map(again).collect()
}

/// Whether the filters let a point through.
fn passes(sweep: &Sweep, point: &Point) -> bool {
    let axes = &sweep.scenarios[point.scenario].axes;
    let value = |name: &str| {
        if name == "scenario" {
            return Some(Value::Word(sweep.scenarios[point.scenario].name.clone()));
        }
        let at = axes.iter().position(|axis| axis.name == name)?;
        let text = shown(&point.values[at]);
        Some(match (text.as_str(), text.parse()) {
            ("true", _) => Value::Truth(true),
            ("false", _) => Value::Truth(false),
            (_, Ok(number)) => Value::Number(number),
            _ => Value::Word(text),
        })
    };
    // A scenario without the axis that a filter is about is not touched by it.
    let about = |name: &&str| *name == "scenario" || axes.iter().any(|axis| axis.name == **name);
    sweep
        .filters
        .iter()
        .all(|filter| !filter.names().iter().all(about) || filter.eval(&value).is_some_and(|value| value.holds()))
}

/// The points of grid or sample; an axis that is left out has its first value.
fn combinations(sweep: &Sweep, without: Option<&str>) -> Result<Vec<Point>, Impossible> {
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
            return Err(Impossible::TooMany(all));
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

/// Every value with every other; the last axis runs fastest.
fn grid(sweep: &Sweep, scenario: usize, without: Option<&str>) -> Vec<Point> {
    let mut rows: Vec<Vec<Vec<String>>> = vec![Vec::new()];
    for axis in &sweep.scenarios[scenario].axes {
        let values = match &axis.levels {
            Levels::List(list) if without != Some(axis.name.as_str()) => list.clone(),
            Levels::List(list) => vec![list[0].clone()],
            Levels::Between { .. } => vec![vec![axis.levels.at(0.0)]],
        };
        let longer = |row: &Vec<Vec<String>>| -> Vec<Vec<Vec<String>>> {
            values.iter().map(|value| row.iter().cloned().chain([value.clone()]).collect()).collect()
        };
        rows = rows.iter().flat_map(longer).collect();
    }
    rows.into_iter().map(|values| Point { scenario, repetition: 0, values }).collect()
}

/// A number from 0 up to, not including, 1.
fn uniform(rng: &mut Rng) -> f64 {
    (rng.bits() >> 11) as f64 / (1u64 << 53) as f64
}

/// Points by chance; `even`: as many strata on each axis as points, each used once (Latin hypercube).
fn sample(sweep: &Sweep, scenario: usize, count: usize, even: bool, stream: u64) -> Vec<Point> {
    let axes = &sweep.scenarios[scenario].axes;
    let mut columns: Vec<Vec<f64>> = Vec::new();
    for axis in 0..axes.len() {
        let mut rng = Rng::new(sweep.file.seed, 0x5a3b_1e00 + (stream << 20) + ((scenario as u64) << 10) + axis as u64);
        let mut strata: Vec<usize> = (0..count).collect();
        rng.shuffle(&mut strata);
        let place = |stratum: usize, rng: &mut Rng| {
            if even { (stratum as f64 + uniform(rng)) / count as f64 } else { uniform(rng) }
        };
        columns.push(strata.into_iter().map(|stratum| place(stratum, &mut rng)).collect());
    }
    let value = |axis: usize, row: usize| match &axes[axis].levels {
        Levels::List(list) => list[((columns[axis][row] * list.len() as f64) as usize).min(list.len() - 1)].clone(),
        between @ Levels::Between { .. } => vec![between.at(columns[axis][row])],
    };
    (0..count)
        .map(|row| Point { scenario, repetition: 0, values: (0..axes.len()).map(|axis| value(axis, row)).collect() })
        .collect()
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

fn brackets(sweep: &Sweep) -> Result<Vec<Bracket>, Impossible> {
    let name = sweep.file.search.as_ref().and_then(|search| search.axis.as_deref());
    let points = combinations(sweep, name)?;
    Ok(points
        .into_iter()
        .map(|point| Bracket { point, carried: None, saturated: None, done: false, unloaded: None, asked: None })
        .collect())
}

fn next_loads(sweep: &Sweep, brackets: &mut [Bracket], facts: &[Option<Facts>]) -> Vec<Point> {
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
            let fast = |facts: &Facts| facts.packet_latency().is_none_or(|latency| latency <= limit);
            let carries = |facts: &Facts| !facts.is_saturated() && fast(facts);
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

// ---------------------------------------------------------------------------------------------------------- Pareto

/// The search for a Pareto front: a sample first, then neighbours of the front, generation by generation.
#[derive(Debug, Default)]
struct Pareto {
    generation: u64,
    /// What was handed out, without repetitions.
    points: Vec<Point>,
    seen: BTreeSet<(usize, Vec<Vec<String>>)>,
}

/// Points of a generation.
const GENERATION: usize = 16;

impl Pareto {
    fn next(&mut self, sweep: &Sweep, facts: &[Option<Facts>]) -> Vec<Point> {
        let search = sweep.file.search.as_ref().expect("there is a search");
        let budget = search.budget.unwrap_or(1) as usize;
        let mut candidates = Vec::new();
        if self.generation == 0 {
            let initial = search.initial.map_or(budget.div_ceil(4), |initial| initial as usize).max(1);
            let each = initial.div_ceil(sweep.scenarios.len());
            for scenario in 0..sweep.scenarios.len() {
                candidates.extend(sample(sweep, scenario, each, true, 0));
            }
        } else {
            let repetitions = sweep.file.repetitions as usize;
            let values: Vec<Option<Vec<f64>>> = (0..self.points.len())
                .map(|at| mean_objectives(sweep, &facts[at * repetitions..(at + 1) * repetitions]))
                .collect();
            for at in front(&values) {
                candidates.extend(neighbours(sweep, &self.points[at]));
            }
            let mut rng = Rng::new(sweep.file.seed, 0x9a4e_7000 + self.generation);
            rng.shuffle(&mut candidates);
            // Some fresh ones beside: a front that is cut off from the rest is found by them only.
            for scenario in 0..sweep.scenarios.len() {
                let fresh = sample(sweep, scenario, 2, false, self.generation);
                let at = candidates.len().min(GENERATION - 2);
                candidates.splice(at..at, fresh);
            }
        }
        let most = if self.generation == 0 { usize::MAX } else { GENERATION };
        let mut batch = Vec::new();
        let mut take = |seen: &mut BTreeSet<_>, points: &mut Vec<Point>, point: Point| {
            if points.len() < budget
                && batch.len() < most
                && passes(sweep, &point)
                && seen.insert((point.scenario, point.values.clone()))
            {
                points.push(point.clone());
                batch.push(point);
            }
        };
        for point in candidates {
            take(&mut self.seen, &mut self.points, point);
        }
        // All neighbours are known: go on by chance, as long as that finds anything new.
        for attempt in 0..64 {
            for scenario in 0..sweep.scenarios.len() {
                let fresh = sample(sweep, scenario, 1, false, (self.generation << 8) + attempt + 1000);
                if self.generation > 0 {
                    for point in fresh {
                        take(&mut self.seen, &mut self.points, point);
                    }
                }
            }
        }
        self.generation += 1;
        repeated(sweep, batch)
    }
}

/// The mean of each objective over all repetitions, less being better; `None` if one of them has none.
pub fn mean_objectives(sweep: &Sweep, facts: &[Option<Facts>]) -> Option<Vec<f64>> {
    let mut sums = vec![0.0; sweep.objectives.len()];
    for facts in facts {
        let facts = facts.as_ref()?;
        for (sum, (name, goal)) in sums.iter_mut().zip(&sweep.objectives) {
            let value = facts.column(sweep, name)?.number()?;
            *sum += if *goal == Goal::Minimise { value } else { -value };
        }
    }
    Some(sums.into_iter().map(|sum| sum / facts.len().max(1) as f64).collect())
}

/// Numbers of those that no other dominates, of several equal ones the first.
pub fn front(values: &[Option<Vec<f64>>]) -> Vec<usize> {
    let dominates = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a <= b) && a.iter().zip(b).any(|(a, b)| a < b);
    let known: Vec<(usize, &Vec<f64>)> =
        values.iter().enumerate().filter_map(|(at, value)| value.as_ref().map(|value| (at, value))).collect();
    let mut best: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
    for (at, value) in &known {
        if !known.iter().any(|(_, other)| dominates(other, value)) {
            let key = value.iter().map(|value| value.to_bits()).collect();
            best.entry(key).or_insert(*at);
        }
    }
    let mut list: Vec<usize> = best.into_values().collect();
    list.sort_unstable();
    list
}

/// The points one step away on one axis.
fn neighbours(sweep: &Sweep, point: &Point) -> Vec<Point> {
    let mut out = Vec::new();
    for (at, axis) in sweep.scenarios[point.scenario].axes.iter().enumerate() {
        let mut with = |value: Vec<String>| {
            let mut next = point.clone();
            next.values[at] = value;
            next.repetition = 0;
            out.push(next);
        };
        match &axis.levels {
            Levels::List(list) => {
                let Some(level) = list.iter().position(|level| *level == point.values[at]) else { continue };
                for next in
                    [level.checked_sub(1), Some(level + 1).filter(|next| *next < list.len())].into_iter().flatten()
                {
                    with(list[next].clone());
                }
            }
            between @ Levels::Between { from, to, log, .. } => {
                let Ok(value) = point.values[at][0].parse::<f64>() else { continue };
                let place = if *log { (value / from).ln() / (to / from).ln() } else { (value - from) / (to - from) };
                for step in [-0.1, -0.02, 0.02, 0.1] {
                    with(vec![between.at((place + step).clamp(0.0, 1.0))]);
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

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
        assert_eq!(Plan::new(&sweep(&text)).err(), Some(Impossible::TooMany(1_000_000_000_000)));
        assert_eq!(Plan::new(&sweep(&format!("filter = [\"a > 9\"]\n{AXES}"))).err(), Some(Impossible::Nothing));
    }

    #[test]
    fn a_front_has_what_nothing_dominates() {
        let values =
            [[1.0, 9.0], [2.0, 5.0], [2.0, 6.0], [3.0, 5.0], [9.0, 1.0], [2.0, 5.0]].map(|value| Some(value.to_vec()));
        assert_eq!(front(&values), [0, 1, 4]);
        assert_eq!(front(&[None, Some(vec![1.0, 1.0])]), [1]);
    }

    /// A front of many points on a grid of 40 x 40 is found with a quarter of its points.
    #[test]
    fn the_search_finds_a_front_with_fewer_points_than_the_grid_has() {
        let text = "[search]\nkind = \"pareto\"\nbudget = 400\n[[objective]]\nname = \"f\"\nvalue = \"p\"\n[[objective]]\nname = \"g\"\nvalue = \"q\"\n\
                    [[axis]]\nkey = \"a\"\nrange = { from = 0, to = 39, step = 1 }\n[[axis]]\nkey = \"b\"\nrange = { from = 0, to = 39, step = 1 }\n";
        let sweep = sweep(text);
        let measure = |point: &Point| {
            let [a, b] = ["a", "b"].map(|name| point.shown(&sweep, name).parse::<f64>().unwrap());
            // The front: b = 20, any a.
            Facts::of(serde_json::json!({ "p": a + (b - 20.0).abs(), "q": 39.0 - a + (b - 20.0).abs() }))
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
        assert!(points.len() <= 400);
        let found = points.iter().filter(|point| point.shown(&sweep, "b") == "20").count();
        assert!(found >= 36, "{found} of 40 points of the front");
        assert_eq!(points, run());
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
                facts.push(Some(Facts::of(serde_json::json!({ "measure": { "saturated": rate > capacity } }))));
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
                facts.push(Some(Facts::of(json)));
            }
            let carried = plan.brackets()[0].carried.unwrap();
            assert!((expected - carried).abs() <= 0.01, "{limit}: {carried}");
        }
    }
}
