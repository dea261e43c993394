//! Points of a sweep: values of axes, whether filters let them through, grids and samples.

use super::file::{Levels, Sweep, shown};
use watershed_kernel::Rng;
use watershed_scenario_interface::expr::Value;

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

    /// What the table shows in the column `name` of an axis, or of a whole axis of linked keys.
    pub fn shown(&self, sweep: &Sweep, name: &str) -> String {
        self.found(sweep, name).unwrap_or_default()
    }

    /// The same, if the scenario has such an axis.
    pub(super) fn found(&self, sweep: &Sweep, name: &str) -> Option<String> {
        let axes = || sweep.scenarios[self.scenario].axes.iter().zip(&self.values);
        let column = axes().find_map(|(axis, values)| {
            let at = axis.columns.iter().position(|column| column == name)?;
            Some(shown(values.get(at..=at)?))
        });
        column.or_else(|| axes().find(|(axis, _)| axis.name == name).map(|(_, values)| shown(values)))
    }
}

/// Every point with all its repetitions.
pub(super) fn repeated(sweep: &Sweep, points: Vec<Point>) -> Vec<Point> {
    let again = |point: Point| (0..sweep.file.repetitions).map(move |repetition| Point { repetition, ..point.clone() });
    points.into_iter().flat_map(again).collect()
}

/// What an expression sees of a value that is written so.
pub(super) fn value_of(text: String) -> Value {
    match (text.as_str(), text.parse()) {
        ("true", _) => Value::Truth(true),
        ("false", _) => Value::Truth(false),
        (_, Ok(number)) => Value::Number(number),
        _ => Value::Word(text),
    }
}

/// Whether the filters let a point through.
pub(super) fn passes(sweep: &Sweep, point: &Point) -> bool {
    let value = |name: &str| {
        if name == "scenario" {
            return Some(Value::Word(sweep.scenarios[point.scenario].name.clone()));
        }
        point.found(sweep, name).map(value_of)
    };
    // A scenario without the axis that a filter is about is not touched by it.
    let about = |name: &&str| *name == "scenario" || point.found(sweep, name).is_some();
    sweep
        .filters
        .iter()
        .all(|filter| !filter.names().iter().all(about) || filter.eval(&value).is_some_and(|value| value.is_true()))
}

/// Every value with every other; the last axis runs fastest.
pub(super) fn grid(sweep: &Sweep, scenario: usize, without: Option<&str>) -> Vec<Point> {
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
pub(super) fn uniform(rng: &mut Rng) -> f64 {
    (rng.bits() >> 11) as f64 / (1u64 << 53) as f64
}

/// Points at random; `even`: as many strata on each axis as points, each used once (Latin hypercube).
pub(super) fn sample(sweep: &Sweep, scenario: usize, count: usize, even: bool, stream: u64) -> Vec<Point> {
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
