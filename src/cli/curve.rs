//! `watershed curve`: latency and throughput over offered load.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use clap::Args;
use serde::Serialize;

use super::run::ScenarioArguments;
use super::{Exit, output, print, print_error, progress};
use watershed_scenario_interface::Runnable;
use watershed_scenario_interface::config::{Injection, TrafficPattern};
use watershed_scenario_interface::result::Outcome;
use watershed_scenario_interface::run::RunOptions;
use watershed_study::curve::{self, Cause, Curve, Point};
use watershed_study::plot::{Plot, Series};

/// Measure latency and throughput over offered load
#[derive(Debug, Args)]
#[command(after_help = "\
A run for every offered load, in ascending order, up to the first that is saturated. A load is saturated if packets of the
window have not all arrived in time, if less than 95 % of what was offered in it was accepted, or if the mean latency
exceeds --latency-limit times that of zero load. Zero load is 0.01 flits a node and cycle, or the lowest of --rates if
that is lower. Between the last load that is not saturated and the first that is, loads are halved until they are
--tolerance apart, so that the knee has points of its own.

Examples:
  watershed curve mesh-uniform --svg curve.svg
  watershed curve mesh-transpose --rates 0.1..0.6:0.1 --csv curve.csv --svg curve.svg --out out
  watershed curve mesh-uniform --saturation --tolerance 0.001
  watershed curve mesh-uniform --latency-limit inf

Exit status:
  0  the curve was measured
  1  it was stopped before its end (Ctrl-C, SIGTERM, SIGHUP); the points so far are printed and written
  2  the command line or a scenario is wrong, or a file cannot be written")]
pub(super) struct Arguments {
    #[command(flatten)]
    scenario: ScenarioArguments,
    /// Offered loads in flits a node and cycle: numbers and ranges FROM..TO:STEP, separated by commas
    #[arg(long, value_name = "LOADS", default_value = "0.01,0.05..1:0.05", value_parser = LoadList::read)]
    rates: LoadList,
    /// Look for saturation up to a load of 1 if none of the loads is saturated, and print the saturation throughput
    #[arg(long)]
    saturation: bool,
    /// How closely the loads on both sides of saturation lie, in flits a node and cycle, from 0.0001; 1 leaves the curve as coarse as --rates
    #[arg(long, value_name = "LOAD", default_value = "0.005", value_parser = tolerance)]
    tolerance: f64,
    /// Mean latency in multiples of that of zero load beyond which a load is saturated, more than 1; inf leaves this criterion out
    #[arg(long, value_name = "TIMES", default_value_t = curve::LATENCY_LIMIT, value_parser = times)]
    latency_limit: f64,
    /// Another scenario whose curve is drawn beside; can be given several times
    #[arg(long, value_name = "SCENARIO")]
    add: Vec<PathBuf>,
    /// Measured points to draw beside the curves: CSV, offered load and latency on each line; can be given several times
    #[arg(long, value_name = "FILE")]
    points: Vec<PathBuf>,
    /// Threads; 0 is one for each processor
    #[arg(short, long, value_name = "N", default_value = "1")]
    jobs: usize,
    /// Draw latency over offered load into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the points as CSV into this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write every file that is named without a folder into this one
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the curves as JSON
    #[arg(long)]
    json: bool,
    /// Leave out link monitors
    #[arg(long)]
    no_checks: bool,
    #[command(flatten)]
    _status: super::messages::StatusOptions,
}

/// A list of loads, as one argument.
#[derive(Debug, Clone)]
struct LoadList(Vec<f64>);

impl LoadList {
    fn read(text: &str) -> Result<LoadList, String> {
        curve::rates(text).map(LoadList)
    }
}

/// Reads a distance of loads.
fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (1e-4..=1.0).contains(number));
    number.ok_or_else(|| "expected a number from 0.0001 to 1, for example 0.005".into())
}

/// Reads multiples of a latency.
fn times(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|&number| number > 1.0);
    number.ok_or_else(|| "expected a number above 1, for example 3, or inf".into())
}

