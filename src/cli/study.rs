//! `watershed study`: simulations whose results stand beside a source's values, or beside each other.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;

use super::compare::{report_error, threads};
use super::progress::{self, BatchProgress};
use super::{Exit, engines, output, print, print_error};
use watershed_scenario_interface::{names, shipped};
use watershed_study::compare::study::{SHIPPED, Study, study_schema};
use watershed_study::compare::{page, table};
use watershed_study::reproduction::{self, Report};
use watershed_study::training;

/// Run a study: simulations whose results stand beside the values of a source, or beside each other.
#[derive(Debug, Args)]
#[command(after_help = "\
A study by name lays what it finds beside the values of a source; a study file compares contestants that do the same job at
several vector lengths and in several systems (see `watershed compare`), or train networks layer by layer. face-off and training
are such files and come with the program.

Examples:
  watershed study
  watershed study pbv-table1
  watershed study piuma-paper -o paper.html --svg pictures   (minutes, about 5 GiB of memory)
  watershed study face-off -o face-off.html
  watershed study training -o training.html   (about 20 minutes)
  watershed study mine.toml --csv
  watershed study --schema

Exit status:
  0  every value stands to the source's as it has to, or is marked as one that differs; every undisturbed run of a study file ended with its checks passed
  1  one is not, a simulation failed, or it was stopped before its end (Ctrl-C, SIGTERM, SIGHUP), with the rows so far
  2  the command line or a study file is wrong")]
pub(super) struct Arguments {
    /// Which study, or a study file; without it all are listed
    #[arg(value_name = "NAME|FILE.toml")]
    name: Option<String>,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV, a line a run (study files only)
    #[arg(long)]
    csv: bool,
    /// Write table and pictures as one HTML page that needs nothing else
    #[arg(short, long, alias = "output", value_name = "FILE.html")]
    out: Option<PathBuf>,
    /// Write each picture as an SVG file into this folder (studies by name only)
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Threads; 0 is one for each processor (study files only)
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// Print the JSON Schema of study files
    #[arg(long, exclusive = true)]
    schema: bool,
    #[command(flatten)]
    _status: super::messages::StatusOptions,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    if arguments.schema {
        print(&serde_json::to_string_pretty(study_schema()).unwrap_or_default());
        return Exit::Fine;
    }
    let Some(name) = &arguments.name else {
        print(&list());
        return Exit::Fine;
    };
    let outputs: Vec<_> = arguments.out.iter().map(|path| ("--out", path.clone())).collect();
    let _claims = match output::claim(&outputs, &[PathBuf::from(name)]) {
        Ok(claims) => claims,
        Err(error) => {
            print_error(&error);
            return Exit::Bad;
        }
    };
    if let Some(study) = reproduction::find(name) {
        if arguments.csv {
            print_error(&"error: --csv is for study files");
            return Exit::Bad;
        }
        return run_reproduction(study, arguments);
    }
    let known = |(path, _): &(&str, &str)| shipped::stem(path) == name;
    let file = Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
    if file || SHIPPED.iter().any(known) {
        return run_comparison(name, arguments);
    }
    let all =
        reproduction::ALL.iter().map(|study| study.name).chain(SHIPPED.iter().map(|(path, _)| shipped::stem(path)));
    print_error(&format_args!("error: there is no study \"{name}\"; there is {}, or a FILE.toml", names::one_of(all)));
    Exit::Bad
}

/// All studies, a line each.
fn list() -> String {
    let mut entries: Vec<(&str, String)> =
        reproduction::ALL.iter().map(|study| (study.name, study.about.to_owned())).collect();
    for (path, text) in SHIPPED {
        let about = toml::from_str::<toml::Table>(text).ok();
        let about = about.and_then(|table| table.get("about")?.as_str().map(str::to_owned)).unwrap_or_default();
        entries.push((shipped::stem(path), about));
    }
    let width = entries.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    entries.iter().map(|(name, about)| format!("{name:width$}  {about}")).collect::<Vec<_>>().join("\n")
}

