//! The outcome of every job under the same names, from what the families say of theirs.

use super::result_hash::result_hash;
use crate::Loaded;
use crate::armed_result::{Outcomes, ReductionResult};
use crate::host_result::HostResult;
use crate::job_result::{JobResult, MinMeanMax, latency};
use crate::pbv_result;
use crate::result::{CollectiveResult, Document, ResultData};
use watershed_arith::Op;
use watershed_reader::armed::config::Reduction;
use watershed_reader::armed::file::{DETERMINISTIC, MEAN};
use watershed_reader::config::Collective;
use watershed_reader::file::job::{Engine, operation};
use watershed_reader::hosts::config::Host;
use watershed_reader::names::NamedValues;
use watershed_reader::pbv;

/// The jobs of a run, in the order of the scenario. `data` are its results, as [`RunResult::data`](super::RunResult::data) has
/// them; without them jobs have no hash of theirs.
pub fn all(loaded: &Loaded, document: &Document, data: &[ResultData]) -> Vec<JobResult> {
    let scenario = &loaded.scenario;
    let results = |first: &str, count: usize| {
        let at = data.iter().position(|of| of.place == first)?;
        result_hash(scenario.results, &data[at..data.len().min(at + count)])
    };
    // Each with the table that it is in, and how many results it has.
    let mut list: Vec<(String, JobResult, usize)> = Vec::new();
    // Programs call some collectives themselves, as often as they like.
    let collectives = scenario.collectives.iter().enumerate().filter(|(_, of)| !of.called);
    for ((at, of), (number, result)) in collectives.zip(document.collectives.iter().enumerate()) {
        list.push((format!("collective[{at}]"), collective(of, result, number), 1));
    }
    for (at, (of, result)) in scenario.hosts.iter().zip(&document.hosts).enumerate() {
        list.push((format!("host[{at}]"), host(of, result, at), 1));
    }
    if let (Some(armed), Some(told)) = (&scenario.armed, &document.armed) {
        for (at, (of, result)) in armed.reductions.iter().zip(&told.reductions).enumerate() {
            list.push((format!("armed.reduction[{at}]"), reduction(of, result, at), 1));
        }
    }
    if let (Some(pbv), Some(told)) = (&scenario.pbv, &document.pbv) {
        let (mut at, mut first) = (0, 0);
        while let Some(of) = pbv.collectives.get(first) {
            let count = of.share.map_or(1, |share| share.count as usize).min(pbv.collectives.len() - first);
            let range = first..first + count;
            if let Some(told) = told.collectives.get(range.clone()) {
                list.push((format!("pbv.collective[{at}]"), packets(&pbv.collectives[range], told, first), count));
            }
            // Groups of a barrier are one table of the scenario.
            at += usize::from(of.group.is_none_or(|group| group.number + 1 == group.count));
            first += count;
        }
    }
    // Jobs of several engines stand as they are written; tables of engines, one engine after the other.
    list.sort_by_key(|(table, ..)| loaded.source.job(table));
    let settled = |(_, mut job, count): (String, JobResult, usize)| {
        fill_derived(&mut job, loaded);
        job.results = results(&job.details, count);
        job
    };
    list.into_iter().map(settled).collect()
}

/// Fills in what follows from the rest.
fn fill_derived(job: &mut JobResult, loaded: &Loaded) {
    job.latency_cycles = latency(job.start_cycle, job.end_cycle, &job.outcomes);
    job.latency_ns = job.latency_cycles.map(|cycles| loaded.scenario.clock.nanoseconds(cycles));
    let cycles = job.latency_cycles.filter(|&cycles| cycles > 0 && job.elements > 0);
    job.elements_per_cycle = cycles.map(|cycles| job.elements as f64 / cycles as f64);
}

/// How the one round of a job ended that is done as a whole.
fn single_round_outcome(start: Option<u64>, end: Option<u64>, exact: Option<bool>) -> Outcomes {
    let mut outcomes = Outcomes::default();
    let slot = match (start, end) {
        (_, Some(_)) if exact == Some(false) => &mut outcomes.silent,
        (_, Some(_)) => &mut outcomes.complete,
        (Some(_), None) => &mut outcomes.open,
        (None, None) => &mut outcomes.unstarted,
    };
    *slot = 1;
    outcomes
}

/// The latency of that round: participants that are late begin so much after the first one.
fn from_last(start: Option<u64>, end: Option<u64>, delays: &[u64]) -> Option<MinMeanMax> {
    let (least, most) = (delays.iter().min().copied().unwrap_or(0), delays.iter().max().copied().unwrap_or(0));
    Some(MinMeanMax::of_one(end?.saturating_sub(start? + most - least)))
}

