//! `watershed topology`: the switches and links of a scenario, as text, JSON or a picture.

use std::path::PathBuf;

use clap::Args;

use super::run::ScenarioArguments;
use super::{Exit, print, print_error};
use watershed_scenario_interface::drawing;

/// Show the switches and links of a scenario.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed topology allreduce-die
  watershed topology torus-uniform --set 'topology.size=[4, 4, 4]' --svg torus.svg --out out

Exit status:
  0  the topology is fine
  2  the command line or the scenario is wrong")]
pub(super) struct Arguments {
    #[command(flatten)]
    scenario: ScenarioArguments,
    /// Print figures, switches, end points and links as JSON
    #[arg(long)]
    json: bool,
    /// Write a picture to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write every file that is named without a folder into this one
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    let loaded = match arguments.scenario.load() {
        Ok(loaded) => loaded,
        Err(problems) => {
            print_error(&problems);
            return Exit::Bad;
        }
    };
    let svg = arguments.svg.as_ref().map(|path| super::output::place(arguments.out.as_deref(), path));
    let outputs: Vec<_> = svg.iter().map(|path| ("--svg", path.clone())).collect();
    let _claims = match super::output::claim(&outputs, &loaded.inputs()) {
        Ok(claims) => claims,
        Err(error) => {
            print_error(&error);
            return Exit::Bad;
        }
    };
    if let Some((text, json)) = drawing::figures(&loaded.scenario.topology.shape, &loaded.scenario.link) {
        if arguments.svg.is_some() {
            let (most, there) = (drawing::DRAWN, loaded.scenario.topology.switches());
            print_error(&format_args!("error: a picture has room for {most} switches, there are {there}"));
            return Exit::Bad;
        }
        print(&if arguments.json { serde_json::to_string_pretty(&json).unwrap_or_default() } else { text });
        return Exit::Fine;
    }
    let layout = match loaded.layout() {
        Ok(layout) => layout,
        Err(problems) => {
            print_error(&problems);
            return Exit::Bad;
        }
    };
    if let Some(file) = &svg {
        let Some(picture) = drawing::svg(&layout, &loaded.scenario.name) else {
            let (most, there) = (drawing::DRAWN, layout.switches());
            print_error(&format_args!("error: a picture has room for {most} switches, there are {there}"));
            return Exit::Bad;
        };
        if let Err(error) = super::output::write(file, picture) {
            print_error(&error);
            return Exit::Bad;
        }
    }
    if arguments.json {
        print(&serde_json::to_string_pretty(&drawing::json(&layout)).unwrap_or_default());
    } else {
        print(&drawing::text(&layout));
    }
    Exit::Fine
}
