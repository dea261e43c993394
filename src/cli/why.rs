//! `watershed why`: where the cycles of a collective went.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;

use super::progress::Meter;
use super::replay::Recorded;
use super::run::{Window, window};
use super::{Exit, complain, print};
use crate::scenario::run::{self, RunOptions};
use crate::scenario::why::{Ask, Why};

/// Say where the cycles of a collective's latency went.
#[derive(Debug, Args)]
#[command(after_help = "\
Runs what the result was made from once more with a journal, and follows the last word that landed back along its critical
path: the queues it waited in, the links, the engines and which operand came last there, the core it began at. The parts add
up to the latency exactly. So far for collectives of the PIUMA family.

Examples:
  watershed run allreduce-die --set collective.0.elements=1 --out out
  watershed why out/allreduce-die.json
  watershed why out/allreduce-die.json --collective sum --packet 0 --json

Exit status:
  0  the latency is explained
  1  it is not: no collective has ended
  2  the command line is wrong, or the file is no result document that can be run again")]
pub(super) struct Arguments {
    /// Result document, as `run --json` and `run --out` write it
    #[arg(value_name = "RESULT.json")]
    file: PathBuf,
    /// Only this collective
    #[arg(long, value_name = "NAME")]
    collective: Option<String>,
    /// The way of this word of the vector instead of the last one
    #[arg(long, value_name = "NUMBER")]
    packet: Option<u64>,
    /// Only what happened from cycle A to cycle B, both included; either may be left out
    #[arg(long, value_name = "A..B", value_parser = window)]
    cycles: Option<Window>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    match execute(arguments) {
        Ok(true) => Exit::Fine,
        Ok(false) => Exit::Failed,
        Err(error) => {
            complain(&error);
            Exit::Bad
        }
    }
}

fn execute(arguments: &Arguments) -> Result<bool, String> {
    let recorded = Recorded::read(&arguments.file)?;
    if let Some(name) = &arguments.collective {
        let known: Vec<&str> = recorded.loaded.scenario.collectives.iter().map(|found| found.name.as_str()).collect();
        if !known.contains(&name.as_str()) {
            let list = crate::scenario::names::one_of(&known);
            return Err(format!("error: the result has no collective \"{name}\", but {list}"));
        }
    }
    let meter = Meter::new();
    let hook = |progress| meter.update(progress);
    let ask = Ask { collective: arguments.collective.as_deref(), packet: arguments.packet };
    let outcome = run::run(&recorded.loaded, &RunOptions { hook: Some(&hook), why: Some(ask), ..recorded.options() });
    meter.finish();
    let result = outcome.map_err(|error| error.to_string())?;
    for note in &result.notes {
        complain(&format_args!("note: {note}"));
    }
    if result.why.is_empty() {
        complain(&"no collective has ended: there is no latency to explain");
        return Ok(false);
    }
    if arguments.json {
        print(&serde_json::to_string_pretty(&result.why).unwrap_or_default());
    } else {
        let texts: Vec<String> = result.why.iter().map(|why| text(why, arguments.cycles)).collect();
        print(&texts.join("\n"));
    }
    Ok(true)
}

fn text(why: &Why, window: Option<Window>) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}: {} cycles, from {} to {}, along the way of word {} to {}",
        why.collective, why.latency_cycles, why.start_cycle, why.end_cycle, why.word, why.landed_at
    );
    let shown = |from: u64, to: u64| {
        window.is_none_or(|window| to > window.from.unwrap_or(0) && window.to.is_none_or(|last| from <= last))
    };
    let _ = writeln!(out, "\n  from    to  cycles  phase      what          where");
    for part in &why.parts {
        if shown(part.from, part.to) {
            let _ = writeln!(
                out,
                "{:6}{:6}{:8}  {:9}  {:12}  {}",
                part.from,
                part.to,
                part.to - part.from,
                part.phase.name(),
                part.kind.name(),
                part.place
            );
        }
    }
    for engine in &why.engines {
        if !shown(engine.cycle, engine.cycle + 1) {
            continue;
        }
        let others: Vec<String> = engine
            .others
            .iter()
            .map(|(port, early)| if *early == 0 { format!("P{port} too") } else { format!("P{port} {early} earlier") })
            .collect();
        let others = if others.is_empty() { "alone".to_owned() } else { others.join(", ") };
        let _ = writeln!(
            out,
            "{}: the last operand came by P{} in cycle {} ({others})",
            engine.switch, engine.port, engine.cycle
        );
    }
    let sums = |list: Vec<(&str, u64)>| {
        let words: Vec<String> =
            list.iter().filter(|(_, cycles)| *cycles > 0).map(|(name, cycles)| format!("{name} {cycles}")).collect();
        words.join(" + ")
    };
    let phases = sums(why.by_phase().into_iter().map(|(phase, cycles)| (phase.name(), cycles)).collect());
    let kinds = sums(why.by_kind().into_iter().map(|(kind, cycles)| (kind.name(), cycles)).collect());
    let _ = writeln!(out, "\n{} cycles = {phases}", why.latency_cycles);
    let _ = writeln!(out, "{} cycles = {kinds}", why.latency_cycles);
    out
}
