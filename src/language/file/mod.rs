//! One struct a table. The doc comments are the format's reference: they become the
//! descriptions of the JSON Schema, and the ranges and defaults here are what the loader checks.
//!
//! | file | holds |
//! |---|---|
//! | `watershed_fabric::topology` | `[topology]` |
//! | `routing` | `[routing]` |
//! | `switch` | `[switch]` |
//! | `link` | `[link]` and `[memory]` |
//! | `collective` | `[[collective]]` |
//! | [`armed`] | `[armed]` |
//! | [`pbv`] | `[pbv]` |
//! | `traffic` | `[[traffic]]` and `[measure]` |
//! | `words` | values that may be a word, such as "auto", and the schemas that tables share |

use schemars::JsonSchema;
use serde::{Deserialize as DeriveDeserialize, Serialize};

use super::golden::Golden;
use super::hosts::HostFile;
use super::programs::{CoreFile, MulticastFile, ProgramFile};
use super::result_detail::ResultDetail;
use super::workload::WorkloadFile;
use armed::ArmedFile;
use job::JobFile;
use pbv::PbvFile;

pub mod armed;
mod collective;
pub mod job;
mod link;
pub mod pbv;
mod routing;
mod switch;
mod traffic;
mod words;

pub use collective::{CollectiveFile, CollectiveKind, DataFile, Distribution, Number, SwitchRegistersFile};
pub use link::{Bandwidth, HeaderFile, LinkFile, MemoryFile, ReliabilityFile};
pub use routing::RoutingFile;
pub use switch::{Arbiter, CengFile, MOST_CHANNELS, RouterFile, SwitchAllocator, SwitchFile, VcAllocator};
pub use traffic::{
    Confidence, FlowFile, HotspotFile, InjectionKind, MeasureFile, PacketFlits, Pattern, TrafficFile, WeightFile,
};
pub use watershed_fabric::topology::{TopologyFile, TopologyKind};
pub(crate) use words::stands_elsewhere;
pub use words::{Auto, DelayFile, Frequency, ParticipantsFile, auto_or, names, operations, types};

/// A watershed scenario: what is built, what runs on it and what is looked at.
#[derive(Debug, Clone, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "watershed scenario")]
pub struct ScenarioFile {
    /// Another scenario file, relative to this one: all its values hold but those that this one gives. Tables are joined
    /// key by key, arrays are replaced, its name is left out; `collective.0.elements = 64` changes one element of an inherited array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub extends: Option<String>,
    /// Name of the scenario. Default: the file's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// What it shows, in one sentence; `watershed list` prints it.
    #[serde(default)]
    pub about: String,
    /// What kind of network this is.
    pub family: Family,
    /// Seed of everything random: data, delays, background traffic.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 9_223_372_036_854_775_807_i64))]
    pub seed: u64,
    /// What the result document holds of vectors of results: all their elements ("all"), those of each that come first ("first 8"),
    /// or none ("hash"). Beside what is not whole stands a hash of each job's results. "auto" is all of a vector of at most 65,536
    /// elements, and the first 16 of a longer one.
    #[serde(default)]
    pub results: ResultDetail,
    /// The clock of the whole system.
    #[serde(default)]
    pub clock: ClockFile,
    /// What gates, flip-flops, memories and events take: `nangate45`, or the path of a technology table, relative to this file. It
    /// changes `watershed cost`, the columns of cost and energy, and a clock that is `"fastest"`. Default: `nangate45`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub technology: Option<String>,
    /// Which switches there are and how they are joined.
    pub topology: TopologyFile,
    /// fabric: how point-to-point packets find their way.
    #[serde(default)]
    pub routing: RoutingFile,
    /// What every switch is made of.
    #[serde(default)]
    pub switch: SwitchFile,
    /// What every link is made of.
    #[serde(default)]
    pub link: LinkFile,
    /// The memory of an end point.
    #[serde(default)]
    pub memory: MemoryFile,
    /// When a run is given up.
    #[serde(default)]
    pub limits: LimitsFile,
    /// What is checked while and after running.
    #[serde(default)]
    pub checks: ChecksFile,
    /// The jobs, for any engine. They are translated into the tables of their engines before anything else is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096))]
    pub job: Vec<JobFile>,
    /// piuma: collectives, as older scenarios write them; see `job`.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    pub collective: Vec<CollectiveFile>,
    /// piuma: the programmable part of a core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<CoreFile>,
    /// piuma: multicast trees.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    pub multicast: Vec<MulticastFile>,
    /// piuma: programs that threads of cores run.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    pub program: Vec<ProgramFile>,
    /// Collectives in software over point-to-point messages, to compare with.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub host: Vec<HostFile>,
    /// A trace of an application that end points run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadFile>,
    /// Point-to-point traffic.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    pub traffic: Vec<TrafficFile>,
    /// How the traffic is measured. Without it, all packets of a run are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<MeasureFile>,
    /// What `--wave` writes unless its flags say otherwise.
    #[serde(default)]
    pub wave: WaveFile,
    /// What golden files of this scenario hold and how exactly they are compared: `watershed test` reads it.
    #[serde(default)]
    pub golden: Golden,
    /// armed: engines, reductions, faults and strangers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub armed: Option<ArmedFile>,
    /// pbv: packet engines, their set-up, collectives and faults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pbv: Option<PbvFile>,
}

