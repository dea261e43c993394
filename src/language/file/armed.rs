//! The `[armed]` table as it is written. The doc comments are the format's reference.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::file::{Auto, Distribution, Number, ParticipantsFile, stands_elsewhere};
use watershed_arith::quad::OPCODES;

/// What the armed family adds to a scenario.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct ArmedFile {
    /// The reduction engines.
    pub engine: EngineFile,
    /// Entries of a switch's multicast table. A tree that finds none free is refused, and its job reduces in software.
    /// Default: 8192.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 8192))]
    pub table_entries: Option<u32>,
    /// The management agent, which makes trees at run time. Default: none; all trees are there when the run begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentFile>,
    /// The link layer of links on which faults happen.
    pub link_layer: LinkLayerFile,
    /// End points with an Ethernet NIC: their frames travel to the switch behind an Ethernet header.
    #[schemars(inner(range(min = 0, max = 4_194_303)))]
    pub ethernet: Vec<u32>,
    /// The reductions that run.
    #[schemars(length(max = 4096))]
    pub reduction: Vec<ReductionFile>,
    /// What fails: links that lose, damage, repeat or delay frames, and what is dead from some cycle on.
    #[schemars(length(max = 4096))]
    pub fault: Vec<FaultFile>,
    /// Processes that send frames which do not belong, and leaves that misbehave.
    #[schemars(length(max = 4096))]
    pub stranger: Vec<StrangerFile>,
}

/// The reduction engines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct EngineFile {
    /// Active reductions an engine can hold. More than that pass it unreduced.
    #[schemars(range(min = 0, max = 1024))]
    pub descriptors: u32,
    /// Clock stages of the arithmetic. Never changes bits.
    #[schemars(range(min = 1, max = 6))]
    pub stages: u32,
    /// Frames an engine's entrance holds besides the one that is coming in.
    #[schemars(range(min = 1, max = 1024))]
    pub entrance_frames: u32,
    /// Frames that wait for the link towards the parent.
    #[schemars(range(min = 1, max = 1024))]
    pub exit_frames: u32,
    /// Accesses to an engine's descriptors in a cycle: write-back, arming, expiries and the match share them. Two are a memory
    /// that reads and writes in a cycle.
    #[serde(skip_serializing_if = "is_two")]
    #[schemars(range(min = 1, max = 4))]
    pub memory_ports: u32,
    /// What happens to frames for one descriptor that follow each other in the unit. Frames of several flits, as those of 64 bits
    /// bring, follow each other so closely only behind an exit that was full; a frame that is one flit always can.
    #[serde(skip_serializing_if = "is_interlock")]
    pub hazard: HazardFile,
    /// The four time-outs in units of 1024 cycles.
    #[schemars(length(min = 4, max = 4), inner(range(min = 1, max = 16_777_215)))]
    pub timeouts_1024_cycles: Vec<u32>,
    /// Largest wait counts of the first three time-outs, ascending; larger ones have the fourth.
    #[schemars(length(min = 3, max = 3), inner(range(min = 0, max = 1_048_575)))]
    pub wait_count_thresholds: Vec<u32>,
    /// The result of a signalling NaN and a number in MINNUM and MAXNUM (register R_TF_RED_CFG_MODE).
    pub signalling_nan: SignallingNan,
    /// What a NaN result looks like.
    pub nan: NanFile,
    /// Switches whose engines are out of service, by name.
    #[schemars(inner(length(min = 1)))]
    pub unavailable: Vec<String>,
}

impl Default for EngineFile {
    fn default() -> Self {
        Self {
            descriptors: 8,
            stages: 3,
            entrance_frames: 2,
            exit_frames: 4,
            memory_ports: 2,
            hazard: HazardFile::Interlock,
            timeouts_1024_cycles: vec![8; 4],
            wait_count_thresholds: vec![4, 16, 64],
            signalling_nan: SignallingNan::Associative,
            nan: NanFile::Default,
            unavailable: Vec::new(),
        }
    }
}

/// Whether it is the default of two.
// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub fn is_two(value: &u32) -> bool {
    *value == 2
}

/// Whether it is the default hazard.
// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub fn is_interlock(value: &HazardFile) -> bool {
    *value == HazardFile::Interlock
}

