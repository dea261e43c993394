//! `watershed wave`: compares waveforms, VCD or FST, and shows them as text.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::run::Window;
use super::{Exit, complain, print};
use watershed_probe::ascii::{DrawError, Options, draw};
use watershed_probe::diff::{DiffOptions, diff};
use watershed_probe::wave_in::{Changes, WaveFile};
use watershed_probe::{Period, Selection, states_named};
use watershed_scenario::expr::{Expr, Value};
use watershed_scenario::kind::{self, Kind};
use watershed_scenario::run::sides_of;
use watershed_scenario::units::femtoseconds;

/// Compare waveforms, VCD or FST, or show them as text.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed wave show die.vcd --signals '**.ceng.*'
  watershed wave diff a.vcd b.vcd")]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find the first time and signal at which two waveforms differ
    #[command(after_help = "\
Example:
  watershed wave diff a.vcd b.fst --ignore '**.seq'

Exit status:
  0  the waveforms are equal
  1  they differ
  2  the command line or a file is wrong")]
    Diff {
        /// The one waveform
        a: PathBuf,
        /// The other waveform
        b: PathBuf,
        /// Show so many changes before and after the difference
        #[arg(long, value_name = "N", default_value_t = 3)]
        context: usize,
        /// Pass over signals whose hierarchical name matches; can be given several times
        #[arg(long, value_name = "GLOB")]
        ignore: Vec<String>,
    },
    /// Show signals over time as text
    #[command(after_help = "\
Examples:
  watershed wave show die.vcd --signals '**.sw4.switch.ceng.*' --window 27..48
  watershed wave show die.fst --at 'die.tile2.sw4.switch.ceng.state == REDUCE'")]
    Show {
        /// The waveform
        file: PathBuf,
        /// Show only signals whose hierarchical name matches; can be given several times
        #[arg(long, value_name = "GLOB")]
        signals: Vec<String>,
        /// Show only cycles A to B, both included; either may be left out
        #[arg(long, value_name = "A..B", value_parser = super::run::window)]
        window: Option<Window>,
        /// Show the cycles from shortly before the first one in which this holds, for example "die.tile2.sw4.switch.ceng.state == REDUCE"
        #[arg(long, value_name = "EXPR", conflicts_with = "window", value_parser = super::run::condition)]
        at: Option<Expr>,
        /// Show only so many levels of the hierarchy
        #[arg(long, value_name = "LEVELS", value_parser = clap::value_parser!(u32).range(1..))]
        depth: Option<u32>,
        /// Draw at most so many columns
        #[arg(long, value_name = "COLUMNS")]
        width: Option<usize>,
        /// Take this as the length of a cycle, for files of other programs
        #[arg(long, value_name = "NS")]
        period_ns: Option<f64>,
    },
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    match &arguments.command {
        Command::Diff { a, b, context, ignore } => {
            let options = DiffOptions { context: *context, ignore: ignore.clone() };
            match diff(a, b, &options) {
                Ok(found) => {
                    print(&found.to_string());
                    if found.is_equal() { Exit::Fine } else { Exit::Failed }
                }
                Err(error) => {
                    complain(&no_wave(&[a, b]).unwrap_or_else(|| format!("error: {error}")));
                    Exit::Bad
                }
            }
        }
        Command::Show { file, signals, window, at, depth, width, period_ns } => {
            match show(file, signals, (*window, at.as_ref()), *depth, *width, *period_ns) {
                Ok(picture) => {
                    print(&picture);
                    Exit::Fine
                }
                Err(error) => {
                    complain(&no_wave(&[file]).unwrap_or_else(|| format!("error: {error}")));
                    Exit::Bad
                }
            }
        }
    }
}

/// What the first of these files is that is surely no waveform.
fn no_wave(files: &[&PathBuf]) -> Option<String> {
    let other = |file: &&&PathBuf| kind::surely_other(file, &[Kind::Wave]).is_some();
    files.iter().find(other).map(|file| kind::instead(file, "a waveform"))
}

/// Cycles that are shown before the one that was looked for.
const LEAD: u64 = 4;

