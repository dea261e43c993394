//! `watershed wave`: compares waveforms, VCD or FST, shows them as text, and lists their signals.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::invocation::on_path;
use super::messages::note;
use super::run::Window;
use super::{Exit, engines, print, print_error};
use watershed_probe::ascii::{DrawError, Options, draw};
use watershed_probe::diff::{DiffOptions, diff};
use watershed_probe::wave_in::{self, Changes, Header, Table, Variable, WaveFile};
use watershed_probe::{Period, Selection, similar_names, states_named};
use watershed_scenario_interface::expr::{Expr, Value};
use watershed_scenario_interface::kind::{self, Kind};
use watershed_scenario_interface::run::sides_of;
use watershed_scenario_interface::units::femtoseconds;
use watershed_scenario_interface::{load_named, signals};
use watershed_study::sweep::store::shell_word;

/// Compare waveforms, VCD or FST, show them as text, or list their signals.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed wave show die.vcd --signals '**.ceng.*'
  watershed wave diff a.vcd b.vcd
  watershed wave list die.fst '**.state'
  watershed wave open die.fst")]
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
        /// Number of changes to show before and after the difference
        #[arg(long, value_name = "N", default_value_t = 3)]
        context: usize,
        /// Pass over signals whose hierarchical name matches; can be given several times
        #[arg(long, value_name = "GLOB")]
        ignore: Vec<String>,
    },
    /// Open a waveform in the viewer that is installed, GTKWave or Surfer
    #[command(after_help = "\
The viewer opens on the signals and at the moment that stand in the files beside the waveform (NAME.gtkw, NAME.sucl).

Examples:
  watershed wave open die.vcd
  watershed wave open die.fst --viewer surfer

Exit status:
  0  the viewer was started
  1  no viewer is installed, or it could not be started
  2  the command line or the file is wrong")]
    Open {
        /// The waveform
        file: PathBuf,
        /// Take this viewer
        #[arg(long, value_name = "NAME")]
        viewer: Option<Viewer>,
    },
    /// Print the whole names of signals, one a line, for `grep`, --trigger and --signals
    #[command(after_help = "\
A waveform's signals are listed in the order of the file. Of a scenario those are listed that a waveform of its run has: without
GLOB those of its [wave], and stage registers of adder trees and other details only for globs that name them.

Examples:
  watershed wave list die.fst
  watershed wave list die.vcd '**.ceng.state' --long
  watershed wave list allreduce-die | grep head
  watershed wave list allreduce-die '**.sw4.**.tree.**'

Exit status:
  0  at least one signal is listed
  2  there is none, or the command line or the file is wrong")]
    List(ListArguments),
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
        /// Show only cycles A to B, both included; either may be left out. With both, cycles are as wide as their values need, if there is room
        #[arg(long, value_name = "A..B", value_parser = super::run::window)]
        window: Option<Window>,
        /// Show the cycles from shortly before the first one in which this holds, for example "die.tile2.sw4.switch.ceng.state == REDUCE"
        #[arg(long, value_name = "EXPR", conflicts_with = "window", value_parser = super::run::condition)]
        at: Option<Expr>,
        /// Show at most this many levels of the hierarchy
        #[arg(long, value_name = "LEVELS", value_parser = clap::value_parser!(u32).range(1..))]
        depth: Option<u32>,
        /// Number of columns to draw at most
        #[arg(long, value_name = "COLUMNS")]
        width: Option<usize>,
        /// Take this as the length of a cycle, for files of other programs
        #[arg(long, value_name = "NS")]
        period_ns: Option<f64>,
    },
}

