//! `[[traffic]]` and `[measure]`.

use schemars::JsonSchema;
use serde::{Deserialize as DeriveDeserialize, Serialize};

/// Point-to-point traffic, alone or beside the engines of any family: who sends to whom (`pattern`), when (`injection`) and how
/// much. Beside jobs, traffic without an end stops with the last of them.
#[derive(Debug, Clone, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct TrafficFile {
    /// Name in results and messages, unique. Default: "t0", "t1", …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// Who sends to whom.
    pub pattern: Pattern,
    /// When packets are made. Default: "bernoulli".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub injection: Option<InjectionKind>,
    /// Mean flits per node and cycle; not for flows, which have one each, nor for a closed loop or a trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub rate: Option<f64>,
    /// Flits of a packet: a number, { min, max } for an even choice, or a list of { flits, weight }. Closed loop: of a
    /// request. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_flits: Option<PacketFlits>,
    /// First cycle in which packets are made.
    #[serde(default)]
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub start_cycle: u64,
    /// First cycle in which no more packets are made. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9_007_199_254_740_992_i64))]
    pub stop_cycle: Option<u64>,
    /// uniform: whether a node also sends to itself. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_self: Option<bool>,
    /// hotspot: end points that get a share of all packets of their own; the rest is uniform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub hotspots: Option<Vec<HotspotFile>>,
    /// permutation, trace: a text file, relative to the scenario. Permutation: a source and its destination a line.
    /// Trace: cycle, source, destination, flits and, if wanted, a class from 0 to 15 a line, in the order of cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub file: Option<String>,
    /// flows: the pairs that talk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub flows: Option<Vec<FlowFile>>,
    /// bursty: probability that a source that is off turns on in a cycle; the mean pause is 1 / alpha cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.000_001, max = 1.0))]
    pub burst_alpha: Option<f64>,
    /// bursty: probability that a source that is on turns off in a cycle; the mean burst is 1 / beta cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.000_001, max = 1.0))]
    pub burst_beta: Option<f64>,
    /// closed-loop: requests a source may have without a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4096))]
    pub window: Option<u32>,
    /// closed-loop: flits of a reply, as `packet_flits`. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_flits: Option<PacketFlits>,
    /// closed-loop: cycles from a reply to the next request. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub think_cycles: Option<u64>,
    /// closed-loop: cycles from a request's arrival to its reply. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub service_cycles: Option<u64>,
}

/// Lengths of packets in flits.
#[derive(Debug, Clone, PartialEq, Serialize, DeriveDeserialize)]
#[serde(untagged)]
pub enum PacketFlits {
    /// All the same.
    Fixed(u32),
    /// Evenly from least to most.
    Range {
        /// The shortest.
        min: u32,
        /// The longest.
        max: u32,
    },
    /// Lengths with weights.
    List(Vec<WeightFile>),
}

/// A length and how often it comes.
#[derive(Debug, Clone, PartialEq, Serialize, DeriveDeserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightFile {
    /// The length.
    pub flits: u32,
    /// How often, compared with the other weights.
    pub weight: u32,
}

/// A hot spot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct HotspotFile {
    /// The end point.
    #[schemars(range(min = 0, max = 4_194_303))]
    pub end_point: u32,
    /// The share of all packets that goes there on top of what uniform traffic sends there.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
}

/// Traffic patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Every end point sends to all with the same probability.
    Uniform,
    /// Row and column change places; the number of end points is a square.
    Transpose,
    /// To the end point whose number has all bits inverted; their number is a power of two.
    BitComplement,
    /// To the end point whose number has its bits in reverse order; their number is a power of two.
    BitReverse,
    /// To the end point whose number has its bits rotated left by one; their number is a power of two.
    Shuffle,
    /// ceil(k/2) - 1 further in every dimension, modulo its side k.
    Tornado,
    /// One further in every dimension, modulo its side.
    Neighbour,
    /// Some end points get more.
    Hotspot,
    /// Every source has one destination, and every destination one source: from a file.
    Permutation,
    /// Every end point sends to all others in turn, the next number first.
    AllToAll,
    /// Given pairs.
    Flows,
    /// As a file says, packet by packet.
    Trace,
}

/// When packets are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InjectionKind {
    /// In each cycle with the same probability.
    Bernoulli,
    /// On and off, a Markov process with `burst_alpha` and `burst_beta`.
    Bursty,
    /// Evenly.
    Periodic,
    /// Requests and replies, with a window of requests without a reply.
    ClosedLoop,
}

/// What is measured of the traffic. With this table traffic need not stop: the run warms up, measures the packets that
/// are made in a window, and ends when they have all arrived.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct MeasureFile {
    /// Cycles before the window: long enough for queues to settle.
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub warmup_cycles: u64,
    /// Cycles of the window; with `precision` those of the first one.
    #[schemars(range(min = 1, max = 9_007_199_254_740_992_i64))]
    pub measure_cycles: u64,
    /// Cycles after the window in which its packets must have arrived, or else the run is saturated.
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub drain_cycles: u64,
    /// Level of the confidence interval of the mean latency.
    pub confidence: Confidence,
    /// The window is doubled until the half-width of the confidence interval is this share of the mean or less.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.000_1, max = 0.5))]
    pub precision: Option<f64>,
    /// With `precision`: the window grows no further than this.
    #[schemars(range(min = 1, max = 9_007_199_254_740_992_i64))]
    pub max_measure_cycles: u64,
}

impl Default for MeasureFile {
    fn default() -> Self {
        Self {
            warmup_cycles: 5_000,
            measure_cycles: 20_000,
            drain_cycles: 50_000,
            confidence: Confidence::P95,
            precision: None,
            max_measure_cycles: 1_000_000,
        }
    }
}

/// Levels of confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, DeriveDeserialize, JsonSchema)]
pub enum Confidence {
    /// 90 %.
    #[serde(rename = "90%")]
    P90,
    /// 95 %.
    #[serde(rename = "95%")]
    P95,
    /// 99 %.
    #[serde(rename = "99%")]
    P99,
}

/// One pair of a traffic of flows. A port is written `switch.P<port>` and must be a local or an unconnected one.
#[derive(Debug, Clone, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct FlowFile {
    /// Where packets enter, for example "core1.P0".
    #[schemars(length(min = 1))]
    pub from: String,
    /// Where they leave.
    #[schemars(length(min = 1))]
    pub to: String,
    /// Flits per cycle.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub rate: f64,
}
