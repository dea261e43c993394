//! `watershed sweep`: runs scenarios over many values of their parameters.

mod best;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::{Exit, engines, output, print, print_error, progress};
use watershed_study::sweep::best::BestQuery;
use watershed_study::sweep::file::{number, sweep_schema};
use watershed_study::sweep::{self, Changes, MergeOutcome, Options, Report, Row, Store, Sweep, SweepError};

/// Run scenarios over many values of their parameters.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
A sweep file names scenarios, axes (values, ranges, logarithmic ranges, linked keys), how they are combined (grid, random
sample, Latin hypercube), repetitions, filters, metrics, objectives, and searches (saturation, Pareto front). See
testbench/sweeps, and `watershed sweep --schema`.

DIR holds sweep.jsonl, with every point by the hash of its resolved configuration, and points.csv, which is the same
bytes however often the sweep was interrupted and however many threads ran it, and columns.csv, with the unit of each column.

With --shared any number of processes, on one machine or on many that have DIR in common, compute one sweep: each claims a point when
it starts it, takes over points of processes that are gone, and keeps its results in DIR/part-HOST-N. Who finds that all
points are done joins the parts in DIR. The tasks of a Slurm array share DIR by themselves (SLURM_ARRAY_TASK_ID), unless --shard is given.

Examples:
  watershed sweep testbench/sweeps/stages.toml --out out/stages -j 2
  watershed sweep testbench/sweeps/stages.toml --out out/stages --resume
  watershed sweep testbench/sweeps/stages.toml --out out/stages --resume --objective energy_nj
  watershed sweep testbench/sweeps/stages.toml --out part1 --shard 1/2
  watershed sweep merge --out all part1 part2
  watershed sweep testbench/sweeps/stages.toml --out all --shared
  watershed sweep status all
  watershed sweep best out/stages --min gates --where 'latency_ns<200'
  watershed sweep export out/stages --parquet stages.parquet

Exit status:
  0  the sweep is complete; points that failed are in the table
  1  it was stopped before its end (Ctrl-C, SIGTERM, SIGHUP; --resume goes on), merged shards are not all of it, no point could be run,
     an objective has no value, or with --strict a point failed or was refused
  2  the command line, the sweep file or a scenario is wrong, or another process writes into DIR"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Sweep file
    #[arg(value_name = "FILE.toml", required_unless_present = "schema")]
    file: Option<PathBuf>,
    /// Folder of the results; it is made where there is none
    #[arg(short, long, value_name = "DIR", required_unless_present = "schema")]
    out: Option<PathBuf>,
    /// Threads; 0 is one for each processor
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Go on with what is in DIR: nothing that is there is computed again
    #[arg(long)]
    resume: bool,
    /// Run part I of N of the points only, for several machines; `sweep merge` joins the folders
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<(u64, u64)>,
    /// Compute together with all processes that are given the same DIR; goes on with what is there
    #[arg(long, conflicts_with = "shard")]
    shared: bool,
    /// With --shared: a process that was not heard of for so long is gone, and others take its points over
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    stale: u64,
    /// Look for the best of this column as well, as of an `[[objective]]` of the file: less is better, for example area_um2, energy_nj,
    /// power_mw; can be given several times
    #[arg(long, value_name = "COLUMN")]
    objective: Vec<String>,
    /// End with status 1 if any point failed or was refused
    #[arg(long)]
    strict: bool,
    /// Print the JSON Schema of sweep files
    #[arg(long)]
    schema: bool,
    #[command(flatten)]
    _status: super::messages::StatusOptions,
}

#[derive(Debug, Subcommand)]
enum Command {
    Best(best::Arguments),
    Merge(MergeArguments),
    Status(StatusArguments),
    Export(ExportArguments),
}

/// Write the points of a sweep as a Parquet file; the program must be built with `--features parquet`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  watershed sweep export out/stages --parquet stages.parquet")]
struct ExportArguments {
    /// Folder of the results
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The file
    #[arg(long, value_name = "FILE")]
    parquet: PathBuf,
}

/// Say what of a sweep is done, has failed, is under way and is left, and how long that takes.
#[derive(Debug, Args)]
#[command(after_help = "\
The time left is that of the running processes at the rate they have had so far.

