//! `watershed sweep best`: the best points of a sweep that was run.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value as Json, json};

use super::super::{invocation, print, print_error};
use super::columns;
use watershed_scenario_interface::expr::{Expr, Value};
use watershed_study::sweep::best::{BestPoints, BestQuery, Group};
use watershed_study::sweep::file::{Goal, number};
use watershed_study::sweep::{self, Row, Store, Sweep, SweepError, table};

/// Name the best point of a sweep, or the front of several objectives, under constraints.
#[derive(Debug, Args)]
#[command(after_help = "\
Objectives and constraints are expressions over axes, columns of points.csv, metrics of the sweep file, and any value of
the result document by its path. Without --min and --max the objectives of the sweep file are taken; its constraints hold
beside those of --where. Of repetitions the mean counts.

Examples:
  watershed sweep best out/stages --min gates --where 'latency_ns<200'
  watershed sweep best out/stages --min latency_ns --where 'gates < 7e6' --top 3
  watershed sweep best out/stages --min latency_ns --min storage_bits
  watershed sweep best out/stages --min links.busiest.0.head_wait_cycles --json

Exit status:
  0  the point is named
  1  no point meets the constraints
  2  the command line is wrong, a name is unknown, or DIR holds no sweep")]
pub(super) struct Arguments {
    /// Folder of the results
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Less of this is better; several objectives give a front
    #[arg(long, value_name = "EXPR", value_parser = Expr::parse_argument)]
    min: Vec<Expr>,
    /// More of this is better
    #[arg(long, value_name = "EXPR", value_parser = Expr::parse_argument)]
    max: Vec<Expr>,
    /// Only points for which this holds, for example "latency_ns < 900 and scenario == 'die'"; can be given several times
    #[arg(long = "where", value_name = "EXPR", value_parser = Expr::parse_argument)]
    constraints: Vec<Expr>,
    /// Number of points to name, the best first
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    top: u32,
    /// Print the points as JSON
    #[arg(long)]
    json: bool,
}

/// Values that a hint names, at most.
const WORDS: usize = 4;

/// Points of a front that are printed after a sweep.
const FRONT: usize = 20;

pub(super) fn main(arguments: &Arguments) -> Result<bool, SweepError> {
    let folder = &arguments.folder;
    if !Store::exists(folder) {
        return Err(SweepError::Usage(sweep::no_results(folder)));
    }
    let store = Store::open(folder)?;
    let sweep = sweep::of_store(&store, folder)?;
    let rows = store.rows();
    let goals = |list: &[Expr], goal: Goal| list.iter().map(move |expr| (expr.clone(), goal)).collect::<Vec<_>>();
    let mut objectives = [goals(&arguments.min, Goal::Minimise), goals(&arguments.max, Goal::Maximise)].concat();
    if objectives.is_empty() {
        objectives = BestQuery::of(&sweep).objectives;
    }
    if objectives.is_empty() {
        let text =
            "the sweep has no objective; --min EXPR or --max EXPR says what is best, for example --min latency_ns";
        return Err(SweepError::Usage(text.into()));
    }
    let ask = BestQuery { objectives, constraints: arguments.constraints.clone() }.with_words(&sweep, &rows);
    let unknown: Vec<String> = ask
        .unknown(&sweep, &rows)
        .into_iter()
        .map(|(name, near)| {
            let mut hints = near.map_or_else(String::new, |near| format!("\n  did you mean `{near}`?"));
            for (other, words) in ask.word_values(&sweep, &rows, &name) {
                let quoted: Vec<String> = words.iter().take(WORDS).map(|word| format!("{other} == '{word}'")).collect();
                let _ = write!(
                    hints,
                    "\n  the values of `{other}` are words, which stand in quotes: `{}`",
                    quoted.join("`, `")
                );
            }
            format!("`{name}` is neither an axis nor a column, and no result has a value of that path{hints}")
        })
        .collect();
    if !unknown.is_empty() {
        return Err(SweepError::Usage(unknown.join("\nerror: ")));
    }
    let found = ask.find(&sweep, &rows);
    let most = if ask.objectives.len() > 1 { usize::MAX } else { arguments.top as usize };
    let shown: Vec<&Group<'_>> = found.points.iter().take(most).collect();
    if arguments.json {
        let points: Vec<Json> = shown.iter().map(|group| json(&sweep, &ask, group)).collect();
        print(&serde_json::to_string_pretty(&points).unwrap_or_default());
    }
    if shown.is_empty() {
        print_error(&no_point_message(&sweep, &ask, &rows, &found));
        return Ok(false);
    }
    if !arguments.json {
        let mut out = String::new();
        let what = if ask.objectives.len() > 1 { "Pareto front" } else { "best" };
        table_of(&sweep, &ask, &shown, what, &found, &mut out);
        for group in &shown {
            let _ = writeln!(out, "point {:<8} {}", group.first().number, invocation::line(&group.first().command()));
        }
        print(&out);
    }
    Ok(true)
}

