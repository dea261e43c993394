//! Point-to-point routes between switches, and the proof that they cannot deadlock (requirement K-PIPE-1).
//!
//! | file | what |
//! |---|---|
//! | this | the tables a switch looks up |
//! | `algorithm` | which algorithms there are, and on which topology |
//! | [`relation`] | the routing relation: outputs and channels by place, destination and random draw |
//! | [`proof`] | reachability and freedom of deadlock, from the relation itself |

mod algorithm;
mod maps;
pub mod proof;
pub mod relation;
#[cfg(test)]
mod tests;

pub use algorithm::{Algorithm, Unroutable};
pub use maps::HeadPosition;
pub(crate) use maps::MAX_DIMENSIONS;
pub use proof::{Flaw, Proof, Relation, dependency_cycle, prove, prove_within, walk};
pub use relation::{Choice, ChoiceKind, Router, entropy};

use super::tables::{Route, RouteView, Tables};
use super::topology::{Die, EndPlace, GenericTree, Mesh, Nodes, Shape, Topology as _, die_port as port};
use super::{Flit, Plan, PortSet};
use std::sync::Arc;
use watershed_state::state;

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
    /// A routing function for a topology whose switches and links are those of a plan.
    ///
    /// # Errors
    /// If the topology has no such routing, or needs more point-to-point channels than there are.
    pub fn make(shape: &Shape, plan: &Plan, algorithm: Algorithm) -> Result<Routing, Unroutable> {
        let channels = plan.vcs.unicast;
        let all = shape.algorithms();
        if !all.contains(&algorithm) {
            return Err(Unroutable::NoSuchRouting { algorithm, kind: shape.kind().name(), others: all.to_vec() });
        }
        let routing = Self::unchecked(shape, plan, algorithm);
        let needed = routing.needs();
        if channels < needed {
            return Err(Unroutable::Channels { algorithm, kind: shape.kind().name(), needed, channels });
        }
        Ok(routing)
    }

    /// The same with any number of channels: with too few of them a routing function that can deadlock, or that finds no
    /// channel at all.
    pub(crate) fn unchecked(shape: &Shape, plan: &Plan, algorithm: Algorithm) -> Routing {
        match shape {
            Shape::Die(die) => Routing::Die(*die),
            Shape::Nodes(nodes) => Routing::Nodes(Arc::new(nodes.clone())),
            Shape::Tree(tree) => Routing::Tree(tree.clone()),
            // Too many dimensions or too long a side for the table of coordinates.
            Shape::Mesh(of) if of.algorithms().len() == 1 => Routing::Mesh(of.mesh.clone()),
            _ => Routing::Fabric(Arc::new(Router::new(shape, plan, algorithm))),
        }
    }

    /// The simplest routing of a topology, whatever the number of channels.
    pub(crate) fn simplest(shape: &Shape, plan: &Plan) -> Routing {
        match shape {
            Shape::Mesh(of) => Routing::Mesh(of.mesh.clone()),
            _ => Self::unchecked(shape, plan, shape.algorithms()[0]),
        }
    }

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
    pub fn route(&self, at: &RouteView<'_>, flit: &Flit) -> Route {
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
    fn unicast(&self, at: &RouteView<'_>, flit: &Flit) -> Route {
        self.route(at, flit)
    }

    fn no_route(&self, switch: u32, port: u16, _: &Flit) -> String {
        format!(
            "a set-routed packet came in by port {port} of switch {switch}, and a plain fabric has no tables for it"
        )
    }
}
