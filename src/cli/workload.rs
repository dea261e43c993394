//! `watershed workload`: what is in a trace of an application.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Exit, complain, print};
use watershed_workload::{Group, Kind, Matched, Pace, Trace, pace};

/// Look at traces of applications: MLCommons Chakra and GOAL.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed workload inspect traces/loggopsim/binary_tree_32.goal
  watershed workload inspect traces/astra-sim/all_reduce/8npus_1MB/all_reduce
  watershed run SCENARIO --workload traces/astra-sim/all_reduce/8npus_1MB/all_reduce

Exit status:
  0  the trace is sound
  2  the command line or the trace is wrong: file, rank and node are named")]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Inspect(Inspect),
}

/// Check a trace and show ranks, nodes, bytes, computing, and the critical path without a network.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed workload inspect traces/loggopsim/binary_tree_32.goal
  watershed workload inspect traces/astra-sim/all_to_all/16npus_1MB/all_to_all --json
  watershed workload inspect out/model --group tensor=0,1 --group data=0,2

Exit status:
  0  the trace is sound
  2  the command line or the trace is wrong: file, rank and node are named")]
struct Inspect {
    /// A GOAL schedule, or the prefix of Chakra's files: PREFIX.0.et, PREFIX.1.et and so on
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// A process group that the trace names and does not list; can be given several times
    #[arg(long, value_name = "NAME=RANKS", value_parser = group)]
    group: Vec<Group>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// Reads `NAME=0,1,2`.
pub(super) fn group(text: &str) -> Result<Group, String> {
    let (name, ranks) = text.split_once('=').ok_or("a group is NAME=RANKS, for example tensor=0,1")?;
    let rank = |text: &str| text.trim().parse().map_err(|_| format!("\"{text}\" is not a rank"));
    let ranks = ranks.split(',').map(rank).collect::<Result<_, _>>()?;
    Ok(Group { name: name.to_owned(), ranks })
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    let Command::Inspect(arguments) = &arguments.command;
    let read = Trace::read(&arguments.trace, &arguments.group);
    let paced = read.and_then(|(trace, matched)| {
        let pace = pace(&trace, &matched, &|compute| compute.ps)?;
        Ok((trace, matched, pace))
    });
    match paced {
        Ok((trace, matched, pace)) => {
            print(&if arguments.json { json(&trace, &matched, &pace) } else { text(&trace, &matched, &pace) });
            Exit::Fine
        }
        Err(error) => {
            complain(&error);
            Exit::Bad
        }
    }
}

/// So many ps, for people.
fn time(ps: u64) -> String {
    let scale = [(1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1000, "ns")];
    match scale.into_iter().find(|&(unit, _)| ps >= unit) {
        Some((unit, name)) => format!("{:.3} {name}", ps as f64 / unit as f64),
        None => format!("{ps} ps"),
    }
}

/// The longest steps that are printed.
const STEPS: usize = 8;

fn text(trace: &Trace, matched: &Matched, pace: &Pace) -> String {
    let totals = trace.totals();
    let mut out = String::new();
    let mut line = |label: &str, text: &str| {
        let _ = writeln!(out, "{label:<16}{text}");
    };
    line("trace", &format!("{}, {} ranks", trace.format.name(), trace.ranks.len()));
    let nodes: u64 = totals.nodes.values().sum();
    let kinds: Vec<String> = totals.nodes.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    line("nodes", &format!("{nodes}: {}", kinds.join(", ")));
    for group in &trace.groups[1..] {
        let ranks: Vec<String> = group.ranks.iter().map(ToString::to_string).collect();
        line("group", &format!("\"{}\": ranks {}", group.name, ranks.join(", ")));
    }
    line("messages", &format!("{} of {} bytes", totals.messages, totals.message_bytes));
    let bytes = totals.collective_bytes;
    line("collectives", &format!("{}, {bytes} bytes of vectors at all ranks", matched.collectives.len()));
    let operations = if totals.operations > 0 { format!(", {} operations", totals.operations) } else { String::new() };
    line("computing", &format!("{} of all ranks{operations}", time(totals.compute_ps)));
    let last = pace.ends.iter().copied().max().unwrap_or(0);
    let rank = pace.ends.iter().position(|&end| end == last).unwrap_or(0);
    line("without network", &format!("{}: rank {rank} ends last", time(last)));
    let steps: Vec<_> = pace.path.iter().rev().collect();
    let mut longest: Vec<u64> = steps.iter().map(|step| step.end - step.start).collect();
    longest.sort_unstable_by(|a, b| b.cmp(a));
    let least = longest.get(STEPS - 1).copied().unwrap_or(0);
    line(
        "critical path",
        &format!("{} nodes compute{}", steps.len(), if steps.len() > STEPS { "; the longest" } else { "" }),
    );
    for step in steps.iter().filter(|step| step.end - step.start >= least).take(STEPS) {
        let node = &trace.ranks[step.rank as usize].nodes[step.node as usize];
        line("", &format!("rank {}, {}: {}", step.rank, node.title(trace.format), time(step.end - step.start)));
    }
    out
}

fn json(trace: &Trace, matched: &Matched, pace: &Pace) -> String {
    let totals = trace.totals();
    let ranks = trace.ranks.iter().zip(&pace.ends).map(|(rank, end)| {
        let computes = |kind: &Kind| if let Kind::Compute(compute) = kind { compute.ps } else { 0 };
        let compute: u64 = rank.nodes.iter().map(|node| computes(&node.kind)).sum();
        json!({ "file": rank.file, "nodes": rank.nodes.len(), "compute_ps": compute, "end_ps": end })
    });
    let collectives = matched.collectives.iter().map(|instance| {
        let of = instance.collective;
        json!({ "kind": of.what.name(), "bytes": of.bytes, "group": trace.groups[of.group as usize].name, "ranks": instance.nodes.len() })
    });
    let path = pace.path.iter().rev().map(|step| {
        let node = &trace.ranks[step.rank as usize].nodes[step.node as usize];
        json!({ "rank": step.rank, "node": node.id, "name": node.name, "start_ps": step.start, "end_ps": step.end })
    });
    let document = json!({
        "format": trace.format.name(),
        "nodes": totals.nodes,
        "messages": totals.messages,
        "message_bytes": totals.message_bytes,
        "compute_ps": totals.compute_ps,
        "operations": totals.operations,
        "ranks": ranks.collect::<Vec<_>>(),
        "collectives": collectives.collect::<Vec<_>>(),
        "critical_path": path.collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&document).unwrap_or_default()
}