/// The first cycle in which a condition holds.
fn first_cycle(file: &Path, condition: &Expr, period: Option<Period>) -> Result<u64, String> {
    let mut wave = WaveFile::open(file).map_err(|error| error.to_string())?;
    let header = wave.header().clone();
    let period = period.or(header.period).ok_or_else(|| DrawError::NoPeriod.to_string())?;
    let find = |name: &str| header.variables.iter().find(|variable| variable.name == name);
    let table = |name: &str| find(name)?.table.and_then(|table| header.tables.get(table));
    let names: Vec<String> = condition.names().into_iter().map(str::to_owned).collect();
    let states = |name: &str| {
        find(name)?;
        // In the order of their values, as they are declared.
        let mut states: Vec<(&Vec<u8>, &String)> = table(name).into_iter().flatten().collect();
        states.sort_by_key(|(value, _)| (value.len(), *value));
        Some(states.into_iter().map(|(_, state)| state.clone()).collect::<Vec<_>>())
    };
    let states = states_named(&names, &sides_of(condition), states).map_err(|text| {
        text.replace("the trigger's signal", "the signal")
            .replace("is not traced; `--signals` chooses signals, `wave show` lists names", "is not in the file")
    })?;
    let signals =
        wave.load(names.iter().filter_map(|name| Some(find(name)?.signal))).map_err(|error| error.to_string())?;
    let mut changes: HashMap<&str, Changes<'_>> =
        names.iter().filter_map(|name| Some((name.as_str(), wave.changes(&signals, find(name)?.signal)))).collect();
    while let Some(moment) = changes.values().filter_map(Changes::next_fs).min() {
        for changes in changes.values_mut() {
            changes.go_to(moment, true);
        }
        let read = |name: &str| {
            let Some(changes) = changes.get(name) else {
                return states.iter().find(|state| *state == name).map(|state| Value::Word(state.clone()));
            };
            if let Some(state) = table(name).and_then(|table| table.get(changes.value())) {
                return Some(Value::Word(state.clone()));
            }
            let bits = std::str::from_utf8(changes.value().strip_prefix(b"b")?).ok()?;
            u64::from_str_radix(bits, 2).ok().map(|number| Value::Number(number as f64))
        };
        if condition.eval(&read).is_some_and(|value| value.holds()) {
            return Ok(period.cycle_at(u64::try_from(moment / 1000).unwrap_or(u64::MAX)));
        }
    }
    Err(format!("`{condition}` holds in no cycle of it"))
}

fn show(
    file: &Path,
    signals: &[String],
    (window, at): (Option<Window>, Option<&Expr>),
    depth: Option<u32>,
    width: Option<usize>,
    period_ns: Option<f64>,
) -> Result<String, String> {
    let mut selection = Selection::new(signals).map_err(|error| error.to_string())?;
    if let Some(depth) = depth {
        selection = selection.with_depth(depth as usize).map_err(|error| error.to_string())?;
    }
    let period = match period_ns {
        None => None,
        Some(ns) => {
            // Picoseconds in thousandths, so that periods like that of 850 MHz can be given to a femtosecond.
            let thousandths = femtoseconds(ns).and_then(|fs| u64::try_from(fs).ok());
            let period = thousandths.and_then(|fs| Period::from_ps(fs, 1000));
            Some(period.ok_or_else(|| format!("a period of {ns} ns is not possible"))?)
        }
    };
    let window = match at {
        None => window,
        Some(condition) => {
            let cycle = first_cycle(file, condition, period).map_err(|error| format!("{}: {error}", file.display()))?;
            Some(Window { from: Some(cycle.saturating_sub(LEAD)), to: None })
        }
    };
    if let Some(window) = window {
        selection = selection.with_window(window.from.unwrap_or(0), window.to).map_err(|error| error.to_string())?;
    }
    let defaults = Options::default();
    let options = Options { selection, period, max_columns: width.unwrap_or(defaults.max_columns), ..defaults };
    draw(file, &options).map_err(|error| format!("{}: {error}", file.display()))
}
