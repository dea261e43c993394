//! `[workload]` as it is written. The doc comments are the format's reference.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use watershed_workload::CollectiveOp;

use crate::file::ParticipantsFile;

/// A trace of an application that end points run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct WorkloadFile {
    /// A GOAL schedule, or the prefix of Chakra's files (`PREFIX.0.et`, `PREFIX.1.et` and so on); relative to the scenario, and where `--set`
    /// or a sweep gives it, to the working folder.
    #[schemars(length(min = 1))]
    pub trace: String,
    /// The end point of each rank, in the order of the ranks: "all" end points from the first on, or a list.
    #[serde(default)]
    pub participants: ParticipantsFile,
    /// Computing takes this many times as long as the trace says.
    #[serde(default = "one")]
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub compute_scale: f64,
    /// Cycles of software at the sender and at the receiver of each message, and before each round of a collective in software.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub overhead_cycles: u64,
    /// Words of 64 bits in a packet, behind its header.
    #[serde(default = "eight")]
    #[schemars(range(min = 1, max = 4096))]
    pub packet_words: u64,
    /// Rounds of a vector that armed and packet engines have under way at a time: reduction ids of the former, up to 8, and contexts of the
    /// latter.
    #[serde(default = "eight_rounds")]
    #[schemars(range(min = 1, max = 64))]
    pub rounds_under_way: u32,
    /// Bytes that the trace counts for an element of a collective, if they are not those of `dtype`: armed engines compute in 64 bits what
    /// has 32 in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub element_bytes: Option<u64>,
    /// Operation of reductions: traces say nothing of it. Default: "sum".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::file::operations")]
    pub op: Option<String>,
    /// Type of an element of collectives: traces count bytes. Default: "f32".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::file::types")]
    pub dtype: Option<String>,
    /// Peak rate of a device in 10^12 operations a second: nodes that count their operations take the time of a roofline, not the one that was
    /// measured. Default: as measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.000_001, max = 1_000_000.0))]
    pub peak_tflops: Option<f64>,
    /// The roofline's bandwidth in Gb/s. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.000_001, max = 100_000_000.0))]
    pub device_bandwidth_gbps: Option<f64>,
    /// Bandwidth of remote memory in Gb/s, for nodes that load and store. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.000_001, max = 100_000_000.0))]
    pub remote_bandwidth_gbps: Option<f64>,
    /// Latency of remote memory in ns.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1_000_000_000.0))]
    pub remote_latency_ns: f64,
    /// Who computes collectives.
    #[serde(default)]
    pub engine: EngineFile,
    /// Process groups that the trace names and does not list: ranks by the name of the group.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, Vec<u32>>,
}

fn one() -> f64 {
    1.0
}

fn eight() -> u64 {
    8
}

fn eight_rounds() -> u32 {
    8
}

/// Who computes each kind of collective; by default the family's engine where it can, else the first algorithm of the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct EngineFile {
    /// "network", "piuma", "armed", "pbv", "software", "ring", "recursive-doubling", "rabenseifner" or "binary-tree".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allreduce: Option<Engine>,
    /// "network", "piuma", "armed", "pbv", "software" or "binomial". Armed and packet engines give the result to all members, and only the root
    /// keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduce: Option<Engine>,
    /// "network", "piuma", "armed", "pbv", "software" or "binomial". Armed and packet engines reduce the root's words with zeros of all others,
    /// by a bitwise "or".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<Engine>,
    /// "network", "piuma", "armed", "pbv", "software" or "dissemination".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub barrier: Option<Engine>,
    /// Only in software: "ring".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allgather: Option<Engine>,
    /// Only in software: "ring".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduce_scatter: Option<Engine>,
    /// Only in software: "pairwise".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alltoall: Option<Engine>,
    /// Only in software: "linear".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gather: Option<Engine>,
    /// Only in software: "linear".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scatter: Option<Engine>,
}

/// Who computes a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// The engines of the scenario's family, in the network.
    Network,
    /// Collective engines of the switches.
    Piuma,
    /// Armed engines in the wire.
    Armed,
    /// Packet engines.
    Pbv,
    /// The first of the algorithms in software.
    Software,
    /// Software: segments go round.
    Ring,
    /// Software: pairs exchange whole vectors at doubling distances.
    RecursiveDoubling,
    /// Software: reduce-scatter by halving, all-gather by doubling.
    Rabenseifner,
    /// Software: whole vectors climb a binary tree and the result comes back.
    BinaryTree,
    /// Software: whole vectors climb up, or down, a binomial tree.
    Binomial,
    /// Software: in round r every rank notifies the rank 2^r further on.
    Dissemination,
    /// Software: pairs exchange their parts, one pair a round.
    Pairwise,
    /// Software: the root and the others, one after the other.
    Linear,
}

impl Engine {
    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Piuma => "piuma",
            Self::Armed => "armed",
            Self::Pbv => "pbv",
            Self::Software => "software",
            Self::Ring => "ring",
            Self::RecursiveDoubling => "recursive-doubling",
            Self::Rabenseifner => "rabenseifner",
            Self::BinaryTree => "binary-tree",
            Self::Binomial => "binomial",
            Self::Dissemination => "dissemination",
            Self::Pairwise => "pairwise",
            Self::Linear => "linear",
        }
    }

    /// Whether it is in the network.
    pub const fn is_in_network(self) -> bool {
        matches!(self, Self::Network | Self::Piuma | Self::Armed | Self::Pbv)
    }

    /// The algorithms that can compute a kind of collective in software.
    pub fn algorithms(what: CollectiveOp) -> impl Iterator<Item = Engine> {
        Self::of(what).iter().copied().filter(|engine| !engine.is_in_network())
    }

    /// Those that can compute a kind of collective; engines in the network first.
    pub const fn of(what: CollectiveOp) -> &'static [Engine] {
        match what {
            CollectiveOp::AllReduce => &[
                Self::Piuma,
                Self::Armed,
                Self::Pbv,
                Self::Ring,
                Self::RecursiveDoubling,
                Self::Rabenseifner,
                Self::BinaryTree,
            ],
            CollectiveOp::Reduce | CollectiveOp::Broadcast => &[Self::Piuma, Self::Armed, Self::Pbv, Self::Binomial],
            CollectiveOp::Barrier => &[Self::Piuma, Self::Armed, Self::Pbv, Self::Dissemination],
            CollectiveOp::AllGather | CollectiveOp::ReduceScatter => &[Self::Ring],
            CollectiveOp::AllToAll => &[Self::Pairwise],
            CollectiveOp::Gather | CollectiveOp::Scatter => &[Self::Linear],
        }
    }
}

impl EngineFile {
    /// What is given for a kind of collective.
    pub fn given(&self, what: CollectiveOp) -> Option<Engine> {
        match what {
            CollectiveOp::AllReduce => self.allreduce,
            CollectiveOp::Reduce => self.reduce,
            CollectiveOp::Broadcast => self.broadcast,
            CollectiveOp::Barrier => self.barrier,
            CollectiveOp::AllGather => self.allgather,
            CollectiveOp::ReduceScatter => self.reduce_scatter,
            CollectiveOp::AllToAll => self.alltoall,
            CollectiveOp::Gather => self.gather,
            CollectiveOp::Scatter => self.scatter,
        }
    }
}
