//! The results of an armed run, as a document and as text.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::job_result::MinMeanMax;
use watershed_arith::{Op, Round};
use watershed_armed_interface::ManagerCounts;
use watershed_reader::armed::config::opcode;
use watershed_reader::armed::file::{DETERMINISTIC, MEAN};
use watershed_reader::file::job::operation;
use watershed_reader::names::NamedValues;

/// The armed part of a result document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ArmedResult {
    /// The reductions, in the order of the scenario.
    pub reductions: Vec<ReductionResult>,
    /// Rounds of all reductions, by how they ended.
    pub outcomes: Outcomes,
    /// What all engines together counted.
    pub engines: serde_json::Map<String, serde_json::Value>,
    /// Engines whose descriptors were not all free at the end.
    pub leaked: Vec<String>,
    /// What links with faults did, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<serde_json::Map<String, serde_json::Value>>,
    /// Frames that ended at discard ports of switches: unknown addresses, ports outside a tree.
    pub discarded_frames: u64,
    /// Orders that switches did not obey, by why.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub switches: serde_json::Map<String, serde_json::Value>,
    /// Frames that roots discarded: stale, and with wrong keys.
    pub root_discards: [u64; 2],
    /// Frames that end points and their processes did not obey, by why.
    #[serde(default)]
    pub end_points: serde_json::Map<String, serde_json::Value>,
    /// Frames that strangers sent.
    pub stranger_frames: u64,
    /// What the management agent did at run time, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<ManagerCounts>,
}

/// How a reduction came by its tree at run time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeSetup {
    /// Cycle in which the root first asked.
    pub asked_cycle: Option<u64>,
    /// Cycle in which it had the answer, or had asked often enough.
    pub answered_cycle: Option<u64>,
    /// From the one to the other.
    pub cycles: Option<u64>,
    /// Requests that the root sent, those to delete the tree included.
    pub requests: u32,
    /// The reduction whose tree was changed into this one's.
    pub changes: Option<String>,
    /// Whether the tree was to be deleted, and the agent has said that it is.
    pub deleted: Option<bool>,
}

/// How rounds ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// With the first attempt.
    pub complete: u64,
    /// With a later attempt.
    pub after_retry: u64,
    /// Not, or not for all, and a participant knows it.
    pub incomplete: u64,
    /// Complete as far as all participants know, and wrong.
    pub silent: u64,
    /// Under way when the run ended.
    pub open: u64,
    /// Asked for and not started.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unstarted: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The outcome of one reduction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReductionResult {
    /// Its name.
    pub name: String,
    /// Its opcode: operation, type and rounding at once.
    pub opcode: String,
    /// "engines" or "software".
    pub method: String,
    /// Why it reduces in software although it was to use engines.
    pub refused: Option<String>,
    /// Why it has only one tree although it asked for two.
    pub one_tree: Option<String>,
    /// Multicast ids of its trees.
    pub multicast_ids: Vec<u16>,
    /// How it came by its tree, if that was made at run time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<TreeSetup>,
    /// Participants.
    pub participants: u64,
    /// How its rounds ended, opening barriers included; two rounds on the wire for one deterministic sum are one.
    pub outcomes: Outcomes,
    /// How many of them were opening barriers.
    #[serde(default)]
    pub opening_rounds: u64,
    /// Attempts beyond the first of all rounds.
    pub retries: u64,
    /// Cycle of the first arming.
    pub first_arming_cycle: Option<u64>,
    /// Cycle in which the first contribution to a data round was ready; of a job without any, that of the first arming.
    pub start_cycle: Option<u64>,
    /// Cycle in which the last participant had the last result; null if it did not.
    pub end_cycle: Option<u64>,
    /// From start to end; null unless every round ended whole.
    pub latency_cycles: Option<u64>,
    /// The same in ns.
    pub latency_ns: Option<f64>,
    /// From the last contribution being ready to the last participant having the result, over complete data rounds; null without
    /// any. Of a deterministic sum: from the last contribution to its maximum to the last participant having the sum.
    pub round_latency_cycles: Option<MinMeanMax>,
    /// Time-outs the source recommends for what was seen: the mean interval between reductions and twice the largest spread
    /// of arrivals, in units of 1024 cycles, rounded up (R-ENG-9).
    pub timeout_hint_1024_cycles: Option<u64>,
    /// Share of contributions that were merged first at each place, from the leaves up.
    pub merged_at: Vec<MergedShare>,
    /// How many different results the data rounds had, if they contribute the same; 0 if not.
    #[serde(default)]
    pub distinct_values: u64,
    /// The most frequent of them, most frequent first.
    #[serde(default)]
    pub distinct: Vec<DistinctResult>,
    /// End points that lack a result.
    pub untold: Vec<String>,
    /// The first rounds, and those that did not complete at once.
    #[serde(rename = "listed_rounds")]
    pub rounds: Vec<RoundResult>,
    /// Rounds that are not listed.
    pub more_rounds: u64,
    /// Every result has the oracle's bits; null if it was switched off or there is none.
    pub bit_exact: Option<bool>,
}

