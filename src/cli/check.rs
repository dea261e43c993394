//! `watershed check`: reads a scenario and makes every check that comes before the first cycle.

use clap::Args;

use super::run::ScenarioArguments;
use super::{Exit, complain, print};
use crate::scenario::run;

/// Check a scenario without running it.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status:
  0  the scenario is fine
  2  the command line or the scenario is wrong")]
pub(super) struct Arguments {
    #[command(flatten)]
    scenario: ScenarioArguments,
    /// Print the complete configuration, with every default and derived value, as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    let loaded = match arguments.scenario.load() {
        Ok(loaded) => loaded,
        Err(problems) => {
            complain(&problems);
            return Exit::Bad;
        }
    };
    if let Err(error) = run::check(&loaded) {
        complain(&error);
        return Exit::Bad;
    }
    let scenario = &loaded.scenario;
    if arguments.json {
        print(&serde_json::to_string_pretty(scenario).unwrap_or_default());
    } else {
        for rounding in &scenario.roundings {
            print(&format!("note: {rounding}"));
        }
        print(&format!("{}: fine", loaded.source.name()));
    }
    Exit::Fine
}
