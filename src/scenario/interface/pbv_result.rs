//! The results of a PBV run, as a document and as text.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::armed_result::Outcomes;
use crate::job_result::MinMeanMax;
use watershed_reader::pbv::congestion::{CongestionResult, ReportResult};

/// The PBV part of a result document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PbvResult {
    /// The collectives, in the order of the scenario.
    pub collectives: Vec<CollectiveResult>,
    /// Rounds of all collectives, by how they ended.
    pub outcomes: Outcomes,
    /// What all engines together counted.
    pub engines: EnginesResult,
    /// Frames that changed nothing at end points, by status.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub refused_by_nodes: Map<String, Json>,
    /// Congestion metrics that were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub congestion: Vec<CongestionResult>,
    /// Congestion reports that engines sent of themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<ReportResult>,
    /// What links with faults did, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<Map<String, Json>>,
}

/// What all packet engines together counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnginesResult {
    /// Frames taken from the data path.
    pub frames_in: u64,
    /// Frames put into the data path.
    pub frames_out: u64,
    /// Cycles in which a frame stood ready and could not leave.
    pub waited_cycles: u64,
    /// Most messages that ever waited in an output queue.
    pub queue_peak: u32,
    /// Frames that were refused, by status.
    pub refused: Map<String, Json>,
    /// Failure points that engines have in their registers: the engine, who was missing last, and in which context.
    pub failure_points: Vec<String>,
}

/// The outcome of one collective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectiveResult {
    /// Its name.
    pub name: String,
    /// "allreduce", "barrier", "inter-group-barrier" or "broadcast".
    pub kind: String,
    /// Its operation; null if nothing is reduced.
    pub op: Option<String>,
    /// Type of an element; null of a barrier.
    pub dtype: Option<String>,
    /// Its context.
    pub cc_id: u16,
    /// Group of an inter-group barrier, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u8>,
    /// How many groups it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<u8>,
    /// Name of the end point that issued it.
    pub source: String,
    /// Name of the switch of the master engine.
    pub master: String,
    /// Engines that take part, the master included.
    pub engines: u64,
    /// Levels of engines below the master.
    pub levels: u32,
    /// Participants.
    pub participants: u64,
    /// Elements of the vector of one round.
    pub elements_per_round: u64,
    /// Responses that the master handed to the source, which merged them, in all rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_by_source: Option<u64>,
    /// How its rounds ended.
    pub outcomes: Outcomes,
    /// Cycle in which the first contribution was made.
    pub start_cycle: Option<u64>,
    /// Cycle in which the last participant had the last answer; null if it did not.
    pub end_cycle: Option<u64>,
    /// From start to end; null unless every round ended whole.
    pub latency_cycles: Option<u64>,
    /// The same in ns.
    pub latency_ns: Option<f64>,
    /// From the last contribution being made to the last participant having the answer, over complete rounds; null without
    /// any. Group of an inter-group barrier: the longest that a member waited after it and all of the other groups had arrived.
    pub round_latency_cycles: Option<MinMeanMax>,
    /// Results of complete rounds that differ from each other; 0 if its rounds have operands of their own.
    pub distinct_values: u64,
    /// The first rounds, and those that did not complete at once.
    #[serde(rename = "listed_rounds")]
    pub rounds: Vec<RoundResult>,
    /// Rounds that are not listed.
    pub more_rounds: u64,
    /// Every result has the oracle's bits; null if it was switched off or there is none.
    pub bit_exact: Option<bool>,
}

/// The outcome of one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundResult {
    /// The run of its context that the round was, counted from 1.
    pub run: u32,
    /// Cycle in which the last participant had the answer.
    pub end_cycle: Option<u64>,
    /// From the last contribution being made to that.
    pub latency_cycles: Option<u64>,
    /// Elements of the result as bit patterns.
    pub result: Vec<String>,
    /// What the oracle has; empty if it was switched off.
    pub oracle: Vec<String>,
    /// Exceptions that were raised.
    pub flags: Vec<String>,
    /// "complete", "after-retry", "incomplete", "silent" or "open".
    pub outcome: String,
    /// Participants and engines that were reported missing.
    pub missing: Vec<String>,
    /// What is wrong with it, if the outcome is "silent".
    pub fault: Option<String>,
}

/// Lists in lines are no longer than this.
const SHOWN: usize = 12;

fn some(names: &[String]) -> String {
    let more = if names.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(SHOWN)].join(", "))
}

