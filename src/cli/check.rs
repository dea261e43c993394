//! `watershed check`: reads a scenario and makes every check that comes before the first cycle, the proof that its
//! point-to-point packets arrive and cannot deadlock included.

use clap::Args;

use super::run::{ScenarioArguments, note_older};
use super::{Exit, print, print_error};
use watershed_fabric::routing::Flaw;

/// Check a scenario without running it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed check torus-uniform
  watershed check mine.toml --set switch.ceng.stages=4 --json

Exit status:
  0  the scenario is fine
  1  its packets may not arrive, or can deadlock
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
            print_error(&problems);
            return Exit::Bad;
        }
    };
    if let Err(error) = loaded.check() {
        print_error(&error);
        return Exit::Bad;
    }
    note_older(&loaded);
    let scenario = &loaded.scenario;
    if arguments.json {
        print(&serde_json::to_string_pretty(scenario).unwrap_or_default());
    } else {
        for rounding in &scenario.roundings {
            print(&format!("note: {rounding}"));
        }
        match loaded.soundness() {
            Ok(soundness) => {
                print(&format!("routing: {}", soundness.text));
                if soundness.proof.is_err_and(|flaw| flaw != Flaw::TooBig) {
                    return Exit::Failed;
                }
            }
            Err(problems) => {
                print_error(&problems);
                return Exit::Bad;
            }
        }
        print(&format!("{}: fine", loaded.source.name()));
    }
    Exit::Fine
}
