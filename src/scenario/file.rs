//! The scenario as it is written: one struct a table. The doc comments are the format's reference: they become the
//! descriptions of the JSON Schema, and the ranges and defaults here are what the loader checks.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Deserialize as DeriveDeserialize, Serialize, Serializer};

use super::armed::file::ArmedFile;
use super::hosts::file::HostFile;
use super::jobs::JobFile;
use super::names::{DType, Named, Op, Round};
use super::pbv::file::PbvFile;
use super::problem::Problem;
use super::programs::file::{CoreFile, MulticastFile, ProgramFile};
use super::snapshot::Golden;
use super::source::{Node, Value};

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
    /// The clock of the whole system.
    #[serde(default)]
    pub clock: ClockFile,
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
    /// The jobs, whoever does them. They are translated into the tables of their engines before anything else is read.
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
}

/// The clock.
#[derive(Debug, Clone, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct ClockFile {
    /// Frequency in MHz, a whole number of hertz. Turns ns into cycles and Gb/s into bits a cycle.
    #[schemars(range(min = 0.000_001, max = 1_000_000.0))]
    pub frequency_mhz: f64,
}

impl Default for ClockFile {
    fn default() -> Self {
        Self { frequency_mhz: 1000.0 }
    }
}

/// The shape of the network.
#[derive(Debug, Clone, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct TopologyFile {
    /// The shape of the network.
    pub kind: TopologyKind,
    /// die, nodes: tiles in the row of a die; the first and the last are core tiles, those between have switches only.
    /// Default: 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub tiles: Option<u64>,
    /// die, nodes: switches a tile. Default: 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4))]
    pub positions: Option<u64>,
    /// nodes: sockets of a node, joined all-to-all. Default: 16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub sockets: Option<u64>,
    /// nodes: ports of a switch that leave the die. Default: 2, as on PIUMA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32))]
    pub hsio_ports: Option<u64>,
    /// mesh, torus, hyperx: switches along each dimension; nodes: nodes along each dimension, one node without it. Sides of
    /// 1 have no ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "mesh_size")]
    pub size: Option<Vec<u64>>,
    /// End points a switch; fat-tree: a leaf switch. Default: 1; `arity` in a fat-tree, `global_links` in a dragonfly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub concentration: Option<u64>,
    /// torus, hyperx: how latencies follow from `link.latency_cycles`; nodes: those between nodes from `link.node_latency_ns`.
    /// Default: "equal".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LengthsFile>,
    /// Latencies of links between switches, one for each dimension of a mesh, torus or hyperx, for each level of a fat-tree
    /// above its leaves, or for the links in and between the groups of a dragonfly. Default: `link.latency_cycles` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "latencies")]
    pub latencies_cycles: Option<Vec<u64>>,
    /// fat-tree: ports down and up of a switch, the k of a k-ary n-tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub arity: Option<u64>,
    /// fat-tree: levels of switches, the n of a k-ary n-tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32))]
    pub levels: Option<u64>,
    /// dragonfly: global links of a switch, h. Default: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub global_links: Option<u64>,
    /// dragonfly: switches of a group, a. Default: twice `global_links`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub group_switches: Option<u64>,
    /// dragonfly: groups, up to `group_switches` x `global_links` + 1, which is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4_194_304))]
    pub groups: Option<u64>,
    /// tree: children of a switch of each level, from the top; the last number counts end points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8), inner(range(min = 1, max = 1024)))]
    pub branching: Option<Vec<u64>>,
    /// tree: end points at the top switch, numbered after all others. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 64))]
    pub roots: Option<u64>,
    /// file: a TOML file of switches and links, relative to the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub file: Option<String>,
}

fn mesh_size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": 6,
        "items": { "type": "integer", "minimum": 1, "maximum": 9_223_372_036_854_775_807_i64 },
    })
}

fn latencies(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": 32,
        "items": { "type": "integer", "minimum": 1, "maximum": 16_384 },
    })
}