impl CollectiveResult {
    /// Lines of the summary: a label and a text each. `job` is what a job took as a whole whose first part this is.
    pub fn lines(&self, nanoseconds: impl Fn(u64) -> f64, job: Option<String>) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        let CollectiveResult { kind, participants, engines, outcomes, .. } = self;
        let plural = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let data = plural(self.elements_per_round, &format!("{} element", self.dtype.as_deref().unwrap_or_default()));
        let what = match kind.as_str() {
            "barrier" => "barrier".to_owned(),
            "broadcast" => format!("broadcast of {data}"),
            "inter-group-barrier" => {
                let number = self.group.unwrap_or(0) + 1;
                format!("inter-group barrier, group {number} of {}", self.groups.unwrap_or(0))
            }
            _ => format!("{kind} ({}) of {data}", self.op.as_deref().unwrap_or_default()),
        };
        let rounds = outcomes.rounds();
        let tree = if self.levels == 0 {
            "one engine".to_owned()
        } else {
            format!("{engines} engines with {} below the master", plural(self.levels.into(), "level"))
        };
        let head = format!(
            "{what} over {} and {tree}, master {}, {}",
            plural(*participants, "node"),
            self.master,
            plural(rounds, "round")
        );
        lines.push((self.name.clone(), head));
        let exact = match self.bit_exact {
            Some(true) if !kind.ends_with("barrier") => ", bit-exact: yes",
            Some(false) => ", bit-exact: NO",
            _ => "",
        };
        let values = match self.distinct_values {
            0 | 1 => String::new(),
            count => format!(", {count} different results"),
        };
        lines.extend(job.map(|line| (String::new(), line)));
        lines.push((String::new(), format!("{}{exact}{values}", outcomes.words())));
        if let Some(MinMeanMax { min, mean, max }) = self.round_latency_cycles {
            let ns = nanoseconds(1) * mean;
            let from = match kind.as_str() {
                "broadcast" => "first",
                "inter-group-barrier" => "last contribution of the others",
                _ => "last contribution",
            };
            let text = format!("{from} to last answer: {mean:.1} cycles on average ({min} to {max}) = {ns:.1} ns");
            lines.push((String::new(), text));
        }
        let listed: Vec<&RoundResult> = self.rounds.iter().filter(|round| round.outcome != "complete").collect();
        for round in listed.iter().take(SHOWN) {
            let mut text = format!("run {}: {}", round.run, round.outcome);
            if !round.missing.is_empty() {
                let _ = write!(text, "; missing: {}", some(&round.missing));
            }
            if let Some(fault) = &round.fault {
                let _ = write!(text, "; {fault}");
            }
            lines.push((String::new(), text));
        }
        if listed.len() > SHOWN {
            lines.push((String::new(), format!("… and {} more rounds like these", listed.len() - SHOWN)));
        }
        lines
    }
}

impl PbvResult {
    /// Lines of the summary on the engines: a label and a text each.
    pub fn engine_lines(&self) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        let engines = &self.engines;
        let refused: Vec<String> = engines.refused.iter().map(|(status, count)| format!("{count} {status}")).collect();
        let refused = if refused.is_empty() { String::new() } else { format!(", refused: {}", refused.join(", ")) };
        let text = format!(
            "{} frames in, {} out, up to {} messages in an output queue{refused}",
            engines.frames_in, engines.frames_out, engines.queue_peak
        );
        lines.push(("engines".into(), text));
        if !self.refused_by_nodes.is_empty() {
            let all: Vec<String> =
                self.refused_by_nodes.iter().map(|(status, count)| format!("{count} {status}")).collect();
            lines.push((String::new(), format!("refused by nodes: {}", all.join(", "))));
        }
        if !engines.failure_points.is_empty() {
            lines.push((String::new(), format!("failure points: {}", some(&engines.failure_points))));
        }
        let mut label = "reports";
        for report in self.reports.iter().take(SHOWN) {
            lines.push((std::mem::take(&mut label).to_owned(), report.line()));
        }
        if self.reports.len() > SHOWN {
            lines.push((String::new(), format!("… and {} more like these", self.reports.len() - SHOWN)));
        }
        let mut label = "congestion";
        for report in self.congestion.iter().take(SHOWN) {
            lines.push((label.into(), report.line()));
            label = "";
        }
        if self.congestion.len() > SHOWN {
            lines.push((String::new(), format!("… and {} more reports like these", self.congestion.len() - SHOWN)));
        }
        lines
    }
}
