//! The configuration after reading, checking and deriving: plain numbers, every default filled in.
//!
//! Simulations are built from it, and the result document prints it as `config`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Deref;
use std::path::PathBuf;

use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;

pub use super::file::{
    Arbiter, AutoOr, ChecksFile as Checks, CollectiveKind, Confidence, Distribution, Family, HotspotFile as Hotspot,
    LimitsFile as Limits, MeasureFile as Measure, Number, PacketFlits, RouterFile as Router,
};
pub use super::link::Link;
use super::names::{Accumulate, DType, Named, Op, Round};
use super::units;
pub use super::units::Rounding;
use watershed_fabric::routing::Algorithm;
use watershed_fabric::topology::Shape;

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
    /// What the document holds of results; left out where nothing was asked for.
    #[serde(skip_serializing_if = "super::kept::Kept::is_auto")]
    pub results: super::kept::Kept,
    /// The clock.
    pub clock: Clock,
    /// The technology table, if the scenario names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub technology: Option<String>,
    /// The shape.
    pub topology: Topology,
    /// How point-to-point packets of a plain fabric find their way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing: Option<Routing>,
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
    /// Multicast trees and programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub programs: Option<super::programs::config::Programs>,
    /// Collectives in software.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<super::hosts::config::Host>,
    /// The application that end points run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<super::workload::config::Workload>,
    /// The background traffic, in the order of the file.
    pub traffic: Vec<Traffic>,
    /// How the traffic is measured; `None`: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
    /// Defaults of the waveform.
    pub wave: Wave,
    /// What golden files hold; no part of what runs, nor of its hash.
    #[serde(skip)]
    pub golden: super::snapshot::Golden,
    /// The armed family's part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub armed: Option<super::armed::config::Armed>,
    /// The PBV family's part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pbv: Option<super::pbv::config::Pbv>,
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
    /// The length of this many cycles in ns, for people.
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

/// The routing of a plain fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Routing {
    /// The algorithm.
    pub algorithm: Algorithm,
}

impl Serialize for Routing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("algorithm", self.algorithm.name())?;
        map.end()
    }
}

/// A shape, and the names and numbers of what is in it. Cores of a die are numbered in the order of the core tiles'
/// switches; the first dimension of a grid runs fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// The shape.
    pub shape: Shape,
    /// The file it comes from.
    pub file: Option<String>,
}

impl Topology {
    /// Number of switches.
    pub fn switches(&self) -> u32 {
        self.shape.switches().map_or(u32::MAX, |count| count as u32)
    }

    /// Number of end points.
    pub fn end_points(&self) -> u32 {
        self.shape.end_points().map_or(u32::MAX, |count| count as u32)
    }

    /// Ports of a switch without its engine.
    pub fn ports(&self) -> u32 {
        self.shape.ports()
    }

    /// Name of a switch by its number.
    pub fn switch_name(&self, switch: u32) -> String {
        self.shape.switch_name(switch)
    }

    /// Number of a switch by its name.
    pub fn switch_by_name(&self, name: &str) -> Option<u32> {
        self.shape.switch_by_name(name)
    }

    /// What names of switches look like, for messages.
    pub fn switch_names(&self) -> String {
        let last = self.switches() - 1;
        match &self.shape {
            Shape::Die(die) => {
                let cores = self.end_points() - 1;
                let mut text = format!("core0 to core{cores}");
                if die.tiles > 2 {
                    let _ = write!(text, ", sw0 to sw{}", u32::from(die.tiles - 2) * u32::from(die.positions) - 1);
                }
                text
            }
            Shape::Graph(graph) if graph.switches.len() <= 8 => {
                super::names::one_of(graph.switches.iter().map(|switch| &switch.name))
            }
            _ => format!("{} to {}", self.switch_name(0), self.switch_name(last)),
        }
    }