/// The shapes there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TopologyKind {
    /// A PIUMA die: a row of tiles of up to four switches, all-to-all inside a tile, joined position by position.
    Die,
    /// PIUMA nodes on a HyperX of up to 6 dimensions: sockets, each a die, joined all-to-all in a node.
    Nodes,
    /// A mesh of 1 to 6 dimensions.
    Mesh,
    /// A torus of 1 to 6 dimensions: a mesh whose rows are closed to rings.
    Torus,
    /// Switches on a grid of 1 to 6 dimensions, each joined with all others of its rows.
    Hyperx,
    /// Another name of hyperx.
    FlattenedButterfly,
    /// A k-ary n-tree: n levels of switches with k ports down and k ports up.
    FatTree,
    /// Groups of switches, all-to-all in a group and between groups.
    Dragonfly,
    /// A tree of switches with a branching factor for each level.
    Tree,
    /// Switches and links of a file.
    File,
}

impl TopologyKind {
    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Die => "die",
            Self::Nodes => "nodes",
            Self::Mesh => "mesh",
            Self::Torus => "torus",
            Self::Hyperx => "hyperx",
            Self::FlattenedButterfly => "flattened-butterfly",
            Self::FatTree => "fat-tree",
            Self::Dragonfly => "dragonfly",
            Self::Tree => "tree",
            Self::File => "file",
        }
    }
}

/// How the latencies of links follow from that of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LengthsFile {
    /// The same for all links of a dimension.
    Equal,
    /// The latency of a step times the switches it spans in its row.
    Distance,
    /// Twice the latency of a step: a torus that is folded to have no long links.
    Folded,
}

/// How packets find their way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct RoutingFile {
    /// The algorithm. Default: "dimension-order" where there are dimensions, "minimal-random" elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<AlgorithmFile>,
}

/// Routing algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AlgorithmFile {
    /// Dimension by dimension: die, mesh, torus (2 channels), hyperx.
    DimensionOrder,
    /// A shortest way by chance: mesh (2 channels), torus (4), hyperx (1 a dimension), fat-tree, dragonfly (2), file.
    MinimalRandom,
    /// By way of a random switch or group: mesh and hyperx (2 channels), torus (4), dragonfly (3).
    Valiant,
    /// By credits: any shortest way with an escape channel on mesh and hyperx (2 channels) and torus (3), the way up of
    /// a fat-tree, shortest or by way of a random group on a dragonfly (3), any shortest way of a file.
    Adaptive,
}

/// A switch.
#[derive(Debug, Clone, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct SwitchFile {
    /// Clock stages from input buffer to link: each is a cycle of latency at every switch.
    #[schemars(range(min = 1, max = 4))]
    pub pipeline_stages: u32,
    /// How an output chooses among its inputs within one class of channels.
    pub arbiter: Arbiter,
    /// Register sets for collectives: that many ids can be configured at once.
    #[schemars(range(min = 1, max = 4096))]
    pub collective_ids: u32,
    /// Virtual channels for point-to-point packets. Default: 2; as many as routing needs in a system of nodes, which is
    /// also the least there.
    #[schemars(range(min = 1, max = 8))]
    pub point_to_point_vcs: u32,
    /// Buffer of one point-to-point channel at an input, in flits.
    #[schemars(range(min = 1, max = 65_535))]
    pub point_to_point_buffer_flits: u32,
    /// Buffer of a collective channel at an input, in flits; "auto" covers the credit round trip of its link, so that a
    /// flit moves every cycle. With fewer the rate is this number divided by the round trip.
    #[schemars(schema_with = "auto_or::<1, 65_535>")]
    pub collective_buffer_flits: AutoOr,
    /// Allocators, steps and flow control of point-to-point channels.
    pub router: RouterFile,
    /// The collective engine.
    pub ceng: CengFile,
}

impl Default for SwitchFile {
    fn default() -> Self {
        Self {
            pipeline_stages: 1,
            arbiter: Arbiter::RoundRobin,
            collective_ids: 4,
            point_to_point_vcs: 2,
            point_to_point_buffer_flits: 8,
            collective_buffer_flits: AutoOr::Auto,
            router: RouterFile::default(),
            ceng: CengFile::default(),
        }
    }
}

/// An arbitration policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arbiter {
    /// The input after the one served last is first.
    RoundRobin,
    /// The input that was served longest ago is first.
    Matrix,
    /// The lowest port is first, always: others may starve.
    Fixed,
}