/// A place and how much was merged there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergedShare {
    /// "engines at depth 1" or "software".
    pub place: String,
    /// Contributions.
    pub contributions: u64,
    /// Share of all.
    pub share: f64,
}

/// One of the different results of rounds that contribute the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DistinctResult {
    /// Lane 0 to 3.
    pub result: Vec<String>,
    /// Result codes.
    pub codes: Vec<String>,
    /// Rounds that gave it.
    pub rounds: u64,
    /// Largest distance of a lane from that of the most frequent result, in units in the last place; null for integers and NaN.
    pub ulps: Option<u64>,
}

/// The outcome of one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundResult {
    /// Data round on the wire, of which a deterministic sum has two; null is the opening barrier.
    pub round: Option<u32>,
    /// Reduction id.
    pub reduction_id: u8,
    /// Sequence number of the attempt that counted.
    pub seqno: u16,
    /// Attempts.
    pub attempts: u32,
    /// Cycle of the first arming.
    pub armed_cycle: u64,
    /// Cycle in which the root had everything, or gave up.
    pub end_cycle: Option<u64>,
    /// From the last contribution being ready to the last participant having the result.
    pub latency_cycles: Option<u64>,
    /// Counts of the frames the root took, in order.
    pub counts: Vec<u32>,
    /// Lanes of the result.
    pub result: Vec<String>,
    /// Result code.
    pub code: String,
    /// "complete", "after-retry", "incomplete", "silent" or "open".
    pub outcome: String,
    /// Participants whose contributions are missing.
    pub missing: Vec<String>,
    /// What is wrong with it, if the outcome is "silent".
    pub fault: Option<String>,
}

impl Outcomes {
    /// Adds others.
    pub fn add(&mut self, other: &Outcomes) {
        self.complete += other.complete;
        self.after_retry += other.after_retry;
        self.incomplete += other.incomplete;
        self.silent += other.silent;
        self.open += other.open;
        self.unstarted += other.unstarted;
    }

    /// All of them.
    pub fn rounds(&self) -> u64 {
        let Self { complete, after_retry, incomplete, silent, open, unstarted } = self;
        complete + after_retry + incomplete + silent + open + unstarted
    }

    /// Whether all participants have a result of every round, right or wrong.
    pub fn all_answered(&self) -> bool {
        self.incomplete + self.open + self.unstarted == 0
    }

    /// Whether every round ended with a whole and right result.
    pub fn all_correct(&self) -> bool {
        self.all_answered() && self.silent == 0
    }

    /// In words.
    pub fn words(&self) -> String {
        let mut text = format!("{} complete", self.complete);
        for (count, what) in [
            (self.after_retry, "after a retry"),
            (self.incomplete, "incomplete and detected"),
            (self.silent, "SILENTLY WRONG"),
            (self.open, "open"),
            (self.unstarted, "not started"),
        ] {
            if count > 0 {
                let _ = write!(text, ", {count} {what}");
            }
        }
        text
    }
}

/// Rounds that were asked for and the opening barriers before them: "16 rounds and 8 opening ones".
pub fn rounds_in_words(all: u64, opening: u64) -> String {
    let asked = all.saturating_sub(opening);
    let plural = if asked == 1 { "" } else { "s" };
    match opening {
        0 => format!("{asked} round{plural}"),
        1 => format!("{asked} round{plural} and an opening one"),
        more => format!("{asked} round{plural} and {more} opening ones"),
    }
}