#[derive(Serialize)]
struct Output<'a> {
    schema_version: u32,
    curves: &'a [Curve],
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    match execute(arguments) {
        Ok(()) if progress::stopped() => {
            print_error(&"stopped before the end: points that are missing were not measured");
            Exit::Failed
        }
        Ok(()) => Exit::Fine,
        Err(error) => {
            print_error(&error);
            Exit::Bad
        }
    }
}

fn execute(arguments: &Arguments) -> Result<(), String> {
    let place = |path: &PathBuf| output::place(arguments.out.as_deref(), path);
    let (drawing, points) = (arguments.svg.as_ref().map(place), arguments.csv.as_ref().map(place));
    let svg = drawing.iter().map(|path| ("--svg", path.clone()));
    let outputs: Vec<_> = points.iter().map(|path| ("--csv", path.clone())).chain(svg).collect();
    let scenario = std::iter::once(arguments.scenario.file());
    let read = arguments.add.iter().chain(&arguments.points).map(PathBuf::as_path).chain(scenario);
    let _claims = output::claim(&outputs, &read.map(PathBuf::from).collect::<Vec<_>>())?;
    progress::handle_signals();
    let peers: Vec<Series> = arguments.points.iter().map(read_csv_series).collect::<Result<_, _>>()?;
    let mut curves = vec![measure(arguments, &arguments.scenario)?];
    for path in arguments.add.iter().take_while(|_| !progress::stopped()) {
        curves.push(measure(arguments, &arguments.scenario.with(path.clone()))?);
    }
    if let Some(path) = &points {
        output::write(path, csv(&curves))?;
    }
    if let Some(path) = &drawing {
        output::write(path, plot(&curves, peers).svg())?;
    }
    if arguments.json {
        let output = Output { schema_version: curve::SCHEMA_VERSION, curves: &curves };
        print(&(serde_json::to_string_pretty(&output).unwrap_or_default() + "\n"));
    } else {
        print(&table(&curves));
    }
    Ok(())
}