/// Hazards of the descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HazardFile {
    /// The second frame waits until the descriptor is written back.
    Interlock,
    /// It reads the old word: faulty hardware, which loses the first of the two, to see what becomes of a round then.
    Ignore,
}

/// Signalling NaNs in MINNUM and MAXNUM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SignallingNan {
    /// The number wins: the result does not depend on the order.
    Associative,
    /// The pair gives a quiet NaN, as IEEE 754-2008 has it: the result depends on the order.
    Ieee,
}

/// The management agent at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct AgentFile {
    /// The end point it runs at. Its frames have a channel of their own, above all others.
    #[schemars(range(min = 0, max = 4_194_303))]
    pub end_point: u32,
    /// Cycles that it computes for a request, before it orders the first entry.
    #[serde(default = "agent_compute")]
    #[schemars(range(min = 0, max = 1_073_741_824))]
    pub compute_cycles: u64,
    /// Cycles that a switch takes to write or erase an entry.
    #[serde(default = "entry_write")]
    #[schemars(range(min = 0, max = 65_536))]
    pub switch_write_cycles: u64,
    /// Switches that have an order under way at a time.
    #[serde(default = "outstanding")]
    #[schemars(range(min = 1, max = 65_536))]
    pub outstanding_orders: u32,
    /// Cycles after which an order that was not acknowledged is sent again; "auto" is 4096 and 64 times the latency of a link.
    #[serde(default)]
    #[schemars(schema_with = "cycles_or_auto")]
    pub order_timeout_cycles: Auto<u64>,
    /// How often an order is sent before the switch is given up.
    #[serde(default = "order_attempts")]
    #[schemars(range(min = 1, max = 255))]
    pub order_attempts: u32,
    /// Cycles after which a root that has no answer asks again; "auto" is longer than the agent needs for the requests of all
    /// reductions if nothing is lost, and for one whose orders are lost as often as they may be.
    #[serde(default)]
    #[schemars(schema_with = "cycles_or_auto")]
    pub answer_timeout_cycles: Auto<u64>,
    /// How often a root asks before it reduces in software.
    #[serde(default = "requests")]
    #[schemars(range(min = 1, max = 255))]
    pub requests: u32,
}

impl AgentFile {
    /// Cycles in which a root has an answer, or none and has done with asking, once its time-out is derived.
    pub fn patience(&self) -> u64 {
        self.answer_timeout_cycles.known().saturating_mul(u64::from(self.requests) + 1)
    }
}

fn agent_compute() -> u64 {
    2000
}

fn entry_write() -> u64 {
    4
}

fn outstanding() -> u32 {
    8
}

fn order_attempts() -> u32 {
    4
}

fn requests() -> u32 {
    3
}

/// NaN results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NanFile {
    /// The one default quiet NaN.
    Default,
    /// The payload of an operand survives, quieted, with sign 0: a signalling NaN's before a quiet one's.
    Propagate,
}

/// The link layer of links with faults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct LinkLayerFile {
    /// Frames are numbered on a link, and a repeated one is removed.
    pub sequence_check: bool,
    /// Retired, and refused wherever it is given: `[link.reliability]` sends frames again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_048_576))]
    pub retry_cycles: Option<u64>,
}

impl Default for LinkLayerFile {
    fn default() -> Self {
        Self { sequence_check: true, retry_cycles: None }
    }
}

