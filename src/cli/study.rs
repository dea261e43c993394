//! `watershed study`: simulations whose results stand beside a source's values.

use clap::Args;

use super::{Exit, complain, print};
use crate::scenario::names;
use crate::study::named;

/// Run a study: simulations whose results stand beside the values of a source.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed study
  watershed study pbv-table1

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
    match (study.run)() {
        Ok(report) => {
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