#[derive(Debug, Args)]
struct ListArguments {
    /// A waveform, VCD or FST, or a scenario: a file, or a name that `watershed list` prints
    #[arg(value_name = "FILE|SCENARIO")]
    target: PathBuf,
    /// List only signals whose hierarchical name matches one of these
    #[arg(value_name = "GLOB")]
    globs: Vec<String>,
    /// List at most this many levels of the hierarchy
    #[arg(long, value_name = "LEVELS", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,
    /// Add the width in bits and what the values are: the names of states, or bits, real or text; columns are separated by tabs
    #[arg(long)]
    long: bool,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    match &arguments.command {
        Command::Diff { a, b, context, ignore } => {
            let options = DiffOptions { context: *context, ignore: ignore.clone() };
            match diff(a, b, &options) {
                Ok(found) => {
                    print(&found.to_string());
                    if let Err(error) = note_unused(&[a, b], ignore) {
                        print_error(&format_args!("error: {error}"));
                        return Exit::Bad;
                    }
                    if found.is_equal() { Exit::Fine } else { Exit::Failed }
                }
                Err(error) => {
                    print_error(&no_wave(&[a, b]).unwrap_or_else(|| format!("error: {error}")));
                    Exit::Bad
                }
            }
        }
        Command::List(arguments) => match list(arguments) {
            Ok(names) => {
                print(&names);
                Exit::Fine
            }
            Err(error) => {
                print_error(&error);
                Exit::Bad
            }
        },
        Command::Open { file, viewer } => open_viewer(file, *viewer),
        Command::Show { file, signals, window, at, depth, width, period_ns } => {
            match show(file, signals, (*window, at.as_ref()), *depth, *width, *period_ns) {
                Ok(picture) => {
                    print(&picture);
                    Exit::Fine
                }
                Err(error) => {
                    print_error(&no_wave(&[file]).unwrap_or_else(|| format!("error: {error}")));
                    Exit::Bad
                }
            }
        }
    }
}

/// A program that shows waveforms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Viewer {
    Gtkwave,
    Surfer,
}

impl Viewer {
    fn program(self) -> &'static str {
        match self {
            Self::Gtkwave => "gtkwave",
            Self::Surfer => "surfer",
        }
    }

    /// Where it is installed.
    fn installed(self) -> Option<PathBuf> {
        on_path(self.program())
    }
}

