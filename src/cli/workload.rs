//! `watershed workload`: what is in a trace of an application, and traces of training.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::{Exit, output, print, print_error};
use watershed_workload::model::{self, Model};
use watershed_workload::train::{GradientReduction, Training};
use watershed_workload::{Durations, Error, Group, Kind, MatchedTrace, Schedule, Trace, chakra, schedule};

/// Look at traces of applications, MLCommons Chakra and GOAL, and write traces of training.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed workload inspect traces/loggopsim/binary_tree_32.goal
  watershed workload inspect traces/astra-sim/all_reduce/8npus_1MB/all_reduce
  watershed workload train resnet50 --ranks 16 --minibatch 32 --out out/resnet50
  watershed run SCENARIO --workload traces/astra-sim/all_reduce/8npus_1MB/all_reduce

Exit status:
  0  the trace is sound, or was written
  2  the command line or the trace is wrong, file, rank and node are named; or a file cannot be written")]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Inspect(Inspect),
    Train(Train),
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

/// Write training, layer by layer, as Chakra traces, and show what each layer computes and adds up.
#[derive(Debug, Args)]
#[command(after_help = "\
Every rank computes its own minibatch forward and backward; gradients are added up over all ranks, those of a layer as soon as
backpropagation is through with it, or all at once at the end. A model of your own is a table of layers: the book has one.

Examples:
  watershed workload train vgg16
  watershed workload train vgg16 --ranks 16 --peak-tflops 156 --bandwidth-gbps 12480 --out out/vgg16
  watershed workload train resnet50 --reduce end --iterations 2 --out out/resnet50
  watershed workload train mine.toml --json

Exit status:
  0  the files were written; without --out, the layers were shown
  2  the command line or the table of layers is wrong, or a file cannot be written")]
struct Train {
    /// vgg16, resnet50, or a table of layers
    #[arg(value_name = "MODEL|FILE.toml")]
    model: String,
    /// Replicas, each on a rank of its own
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4096))]
    ranks: u32,
    /// Images of a rank in an iteration
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    minibatch: u64,
    /// Iterations
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    iterations: u32,
    /// Bytes of an element of weights, gradients and activations
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=8))]
    element_bytes: u64,
    /// Operations a second of a rank, in 10^12
    #[arg(long, value_name = "X", default_value_t = 156.0, value_parser = positive)]
    peak_tflops: f64,
    /// Gb/s of a rank's own memory [default: it is never short]
    #[arg(long, value_name = "X", value_parser = positive)]
    bandwidth_gbps: Option<f64>,
    /// When gradients are added up: those of a layer as soon as backpropagation is through with it, or all at the end of it
    #[arg(long, value_enum, default_value_t = GradientReductionArg::Layers)]
    reduce: GradientReductionArg,
    /// Write PREFIX.0.et, PREFIX.1.et and so on
    #[arg(short, long, value_name = "PREFIX")]
    out: Option<PathBuf>,
    /// Print the layers as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GradientReductionArg {
    Layers,
    End,
}

/// Reads a rate: a number above 0.
fn positive(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (1e-6..=1e9).contains(value));
    value.ok_or_else(|| "a number from 0.000001 to 1000000000".to_owned())
}

/// Reads `NAME=0,1,2`.
pub(super) fn group(text: &str) -> Result<Group, String> {
    let (name, ranks) = text.split_once('=').ok_or("a group is NAME=RANKS, for example tensor=0,1")?;
    let rank = |text: &str| text.trim().parse().map_err(|_| format!("\"{text}\" is not a rank"));
    let ranks = ranks.split(',').map(rank).collect::<Result<_, _>>()?;
    Ok(Group { name: name.to_owned(), ranks })
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    match &arguments.command {
        Command::Inspect(arguments) => inspect(arguments),
        Command::Train(arguments) => match train(arguments) {
            Ok(text) => {
                print(&text);
                Exit::Fine
            }
            Err(error) => {
                print_error(&error);
                Exit::Bad
            }
        },
    }
}

fn inspect(arguments: &Inspect) -> Exit {
    let read = Trace::read(&arguments.trace, &arguments.group);
    let paced = read.and_then(|(trace, matched)| {
        let pace = schedule(&trace, &matched, Durations::MEASURED)?;
        Ok((trace, matched, pace))
    });
    match paced {
        Ok((trace, matched, pace)) => {
            print(&if arguments.json { json(&trace, &matched, &pace) } else { text(&trace, &matched, &pace) });
            Exit::Fine
        }
        Err(error) => {
            print_error(&error);
            Exit::Bad
        }
    }
}

/// This many ps, for people.
fn time(ps: u64) -> String {
    let scale = [(1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1000, "ns")];
    match scale.into_iter().find(|&(unit, _)| ps >= unit) {
        Some((unit, name)) => format!("{:.3} {name}", ps as f64 / unit as f64),
        None => format!("{ps} ps"),
    }
}

/// The longest steps that are printed.
const STEPS: usize = 8;

