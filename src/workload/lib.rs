//! Traces of applications: what ranks compute, send, receive and do together, and their dependencies (requirements
//! X-WORK-1, X-WORK-2, X-WORK-5). This crate is independent of networks.
//!
//! ```text
//!  PREFIX.0.et, PREFIX.1.et, …  ── chakra ──┐
//!                                           ├──▶ Trace ── check ──▶ matched messages and collectives
//!  FILE.goal                    ── goal ────┘      └── schedule ──▶ times without a network, critical path
//! ```
//!
//! | file | holds |
//! |---|---|
//! | [`chakra`] | MLCommons Chakra execution traces: protobuf, a file a rank |
//! | [`goal`] | GOAL schedules, as LogGOPSim and ATLAHS read them: text, one file for all ranks |
//! | [`check`](mod@check) | checks: existing ranks, messages with two ends, collectives that all members agree on, no cycles |
//! | [`schedule`](mod@schedule) | the time of a trace whose messages and collectives take no time, and its parts |
//! | [`error`] | errors of a trace: file, rank, node |
//! | [`model`] | neural networks as tables of layers |
//! | [`train`] | a network that ranks train together, as a trace |
//!
//! # Model
//!
//! A rank has nodes. A node is *ready* when the nodes it waits for have ended (or, with `irequires`, started). A node
//! with a stream occupies it from start to end, so that the nodes of a stream run one at a time. The node that became
//! ready first goes next; of several, the one that is written first. A node without a stream runs as soon as it is
//! ready.
//!
//! | format | streams |
//! |---|---|
//! | Chakra | 0: the device computes; 1: the processor; 2: messages that are sent, collectives and remote memory, as ASTRA-sim has them; receives occupy none |
//! | GOAL | `cpu N`: a stream each, for computing and for the overhead of messages |
//!
//! Messages match by sender, receiver and tag: the first that is sent is the first that is received. A receive from any
//! sender or of any tag takes the first matching message that arrived; an arriving message goes to the matching receive
//! that was posted first. Messages of one sender and tag never overtake each other. The n-th collective of a group is
//! the same one for all its members, counted in the order in which they are written.
//!
//! **Memory.** A node takes about a hundred bytes and its name; a trace is held as a whole while it is run. Reading a
//! Chakra file also holds one message at a time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub mod chakra;
pub mod check;
pub mod error;
pub mod goal;
pub mod model;
pub mod schedule;
pub mod train;

pub use check::{MatchedTrace, check};
pub use error::Error;
pub use schedule::{Durations, Schedule, schedule};

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// MLCommons Chakra.
    Chakra,
    /// GOAL.
    Goal,
}

impl Format {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Format::Chakra => "Chakra",
            Format::Goal => "GOAL",
        }
    }
}

/// A trace: all ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// How it is written.
    pub format: Format,
    /// The ranks, by number.
    pub ranks: Vec<Rank>,
    /// Groups of ranks that do collectives. The first is that of all ranks.
    pub groups: Vec<Group>,
    /// A hash of the bytes of all files.
    pub hash: u64,
}

/// Ranks that do collectives together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name; empty for that of all ranks.
    pub name: String,
    /// Its members, in their order.
    pub ranks: Vec<u32>,
}

/// A rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Rank {
    /// The file it is written in.
    pub file: PathBuf,
    /// Its nodes, in the order in which they are written; those of Chakra by their ids.
    pub nodes: Vec<Node>,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its id; of GOAL the line.
    pub id: u64,
    /// Its name; of GOAL the label, which may be missing.
    pub name: Box<str>,
    /// What is done.
    pub kind: Kind,
    /// What it occupies.
    pub stream: Option<u16>,
    /// What it waits for.
    pub waits: Box<[Dependency]>,
}

/// What a node waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// Index of another node of the rank.
    pub node: u32,
    /// Its start is enough.
    pub start: bool,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Nothing: metadata, or a place to wait.
    Nothing,
    /// Computing.
    Compute(Compute),
    /// Remote memory is read or written.
    Memory {
        /// How much.
        bytes: u64,
        /// Written.
        store: bool,
    },
    /// A message leaves.
    Send {
        /// The receiver.
        to: u32,
        /// What it is matched by.
        tag: u32,
        /// How much.
        bytes: u64,
    },
    /// A message is waited for.
    Receive {
        /// The sender, or [`ANY`].
        from: u32,
        /// What it is matched by, or [`ANY`].
        tag: u32,
        /// The most that it may have.
        bytes: u64,
    },
    /// Something that a group does together.
    Collective(Collective),
}

/// A receive takes a message of any sender, or of any tag.
pub const ANY: u32 = u32::MAX;

/// How long something is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compute {
    /// As measured, in ps.
    pub ps: u64,
    /// Operations, for a roofline; 0 if the trace does not say.
    pub operations: u64,
    /// Bytes that they touch.
    pub bytes: u64,
    /// It is the processor that computes, not the device.
    pub on_processor: bool,
}

/// A collective, as one member sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// What is done.
    pub op: CollectiveOp,
    /// Index of the group.
    pub group: u32,
    /// Bytes: of an all-gather those of every member at the end, of a reduce-scatter and an all-to-all those of every
    /// member at the start.
    pub bytes: u64,
    /// The root, as a number within the group, where there is one.
    pub root: u32,
}

/// What a collective does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectiveOp {
    /// All members get the sum.
    AllReduce,
    /// The root gets the sum.
    Reduce,
    /// All members get the root's vector.
    Broadcast,
    /// All members wait for each other.
    Barrier,
    /// All members get the vectors of all.
    AllGather,
    /// Every member gets its part of the sum.
    ReduceScatter,
    /// Every member gets its part of every member's vector.
    AllToAll,
    /// The root gets the vectors of all members.
    Gather,
    /// Every member gets its part of the root's vector.
    Scatter,
}