fn write_pictures(arguments: &Arguments, report: &Report) -> Result<(), String> {
    if let Some(path) = &arguments.out {
        output::write(path, report.html())?;
    }
    if let Some(folder) = &arguments.svg {
        for (name, plot) in &report.plots {
            output::write(&folder.join(format!("{name}.svg")), plot.svg())?;
        }
    }
    Ok(())
}

fn run_reproduction(study: &reproduction::Study, arguments: &Arguments) -> Exit {
    if let Some(Err(error)) = arguments.svg.as_ref().map(|folder| output::folder_for(folder)) {
        print_error(&format_args!("error: {}: {error}", arguments.svg.as_deref().unwrap_or(Path::new("")).display()));
        return Exit::Bad;
    }
    let tell = |what: &str| {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[2K{what} ...");
        }
    };
    progress::handle_signals();
    let mut report = Report::default();
    let result = (study.run)(engines(), &tell, &mut report);
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[2K");
    }
    let stopped = progress::stopped();
    if stopped {
        report.notes.push("stopped before the end: rows that are missing were not simulated".into());
    }
    // What was found until a signal came is worth having, and what the signal did to a run is no error of it.
    if let Err(error) = result
        && !stopped
    {
        print_error(&format_args!("error: {error}"));
        return Exit::Failed;
    }
    if let Err(error) = write_pictures(arguments, &report) {
        print_error(&error);
        return Exit::Bad;
    }
    if arguments.json {
        print(&serde_json::to_string_pretty(&report).unwrap_or_default());
    } else {
        print(&report.text());
    }
    if report.holds() && !stopped { Exit::Fine } else { Exit::Failed }
}

fn run_comparison(name: &str, arguments: &Arguments) -> Exit {
    if arguments.svg.is_some() {
        print_error(&"error: --svg is for studies by name; --out makes a page of a study file");
        return Exit::Bad;
    }
    let study = match Study::load(engines(), name) {
        Ok(study) => study,
        Err(problems) => {
            print_error(&problems);
            return Exit::Bad;
        }
    };
    let Arguments { json, csv, out, jobs, .. } = arguments;
    run_study_file(&study, &StudyOutput { json: *json, csv: *csv, out: out.as_deref(), jobs: *jobs })
}

/// Output options of a study.
pub(super) struct StudyOutput<'a> {
    pub json: bool,
    pub csv: bool,
    pub out: Option<&'a Path>,
    pub jobs: usize,
}

/// Runs a study file and tells what it found.
pub(super) fn run_study_file(study: &Study, wanted: &StudyOutput<'_>) -> Exit {
    if study.file.training.is_some() {
        return trained(study, wanted);
    }
    let counter = BatchProgress::new("contestants");
    let outcome = study.run(threads(wanted.jobs), &progress::stopped, &|done, of| counter.show(done, of));
    counter.finish();
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(stopped) => return report_error(&stopped),
    };
    if let Some(path) = wanted.out
        && let Err(error) = output::write(path, page::of_study(&outcome))
    {
        print_error(&error);
        return Exit::Bad;
    }
    if wanted.json {
        print(&serde_json::to_string_pretty(&outcome).unwrap_or_default());
    } else if wanted.csv {
        print(&table::study_csv(&outcome));
    } else {
        print(&table::study(&outcome));
    }
    if outcome.passed() { Exit::Fine } else { Exit::Failed }
}

/// Runs a training study and tells what it found.
fn trained(study: &Study, wanted: &StudyOutput<'_>) -> Exit {
    let counter = BatchProgress::new("all-reduces");
    let outcome =
        training::training(study, threads(wanted.jobs), &progress::stopped, &|done, of| counter.show(done, of));
    counter.finish();
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(stopped) => return report_error(&stopped),
    };
    if let Some(path) = wanted.out
        && let Err(error) = output::write(path, training::table::page(&outcome))
    {
        print_error(&error);
        return Exit::Bad;
    }
    if wanted.json {
        print(&serde_json::to_string_pretty(&outcome).unwrap_or_default());
    } else if wanted.csv {
        print(&training::table::csv(&outcome));
    } else {
        print(&training::table::text(&outcome));
    }
    if outcome.passed() { Exit::Fine } else { Exit::Failed }
}