fn collective(of: &Collective, result: &CollectiveResult, at: usize) -> JobResult {
    let (start, end) = (result.start_cycle, result.end_cycle.filter(|_| result.latency_cycles.is_some()));
    JobResult {
        name: result.name.clone(),
        engine: Engine::Piuma,
        kind: result.kind.clone(),
        op: result.op.clone(),
        dtype: result.dtype.clone(),
        participants: result.participants,
        elements: result.elements,
        rounds: 1,
        outcomes: single_round_outcome(start, end, result.bit_exact),
        start_cycle: start,
        end_cycle: end,
        latency_cycles: None,
        latency_ns: None,
        elements_per_cycle: None,
        round_latency_cycles: from_last(start, end, &of.start.delays),
        bit_exact: result.bit_exact,
        results: None,
        details: format!("collectives.{at}"),
    }
}

fn host(of: &Host, result: &HostResult, at: usize) -> JobResult {
    let (start, end) = (result.start_cycle, result.end_cycle);
    JobResult {
        name: result.name.clone(),
        engine: Engine::Software,
        kind: if of.reduces() { "allreduce" } else { "broadcast" }.into(),
        op: result.op.clone(),
        dtype: Some(result.dtype.clone()),
        participants: result.participants,
        elements: result.elements,
        rounds: 1,
        outcomes: single_round_outcome(start, end, result.bit_exact),
        start_cycle: start,
        end_cycle: end,
        latency_cycles: None,
        latency_ns: None,
        elements_per_cycle: None,
        round_latency_cycles: from_last(start, end, &of.delays),
        bit_exact: result.bit_exact,
        results: None,
        details: format!("hosts.{at}"),
    }
}

fn reduction(of: &Reduction, result: &ReductionResult, at: usize) -> JobResult {
    let opcode = of.opcode();
    let barrier = opcode.op == Op::Barrier;
    let op = match of.file.op.as_str() {
        MEAN => "mean".to_owned(),
        DETERMINISTIC => "sum-deterministic".to_owned(),
        _ => operation(opcode),
    };
    JobResult {
        name: result.name.clone(),
        engine: Engine::Armed,
        kind: if barrier { "barrier" } else { "allreduce" }.into(),
        op: (!barrier).then_some(op),
        dtype: (!barrier).then(|| NamedValues::name(opcode.dtype).to_owned()),
        participants: result.participants,
        elements: u64::from(of.file.rounds) * of.row_length() as u64,
        rounds: u64::from(of.file.rounds),
        outcomes: result.outcomes,
        start_cycle: result.start_cycle,
        end_cycle: result.end_cycle,
        latency_cycles: None,
        latency_ns: None,
        elements_per_cycle: None,
        round_latency_cycles: result.round_latency_cycles,
        bit_exact: result.bit_exact,
        results: None,
        details: format!("armed.reductions.{at}"),
    }
}

/// A job whose rounds are spread over one context or more.
fn packets(of: &[pbv::config::Collective], results: &[pbv_result::CollectiveResult], at: usize) -> JobResult {
    let (first, head) = (&results[0], &of[0]);
    let mut outcomes = Outcomes::default();
    for one in results {
        outcomes.add(&one.outcomes);
    }
    let spread = |one: &pbv_result::CollectiveResult| {
        Some((one.round_latency_cycles?, one.outcomes.complete + one.outcomes.after_retry))
    };
    let rounds = of.iter().map(|one| u64::from(one.rounds)).sum();
    let exact: Option<Vec<bool>> = results.iter().map(|one| one.bit_exact).collect();
    let ends: Option<Vec<u64>> = results.iter().map(|one| one.end_cycle).collect();
    JobResult {
        name: head.share.and_then(|_| first.name.strip_suffix(".0")).unwrap_or(&first.name).to_owned(),
        engine: Engine::Pbv,
        kind: first.kind.clone(),
        op: first.op.clone(),
        dtype: first.dtype.clone(),
        participants: first.participants,
        elements: first.elements_per_round * rounds,
        rounds,
        outcomes,
        start_cycle: results.iter().filter_map(|one| one.start_cycle).min(),
        end_cycle: ends.and_then(|ends| ends.into_iter().max()),
        latency_cycles: None,
        latency_ns: None,
        elements_per_cycle: None,
        round_latency_cycles: MinMeanMax::over(results.iter().filter_map(spread)),
        bit_exact: exact.map(|all| all.into_iter().all(|exact| exact)),
        results: None,
        details: format!("pbv.collectives.{at}"),
    }
}
