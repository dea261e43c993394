//! A collective of switches with engines, who takes part in it and with what, as a run and its document have it.

use std::ops::Deref;
use std::path::PathBuf;

use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Serialize, Serializer};

use super::file::{CollectiveKind, Distribution, Number};
use super::names::{Accumulate, DType, NamedValues, Op, Round};

/// A collective.
#[derive(Debug, Clone, PartialEq)]
pub struct Collective {
    /// Its name.
    pub name: String,
    /// What it does.
    pub kind: CollectiveKind,
    /// Which register set it uses.
    pub id: u32,
    /// Operation; a broadcast has none, a barrier has [`Op::Barrier`].
    pub op: Option<Op>,
    /// Type of an element.
    pub dtype: DType,
    /// Sums are made in a wider type.
    pub accumulate: Option<Accumulate>,
    /// Results stay in the wider type.
    pub result_stays_wide: bool,
    /// Rounding.
    pub round: Round,
    /// Elements of the vector; 0 for a barrier.
    pub elements: u64,
    /// Who takes part.
    pub participants: Participants,
    /// Where its tree comes from.
    pub tree: Tree,
    /// Name of the root of a built-in tree: that of a switch, or "auto".
    pub root: Option<String>,
    /// scan: a participant's own value is among those that are reduced for it.
    pub inclusive: bool,
    /// Programs call it.
    pub called: bool,
    /// When the participants start.
    pub start: Start,
    /// broadcast: index into `participants` of the one that has the data.
    pub source: u32,
    /// reduce: the end point that gets the result, if the scenario names one. It need not take part.
    pub receiver: Option<u32>,
    /// Trees that each reduce a segment of the vector.
    pub segments: u32,
    /// The plane of the first of them.
    pub plane: u32,
    /// What the participants contribute.
    pub data: Data,
}

impl Collective {
    /// Collective ids it uses.
    pub fn ids(&self) -> std::ops::Range<u32> {
        self.id..self.id + self.segments
    }

    /// Type of the lanes in the network: of an element, or of the accumulator.
    pub fn network_dtype(&self) -> DType {
        self.accumulate.map_or(self.dtype, Accumulate::accumulator)
    }

    /// Type of an element of a result.
    pub fn result_dtype(&self) -> DType {
        if self.result_stays_wide { self.network_dtype() } else { self.dtype }
    }

    /// How many participants contribute data: all, one of a broadcast, none of a barrier.
    pub fn rows(&self) -> usize {
        match self.kind {
            _ if self.called => 0,
            CollectiveKind::Allreduce | CollectiveKind::Reduce | CollectiveKind::Scan => self.participants.len(),
            CollectiveKind::Broadcast => 1,
            CollectiveKind::Barrier => 0,
        }
    }
}

/// When participants start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Cycle in which those start that are not late.
    pub cycle: u64,
    /// By how much each participant is late.
    pub delays: Vec<u64>,
    /// Largest random delay, if the delays were drawn.
    pub random_max: Option<u64>,
}

/// End points that take part, in the order of the scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participants {
    /// Their numbers.
    pub list: Vec<u32>,
    /// The scenario says "all".
    pub all: bool,
}

impl Deref for Participants {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.list
    }
}

/// Where the tree of a collective comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tree {
    /// The built-in tree, with a root of its own choice.
    Auto,
    /// The built-in tree, with this switch as root.
    Root(u32),
    /// Registers from the scenario, in the order of the switches' numbers.
    Registers(Vec<SwitchRegisters>),
}

/// Registers of one switch. Each entry is an input port and its output ports, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchRegisters {
    /// Number of the switch.
    pub switch: u32,
    /// Its name.
    pub name: String,
    /// Request registers.
    pub request: Vec<(u16, Vec<u16>)>,
    /// Response registers.
    pub response: Vec<(u16, Vec<u16>)>,
}

/// What the participants contribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Nothing: a barrier.
    None,
    /// Seeded random data.
    Random(Distribution),
    /// What the ranks of a workload contribute: see [`TracedWorkload`](crate::workload::config::TracedWorkload).
    Called,
    /// Rows of numbers in the scenario.
    Values(Vec<Vec<Number>>),
    /// A file: as named, and where it is.
    File {
        /// As the scenario has it.
        name: String,
        /// Where it is.
        path: PathBuf,
    },
}

impl Serialize for Participants {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.all { serializer.serialize_str("all") } else { self.list.serialize(serializer) }
    }
}

/// Register values in patent notation.
struct Notation<'a>(&'a [(u16, Vec<u16>)]);

impl Serialize for Notation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(input, outputs)| (format!("I{input}"), outputs)))
    }
}

impl Serialize for SwitchRegisters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("request", &Notation(&self.request))?;
        map.serialize_entry("response", &Notation(&self.response))?;
        map.end()
    }
}

struct RegisterMap<'a>(&'a [SwitchRegisters]);

impl Serialize for RegisterMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|registers| (&registers.name, registers)))
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::None => {}
            Self::Called => map.serialize_entry("called", &true)?,
            Self::Random(distribution) => map.serialize_entry("random", distribution)?,
            Self::Values(values) => map.serialize_entry("values", values)?,
            Self::File { name, .. } => map.serialize_entry("file", name)?,
        }
        map.end()
    }
}

/// A list that would only repeat one number is printed as that number.
struct Delays<'a>(&'a [u64]);

impl Serialize for Delays<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            [first, rest @ ..] if rest.iter().all(|delay| delay == first) => serializer.serialize_u64(*first),
            list => list.serialize(serializer),
        }
    }
}

impl Serialize for Collective {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Collective", 20)?;
        fields.serialize_field("name", &self.name)?;
        fields.serialize_field("kind", &self.kind)?;
        fields.serialize_field("id", &self.id)?;
        fields.serialize_field("op", &self.op.map(NamedValues::name))?;
        fields.serialize_field("dtype", self.dtype.name())?;
        if let Some(pair) = self.accumulate {
            fields.serialize_field("accumulate", NamedValues::name(pair.accumulator()))?;
            fields.serialize_field("result_dtype", NamedValues::name(self.result_dtype()))?;
        }
        fields.serialize_field("round", self.round.name())?;
        if self.called {
            fields.serialize_field("called", &true)?;
        } else {
            fields.serialize_field("elements", &self.elements)?;
        }
        fields.serialize_field("participants", &self.participants)?;
        match &self.tree {
            Tree::Auto | Tree::Root(_) => fields.serialize_field("root", &self.root)?,
            Tree::Registers(registers) => fields.serialize_field("registers", &RegisterMap(registers))?,
        }
        fields.serialize_field("start_cycle", &self.start.cycle)?;
        fields.serialize_field("delay_cycles", &Delays(&self.start.delays))?;
        if let Some(max) = &self.start.random_max {
            fields.serialize_field("delay_random_max", max)?;
        }
        if self.kind == CollectiveKind::Broadcast {
            fields.serialize_field("source", &self.source)?;
        }
        if self.kind == CollectiveKind::Scan {
            fields.serialize_field("inclusive", &self.inclusive)?;
        }
        if let Some(receiver) = &self.receiver {
            fields.serialize_field("receiver", receiver)?;
        }
        if self.segments > 1 {
            fields.serialize_field("segments", &self.segments)?;
        }
        if self.plane > 0 {
            fields.serialize_field("plane", &self.plane)?;
        }
        fields.serialize_field("data", &self.data)?;
        fields.end()
    }
}
