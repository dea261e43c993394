//! Which routing algorithms there are, and on which topology.

use super::maps;
use crate::topology::Shape;

/// A routing algorithm; what each means on each topology is in [`relation`](super::relation).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// One shortest way, dimension by dimension.
    DimensionOrder,
    /// A shortest way, drawn at random.
    MinimalRandom,
    /// Over a switch (or group) drawn at random.
    Valiant,
    /// By the credits of the switch's outputs.
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

    /// The algorithms a topology has; the first is the default.
    pub fn of(shape: &Shape) -> &'static [Algorithm] {
        use Algorithm::{Adaptive, DimensionOrder, MinimalRandom, Valiant};
        match shape {
            Shape::Die(_) | Shape::Nodes(_) => &[DimensionOrder],
            Shape::Tree(_) => &[MinimalRandom],
            Shape::Mesh(mesh, _)
                if mesh.size.len() > maps::MAX_DIMENSIONS
                    || mesh.size.iter().any(|&side| side > u32::from(u16::MAX)) =>
            {
                &[DimensionOrder]
            }
            Shape::Mesh(..) | Shape::Torus(_) | Shape::HyperX(_) => &[DimensionOrder, MinimalRandom, Valiant, Adaptive],
            Shape::Dragonfly(_) => &[MinimalRandom, Valiant, Adaptive],
            // A fat tree, and whatever is routed over its shortest paths.
            _ => &[MinimalRandom, Adaptive],
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
