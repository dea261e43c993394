//! `watershed migrate`: writes older scenarios in the language of jobs.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{Exit, engines, output, print, print_error};
use watershed_scenario_interface::{migrate, read_file};

/// Write a scenario's collectives, reductions and hosts as jobs
#[derive(Debug, Args)]
#[command(after_help = "\
Tables of one engine become jobs that any engine can do, line by line; comments and everything else stay. What comes out is read
again and must be the same configuration. A scenario that another one extends is translated before that one.

Examples:
  watershed migrate mine.toml                  print the translation
  watershed migrate --in-place *.toml          translate files where they stand
  watershed migrate old.toml --out new.toml

Exit status:
  0  it is written, or there was nothing to translate
  2  the scenario or the command line is wrong, or it cannot be translated line by line
  3  the translation could not be written")]
pub(super) struct Arguments {
    /// Scenario files
    #[arg(value_name = "SCENARIO", required = true)]
    scenarios: Vec<PathBuf>,
    /// Write the translation of the only scenario here
    #[arg(long, short, value_name = "FILE", conflicts_with = "in_place")]
    out: Option<PathBuf>,
    /// Replace each file by its translation
    #[arg(long)]
    in_place: bool,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    if arguments.scenarios.len() > 1 && !arguments.in_place {
        print_error(&"error: several scenarios are translated where they stand: --in-place");
        return Exit::Bad;
    }
    let mut exit = Exit::Fine;
    for path in &arguments.scenarios {
        let (text, translated) = match translate(path) {
            Ok(both) => both,
            Err(problems) => {
                print_error(&problems);
                exit = Exit::Bad;
                continue;
            }
        };
        let target = arguments.out.as_deref().or(Some(path.as_path()).filter(|_| arguments.in_place));
        let Some(target) = target else {
            print(translated.as_ref().unwrap_or(&text));
            continue;
        };
        match translated {
            None => print(&format!("{}: nothing to translate", path.display())),
            Some(translated) => match output::write(target, translated) {
                Ok(()) => print(&format!("{}: written", target.display())),
                Err(error) => {
                    print_error(&error);
                    return Exit::Unwritten;
                }
            },
        }
    }
    exit
}

/// The text of a scenario and its translation, if it needs one.
fn translate(path: &Path) -> Result<(String, Option<String>), String> {
    let text = read_file(path).map_err(|problems| problems.to_string())?;
    let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let base = path.parent().unwrap_or(Path::new(""));
    let translated = migrate::migrate(engines(), &path.display().to_string(), &text, base, &stem);
    translated.map(|translated| (text, translated)).map_err(|problems| problems.to_string())
}
