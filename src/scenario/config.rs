//! The configuration after reading, checking and deriving: plain numbers, every default filled in.
//!
//! This is what a simulation is built from and what the result document prints as `config`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Deref;
use std::path::PathBuf;

use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;

pub use super::file::{
    Arbiter, AutoOr, ChecksFile as Checks, CollectiveKind, Distribution, Family, LimitsFile as Limits, Number,
};
use super::names::{DType, Named, Op, Round};
use super::units;
pub use super::units::Rounding;
use crate::fabric::topology::GenericTree;

/// A checked scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What it shows.
    pub about: String,
    /// The kind of network.
    pub family: Family,
    /// Seed of everything random.
    pub seed: u64,
    /// The clock.
    pub clock: Clock,
    /// The shape.
    pub topology: Topology,
    /// The switches.
    pub switch: Switch,
    /// The links.
    pub link: Link,
    /// The memories.
    pub memory: Memory,
    /// When a run is given up.
    pub limits: Limits,
    /// What is checked.
    pub checks: Checks,
    /// The collectives, in the order of the file.
    pub collectives: Vec<Collective>,
    /// The background traffic, in the order of the file.
    pub traffic: Vec<Traffic>,
    /// Defaults of the waveform.
    pub wave: Wave,
    /// The armed family's part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub armed: Option<super::armed::config::Armed>,
    /// Values that follow from the others; the model adds its own. They cannot be set.
    pub derived: BTreeMap<String, Json>,
    /// Times that were not whole numbers of cycles.
    #[serde(skip)]
    pub roundings: Vec<Rounding>,
}

/// The clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Clock {
    /// Frequency in MHz, as given.
    pub frequency_mhz: f64,
    /// The same in hertz, exactly.
    pub frequency_hz: u64,
}

impl Clock {
    /// The length of so many cycles in ns, for people.
    pub fn nanoseconds(&self, cycles: u64) -> f64 {
        units::nanoseconds(cycles, self.frequency_hz)
    }
}

/// A latency: whole cycles, and as long in ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Latency {
    /// What is simulated.
    pub cycles: u64,
    /// The same in ns.
    pub ns: f64,
}

/// A shape, and the names and numbers of what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Topology {
    /// A row of tiles. Cores are numbered in the order of the core tiles' switches.
    Die {
        /// Tiles in the row.
        tiles: u32,
        /// Switches a tile.
        positions: u32,
    },
    /// A mesh. Switches are numbered with the first dimension running fastest.
    Mesh {
        /// Switches along each dimension.
        size: Vec<u32>,
        /// End points a switch.
        concentration: u32,
    },
    /// A tree. Switches are numbered level by level; end points at the top come last.
    Tree {
        /// Children of a switch of each level; the last number counts end points.
        branching: Vec<u32>,
        /// End points at the top switch.
        roots: u32,
    },
}

/// A tree's shape as the fabric has it.
fn tree(branching: &[u32], roots: u32) -> GenericTree {
    GenericTree { branching: branching.iter().map(|&b| b as u16).collect(), roots: roots as u16 }
}

impl Topology {
    /// Number of switches.
    pub fn switches(&self) -> u32 {
        match self {
            Self::Die { tiles, positions } => tiles * positions,
            Self::Mesh { size, .. } => size.iter().product(),
            Self::Tree { branching, roots } => tree(branching, *roots).switches() as u32,
        }
    }

    /// Number of end points.
    pub fn end_points(&self) -> u32 {
        match self {
            Self::Die { tiles, positions } => (*tiles).min(2) * positions,
            Self::Mesh { concentration, .. } => self.switches() * concentration,
            Self::Tree { branching, roots } => tree(branching, *roots).end_points() as u32,
        }
    }

    /// Ports of a switch without its engine.
    pub fn ports(&self) -> u32 {
        match self {
            Self::Die { .. } => 10,
            Self::Mesh { size, concentration } => {
                2 * size.iter().filter(|side| **side > 1).count() as u32 + concentration
            }
            Self::Tree { branching, roots } => tree(branching, *roots).ports(),
        }
    }

