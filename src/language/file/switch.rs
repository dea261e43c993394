//! `[switch]`.

use schemars::JsonSchema;
use serde::{Deserialize as DeriveDeserialize, Serialize};

use super::words::{Auto, auto_or};

/// Virtual channels for point-to-point packets, at most.
pub const MOST_CHANNELS: u32 = 8;

/// A switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, DeriveDeserialize, JsonSchema)]
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
    /// also the least there. Several engines: as many as routing needs for each that sends packets, if that is more. Armed, beside
    /// traffic: an equal share of them is for messages of reductions in software. PBV: channels of traffic, behind the one of frames.
    #[schemars(range(min = 1, max = MOST_CHANNELS))]
    pub point_to_point_vcs: u32,
    /// Buffer of one point-to-point channel at an input, in flits.
    #[schemars(range(min = 1, max = 65_535))]
    pub point_to_point_buffer_flits: u32,
    /// Buffer of a collective channel at an input, in flits; "auto" covers the credit round trip of its link, so that a
    /// flit moves every cycle. With fewer the rate is this number divided by the round trip.
    #[schemars(schema_with = "auto_or::<1, 65_535>")]
    pub collective_buffer_flits: Auto<u32>,
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
            collective_buffer_flits: Auto::Auto,
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
    /// Flits that may leave an input port in a cycle, to different outputs; channel v uses crossbar input v mod
    /// speed-up.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct CengFile {
    /// Clock stages of one two-input unit; the engine's latency is this times the levels of its tree. Never changes bits.
    #[schemars(range(min = 1, max = 6))]
    pub stages: u32,
    /// Ports the reduction tree is built over; "auto" is the switch's port count without the engine.
    #[schemars(schema_with = "auto_or::<1, 64>")]
    pub radix: Auto<u32>,
    /// Operands that wait at the engine, a port.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub operand_slots: u32,
    /// Elements of scans that a switch can keep between their way up and their way down.
    #[serde(skip_serializing_if = "is_usual_scan_slots")]
    #[schemars(range(min = 1, max = 1_048_576), extend("default" = 128))]
    pub scan_slots: u32,
    /// Results that wait for the crossbar; "auto" is enough for one result a cycle.
    #[schemars(schema_with = "auto_or::<1, 1_048_576>")]
    pub result_slots: Auto<u32>,
}

/// Elements of scans that a switch can keep, if nobody says otherwise *chosen*.
const SCAN_SLOTS: u32 = 128;

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_usual_scan_slots(slots: &u32) -> bool {
    *slots == SCAN_SLOTS
}

impl Default for CengFile {
    fn default() -> Self {
        Self { stages: 3, radix: Auto::Auto, operand_slots: 2, scan_slots: SCAN_SLOTS, result_slots: Auto::Auto }
    }
}