/// The fine points of a point-to-point router. The cycles of a step override what `switch.pipeline_stages` gives it; a
/// hop takes their sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct RouterFile {
    /// Cycles of route computation; 0: known on arrival (look-ahead routing).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 16))]
    pub route_cycles: Option<u32>,
    /// Cycles of virtual-channel allocation; 0: in the cycle of switch allocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 16))]
    pub vc_alloc_cycles: Option<u32>,
    /// Cycles of switch allocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16))]
    pub switch_alloc_cycles: Option<u32>,
    /// Cycles of switch traversal; 0: in the cycle of switch allocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 16))]
    pub traversal_cycles: Option<u32>,
    /// How packets get channels.
    pub vc_allocator: VcAllocator,
    /// How flits get through the crossbar.
    pub switch_allocator: SwitchAllocator,
    /// Rounds of an iterative allocator (islip).
    #[schemars(range(min = 1, max = 16))]
    pub allocator_iterations: u32,
    /// Cycles a switch takes to process a returned credit.
    #[schemars(range(min = 0, max = 1024))]
    pub credit_delay_cycles: u32,
    /// Flits that may leave an input port in a cycle, to different outputs; channel v uses passage v mod speed-up.
    #[schemars(range(min = 1, max = 8))]
    pub input_speedup: u32,
    /// A channel is given to the next packet only when the credit of the last one's tail is back.
    pub wait_for_tail_credit: bool,
    /// Packets bid for the crossbar in the cycle in which they ask for a channel.
    pub speculative: bool,
}

impl Default for RouterFile {
    fn default() -> Self {
        Self {
            route_cycles: None,
            vc_alloc_cycles: None,
            switch_alloc_cycles: None,
            traversal_cycles: None,
            vc_allocator: VcAllocator::Ordered,
            switch_allocator: SwitchAllocator::Separable,
            allocator_iterations: 1,
            credit_delay_cycles: 0,
            input_speedup: 1,
            wait_for_tail_credit: false,
            speculative: false,
        }
    }
}

/// A virtual-channel allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VcAllocator {
    /// Each output serves its requesters in turn, each takes the lowest free channel.
    Ordered,
    /// Each packet picks a free channel, then each channel picks a packet.
    Separable,
    /// Each channel offers itself to a packet, then each packet accepts an offer.
    Islip,
}

/// A switch allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchAllocator {
    /// Each input picks a channel, then each output picks an input.
    Separable,
    /// Each output offers itself to an input, then each input accepts an offer.
    Islip,
}

/// The collective engine (CENG) of a switch.
#[derive(Debug, Clone, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct CengFile {
    /// Clock stages of one two-input unit; the engine's latency is this times the levels of its tree. Never changes bits.
    #[schemars(range(min = 1, max = 6))]
    pub stages: u32,
    /// Ports the reduction tree is built over; "auto" is the switch's port count without the engine.
    #[schemars(schema_with = "auto_or::<1, 64>")]
    pub radix: AutoOr,
    /// Operands that wait at the engine, a port.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub operand_slots: u32,
    /// Elements of scans that a switch can keep between their way up and their way down.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub scan_slots: u32,
    /// Results that wait for the crossbar; "auto" is enough for one result a cycle.
    #[schemars(schema_with = "auto_or::<1, 1_048_576>")]
    pub result_slots: AutoOr,
}

impl Default for CengFile {
    fn default() -> Self {
        Self { stages: 3, radix: AutoOr::Auto, operand_slots: 2, scan_slots: 128, result_slots: AutoOr::Auto }
    }
}