/// The curve of one scenario.
fn measure(arguments: &Arguments, scenario: &ScenarioArguments) -> Result<Curve, String> {
    // A window that outlives the traffic is refused, but here traffic goes on: what is varied is asked of a short one.
    let short = ["measure.warmup_cycles=0", "measure.measure_cycles=1"].map(str::to_owned);
    let first = scenario.load_with(&[]).or_else(|error| scenario.load_with(&short).map_err(|_| error));
    let first = first.map_err(|error| error.to_string())?;
    let mut fixed = Vec::new();
    if first.scenario.measure.is_none() {
        fixed.push("measure={}".to_owned());
    }
    let swept = varied_traffics(&first);
    if swept.is_empty() {
        return Err(format!(
            "error: no traffic of \"{}\" has a rate that could be varied\n  = help: flows, traces and closed loops have none",
            first.scenario.name
        ));
    }
    let measured: Mutex<Vec<Point>> = Mutex::default();
    let point = |rate: f64| -> Result<Point, String> {
        let mut sets = fixed.clone();
        sets.extend(swept.iter().map(|index| format!("traffic.{index}.rate={rate}")));
        sets.extend(swept.iter().filter(|index| first.scenario.traffic[**index].stop_cycle.is_some()).map(|index| {
            // A window needs traffic that outlives it.
            format!("traffic.{index}.stop_cycle={}", watershed_scenario_interface::limits::CYCLES)
        }));
        let loaded = scenario.load_with(&sets).map_err(|error| error.to_string())?;
        let options = RunOptions { no_checks: arguments.no_checks, ..RunOptions::default() };
        let result = loaded.run(&options).map_err(|error| error.to_string())?;
        if result.document.outcome == Outcome::Interrupted {
            return Err(String::new());
        }
        if let Some(check) = result.document.checks.iter().find(|check| !check.passed) {
            return Err(format!("error: at a load of {rate}, check \"{}\" failed: {}", check.name, check.detail));
        }
        let point = Point::of(rate, &result.document)
            .ok_or_else(|| format!("error: the run at a load of {rate} did not reach its window"))?;
        let mut measured = measured.lock().unwrap_or_else(PoisonError::into_inner);
        measured.push(point.clone());
        progress::count(measured.len(), None, "points");
        Ok(point)
    };
    let name = first.scenario.name.clone();
    let rates = &arguments.rates.0;
    let lowest = rates.iter().copied().find(|&rate| rate > 0.0 && rate < curve::ZERO_LOAD).unwrap_or(curve::ZERO_LOAD);
    // What zero load takes, and from where on a latency is beyond the limit.
    let limits = |unloaded: &Point| {
        let zero_load = unloaded.latency.filter(|_| !unloaded.saturated);
        (zero_load, zero_load.map(|latency| latency * arguments.latency_limit).filter(|limit| limit.is_finite()))
    };
    let curve = || -> Result<Curve, String> {
        let unloaded = point(lowest)?;
        let (zero_load_latency, latency_limit) = limits(&unloaded);
        let point = |rate: f64| {
            let point = if rate.total_cmp(&lowest).is_eq() { unloaded.clone() } else { point(rate)? };
            Ok::<_, String>(point.with_latency_limit(latency_limit))
        };
        let mut points = curve::points(rates, super::compare::threads(arguments.jobs), &point)?;
        curve::refine(&mut points, arguments.tolerance, arguments.saturation, point)?;
        let saturation = arguments.saturation.then(|| curve::saturation(&points)).flatten();
        Ok(Curve { name: name.clone(), zero_load_latency, latency_limit, points, saturation })
    };
    let whole = curve();
    if !progress::stopped() {
        return whole;
    }
    // What was measured until then is worth having, in whatever order it was.
    let mut points = measured.into_inner().unwrap_or_else(PoisonError::into_inner);
    points.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    let unloaded = points.iter().find(|point| point.rate.total_cmp(&lowest).is_eq());
    let (zero_load_latency, latency_limit) = unloaded.map_or((None, None), limits);
    points.retain(|point| point.rate.total_cmp(&lowest).is_ne() || rates.contains(&lowest));
    let points = points.into_iter().map(|point| point.with_latency_limit(latency_limit)).collect();
    whole.or(Ok(Curve { name, zero_load_latency, latency_limit, points, saturation: None }))
}

/// The traffics whose rate is varied.
fn varied_traffics(loaded: &Runnable) -> Vec<usize> {
    let traffic = loaded.scenario.traffic.iter().enumerate();
    traffic
        .filter(|(_, traffic)| {
            !matches!(traffic.pattern, TrafficPattern::Flows { .. } | TrafficPattern::Trace { .. })
                && !matches!(traffic.injection, Injection::ClosedLoop { .. } | Injection::Trace)
        })
        .map(|(index, _)| index)
        .collect()
}

/// A number, or a dash.
fn or_dash(number: Option<f64>, decimals: usize) -> String {
    number.map_or_else(|| "-".to_owned(), |number| format!("{number:.decimals$}"))
}

fn table(curves: &[Curve]) -> String {
    let mut out = String::new();
    for curve in curves {
        let _ = writeln!(out, "{}", curve.name);
        let _ = writeln!(
            out,
            "{:>9} {:>9} {:>9} {:>9} {:>8} {:>9} {:>6} {:>6}",
            "offered", "accepted", "at least", "latency", "+-", "network", "p99", "hops"
        );
        for point in &curve.points {
            let _ = writeln!(
                out,
                "{:>9.4} {:>9.4} {:>9.4} {:>9} {:>8} {:>9} {:>6} {:>6}{}",
                point.offered,
                point.accepted,
                point.accepted_min,
                or_dash(point.latency, 2),
                or_dash(point.half_width, 2),
                or_dash(point.network_latency, 2),
                point.p99.map_or_else(|| "-".to_owned(), |p99| p99.to_string()),
                or_dash(point.hops, 2),
                match point.saturated_by {
                    Some(Cause::Throughput) => "  saturated",
                    Some(Cause::Latency) => "  saturated by latency",
                    None => "",
                }
            );
        }
        if let (Some(latency), Some(limit)) = (curve.zero_load_latency, curve.latency_limit) {
            let _ = writeln!(out, "latency of zero load {latency:.2} cycles; above {limit:.2} a load is saturated");
        }
        if let Some(saturation) = &curve.saturation {
            let beyond = saturation.unstable.as_ref().map_or_else(String::new, |point| {
                format!("; at {:.4} offered, {:.4} are", point.offered, point.accepted)
            });
            let _ =
                writeln!(out, "saturation throughput {:.4} flits a node and cycle{beyond}", saturation.stable.accepted);
        }
    }
    out
}

