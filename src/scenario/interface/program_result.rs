//! What programs reported, and the calls of collectives, in the document and for people.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

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

/// What a call of a collective is called where one is asked for.
pub fn call_name(collective: &str, number: usize) -> String {
    format!("{collective}.{number}")
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
