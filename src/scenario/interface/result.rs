//! The result document: all results of a run, for programs. Tables, plots and reports are made from it.
//!
//! [`SCHEMA_VERSION`] fixes its shape: a reader of one version reads every document of that version. Adding a field is
//! compatible; renaming, removing or retyping one is not and takes a new version. [`upgraded`] brings documents of
//! older versions to today's shape, so that they can be replayed, explained and reported.
//!
//! | version | what changed |
//! |--:|---|
//! | 1 | |
//! | 2 | `stalls` of a link is called `head_wait_cycles` |
//! | 3 | what engines and software say of their jobs has the names of [`jobs`](Document::jobs) where it is the same, and others where not |

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::Loaded;
pub use super::document_upgrade::upgraded;
use super::measure::{LatencyResult, MeasureResult};
use watershed_reader::config::{Collective, Rounding};
use watershed_reader::data::Table;
use watershed_reader::names::{DType, NamedValues};
use watershed_reader::segments::SegmentResult;

/// Version of the document's shape.
pub const SCHEMA_VERSION: u32 = 3;

/// Everything about a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Version of this shape.
    pub schema_version: u32,
    /// What made this document.
    pub stamp: Stamp,
    /// How the run ended.
    pub outcome: Outcome,
    /// Cycles simulated.
    pub cycles: u64,
    /// Every job under the same names, with any engine, in the order of the scenario. Missing in documents of older programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<super::job_result::JobResult>,
    /// What PIUMA's engines have to say of theirs, in the order of the scenario.
    pub collectives: Vec<CollectiveResult>,
    /// The links.
    pub links: Links,
    /// The background traffic, in the order of the scenario.
    pub traffic: Vec<TrafficResult>,
    /// Collectives in software, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<super::host_result::HostResult>,
    /// The outcome of a workload; missing without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<super::workload_result::WorkloadResult>,
    /// What programs did; missing without programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<super::program_result::ProgramsResult>,
    /// What the armed family has to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub armed: Option<super::armed_result::ArmedResult>,
    /// What the PBV family has to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pbv: Option<super::pbv_result::PbvResult>,
    /// The window of measurement and the network in it; missing without `[measure]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<MeasureResult>,
    /// Every check and its outcome.
    pub checks: Vec<Check>,
    /// Times that were not whole numbers of cycles and were rounded up.
    pub roundings: Vec<Rounding>,
    /// The complete configuration: every default filled in, every derived value beside it.
    pub config: Json,
    /// What it was made from: `watershed replay` runs it again. Missing in documents of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<super::run_inputs::RunInputs>,
}

/// What made a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The program's name.
    pub program: String,
    /// Its version.
    pub version: String,
    /// Its commit, or "unknown".
    pub commit: String,
    /// The scenario's name.
    pub scenario: String,
    /// FNV-1a of the resolved configuration: equal configurations have equal hashes.
    pub config_hash: String,
    /// `--set` arguments, in order.
    pub overrides: Vec<String>,
    /// The seed.
    pub seed: u64,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Everything was done.
    Finished,
    /// The user stopped it.
    Interrupted,
    /// `limits.max_cycles` was reached.
    MaxCycles,
    /// Nothing moved for `limits.watchdog_cycles`.
    Deadlock,
    /// A rule was broken, and the run ended there.
    Broken,
}

/// The outcome of one collective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectiveResult {
    /// Its name.
    pub name: String,
    /// What it does.
    pub kind: String,
    /// Its collective id.
    pub id: u32,
    /// The operation; null for a broadcast.
    pub op: Option<String>,
    /// Type of an element; null of a barrier.
    pub dtype: Option<String>,
    /// Wider type in which elements were summed, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accumulate: Option<String>,
    /// Type of an element of the result, if elements were summed in a wider type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_dtype: Option<String>,
    /// How many took part.
    pub participants: u64,
    /// Elements of the vector.
    pub elements: u64,
    /// Cycle in which the first participant started; null if none did.
    pub start_cycle: Option<u64>,
    /// Cycle in which the last element landed at the last participant; null if it did not.
    pub end_cycle: Option<u64>,
    /// From start to end.
    pub latency_cycles: Option<u64>,
    /// The same in ns.
    pub latency_ns: Option<f64>,
    /// Elements over latency.
    pub elements_per_cycle: Option<f64>,
    /// The result as bit patterns, one a element.
    #[serde(rename = "result")]
    pub results: Vec<String>,
    /// What the golden evaluation says; empty if it was switched off.
    pub oracle: Vec<String>,
    /// Every participant's every element has the oracle's bits, and the flags agree; null if it was switched off.
    pub bit_exact: Option<bool>,
    /// Elements that have the oracle's bits, at the worst participant.
    pub exact_elements: u64,
    /// Exceptions that were raised on the way.
    pub flags: Vec<String>,
    /// Exceptions that the golden evaluation raised.
    pub oracle_flags: Vec<String>,
    /// The first element that differs.
    pub first_difference: Option<Difference>,
    /// Its segments, if it has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<SegmentResult>,
}

