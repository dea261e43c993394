//! The `[pbv]` table as it is written. The doc comments are the format's reference.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::armed::{ComputeFile, ContributionFile, EffectFile, LateFile, LinkLayerFile, cycles_or_auto, is_two};
use crate::file::{Auto, Number, ParticipantsFile, auto_or, names};
use crate::names::{DType, Op, Round};
use watershed_fabric::FlitSize;

/// What the PBV family adds to a scenario.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct PbvFile {
    /// The packet engines.
    pub engine: EngineFile,
    /// How engines get their tables and contexts.
    pub setup: SetupFile,
    /// Device IDs of neighbouring switches are so far apart; the nodes of a switch follow its own. Default: the least power
    /// of two, 16 or more, that has room for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 4096))]
    pub device_stride: Option<u32>,
    /// The collectives that run.
    #[schemars(length(max = 4096))]
    pub collective: Vec<CollectiveFile>,
    /// Who asks engines for their congestion metrics, and when.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096))]
    pub congestion: Vec<CongestionFile>,
    /// Congestion reports that engines send of themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reports: Option<ReportsFile>,
    /// Who sends frames that are not his to send.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096))]
    pub stranger: Vec<StrangerFile>,
    /// The link layer of links on which faults happen.
    pub link_layer: LinkLayerFile,
    /// What fails: links that lose, damage, repeat or delay frames, and what is dead from some cycle on.
    #[schemars(length(max = 4096))]
    pub fault: Vec<FaultFile>,
}

/// The packet engines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct EngineFile {
    /// Packet engines of a switch; the k-th ones of all switches work together.
    #[schemars(range(min = 1, max = 4))]
    pub per_switch: u32,
    /// Where they join.
    pub attach: AttachFile,
    /// node, link: number of the first node or inter-switch link, counted at its switch, whose port an engine takes; further
    /// engines take the next ones.
    #[schemars(range(min = 0, max = 62))]
    pub attach_index: u32,
    /// Latency of the half link between a switch's port and its engine.
    #[schemars(range(min = 1, max = 1024))]
    pub inner_cycles: u32,
    /// Contexts an engine stores; one more is refused.
    #[schemars(range(min = 1, max = 4095))]
    pub contexts: u32,
    /// What happens to messages for one context that follow each other in the tracking pipeline. Frames of four flits or more, as
    /// those of 64 bits are, bring them too far apart to meet in it; larger flits let them.
    pub hazard: HazardFile,
    /// Frames in a row that may go past an older one of a lower traffic class, in an engine's inbox and output queue; then the
    /// oldest goes. In a switch: packets in a row that may take a channel past one of a lower class. Flits in a row at an output
    /// or a crossbar input are as many. 0: any number, so that the lowest class may wait for ever.
    #[serde(skip_serializing_if = "is_usual_bound")]
    #[schemars(range(min = 0, max = 255))]
    pub priority_bound: u32,
    /// Clock stages of the arithmetic. Never changes bits.
    #[schemars(range(min = 1, max = 6))]
    pub stages: u32,
    /// Two-input units side by side, each of which takes a word a cycle: a message's words enter them in rows of as many, and the
    /// accumulators stand in rows. "auto" is as many as a flit has words, so that words are reduced as fast as they come; with
    /// fewer the unit is slower than the link and frames wait in the inbox and before it.
    #[serde(skip_serializing_if = "is_auto")]
    #[schemars(schema_with = "auto_or::<1, 64>")]
    pub reduction_units: Auto<u32>,
    /// Flits of frames that come into an engine or wait in it; the longest frame has 4112 bytes, 514 flits of 64 bits. One that does not fit waits before it.
    #[schemars(range(min = 514, max = 65_535))]
    pub inbox_flits: u32,
    /// Messages with words that wait for the arithmetic; while there are as many an engine takes nothing more.
    #[serde(skip_serializing_if = "is_two")]
    #[schemars(range(min = 1, max = 64))]
    pub feed_messages: u32,
    /// Messages that wait to leave an engine. While what it is working on may fill them it takes nothing more, and frames wait
    /// before it. "auto" is what the contexts need: 16, 4 for each context, and one for each engine that hands responses on;
    /// with less, which is refused, engines could wait for each other. More makes nothing faster but bursts of refusals.
    #[serde(skip_serializing_if = "is_auto")]
    #[schemars(schema_with = "auto_or::<16, 65_535>")]
    pub output_messages: Auto<u32>,
    /// Accesses a cycle to each memory of an engine: the PBV table, the tracking store, the accumulators, kept words, deadlines.
    /// Two are a read and a write in a cycle: a message and a word each cycle.
    #[serde(skip_serializing_if = "is_two")]
    #[schemars(range(min = 1, max = 4))]
    pub memory_ports: u32,
    /// Cycles until an engine without engines below it asks who is missing; 0 is never.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub timeout_cycles: u32,
    /// By how much the time-out grows with each level of engines below.
    #[schemars(range(min = 1, max = 16))]
    pub timeout_factor: u32,
    /// How often an engine asks those that are missing before it reports them.
    #[schemars(range(min = 0, max = 255))]
    pub retries: u32,
    /// Cycles of a window of the congestion metrics; 0 measures without end.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub metrics_window_cycles: u32,
    /// Error messages are sent to the sender of a frame that is refused.
    pub report_errors: bool,
    /// Senders are checked against the PBV table.
    pub validate: bool,
}

