//! `watershed embed`: the trees of a scenario's jobs and the registers or tables that make them, as text, JSON, a picture, or a file
//! that a scenario loads.

use std::path::PathBuf;

use clap::Args;

use super::run::ScenarioArguments;
use super::{Exit, print, print_error};
use watershed_scenario_interface::config::Family;
use watershed_scenario_interface::embedding::{self, Embedding};
use watershed_scenario_interface::trees::EngineTree;
use watershed_scenario_interface::{Runnable, drawing};

/// Show the trees of a scenario's jobs, and the registers or tables that make them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed embed allreduce-die
  watershed embed fig3-node --registers
  watershed embed fig2-tree                    multicast trees of armed engines
  watershed embed fig7-barrier --registers     what contexts of packet engines are initialised with
  watershed embed allreduce-die --svg tree.svg --out out
  watershed embed fig3-node --save tree.toml   for `embedding` of a [[job]]

Exit status:
  0  the trees are legal
  2  the command line or the scenario is wrong, or a tree is not legal")]
pub(super) struct Arguments {
    #[command(flatten)]
    scenario: ScenarioArguments,
    /// Only the job of this name
    #[arg(long, visible_alias = "job", value_name = "NAME")]
    collective: Option<String>,
    /// Print roots, depths, links and registers or tables as JSON
    #[arg(long, conflicts_with = "registers")]
    json: bool,
    /// Print the registers as a scenario has them; of other engines, the entries of their tables
    #[arg(long)]
    registers: bool,
    /// Write the registers of one collective of PIUMA engines to this file, for `embedding` of a scenario
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Write a picture of one job's tree to this file
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

/// A tree of any family.
enum Shown {
    Registers(Embedding),
    Tables(EngineTree),
}

impl Shown {
    fn name(&self) -> &str {
        match self {
            Shown::Registers(embedding) => &embedding.name,
            Shown::Tables(tree) => &tree.name,
        }
    }

    /// Whether it is that of a job, or of a part of it.
    fn is_of(&self, job: &str) -> bool {
        let is_part = match self {
            Shown::Registers(embedding) => embedding.segment_of.as_ref().is_some_and(|(of, _)| of == job),
            Shown::Tables(tree) => tree.job == job,
        };
        is_part || self.name() == job
    }

    fn text(&self, registers: bool) -> String {
        match (self, registers) {
            (Shown::Registers(embedding), true) => embedding.toml(),
            (Shown::Registers(embedding), false) => embedding.text(),
            (Shown::Tables(tree), true) => tree.tables(),
            (Shown::Tables(tree), false) => tree.text(),
        }
    }

    /// What a scenario can load.
    fn saved(&self) -> Result<String, String> {
        match self {
            Shown::Registers(embedding) => Ok(embedding.toml()),
            Shown::Tables(tree) => Err(format!(
                "error: engines {} have no registers that a scenario could load: `{}` has none to save",
                tree.kind, tree.name
            )),
        }
    }

    fn drawn(&self) -> (Vec<(u32, u16)>, Option<u32>) {
        match self {
            Shown::Registers(embedding) => embedding.drawn(),
            Shown::Tables(tree) => (tree.sends.clone(), tree.root_switch),
        }
    }
}

/// The trees of all jobs of a scenario.
fn all(loaded: &Runnable) -> Result<Vec<Shown>, String> {
    let family = loaded.scenario.family;
    let embeddings = if matches!(family, Family::Piuma | Family::Mixed) { loaded.embeddings() } else { Ok(Vec::new()) };
    let embeddings = embeddings.map_err(|problems| problems.to_string())?;
    let tables = loaded.engine_trees().map_err(|problems| problems.to_string())?;
    let all: Vec<Shown> =
        embeddings.into_iter().map(Shown::Registers).chain(tables.into_iter().map(Shown::Tables)).collect();
    if all.is_empty() {
        return Err("error: no job of this scenario has engines in the network, so there are no trees".into());
    }
    Ok(all)
}

fn shown(arguments: &Arguments) -> Result<String, String> {
    let loaded = arguments.scenario.load().map_err(|problems| problems.to_string())?;
    let place = |path: &PathBuf| super::output::place(arguments.out.as_deref(), path);
    let (save, svg) = (arguments.save.as_ref().map(place), arguments.svg.as_ref().map(place));
    let outputs =
        save.iter().map(|path| ("--save", path.clone())).chain(svg.iter().map(|path| ("--svg", path.clone())));
    let outputs: Vec<_> = outputs.collect();
    let _claims = super::output::claim(&outputs, &loaded.inputs())?;
    let mut all = all(&loaded)?;
    if let Some(name) = &arguments.collective {
        let names: Vec<String> = all.iter().map(|tree| tree.name().to_owned()).collect();
        all.retain(|tree| tree.is_of(name));
        if all.is_empty() {
            return Err(super::unknown("there is no job", name, &names));
        }
    }
    let one = || match all.as_slice() {
        [one] => Ok(one),
        _ => Err(format!("error: there are {} trees: name one with --collective", all.len())),
    };
    let write = |path: &PathBuf, text: &str| super::output::write(path, text);
    if let Some(path) = &save {
        write(path, &one()?.saved()?)?;
    }
    if let Some(path) = &svg {
        write(path, &picture(&loaded, one()?)?)?;
    }
    if arguments.json {
        return Ok(serde_json::to_string_pretty(&json(all)).unwrap_or_default());
    }
    Ok(all.iter().map(|tree| tree.text(arguments.registers)).collect::<Vec<_>>().join("\n"))
}

fn json(all: Vec<Shown>) -> serde_json::Value {
    let (mut embeddings, mut tables) = (Vec::new(), Vec::new());
    for tree in all {
        match tree {
            Shown::Registers(embedding) => embeddings.push(embedding),
            Shown::Tables(tree) => tables.push(tree.json()),
        }
    }
    let mut json = embedding::json(&embeddings);
    if !tables.is_empty() {
        json["trees"] = tables.into();
    }
    json
}

fn picture(loaded: &Runnable, one: &Shown) -> Result<String, String> {
    let (most, there) = (drawing::DRAWN, loaded.scenario.topology.switches() as usize);
    if there > most {
        return Err(format!("error: a picture has room for {most} switches, there are {there}"));
    }
    let layout = loaded.layout().map_err(|problems| problems.to_string())?;
    let (links, root) = one.drawn();
    let tree = drawing::Tree { links: &links, root };
    Ok(drawing::svg_of(&layout, &format!("{}: {}", loaded.scenario.name, one.name()), Some(tree)).unwrap_or_default())
}