/// Two elements that should be equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Index of the element.
    pub element: u64,
    /// End point at which it landed.
    pub end_point: u64,
    /// Bit pattern that landed.
    pub got: String,
    /// Bit pattern of the oracle.
    pub expected: String,
    /// Distance in units in the last place; null if one of them is no number.
    pub ulps: Option<u64>,
    /// Node of the tree at which they part.
    pub node: String,
}

/// What the links did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Links {
    /// Together, by kind of link.
    pub levels: Vec<LinkLevel>,
    /// What flits waited for at the heads of queues, in the whole network; null if no link monitor looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// The busiest ones, busiest first.
    pub busiest: Vec<LinkResult>,
    /// All of them, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<LinkResult>>,
}

/// Cycles that flits waited at the heads of queues, by cause ([`Cause`](watershed_fabric::Cause)); causes without any are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// In queues of switches, before they left over links: the head-wait cycles of all links together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, u64>,
    /// In queues of switches, before they went into engines behind them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub engines: BTreeMap<String, u64>,
    /// In queues of end points and of engines in the wire.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub blocks: BTreeMap<String, u64>,
}

/// Links of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkLevel {
    /// The kind.
    pub level: String,
    /// How many, counting each direction.
    pub links: u64,
    /// Flits over all of them.
    pub flits: u64,
    /// Mean share of cycles in which they carried a flit.
    pub utilisation_mean: f64,
    /// The same of the busiest of them.
    pub utilisation_max: f64,
}

/// One link in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// From where to where.
    pub name: String,
    /// Its kind.
    pub level: String,
    /// Flits it carried.
    pub flits: u64,
    /// Cycles that flits stood at the head of a switch's input queue before they left over this link, summed over the flits
    /// ([`LinkCount::waited`](watershed_fabric::LinkCount::waited)).
    pub head_wait_cycles: u64,
    /// The same by cause, those left out that there are none of; the whole network's are in [`Links::waits`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waits: BTreeMap<String, u64>,
    /// Share of cycles in which it carried a flit.
    pub utilisation: f64,
    /// Packets it carried, where all links are reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
}

/// The outcome of one `[[traffic]]`, or of its replies or of one of its classes. With `[measure]` all but `packets` is
/// about its window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrafficResult {
    /// Its name.
    pub name: String,
    /// Flits per node (or flow) and cycle that were made.
    pub offered: f64,
    /// The same that arrived.
    pub accepted: f64,
    /// Packets that arrived.
    pub packets: u64,
    /// Mean time from making to arrival; null without packets.
    pub mean_latency_cycles: Option<f64>,
    /// The longest.
    pub max_latency_cycles: Option<u64>,
    /// All about its latencies; missing without packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyResult>,
}

/// A check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// Whether it passed.
    pub passed: bool,
    /// What it found, in words.
    pub detail: String,
}

impl Check {
    /// A check that passed.
    pub fn passed(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { name: name.into(), passed: true, detail: detail.into() }
    }

    /// A check that failed.
    pub fn failed(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { passed: false, ..Self::passed(name, detail) }
    }
}

