//! `watershed report`: one HTML page of results and sweeps.

use std::path::{Path, PathBuf};

use clap::Args;

use super::progress::{self, RunProgress};
use super::replay::RecordedRun;
use super::{Exit, output, print, print_error};
use watershed_scenario_interface::hosts::file::HostMode;
use watershed_scenario_interface::kind::Kind;
use watershed_scenario_interface::run::RunOptions;
use watershed_scenario_interface::why::WhyQuery;
use watershed_study::report::{RunSubject, Subject, SweepSubject, page};
use watershed_study::sweep::{self, Store};

/// Make one self-contained HTML page of results and sweeps.
#[derive(Debug, Args)]
#[command(after_help = "\
A result is run once more, from the scenario it carries, to draw what its document does not hold: the load of every link,
what was in the network over time, and where the latency of collectives went (of the armed and PBV families: of the
slowest round). The page loads nothing from anywhere.

Examples:
  watershed report out/allreduce-die.json
  watershed report out/stages -o stages.html
  watershed report a.json b.json -o both.html

Exit status:
  0  the page was written
  1  it was stopped before its end (Ctrl-C, SIGTERM, SIGHUP), and no page was written
  2  the command line is wrong, or a file is neither a result nor a folder of a sweep")]
pub(super) struct Arguments {
    /// Result documents (as `run --json` and `run --out` write them) and folders of sweeps
    #[arg(value_name = "RESULT.json|DIR", required = true)]
    sources: Vec<PathBuf>,
    /// The page
    #[arg(short, long, value_name = "FILE.html", default_value = "report.html")]
    out: PathBuf,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    let inputs: Vec<PathBuf> = arguments.sources.iter().flat_map(|source| read(source)).collect();
    let written = output::claim(&[("--out", arguments.out.clone())], &inputs).and_then(|_claims| {
        let subjects: Vec<Subject> =
            arguments.sources.iter().map(|source| subject(source)).collect::<Result<_, String>>()?;
        output::write(&arguments.out, page(&subjects))
    });
    match written {
        Ok(()) => {
            print(&format!("report         {}", arguments.out.display()));
            Exit::Fine
        }
        Err(error) => {
            print_error(&error);
            if progress::stopped() { Exit::Failed } else { Exit::Bad }
        }
    }
}

/// The files that are read of a source.
fn read(source: &Path) -> Vec<PathBuf> {
    if source.is_dir() { Store::files(source) } else { vec![source.to_owned()] }
}

fn subject(source: &Path) -> Result<Subject, String> {
    let name = source.display().to_string();
    if source.is_dir() {
        if !Store::exists(source) {
            return Err(format!(
                "error: {name} is a folder without the results of a sweep\n  `watershed sweep FILE.toml --out {name}` fills it; of a run give the result itself, {name}/NAME.json"
            ));
        }
        let store = Store::open(source).map_err(|error| error.to_string())?;
        let read = sweep::of_store(&store, source).map_err(|error| error.to_string())?;
        let rows = store.rows();
        return Ok(Subject::Sweep(Box::new(SweepSubject { source: name, sweep: read, rows })));
    }
    let recorded = RecordedRun::read(source).map_err(|error| match Kind::of(source) {
        Kind::Result(_) | Kind::Json => error,
        _ => format!("{error}\n  a report is made of result documents and of folders of sweeps"),
    })?;
    let scenario = &recorded.loaded.scenario;
    let software = scenario.hosts.iter().any(|host| host.file.mode == HostMode::Fabric);
    let collective = !scenario.collectives.is_empty() || software || scenario.armed.is_some() || scenario.pbv.is_some();
    let meter = RunProgress::new();
    let hook = |progress| meter.update(&progress);
    let options = RunOptions {
        hook: Some(&hook),
        all_links: true,
        timeline: true,
        why: collective.then(WhyQuery::default),
        ..recorded.options()
    };
    let outcome = recorded.loaded.run(&options);
    meter.finish();
    let result = outcome.map_err(|error| error.to_string())?;
    if recorded.is_cut_short(&result.document) {
        return Err(format!("{}: no page was written", recorded.cut_short(&result.document)));
    }
    let mut notes = result.notes;
    if recorded.first_difference(&result.document)?.is_some() {
        notes.push("Run again, something else came out; `watershed replay` shows the first difference. This page shows what came out now.".into());
    }
    if collective && result.why.is_empty() && notes.is_empty() {
        let why = result
            .document
            .unfinished()
            .map_or_else(String::new, |detail| format!(" The run did not finish: {detail}"));
        notes.push(format!("Where the latency went is not known: nothing has ended that could be explained.{why}"));
    }
    let mut document = result.document;
    document.stamp = recorded.document.stamp;
    Ok(Subject::Run(Box::new(RunSubject {
        source: name,
        document,
        layout: recorded.loaded.layout().ok(),
        why: result.why,
        timeline: result.timeline,
        link_names: result.link_names,
        notes,
    })))
}