    /// Name of a switch by its number. Die: `core0` … `sw0` … along the row; mesh: `s<x>_<y>`.
    pub fn switch_name(&self, switch: u32) -> String {
        match self {
            Self::Die { tiles, positions } => {
                let (tile, position) = (switch / positions, switch % positions);
                if tile == 0 {
                    format!("core{position}")
                } else if tile == tiles - 1 {
                    format!("core{}", positions + position)
                } else {
                    format!("sw{}", (tile - 1) * positions + position)
                }
            }
            Self::Mesh { size, .. } => {
                let mut rest = switch;
                let mut name = String::from("s");
                for (dimension, side) in size.iter().enumerate() {
                    if dimension > 0 {
                        name.push('_');
                    }
                    name.push_str(&(rest % side).to_string());
                    rest /= side;
                }
                name
            }
            Self::Tree { branching, roots } => tree(branching, *roots).name(switch),
        }
    }

    /// Number of a switch by its name.
    pub fn switch_by_name(&self, name: &str) -> Option<u32> {
        let number = |text: &str| -> Option<u32> {
            let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
            plain.then(|| text.parse().ok()).flatten()
        };
        match self {
            Self::Die { tiles, positions } => {
                if let Some(core) = name.strip_prefix("core") {
                    let core = number(core)?;
                    return match core / positions {
                        0 => Some(core),
                        1 if *tiles > 1 => Some((tiles - 1) * positions + core % positions),
                        _ => None,
                    };
                }
                let peripheral = number(name.strip_prefix("sw")?)?;
                let switch = peripheral.checked_add(*positions)?;
                (*tiles > 2 && switch < (tiles - 1) * positions).then_some(switch)
            }
            Self::Mesh { size, .. } => {
                let mut switch = 0;
                let mut stride = 1;
                let mut parts = name.strip_prefix('s')?.split('_');
                for side in size {
                    let at = number(parts.next()?)?;
                    if at >= *side {
                        return None;
                    }
                    switch += at * stride;
                    stride *= side;
                }
                parts.next().is_none().then_some(switch)
            }
            Self::Tree { branching, .. } => {
                if name == "top" {
                    return Some(0);
                }
                let (mut first, mut at, mut width) = (0, 0, 1);
                let mut levels = branching[..branching.len() - 1].iter();
                for part in name.strip_prefix('s')?.split('_') {
                    let (step, below) = (number(part)?, *levels.next()?);
                    if step >= below {
                        return None;
                    }
                    first += width;
                    width *= below;
                    at = at * below + step;
                }
                Some(first + at)
            }
        }
    }

    /// What names of switches look like, for messages.
    pub fn switch_names(&self) -> String {
        let last = self.switches() - 1;
        match self {
            Self::Die { tiles, positions } => {
                let cores = self.end_points() - 1;
                let mut text = format!("core0 to core{cores}");
                if *tiles > 2 {
                    let _ = write!(text, ", sw0 to sw{}", (tiles - 2) * positions - 1);
                }
                text
            }
            Self::Mesh { .. } => format!("{} to {}", self.switch_name(0), self.switch_name(last)),
            Self::Tree { .. } if last == 0 => "top".into(),
            Self::Tree { .. } => format!("top, s0 to {}", self.switch_name(last)),
        }
    }

    /// The switch and the port at which an end point sits.
    pub fn end_point(&self, end_point: u32) -> (u32, u16) {
        match self {
            Self::Die { tiles, positions } => {
                let switch =
                    if end_point < *positions { end_point } else { (tiles - 1) * positions + (end_point - positions) };
                (switch, 7)
            }
            Self::Mesh { concentration, .. } => {
                let first = self.ports() - concentration;
                (end_point / concentration, (first + end_point % concentration) as u16)
            }
            Self::Tree { branching, roots } => {
                let place = tree(branching, *roots).end_point(u64::from(end_point));
                (place.switch, place.port)
            }
        }
    }
}