/// A link. Its latency is given in ns or in cycles; ns are rounded up to whole cycles and the rounding is reported.
#[derive(Debug, Clone, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct LinkFile {
    /// Latency of a link between switches in ns. Default: 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1_000_000_000.0))]
    pub latency_ns: Option<f64>,
    /// Latency of a link between switches in cycles, at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16_384))]
    pub latency_cycles: Option<u64>,
    /// Latency of the link between a switch and an end point in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1_000_000_000.0))]
    pub local_latency_ns: Option<f64>,
    /// Latency of the link between a switch and an end point in cycles, at least 1. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16_384))]
    pub local_latency_cycles: Option<u64>,
    /// nodes: latency of a link between two sockets of a node in ns. Default: 25.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1_000_000_000.0))]
    pub socket_latency_ns: Option<f64>,
    /// nodes: latency of a link between two sockets of a node in cycles, at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16_384))]
    pub socket_latency_cycles: Option<u64>,
    /// nodes: latency of a link between two nodes in ns. Default: 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1_000_000_000.0))]
    pub node_latency_ns: Option<f64>,
    /// nodes: latency of a link between two nodes in cycles, at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16_384))]
    pub node_latency_cycles: Option<u64>,
    /// Payload bits of a flit: 64, a word, wherever words are reduced or framed. A plain fabric without hosts counts its
    /// traffic in flits: there it says how much one carries and how wide buffers are, and changes no cycle.
    #[schemars(range(min = 8, max = 4096))]
    pub flit_bits: u32,
    /// Cycles a flit occupies the link: more than 1 is a link narrower than a flit.
    #[schemars(range(min = 1, max = 16_384))]
    pub cycles_per_flit: u32,
    /// nodes: the same of a link between two sockets of a node. Default: as `cycles_per_flit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16_384))]
    pub socket_cycles_per_flit: Option<u32>,
    /// nodes: the same of a link between two nodes. Default: as `cycles_per_flit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16_384))]
    pub node_cycles_per_flit: Option<u32>,
    /// armed, pbv: link-layer replay on every link. Without it a lost frame is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reliability: Option<ReliabilityFile>,
}

/// Link-layer replay: frames are numbered, kept, acknowledged, and sent again until they are there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct ReliabilityFile {
    /// Frames a transmitter keeps for each channel until they are acknowledged.
    #[schemars(range(min = 1, max = 1024))]
    pub replay_frames: u32,
    /// Frames a receiver holds for each channel: the transmitter's credits.
    #[schemars(range(min = 1, max = 1024))]
    pub receive_frames: u32,
    /// Cycles without an acknowledgement after which frames are sent again; "auto" is the round trip and a full buffer.
    #[schemars(schema_with = "super::armed::file::cycles_or_auto")]
    pub timeout_cycles: AutoOr,
    /// Time-outs in a row with nothing heard from the far side after which a frame is given up.
    #[schemars(range(min = 1, max = 255))]
    pub attempts: u32,
}

impl Default for ReliabilityFile {
    fn default() -> Self {
        Self { replay_frames: 8, receive_frames: 4, timeout_cycles: AutoOr::Auto, attempts: 8 }
    }
}

impl Default for LinkFile {
    fn default() -> Self {
        Self {
            latency_ns: None,
            latency_cycles: None,
            local_latency_ns: None,
            local_latency_cycles: None,
            socket_latency_ns: None,
            socket_latency_cycles: None,
            node_latency_ns: None,
            node_latency_cycles: None,
            flit_bits: 64,
            cycles_per_flit: 1,
            socket_cycles_per_flit: None,
            node_cycles_per_flit: None,
            reliability: None,
        }
    }
}

/// The memory of an end point: reading operands and writing results share its bandwidth.
#[derive(Debug, Clone, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct MemoryFile {
    /// Bandwidth in Gb/s, or "unlimited".
    pub bandwidth_gbps: Bandwidth,
    /// Time to read in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1_000_000_000.0))]
    pub read_latency_ns: Option<f64>,
    /// Time to read in cycles. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_048_576))]
    pub read_latency_cycles: Option<u64>,
    /// Time to write in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1_000_000_000.0))]
    pub write_latency_ns: Option<f64>,
    /// Time to write in cycles. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_048_576))]
    pub write_latency_cycles: Option<u64>,
}

impl Default for MemoryFile {
    fn default() -> Self {
        Self {
            bandwidth_gbps: Bandwidth::Gbps(51.2),
            read_latency_ns: None,
            read_latency_cycles: None,
            write_latency_ns: None,
            write_latency_cycles: None,
        }
    }
}

/// A memory bandwidth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bandwidth {
    /// Never the limit.
    Unlimited,
    /// Gigabits per second.
    Gbps(f64),
}

