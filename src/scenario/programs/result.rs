//! What programs reported, and the outcome of every call of a collective.

use super::rules;
use crate::build::BuiltCollective;
use crate::config::{Collective, CollectiveKind, Scenario};
use crate::golden;
use crate::result::Check;
use crate::run::system::PiumaSystem as System;
use watershed_arith as arith;
use watershed_oracle::EngineList;
use watershed_piuma::Job;
use watershed_piuma::processor::{Call, Processor};

pub use watershed_scenario_interface::program_result::{
    CallResult, CoreResult, ProgramsResult, ReportResult, call_name,
};

fn processors(system: &System) -> impl Iterator<Item = (usize, &Processor)> {
    system.ends().enumerate().filter_map(|(end, point)| Some((end, point.processor()?)))
}

/// Everything that programs did, and the checks of it.
pub fn report(
    scenario: &Scenario,
    built: &[BuiltCollective],
    system: &System,
    oracle: bool,
) -> (ProgramsResult, Vec<Check>) {
    let mut result = ProgramsResult::default();
    for (end, processor) in processors(system) {
        let counted = processor.counted();
        let reports = processor.reports().iter();
        result.cores.push(CoreResult {
            core: end as u64,
            threads: processor.threads(),
            sent: counted.sent,
            received: counted.received,
            left: counted.left,
            events: counted.events,
            handled: processor.handled(),
            reports: reports
                .map(|report| ReportResult {
                    cycle: report.cycle,
                    thread: report.thread,
                    line: report.line,
                    value: format!("{:#x}", report.value),
                })
                .collect(),
        });
    }
    let mut checks = Vec::new();
    for (collective, built) in scenario.collectives.iter().zip(built).filter(|(collective, _)| collective.called) {
        let calls = calls(collective, built, system, oracle);
        if oracle {
            let wrong = calls.iter().position(|call| call.bit_exact != Some(true));
            let name = format!("bit-exact: {}", collective.name);
            checks.push(match wrong {
                None => Check::passed(name, format!("{} calls have the oracle's results and flags", calls.len())),
                Some(number) => Check::failed(name, wrong_call(&calls[number])),
            });
        }
        result.calls.extend(calls);
    }
    (result, checks)
}

/// What is wrong with a call that has not the oracle's bits.
fn wrong_call(call: &CallResult) -> String {
    let CallResult { call: number, elements, last_call_cycle, .. } = call;
    match call.end_cycle {
        Some(end) => format!("call {number} ended in cycle {end} with other bits or flags than the oracle's"),
        None => format!(
            "call {number} of {elements} element{} did not end; its last call was in cycle {last_call_cycle}",
            if *elements == 1 { "" } else { "s" }
        ),
    }
}

/// A participant's part in a call: its end point, the call, and the job once that has started.
pub type CallPart<'a> = (usize, &'a Call, Option<&'a Job>);

/// What has been called of a collective, call by call: the parts of those participants that got that far.
pub fn parts<'a>(collective: &Collective, system: &'a System) -> Vec<Vec<CallPart<'a>>> {
    let id = collective.id as u16;
    let of = |&end: &u32| -> Vec<CallPart<'a>> {
        let point = system.end(end as usize);
        let calls = point.processor().into_iter().flat_map(Processor::calls).filter(|call| call.id == id);
        let job = |call: &Call| point.core.as_ref().and_then(|core| core.jobs().get(call.job?));
        calls.map(|call| (end as usize, call, job(call))).collect()
    };
    let all: Vec<Vec<CallPart<'a>>> = collective.participants.iter().map(of).collect();
    let most = all.iter().map(Vec::len).max().unwrap_or(0);
    (0..most).map(|number| all.iter().filter_map(|calls| calls.get(number).copied()).collect()).collect()
}

/// The calls of one collective.
fn calls(collective: &Collective, built: &BuiltCollective, system: &System, oracle: bool) -> Vec<CallResult> {
    let all = parts(collective, system);
    all.into_iter()
        .enumerate()
        .map(|(number, parts)| {
            let parts: Vec<(&Call, Option<&Job>)> = parts.into_iter().map(|(_, call, job)| (call, job)).collect();
            let elements = parts[0].0.elements;
            let everybody = parts.len() == collective.participants.len();
            let whole = everybody && parts.iter().all(|(call, _)| call.elements == elements);
            let first_call_cycle = parts.iter().map(|(call, _)| call.issued).min().unwrap_or(0);
            let last_call_cycle = parts.iter().map(|(call, _)| call.issued).max().unwrap_or(0);
            let ends: Option<Vec<u64>> = parts.iter().map(|(call, _)| call.end).collect();
            let end_cycle = ends.filter(|_| whole).and_then(|ends| ends.into_iter().max());
            let exact = oracle.then(|| {
                end_cycle.is_some()
                    && if collective.kind == CollectiveKind::Barrier {
                        // No participant goes on before all have called it.
                        parts.iter().all(|(call, _)| call.end.is_some_and(|end| end > last_call_cycle))
                    } else {
                        is_exact(collective, rules::tree(built, first_call_cycle), &parts, elements as usize)
                    }
            });
            CallResult {
                collective: collective.name.clone(),
                call: number as u64,
                elements,
                first_call_cycle,
                last_call_cycle,
                end_cycle,
                bit_exact: exact,
            }
        })
        .collect()
}

fn is_exact(
    collective: &Collective,
    tree: Option<&EngineList>,
    parts: &[(&Call, Option<&Job>)],
    elements: usize,
) -> bool {
    let source = collective.source as usize;
    let row = |row: usize| if collective.kind == CollectiveKind::Broadcast { source } else { row };
    let tree = match collective.kind {
        CollectiveKind::Broadcast => None,
        _ => tree,
    };
    let stored = |at: usize, word: usize| parts[row(at)].0.input.get(word).copied().unwrap_or(0);
    let (expected, flags) = golden::rows(collective, tree, parts.len(), elements, &stored);
    let dtype = collective.result_dtype();
    let mut raised = arith::Flags::NONE;
    let mut landed = 0;
    for (rank, job) in parts.iter().enumerate().filter_map(|(rank, (_, job))| Some((rank, (*job)?))) {
        raised |= arith::Flags::from_bits(job.flags());
        if job.kind().receives {
            landed += 1;
            let got = arith::unpack_words(dtype, job.output(), elements);
            if got != expected[if expected.len() == 1 { 0 } else { rank }] {
                return false;
            }
        }
    }
    landed > 0 && raised == flags
}
