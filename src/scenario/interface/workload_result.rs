//! The outcome of a workload: times of ranks, counts, the critical path.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The outcome of a workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadResult {
    /// The trace.
    pub trace: String,
    /// How it is written.
    pub format: String,
    /// The cycle in which the last rank ended; null if one did not.
    pub end_cycle: Option<u64>,
    /// The same in ns.
    pub end_ns: Option<f64>,
    /// Messages that were received.
    pub messages: u64,
    /// Words of messages that were received.
    pub message_words: u64,
    /// Every word of every message is what was sent; null if that was not checked.
    pub messages_exact: Option<bool>,
    /// What ranks did, by rank.
    pub ranks: Vec<RankResult>,
    /// The collectives, in the order in which they were matched.
    pub collectives: Vec<CollectiveResult>,
    /// The critical path, first step first; empty if the workload did not end.
    pub path: Vec<Step>,
    /// What ranks did when.
    pub spans: Vec<Span>,
}

/// What a rank did. A cycle in which it computes and communicates counts for both; one in which it does neither is waited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RankResult {
    /// The end point.
    pub end_point: u64,
    /// Its nodes.
    pub nodes: u64,
    /// The cycle in which it ended; null if it did not.
    pub end_cycle: Option<u64>,
    /// Cycles in which a node computed.
    pub compute_cycles: u64,
    /// Cycles in which a message or a collective was under way; of a receive from its first word on.
    pub communicate_cycles: u64,
    /// Cycles in which both were.
    pub overlap_cycles: u64,
    /// Cycles in which a message or a collective was under way and nothing computed.
    pub exposed_cycles: u64,
    /// Cycles up to its end in which neither was.
    pub wait_cycles: u64,
}

/// The outcome of a collective.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CollectiveResult {
    /// What it does.
    pub kind: String,
    /// Who computed it.
    pub engine: String,
    /// Its group; empty for all ranks.
    pub group: String,
    /// Members.
    pub members: u64,
    /// The operation and the type of an element; null if nothing is reduced.
    pub op: Option<String>,
    /// See `op`.
    pub dtype: Option<String>,
    /// Bytes of the vector.
    pub bytes: u64,
    /// Words that all members sent as messages; 0 of an engine.
    pub words_sent: u64,
    /// The cycle in which its first member began.
    pub start_cycle: Option<u64>,
    /// The cycle in which its last member began.
    pub last_start_cycle: Option<u64>,
    /// The cycle in which it was over for its last member; null if it was not.
    pub end_cycle: Option<u64>,
    /// A hash of the words that members got, if all that got some got the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_hash: Option<String>,
    /// Every member has the oracle's bits; null if that was not checked.
    pub bit_exact: Option<bool>,
}

/// A node, or several of a rank and kind that follow each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The rank.
    pub rank: u64,
    /// What it is: "compute", "communicate".
    pub what: String,
    /// The node, if it is one.
    pub name: String,
    /// First cycle.
    pub start_cycle: u64,
    /// Last cycle.
    pub end_cycle: u64,
}

/// A step of the critical path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What it is.
    pub what: String,
    /// The rank.
    pub rank: u64,
    /// Its node.
    pub node: String,
    /// First cycle.
    pub start_cycle: u64,
    /// The cycle in which the next step begins.
    pub end_cycle: u64,
}

impl WorkloadResult {
    /// For people: a label and a text a line.
    pub fn lines(&self) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        let nodes: u64 = self.ranks.iter().map(|rank| rank.nodes).sum();
        lines.push((
            "workload".to_owned(),
            format!("{} ({}), {} ranks, {nodes} nodes", self.trace, self.format, self.ranks.len()),
        ));
        let end = match (self.end_cycle, self.end_ns) {
            (Some(cycles), Some(ns)) => format!("{cycles} cycles = {ns} ns"),
            _ => "not finished".to_owned(),
        };
        lines.push((String::new(), end));
        let last = self.ranks.iter().enumerate().max_by_key(|(at, rank)| (rank.end_cycle, usize::MAX - at));
        if let Some((at, rank)) = last {
            let RankResult { compute_cycles, communicate_cycles, overlap_cycles, exposed_cycles, wait_cycles, .. } =
                rank;
            let text = format!(
                "rank {at} ends last: computes {compute_cycles}, communicates {communicate_cycles}, both {overlap_cycles}; \
                 exposed {exposed_cycles}, waits {wait_cycles} cycles"
            );
            lines.push((String::new(), text));
        }
        if self.messages > 0 {
            lines.push((String::new(), format!("{} messages of {} words", self.messages, self.message_words)));
        }
        let mut kinds: BTreeMap<(&str, &str), (u64, u64, u64)> = BTreeMap::new();
        for of in &self.collectives {
            let sum = kinds.entry((&of.kind, &of.engine)).or_default();
            *sum = (sum.0 + 1, sum.1 + of.bytes, sum.2 + of.words_sent);
        }
        for ((kind, engine), (count, bytes, words)) in kinds {
            let sent = if words > 0 { format!(", {words} words sent") } else { String::new() };
            lines.push((String::new(), format!("{count} {kind} by {engine}: {bytes} bytes{sent}")));
        }
        lines
    }
}