/// Starts a viewer and leaves it alone.
fn open_viewer(file: &Path, wanted: Option<Viewer>) -> Exit {
    if let Err(error) = WaveFile::open(file) {
        let error = format!("error: {}: {error}", file.display());
        print_error(&no_wave(&[&file.to_owned()]).unwrap_or(error));
        return Exit::Bad;
    }
    let all = [Viewer::Gtkwave, Viewer::Surfer];
    let mut viewers = all.into_iter().filter(|viewer| wanted.is_none_or(|wanted| wanted == *viewer));
    let Some((viewer, program)) = viewers.find_map(|viewer| Some((viewer, viewer.installed()?))) else {
        let what = wanted.map_or("neither gtkwave nor surfer".to_owned(), |viewer| format!("no {}", viewer.program()));
        print_error(&format_args!(
            "error: there is {what} in PATH: install GTKWave (`apt-get install gtkwave`, `brew install gtkwave`) or Surfer (surfer-project.org); `watershed wave show {}` draws here",
            file.display()
        ));
        return Exit::Failed;
    };
    if !has_display() {
        print_error(&format_args!(
            "error: there is no display for {}: `watershed wave show {}` draws in the terminal",
            viewer.program(),
            file.display()
        ));
        return Exit::Failed;
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = file.file_name().unwrap_or_default();
    let beside = |end: &str| Some(Path::new(name).with_extension(end)).filter(|name| folder.join(name).exists());
    let mut command = std::process::Command::new(&program);
    // Both look for what stands beside a waveform in the folder they are started in.
    command.current_dir(folder);
    match viewer {
        Viewer::Gtkwave => command.arg(name).args(beside("gtkw")),
        Viewer::Surfer => {
            if let Some(commands) = beside("sucl") {
                command.arg("-c").arg(commands);
            }
            command.arg(name)
        }
    };
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    match command.spawn() {
        Ok(_) => {
            print(&format!("viewer         {}", program.display()));
            Exit::Fine
        }
        Err(error) => {
            print_error(&format_args!("error: cannot start {}: {error}", program.display()));
            Exit::Failed
        }
    }
}

/// Whether a viewer has a display to open on: X11 and Wayland name theirs in the environment.
fn has_display() -> bool {
    let named = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !cfg!(all(unix, not(target_os = "macos"))) || named("DISPLAY") || named("WAYLAND_DISPLAY")
}

/// What the first of these files is that is surely no waveform.
fn no_wave(files: &[&PathBuf]) -> Option<String> {
    let other = |file: &&&PathBuf| kind::certain_other_kind(file, &[Kind::Wave]).is_some();
    files.iter().find(other).map(|file| kind::wrong_kind_message(file, "a waveform"))
}

/// What prints the names in a waveform, as the next line of an error.
fn list_them(file: &Path) -> String {
    format!("\n  `watershed wave list {}` prints all names", shell_word(&file.display().to_string()))
}

/// Says of globs beside others that they choose nothing.
fn note_unused(files: &[&Path], globs: &[String]) -> Result<(), String> {
    let mut names = Vec::new();
    for file in files.iter().filter(|_| !globs.is_empty()) {
        let wave = WaveFile::open(file).map_err(|error| error.to_string())?;
        names.extend(wave.header().variables.iter().map(|variable| variable.name.clone()));
    }
    note_globs(&names, globs, &files.iter().map(|file| list_them(file)).collect::<String>())
}

/// The same of the names of signals; `hint` says where there are others.
fn note_globs(names: &[String], globs: &[String], hint: &str) -> Result<(), String> {
    for glob in globs {
        let alone = Selection::new([glob]).map_err(|error| error.to_string())?;
        if !names.iter().any(|name| alone.selects(name)) {
            note(&format_args!("{}{hint}", alone.nothing(names)));
        }
    }
    Ok(())
}

/// The names of signals of a waveform or of a scenario's run, a line each.
fn list(arguments: &ListArguments) -> Result<String, String> {
    let ListArguments { target, globs, depth, long } = arguments;
    let shown = target.display();
    let mut selection = Selection::new(globs).map_err(|error| format!("error: {error}"))?;
    if let Some(depth) = depth {
        selection = selection.with_depth(*depth as usize).map_err(|error| error.to_string())?;
    }
    let kind = Kind::of(target);
    // What begins in no usual way may be either.
    let wave = matches!(kind, Kind::Wave | Kind::Text | Kind::Binary).then(|| WaveFile::open(target));
    let header = match (kind, wave) {
        (_, Some(Ok(wave))) => wave.header().clone(),
        (Kind::Wave, Some(Err(error))) => return Err(format!("error: {shown}: {error}")),
        (Kind::Scenario | Kind::Shipped | Kind::Missing | Kind::Text, _) => {
            let loaded = load_named(engines(), target, &[]).map_err(|problems| problems.to_string())?;
            signals::declared(&loaded, globs.clone(), *depth).map_err(|error| error.to_string())?
        }
        _ => return Err(kind::wrong_kind_message(target, "a waveform or a scenario")),
    };
    let mut out = String::new();
    let mut names = Vec::new();
    for variable in &header.variables {
        if !selection.selects(&variable.name) {
            names.push(variable.name.clone());
            continue;
        }
        out += &variable.name;
        if *long {
            let _ = write!(out, "\t{}", describe_signal(&header, variable));
        }
        out.push('\n');
    }
    if out.is_empty() {
        return Err(format!("error: {shown}: {}", selection.nothing(&names)));
    }
    let all: Vec<String> = header.variables.iter().map(|variable| variable.name.clone()).collect();
    note_globs(&all, globs, "").map_err(|error| format!("error: {shown}: {error}"))?;
    Ok(out)
}

/// Width and kind of a signal, or its states in the order of their values.
fn describe_signal(header: &Header, variable: &Variable) -> String {
    let states = variable.table.and_then(|table| header.tables.get(table)).map(states_of).unwrap_or_default();
    let kind = match variable.kind {
        wave_in::Kind::Real => return "-\treal".to_owned(),
        wave_in::Kind::Text => return "-\ttext".to_owned(),
        wave_in::Kind::Bits if states.is_empty() => "bits".to_owned(),
        wave_in::Kind::Bits => states.join(","),
    };
    format!("{}\t{kind}", variable.width)
}

/// Names of states in the order of their values, as they are declared.
fn states_of(table: &Table) -> Vec<String> {
    let mut states: Vec<(&Vec<u8>, &String)> = table.iter().collect();
    states.sort_by_key(|(value, _)| (value.len(), *value));
    states.into_iter().map(|(_, state)| state.clone()).collect()
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
        Some(table(name).map(states_of).unwrap_or_default())
    };
    let missing = |name: &str| {
        let there = || header.variables.iter().map(|variable| variable.name.clone());
        format!("there is no signal {name}{}{}", similar_names::suggest(name, there), list_them(file))
    };
    let states =
        states_named(&names, &sides_of(condition), states, missing).map_err(|misnamed| misnamed.to_string())?;
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
        if condition.eval(&read).is_some_and(|value| value.is_true()) {
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
    let options =
        Options { selection, period, max_columns: width.unwrap_or(defaults.max_columns), for_reader: true, ..defaults };
    let picture = draw(file, &options).map_err(|error| match error {
        DrawError::NothingSelected(nothing) => format!("{}: {nothing}{}", file.display(), list_them(file)),
        error => format!("{}: {error}", file.display()),
    })?;
    if signals.len() > 1 {
        note_unused(&[file], signals)?;
    }
    Ok(picture)
}