/// A switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Switch {
    /// Clock stages from input buffer to link.
    pub pipeline_stages: u32,
    /// Arbitration policy.
    pub arbiter: Arbiter,
    /// Register sets.
    pub collective_ids: u32,
    /// Point-to-point channels.
    pub point_to_point_vcs: u32,
    /// Buffer of a point-to-point channel.
    pub point_to_point_buffer_flits: u32,
    /// Buffer of a collective channel; the model derives "auto" for each kind of link and adds it to `derived`.
    pub collective_buffer_flits: AutoOr,
    /// The engine.
    pub ceng: Ceng,
}

/// A collective engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ceng {
    /// Clock stages of a two-input unit.
    pub stages: u32,
    /// Ports of the reduction tree.
    pub radix: u32,
    /// Operands that wait, a port.
    pub operand_slots: u32,
    /// Results that wait; the model derives "auto" and adds it to `derived`.
    pub result_slots: AutoOr,
}

/// A link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Link {
    /// Between switches.
    pub latency: Latency,
    /// Between switch and end point.
    pub local_latency: Latency,
    /// Payload bits of a flit.
    pub flit_bits: u32,
    /// Cycles a flit occupies the link.
    pub cycles_per_flit: u32,
}

/// The memory of an end point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Memory {
    /// Bandwidth in bits per second, exactly; `None` is unlimited.
    #[serde(serialize_with = "unlimited")]
    pub bandwidth_bps: Option<u64>,
    /// Time to read.
    pub read_latency: Latency,
    /// Time to write.
    pub write_latency: Latency,
}

// The signature is serde's.
#[allow(clippy::ref_option)]
fn unlimited<S: Serializer>(bandwidth: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match bandwidth {
        Some(rate) => serializer.serialize_u64(*rate),
        None => serializer.serialize_str("unlimited"),
    }
}

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
    /// Cycle in which the participants start.
    pub start_cycle: u64,
    /// By how much each participant is late.
    pub delays: Vec<u64>,
    /// Largest random delay, if the delays were drawn.
    pub delay_random_max: Option<u64>,
    /// broadcast: index into `participants` of the one that has the data.
    pub source: u32,
    /// reduce: the end point that gets the result, if the scenario names one. It need not take part.
    pub receiver: Option<u32>,
    /// What the participants contribute.
    pub data: Data,
}

impl Collective {
    /// How many participants contribute data: all, one of a broadcast, none of a barrier.
    pub fn rows(&self) -> usize {
        match self.kind {
            CollectiveKind::Allreduce | CollectiveKind::Reduce => self.participants.len(),
            CollectiveKind::Broadcast => 1,
            CollectiveKind::Barrier => 0,
        }
    }
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

/// Background traffic.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Traffic {
    /// Its name.
    pub name: String,
    /// Who sends to whom, and how much.
    #[serde(flatten)]
    pub pattern: TrafficPattern,
    /// Flits of a packet.
    pub packet_flits: u32,
    /// First cycle.
    pub start_cycle: u64,
    /// First cycle without.
    pub stop_cycle: Option<u64>,
}

/// Who sends to whom.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "pattern", rename_all = "kebab-case")]
pub enum TrafficPattern {
    /// Every end point to every other.
    Uniform {
        /// Flits per node and cycle.
        rate: Rate,
    },
    /// Given pairs.
    Flows {
        /// The pairs.
        flows: Vec<Flow>,
    },
}

/// One pair.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flow {
    /// Where packets enter.
    pub from: SwitchPort,
    /// Where they leave.
    pub to: SwitchPort,
    /// Flits per cycle.
    pub rate: Rate,
}

/// A port of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchPort {
    /// Number of the switch.
    pub switch: u32,
    /// The port.
    pub port: u16,
    /// As the scenario names it.
    pub name: String,
}