fn text(trace: &Trace, matched: &MatchedTrace, pace: &Schedule) -> String {
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

fn json(trace: &Trace, matched: &MatchedTrace, pace: &Schedule) -> String {
    let totals = trace.totals();
    let ranks = trace.ranks.iter().zip(&pace.ends).map(|(rank, end)| {
        let computes = |kind: &Kind| if let Kind::Compute(compute) = kind { compute.ps } else { 0 };
        let compute: u64 = rank.nodes.iter().map(|node| computes(&node.kind)).sum();
        json!({ "file": rank.file, "nodes": rank.nodes.len(), "compute_ps": compute, "end_ps": end })
    });
    let collectives = matched.collectives.iter().map(|instance| {
        let of = instance.collective;
        json!({ "kind": of.op.name(), "bytes": of.bytes, "group": trace.groups[of.group as usize].name, "ranks": instance.nodes.len() })
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

/// Nodes of a trace of training, at most.
const NODES: u64 = 1 << 24;

fn train(arguments: &Train) -> Result<String, String> {
    let said = |error: Error| error.to_string();
    let model = Model::read(&arguments.model).map_err(said)?;
    let training = Training {
        ranks: arguments.ranks,
        minibatch: arguments.minibatch,
        iterations: arguments.iterations,
        element_bytes: arguments.element_bytes,
        peak_tflops: arguments.peak_tflops,
        bandwidth_gbps: arguments.bandwidth_gbps,
        reduce: match arguments.reduce {
            GradientReductionArg::Layers => GradientReduction::Layers,
            GradientReductionArg::End => GradientReduction::End,
        },
    };
    let nodes = training.nodes_of_a_rank(&model) * u64::from(training.ranks);
    if nodes > NODES {
        return Err(format!("error: a trace of {nodes} nodes\n  = expected: up to {NODES}: fewer ranks or iterations"));
    }
    let mut files = Vec::new();
    if let Some(prefix) = &arguments.out {
        let outputs: Vec<_> = (0..training.ranks).map(|rank| ("--out", chakra::file(prefix, rank))).collect();
        // A table of one's own is read; what comes with the program is no file.
        let own = !model::SHIPPED.iter().any(|(name, _)| *name == arguments.model);
        let inputs: Vec<PathBuf> = own.then(|| PathBuf::from(&arguments.model)).into_iter().collect();
        let _claims = output::claim(&outputs, &inputs)?;
        for ((_, path), bytes) in outputs.into_iter().zip(chakra::write(&training.trace(&model))) {
            output::write(&path, bytes)?;
            files.push(path);
        }
    }
    Ok(if arguments.json { layers_json(&model, &training, &files) } else { layers(&model, &training, &files) })
}

/// The layers that are learnt, for people.
fn layers(model: &Model, training: &Training, files: &[PathBuf]) -> String {
    let source = if model.source.is_empty() { String::new() } else { format!(", {}", model.source) };
    let mut out = format!("{}{source}\n\n", model.name);
    let learnt: Vec<_> = model.layers.iter().filter(|layer| layer.multiply_adds > 0).collect();
    let wide = learnt.iter().map(|layer| layer.name.len()).max().unwrap_or(0).max(5);
    let mut line = |words: [&str; 7]| {
        let [name, rest @ ..] = words;
        let _ = write!(out, "{name:wide$}");
        for (word, width) in rest.iter().zip([16, 16, 13, 17, 12, 12]) {
            let _ = write!(out, " {word:>width$}");
        }
        out.push('\n');
    };
    line(["layer", "input", "output", "parameters", "all-reduce bytes", "forward", "backward"]);
    for layer in &learnt {
        let [forward, backward] = training.passes(layer).map(|compute| time(compute.ps));
        line([
            &layer.name,
            &layer.input.to_string(),
            &layer.output.to_string(),
            &layer.parameters.to_string(),
            &(layer.parameters * training.element_bytes).to_string(),
            &forward,
            &backward,
        ]);
    }
    let (parameters, operations) = (model.parameters(), model.multiply_adds());
    let bytes = parameters * training.element_bytes;
    line(["all", "", "", &parameters.to_string(), &bytes.to_string(), "", ""]);
    let _ = writeln!(
        out,
        "\n{operations} multiply-adds an image; a rank computes {} an iteration, {} images",
        time(training.compute_ps(model)),
        training.minibatch
    );
    if let (Some(first), Some(last)) = (files.first(), files.last()) {
        let nodes = training.nodes_of_a_rank(model);
        let _ = writeln!(out, "wrote {} to {}: {nodes} nodes each", first.display(), last.display());
    }
    out
}

fn layers_json(model: &Model, training: &Training, files: &[PathBuf]) -> String {
    let layers = model.layers.iter().filter(|layer| layer.multiply_adds > 0).map(|layer| {
        let [forward, backward] = training.passes(layer);
        json!({
            "name": layer.name,
            "input": [layer.input.0, layer.input.1, layer.input.2],
            "output": [layer.output.0, layer.output.1, layer.output.2],
            "parameters": layer.parameters,
            "multiply_adds": layer.multiply_adds,
            "allreduce_bytes": layer.parameters * training.element_bytes,
            "forward_ps": forward.ps,
            "backward_ps": backward.ps,
        })
    });
    let document = json!({
        "model": model.name,
        "source": model.source,
        "parameters": model.parameters(),
        "multiply_adds": model.multiply_adds(),
        "compute_ps": training.compute_ps(model),
        "layers": layers.collect::<Vec<_>>(),
        "files": files,
    });
    serde_json::to_string_pretty(&document).unwrap_or_default()
}