    /// The switch and the port at which an end point sits.
    pub fn end_point(&self, end_point: u32) -> (u32, u16) {
        let place = self.shape.end_place(end_point);
        (place.switch, place.port)
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
    /// Allocators, steps and flow control of point-to-point channels.
    pub router: Router,
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
    /// Elements of scans that wait for their way down.
    #[serde(skip_serializing_if = "is_default_scan_slots")]
    pub scan_slots: u32,
    /// Results that wait; the model derives "auto" and adds it to `derived`.
    pub result_slots: AutoOr,
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_default_scan_slots(slots: &u32) -> bool {
    *slots == super::file::CengFile::default().scan_slots
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
    /// What the ranks of a workload contribute: see [`Traced`](crate::workload::config::Traced).
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

/// Point-to-point traffic.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Traffic {
    /// Its name.
    pub name: String,
    /// Who sends to whom.
    #[serde(flatten)]
    pub pattern: TrafficPattern,
    /// When.
    #[serde(flatten)]
    pub injection: Injection,
    /// Flits of a packet.
    pub packet_flits: PacketFlits,
    /// First cycle.
    pub start_cycle: u64,
    /// First cycle without.
    pub stop_cycle: Option<u64>,
}

impl Traffic {
    /// Whether it goes on until the run ends.
    pub fn is_endless(&self) -> bool {
        self.stop_cycle.is_none() && !matches!(self.pattern, TrafficPattern::Trace { .. })
    }
}

/// Who sends to whom.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "pattern", rename_all = "kebab-case")]
pub enum TrafficPattern {
    /// Every end point to every one.
    Uniform {
        /// Itself included.
        include_self: bool,
    },
    /// Row and column change places.
    Transpose,
    /// All bits inverted.
    BitComplement,
    /// Bits reversed.
    BitReverse,
    /// Bits rotated.
    Shuffle,
    /// Almost half way round.
    Tornado,
    /// One further.
    Neighbour,
    /// Some get more.
    Hotspot {
        /// Who.
        hotspots: Vec<Hotspot>,
    },
    /// From a file.
    Permutation {
        /// As the scenario has it.
        file: String,
        /// Source and destination.
        pairs: Vec<(u32, u32)>,
    },
    /// To all others in turn.
    AllToAll,
    /// Given pairs.
    Flows {
        /// The pairs.
        flows: Vec<Flow>,
    },
    /// From a file, packet by packet.
    Trace {
        /// As the scenario has it.
        file: String,
        /// Where it is.
        #[serde(skip)]
        path: PathBuf,
        /// Packets in it.
        packets: u64,
        /// Classes in it: one more than the greatest.
        classes: u16,
        /// A short name for its contents.
        hash: String,
    },
}

/// When packets are made.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "injection", rename_all = "kebab-case")]
pub enum Injection {
    /// In each cycle with the same probability.
    Bernoulli {
        /// Flits per node and cycle; flows have one each.
        #[serde(skip_serializing_if = "Option::is_none")]
        rate: Option<Rate>,
    },
    /// On and off.
    Bursty {
        /// Average flits per node and cycle.
        #[serde(skip_serializing_if = "Option::is_none")]
        rate: Option<Rate>,
        /// Off to on.
        burst_alpha: f64,
        /// On to off.
        burst_beta: f64,
    },
    /// Evenly.
    Periodic {
        /// Flits per node and cycle.
        #[serde(skip_serializing_if = "Option::is_none")]
        rate: Option<Rate>,
    },
    /// Requests and replies.
    ClosedLoop {
        /// Requests without a reply.
        window: u32,
        /// Flits of a reply.
        reply_flits: PacketFlits,
        /// From a reply to the next request.
        think_cycles: u64,
        /// From a request to its reply.
        service_cycles: u64,
    },
    /// As the trace says.
    Trace,
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
        fields.serialize_field("op", &self.op.map(Named::name))?;
        fields.serialize_field("dtype", self.dtype.name())?;
        if let Some(pair) = self.accumulate {
            fields.serialize_field("accumulate", Named::name(pair.accumulator()))?;
            fields.serialize_field("result_dtype", Named::name(self.result_dtype()))?;
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
        fields.serialize_field("start_cycle", &self.start_cycle)?;
        fields.serialize_field("delay_cycles", &Delays(&self.delays))?;
        if let Some(max) = &self.delay_random_max {
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

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_fabric::topology::{Die, Dragonfly, FatTree, HyperX, Mesh, Torus, Wiring};

    fn topology(shape: Shape) -> Topology {
        Topology { shape, file: None }
    }

    fn die(tiles: u16, positions: u16) -> Topology {
        topology(Shape::Die(Die { tiles, positions }))
    }

    fn mesh(size: &[u32], concentration: u16) -> Topology {
        topology(Shape::Mesh(Mesh { size: size.to_vec(), concentration }, Wiring::default()))
    }

    #[test]
    fn a_die_is_a_row_of_tiles() {
        let die = die(4, 4);
        let names: Vec<String> = (0..16).map(|switch| die.switch_name(switch)).collect();
        assert_eq!(names.join(" "), "core0 core1 core2 core3 sw0 sw1 sw2 sw3 sw4 sw5 sw6 sw7 core4 core5 core6 core7");
        assert_eq!(die.end_points(), 8);
        assert_eq!(die.end_point(5), (13, 7));
        assert_eq!(die.switch_names(), "core0 to core7, sw0 to sw7");
    }

    #[test]
    fn names_and_numbers_of_switches_agree() {
        let tree = FatTree { arity: 3, levels: 3, concentration: 2, wiring: Wiring::default() };
        for topology in [
            die(1, 4),
            die(2, 2),
            die(5, 3),
            mesh(&[3, 4], 2),
            mesh(&[2, 1, 3], 1),
            topology(Shape::Torus(Torus { size: vec![3, 4], concentration: 2, wiring: Wiring::default() })),
            topology(Shape::HyperX(HyperX { size: vec![3, 4], concentration: 2, wiring: Wiring::default() })),
            topology(Shape::FatTree(tree)),
            topology(Shape::Dragonfly(Dragonfly::balanced(2))),
        ] {
            let common = watershed_fabric::topology::Common {
                vcs: watershed_fabric::Vcs { set: 0, unicast: 2 },
                engine: false,
                link: watershed_fabric::topology::LinkParams { latency: 1, cycles_per_flit: 1 },
                local: watershed_fabric::topology::LinkParams { latency: 1, cycles_per_flit: 1 },
            };
            let layout = topology.shape.layout(&common);
            assert_eq!(layout.plan.fault(), None);
            assert_eq!(
                (layout.switches() as u32, layout.ends.len() as u32),
                (topology.switches(), topology.end_points())
            );
            assert_eq!(u32::from(layout.external_ports), topology.ports());
            for switch in 0..topology.switches() {
                let name = topology.switch_name(switch);
                assert_eq!(topology.switch_by_name(&name), Some(switch), "{name}");
                assert_eq!(layout.plan.nodes[switch as usize].name, name);
            }
            for end_point in 0..topology.end_points() {
                let place = layout.ends[end_point as usize];
                assert_eq!(topology.end_point(end_point), (place.switch, place.port));
            }
            for stranger in
                ["", "core", "core99", "sw99", "s", "s1", "s0_0_0_0", "core00", "core+1", "s9_9", "t9_9", "g0_99"]
            {
                assert_eq!(topology.switch_by_name(stranger), None, "{stranger}");
            }
        }
    }

    #[test]
    fn a_mesh_has_ports_where_it_has_neighbours() {
        let mesh = mesh(&[4, 1, 2], 3);
        assert_eq!(mesh.ports(), 7);
        assert_eq!(mesh.end_points(), 24);
        assert_eq!(mesh.end_point(4), (1, 5));
        assert_eq!(mesh.switch_name(5), "s1_0_1");
    }
}