/// A reduction job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct ReductionFile {
    /// Name in results and messages, unique. Default: "r0", "r1", …
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// Operation that is reduced with. "mean" is flt-sum-near, which each end point divides once by the number of contributions.
    /// "flt-sum-deterministic" takes two rounds each time: int-max of the operands' exponents, then int-sum of the operands as
    /// fixed-point integers below the largest one, from which each end point makes a double: the same bits in every order.
    #[serde(rename(serialize = "opcode"))]
    #[schemars(schema_with = "reduction_ops")]
    pub op: String,
    /// How it is done.
    pub method: Method,
    /// Rounds, besides the opening barrier.
    #[schemars(range(min = 0, max = 16_777_216))]
    pub rounds: u32,
    /// Whether the tree is armed by a barrier that all leaves answer, as the source has it; without it the first data
    /// round is armed at once.
    pub opening_barrier: bool,
    /// Who takes part, the root included or not.
    #[serde(skip_serializing_if = "stands_elsewhere")]
    #[schemars(extend("default" = "all"))]
    pub participants: ParticipantsFile,
    /// The end point of the root. Default: the first one at the top of a tree, else the first participant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_194_303))]
    pub root: Option<u32>,
    /// Reduction ids: the number of rounds that can be under way on the tree at a time.
    #[schemars(range(min = 1, max = 8))]
    pub reduction_ids: u32,
    /// Contributions of each node, reduced there before they are sent.
    #[schemars(range(min = 1, max = 1024))]
    pub contributions_per_node: u32,
    /// Reduces over two disjoint trees; the first complete result counts.
    pub redundant: bool,
    /// Who writes its tree into the multicast tables, and when.
    #[serde(skip_serializing_if = "ConfiguredBy::is_scenario")]
    #[schemars(extend("default" = "scenario"))]
    pub configured_by: ConfiguredBy,
    /// configured_by = "agent": name of an earlier reduction with the same root. When that one is over, its tree is changed into
    /// this one's, whose participants may be others.
    #[serde(skip_serializing_if = "stands_elsewhere")]
    #[schemars(length(min = 1))]
    pub changes: Option<String>,
    /// configured_by = "agent": the tree is deleted when all rounds are done, and its address is free for others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub delete_tree: bool,
    /// Protection key. Default: 1 and up, in the order of the reductions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65_535))]
    pub vni: Option<u32>,
    /// Cookie. Default: drawn from the seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_294_967_295_i64))]
    pub cookie: Option<u32>,
    /// Sequence number of the first arm frame; 1023 is reserved.
    #[schemars(range(min = 0, max = 1022))]
    pub first_seqno: u32,
    /// Cycle in which the root starts.
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub start_cycle: u64,
    /// Cycles a participant computes before it contributes: a number, a random choice, or a measured list.
    pub compute_cycles: ComputeFile,
    /// Participants that take longer.
    #[schemars(length(max = 65_536))]
    pub late: Vec<LateFile>,
    /// Cycles after arming after which the root asks for contributions again, 0 for never; "auto" is longer than all
    /// time-outs and compute times.
    #[schemars(schema_with = "cycles_or_auto")]
    pub retry_after_cycles: Auto<u64>,
    /// How often the root asks again before it gives up.
    #[schemars(range(min = 0, max = 255))]
    pub max_retries: u32,
    /// Cycles a leaf waits for a result before it gives up, 0 for never; "auto" is longer than all retries.
    #[schemars(schema_with = "cycles_or_auto")]
    pub patience_cycles: Auto<u64>,
    /// Cycles from software deciding to send to the frame's head on the link.
    #[schemars(range(min = 0, max = 1_048_576))]
    pub send_overhead_cycles: u64,
    /// Cycles from the frame's tail on the link to software acting on it.
    #[schemars(range(min = 0, max = 1_048_576))]
    pub receive_overhead_cycles: u64,
    /// Cycles to merge a partial result in software.
    #[schemars(range(min = 0, max = 1_048_576))]
    pub merge_cycles: u64,
    /// What the participants contribute. Default: random = "normal", or "integers" for integer operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<ContributionFile>,
}

impl Default for ReductionFile {
    fn default() -> Self {
        Self {
            name: None,
            op: "flt-sum-near".to_owned(),
            method: Method::Engines,
            rounds: 1,
            opening_barrier: true,
            participants: ParticipantsFile::All,
            root: None,
            reduction_ids: 1,
            contributions_per_node: 1,
            redundant: false,
            configured_by: ConfiguredBy::Scenario,
            changes: None,
            delete_tree: false,
            vni: None,
            cookie: None,
            first_seqno: 0,
            start_cycle: 0,
            compute_cycles: ComputeFile::Same(0),
            late: Vec::new(),
            retry_after_cycles: Auto::Auto,
            max_retries: 3,
            patience_cycles: Auto::Auto,
            send_overhead_cycles: 0,
            receive_overhead_cycles: 0,
            merge_cycles: 0,
            data: None,
        }
    }
}

/// How a job reduces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Over a multicast tree with reduction engines.
    Engines,
    /// In software, over a binomial tree of point-to-point messages.
    Software,
}

/// Who writes a reduction's tree into the multicast tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConfiguredBy {
    /// Nobody during the run: it is there before cycle 0.
    Scenario,
    /// The management agent of `[armed.agent]`, at run time, when the root asks it to.
    Agent,
}