/// What to say if no point is left, with how far the nearest is.
fn no_point_message(sweep: &Sweep, ask: &BestQuery, rows: &[Row], found: &BestPoints<'_>) -> String {
    let constraints: Vec<&Expr> = sweep.constraints.iter().chain(&ask.constraints).collect();
    if constraints.is_empty() || found.feasible > 0 {
        let names: Vec<String> = ask.objectives.iter().map(|(expr, _)| format!("`{expr}`")).collect();
        return format!("error: none of {} points has a value of {}", found.all, names.join(" and "));
    }
    let mut out = format!("error: none of {} points meets all constraints", found.all);
    for constraint in constraints {
        let alone = Group::all(rows).iter().filter(|group| group.meets(sweep, [constraint])).count();
        let _ = write!(out, "\n  {constraint}: {alone} points");
        for name in constraint.names() {
            let values = Group::all(rows).iter().filter_map(|group| group.value(sweep, name)?.number()).fold(
                None,
                |range: Option<(f64, f64)>, value| {
                    let (low, high) = range.unwrap_or((value, value));
                    Some((low.min(value), high.max(value)))
                },
            );
            if let Some((low, high)) = values {
                let _ = write!(out, "; {name} is {} to {}", number(low), number(high));
            }
        }
    }
    out
}

/// What a summary of a sweep says of its objectives.
pub(super) fn objectives_summary(sweep: &Sweep, rows: &[Row], out: &mut String) {
    let ask = BestQuery::of(sweep);
    if ask.objectives.is_empty() {
        return;
    }
    let found = ask.find(sweep, rows);
    let (what, most) = if ask.objectives.len() > 1 { ("Pareto front", FRONT) } else { ("best", 1) };
    let shown: Vec<&Group<'_>> = found.points.iter().take(most).collect();
    if shown.is_empty() {
        if found.feasible < found.all && !sweep.constraints.is_empty() {
            print_error(&format_args!(
                "note:{}",
                no_point_message(sweep, &ask, rows, &found).trim_start_matches("error:")
            ));
        }
        return;
    }
    table_of(sweep, &ask, &shown, what, &found, out);
    if found.points.len() > most && ask.objectives.len() > 1 {
        let _ = writeln!(out, "  … and {} more", found.points.len() - most);
    }
}

/// Names beside those of axes that stand in the table: objectives, and what constraints read.
fn names(sweep: &Sweep, ask: &BestQuery) -> Vec<Expr> {
    let axes = sweep.axis_names();
    let mut list: Vec<Expr> = ask.objectives.iter().map(|(expr, _)| expr.clone()).collect();
    for name in sweep.constraints.iter().chain(&ask.constraints).flat_map(Expr::names) {
        let there = name == "scenario" || axes.iter().any(|axis| axis == name);
        if !there && list.iter().all(|expr| expr.to_string() != name) {
            list.push(Expr::name(name));
        }
    }
    list
}

fn shown(value: Option<Value>) -> String {
    match value {
        Some(Value::Number(value)) => number(value),
        Some(Value::Truth(truth)) => truth.to_string(),
        Some(Value::Word(word)) => word,
        None => String::new(),
    }
}

/// Points as a table with a line in front that says how many there were to choose from.
fn table_of(
    sweep: &Sweep,
    ask: &BestQuery,
    points: &[&Group<'_>],
    what: &str,
    found: &BestPoints<'_>,
    out: &mut String,
) {
    let constraints: Vec<String> = sweep.constraints.iter().chain(&ask.constraints).map(ToString::to_string).collect();
    let under = if constraints.is_empty() {
        String::new()
    } else {
        format!("; {} meet {}", found.feasible, constraints.join(" and "))
    };
    let _ = match what {
        "best" => writeln!(out, "best of {} points{under}:", found.all),
        _ => writeln!(out, "{what}, {} of {} points{under}:", found.points.len(), found.all),
    };
    let (exprs, axes) = (names(sweep, ask), sweep.axis_names());
    let titles = exprs.iter().map(|expr| table::titled(sweep, &expr.to_string()));
    let head = titles.chain(["scenario".into()]).chain(axes.iter().map(|name| table::titled(sweep, name)));
    let mut lines = vec![head.collect::<Vec<String>>()];
    for group in points {
        let values = exprs.iter().map(|expr| shown(group.eval(sweep, expr)));
        let axes = axes.iter().map(|name| table::axis(sweep, group.first(), name).unwrap_or_default());
        lines.push(values.chain([group.first().scenario.clone()]).chain(axes).collect());
    }
    columns(&lines, out);
}

/// A point as JSON: what was asked for, its axes, and how to run it again.
fn json(sweep: &Sweep, ask: &BestQuery, group: &Group<'_>) -> Json {
    let row = group.first();
    let value = |value: Option<Value>| match value {
        Some(Value::Number(value)) => json!(value),
        Some(Value::Truth(truth)) => json!(truth),
        Some(Value::Word(word)) => json!(word),
        None => Json::Null,
    };
    let values: Map<String, Json> =
        names(sweep, ask).iter().map(|expr| (expr.to_string(), value(group.eval(sweep, expr)))).collect();
    let axes = sweep.axis_names().into_iter().filter_map(|name| {
        table::axis(sweep, row, &name)?;
        let value = value(group.value(sweep, &name));
        Some((name, value))
    });
    json!({
        "point": row.number,
        "scenario": row.scenario,
        "axes": axes.collect::<Map<String, Json>>(),
        "values": values,
        "key": row.key,
        "command": row.command(),
    })
}