fn csv(curves: &[Curve]) -> String {
    let mut out = String::from(
        "scenario,rate,offered,accepted,accepted_min,latency,half_width,network_latency,p99,hops,saturated,saturated_by\n",
    );
    for curve in curves {
        for point in &curve.points {
            let number = |number: Option<f64>| number.map_or_else(String::new, |number| number.to_string());
            let _ = writeln!(
                out,
                "{},{},{},{},{},{},{},{},{},{},{},{}",
                curve.name.replace(',', " "),
                point.rate,
                point.offered,
                point.accepted,
                point.accepted_min,
                number(point.latency),
                number(point.half_width),
                number(point.network_latency),
                point.p99.map_or_else(String::new, |p99| p99.to_string()),
                number(point.hops),
                point.saturated,
                point.saturated_by.map_or("", Cause::name)
            );
        }
    }
    out
}

/// Points of a CSV file: the first two columns. The first line may hold names.
fn read_csv_series(path: &PathBuf) -> Result<Series, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("error: cannot read {}: {error}", path.display()))?;
    let mut points = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut numbers = line.split(',').map(|word| word.trim().parse::<f64>());
        match (numbers.next(), numbers.next()) {
            (Some(Ok(x)), Some(Ok(y))) if x.is_finite() && y.is_finite() => points.push((x, y)),
            (Some(Err(_)), _) if at == 0 => {}
            _ => {
                return Err(format!(
                    "error: {}:{}: \"{line}\" is not an offered load and a latency, for example 0.1,27.22",
                    path.display(),
                    at + 1
                ));
            }
        }
    }
    if points.is_empty() {
        return Err(format!(
            "error: {} has no line of offered load and latency, for example 0.1,27.22",
            path.display()
        ));
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Series { name, points, half_widths: Vec::new(), marks_only: true })
}

fn plot(curves: &[Curve], peers: Vec<Series>) -> Plot {
    let mut series: Vec<Series> = Vec::new();
    let mut lowest = f64::INFINITY;
    for curve in curves {
        let with = |point: &&Point| point.latency.is_some();
        let points: Vec<(f64, f64)> =
            curve.points.iter().filter(with).map(|point| (point.offered, point.latency.unwrap_or(0.0))).collect();
        let half_widths = curve.points.iter().filter(with).map(|point| point.half_width.unwrap_or(0.0)).collect();
        lowest = points.iter().map(|point| point.1).fold(lowest, f64::min);
        let end = if let Some(saturation) = &curve.saturation {
            format!(", saturates at {:.3}", saturation.stable.accepted)
        } else {
            let first = curve.points.iter().find(|point| point.saturated);
            first.map_or_else(String::new, |point| format!(", saturated at {:.3}", point.offered))
        };
        series.push(Series { name: format!("{}{end}", curve.name), points, half_widths, marks_only: false });
    }
    series.extend(peers);
    let greatest = series.iter().flat_map(|series| &series.points).map(|point| point.1).fold(0.0, f64::max);
    Plot {
        title: "Latency over offered load".into(),
        x: "offered load (flits a node and cycle)".into(),
        y: "mean packet latency (cycles)".into(),
        // Beyond saturation a latency only says how long the run was.
        levels: Vec::new(),
        y_max: Some(if lowest.is_finite() { greatest.min(5.0 * lowest) } else { 1.0 }),
        series,
    }
}
