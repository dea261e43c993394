//! A workload after checking: the trace, where its ranks are, and who computes its collectives.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use watershed_arith::Op;
use watershed_workload::{Collective, CollectiveOp, Kind, MatchedTrace, Trace};

use super::file::Engine;
use crate::names::{DType, NamedValues};

/// Who computes each kind of collective that a trace has.
pub type Engines = BTreeMap<CollectiveOp, Engine>;

/// A trace that was read, and the collectives of it that engines in the network compute.
#[derive(Debug, Clone, PartialEq)]
pub struct TracedWorkload {
    /// The trace.
    pub trace: Trace,
    /// Its messages and collectives.
    pub matched: MatchedTrace,
    /// Who computes each kind of collective that it has.
    pub engines: Engines,
    /// Of the collectives that the network computes: the job, by kind, group, root and words of a frame.
    pub network: BTreeMap<NetworkJobKey, NetworkJob>,
    /// Of each collective that engines compute in frames: its first round, and how many.
    pub rounds: BTreeMap<u32, (u32, u32)>,
}

/// What collectives of one job have in common: kind, group, root, and words of a frame where that is the job's; else 0.
pub type NetworkJobKey = (CollectiveOp, u32, u32, u64);

/// The job of collectives that an engine in the network computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkJob {
    /// Whose it is.
    pub engine: Engine,
    /// Its number: among the scenario's collectives, reductions, or, of packet engines, the first context's.
    pub place: usize,
    /// Rounds of all of its collectives; 0 where vectors need none.
    pub rounds: u32,
    /// Jobs that the rounds are spread over.
    pub spread: u32,
    /// The collectives, in the order in which they are called.
    pub instances: Vec<u32>,
}

impl TracedWorkload {
    /// The job of a collective that the network computes, and its rounds there.
    pub fn job(&self, collective: u32) -> Option<(&NetworkJob, (u32, u32))> {
        let rounds = self.rounds.get(&collective).copied().unwrap_or((0, 0));
        let job = self.network.values().find(|job| job.instances.binary_search(&collective).is_ok())?;
        Some((job, rounds))
    }

    /// The job of an engine with this number.
    pub fn job_at(&self, engine: Engine, place: usize) -> Option<(&NetworkJobKey, &NetworkJob)> {
        self.network.iter().find(|(_, job)| job.engine == engine && job.place == place)
    }
}

/// A workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Workload {
    /// The trace, as it was named.
    pub trace: String,
    /// How it is written.
    pub format: String,
    /// A hash of the bytes of its files: they can change under their names.
    pub hash: String,
    /// Its nodes.
    pub nodes: u64,
    /// The end point of each rank.
    pub ranks: Vec<u32>,
    /// Computing takes this many times as long.
    pub compute_scale: f64,
    /// Cycles of software at both ends of each message.
    pub overhead_cycles: u64,
    /// Words of a packet.
    pub packet_words: u64,
    /// Rounds that engines of frames have under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds_under_way: Option<u32>,
    /// Bytes of an element in the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element_bytes: Option<u64>,
    /// Operation of reductions.
    #[serde(serialize_with = "named")]
    pub op: Op,
    /// Type of an element.
    #[serde(serialize_with = "named")]
    pub dtype: DType,
    /// Peak rate of a device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_tflops: Option<f64>,
    /// The roofline's bandwidth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_bandwidth_gbps: Option<f64>,
    /// Bandwidth of remote memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_bandwidth_gbps: Option<f64>,
    /// Latency of remote memory.
    pub remote_latency_ns: f64,
    /// Who computes each kind of collective that the trace has.
    pub engines: BTreeMap<&'static str, &'static str>,
    /// Of each collective of the scenario: the group of the trace whose members call it. They call those of a group in one order.
    #[serde(skip)]
    pub orders: Vec<u32>,
}

fn named<T: NamedValues, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(NamedValues::name(*value))
}

/// Words of the vector of a collective: whole elements in whole words; of an all-to-all as many for every member.
pub fn words(dtype: DType, element_bytes: Option<u64>, collective: Collective, members: u64) -> u64 {
    let bytes = element_bytes.unwrap_or(u64::from(dtype.bits() / 8)).max(1);
    let words = collective.bytes.div_ceil(bytes).div_ceil(u64::from(dtype.lanes()));
    match collective.op {
        CollectiveOp::Barrier => 0,
        CollectiveOp::AllToAll => words.next_multiple_of(members),
        _ => words,
    }
}

impl Workload {
    /// Words of the vector of a collective.
    pub fn words(&self, collective: Collective, members: u64) -> u64 {
        words(self.dtype, self.element_bytes, collective, members)
    }

    /// Cycles that a node takes by itself, at this many hertz.
    pub fn cycles(&self, kind: &Kind, hertz: u64) -> u64 {
        let cycles = |seconds: f64| (seconds * hertz as f64).round() as u64;
        match kind {
            Kind::Compute(compute) => {
                let roofline = self.peak_tflops.filter(|_| compute.operations > 0 && !compute.on_processor);
                if let Some(peak) = roofline {
                    let computing = compute.operations as f64 / (peak * 1e12);
                    let moving =
                        self.device_bandwidth_gbps.map_or(0.0, |gbps| compute.bytes as f64 * 8.0 / (gbps * 1e9));
                    return cycles(computing.max(moving) * self.compute_scale);
                }
                if (self.compute_scale - 1.0).abs() < f64::EPSILON {
                    // Exactly, however long it is.
                    let product = u128::from(compute.ps) * u128::from(hertz);
                    return ((product + 500_000_000_000) / 1_000_000_000_000) as u64;
                }
                cycles(compute.ps as f64 * 1e-12 * self.compute_scale)
            }
            Kind::Memory { bytes, .. } => {
                let moving = self.remote_bandwidth_gbps.map_or(0.0, |gbps| *bytes as f64 * 8.0 / (gbps * 1e9));
                cycles(self.remote_latency_ns * 1e-9 + moving)
            }
            Kind::Nothing | Kind::Send { .. } | Kind::Receive { .. } | Kind::Collective(_) => 0,
        }
    }
}