fn plural(number: u64, what: &str) -> String {
    plural_of(number, what, &format!("{what}s"))
}

fn plural_of(number: u64, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

impl TreeSetup {
    /// In words.
    fn words(&self, granted: bool) -> String {
        let mut text = match self.cycles {
            Some(cycles) if granted => format!("configured by: agent in {cycles} cycles"),
            Some(cycles) => format!("not configured: the agent was asked for {cycles} cycles"),
            None => "not configured: nobody asked the agent, or it had not answered yet".to_owned(),
        };
        if let Some(name) = self.changes.as_ref().filter(|_| granted) {
            let _ = write!(text, ", from the tree of {name}");
        }
        match self.deleted {
            Some(true) => text += "; the tree was deleted afterwards",
            Some(false) if granted => text += "; the agent has not said that the tree is deleted",
            _ => {}
        }
        text
    }
}

/// An operation on this many elements in the words that jobs of all engines have.
fn common_op_name(op: &str, elements: Option<u64>) -> String {
    let count = |dtype: &str, elements| plural(elements, &format!("{dtype} element"));
    let of = |dtype: &str| elements.map_or_else(|| dtype.to_owned(), |elements| count(dtype, elements));
    match (op, opcode(op)) {
        (MEAN, _) => format!("allreduce (mean) of {}", of("f64")),
        (DETERMINISTIC, _) => format!("allreduce (sum-deterministic) of {}", of("f64")),
        (_, Some(opcode)) if opcode.op == Op::Barrier => "barrier".into(),
        (_, Some(opcode)) => {
            let round = match opcode.round {
                Round::NearestEven => String::new(),
                other => format!(" {}", NamedValues::name(other)),
            };
            let flush = if opcode.flush_to_zero { " flush-to-zero" } else { "" };
            format!("allreduce ({}{round}{flush}) of {}", operation(opcode), of(NamedValues::name(opcode.dtype)))
        }
        (other, None) => other.to_owned(),
    }
}

/// What is listed in lines of the summary, at most.
const SHOWN: usize = 12;

impl ReductionResult {
    /// Lines of the summary: a label and a text each. `at_once` of its rounds may be under way at a time; all of them together have
    /// `elements` elements; `job` is what it took as a whole.
    pub fn lines(
        &self,
        nanoseconds: impl Fn(u64) -> f64,
        at_once: u32,
        elements: Option<u64>,
        job: Option<String>,
    ) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        let ReductionResult { name, opcode, participants, method, outcomes, .. } = self;
        let rounds = rounds_in_words(outcomes.rounds(), self.opening_rounds);
        let at_once = match (outcomes.rounds().saturating_sub(self.opening_rounds), at_once) {
            (0 | 1, _) => String::new(),
            (_, 1) => ", one after the other".to_owned(),
            (_, several) => format!(", up to {several} at a time"),
        };
        let how = match (&self.refused, method.as_str()) {
            (Some(why), _) => format!(" in software: the tree was refused ({why})"),
            (_, "software") => " in software".into(),
            _ if self.multicast_ids.len() == 2 => " over two trees".into(),
            _ => String::new(),
        };
        let exact = match self.bit_exact {
            Some(true) => ", bit-exact: yes",
            Some(false) => ", bit-exact: NO",
            None => "",
        };
        let pairs = if opcode == DETERMINISTIC { ", two for each sum" } else { "" };
        lines.push((
            name.clone(),
            format!(
                "{} over {participants} end points, {rounds}{pairs}{at_once}{how}",
                common_op_name(opcode, elements)
            ),
        ));
        lines.extend(job.map(|line| (String::new(), line)));
        lines.push((String::new(), format!("{}{exact}", outcomes.words())));
        if let Some(configured) = &self.configured {
            lines.push((String::new(), configured.words(self.refused.is_none())));
        }
        if let Some(why) = &self.one_tree {
            lines.push((String::new(), format!("only one tree: {why}")));
        }
        if let Some(MinMeanMax { min, mean, max }) = self.round_latency_cycles {
            let ns = nanoseconds(1) * mean;
            lines.push((
                String::new(),
                format!("last contribution to last result: {mean:.1} cycles on average ({min} to {max}) = {ns:.1} ns"),
            ));
        }
        let shares: Vec<String> =
            self.merged_at.iter().map(|share| format!("{:.1} % in {}", share.share * 100.0, share.place)).collect();
        if !shares.is_empty() && method != "software" {
            lines.push((String::new(), format!("merged first: {}", shares.join(", "))));
        }
        if !self.distinct.is_empty() {
            let most = self.distinct.iter().filter_map(|distinct| distinct.ulps).max();
            let apart =
                most.filter(|&ulps| ulps > 0).map_or_else(String::new, |ulps| format!(", up to {ulps} ulps apart"));
            let count = self.distinct_values;
            let values = if count == 1 { "one value".to_owned() } else { format!("{count} values") };
            lines.push((String::new(), format!("the same contributions gave {values}{apart}")));
        }
        self.rounds_in_lines(&mut lines);
        lines
    }

    /// Rounds that did not complete at once, and who lacks the last result.
    fn rounds_in_lines(&self, lines: &mut Vec<(String, String)>) {
        let listed = self.rounds.iter().filter(|round| round.outcome != "complete" || round.counts.len() > 1);
        let listed: Vec<&RoundResult> = listed.collect();
        for round in listed.iter().take(SHOWN) {
            let what = round.round.map_or_else(|| "opening".to_owned(), |round| format!("round {round}"));
            let counts: Vec<String> = round.counts.iter().take(SHOWN).map(ToString::to_string).collect();
            let more = if round.counts.len() > SHOWN { ", …" } else { "" };
            let mut text = format!("{what}: counts {}{more}", counts.join(", "));
            if round.attempts > 1 {
                let _ = write!(text, ", {} attempts", round.attempts);
            }
            if round.code != "OK" {
                let _ = write!(text, ", {}", round.code);
            }
            let _ = write!(text, ", {}", round.outcome);
            if !round.missing.is_empty() {
                let names: Vec<&str> = round.missing.iter().take(SHOWN).map(String::as_str).collect();
                let more = if round.missing.len() > SHOWN { ", …" } else { "" };
                let _ = write!(text, "; missing: {}{more}", names.join(", "));
            }
            if let Some(fault) = &round.fault {
                let _ = write!(text, "; {fault}");
            }
            lines.push((String::new(), text));
        }
        if listed.len() > SHOWN {
            lines.push((String::new(), format!("… and {} more rounds like these", listed.len() - SHOWN)));
        }
        if !self.untold.is_empty() {
            let names: Vec<&str> = self.untold.iter().take(SHOWN).map(String::as_str).collect();
            let more = if self.untold.len() > SHOWN { ", …" } else { "" };
            lines.push((String::new(), format!("without the last result: {}{more}", names.join(", "))));
        }
    }
}

