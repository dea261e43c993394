//! Point-to-point routes between switches, and the proof that they cannot deadlock (requirement K-PIPE-1).
//!
//! | file | what |
//! |---|---|
//! | this | which algorithms there are, and the tables a switch looks up |
//! | [`relation`] | the routing relation: outputs and channels by place, destination and random draw |
//! | [`proof`] | reachability and freedom of deadlock, from the relation itself |

mod maps;
pub mod proof;
pub mod relation;
#[cfg(test)]
mod tests;

pub use maps::Stand;
pub use proof::{Flaw, Proof, Relation, prove, prove_within};
pub use relation::{Choice, Router, Use, entropy};

use super::tables::{At, Route, Tables};
use super::topology::{Die, EndPlace, GenericTree, Layout, Mesh, Neighbours, Nodes, Shape, die_port as port};
use super::{Flit, PortSet};
use std::sync::Arc;
use watershed_state::state;

/// A routing algorithm; what each means on each topology is in [`relation`].
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

/// A routing function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Routing {
    /// Position within the tile first, then the row; any channel.
    Die(Die),
    /// Coordinate by coordinate, in each node to the socket and the switch that lead on; a class of channels for each link
    /// that leaves a die.
    Nodes(Arc<Nodes>),
    /// Dimension by dimension, by arithmetic; any channel.
    Mesh(Mesh),
    /// Up to the lowest common switch, then down; any channel.
    Tree(GenericTree),
    /// Any routing of any topology, by tables.
    Fabric(Arc<Router>),
}

impl Routing {
    /// The output port of the next step of a shortest way from switch `at` to switch `to`; `None` if they are the same.
    #[inline]
    pub fn hop(&self, at: u32, to: u32) -> Option<u16> {
        match self {
            Routing::Die(die) => {
                let ((tile, position), (to_tile, to_position)) = (die.place(at), die.place(to));
                if position != to_position {
                    Some(port::X + (position ^ to_position) - 1)
                } else if tile != to_tile {
                    Some(if to_tile > tile { port::PLUS } else { port::MINUS })
                } else {
                    None
                }
            }
            Routing::Nodes(nodes) => nodes.hop(at, to),
            Routing::Mesh(mesh) => mesh.hop(at, to),
            Routing::Tree(tree) => tree.hop(at, to),
            Routing::Fabric(router) => router.hop(at, to),
        }
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        match self {
            Routing::Die(_) | Routing::Nodes(_) | Routing::Mesh(_) => Algorithm::DimensionOrder,
            Routing::Tree(_) => Algorithm::MinimalRandom,
            Routing::Fabric(router) => router.algorithm(),
        }
    }

    /// Point-to-point channels it needs at least.
    pub fn needs(&self) -> u8 {
        match self {
            Routing::Die(_) | Routing::Mesh(_) | Routing::Tree(_) => 1,
            Routing::Nodes(nodes) => nodes.classes(),
            Routing::Fabric(router) => router.needs(),
        }
    }
}

/// The tables of a plain fabric: a routing function and the places of the end points.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Between switches.
    pub routing: Routing,
    /// Where each end point attaches.
    pub ends: Vec<EndPlace>,
}

state!(Routes { built: routing, ends });

impl Routes {
    /// The output port of a shortest way at `switch` for a packet to end point `end`.
    #[inline]
    pub fn port(&self, switch: u32, end: u32) -> u16 {
        let place = self.ends[end as usize];
        self.routing.hop(switch, place.switch).unwrap_or(place.port)
    }

    /// Route computation.
    #[inline(always)]
    pub fn route(&self, at: &At<'_>, flit: &Flit) -> Route {
        match &self.routing {
            Routing::Fabric(router) => {
                let dst = flit.dst();
                router.unicast(at, self.ends[dst as usize], flit.tag.seq(), dst)
            }
            Routing::Nodes(nodes) => Route {
                vcs: nodes.channels(at.port, at.channel, at.channels()),
                ..Route::over(self.port(at.switch, flit.dst()))
            },
            _ => Route::over(self.port(at.switch, flit.dst())),
        }
    }
}

impl<const W: usize> Tables<W> for Routes {
    fn outputs(&self, _: u32, _: u16, _: &Flit) -> PortSet<W> {
        PortSet::EMPTY
    }

    #[inline(always)]
    fn unicast(&self, at: &At<'_>, flit: &Flit) -> Route {
        self.route(at, flit)
    }

    fn no_route(&self, switch: u32, port: u16, _: &Flit) -> String {
        format!(
            "a set-routed packet came in by port {port} of switch {switch}, and a plain fabric has no tables for it"
        )
    }
}

/// A shortest route as the switches it visits, or `None` if it does not arrive within as many hops as there are ports.
pub fn walk(layout: &Layout, from: u32, to: u32) -> Option<Vec<u32>> {
    let neighbours = Neighbours::new(layout);
    walk_with(&neighbours, &layout.routing, from, to)
}

pub(super) fn walk_with(neighbours: &Neighbours, routing: &Routing, from: u32, to: u32) -> Option<Vec<u32>> {
    let mut path = vec![from];
    let mut at = from;
    while let Some(port) = routing.hop(at, to) {
        at = neighbours.of(at, port)?.0;
        path.push(at);
        if path.len() > neighbours.ports() {
            return None;
        }
    }
    Some(path)
}

/// A cycle in the channel dependency graph of a layout's routing, as the names of the channels in it; `None` if the
/// routing is free of deadlock. See [`prove`], which says more.
pub fn dependency_cycle(layout: &Layout) -> Option<Vec<String>> {
    match prove(layout, &layout.routing) {
        Ok(_) => None,
        Err(Flaw::Cycle(names)) => Some(names),
        Err(other) => Some(vec![other.to_string()]),
    }
}