Examples:
  watershed sweep status out/all
  watershed sweep status out/part1 out/part2 --json

Exit status:
  0  every point is done
  1  some are not
  2  a folder has no results, or they are of different sweeps")]
struct StatusArguments {
    /// Folders of the shards, or the one that is shared
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Join the results of several shards.
#[derive(Debug, Args)]
#[command(after_help = "\
What is there can be joined at any time, and again later: the result is the same bytes whatever the parts were.

Examples:
  watershed sweep merge --out out/all out/part1 out/part2
  watershed sweep merge --out out/so-far out/shared")]
struct MergeArguments {
    /// Folders of the shards, or the one that is shared
    #[arg(value_name = "DIR", required = true)]
    parts: Vec<PathBuf>,
    /// Folder of the result; it is made where there is none
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
}

#[cfg(feature = "parquet")]
use sweep::export::parquet;

#[cfg(not(feature = "parquet"))]
fn parquet(folder: &Path, _: &Path) -> Result<usize, SweepError> {
    Err(SweepError::Usage(format!(
        "this program was built without Parquet; {} has the same table, and `cargo build --release --features parquet` builds a program that has it",
        folder.join("points.csv").display()
    )))
}

/// Reads `I/N`.
fn shard(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
    match parts {
        Some((part, parts)) if part >= 1 && part <= parts => Ok((part, parts)),
        _ => Err("a shard is I/N with I from 1 to N, for example 2/8".to_owned()),
    }
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    let result = match &arguments.command {
        Some(Command::Merge(merge)) => sweep::merge(&merge.out, &merge.parts).map(|merged| {
            let table = merge.out.join("points.csv");
            let MergeOutcome { points, size, missing } = &merged;
            if missing.is_empty() {
                print(&format!("{points} points in {}", table.display()));
                return true;
            }
            print(&format!("{points} of {} points in {}", size.unwrap_or_default(), table.display()));
            print_error(&missing_points(missing, &merge.out));
            false
        }),
        Some(Command::Best(best)) => best::main(best),
        Some(Command::Status(StatusArguments { folders, json })) => sweep::status(folders).map(|status| {
            if *json {
                print(&serde_json::to_string_pretty(&status).unwrap_or_default());
            } else {
                print(&status.text());
            }
            status.is_complete()
        }),
        Some(Command::Export(export)) => claim(&[("--parquet", export.parquet.clone())], &Store::files(&export.folder))
            .and_then(|_claims| parquet(&export.folder, &export.parquet))
            .map(|points| {
                print(&format!("{points} points in {}", export.parquet.display()));
                true
            }),
        None if arguments.schema => {
            print(&serde_json::to_string_pretty(sweep_schema()).unwrap_or_default());
            Ok(true)
        }
        None => execute(arguments),
    };
    match result {
        Ok(true) => Exit::Fine,
        Ok(false) => Exit::Failed,
        Err(error) => {
            print_error(&error);
            Exit::Bad
        }
    }
}

/// Which points no shard has, and what to do about it.
fn missing_points(missing: &[u64], folder: &Path) -> String {
    const LISTED: usize = 8;
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &number in missing {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let shown = |&(first, last): &(u64, u64)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    let list: Vec<String> = runs.iter().take(LISTED).map(shown).collect();
    let rest = if runs.len() > LISTED { ", …" } else { "" };
    let (count, plural, list) = (missing.len(), if missing.len() == 1 { "" } else { "s" }, list.join(", "));
    format!(
        "note: {count} point{plural} in no shard yet, by the number in column `point`: {list}{rest}\n  `watershed sweep FILE.toml --out {} --resume` runs what remains",
        folder.display()
    )
}

/// What [`output`] says as an error of a sweep.
fn usage(error: String) -> SweepError {
    SweepError::Usage(error.strip_prefix("error: ").map(str::to_owned).unwrap_or(error))
}

/// See [`output::claim`].
fn claim(outputs: &[(&str, PathBuf)], inputs: &[PathBuf]) -> Result<output::OutputLocks, SweepError> {
    output::claim(outputs, inputs).map_err(usage)
}

fn execute(arguments: &Arguments) -> Result<bool, SweepError> {
    let (Some(file), Some(folder)) = (&arguments.file, &arguments.out) else {
        return Err(SweepError::Usage("a sweep needs FILE.toml and --out DIR".into()));
    };
    let read = Sweep::load_with(file, &arguments.objective)?;
    let scenarios = read.scenarios.iter().map(|entry| entry.file.clone());
    let inputs: Vec<PathBuf> = std::iter::once(file.clone()).chain(scenarios).collect();
    let outputs: Vec<_> = Store::files(folder).into_iter().map(|path| ("--out", path)).collect();
    output::check_distinct(&outputs, &inputs).map_err(usage)?;
    output::possible(folder).map_err(|error| SweepError::Write { path: folder.clone(), error })?;
    progress::handle_signals();
    let bar = ProgressBar::hidden();
    let started = std::time::Instant::now();
    let show = |done: usize, size: Option<usize>, failed: usize| {
        progress::count(done, size, "points");
        if !super::shows_progress() || started.elapsed() < progress::QUIET {
            return;
        }
        if bar.is_hidden() {
            let template = if size.is_some() {
                "{bar:30} {percent:>3} %  {pos}/{len} points, {rate}/s, {eta} left{msg}"
            } else {
                "{spinner} {elapsed}  {pos} points, {rate}/s{msg}"
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                let rate = |state: &ProgressState, out: &mut dyn Write| {
                    let _ = write!(out, "{:.1}", state.per_sec());
                };
                bar.set_style(style.with_key("rate", rate));
            }
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        if let Some(size) = size {
            bar.set_length(size as u64);
        }
        bar.set_message(if failed > 0 { format!(", {failed} not ok") } else { String::new() });
        bar.set_position(done as u64);
    };
    let jobs = match arguments.jobs {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        jobs => jobs,
    };
    let shared = shares(arguments, &read).then(|| std::time::Duration::from_secs(arguments.stale));
    let (shard, resume, stop) = (arguments.shard, arguments.resume, &progress::stopped);
    let options = Options { engines: engines(), jobs, shard, shared, resume, stop, progress: &show };
    let outcome = sweep::run(&read, folder, &options);
    bar.finish_and_clear();
    let report = outcome?;
    if let Some(changes) = &report.changes {
        print_error(&changed(changes, report.interrupted));
    }
    for note in &report.notes {
        super::messages::note(note);
    }
    let rows = sweep::rows(folder)?;
    let mut table = folder.join("points.csv").display().to_string();
    if report.elsewhere > 0 {
        let _ = write!(table, ", when the other {} points are done", report.elsewhere);
    }
    print(&summary(&read, &report, &rows, &table));
    let strict = !arguments.strict || rows.iter().all(|row| row.status == "ok");
    Ok(can_answer(&read, &rows) && !report.interrupted && strict)
}

/// Whether the folder is shared: if the user says so, or in a Slurm array of several tasks. A search is one process's: tasks of an array
/// may have one each.
fn shares(arguments: &Arguments, sweep: &Sweep) -> bool {
    let task = |name: &str| std::env::var(name).ok()?.trim().parse::<u64>().ok();
    let several = task("SLURM_ARRAY_TASK_COUNT").is_none_or(|count| count > 1);
    let can = several && arguments.shard.is_none() && !arguments.shared && sweep.file.search.is_none();
    let array = task("SLURM_ARRAY_TASK_ID").filter(|_| can);
    if let Some(number) = array {
        super::messages::note(&format!("task {number} of a Slurm array: the points are shared with the other tasks"));
    }
    arguments.shared || array.is_some()
}

/// What a changed sweep file made of the points of the last run.
fn changed(changes: &Changes, interrupted: bool) -> String {
    let mut out = "note: the sweep or a scenario has changed: points that are still the same are kept".to_owned();
    for line in &changes.what {
        let _ = write!(out, "\n  {line}");
    }
    let Changes { kept, added, dropped, .. } = changes;
    let _ = write!(out, "\n  points: {kept} kept, {added} computed anew");
    if interrupted {
        out.push_str(" before it was stopped");
    } else {
        let _ = write!(out, ", {dropped} of the last time not asked for any more");
    }
    out
}

/// Whether the table can answer what was asked: some point ran, and every objective has a value somewhere. Says what is not so.
fn can_answer(sweep: &Sweep, rows: &[Row]) -> bool {
    let ran: Vec<&Row> = rows.iter().filter(|row| row.status == "ok").collect();
    if ran.is_empty() {
        print_error(&format_args!("error: none of {} points could be run", rows.len()));
        return rows.is_empty();
    }
    let absent = |name: &str| {
        let value = |row: &&Row| row.facts.as_ref().and_then(|facts| facts.column(sweep, name));
        ran.iter().all(|row| value(row).is_none())
    };
    let objectives = sweep.objectives.iter().map(|(name, _)| name);
    let near = |name: &str| {
        let expr = sweep.metrics.iter().find(|(metric, _)| metric == name).map(|(_, expr)| expr.clone());
        let ask = BestQuery { constraints: expr.into_iter().collect(), ..BestQuery::default() };
        let found = ask.unknown(sweep, rows).into_iter().find_map(|(name, near)| Some((name, near?)));
        found.map_or_else(String::new, |(name, near)| format!("\n  `{name}`: did you mean `{near}`?"))
    };
    let metrics =
        sweep.metrics.iter().map(|(name, _)| name).filter(|name| objectives.clone().all(|other| other != *name));
    for name in metrics.filter(|name| absent(name)) {
        print_error(&format_args!(
            "note: metric `{name}` has a value at none of {} points: no result has what it reads{}",
            ran.len(),
            near(name)
        ));
    }
    let mut fine = true;
    for name in objectives.clone().filter(|name| absent(name)) {
        print_error(&format_args!(
            "error: objective `{name}` has a value at none of {} points: no result has what it reads{}",
            ran.len(),
            near(name)
        ));
        fine = false;
    }
    fine
}

/// What a sweep has found, for people.
fn summary(sweep: &Sweep, report: &Report, rows: &[Row], table: &str) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} points: {} computed, {} known already{}{}",
        report.points,
        report.computed,
        report.known - report.equal,
        if report.equal > 0 { format!(", {} the same as others", report.equal) } else { String::new() },
        if report.interrupted { "; stopped before the end" } else { "" }
    );
    for status in ["failed", "refused"] {
        let mut errors: Vec<(&str, usize)> = Vec::new();
        for row in rows.iter().filter(|row| row.status == status) {
            match errors.iter_mut().find(|(error, _)| *error == row.error) {
                Some((_, count)) => *count += 1,
                None => errors.push((&row.error, 1)),
            }
        }
        if errors.is_empty() {
            continue;
        }
        let all: usize = errors.iter().map(|(_, count)| count).sum();
        errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let _ = writeln!(out, "{all} {status}:");
        for (error, count) in errors.iter().take(5) {
            let _ = writeln!(out, "  {count} x {error}");
        }
    }
    if !report.brackets.is_empty() {
        saturation(sweep, report, &mut out);
    }
    best::objectives_summary(sweep, rows, &mut out);
    let _ = writeln!(out, "table          {table}");
    out
}

