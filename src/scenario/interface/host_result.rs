//! The results of hosts, in the document and for people.

use serde::{Deserialize, Serialize};

/// The outcome of one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostResult {
    /// Its name.
    pub name: String,
    /// How it was done.
    pub algorithm: String,
    /// "fabric" or "ideal".
    pub mode: String,
    /// How many took part: its ranks.
    pub participants: u64,
    /// The operation; null of a send loop.
    pub op: Option<String>,
    /// Type of an element.
    pub dtype: String,
    /// Elements.
    pub elements: u64,
    /// Steps of the algorithm in which the busiest rank had something to do.
    pub steps: u64,
    /// Words that the busiest rank sent.
    pub words_sent: u64,
    /// Words that the busiest rank received.
    pub words_received: u64,
    /// Messages of all ranks.
    pub messages: u64,
    /// First cycle; null if it did not start.
    pub start_cycle: Option<u64>,
    /// Last cycle; null if it did not end.
    pub end_cycle: Option<u64>,
    /// From start to end.
    pub latency_cycles: Option<u64>,
    /// The same in ns.
    pub latency_ns: Option<f64>,
    /// Every rank's every element has the oracle's bits; null if that was not checked.
    pub bit_exact: Option<bool>,
}

impl HostResult {
    /// For people; `window` says from when to when it ran, if it has to be said.
    pub fn lines(&self, window: &str) -> Vec<(String, String)> {
        let mode = if self.mode == "ideal" { ", without contention" } else { "" };
        let op = self.op.as_ref().map_or_else(String::new, |op| format!(" ({op})"));
        let first = format!(
            "{}{op} of {} {} elements over {} ranks{mode}",
            self.algorithm, self.elements, self.dtype, self.participants
        );
        let time = match (self.latency_cycles, self.latency_ns) {
            (Some(cycles), Some(ns)) => format!(
                "{cycles} cycles = {ns} ns{window} in {} steps, {} words sent and {} received by the busiest rank",
                self.steps, self.words_sent, self.words_received
            ),
            _ => "not finished".to_owned(),
        };
        vec![(self.name.clone(), first), (String::new(), time)]
    }
}