impl ArmedResult {
    /// Lines of the summary on the engines: a label and a text each.
    pub fn engine_lines(&self) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        let count = |key: &str| self.engines.get(key).and_then(serde_json::Value::as_u64).unwrap_or(0);
        if !self.engines.is_empty() {
            let mut text = format!("{} frames merged, {} passed", count("merged"), count("passed"));
            let dropped =
                count("stale") + count("wrong_vni") + count("wrong_cookie") + count("damaged") + count("malformed");
            for (number, what) in [
                (dropped, "dropped"),
                (count("expired") + count("expired_empty"), "time-outs"),
                (count("no_descriptor"), "armings without a free descriptor"),
            ] {
                if number > 0 {
                    let _ = write!(text, ", {number} {what}");
                }
            }
            lines.push(("engines".into(), text));
        }
        if let Some(agent) = &self.agent {
            let ManagerCounts { granted, changed, refused, deleted, written, erased, resent, given_up, .. } = agent;
            let mut text = format!("{} granted", plural(*granted, "tree"));
            for (number, what) in [
                (*changed, "of them in the place of another"),
                (*refused, "refused"),
                (*deleted, "deleted"),
                (*resent, "orders sent again"),
                (*given_up, "given up"),
            ] {
                if number > 0 {
                    let _ = write!(text, ", {number} {what}");
                }
            }
            let _ = write!(text, "; {} written, {erased} erased", plural_of(*written, "entry", "entries"));
            lines.push(("agent".into(), text));
        }
        lines
    }
}
