//! A workload after checking: the trace, where its ranks are, and who computes its collectives.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use watershed_arith::Op;
use watershed_workload::{Kind, Matched, Trace, What};

use crate::names::{DType, Named};

/// A trace that was read, and the collectives of it that engines in the network compute.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// The trace.
    pub trace: Trace,
    /// Its messages and collectives.
    pub matched: Matched,
    /// Of the collectives that the network computes: the index of the scenario's collective, by kind, group and root.
    pub network: BTreeMap<(What, u32, u32), usize>,
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
}

fn named<T: Named, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(Named::name(*value))
}

impl Workload {
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