/// When a run is given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct LimitsFile {
    /// A run that is not done by then ends with a failed check.
    #[schemars(range(min = 1, max = 9_007_199_254_740_992_i64))]
    pub max_cycles: u64,
    /// Cycles without any progress after which the run is a deadlock; 0 turns the watchdog off. armed, pbv: of a reduction or
    /// collective that waits for no time-out, task or delay, in cycles in which something is awake; it also has the time
    /// that a frame takes to cross the network.
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
    /// Let collectives of different ids that meet at a switch run one after the other, claiming all their switches at
    /// once. Without it they run into each other, which may deadlock.
    pub claims: bool,
}

impl Default for ChecksFile {
    fn default() -> Self {
        Self { monitors: true, oracle: true, claims: true }
    }
}

/// A collective operation.
#[derive(Debug, Clone, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct CollectiveFile {
    /// Name in results and messages, unique. Default: "c0", "c1", …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// What it does.
    pub kind: CollectiveKind,
    /// Collective id: which set of registers it uses.
    #[serde(default)]
    #[schemars(range(min = 0, max = 4095))]
    pub id: u32,
    /// Operation of a reduction. Default: "sum".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "names::<Op>")]
    pub op: Option<String>,
    /// Type of an element. Default: "f64".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "names::<DType>")]
    pub dtype: Option<String>,
    /// Sum in this wider type: "f16" or "f32" for fp8_e4m3 and fp8_e5m2, "f32" for f16 and bf16. Elements are widened
    /// before they are sent. Default: the type of an element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "names::<DType>")]
    pub accumulate: Option<String>,
    /// Type of a result: that of an element, rounded once where the result leaves the tree, or that of `accumulate`, not
    /// rounded at all. Default: the type of an element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "names::<DType>")]
    pub result_dtype: Option<String>,
    /// Rounding of inexact results. Default: "nearest-even".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "names::<Round>")]
    pub round: Option<String>,
    /// Elements of the vector; 0 for a barrier only. Default: 1, and 0 for a barrier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 268_435_456))]
    pub elements: Option<u64>,
    /// Who takes part: "all", or a list of end points.
    #[serde(default)]
    pub participants: ParticipantsFile,
    /// Root of the built-in tree: the name of a switch, or "auto". Not together with registers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub root: Option<String>,
    /// scan: whether a participant's own value is among those that are reduced for it. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inclusive: Option<bool>,
    /// Programs call it, as often as they like: they say when, with which vector and how many elements.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub called: bool,
    /// Cycle in which the participants start.
    #[serde(default)]
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub start_cycle: u64,
    /// Cycles by which participants start late: one number for all, a list with one for each, or a random choice.
    #[serde(default)]
    pub delay_cycles: DelayFile,
    /// broadcast: the participant that has the data, as an index into `participants`. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_194_303))]
    pub source: Option<u32>,
    /// reduce: the end point that gets the result; it need not take part. Default: the participant at the root, or the
    /// first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_194_303))]
    pub receiver: Option<u32>,
    /// allreduce, reduce: trees that each reduce a segment of the vector at the same time, over links of their own as far as
    /// the topology has them. Each takes a collective id, from `id` on, and a pair of collective channels on every link.
    /// Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8))]
    pub segments: Option<u32>,
    /// The plane whose collective channels it uses: a request and a response channel of their own on every link, with
    /// operand slots of their own in every engine. Collectives on one plane that meet at a switch take turns; those on two
    /// planes do not wait for each other. Segments take one each, from this one on.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 7))]
    pub plane: u32,
    /// What the participants contribute. Default: random = "normal", or "integers" for integer types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataFile>,
    /// A file of configuration registers, as `watershed embed --save` writes it, instead of the built-in tree; relative to
    /// the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub embedding: Option<String>,
    /// Configuration registers by the name of the switch, instead of the built-in tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers: Option<BTreeMap<String, SwitchRegistersFile>>,
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// The collectives there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CollectiveKind {
    /// Everybody contributes, everybody gets the result.
    Allreduce,
    /// Everybody contributes, the root gets the result.
    Reduce,
    /// One has the data, everybody gets it.
    Broadcast,
    /// Nobody goes on before everybody has arrived.
    Barrier,
    /// Everybody gets the reduction of those before it, in the order of `participants`.
    Scan,
}