impl EngineFile {
    /// Reduction units, for flits of this size.
    pub fn units(&self, cut: FlitSize) -> u32 {
        match self.reduction_units {
            Auto::Fixed(units) => units,
            Auto::Auto => cut.words() as u32,
        }
    }
}

impl Default for EngineFile {
    fn default() -> Self {
        Self {
            per_switch: 1,
            attach: AttachFile::Own,
            attach_index: 0,
            inner_cycles: 1,
            contexts: 64,
            hazard: HazardFile::Forward,
            priority_bound: 16,
            stages: 4,
            reduction_units: Auto::Auto,
            inbox_flits: 1024,
            feed_messages: 2,
            output_messages: Auto::Auto,
            memory_ports: 2,
            timeout_cycles: 0,
            timeout_factor: 3,
            retries: 0,
            metrics_window_cycles: 0,
            report_errors: true,
            validate: true,
        }
    }
}

/// Queues that reports can be of.
pub const WATCHED: [&str; 4] = ["inbox", "output", "P0.p2p0", "P1.p2p0"];

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_usual_bound(value: &u32) -> bool {
    *value == 16
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one_context(value: &u32) -> bool {
    *value == 1
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one(value: &u64) -> bool {
    *value == 1
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_auto(value: &Auto<u32>) -> bool {
    matches!(value, Auto::Auto)
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// A request for congestion metrics: reads of the registers, in band.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct CongestionFile {
    /// The switch whose engine is asked, or "all".
    #[schemars(length(min = 1))]
    pub at: String,
    /// Cycle in which the first frame is sent, at the earliest.
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub cycle: u64,
    /// The end point that asks. Default: the one that configures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_194_303))]
    pub by: Option<u32>,
    /// Which of the packet engines of the switch.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3))]
    pub plane: u32,
}

/// Congestion reports: an engine sends one when a queue comes up to a threshold, and another one not before it was down again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ReportsFile {
    /// The level that is reported: flits of a buffer or of the inbox, messages of the output queue.
    #[schemars(range(min = 1, max = 65_535))]
    pub above: u32,
    /// The level at which a queue can be reported again, less than `above`. Default: half of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65_534))]
    pub until: Option<u32>,
    /// Queues that are watched: "inbox" (checked frames), "output" (messages that leave), "P0.p2p0" (input buffer from the
    /// switch), "P1.p2p0" (from what lies behind the engine). Default: inbox and output.
    #[serde(default = "usual_queues")]
    #[schemars(schema_with = "queue_names")]
    pub queues: Vec<String>,
    /// The end point that gets them. Default: the one that configures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_194_303))]
    pub to: Option<u32>,
}

fn queue_names(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let names = WATCHED;
    schemars::json_schema!({ "type": "array", "minItems": 1, "maxItems": 4, "items": { "type": "string", "enum": names } })
}

fn usual_queues() -> Vec<String> {
    vec!["inbox".into(), "output".into()]
}

/// A device that sends frames that are correct except for one thing, so that no device may obey them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct StrangerFile {
    /// Where it runs: an end point.
    #[schemars(range(min = 0, max = 4_194_303))]
    pub end_point: u32,
    /// Name of the collective it disturbs; of an inter-group barrier "NAME.0", "NAME.1", …
    #[schemars(length(min = 1))]
    pub collective: String,
    /// What is wrong with its frames.
    pub wrong: WrongFile,
    /// The switch to whose engine, or the end point to which it sends. Default: the switch of the master engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub to: Option<String>,
    /// Messages it sends, one after the other. Default: all that can have this wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), schema_with = "message_names")]
    pub messages: Vec<String>,
    /// run: how far behind its run numbers are.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub behind: u32,
    /// Cycles from one frame to the next.
    #[serde(default = "every")]
    #[schemars(range(min = 1, max = 1_048_576))]
    pub every_cycles: u64,
    /// First cycle.
    #[serde(default)]
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub from_cycle: u64,
    /// First cycle without; up to 65,536 frames.
    #[schemars(range(min = 1, max = 9_007_199_254_740_992_i64))]
    pub until_cycle: u64,
}

fn one() -> u32 {
    1
}

fn every() -> u64 {
    16
}

fn message_names(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let names: Vec<&str> = watershed_pbv_interface::packet::Message::ALL.iter().map(|message| message.name()).collect();
    schemars::json_schema!({ "type": "array", "items": { "type": "string", "enum": names } })
}

/// What is wrong with a stranger's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WrongFile {
    /// Who sends them: an end point that has nothing to do with the collective. All messages.
    Sender,
    /// The run: a participant's contribution or failure of a run that is long over.
    Run,
    /// The kind: a participant sends what only engines and the source may.
    Kind,
    /// The address: the register space of an engine that the switch does not have, or of any at an end point. All messages.
    Channel,
}

