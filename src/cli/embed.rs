//! `watershed embed`: the trees of a scenario's collectives and the registers that make them, as text, JSON, a picture, or
//! a file that a scenario loads.

use std::path::PathBuf;

use clap::Args;

use super::run::ScenarioArguments;
use super::{Exit, print, print_error};
use watershed_scenario::config::Family;
use watershed_scenario::{Loaded, build, drawing, embedding};

/// Show the trees of a scenario's collectives and the registers that make them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed embed allreduce-die
  watershed embed fig3-node --registers
  watershed embed allreduce-die --svg tree.svg --out out
  watershed embed fig3-node --save tree.toml   for `embedding` of a [[job]]

Exit status:
  0  the embeddings are legal
  2  the command line or the scenario is wrong, or an embedding is not legal")]
pub(super) struct Arguments {
    #[command(flatten)]
    scenario: ScenarioArguments,
    /// Only the collective of this name
    #[arg(long, value_name = "NAME")]
    collective: Option<String>,
    /// Print roots, depths, links and registers as JSON
    #[arg(long, conflicts_with = "registers")]
    json: bool,
    /// Print the registers as a scenario has them
    #[arg(long)]
    registers: bool,
    /// Write the registers of one collective to this file, for `embedding` of a scenario
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Write a picture of one collective's tree to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write every file that is named without a folder into this one
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    match shown(arguments) {
        Ok(text) => {
            print(&text);
            Exit::Fine
        }
        Err(error) => {
            print_error(&error);
            Exit::Bad
        }
    }
}

fn shown(arguments: &Arguments) -> Result<String, String> {
    let loaded = arguments.scenario.load().map_err(|problems| problems.to_string())?;
    if loaded.scenario.family != Family::Piuma {
        return Err("error: only the piuma family is configured by registers".into());
    }
    let place = |path: &PathBuf| super::output::place(arguments.out.as_deref(), path);
    let (save, svg) = (arguments.save.as_ref().map(place), arguments.svg.as_ref().map(place));
    let outputs =
        save.iter().map(|path| ("--save", path.clone())).chain(svg.iter().map(|path| ("--svg", path.clone())));
    let outputs: Vec<_> = outputs.collect();
    let _claims = super::output::claim(&outputs, &loaded.inputs())?;
    let mut all = embedding::all(&loaded).map_err(|problems| problems.to_string())?;
    if let Some(name) = &arguments.collective {
        let names: Vec<String> = all.iter().map(|embedding| embedding.name.clone()).collect();
        let of = |one: &embedding::Embedding| one.segment_of.as_ref().is_some_and(|(of, _)| of == name);
        all.retain(|embedding| embedding.name == *name || of(embedding));
        if all.is_empty() {
            return Err(super::unknown("there is no collective", name, &names));
        }
    }
    let one = || match all.as_slice() {
        [one] => Ok(one),
        _ => Err(format!("error: there are {} collectives: name one with --collective", all.len())),
    };
    let write = |path: &PathBuf, text: &str| super::output::write(path, text);
    if let Some(path) = &save {
        write(path, &one()?.toml())?;
    }
    if let Some(path) = &svg {
        write(path, &picture(&loaded, one()?)?)?;
    }
    if arguments.json {
        return Ok(serde_json::to_string_pretty(&embedding::json(&all)).unwrap_or_default());
    }
    let text = |one: &embedding::Embedding| if arguments.registers { one.toml() } else { one.text() };
    Ok(all.iter().map(text).collect::<Vec<_>>().join("\n"))
}

fn picture(loaded: &Loaded, one: &embedding::Embedding) -> Result<String, String> {
    let (most, there) = (drawing::DRAWN, loaded.scenario.topology.switches() as usize);
    if there > most {
        return Err(format!("error: a picture has room for {most} switches, there are {there}"));
    }
    let layout = build::layout(loaded).map_err(|problems| problems.to_string())?;
    let (links, root) = one.drawn();
    let tree = drawing::Tree { links: &links, root };
    Ok(drawing::svg_of(&layout, &format!("{}: {}", loaded.scenario.name, one.name), Some(tree)).unwrap_or_default())
}