impl CollectiveKind {
    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allreduce => "allreduce",
            Self::Reduce => "reduce",
            Self::Broadcast => "broadcast",
            Self::Barrier => "barrier",
            Self::Scan => "scan",
        }
    }
}

/// What the participants contribute; exactly one of `random`, `values` and `file`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct DataFile {
    /// Seeded random data of a distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random: Option<Distribution>,
    /// The data itself: one row a participant (a broadcast has one row), as numbers or as bit patterns like "0x3ff0".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Vec<Number>>>")]
    pub values: Option<Vec<Vec<Number>>>,
    /// A .npy, .csv or .hex file, relative to the scenario; one row a participant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub file: Option<String>,
}

/// Distributions of random data, all made with integers so that every machine draws the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Sum of twelve uniform numbers less six: mean 0, variance 1. Integers: the same times 1000, unsigned without its sign.
    Normal,
    /// Evenly from -1 up to, not including, 1. Integers: evenly over all values.
    Uniform,
    /// Whole numbers from -100 to 100, from 0 to 200 for unsigned types: sums are exact.
    Integers,
    /// Random sign and significand, exponents from -60 to 60 (fewer in small types): the order of additions matters.
    /// Integers: every bit length is as likely.
    Mixed,
    /// Any bit pattern: NaN, infinities and denormals included.
    Bits,
}

/// A number in the scenario's own words, so that it is rounded only once, to the collective's type: `0.1`, `-3`, or a bit
/// pattern in a string, `"0x3ff0000000000000"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Number(pub String);

/// Registers of one switch, patent notation: input port to output ports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct SwitchRegistersFile {
    /// Request registers: on the way up. `I2 = [10]` hands what enters at port 2 to the engine, port 10 of a die's switch.
    #[schemars(schema_with = "port_vectors")]
    pub request: BTreeMap<String, Vec<u32>>,
    /// Response registers: on the way down.
    #[schemars(schema_with = "port_vectors")]
    pub response: BTreeMap<String, Vec<u32>>,
}

fn port_vectors(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "type": "array",
            "items": { "type": "integer", "minimum": 0, "maximum": 65535 },
        },
    })
}

/// Point-to-point traffic: who sends to whom (`pattern`), when (`injection`) and how much.
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
    /// Flits per node and cycle in the mean; not for flows, which have one each, nor for a closed loop or a trace.
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
    /// bursty: probability that a source that is off turns on in a cycle; pauses last 1 / alpha cycles in the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.000_001, max = 1.0))]
    pub burst_alpha: Option<f64>,
    /// bursty: probability that a source that is on turns off in a cycle; bursts last 1 / beta cycles in the mean.
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

/// Defaults of the waveform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct WaveFile {
    /// Signals to trace, as globs on hierarchical names.
    pub signals: Vec<String>,
    /// Levels of hierarchy to trace. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub depth: Option<u32>,
    /// First cycle to trace. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub from_cycle: Option<u64>,
    /// Last cycle to trace. Default: the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub to_cycle: Option<u64>,
    /// Trace the clock as well: two changes every cycle.
    pub clock: bool,
}

impl Default for WaveFile {
    fn default() -> Self {
        Self { signals: vec!["**".to_owned()], depth: None, from_cycle: None, to_cycle: None, clock: false }
    }
}

// ---- values with a word of their own -------------------------------------------------------------------------------

/// A number, or "auto".
#[derive(Default, Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoOr {
    /// Derived from the rest of the configuration.
    #[default]
    Auto,
    /// As given.
    Fixed(u32),
}

impl AutoOr {
    /// The number, or what it is derived to be.
    pub fn or(self, derived: u32) -> u32 {
        match self {
            Self::Auto => derived,
            Self::Fixed(number) => number,
        }
    }
}

/// Who takes part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ParticipantsFile {
    /// Every end point.
    #[default]
    All,
    /// These end points.
    List(Vec<u64>),
}

/// By how much participants are late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DelayFile {
    /// All the same.
    Same(u64),
    /// One number a participant.
    Each(Vec<u64>),
    /// Evenly from 0 to a largest one, seeded.
    Random {
        /// The largest delay.
        random_max: u64,
    },
}