impl CollectiveOp {
    /// All of them.
    pub const ALL: [CollectiveOp; 9] = [
        CollectiveOp::AllReduce,
        CollectiveOp::Reduce,
        CollectiveOp::Broadcast,
        CollectiveOp::Barrier,
        CollectiveOp::AllGather,
        CollectiveOp::ReduceScatter,
        CollectiveOp::AllToAll,
        CollectiveOp::Gather,
        CollectiveOp::Scatter,
    ];

    /// Its name, as scenarios write it.
    pub fn name(self) -> &'static str {
        match self {
            CollectiveOp::AllReduce => "allreduce",
            CollectiveOp::Reduce => "reduce",
            CollectiveOp::Broadcast => "broadcast",
            CollectiveOp::Barrier => "barrier",
            CollectiveOp::AllGather => "allgather",
            CollectiveOp::ReduceScatter => "reduce_scatter",
            CollectiveOp::AllToAll => "alltoall",
            CollectiveOp::Gather => "gather",
            CollectiveOp::Scatter => "scatter",
        }
    }
}

impl Kind {
    /// What it is, in a word.
    pub fn word(&self) -> &'static str {
        match self {
            Kind::Nothing => "metadata",
            Kind::Compute(_) => "compute",
            Kind::Memory { store: false, .. } => "load",
            Kind::Memory { store: true, .. } => "store",
            Kind::Send { .. } => "send",
            Kind::Receive { .. } => "receive",
            Kind::Collective(collective) => collective.op.name(),
        }
    }
}

impl Node {
    /// What it is called where one reads of it.
    pub fn title(&self, format: Format) -> String {
        let name = if self.name.is_empty() { String::new() } else { format!(" \"{}\"", self.name) };
        match format {
            Format::Chakra => format!("node {}{name}", self.id),
            Format::Goal => format!("line {}{name}", self.id),
        }
    }
}

/// Sums over a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Nodes by what they do.
    pub nodes: BTreeMap<&'static str, u64>,
    /// Messages.
    pub messages: u64,
    /// Bytes of messages.
    pub message_bytes: u64,
    /// Bytes of collectives, as each member has them.
    pub collective_bytes: u64,
    /// Measured computing of all ranks, in ps.
    pub compute_ps: u64,
    /// Operations of all ranks.
    pub operations: u64,
}

impl Trace {
    /// Reads a trace and checks it: a GOAL schedule, or the prefix of Chakra's files (`PREFIX.0.et` and so on), or one of them.
    /// `groups` are groups of ranks that the trace itself does not list.
    ///
    /// # Errors
    /// What is wrong, with file, rank and node.
    pub fn read(path: &Path, groups: &[Group]) -> Result<(Trace, MatchedTrace), Error> {
        let trace = match chakra::prefix(path) {
            Some(prefix) => chakra::read(&chakra::DiskFiles, &prefix, groups)?,
            None => goal::read(path)?,
        };
        Trace::checked(trace)
    }

    /// Reads Chakra's files from elsewhere and checks them.
    ///
    /// # Errors
    /// What is wrong, with file, rank and node.
    pub fn read_from(
        files: &dyn chakra::ChakraFiles,
        prefix: &Path,
        groups: &[Group],
    ) -> Result<(Trace, MatchedTrace), Error> {
        if files.numbers(prefix).is_empty() {
            return Err(Error::new(prefix, "there is no such trace"));
        }
        Trace::checked(chakra::read(files, prefix, groups)?)
    }

    /// Checks a trace.
    ///
    /// # Errors
    /// What is wrong, with file, rank and node.
    pub fn checked(trace: Trace) -> Result<(Trace, MatchedTrace), Error> {
        let matched = check(&trace)?;
        schedule::ends(&trace, &matched)?;
        Ok((trace, matched))
    }

    /// Sums over all ranks.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for node in self.ranks.iter().flat_map(|rank| &rank.nodes) {
            *totals.nodes.entry(node.kind.word()).or_default() += 1;
            match node.kind {
                Kind::Send { bytes, .. } => {
                    totals.messages += 1;
                    totals.message_bytes = totals.message_bytes.saturating_add(bytes);
                }
                Kind::Collective(Collective { bytes, .. }) => {
                    totals.collective_bytes = totals.collective_bytes.saturating_add(bytes);
                }
                Kind::Compute(compute) => {
                    totals.compute_ps = totals.compute_ps.saturating_add(compute.ps);
                    totals.operations = totals.operations.saturating_add(compute.operations);
                }
                Kind::Nothing | Kind::Memory { .. } | Kind::Receive { .. } => {}
            }
        }
        totals
    }

    /// What a node is called: file, rank and node, for an error.
    pub(crate) fn error(&self, rank: usize, node: usize, what: impl Into<String>) -> Error {
        let of = &self.ranks[rank];
        let line = (self.format == Format::Goal).then(|| of.nodes[node].id);
        let error = Error::new(&of.file, what).rank(rank as u32).node(of.nodes[node].title(self.format));
        match line {
            Some(line) => error.line(line),
            None => error,
        }
    }
}

/// The next value of a hash of bytes (FNV-1a).
pub(crate) fn hash(state: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(state, |state, &byte| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Where a hash begins.
pub(crate) const HASH: u64 = 0xcbf2_9ce4_8422_2325;

#[cfg(test)]
mod tests;