/// Where packet engines join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AttachFile {
    /// At ports of their own with nothing behind them.
    Own,
    /// In the wires of nodes.
    Node,
    /// In the wires of links to other switches.
    Link,
}

/// Hazards of the tracking pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HazardFile {
    /// What is about to be written is used in place of what was read: a message a cycle.
    Forward,
    /// The second message waits.
    Interlock,
    /// It uses what was read: faulty hardware, which loses the first of the two, to see what becomes of a run then.
    Ignore,
}

/// How engines get their tables and contexts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct SetupFile {
    /// How the PBV tables are written.
    pub configuration: ConfigurationFile,
    /// How contexts are set up.
    pub initialisation: InitialisationFile,
    /// side-port: cycles of a bit on each of its data lines; the engines are written one after the other, 48 bits a register,
    /// and `initialise_cycle = "auto"` waits for the last one. 0: all was written before the run.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 1_048_576))]
    pub side_port_cycles_per_bit: u32,
    /// side-port: its data lines.
    #[serde(skip_serializing_if = "is_single")]
    #[schemars(range(min = 1, max = 8))]
    pub side_port_lines: u32,
    /// Initialisation frames go to end devices too. Without, they go to switches only, and end devices learn what they need from
    /// the first command.
    #[serde(skip_serializing_if = "is_true")]
    pub initialise_nodes: bool,
    /// The end point that sends the configuration. Default: the source of the first collective.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_194_303))]
    pub configured_by: Option<u32>,
    /// one-frame: the switch whose engine sends the others their records. Default: that of `configured_by`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub through: Option<String>,
    /// Cycle in which sources initialise their contexts; "auto" is when every table has been written for sure.
    #[schemars(schema_with = "cycles_or_auto")]
    pub initialise_cycle: Auto<u64>,
}

impl Default for SetupFile {
    fn default() -> Self {
        Self {
            configuration: ConfigurationFile::FrameEach,
            initialisation: InitialisationFile::ThroughMaster,
            side_port_cycles_per_bit: 0,
            side_port_lines: 1,
            initialise_nodes: true,
            configured_by: None,
            through: None,
            initialise_cycle: Auto::Auto,
        }
    }
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_single(value: &u32) -> bool {
    *value == 1
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_true(value: &bool) -> bool {
    *value
}

/// How tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigurationFile {
    /// A register write for each entry, from the source to every engine.
    Writes,
    /// A configuration frame for each engine.
    FrameEach,
    /// One large frame with a record for each switch; the engine that gets it sends the others theirs.
    OneFrame,
    /// Out of band: through a serial port of each switch, see `side_port_cycles_per_bit`.
    SidePort,
}

/// How contexts are set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InitialisationFile {
    /// One frame to the master engine, which hands the engines below it their records.
    ThroughMaster,
    /// A frame to each engine.
    Each,
}