impl ConfiguredBy {
    /// Whether it is the default.
    pub fn is_scenario(&self) -> bool {
        *self == Self::Scenario
    }
}

/// A participant that takes longer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct LateFile {
    /// The end point.
    #[schemars(range(min = 0, max = 4_194_303))]
    pub end_point: u32,
    /// The data round, from 0. Default: every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000))]
    pub round: Option<u32>,
    /// Cycles on top of its compute time.
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub cycles: u64,
}

/// What participants contribute: `random` or `values`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct ContributionFile {
    /// Seeded random data of a distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random: Option<Distribution>,
    /// The data itself: a row a contribution, in the order of ranks (root first): four numbers or bit patterns, or one for
    /// MINMAXLOC and the reproducible sum. The same in every round.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Vec<Number>>>")]
    pub values: Option<Vec<Vec<Number>>>,
    /// Random data is drawn once and contributed in every round.
    pub same_every_round: bool,
}

/// Compute times.
#[derive(Debug, Clone, PartialEq)]
pub enum ComputeFile {
    /// All the same.
    Same(u64),
    /// A measured list: a row a rank, used in turn.
    List(Vec<Vec<u64>>),
    /// Evenly from a least to a largest one, drawn for each round.
    Random {
        /// The least.
        least: u64,
        /// The largest.
        most: u64,
    },
}

/// A fault on links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct FaultFile {
    /// What happens.
    pub effect: EffectFile,
    /// Where: the name of an end point or a switch, or "all". A frame fault strikes on the link from there towards the
    /// root, "all" on every link of every tree. Effect "dead" kills all links of a switch, and the process of an end point.
    #[schemars(length(min = 1))]
    pub at: String,
    /// Probability for each frame. Default: every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub probability: Option<f64>,
    /// Only this frame on the link and way, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub nth: Option<u64>,
    /// Which frames. Default: climbing ones.
    #[serde(default)]
    pub way: WayFile,
    /// First cycle.
    #[serde(default)]
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub from_cycle: u64,
    /// First cycle without. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9_007_199_254_740_992_i64))]
    pub until_cycle: Option<u64>,
    /// delay: the number of cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9_007_199_254_740_992_i64))]
    pub delay_cycles: Option<u64>,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EffectFile {
    /// The frame is lost.
    Drop,
    /// A bit of it flips.
    Corrupt,
    /// It comes twice, unless the link layer removes one.
    Duplicate,
    /// It comes later, and those behind it.
    Delay,
    /// The place is dead.
    Dead,
}

/// Which frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WayFile {
    /// Climbing ones.
    #[default]
    Up,
    /// Descending ones.
    Down,
    /// Both.
    Both,
    /// Frames of the management agent and those for it, which neither climb nor descend a tree. The link from `at` is the one
    /// towards the agent then.
    Agent,
}

/// A process that sends frames which do not belong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct StrangerFile {
    /// Where it runs: an end point.
    #[schemars(range(min = 0, max = 4_194_303))]
    pub end_point: u32,
    /// Name of the reduction it disturbs.
    #[schemars(length(min = 1))]
    pub reduction: String,
    /// What is wrong with its frames.
    pub wrong: WrongFile,
    /// What its frames claim to be. Contributions climb; the others descend, as if the root had sent them.
    #[serde(default)]
    pub sends: SendsFile,
    /// op: what the leaf at this end point sends instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "op_names")]
    pub op: Option<String>,
    /// tree: name of the other reduction whose address its frames have. If that is made at run time, it sends from when its end
    /// point knows that address, and those of the job it disturbs, of a redundant one both: a frame to one of these would lack
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub tree: Option<String>,
    /// stale: how far behind its sequence numbers are. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 512))]
    pub behind: Option<u32>,
    /// Cycles from one frame to the next; 11 is the full rate of a link that carries 64 bits a cycle.
    #[serde(default = "full_rate")]
    #[schemars(range(min = 1, max = 1_048_576))]
    pub every_cycles: u64,
    /// First cycle.
    #[serde(default)]
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub from_cycle: u64,
    /// First cycle without. Needed, except for op.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9_007_199_254_740_992_i64))]
    pub until_cycle: Option<u64>,
}