impl Document {
    /// A document of a finished run in which nothing has happened yet: stamp, configuration and roundings are filled in.
    pub fn new(loaded: &Loaded) -> Self {
        let scenario = &loaded.scenario;
        let config = serde_json::to_value(scenario).unwrap_or(Json::Null);
        let hash = fnv1a(config.to_string().as_bytes());
        Self {
            schema_version: SCHEMA_VERSION,
            stamp: Stamp {
                program: "watershed".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                commit: commit().to_owned(),
                scenario: scenario.name.clone(),
                config_hash: format!("{hash:016x}"),
                overrides: loaded.source.overrides().to_vec(),
                seed: scenario.seed,
            },
            outcome: Outcome::Finished,
            cycles: 0,
            jobs: Vec::new(),
            collectives: Vec::new(),
            links: Links::default(),
            traffic: Vec::new(),
            hosts: Vec::new(),
            workload: None,
            programs: None,
            armed: None,
            pbv: None,
            measure: None,
            checks: Vec::new(),
            roundings: scenario.roundings.clone(),
            config,
            scenario: Some(super::run_inputs::RunInputs::new(loaded)),
        }
    }

    /// Adds a derived value to the printed configuration.
    pub fn derive(&mut self, key: &str, value: impl Into<Json>) {
        if let Some(Json::Object(derived)) = self.config.get_mut("derived") {
            derived.insert(key.to_owned(), value.into());
        }
    }

    /// Whether the run is done and every check passed.
    pub fn passed(&self) -> bool {
        self.outcome == Outcome::Finished && self.checks.iter().all(|check| check.passed)
    }

    /// Why the run did not finish, as its check of progress or of the rules tells; `None` if it did.
    pub fn unfinished(&self) -> Option<&str> {
        let told = self.checks.iter().find(|check| !check.passed && matches!(&*check.name, "progress" | "rules"));
        (self.outcome != Outcome::Finished).then(|| told.map_or("it did not finish", |check| &check.detail))
    }
}

impl CollectiveResult {
    /// The result of a collective that has not started.
    pub fn new(collective: &Collective) -> Self {
        Self {
            name: collective.name.clone(),
            kind: collective.kind.name().to_owned(),
            id: collective.id,
            op: collective.op.map(|op| NamedValues::name(op).to_owned()),
            dtype: (collective.elements > 0).then(|| NamedValues::name(collective.dtype).to_owned()),
            accumulate: collective.accumulate.map(|pair| NamedValues::name(pair.accumulator()).to_owned()),
            result_dtype: collective.accumulate.map(|_| NamedValues::name(collective.result_dtype()).to_owned()),
            participants: collective.participants.len() as u64,
            elements: collective.elements,
            start_cycle: None,
            end_cycle: None,
            latency_cycles: None,
            latency_ns: None,
            elements_per_cycle: None,
            results: Vec::new(),
            oracle: Vec::new(),
            bit_exact: None,
            exact_elements: 0,
            flags: Vec::new(),
            oracle_flags: Vec::new(),
            first_difference: None,
            segments: Vec::new(),
        }
    }

    /// Fills in when it started and ended, and what follows from that.
    pub fn set_times(&mut self, loaded: &Loaded, start_cycle: u64, end_cycle: u64) {
        let latency = end_cycle.saturating_sub(start_cycle);
        self.start_cycle = Some(start_cycle);
        self.end_cycle = Some(end_cycle);
        self.latency_cycles = Some(latency);
        self.latency_ns = Some(loaded.scenario.clock.nanoseconds(latency));
        self.elements_per_cycle = (latency > 0 && self.elements > 0).then(|| self.elements as f64 / latency as f64);
    }
}

/// Bit patterns of one collective's result vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultData {
    /// Where the document tells of the collective: a path of names and numbers, as
    /// [`JobResult::details`](super::job_result::JobResult::details) has it.
    pub place: String,
    /// Name of the collective.
    pub name: String,
    /// Type of an element.
    pub dtype: DType,
    /// One row a participant that receives a result; one element a word, its bits at the low end.
    pub rows: Table,
}

/// Bit patterns as the document has them: hexadecimal, as wide as the type.
pub fn hex(dtype: DType, words: &[u64]) -> Vec<String> {
    let digits = dtype.bits() as usize / 4;
    words.iter().map(|word| format!("{word:0digits$x}")).collect()
}

/// The commit the program was built from; `debug-build` in builds that are not optimised.
pub fn commit() -> &'static str {
    env!("WATERSHED_COMMIT")
}

/// The version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Version and commit.
pub const STAMP: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("WATERSHED_COMMIT"), ")");

/// A short name for contents: not for keeping enemies out, but for seeing that something has changed.
pub fn fnv1a<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
