//! The keys of a sweep's axes, checked against its scenarios before the first point is run.
//!
//! A key that a scenario does not have would make every point fail, one by one. So all keys are set at once, as `--set`
//! would, on the text of each scenario, and errors of the schema are reported at the key's place in the sweep file. A
//! number that is refused is no error of the sweep: its point is kept with the error. A word that is none of those that can
//! stand there is an error, and so is an axis without any value that the scenario's schema allows.

use super::Sweep;
use super::file::{Axis, Levels};
use watershed_scenario_interface::problem::Span;
use watershed_scenario_interface::{Problem, Problems, Source, jobs, schema};

/// Values of an axis that are tried until one fits, at most.
const TRIED: usize = 64;

/// What one override of the scenario stands for in the sweep file.
struct OverrideSource<'a> {
    /// The string that holds the key: `axis[0].key`, or `scenario[0].set[1]`.
    holder: String,
    /// The key, or the whole of a `set`.
    text: &'a str,
    /// Where its value is, unless it stands in the same string.
    value: Option<String>,
}

/// Checks the keys of all axes and all `set` of a sweep.
///
/// # Errors
/// A scenario cannot be read, or has no such key: with line, caret and the nearest name.
pub fn check(sweep: &Sweep) -> Result<(), Problems> {
    let mut problems = Vec::new();
    for (number, entry) in sweep.scenarios.iter().enumerate() {
        let base = super::source(sweep, number)?;
        let mut given: Vec<OverrideSource<'_>> = Vec::new();
        let mut sets: Vec<String> = Vec::new();
        for (at, set) in entry.set.iter().enumerate() {
            given.push(OverrideSource { holder: format!("scenario[{number}].set[{at}]"), text: set, value: None });
            sets.push(set.clone());
        }
        for axis in &entry.axes {
            let unknown = unknown_words(sweep, &base, axis);
            if !unknown.is_empty() {
                let help = format!("the scenario is {}", entry.file.display());
                problems.extend(unknown.into_iter().map(|problem| problem.help(&help)));
                continue;
            }
            let (row, values) = first_valid_values(&base, axis);
            for (at, (key, value)) in axis.keys.iter().zip(&values).enumerate() {
                let (holder, value_at) = match (axis.keys.len(), &axis.levels) {
                    (1, Levels::List(_)) => (format!("{}.key", axis.path), format!("{}.values[{row}]", axis.path)),
                    (1, Levels::Between { .. }) => (format!("{}.key", axis.path), axis.path.clone()),
                    _ => (format!("{}.keys[{at}]", axis.path), format!("{}.values[{row}][{at}]", axis.path)),
                };
                given.push(OverrideSource { holder, text: key, value: Some(value_at) });
                sets.push(format!("{key}={value}"));
            }
        }
        for (problem, span) in override_problems(&base, &sets) {
            let given = &given[span.origin - 1];
            let place = place(sweep.source(), given, &span);
            let problem = match place {
                Some(place) => problem.moved(place),
                None => problem.at_path(given.value.clone().unwrap_or_else(|| given.holder.clone())),
            };
            problems.push(problem.help(format!("the scenario is {}", entry.file.display())));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(sweep.problems(problems)) }
}

/// Words in the list of an axis that no scenario can have there: slips, which would make each of their points fail.
fn unknown_words(sweep: &Sweep, base: &Source, axis: &Axis) -> Vec<Problem> {
    let Levels::List(rows) = &axis.levels else { return Vec::new() };
    let has_words = |row: &Vec<String>| row.iter().any(|value| value.starts_with('"'));
    let mut found = Vec::new();
    for (row, values) in rows.iter().enumerate().filter(|(_, row)| has_words(row)).take(TRIED) {
        let sets: Vec<String> = axis.keys.iter().zip(values).map(|(key, value)| format!("{key}={value}")).collect();
        for (problem, span) in override_problems(base, &sets).into_iter().filter(|(problem, _)| problem.is_of_word()) {
            let at = span.origin - 1;
            let inner = if axis.keys.len() == 1 { String::new() } else { format!("[{at}]") };
            let value = format!("{}.values[{row}]{inner}", axis.path);
            found.push(match sweep.source().locate(&value) {
                Some(place) => problem.moved(place),
                None => problem.at_path(value),
            });
        }
    }
    found
}

/// The first values of an axis that the schema lets through where they stand, and their number; the very first if none does.
fn first_valid_values(base: &Source, axis: &Axis) -> (usize, Vec<String>) {
    let Levels::List(rows) = &axis.levels else { return (0, vec![axis.levels.at(0.0)]) };
    let fits = |row: &&Vec<String>| {
        let sets: Vec<String> = axis.keys.iter().zip(*row).map(|(key, value)| format!("{key}={value}")).collect();
        override_problems(base, &sets).iter().all(|(_, span)| span.start < axis.keys[span.origin - 1].len())
    };
    let at = rows.iter().take(TRIED).position(|row| fits(&row)).unwrap_or(0);
    (at, rows[at].clone())
}

/// What is wrong with these overrides of a scenario, and where in them.
fn override_problems(base: &Source, sets: &[String]) -> Vec<(Problem, Span)> {
    let mut source = base.clone();
    let mut found = jobs::apply(&mut source, sets);
    found.extend(schema::check(source.root()));
    let placed = found.into_iter().filter_map(|problem| {
        let span = problem.span(&source)?;
        // What is wrong with the scenario itself is said when it is loaded.
        (1..=sets.len()).contains(&span.origin).then_some((problem, span))
    });
    placed.collect()
}

/// The piece of the sweep file that a piece of an override was made from.
fn place(source: &Source, given: &OverrideSource<'_>, span: &Span) -> Option<Span> {
    if span.start < given.text.len() {
        return source.span_within(&given.holder, given.text, span.start..span.end.min(given.text.len()));
    }
    source.locate(given.value.as_deref()?)
}
