//! `watershed study`: simulations whose results stand beside a source's values.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;

use super::{Exit, complain, print};
use crate::scenario::names;
use crate::study::named::{self, Report};

/// Run a study: simulations whose results stand beside the values of a source.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed study
  watershed study pbv-table1
  watershed study piuma-paper -o paper.html --svg pictures   (minutes, 8 GiB of memory)

Exit status:
  0  every value is near enough
  1  one is not, or a simulation failed
  2  the command line is wrong")]
pub(super) struct Arguments {
    /// Which study; without it all are listed
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write table and pictures as one HTML page that needs nothing else
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    /// Write each picture as an SVG file into this folder
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

fn write_pictures(arguments: &Arguments, report: &Report) -> Result<(), String> {
    let write =
        |path: &Path, text: &str| std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()));
    if let Some(path) = &arguments.output {
        write(path, &report.html())?;
    }
    if let Some(folder) = &arguments.svg {
        for (name, plot) in &report.plots {
            write(&folder.join(format!("{name}.svg")), &plot.svg())?;
        }
    }
    Ok(())
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    let Some(name) = &arguments.name else {
        let width = named::ALL.iter().map(|study| study.name.len()).max().unwrap_or(0);
        let lines: Vec<String> =
            named::ALL.iter().map(|study| format!("{:width$}  {}", study.name, study.about)).collect();
        print(&lines.join("\n"));
        return Exit::Fine;
    };
    let Some(study) = named::find(name) else {
        let all: Vec<&str> = named::ALL.iter().map(|study| study.name).collect();
        complain(&format_args!("error: there is no study \"{name}\"; there is {}", names::one_of(all)));
        return Exit::Bad;
    };
    if let Some(folder) = &arguments.svg
        && let Err(error) = std::fs::create_dir_all(folder)
    {
        complain(&format_args!("error: {}: {error}", folder.display()));
        return Exit::Bad;
    }
    let tell = |what: &str| {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[2K{what} ...");
        }
    };
    let result = (study.run)(&tell);
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[2K");
    }
    match result {
        Ok(report) => {
            if let Err(error) = write_pictures(arguments, &report) {
                complain(&format_args!("error: {error}"));
                return Exit::Bad;
            }
            if arguments.json {
                print(&serde_json::to_string_pretty(&report).unwrap_or_default());
            } else {
                print(&report.text());
            }
            if report.holds() { Exit::Fine } else { Exit::Failed }
        }
        Err(error) => {
            complain(&format_args!("error: {error}"));
            Exit::Failed
        }
    }
}
