//! The best points of a sweep: one objective has a best point, several have a front, and constraints say which points count.
//!
//! Repetitions of a point count as one point: their mean counts, and a point with a failed repetition does not count.

use std::collections::{BTreeMap, BTreeSet};

use watershed_scenario_interface::expr::{Expr, Value};
use watershed_scenario_interface::names::nearest;

use super::file::{Goal, Sweep};
use super::front::front;
use super::points::{Point, value_of};
use super::store::Row;
use super::table::{BUILT_IN, PointResult, axis};

/// A point with all its repetitions.
#[derive(Debug, Clone)]
pub struct Group<'a>(Vec<&'a Row>);

impl<'a> Group<'a> {
    /// All points, in the order of their numbers.
    pub fn all(rows: &'a [Row]) -> Vec<Self> {
        let mut points: BTreeMap<(&str, &[String]), Vec<&Row>> = BTreeMap::new();
        for row in rows {
            points.entry((&row.scenario, &row.sets)).or_default().push(row);
        }
        let mut groups: Vec<Self> = points.into_values().map(Self).collect();
        groups.sort_by_key(|group| group.first().number);
        groups
    }

    /// The row that stands for it.
    pub fn first(&self) -> &'a Row {
        self.0[0]
    }

    /// What an expression sees under a name: an axis, a column, a metric, or a value of the result by its path.
    pub fn value(&self, sweep: &Sweep, name: &str) -> Option<Value> {
        let first = self.first();
        match name {
            "scenario" => return Some(Value::Word(first.scenario.clone())),
            "status" => return Some(Value::Word(first.status.clone())),
            _ => {}
        }
        if let Some(value) = axis(sweep, first, name) {
            return Some(value_of(value));
        }
        let of = |row: &&Row| {
            let facts: &PointResult = row.facts.as_ref().filter(|_| row.status == "ok")?;
            match name {
                "seed" => Some(Value::Number(row.seed as f64)),
                _ => facts.column(sweep, name).or_else(|| facts.named(name)),
            }
        };
        mean(self.0.iter().map(of).collect::<Option<Vec<Value>>>()?)
    }

    /// The value of an expression.
    pub fn eval(&self, sweep: &Sweep, expr: &Expr) -> Option<Value> {
        expr.eval(&|name| self.value(sweep, name))
    }

    /// Whether it has run, and meets all constraints.
    pub fn meets<'b>(&self, sweep: &Sweep, constraints: impl IntoIterator<Item = &'b Expr>) -> bool {
        let ran = self.0.iter().all(|row| row.status == "ok");
        ran && constraints.into_iter().all(|expr| self.eval(sweep, expr).is_some_and(|value| value.is_true()))
    }
}

/// Whether a point that has run breaks a constraint of the sweep.
pub fn breaks_constraint(sweep: &Sweep, point: &Point, facts: &[Option<PointResult>]) -> bool {
    let value = |facts: &PointResult, name: &str| match name {
        "scenario" => Some(Value::Word(sweep.scenarios[point.scenario].name.clone())),
        _ => point.found(sweep, name).map(value_of).or_else(|| facts.column(sweep, name)).or_else(|| facts.named(name)),
    };
    let of_all = |name: &str| mean(facts.iter().map(|facts| value(facts.as_ref()?, name)).collect::<Option<_>>()?);
    sweep.constraints.iter().any(|expr| !expr.eval(&of_all).is_some_and(|value| value.is_true()))
}

/// What repetitions have together: of numbers the mean, of words the first.
fn mean(values: Vec<Value>) -> Option<Value> {
    match values.iter().map(Value::number).collect::<Option<Vec<f64>>>() {
        Some(numbers) if values.len() > 1 => Some(Value::Number(numbers.iter().sum::<f64>() / numbers.len() as f64)),
        _ => values.into_iter().next(),
    }
}

/// Objectives and constraints of the search.
#[derive(Debug, Clone, Default)]
pub struct BestQuery {
    /// Objectives, and whether less is better.
    pub objectives: Vec<(Expr, Goal)>,
    /// What a point must meet beside the constraints of the sweep.
    pub constraints: Vec<Expr>,
}

/// The best points, and how many there are.
#[derive(Debug, Clone)]
pub struct BestPoints<'a> {
    /// The points: of one objective all that meet the constraints, best first; of several their front.
    pub points: Vec<Group<'a>>,
    /// How many points have run and meet the constraints.
    pub feasible: usize,
    /// How many points there are.
    pub all: usize,
}

impl BestQuery {
    /// What the sweep file itself asks for.
    pub fn of(sweep: &Sweep) -> Self {
        let objectives = sweep.objectives.iter().map(|(name, goal)| (Expr::name(name), *goal));
        Self { objectives: objectives.collect(), constraints: Vec::new() }
    }