fn full_rate() -> u64 {
    11
}

/// What a stranger's frames claim to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SendsFile {
    /// A contribution of one.
    #[default]
    Contribution,
    /// An arm frame for the next number.
    Arm,
    /// The result of the present round, which arms the next one.
    Result,
    /// The end of the job.
    Release,
    /// wrong = "sender": to the agent, a request for the job's tree.
    Request,
    /// wrong = "sender": to the agent, a request to delete it.
    Delete,
    /// wrong = "sender": to the root, the agent's word that it has the tree.
    Grant,
    /// wrong = "sender": to all switches in turn, the agent's order to write an entry.
    Order,
    /// wrong = "sender": to the agent, a switch's word that an order is carried out.
    Acknowledgement,
}

impl SendsFile {
    /// Whether it is a frame of the agent, or for it.
    pub fn is_agents(self) -> bool {
        use SendsFile::{Acknowledgement, Delete, Grant, Order, Request};
        matches!(self, Request | Delete | Grant | Order | Acknowledgement)
    }
}

/// What is wrong with a stranger's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WrongFile {
    /// The cookie.
    Cookie,
    /// The VNI.
    Vni,
    /// The sequence number is old.
    Stale,
    /// The address: no switch has an entry for it.
    Address,
    /// The address: it is that of another reduction's tree, with the fields of this one.
    Tree,
    /// The contents: no reduction frame has them, though the CRC is right.
    Malformed,
    /// The end point that sends it: not the root, or, for a contribution, not a leaf. All else is right.
    Sender,
    /// The operation: the leaf at the end point sends another one than the job's.
    Op,
}

/// An opcode's name in a scenario: `flt-sum-near`.
pub fn op_name(name: &str) -> String {
    name.to_ascii_lowercase().replace(' ', "-")
}

/// The name of a mean.
pub const MEAN: &str = "mean";
/// The name of a deterministic sum.
pub const DETERMINISTIC: &str = "flt-sum-deterministic";

/// Operations of reductions: opcodes, and what end points compose of them.
fn reduction_ops(_: &mut SchemaGenerator) -> Schema {
    let names = OPCODES.iter().map(|opcode| op_name(opcode.name));
    let names: Vec<String> = names.chain([DETERMINISTIC, MEAN].map(String::from)).collect();
    json_schema!({ "type": "string", "enum": names })
}

fn op_names(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<String> = OPCODES.iter().map(|opcode| op_name(opcode.name)).collect();
    json_schema!({ "type": "string", "enum": names })
}
/// The schema of a number of cycles, or "auto".
pub fn cycles_or_auto(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": u32::MAX },
            { "type": "string", "const": "auto" },
        ]
    })
}

impl JsonSchema for ComputeFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Compute".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        const MOST: i64 = crate::limits::CYCLES as i64;
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 0, "maximum": MOST },
                {
                    "type": "array",
                    "minItems": 1,
                    "items": { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": MOST } },
                },
                {
                    "type": "object",
                    "properties": {
                        "random_min": {
                            "description": "The least number of cycles.",
                            "type": "integer", "minimum": 0, "maximum": MOST,
                        },
                        "random_max": {
                            "description": "The largest number of cycles.",
                            "type": "integer", "minimum": 0, "maximum": MOST,
                        },
                    },
                    "required": ["random_max"],
                    "additionalProperties": false,
                },
            ]
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RandomCompute {
    #[serde(default)]
    random_min: u64,
    random_max: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AnyCompute {
    Same(u64),
    List(Vec<Vec<u64>>),
    Random(RandomCompute),
}

impl<'de> Deserialize<'de> for ComputeFile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match AnyCompute::deserialize(deserializer)? {
            AnyCompute::Same(cycles) => Self::Same(cycles),
            AnyCompute::List(rows) => Self::List(rows),
            AnyCompute::Random(RandomCompute { random_min, random_max }) => {
                Self::Random { least: random_min, most: random_max }
            }
        })
    }
}

impl Serialize for ComputeFile {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Same(cycles) => serializer.serialize_u64(*cycles),
            Self::List(rows) => rows.serialize(serializer),
            Self::Random { least, most } => {
                RandomCompute { random_min: *least, random_max: *most }.serialize(serializer)
            }
        }
    }
}
