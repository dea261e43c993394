//! `watershed cost`: what the hardware of a scenario costs.

use std::fmt::Write;

use clap::Args;

use super::run::ScenarioArguments;
use super::{Exit, complain, print};
use watershed_scenario::cost::{Cost, Sum, cost, json};

/// Count storage bits and arithmetic units of a scenario, and estimate gate equivalents.
#[derive(Debug, Args)]
#[command(after_help = "\
Bits and units follow from the configuration. Gate equivalents are an estimate by a table of chosen numbers (see the
documentation of the library's module scenario::cost); they compare configurations, they predict no area.

Examples:
  watershed cost allreduce-die
  watershed cost fig2-tree --set armed.engine.descriptors=32 --json

Exit status:
  0  the table was printed
  2  the command line or the scenario is wrong")]
pub(super) struct Arguments {
    #[command(flatten)]
    scenario: ScenarioArguments,
    /// Print the table as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    let counted = arguments.scenario.load().and_then(|loaded| Ok((cost(&loaded)?, loaded)));
    match counted {
        Ok((cost, _)) if arguments.json => {
            print(&serde_json::to_string_pretty(&json(&cost)).unwrap_or_default());
            Exit::Fine
        }
        Ok((cost, loaded)) => {
            print(&text(&loaded.scenario.name, &cost));
            Exit::Fine
        }
        Err(problems) => {
            complain(&problems);
            Exit::Bad
        }
    }
}

fn text(name: &str, cost: &Cost) -> String {
    let mut rows: Vec<[String; 7]> = Vec::new();
    let row = |block: &str, count: Option<u64>, sum: Sum, detail: &str| {
        let number = |number: u64| if number == 0 { String::new() } else { number.to_string() };
        [
            block.to_owned(),
            count.map_or_else(String::new, |count| count.to_string()),
            number(sum.storage_bits),
            number(sum.adders),
            number(sum.gates),
            number(sum.wires),
            detail.to_owned(),
        ]
    };
    for block in &cost.blocks {
        rows.push(row(&block.block, Some(block.count), block.each, &block.detail));
    }
    rows.push(row("a switch", Some(cost.switches), cost.per_switch, "mean, with its engines and buffers"));
    rows.push(row("all", None, cost.total, ""));
    let head = ["each", "count", "bits", "adders", "gates", "wires", "made of"];
    let width = |column: usize| rows.iter().map(|row| row[column].len()).chain([head[column].len()]).max().unwrap_or(0);
    let widths: Vec<usize> = (0..7).map(width).collect();
    let mut out = format!("{name}: {} switches\n", cost.switches);
    for row in std::iter::once(head.map(str::to_owned)).chain(rows) {
        let _ = write!(out, "{:w$}", row[0], w = widths[0]);
        for column in 1..6 {
            let _ = write!(out, "  {:>w$}", row[column], w = widths[column]);
        }
        let _ = writeln!(out, "  {}", row[6]);
    }
    out.lines().map(str::trim_end).collect::<Vec<_>>().join("\n") + "\n"
}
