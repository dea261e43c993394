//! `watershed schema`: the JSON Schema of scenario files.

use clap::Args;

use super::{Exit, print};
use watershed_scenario_interface::schema;

/// Print the JSON Schema of scenario files, for editors that complete and check them.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  watershed schema > scenario.schema.json      what editors with a TOML language server read")]
pub(super) struct Arguments {}

pub(super) fn main(_: &Arguments) -> Exit {
    print(&serde_json::to_string_pretty(schema::of_files()).unwrap_or_default());
    Exit::Fine
}