impl Default for DelayFile {
    fn default() -> Self {
        Self::Same(0)
    }
}

const MAX_CYCLE: i64 = super::limits::CYCLES as i64;

/// Operations, for tables in other files.
pub fn operations(generator: &mut SchemaGenerator) -> Schema {
    names::<Op>(generator)
}

/// Data types, for tables in other files.
pub fn types(generator: &mut SchemaGenerator) -> Schema {
    names::<DType>(generator)
}

/// Names of an enumeration, for tables in other files.
pub fn names<T: Named>(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = T::names().collect();
    json_schema!({ "type": "string", "enum": names })
}

/// A number within bounds, or `"auto"`, for tables in other files.
pub fn auto_or<const MIN: u32, const MAX: u32>(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": "integer", "minimum": MIN, "maximum": MAX },
            { "type": "string", "const": "auto" },
        ]
    })
}

macro_rules! inline_schema {
    ($type:ty, $name:literal, $schema:tt) => {
        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

inline_schema!(Bandwidth, "Bandwidth", {
    "anyOf": [
        { "type": "number", "minimum": 0.000_001, "maximum": 1_000_000.0 },
        { "type": "string", "const": "unlimited" },
    ]
});
inline_schema!(ParticipantsFile, "Participants", {
    "anyOf": [
        { "type": "string", "const": "all" },
        {
            "type": "array",
            "minItems": 1,
            "items": { "type": "integer", "minimum": 0, "maximum": 9_223_372_036_854_775_807_i64 },
        },
    ]
});
inline_schema!(DelayFile, "Delay", {
    "anyOf": [
        { "type": "integer", "minimum": 0, "maximum": MAX_CYCLE },
        { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": MAX_CYCLE } },
        {
            "type": "object",
            "properties": { "random_max": { "type": "integer", "minimum": 0, "maximum": MAX_CYCLE } },
            "required": ["random_max"],
            "additionalProperties": false,
        },
    ]
});
inline_schema!(PacketFlits, "PacketFlits", {
    "anyOf": [
        { "type": "integer", "minimum": 1, "maximum": 65_536 },
        {
            "type": "object",
            "properties": {
                "min": { "type": "integer", "minimum": 1, "maximum": 65_536 },
                "max": { "type": "integer", "minimum": 1, "maximum": 65_536 },
            },
            "required": ["min", "max"],
            "additionalProperties": false,
        },
        {
            "type": "array",
            "minItems": 1,
            "maxItems": 256,
            "items": {
                "type": "object",
                "properties": {
                    "flits": { "type": "integer", "minimum": 1, "maximum": 65_536 },
                    "weight": { "type": "integer", "minimum": 1, "maximum": 1_000_000 },
                },
                "required": ["flits", "weight"],
                "additionalProperties": false,
            },
        },
    ]
});
inline_schema!(Number, "Number", {
    "anyOf": [{ "type": "number" }, { "type": "string" }]
});

impl Serialize for AutoOr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Fixed(number) => serializer.serialize_u32(*number),
        }
    }
}

impl Serialize for Bandwidth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unlimited => serializer.serialize_str("unlimited"),
            Self::Gbps(number) => serializer.serialize_f64(*number),
        }
    }
}

impl Serialize for ParticipantsFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::List(list) => list.serialize(serializer),
        }
    }
}

impl Serialize for DelayFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Same(delay) => serializer.serialize_u64(*delay),
            Self::Each(list) => list.serialize(serializer),
            Self::Random { random_max } => RandomDelay { random_max: *random_max }.serialize(serializer),
        }
    }
}

#[derive(Serialize, DeriveDeserialize)]
#[serde(deny_unknown_fields)]
struct RandomDelay {
    random_max: u64,
}

/// Reads a value that is a number, a word or something structured, by what it looks like.
struct Mixed<T> {
    expecting: &'static str,
    word: fn(&str) -> Option<T>,
    integer: fn(u64) -> Option<T>,
    float: fn(f64) -> Option<T>,
    list: fn(Vec<u64>) -> Option<T>,
    map: fn(RandomDelay) -> Option<T>,
}

