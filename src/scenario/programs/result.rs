//! What programs reported, and the outcome of every call of a collective.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

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

/// What programs did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramsResult {
    /// The cores that ran programs or got messages.
    pub cores: Vec<CoreResult>,
    /// The calls of collectives, by collective and in order.
    pub calls: Vec<CallResult>,
}

/// What one core did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreResult {
    /// The end point.
    pub core: u64,
    /// Threads that ran.
    pub threads: u32,
    /// Messages that its CCE sent.
    pub sent: u64,
    /// Messages that its CCE received.
    pub received: u64,
    /// Messages that nobody took.
    pub left: u64,
    /// Interrupt events.
    pub events: u64,
    /// Runs of its interrupt handler.
    pub handled: u64,
    /// What its threads reported, in order.
    pub reports: Vec<ReportResult>,
}

/// A value that a thread reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportResult {
    /// When.
    pub cycle: u64,
    /// Which thread.
    pub thread: u32,
    /// Which line.
    pub line: u32,
    /// The value, hexadecimal.
    pub value: String,
}

/// One call of a collective, by all of its participants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// The collective.
    pub collective: String,
    /// The number of the call, from 0.
    pub call: u64,
    /// Elements.
    pub elements: u64,
    /// Cycle in which the first participant called it.
    pub first_call_cycle: u64,
    /// Cycle in which the last participant called it.
    pub last_call_cycle: u64,
    /// Cycle in which it was complete for the last participant; null if it was not.
    pub end_cycle: Option<u64>,
    /// Every element that landed anywhere has the oracle's bits, and the flags agree; null if that was not checked.
    pub bit_exact: Option<bool>,
}

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

/// What a call of a collective is called where one is asked for.
pub fn call_name(collective: &str, number: usize) -> String {
    format!("{collective}.{number}")
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

impl ProgramsResult {
    /// For people: a label and a text a line.
    pub fn lines(&self) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        let total = |of: fn(&CoreResult) -> u64| self.cores.iter().map(of).sum::<u64>();
        let threads: u64 = self.cores.iter().map(|core| u64::from(core.threads)).sum();
        let ran = self.cores.iter().filter(|core| core.threads > 0).count();
        let mut text = format!("{threads} threads on {ran} cores");
        let (sent, received) = (total(|core| core.sent), total(|core| core.received));
        if sent + received > 0 {
            let _ = write!(text, ", {sent} messages sent, {received} received");
        }
        let (events, handled) = (total(|core| core.events), total(|core| core.handled));
        if events > 0 {
            let _ = write!(text, ", {events} interrupts, {handled} handled");
        }
        lines.push(("programs".to_owned(), text));
        const SHOWN: usize = 8;
        let reports = self.cores.iter().flat_map(|core| core.reports.iter().map(move |report| (core.core, report)));
        let count = reports.clone().count();
        for (core, report) in reports.take(SHOWN) {
            let text = format!("core {core}, cycle {}, line {}: {}", report.cycle, report.line, report.value);
            lines.push((String::new(), text));
        }
        if count > SHOWN {
            lines.push((String::new(), format!("{} more reports are in the result document", count - SHOWN)));
        }
        for call in &self.calls {
            let end = call.end_cycle.map_or_else(
                || "not complete".to_owned(),
                |end| format!("complete in cycle {end}, {} cycles after the last call", end - call.last_call_cycle),
            );
            let exact = match call.bit_exact {
                Some(true) => ", bit-exact",
                Some(false) => ", NOT bit-exact",
                None => "",
            };
            let what = if call.elements == 0 { String::new() } else { format!("{} elements, ", call.elements) };
            let text =
                format!("{what}called in cycles {} to {}, {end}{exact}", call.first_call_cycle, call.last_call_cycle);
            lines.push((format!("{} #{}", call.collective, call.call), text));
        }
        lines
    }
}
