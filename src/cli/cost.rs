//! `watershed cost`: what the hardware of a scenario costs.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::run::ScenarioArguments;
use super::{Exit, print, print_error};
use watershed_reader::cost::technology::NANGATE45_TEXT;
use watershed_scenario_interface::Runnable;
use watershed_scenario_interface::cost::{self, Cost, Energy, Events, HardwareTotals};
use watershed_scenario_interface::result::Document;
use watershed_scenario_interface::run::RunOptions;

/// Say what the hardware of a scenario costs: gates, flip-flops, memory, area, the shortest clock period, and the energy of a run.
#[derive(Debug, Args)]
#[command(after_help = "\
Gates, flip-flops and periods are formulas fitted to a synthesis of the RTL twin with the Nangate45 library (the book's page on cost
shows how far they are off). `basis` says what the figures of a block stand on: fitted (within what was synthesised), extrapolated
(beyond it), or not synthesised (counted, at the technology table's price). Units have the datapaths that the jobs of the scenario need.

Examples:
  watershed cost allreduce-die
  watershed cost allreduce-die --set clock=fastest --energy
  watershed cost fig2-tree --set armed.engine.descriptors=32 --json
  watershed cost --print-technology > out/mine.toml
  watershed cost allreduce-die --technology out/mine.toml

Exit status:
  0  the table was printed
  1  with --energy: the run did not end, or a check of it failed
  2  the command line, the scenario or the technology table is wrong")]
pub(super) struct Arguments {
    #[command(flatten)]
    scenario: Option<ScenarioArguments>,
    /// Technology table in place of the scenario's: a file, or nangate45
    #[arg(long, value_name = "FILE")]
    technology: Option<PathBuf>,
    /// Run the scenario, and print the energy of its events as well
    #[arg(long)]
    energy: bool,
    /// Print the technology table that comes with the program: where a table of one's own begins
    #[arg(long, exclusive = true)]
    print_technology: bool,
    /// Print the table as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    if arguments.print_technology {
        print(NANGATE45_TEXT);
        return Exit::Fine;
    }
    let Some(scenario) = &arguments.scenario else {
        print_error(&"error: `watershed cost` needs a scenario: a file, or a name that `watershed list` prints");
        return Exit::Bad;
    };
    let given = arguments.technology.iter().map(|path| format!("technology={:?}", path.display().to_string()));
    let counted = scenario.load_with(&given.collect::<Vec<_>>()).and_then(|loaded| Ok((loaded.cost()?, loaded)));
    let (cost, loaded) = match counted {
        Ok(counted) => counted,
        Err(problems) => {
            print_error(&problems);
            return Exit::Bad;
        }
    };
    let ran = match arguments.energy.then(|| run_for_energy(&loaded, &cost)).transpose() {
        Ok(ran) => ran,
        Err(error) => {
            print_error(&error);
            return Exit::Bad;
        }
    };
    if arguments.json {
        let mut json = cost::json(&cost);
        if let Some((energy, _)) = &ran {
            json["energy"] = json!(energy);
        }
        print(&serde_json::to_string_pretty(&json).unwrap_or_default());
    } else {
        let energy = ran.as_ref().map(|(energy, _)| energy_text(energy)).unwrap_or_default();
        print(
            &(text(&loaded.scenario.name, &cost) + &clock_text(loaded.scenario.clock.frequency_mhz, &cost) + &energy),
        );
    }
    match ran {
        Some((_, document)) if !document.passed() => {
            print_error(&"error: the run did not end, or a check of it failed: `watershed run` says which");
            Exit::Failed
        }
        _ => Exit::Fine,
    }
}

/// The energy of a run, and its document.
fn run_for_energy(loaded: &Runnable, cost: &Cost) -> Result<(Energy, Document), Box<dyn std::fmt::Display>> {
    let technology = loaded.technology().map_err(|problems| Box::new(problems) as Box<dyn std::fmt::Display>)?;
    let result = loaded.run(&RunOptions::default()).map_err(|error| Box::new(error) as Box<dyn std::fmt::Display>)?;
    Ok((loaded.energy(&result.document, cost, &technology), result.document))
}

