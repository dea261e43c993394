//! `watershed test`: runs scenarios and holds what comes out against golden files.

use std::path::PathBuf;

use clap::Args;

use super::compare::threads;
use super::progress::{self, BatchProgress};
use super::{Exit, engines, output, print, print_error};
use watershed_probe::Selection;
use watershed_study::snapshot::{self, FOLDER, FoundTests, Mode, Outcome, Test, junit::junit};

/// Run every scenario below folders and compare with golden files.
#[derive(Debug, Args)]
#[command(after_help = "\
Golden files of DIR/a/NAME.toml are in DIR/a/golden, or in GOLDEN/a with --golden: NAME.json (the result document, long vectors
shortened), NAME.summary.snap (what `run` prints), NAME.vcd and NAME.wave.snap (some signals over some cycles, and a part of it as
text), NAME.embed.snap (of systems of nodes), NAME.ladder.snap where the scenario asks for it. The first run with --accept makes them.

A table [golden] in the scenario says what they hold and which numbers need not be the same exactly:

  [golden]
  files = [\"document\", \"summary\", \"wave\", \"ladder\"]     nothing: the scenario is left out
  signals = [\"**.ceng.*\"]
  to_cycle = 120
  [[golden.tolerance]]
  value = \"collectives.*.latency_cycles\"                 a glob on names in NAME.json, or \"summary.LABEL\"
  relative = 0.05

TOML files that are no scenarios are passed over, and so are folders whose names begin with a dot or that hold CACHEDIR.TAG.

Examples:
  watershed test testbench/piuma --golden golden/piuma
  watershed test mine --accept
  watershed test mine --accept --prune         after scenarios were renamed or removed
  watershed test mine --filter '*/barrier-*' --junit out/junit.xml

Exit status:
  0  everything is as it was, or was accepted
  1  something differs, a run fails its checks or cannot be made, a golden file cannot be read or has no scenario; or it was
     stopped before its end (Ctrl-C, SIGTERM, SIGHUP)
  2  the command line is wrong, or there is nothing to test")]
pub(super) struct Arguments {
    /// Folders to look for scenarios in, or scenario files
    #[arg(value_name = "DIR", default_value = ".")]
    places: Vec<PathBuf>,
    /// Golden files are below this folder, in folders named as those of the scenarios
    #[arg(long, value_name = "DIR")]
    golden: Option<PathBuf>,
    /// Run only scenarios whose path without .toml has this in it, or matches it if it is a glob; can be given several times
    #[arg(short, long, value_name = "NAME")]
    filter: Vec<String>,
    /// Make what comes out the golden files, after showing what differs; refused where CI is set
    #[arg(long)]
    accept: bool,
    /// Remove golden files that belong to no scenario, or to none that has such a file; refused where CI is set
    #[arg(long)]
    prune: bool,
    /// Write the outcome of each scenario as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Number of scenarios to run at a time; 0 is one for each processor
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    #[command(flatten)]
    _status: super::messages::StatusOptions,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    match execute(arguments) {
        Ok(exit) => exit,
        Err(error) => {
            print_error(&error);
            Exit::Bad
        }
    }
}

fn execute(arguments: &Arguments) -> Result<Exit, String> {
    for (option, given) in [("--accept", arguments.accept), ("--prune", arguments.prune)] {
        if given && std::env::var_os("CI").is_some() {
            return Err(format!("error: {option} is refused where CI is set: use it on your own machine, and commit"));
        }
    }
    let mut found = snapshot::find(&arguments.places, arguments.golden.as_deref())?;
    let all = found.tests.len();
    if all == 0 {
        return Err(no_tests_message(&arguments.places, &found));
    }
    filter(&mut found, &arguments.filter)?;
    if found.tests.is_empty() {
        let names = arguments.filter.join("\" or \"");
        return Err(format!("error: none of {all} scenarios is named \"{names}\""));
    }
    let inputs: Vec<PathBuf> = found.tests.iter().flat_map(read_by).collect();
    let outputs: Vec<_> = arguments.junit.iter().map(|path| ("--junit", path.clone())).collect();
    let _claims = output::claim(&outputs, &inputs)?;

    let counter = BatchProgress::new("scenarios");
    let mode = if arguments.accept { Mode::Accept } else { Mode::Check };
    let width = found.tests.iter().map(|test| test.name.chars().count()).max().unwrap_or(0);
    let total = found.tests.len();
    let done = |at: usize, outcome: &Outcome| {
        counter.print_above(|| print(&line(outcome, width)));
        counter.show(at + 1, total);
    };
    let mut outcomes =
        snapshot::check_all(engines(), &found.tests, mode, threads(arguments.jobs), &progress::stopped, &done);
    counter.finish();
    if arguments.prune && outcomes.len() == total {
        prune(&mut outcomes, &mut found)?;
    }
    for path in &found.strays {
        print(&format!("{}\n  this golden file belongs to no scenario: --prune removes it", path.display()));
    }
    print(&conclusion(&outcomes, &found));
    let mut exit = Exit::Fine;
    if let Some(path) = &arguments.junit
        && let Err(error) = output::write(path, junit(&outcomes, &found.strays))
    {
        print_error(&error);
        exit = Exit::Unwritten;
    }
    if outcomes.len() < total {
        print_error(&format_args!("stopped after {} of {total} scenarios", outcomes.len()));
        return Ok(Exit::Failed);
    }
    let passed = outcomes.iter().all(Outcome::passed) && found.strays.is_empty();
    if !passed && outcomes.iter().any(|outcome| !outcome.differences.is_empty() && !outcome.accepted) {
        print_error(&"--accept makes what came out the golden files");
    }
    Ok(if passed { exit } else { Exit::Failed })
}

/// Removes golden files that nothing is compared with.
fn prune(outcomes: &mut [Outcome], found: &mut FoundTests) -> Result<(), String> {
    let left_over = outcomes.iter_mut().flat_map(|outcome| outcome.left_over.drain(..));
    for path in found.strays.drain(..).chain(left_over) {
        std::fs::remove_file(&path).map_err(|error| format!("error: cannot remove {}: {error}", path.display()))?;
        print(&format!("{}\n  removed: nothing is compared with this golden file", path.display()));
    }
    Ok(())
}

/// What is read of a scenario: `--junit` may not be it.
fn read_by(test: &Test) -> Vec<PathBuf> {
    let stem = test.stem();
    let goldens = snapshot::SUFFIXES.iter().map(|(suffix, _)| test.goldens.join(format!("{stem}{suffix}")));
    std::iter::once(test.scenario.clone()).chain(goldens).collect()
}

fn no_tests_message(places: &[PathBuf], found: &FoundTests) -> String {
    let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    let others = match found.passed_over {
        0 => "no TOML file at all".to_owned(),
        1 => "one TOML file that is no scenario".to_owned(),
        many => format!("{many} TOML files that are no scenarios"),
    };
    let help = format!(
        "golden files are looked for beside scenarios, in {FOLDER}/; `watershed run` has examples of scenarios"
    );
    format!("error: there is no scenario below {}, {others}\n  {help}", places.join(" and "))
}

/// Leaves only the scenarios that are asked for; golden files without a scenario are then nobody's question.
fn filter(found: &mut FoundTests, names: &[String]) -> Result<(), String> {
    if names.is_empty() {
        return Ok(());
    }
    let is_glob = |name: &&String| name.contains(['*', '?', '[', '{']);
    let globs: Vec<(&String, Selection)> = names
        .iter()
        .filter(is_glob)
        .map(|name| Ok((name, glob(name).map_err(|error| format!("error: --filter {name}: {error}"))?)))
        .collect::<Result<_, String>>()?;
    found.strays.clear();
    found.tests.retain(|test| {
        names.iter().filter(|name| !is_glob(name)).any(|name| test.name.contains(name.as_str()))
            || globs.iter().any(|(_, glob)| glob.selects(&dotted(&test.name)))
    });
    Ok(())
}

/// A glob on paths, as those on signals are written: `*` stops at a slash, `**` does not, and so none need name the folders in front.
fn glob(name: &str) -> Result<Selection, String> {
    Selection::new([dotted(name), format!("**.{}", dotted(name))]).map_err(|error| error.to_string())
}

/// A path with dots between its parts, which has no others.
fn dotted(path: &str) -> String {
    path.replace('.', "\u{2024}").replace('/', ".")
}

fn line(outcome: &Outcome, width: usize) -> String {
    let cycles = outcome.cycles.map_or_else(String::new, |cycles| format!("  {cycles} cycles"));
    let mut text = format!("{:width$}  {:9}{cycles}", outcome.name, outcome.word()).trim_end().to_owned();
    for line in outcome.text().lines() {
        text.push('\n');
        text.push_str(format!("  {line}").trim_end());
    }
    text
}

fn conclusion(outcomes: &[Outcome], found: &FoundTests) -> String {
    let mut parts = Vec::new();
    for word in ["as it was", "accepted", "DIFFERS", "FAILS", "ERROR", "LEFT OVER", "left out"] {
        let count = outcomes.iter().filter(|outcome| outcome.word() == word).count();
        let words = match word {
            "as it was" => "as they were",
            "DIFFERS" => "differ",
            "FAILS" => "fail their own checks",
            "ERROR" => "with an error",
            "LEFT OVER" => "with a golden file left over",
            word => word,
        };
        parts.extend((count > 0).then(|| format!("{count} {words}")));
    }
    match found.strays.len() {
        0 => {}
        1 => parts.push("one golden file without a scenario".to_owned()),
        many => parts.push(format!("{many} golden files without a scenario")),
    }
    let count = outcomes.len();
    format!("{count} scenario{}: {}", if count == 1 { "" } else { "s" }, parts.join(", "))
}