fn saturation(sweep: &Sweep, report: &Report, out: &mut String) {
    let load = sweep.file.search.as_ref().and_then(|search| search.axis.clone()).unwrap_or_default();
    let axes: Vec<String> = sweep.axis_names().into_iter().filter(|name| *name != load).collect();
    let mut lines = vec![
        std::iter::once("scenario".to_owned())
            .chain(axes.iter().cloned())
            .chain([format!("{load} carried"), "saturated at".into()])
            .collect::<Vec<String>>(),
    ];
    for bracket in &report.brackets {
        let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        lines.push(
            std::iter::once(sweep.scenarios[bracket.point.scenario].name.clone())
                .chain(axes.iter().map(|name| bracket.point.shown(sweep, name)))
                .chain([shown(bracket.carried), shown(bracket.saturated)])
                .collect(),
        );
    }
    columns(&lines, out);
}

/// Lines of words in columns.
pub(super) fn columns(lines: &[Vec<String>], out: &mut String) {
    let count = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |at: usize| lines.iter().filter_map(|line| line.get(at)).map(|word| word.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    for line in lines {
        let words: Vec<String> = line.iter().zip(&widths).map(|(word, width)| format!("{word:>width$}")).collect();
        let _ = writeln!(out, "  {}", words.join("  "));
    }
}
