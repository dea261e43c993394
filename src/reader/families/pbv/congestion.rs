//! Congestion metrics that were requested in band, from the answers.

use serde::{Deserialize, Serialize};

use watershed_pbv_interface::queues::{INBOX, MOST_CHANNELS, OUTPUT};

use super::file::WATCHED;

/// The number of a queue that can be watched.
pub fn queue(name: &str) -> Option<usize> {
    let numbers: [usize; WATCHED.len()] = [INBOX, OUTPUT, 0, MOST_CHANNELS];
    WATCHED.iter().position(|known| *known == name).map(|at| numbers[at])
}

/// What an engine said of its queues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CongestionResult {
    /// Name of its switch.
    pub switch: String,
    /// Which of the engines there.
    pub plane: u8,
    /// Name of the end point that asked.
    pub by: String,
    /// Cycle in which the answer was there; null if none came.
    pub answer_cycle: Option<u64>,
    /// Complete windows; 0 where metrics are without end.
    pub windows: u64,
    /// Cycles that the metrics are of: the last complete window, or all so far.
    pub measured_cycles: u64,
    /// Queues in which something stood.
    pub queues: Vec<QueueResult>,
}

/// How full a queue was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueResult {
    /// "P0.p2p0": input buffer of port 0 (from the switch), channel 0; P1 is from what lies behind; "inbox": checked frames;
    /// "output": messages that leave.
    pub queue: String,
    /// "flits" or "messages".
    pub unit: String,
    /// Mean over the cycles measured, as the register has it: in 256ths, rounded down.
    pub mean: f64,
    /// Maximum.
    pub most: u64,
}

impl CongestionResult {
    /// A line of the summary.
    pub fn line(&self) -> String {
        let CongestionResult { switch, by, .. } = self;
        let engine = if self.plane == 0 { switch.clone() } else { format!("{switch}, engine {}", self.plane) };
        let Some(cycle) = self.answer_cycle else { return format!("{engine} did not answer {by}") };
        let of = |queue: &QueueResult| {
            let QueueResult { queue, mean, most, .. } = queue;
            format!("{queue} {mean:.2} on average, at most {most}")
        };
        let queues: Vec<String> = self.queues.iter().map(of).collect();
        let queues = if queues.is_empty() { "nothing in any queue".to_owned() } else { queues.join("; ") };
        let what = if self.windows > 0 {
            format!("window {} of {} cycles", self.windows, self.measured_cycles)
        } else {
            format!("{} cycles", self.measured_cycles)
        };
        format!("{engine} to {by} in cycle {cycle}, {what}: {queues}")
    }
}

/// The name of a queue by its number, and the unit of its level.
pub fn name(queue: usize) -> (String, &'static str) {
    match queue {
        INBOX => ("inbox".into(), "flits"),
        OUTPUT => ("output".into(), "messages"),
        _ => (format!("P{}.p2p{}", queue / MOST_CHANNELS, queue % MOST_CHANNELS), "flits"),
    }
}

/// A report that an engine sent of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportResult {
    /// Name of its switch.
    pub switch: String,
    /// Which of the engines there.
    pub plane: u8,
    /// Name of the end point that got it.
    pub to: String,
    /// Cycle in which the queue came up to the threshold.
    pub cycle: u64,
    /// Cycle in which the report was there.
    pub arrived_cycle: u64,
    /// The queue.
    pub queue: String,
    /// "flits" or "messages".
    pub unit: String,
    /// Its level in that cycle.
    pub level: u64,
}

impl ReportResult {
    /// A line of the summary.
    pub fn line(&self) -> String {
        let ReportResult { switch, queue, level, unit, cycle, to, .. } = self;
        let engine = if self.plane == 0 { switch.clone() } else { format!("{switch}, engine {}", self.plane) };
        format!("{engine} told {to} that {queue} stood at {level} {unit} in cycle {cycle}")
    }
}
