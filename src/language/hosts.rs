//! `[[host]]` as it is written. The doc comments are the format's reference.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::file::{DelayFile, Distribution, Number, ParticipantsFile};

/// A collective in software. Hosts run one after the other, in the order of the file, after all `[[collective]]`s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct HostFile {
    /// Name in results and messages, unique. Default: "h0", "h1", …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// How it is done.
    pub algorithm: HostAlgorithm,
    /// What limits messages.
    #[serde(default)]
    pub mode: HostMode,
    /// How words come to a partner; "get" is for mode = "ideal".
    #[serde(default, skip_serializing_if = "HostExchange::is_put")]
    pub exchange: HostExchange,
    /// The name of an all-reduce of the scenario: same operation, type, elements, participants and data.
    #[serde(default, skip_serializing_if = "crate::file::stands_elsewhere")]
    #[schemars(length(min = 1))]
    pub like: Option<String>,
    /// Operation. Default: "sum", or that of `like`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::file::operations")]
    pub op: Option<String>,
    /// Type of an element. Default: "f64", or that of `like`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::file::types")]
    pub dtype: Option<String>,
    /// Elements of the vector. Default: 1, or those of `like`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 268_435_456))]
    pub elements: Option<u64>,
    /// The ranks, in order: "all" end points, or a list. Default: "all", or those of `like`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participants: Option<ParticipantsFile>,
    /// Seeded random data. Default: "normal", or "integers" for integer types; with `like` the data are its.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random: Option<Distribution>,
    /// Whose random numbers it draws. A `[[job]]` says "job".
    #[serde(default, skip_serializing_if = "HostDraws::is_own")]
    pub draws: HostDraws,
    /// The data itself: a row a rank, as numbers or as bit patterns like "0x3ff0"; not with `random` or `like`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Vec<Number>>>,
    /// Cycles of software at each rank before each round.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub overhead_cycles: u64,
    /// Words of 64 bits in a packet, behind its header.
    #[serde(default = "eight")]
    #[schemars(range(min = 1, max = 4096))]
    pub packet_words: u64,
    /// Accesses of memory for each word that is merged: by default two reads and a write.
    #[serde(default = "usual_merge", skip_serializing_if = "is_usual_merge")]
    #[schemars(range(min = 1, max = 64))]
    pub merge_accesses: u8,
    /// First cycle, if all before it is complete by then.
    #[serde(default)]
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub start_cycle: u64,
    /// Cycles by which ranks start late: one number for all, a list with one for each, or a random choice.
    #[serde(default, skip_serializing_if = "on_time")]
    pub delay_cycles: DelayFile,
}

fn on_time(delay: &DelayFile) -> bool {
    *delay == DelayFile::default()
}

fn eight() -> u64 {
    8
}

/// Accesses of memory for a merged word, if nobody says otherwise: two reads and a write *chosen*.
pub const MERGE_ACCESSES: u8 = 3;

fn usual_merge() -> u8 {
    MERGE_ACCESSES
}

/// Whether it is the default number of accesses.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub fn is_usual_merge(accesses: &u8) -> bool {
    *accesses == MERGE_ACCESSES
}

/// Software algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostAlgorithm {
    /// Pairs exchange whole vectors at doubling distances.
    RecursiveDoubling,
    /// Segments go round, once to be reduced, once to be told.
    Ring,
    /// Reduce-scatter by halving, all-gather by doubling.
    Rabenseifner,
    /// Whole vectors climb a binary tree of ranks (children of k: 2 k + 1, 2 k + 2) and the result comes back.
    BinaryTree,
    /// A multicast: the first rank sends its vector to all others, one after the other.
    SendLoop,
}

impl HostAlgorithm {
    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RecursiveDoubling => "recursive-doubling",
            Self::Ring => "ring",
            Self::Rabenseifner => "rabenseifner",
            Self::BinaryTree => "binary-tree",
            Self::SendLoop => "send-loop",
        }
    }
}

/// How the words of a message come to the partner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostExchange {
    /// The sender writes them into the partner's memory, and a flag after them: one way.
    #[default]
    Put,
    /// The sender writes a flag that its buffer is valid, the partner reads the buffer over the network: three ways.
    Get,
}

impl HostExchange {
    /// Whether it is the default.
    pub fn is_put(&self) -> bool {
        *self == Self::Put
    }
}

/// Whose random numbers ranks contribute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostDraws {
    /// Other ones than any engine draws.
    #[default]
    Own,
    /// Those that an engine draws for its job of the same number, so that results can be compared bit by bit.
    Job,
}

impl HostDraws {
    /// Whether it is the default.
    pub fn is_own(&self) -> bool {
        *self == Self::Own
    }
}

/// What limits messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostMode {
    /// They are simulated flit by flit on the fabric, and meet each other there.
    #[default]
    Fabric,
    /// As the paper has it: each takes the latency of its shortest path and the time of its words, whatever else goes on.
    Ideal,
}