impl Serialize for SwitchPort {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

/// A rate from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Rate(pub f64);

impl Rate {
    /// The rate in units of 2^-32, rounded down: exact integer arithmetic from here on.
    pub fn scaled(self) -> u64 {
        (self.0 * 4_294_967_296.0) as u64
    }
}

/// Defaults of the waveform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wave {
    /// Globs.
    pub signals: Vec<String>,
    /// Levels of hierarchy; `None` is all.
    pub depth: Option<u32>,
    /// First cycle.
    pub from_cycle: u64,
    /// Last cycle; `None` is the end.
    pub to_cycle: Option<u64>,
    /// The clock as well.
    pub clock: bool,
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
        let mut fields = serializer.serialize_struct("Collective", 16)?;
        fields.serialize_field("name", &self.name)?;
        fields.serialize_field("kind", &self.kind)?;
        fields.serialize_field("id", &self.id)?;
        fields.serialize_field("op", &self.op.map(Named::name))?;
        fields.serialize_field("dtype", self.dtype.name())?;
        fields.serialize_field("round", self.round.name())?;
        fields.serialize_field("elements", &self.elements)?;
        fields.serialize_field("participants", &self.participants)?;
        match &self.tree {
            Tree::Auto | Tree::Root(_) => fields.serialize_field("root", &self.root)?,
            Tree::Registers(registers) => fields.serialize_field("registers", &RegisterMap(registers))?,
        }
        fields.serialize_field("start_cycle", &self.start_cycle)?;
        fields.serialize_field("delay_cycles", &Delays(&self.delays))?;
        if let Some(max) = &self.delay_random_max {
            fields.serialize_field("delay_random_max", max)?;
        }
        if self.kind == CollectiveKind::Broadcast {
            fields.serialize_field("source", &self.source)?;
        }
        if let Some(receiver) = &self.receiver {
            fields.serialize_field("receiver", receiver)?;
        }
        fields.serialize_field("data", &self.data)?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_die_is_a_row_of_tiles() {
        let die = Topology::Die { tiles: 4, positions: 4 };
        let names: Vec<String> = (0..16).map(|switch| die.switch_name(switch)).collect();
        assert_eq!(names.join(" "), "core0 core1 core2 core3 sw0 sw1 sw2 sw3 sw4 sw5 sw6 sw7 core4 core5 core6 core7");
        assert_eq!(die.end_points(), 8);
        assert_eq!(die.end_point(5), (13, 7));
        assert_eq!(die.switch_names(), "core0 to core7, sw0 to sw7");
    }

    #[test]
    fn names_and_numbers_of_switches_agree() {
        for topology in [
            Topology::Die { tiles: 1, positions: 4 },
            Topology::Die { tiles: 2, positions: 2 },
            Topology::Die { tiles: 5, positions: 3 },
            Topology::Mesh { size: vec![3, 4], concentration: 2 },
            Topology::Mesh { size: vec![2, 1, 3], concentration: 1 },
            Topology::Tree { branching: vec![4, 4], roots: 1 },
            Topology::Tree { branching: vec![2, 3, 2, 5], roots: 2 },
            Topology::Tree { branching: vec![7], roots: 0 },
        ] {
            for switch in 0..topology.switches() {
                let name = topology.switch_name(switch);
                assert_eq!(topology.switch_by_name(&name), Some(switch), "{name}");
            }
            for end_point in 0..topology.end_points() {
                assert!(topology.end_point(end_point).0 < topology.switches());
            }
            let names: Vec<String> = (0..topology.switches()).map(|switch| topology.switch_name(switch)).collect();
            for stranger in
                ["", "core", "core99", "sw99", "s", "s1", "s0_0_0_0", "core00", "core+1", "s9_9", "s0_", "tops"]
            {
                let known = names.iter().position(|name| name == stranger).map(|at| at as u32);
                assert_eq!(topology.switch_by_name(stranger), known, "{stranger}");
            }
        }
    }

    #[test]
    fn a_mesh_has_ports_where_it_has_neighbours() {
        let mesh = Topology::Mesh { size: vec![4, 1, 2], concentration: 3 };
        assert_eq!(mesh.ports(), 7);
        assert_eq!(mesh.end_points(), 24);
        assert_eq!(mesh.end_point(4), (1, 5));
        assert_eq!(mesh.switch_name(5), "s1_0_1");
    }
}