/// A collective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct CollectiveFile {
    /// Name in results and messages, unique. Default: "c0", "c1", …
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// What it does.
    pub kind: KindFile,
    /// Operation of an all-reduce. Default: "sum". "mean" is the sum, which each end point divides once by the number of
    /// participants; it takes floating-point types.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "operations")]
    pub op: Option<String>,
    /// Type of an element. Default: "f64".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "names::<DType>")]
    pub dtype: Option<String>,
    /// Rounding of inexact results. Default: "nearest-even".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "names::<Round>")]
    pub round: Option<String>,
    /// Denormal operands and results become zero.
    pub flush_to_zero: bool,
    /// Elements of the vector; they fit a frame of 4080 bytes. Default: 1, and 0 for a barrier.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4080))]
    pub elements: Option<u32>,
    /// What accumulators begin with. Default: with the first operand as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<Number>,
    /// In which order an engine reduces.
    pub order: OrderFile,
    /// Collective context. Default: the number of contexts of the collectives before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4095))]
    pub cc_id: Option<u32>,
    /// Contexts, from `cc_id` on, that its rounds are spread over: round r runs in context r modulo that, and as many are under way
    /// at a time. Takes `blocks = false`. With more than one, each is a collective of its own in the results, "NAME.0", "NAME.1", …
    #[serde(skip_serializing_if = "is_one_context")]
    #[schemars(range(min = 1, max = 64))]
    pub contexts: u32,
    /// The end point that issues it, which need not take part. Default: the first participant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_194_303))]
    pub source: Option<u32>,
    /// Who takes part.
    pub participants: ParticipantsFile,
    /// inter-group-barrier: the participants, group by group; they take as many contexts, from `cc_id` on. Each is a
    /// collective of its own in the results, "NAME.0", "NAME.1", …
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 255), inner(length(min = 1), inner(range(min = 0, max = 4_194_303))))]
    pub groups: Vec<Vec<u64>>,
    /// Only end points of these switches take part. Default: of all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 65_536), inner(length(min = 1)))]
    pub at_switches: Vec<String>,
    /// End points that take no part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 65_536), inner(range(min = 0, max = 4_194_303)))]
    pub except: Vec<u32>,
    /// Name of the switch whose engine is the master. Default: that of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub master: Option<String>,
    /// How engines hang below the master.
    pub tree: TreeFile,
    /// Switches whose engines report to another one than `tree` says: name of the engine below and of the one above.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parents: BTreeMap<String, String>,
    /// Switches whose engines hand the responses of engines below them on as they are, beside their own, instead of merging
    /// them: names, or "all" for every one but the master's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 65_536), inner(length(min = 1)))]
    pub forwards: Vec<String>,
    /// Who merges the responses that the master engine gets.
    #[serde(skip_serializing_if = "MergeFile::is_master")]
    pub merge: MergeFile,
    /// merge = "source": cycles in which the source merges a word of a response.
    #[serde(skip_serializing_if = "is_one")]
    #[schemars(range(min = 0, max = 1_048_576))]
    pub merge_cycles_per_word: u64,
    /// Traffic class of its frames: of those that wait in an engine or for a port a higher one goes first; traffic beside them
    /// has class 0.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 7))]
    pub traffic_class: u32,
    /// Which of the packet engines of each switch it uses.
    #[schemars(range(min = 0, max = 3))]
    pub plane: u32,
    /// How often it runs.
    #[schemars(range(min = 1, max = 100_000))]
    pub rounds: u32,
    /// Contexts are armed again when satisfied, and nodes begin the next round by themselves: one command for all rounds.
    pub rearm: bool,
    /// What starts the nodes' tasks.
    pub starts_on: StartFile,
    /// Cycle in which the source sends its first command, or later, when its set-up frames have left; "auto" is when every context is
    /// set up for sure.
    #[schemars(schema_with = "cycles_or_auto")]
    pub start_cycle: Auto<u64>,
    /// Cycles a participant works before it contributes: a number, a random choice, or a measured list.
    pub task_cycles: ComputeFile,
    /// Participants that take longer.
    #[schemars(length(max = 65_536))]
    pub late: Vec<LateFile>,
    /// Participants whose tasks fail: they send a failure message instead of contributing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 65_536))]
    pub fails: Vec<FailsFile>,
    /// A node works at no other collective between its contribution and the answer. Collectives that overlap and come to
    /// nodes in different orders then wait for each other for ever: the run ends and names their circle, or with
    /// `patience_cycles` the nodes give up and name who was missing.
    pub blocks: bool,
    /// Cycles without an answer after which a node asks for it again, and a source sends its command again; 0 for never; "auto"
    /// is longer than all time-outs of engines and task times, and never without time-outs.
    #[schemars(schema_with = "cycles_or_auto")]
    pub patience_cycles: Auto<u64>,
    /// How often they ask before they give up.
    #[schemars(range(min = 0, max = 255))]
    pub max_asks: u32,
    /// multicast: nobody acknowledges it.
    pub posted: bool,
    /// What the participants contribute; multicast: one row, the source's. Default: random = "normal", or "integers" for
    /// integer types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<ContributionFile>,
}

