//! A topology with its routing.

use super::site::{Common, EndPlace, LinkParams, Site, push_end};
use super::{Die, Dragonfly, FatTree, GenericTree, Graph, HyperX, Mesh, Nodes, Shape, Topology, Torus, Wiring};
use crate::routing::{Algorithm, Routing, Unroutable};
use crate::{NodeKind, Plan};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// A topology, laid out.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Nodes and links.
    pub plan: Plan,
    /// Point-to-point routing between switches.
    pub routing: Routing,
    /// Place of every end point, in their order.
    pub ends: Vec<EndPlace>,
    /// How many of the end points are cores; the rest are extra traffic end points.
    pub cores: usize,
    /// External ports of a switch, the engine port not counted.
    pub external_ports: u16,
    /// What was laid out.
    pub shape: Shape,
    /// Far ends of ports, made when it is first asked for.
    far: OnceLock<HashMap<(u32, u16), (u32, u16)>>,
}

impl Layout {
    /// What a topology has laid out, with the simplest routing it has.
    fn simply(site: Site, shape: Shape) -> Layout {
        let Site { plan, ends, cores, external_ports } = site;
        let routing = Routing::simplest(&shape, &plan);
        Layout { plan, routing, ends, cores, external_ports, shape, far: OnceLock::new() }
    }

    /// A layout that was made by hand; `shape` is what it is said to be where it is described.
    pub fn of(plan: Plan, routing: Routing, ends: Vec<EndPlace>, external_ports: u16, shape: Shape) -> Layout {
        Layout { plan, routing, cores: ends.len(), ends, external_ports, shape, far: OnceLock::new() }
    }

    /// Number of switches.
    pub fn switches(&self) -> usize {
        self.plan.count(NodeKind::Switch)
    }

    /// The switch with this short name.
    pub fn switch(&self, name: &str) -> Option<u32> {
        let switches = self.switches();
        self.plan.nodes[..switches].iter().position(|node| node.name == name).map(|at| at as u32)
    }

    /// Short names of all switches, in order.
    pub fn switch_names(&self) -> impl Iterator<Item = &str> {
        self.plan.nodes[..self.switches()].iter().map(|node| node.name.as_str())
    }

    /// The neighbour at the far end of a switch's port: node and port. The first call makes an index of the links as
    /// they are then; [`Neighbours`](super::Neighbours) is the faster table.
    pub fn neighbour(&self, switch: u32, port: u16) -> Option<(u32, u16)> {
        let far = self
            .far
            .get_or_init(|| self.plan.links.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]).collect());
        far.get(&(switch, port)).copied()
    }

    /// The end point at a port of a switch.
    pub fn end_at(&self, place: EndPlace) -> Option<usize> {
        let (node, _) = self.neighbour(place.switch, place.port)?;
        (node as usize).checked_sub(self.plan.nodes.len() - self.ends.len())
    }

    /// Gives the layout another routing function.
    ///
    /// # Errors
    /// If the topology has no such routing, or needs more point-to-point channels than there are.
    pub fn routed(mut self, algorithm: Algorithm) -> Result<Layout, Unroutable> {
        self.routing = Routing::make(&self.shape, &self.plan, algorithm)?;
        Ok(self)
    }

    /// As [`Layout::routed`], of a layout in place.
    ///
    /// # Errors
    /// The same; the layout stays as it was.
    pub fn route(&mut self, algorithm: Algorithm) -> Result<(), Unroutable> {
        self.routing = Routing::make(&self.shape, &self.plan, algorithm)?;
        Ok(())
    }

    /// Whether there are as many point-to-point channels as the simplest routing needs to be free of deadlocks.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn check_channels(&self) -> Result<(), Unroutable> {
        Routing::make(&self.shape, &self.plan, self.shape.algorithms()[0]).map(|_| ())
    }

    /// Attaches an extra end point, named after `what` it is for, to a free port and returns its number.
    ///
    /// # Panics
    /// If the port is not free; ask [`Layout::neighbour`] first.
    pub fn attach(&mut self, place: EndPlace, local: LinkParams, what: &str) -> usize {
        assert!(self.neighbour(place.switch, place.port).is_none(), "the port has a link already");
        let end = self.ends.len();
        let at = &self.plan.nodes[place.switch as usize];
        let path = at.path.strip_suffix(".switch").unwrap_or(&at.path);
        let (name, path) = (format!("{}.{what}{}", at.name, place.port), format!("{path}.{what}{}", place.port));
        let node = push_end(&mut self.plan, &mut self.ends, place, (local, name, path));
        if let Some(far) = self.far.get_mut() {
            far.insert((node, 0), (place.switch, place.port));
            far.insert((place.switch, place.port), (node, 0));
        }
        end
    }
}

impl Shape {
    /// Lays it out, with the simplest routing it has.
    pub fn layout(&self, common: &Common) -> Layout {
        Layout::simply(self.site(common), self.clone())
    }
}

/// Topologies with all their parameters in them, which can be laid out by themselves.
macro_rules! laid_out {
    ($($topology:ident: $shape:expr),+ $(,)?) => {
        $(impl $topology {
            /// Lays it out, with the simplest routing it has.
            pub fn layout(&self, common: &Common) -> Layout {
                let shape: fn(Self) -> Shape = $shape;
                Layout::simply(self.site(common), shape(self.clone()))
            }
        })+
    };
}

laid_out! {
    Die: Shape::Die,
    Nodes: Shape::Nodes,
    Torus: Shape::Torus,
    HyperX: Shape::HyperX,
    FatTree: Shape::FatTree,
    Dragonfly: Shape::Dragonfly,
    GenericTree: Shape::Tree,
    Graph: |graph| Shape::Graph(Arc::new(graph)),
}

impl Mesh {
    /// Lays it out with the latency of the system's links, and with the simplest routing it has.
    pub fn layout(&self, common: &Common) -> Layout {
        self.clone().wired(Wiring::default()).layout(common)
    }
}

impl Nodes {
    /// A layout without switches and links: what is known before it is clear which of them anything uses.
    /// [`add_used_links`](Nodes::add_used_links) adds those.
    pub fn bare(&self, common: &Common) -> Layout {
        Layout::simply(self.bare_site(common), Shape::Nodes(self.clone()))
    }
}
