//! `[link]` and `[memory]`.

use schemars::JsonSchema;
use serde::{Deserialize as DeriveDeserialize, Serialize};

use super::words::Auto;

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
    /// nodes: links between two subnodes of a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnode: Option<SubnodeLinkFile>,
    /// Payload bits of a flit. armed, pbv: a frame of B bits is cut into ceil(B / flit_bits) flits; a multiple of 32. Where single
    /// words are reduced or sent (piuma, hosts, workloads) it is 64, a word. A plain fabric counts its traffic in flits: there it
    /// says how much one carries and how wide buffers are, and changes no cycle.
    #[schemars(range(min = 8, max = 4096))]
    pub flit_bits: u32,
    /// Wires of a link between switches for each direction: bits it carries in a cycle. A flit of F bits (`flit_bits`, and the
    /// header where that is in the flit) takes ceil(F / width) cycles and is forwarded when it is whole; credits have wires of
    /// their own. Default: F, a flit in a cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8192))]
    pub width_bits: Option<u32>,
    /// Wires of the link between a switch and an end point. Default: F.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8192))]
    pub local_width_bits: Option<u32>,
    /// nodes: wires of a link between two sockets of a node. Default: F.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8192))]
    pub socket_width_bits: Option<u32>,
    /// nodes: wires of a link between two nodes. Default: F.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8192))]
    pub node_width_bits: Option<u32>,
    /// piuma: where the header of a collective flit (id, sequence number, flags) travels: on wires of its own beside the flit, or
    /// in the flit, which is that much longer. Default: "side-band".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<HeaderFile>,
    /// Older files: cycles a flit occupies every link; it follows from `width_bits` and `local_width_bits` now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16_384))]
    pub cycles_per_flit: Option<u32>,
    /// nodes, older files: the same of a link between two sockets of a node. Default: as `cycles_per_flit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16_384))]
    pub socket_cycles_per_flit: Option<u32>,
    /// nodes, older files: the same of a link between two nodes. Default: as `cycles_per_flit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16_384))]
    pub node_cycles_per_flit: Option<u32>,
    /// armed, pbv: link-layer replay on every link. Without it a lost frame is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reliability: Option<ReliabilityFile>,
}

/// A link between two subnodes of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct SubnodeLinkFile {
    /// Latency in ns. Default: that between sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1_000_000_000.0))]
    pub latency_ns: Option<f64>,
    /// Latency in cycles, at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16_384))]
    pub latency_cycles: Option<u64>,
    /// Wires. Default: F.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8192))]
    pub width_bits: Option<u32>,
}

/// Where the header of a collective flit travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum HeaderFile {
    /// On wires of its own, beside the flit.
    SideBand,
    /// In the flit.
    InFlit,
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
    #[schemars(schema_with = "super::armed::cycles_or_auto")]
    pub timeout_cycles: Auto<u64>,
    /// Time-outs in a row with nothing heard from the far side after which a frame is given up.
    #[schemars(range(min = 1, max = 255))]
    pub attempts: u32,
}

impl Default for ReliabilityFile {
    fn default() -> Self {
        Self { replay_frames: 8, receive_frames: 4, timeout_cycles: Auto::Auto, attempts: 8 }
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
            subnode: None,
            flit_bits: 64,
            width_bits: None,
            local_width_bits: None,
            socket_width_bits: None,
            node_width_bits: None,
            header: None,
            cycles_per_flit: None,
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