impl<T> Mixed<T> {
    fn new(expecting: &'static str) -> Self {
        Self { expecting, word: |_| None, integer: |_| None, float: |_| None, list: |_| None, map: |_| None }
    }
}

impl<'de, T> Visitor<'de> for Mixed<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<T, E> {
        (self.word)(word).ok_or_else(|| E::invalid_value(de::Unexpected::Str(word), &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        (self.integer)(number).ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        u64::try_from(number)
            .ok()
            .and_then(self.integer)
            .ok_or_else(|| E::invalid_value(de::Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        (self.float)(number).ok_or_else(|| E::invalid_value(de::Unexpected::Float(number), &self))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<T, A::Error> {
        let list = Deserialize::deserialize(de::value::SeqAccessDeserializer::new(seq))?;
        (self.list)(list).ok_or_else(|| de::Error::invalid_type(de::Unexpected::Seq, &self))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        let map = Deserialize::deserialize(de::value::MapAccessDeserializer::new(map))?;
        (self.map)(map).ok_or_else(|| de::Error::invalid_type(de::Unexpected::Map, &self))
    }
}

impl<'de> Deserialize<'de> for AutoOr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Mixed {
            word: |word| (word == "auto").then_some(Self::Auto),
            integer: |number| u32::try_from(number).ok().map(Self::Fixed),
            ..Mixed::new("a number or \"auto\"")
        })
    }
}

impl<'de> Deserialize<'de> for Bandwidth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Mixed {
            word: |word| (word == "unlimited").then_some(Self::Unlimited),
            integer: |number| Some(Self::Gbps(number as f64)),
            float: |number| Some(Self::Gbps(number)),
            ..Mixed::new("a number or \"unlimited\"")
        })
    }
}

impl<'de> Deserialize<'de> for ParticipantsFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Mixed {
            word: |word| (word == "all").then_some(Self::All),
            list: |list| Some(Self::List(list)),
            ..Mixed::new("a list of end points or \"all\"")
        })
    }
}

impl<'de> Deserialize<'de> for DelayFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Mixed {
            integer: |number| Some(Self::Same(number)),
            list: |list| Some(Self::Each(list)),
            map: |map| Some(Self::Random { random_max: map.random_max }),
            ..Mixed::new("a number, a list or { random_max = … }")
        })
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Mixed {
            word: |word| Some(Self(word.to_owned())),
            integer: |number| Some(Self(number.to_string())),
            float: |number| Some(Self(number.to_string())),
            ..Mixed::new("a number or a string")
        })
    }
}

// ---- from the tree of values ---------------------------------------------------------------------------------------

/// Reads a tree that has passed the schema's check.
///
/// # Errors
/// What the check should have found; it is kept for the case that schema and structs disagree.
pub fn read<T: de::DeserializeOwned>(root: &Node) -> Result<T, Problem> {
    let value = to_toml(root, "");
    T::deserialize(value).map_err(|error| Problem::general(error.to_string().trim_end().to_owned()))
}

fn to_toml(node: &Node, key: &str) -> toml::Value {
    match &node.value {
        Value::Bool(flag) => toml::Value::Boolean(*flag),
        Value::Integer(number) => toml::Value::Integer(i64::try_from(*number).unwrap_or(i64::MAX)),
        Value::Float(text) => toml::Value::Float(Value::float(text)),
        Value::String(text) | Value::Datetime(text) => toml::Value::String(text.clone()),
        // Numbers that are data keep their text: they are rounded once, when their type is known.
        Value::Array(rows) if key == "values" => toml::Value::Array(rows.iter().map(texts).collect()),
        Value::Array(items) => toml::Value::Array(items.iter().map(|item| to_toml(item, "")).collect()),
        Value::Table(table) => {
            toml::Value::Table(table.iter().map(|(key, node)| (key.clone(), to_toml(node, key))).collect())
        }
    }
}

fn texts(node: &Node) -> toml::Value {
    match &node.value {
        Value::Array(items) => toml::Value::Array(items.iter().map(texts).collect()),
        Value::Integer(number) => toml::Value::String(number.to_string()),
        Value::Float(text) => toml::Value::String(text.clone()),
        _ => to_toml(node, ""),
    }
}
