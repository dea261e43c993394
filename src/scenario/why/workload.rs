//! The critical path of a workload through ranks and messages, from the last operation back to cycle 0.

use super::{Kind, Part, Phase, Why};
use crate::workload::result::{Step, WorkloadResult};

pub use watershed_scenario_interface::why::WORKLOAD as NAME;

/// The path of a workload that has ended; `end_point` names that of a rank.
///
/// # Errors
/// It has not.
pub fn explain(result: &WorkloadResult, end_point: impl Fn(u64) -> String) -> Result<Why, String> {
    let (Some(end), Some(last)) = (result.end_cycle, result.path.last()) else {
        return Err(format!("{NAME}: it did not end, or took no time"));
    };
    let parts: Vec<Part> = result.path.iter().map(|step| part(step, &end_point(step.rank))).collect();
    let sum: u64 = parts.iter().map(|part| part.to - part.from).sum();
    if sum != end {
        return Err(format!("{NAME}: {sum} of {end} cycles are explained"));
    }
    Ok(Why {
        collective: NAME.to_owned(),
        what: "rank".to_owned(),
        number: last.rank,
        landed_at: last.node.clone(),
        start_cycle: 0,
        end_cycle: end,
        latency_cycles: end,
        last_contribution: None,
        parts,
        engines: Vec::new(),
    })
}

fn part(step: &Step, end_point: &str) -> Part {
    let (kind, phase) = match step.what.as_str() {
        "compute" | "load" | "store" | "metadata" => (Kind::Compute, Phase::Inject),
        "overhead" => (Kind::Software, Phase::Inject),
        "message" => (Kind::Message, Phase::Transit),
        "stream" => (Kind::Queue, Phase::Inject),
        _ => (Kind::Collective, Phase::Reduce),
    };
    let what = if kind == Kind::Collective { format!(" ({})", step.what) } else { String::new() };
    let place = format!("{end_point}, rank {}, {}{what}", step.rank, step.node);
    Part { from: step.start_cycle, to: step.end_cycle, kind, phase, place }
}
