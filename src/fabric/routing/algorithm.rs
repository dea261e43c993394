//! Which routing algorithms there are; [`Topology::algorithms`](crate::topology::Topology::algorithms) says on which topology, and
//! [`relation`](super::relation) what each means there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Routing algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Dimension by dimension: die, mesh, torus (2 channels), hyperx.
    DimensionOrder,
    /// A random shortest way: mesh (2 channels), torus (4), hyperx (1 a dimension), fat-tree, dragonfly (2), file.
    MinimalRandom,
    /// Over a random switch or group: mesh and hyperx (2 channels), torus (4), dragonfly (3).
    Valiant,
    /// By credits: any shortest way with an escape channel on mesh and hyperx (2 channels) and torus (3), the way up of
    /// a fat-tree, shortest or over a random group on a dragonfly (3), any shortest way of a file.
    Adaptive,
}

impl Algorithm {
    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DimensionOrder => "dimension-order",
            Self::MinimalRandom => "minimal-random",
            Self::Valiant => "valiant",
            Self::Adaptive => "adaptive",
        }
    }
}

/// Why a topology cannot be routed as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unroutable {
    /// The topology has no such routing.
    #[error("there is no {} routing for the topology \"{kind}\"", algorithm.name())]
    NoSuchRouting {
        /// What was asked for.
        algorithm: Algorithm,
        /// Kind of the topology.
        kind: &'static str,
        /// What there is.
        others: Vec<Algorithm>,
    },
    /// There are too few channels for the classes it needs.
    #[error("{} routing on the topology \"{kind}\" needs {needed} point-to-point channels, there {} {channels}", algorithm.name(), if *channels == 1 { "is" } else { "are" })]
    Channels {
        /// What was asked for.
        algorithm: Algorithm,
        /// Kind of the topology.
        kind: &'static str,
        /// Channels it needs.
        needed: u8,
        /// Channels there are.
        channels: u8,
    },
}