/// Columns of numbers between the block's name and what it is made of.
const COLUMNS: [&str; 9] = ["count", "bits", "flip-flops", "sram bits", "adders", "gates", "area um2", "wires", "ps"];

fn text(name: &str, cost: &Cost) -> String {
    let row = |block: &str, count: Option<u64>, sum: HardwareTotals, period: Option<f64>| {
        let number = |number: u64| if number == 0 { String::new() } else { number.to_string() };
        let area = if sum.area_um2 == 0.0 { String::new() } else { format!("{:.1}", sum.area_um2) };
        let columns = [
            count.map_or_else(String::new, |count| count.to_string()),
            number(sum.storage_bits),
            number(sum.flip_flops),
            number(sum.sram_bits),
            number(sum.adders),
            number(sum.gates),
            area,
            number(sum.wires),
            period.map_or_else(String::new, |period| format!("{period:.0}")),
        ];
        (block.to_owned(), columns)
    };
    let mut rows = vec![("each".to_owned(), COLUMNS.map(str::to_owned))];
    rows.extend(cost.blocks.iter().map(|block| row(&block.block, Some(block.count), block.each, block.period_ps)));
    rows.push(row("a switch", Some(cost.switches), cost.per_switch, None));
    rows.push(row("all", None, cost.total, Some(cost.period_ps)));
    let mut made: Vec<[&str; 2]> = vec![["basis", "made of"]];
    made.extend(cost.blocks.iter().map(|block| [block.basis.name(), block.detail.as_str()]));
    made.extend([["", "mean, with its engines and buffers"], ["", ""]]);
    let width = |column: usize| rows.iter().map(|row| row.1[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let first = rows.iter().map(|row| row.0.len()).max().unwrap_or(0);
    let second = made.iter().map(|row| row[0].len()).max().unwrap_or(0);
    let mut out = format!("{name}: {} switches, technology {}\n", cost.switches, cost.technology);
    for ((block, columns), [basis, detail]) in rows.iter().zip(made) {
        let _ = write!(out, "{block:first$}");
        for (column, width) in columns.iter().zip(&widths) {
            let _ = write!(out, "  {column:>width$}");
        }
        let _ = writeln!(out, "  {basis:second$}  {detail}");
    }
    let mut out = out.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    let Cost { period_ps, period_gates, frequency_mhz, slowest, .. } = cost;
    let _ = writeln!(
        out,
        "\nshortest period {period_ps:.0} ps ({period_gates:.1} gate delays), {frequency_mhz} MHz: {slowest}"
    );
    out
}

/// How far a scenario's clock is from what its hardware reaches.
fn clock_text(scenario_mhz: f64, cost: &Cost) -> String {
    let times = scenario_mhz / cost.frequency_mhz;
    // The clock that follows from the period is rounded.
    if times < 1.001 {
        return String::new();
    }
    format!("clock of the scenario: {scenario_mhz} MHz, {times:.1} x that\n")
}

fn energy_text(energy: &Energy) -> String {
    let head = ["event", "count", "fJ each", "nJ"].map(str::to_owned);
    let of = |event: &Events| {
        [event.event.clone(), event.count.to_string(), event.each_fj.to_string(), event.energy_nj.to_string()]
    };
    let rows: Vec<[String; 4]> = std::iter::once(head).chain(energy.events.iter().map(of)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    let mut out = String::from("\n");
    for row in &rows {
        let [a, b, c, d] = widths;
        let _ = writeln!(out, "{:a$}  {:>b$}  {:>c$}  {:>d$}", row[0], row[1], row[2], row[3]);
    }
    let Energy { energy_nj, time_ns, power_mw, .. } = energy;
    let _ = writeln!(out, "{energy_nj} nJ in {time_ns} ns: {power_mw} mW");
    out
}
