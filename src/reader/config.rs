//! The configuration after reading, checking and deriving: plain numbers, every default filled in.
//!
//! Simulations are built from it, and the result document prints it as `config`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value as Json;

pub use super::collective::{Collective, Data, Participants, Start, SwitchRegisters, Tree};
pub use super::file::{
    Arbiter, Auto, ChecksFile as Checks, CollectiveKind, Confidence, Distribution, Family, HotspotFile as Hotspot,
    LimitsFile as Limits, MeasureFile as Measure, Number, PacketFlits, RouterFile as Router, SwitchFile as Switch,
    WaveFile as Wave,
};
pub use super::link::Link;
pub use super::topology::Topology;
use super::units;
pub use super::units::Rounding;
use watershed_fabric::routing::Algorithm;

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
    #[serde(skip_serializing_if = "super::result_detail::ResultDetail::is_auto")]
    pub results: super::result_detail::ResultDetail,
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
    /// The switches; of what is "auto" in the file, the model derives the depths of buffers and adds them to `derived`.
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

impl Scenario {
    /// Cycle in which the first of PIUMA's collectives starts.
    pub fn first_start(&self) -> u64 {
        self.collectives.iter().map(|collective| collective.start.cycle).min().unwrap_or(0)
    }
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