impl ScenarioFile {
    /// From a tree of values that has passed the check against the [schema](Self::schema).
    ///
    /// # Errors
    /// What the check should have found; it is kept for the case that schema and structs disagree.
    pub fn from_toml(value: toml::Value) -> Result<ScenarioFile, toml::de::Error> {
        ScenarioFile::deserialize(value)
    }

    /// The JSON Schema that is made from the structs (draft 2020-12).
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(ScenarioFile).to_value()
    }
}

fn one() -> u64 {
    1
}

/// The kind of network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Switches with a collective engine that is steered by configuration registers.
    Piuma,
    /// Switches with reduction engines on their links, which multicast frames arm.
    Armed,
    /// Switches with addressable packet engines that track participants in bit vectors.
    Pbv,
    /// Plain virtual-channel routers without an engine: point-to-point traffic only.
    Fabric,
    /// Engines of several of these in one network, each with jobs of its own: what `[[job]]` gives a scenario whose jobs name
    /// different engines.
    Mixed,
}

impl Family {
    /// Its word in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Piuma => "piuma",
            Self::Armed => "armed",
            Self::Pbv => "pbv",
            Self::Fabric => "fabric",
            Self::Mixed => "mixed",
        }
    }
}

/// The clock.
#[derive(Debug, Clone, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct ClockFile {
    /// Frequency in MHz, a whole number of hertz. Turns ns into cycles and Gb/s into bits a cycle. `"fastest"`: what the slowest
    /// block reaches, as `watershed cost` has it (`clock = "fastest"` for short).
    pub frequency_mhz: Frequency,
}

impl Default for ClockFile {
    fn default() -> Self {
        Self { frequency_mhz: Frequency::Mhz(1000.0) }
    }
}

/// When a run is given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct LimitsFile {
    /// A run that is not done by then ends with a failed check.
    #[schemars(range(min = 1, max = 9_007_199_254_740_992_i64))]
    pub max_cycles: u64,
    /// Cycles without any progress after which the run is a deadlock; 0 turns the watchdog off. Only cycles in which a
    /// block is awake count, and none while work waits for a time-out, a task or a delay to end. In armed and pbv
    /// each reduction or collective has to progress, and the time of a frame across the network is added.
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub watchdog_cycles: u64,
}

impl Default for LimitsFile {
    fn default() -> Self {
        Self { max_cycles: 10_000_000, watchdog_cycles: 100_000 }
    }
}

/// What is checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct ChecksFile {
    /// Watch every link: order of flits, credits held, in flight and buffered.
    pub monitors: bool,
    /// Compare every result with the golden evaluation, bit for bit.
    pub oracle: bool,
    /// Let collectives and multicasts of different ids that share a link or an engine take turns: they claim a whole tree at once.
    /// Without it they run into each other, which may deadlock.
    pub claims: bool,
}

impl Default for ChecksFile {
    fn default() -> Self {
        Self { monitors: true, oracle: true, claims: true }
    }
}

/// Defaults of the waveform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct WaveFile {
    /// Signals to trace, as globs on hierarchical names. `**` is all but the stage registers of adder trees.
    pub signals: Vec<String>,
    /// Levels of hierarchy to trace. Default: all.
    #[schemars(range(min = 1, max = 64))]
    pub depth: Option<u32>,
    /// First cycle to trace.
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub from_cycle: u64,
    /// Last cycle to trace. Default: the end.
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub to_cycle: Option<u64>,
    /// Trace the clock as well: two changes every cycle.
    pub clock: bool,
}

impl Default for WaveFile {
    fn default() -> Self {
        Self { signals: vec!["**".to_owned()], depth: None, from_cycle: 0, to_cycle: None, clock: false }
    }
}

// ---- values with a word of their own -------------------------------------------------------------------------------

// ---- from the tree of values ---------------------------------------------------------------------------------------
