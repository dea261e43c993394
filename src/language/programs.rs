//! `[core]`, `[[multicast]]` and `[[program]]` as they are written. The doc comments are the format's reference.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::file::{ParticipantsFile, SwitchRegistersFile};

/// The programmable part of a core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct CoreFile {
    /// Multi-threaded pipelines.
    #[schemars(range(min = 1, max = 64))]
    pub mtps: u32,
    /// Threads of a multi-threaded pipeline.
    #[schemars(range(min = 1, max = 64))]
    pub mtp_threads: u32,
    /// Single-threaded pipelines; interrupt handlers run on them.
    #[schemars(range(min = 0, max = 16))]
    pub stps: u32,
    /// Messages that a multicast queue holds, those on their way out and those that were received.
    #[schemars(range(min = 1, max = 65_536))]
    pub mcast_queue_depth: u32,
    /// Messages that a multicast queue takes in a cycle, from its threads and from the network together, and as many that it gives.
    #[schemars(range(min = 1, max = 64))]
    pub mcast_queue_ports: u32,
    /// Operations that the CCE decodes in a cycle: sends, polls, waits and accesses to MSRs.
    #[schemars(range(min = 1, max = 64))]
    pub cce_decoders: u32,
    /// Requests that the core's crossbar takes in a cycle: to the CCE, to registers, and calls of collectives.
    #[schemars(range(min = 1, max = 64))]
    pub xbar_ports: u32,
    /// Calls of collectives that a core may have under way; one more waits until an earlier one is complete.
    #[schemars(range(min = 1, max = 65_536))]
    pub outstanding_calls: u32,
    /// How accesses to configuration registers of other switches get there.
    pub register_access: RegisterAccess,
    /// Accesses to registers of other switches that a core may have under way; a thread that wants one more waits.
    #[schemars(range(min = 1, max = 4096))]
    pub register_accesses: u32,
    /// Cycles from a pipeline through the crossbar to the CCE or a register, and as many back.
    #[schemars(range(min = 1, max = 1024))]
    pub xbar_cycles: u64,
    /// Cycles from an event to the first instruction of its handler.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub interrupt_cycles: u64,
    /// 64-bit words of local memory.
    #[schemars(range(min = 1, max = 268_435_456))]
    pub local_memory_words: u64,
    /// 64-bit words of the scratchpad.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub scratchpad_words: u64,
}

impl Default for CoreFile {
    fn default() -> Self {
        Self {
            mtps: 4,
            mtp_threads: 16,
            stps: 2,
            mcast_queue_depth: 8,
            mcast_queue_ports: 1,
            cce_decoders: 1,
            xbar_ports: 1,
            outstanding_calls: 64,
            register_access: RegisterAccess::InBand,
            register_accesses: 1,
            xbar_cycles: 1,
            interrupt_cycles: 4,
            local_memory_words: 1 << 20,
            scratchpad_words: 1 << 13,
        }
    }
}

/// How an access to a configuration register of another switch gets there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RegisterAccess {
    /// As a request packet on the point-to-point channels, with a response back.
    #[default]
    InBand,
    /// A short-cut: in the cycles of a packet that meets nobody, without a channel.
    OutOfBand,
}

/// A multicast tree: register values that bring a message of one core to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct MulticastFile {
    /// Tree id, a collective id: programs name it in mcast instructions.
    #[serde(default)]
    #[schemars(range(min = 0, max = 4095))]
    pub id: u32,
    /// The core whose messages it carries.
    #[schemars(range(min = 0, max = 4_194_303))]
    pub source: u32,
    /// Who gets them: a list of end points, or "all" the others.
    #[serde(default)]
    pub receivers: ParticipantsFile,
    /// die: which of the parallel links between tiles the built-in tree takes.
    #[serde(default)]
    pub links: ParallelLinks,
    /// Configuration registers by the name of the switch, instead of the built-in tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers: Option<BTreeMap<String, SwitchRegistersFile>>,
}

/// One of two parallel links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ParallelLinks {
    /// Ports 5 and 6.
    #[default]
    First,
    /// Ports 8 and 9.
    Second,
}

/// A program and the threads that run it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ProgramFile {
    /// Name in messages. Default: "p0", "p1", …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// The cores that run it: "all", or a list of end points.
    #[serde(default)]
    pub cores: ParticipantsFile,
    /// Threads of each core that run it. With 0 the core only has its handler and its words of local memory.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 4096))]
    pub threads: u32,
    /// On which pipelines.
    #[serde(default)]
    pub pipeline: PipelineKind,
    /// First cycle.
    #[serde(default)]
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub start_cycle: u64,
    /// The text of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The file that has it, relative to the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub file: Option<String>,
}

fn one() -> u32 {
    1
}

/// A kind of pipeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PipelineKind {
    /// Multi-threaded.
    #[default]
    Mtp,
    /// Single-threaded.
    Stp,
}