impl Default for CollectiveFile {
    fn default() -> Self {
        Self {
            name: None,
            kind: KindFile::Allreduce,
            op: None,
            dtype: None,
            round: None,
            flush_to_zero: false,
            elements: None,
            initial: None,
            order: OrderFile::Arrival,
            cc_id: None,
            contexts: 1,
            source: None,
            participants: ParticipantsFile::All,
            groups: Vec::new(),
            at_switches: Vec::new(),
            except: Vec::new(),
            master: None,
            tree: TreeFile::Routes,
            parents: BTreeMap::new(),
            forwards: Vec::new(),
            merge: MergeFile::Master,
            merge_cycles_per_word: 1,
            traffic_class: 0,
            plane: 0,
            rounds: 1,
            rearm: false,
            starts_on: StartFile::Command,
            start_cycle: Auto::Auto,
            task_cycles: ComputeFile::Same(0),
            late: Vec::new(),
            fails: Vec::new(),
            blocks: true,
            patience_cycles: Auto::Auto,
            max_asks: 3,
            posted: false,
            data: None,
        }
    }
}

/// A participant whose task fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct FailsFile {
    /// The participant.
    #[schemars(range(min = 0, max = 4_194_303))]
    pub end_point: u32,
    /// Only in this round, counted from 0. Default: in every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 99_999))]
    pub round: Option<u32>,
}

/// The collectives there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KindFile {
    /// All participants contribute, and all get the result.
    Allreduce,
    /// No participant goes on before all have arrived.
    Barrier,
    /// The members of a group go on when all of the other groups have arrived.
    InterGroupBarrier,
    /// The source sends data to all participants.
    Multicast,
}

impl KindFile {
    /// Whether it moves no data.
    pub fn is_barrier(self) -> bool {
        matches!(self, Self::Barrier | Self::InterGroupBarrier)
    }
}

/// Orders of reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OrderFile {
    /// As messages arrive.
    Arrival,
    /// That of PBV entries, whatever the order of arrival: sums are bit-reproducible.
    Pbv,
}

/// The operation that end points finish: the sum, divided by the number of participants.
pub const MEAN: &str = "mean";

fn operations(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let names: Vec<&str> = <Op as crate::names::NamedValues>::names().chain([MEAN]).collect();
    schemars::json_schema!({ "type": "string", "enum": names })
}

/// Who merges the responses that the master engine gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MergeFile {
    /// The master engine.
    Master,
    /// The source, in software: the master hands it every response as it is, and passes the result on.
    Source,
}

impl MergeFile {
    // The signature is serde's.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_master(&self) -> bool {
        *self == Self::Master
    }
}

/// How engines hang below the master.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TreeFile {
    /// Along the routes to the master: an engine reports to the next switch's.
    Routes,
    /// All report to the master; those on the way are passed by.
    Flat,
    /// One engine for all participants. One of more than 128 is made of several behind one port of the master's switch, each
    /// with a table of 128 entries and a device ID of its own behind those of the nodes.
    Monolithic,
}

/// What starts tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartFile {
    /// The command of each round.
    Command,
    /// The initialisation of the context; there is no command.
    Initialisation,
}

/// A fault on links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct FaultFile {
    /// What happens.
    pub effect: EffectFile,
    /// Where: the name of an end point (its link), of a switch (its links to other switches), or "all". Effect "dead" kills
    /// the links there, and cuts off all that is behind them.
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
    /// Which frames.
    #[serde(default)]
    pub way: WayFile,
    /// Only frames of this context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4095))]
    pub cc_id: Option<u16>,
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

/// Which frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WayFile {
    /// Those that leave the place; "all": leave a node, or the switch with the lower number.
    From,
    /// Those that come there.
    To,
    /// Both.
    #[default]
    Both,
}