    /// Names that no axis, no column and no result has, each with the nearest that is there.
    pub fn unknown(&self, sweep: &Sweep, rows: &[Row]) -> Vec<(String, Option<String>)> {
        let exprs = self.objectives.iter().map(|(expr, _)| expr).chain(&self.constraints);
        let mut known: Vec<String> =
            ["scenario", "seed", "status"].iter().chain(&BUILT_IN).map(ToString::to_string).collect();
        known.extend(sweep.axis_names());
        known.extend(sweep.metrics.iter().map(|(name, _)| name.clone()));
        let mut paths = Vec::new();
        let mut unknown: Vec<(String, Option<String>)> = Vec::new();
        for name in exprs.flat_map(Expr::names) {
            let read = |row: &Row| row.facts.as_ref().is_some_and(|facts| facts.named(name).is_some());
            if known.iter().any(|other| other == name)
                || unknown.iter().any(|(other, _)| other == name)
                || rows.iter().any(read)
            {
                continue;
            }
            if paths.is_empty() {
                paths = rows.iter().filter_map(|row| row.facts.as_ref()).flat_map(PointResult::paths).collect();
                paths.sort_unstable();
                paths.dedup();
            }
            let column = nearest(name, &known);
            // The last part of a path may be right although what is before it is not, or is missing.
            let last = name.rsplit('.').next().unwrap_or(name);
            let ends = |path: &&String| path.rsplit('.').next() == Some(last);
            let path = nearest(name, &paths).or_else(|| paths.iter().find(ends).cloned());
            unknown.push((name.to_owned(), column.or(path)));
        }
        unknown
    }

    /// The same, with names in constraints for words that nothing else has, where they are compared with what has such a value.
    #[must_use]
    pub fn with_words(mut self, sweep: &Sweep, rows: &[Row]) -> Self {
        let unknown = self.unknown(sweep, rows);
        if unknown.is_empty() {
            return self;
        }
        let groups = Group::all(rows);
        let has = |name: &str, word: &str| {
            groups.iter().any(|group| matches!(group.value(sweep, name), Some(Value::Word(value)) if value == word))
        };
        let is_word = |name: &str, word: &str| unknown.iter().any(|(other, _)| other == word) && has(name, word);
        self.constraints = self.constraints.iter().map(|expr| expr.with_words(&is_word)).collect();
        self
    }

    /// Names in the constraint of an unknown name that have words for values, each with its words.
    pub fn word_values(&self, sweep: &Sweep, rows: &[Row], unknown: &str) -> Vec<(String, Vec<String>)> {
        let groups = Group::all(rows);
        let words = |name: &str| -> Vec<String> {
            let word = |group: &Group<'_>| match group.value(sweep, name) {
                Some(Value::Word(word)) => Some(word),
                _ => None,
            };
            groups.iter().filter_map(word).collect::<BTreeSet<String>>().into_iter().collect()
        };
        let about = self.constraints.iter().find(|expr| expr.names().contains(&unknown));
        let names: BTreeSet<&str> = about.into_iter().flat_map(Expr::names).collect();
        names.into_iter().map(|name| (name.to_owned(), words(name))).filter(|(_, words)| !words.is_empty()).collect()
    }

    /// Looks for the best points.
    pub fn find<'a>(&self, sweep: &Sweep, rows: &'a [Row]) -> BestPoints<'a> {
        let groups = Group::all(rows);
        let all = groups.len();
        let constraints = || sweep.constraints.iter().chain(&self.constraints);
        let feasible: Vec<Group<'a>> = groups.into_iter().filter(|group| group.meets(sweep, constraints())).collect();
        let cost = |group: &Group<'a>| {
            let value = |(expr, goal): &(Expr, Goal)| {
                let value = group.eval(sweep, expr)?.number()?;
                Some(if *goal == Goal::Minimise { value } else { -value })
            };
            self.objectives.iter().map(value).collect::<Option<Vec<f64>>>()
        };
        let costs: Vec<Option<Vec<f64>>> = feasible.iter().map(cost).collect();
        let order = if self.objectives.len() > 1 {
            front(&costs)
        } else {
            let mut order: Vec<usize> = (0..costs.len()).filter(|at| costs[*at].is_some()).collect();
            let first = |at: usize| costs[at].as_ref().and_then(|cost| cost.first()).copied().unwrap_or(0.0);
            order.sort_by(|a, b| first(*a).total_cmp(&first(*b)));
            order
        };
        let points = order.into_iter().map(|at| feasible[at].clone()).collect();
        BestPoints { points, feasible: feasible.len(), all }
    }
}

/// The front of a sweep with two or three objectives: rows of which none is better in one without being worse in
/// another; with repetitions, the mean decides and the first row of a point stands for it.
pub fn pareto<'a>(sweep: &Sweep, rows: &'a [Row]) -> Vec<&'a Row> {
    if sweep.objectives.len() < 2 {
        return Vec::new();
    }
    BestQuery::of(sweep).find(sweep, rows).points.iter().map(Group::first).collect()
}
