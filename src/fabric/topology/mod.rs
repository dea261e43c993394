//! Topologies: which switches there are, how they are linked, where end points attach.
//!
//! A topology yields a [`Layout`]: the plan of the system, its point-to-point routing, and the place of every end
//! point. A new topology is one file here and one arm in [`routing`](super::routing).

mod die;
mod mesh;
mod tree;

pub use die::{Die, port as die_port};
pub use mesh::Mesh;
pub use tree::GenericTree;

use super::routing::Routing;
use super::{NodeKind, Plan, PlanLink, PlanNode, Vcs};

/// Latency and width of the links of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkParams {
    /// Latency in cycles, at least 1.
    pub latency: u16,
    /// Cycles a flit keeps the link busy, at least 1.
    pub cycles_per_flit: u16,
}

/// What every topology needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    /// Virtual channels of every link.
    pub vcs: Vcs,
    /// Whether switches have an internal engine port (their last).
    pub engine: bool,
    /// Links between switches.
    pub link: LinkParams,
    /// Links between a switch and its end points.
    pub local: LinkParams,
}

/// Where an end point attaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndPlace {
    /// The switch.
    pub switch: u32,
    /// Its port.
    pub port: u16,
}

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
}

impl Layout {
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

    /// The neighbour at the far end of a switch's port: node and port. Walks all links; use [`Neighbours`] for many.
    pub fn neighbour(&self, switch: u32, port: u16) -> Option<(u32, u16)> {
        self.plan.links.iter().find_map(|link| {
            if link.a == (switch, port) {
                Some(link.b)
            } else if link.b == (switch, port) {
                Some(link.a)
            } else {
                None
            }
        })
    }

    /// The end point at a port of a switch.
    pub fn end_at(&self, place: EndPlace) -> Option<usize> {
        self.ends.iter().position(|end| *end == place)
    }

    /// Attaches an extra end point for traffic to a free port and returns its number.
    ///
    /// # Panics
    /// If the port is not free; ask [`Layout::neighbour`] first.
    pub fn attach(&mut self, place: EndPlace, local: LinkParams) -> usize {
        assert!(self.neighbour(place.switch, place.port).is_none(), "the port has a link already");
        let end = self.ends.len();
        let at = &self.plan.nodes[place.switch as usize];
        let path = at.path.strip_suffix(".switch").unwrap_or(&at.path);
        let (name, path) = (format!("{}.traffic{}", at.name, place.port), format!("{path}.traffic{}", place.port));
        self.push_end(place, local, name, path);
        end
    }

    fn push_end(&mut self, place: EndPlace, local: LinkParams, name: String, path: String) {
        let node = self.plan.nodes.len() as u32;
        self.plan.nodes.push(PlanNode { kind: NodeKind::End, ports: 1, engine: false, name, path });
        self.plan.links.push(PlanLink {
            a: (node, 0),
            b: (place.switch, place.port),
            latency: local.latency,
            cycles_per_flit: local.cycles_per_flit,
            level: 0,
        });
        self.ends.push(place);
    }
}

/// Who is at the far end of every port: a table for many look-ups.
#[derive(Clone, Debug)]
pub struct Neighbours {
    base: Vec<u32>,
    far: Vec<Option<(u32, u16)>>,
}

impl Neighbours {
    /// The table of a layout.
    pub fn new(layout: &Layout) -> Neighbours {
        let mut base = Vec::with_capacity(layout.plan.nodes.len());
        let mut ports = 0;
        for node in &layout.plan.nodes {
            base.push(ports);
            ports += u32::from(node.ports);
        }
        let mut far = vec![None; ports as usize];
        for link in &layout.plan.links {
            for (a, b) in [(link.a, link.b), (link.b, link.a)] {
                far[base[a.0 as usize] as usize + usize::from(a.1)] = Some(b);
            }
        }
        Neighbours { base, far }
    }

    /// Node and port at the far end of a port; `None` if the port has no link or there is no such port.
    #[inline]
    pub fn of(&self, node: u32, port: u16) -> Option<(u32, u16)> {
        let next = self.base.get(node as usize + 1).copied().unwrap_or(self.far.len() as u32);
        let at = *self.base.get(node as usize)? + u32::from(port);
        if at < next { self.far[at as usize] } else { None }
    }

    /// How many ports there are in all.
    pub fn ports(&self) -> usize {
        self.far.len()
    }
}

/// A link between two switches.
fn join(a: (u32, u16), b: (u32, u16), params: LinkParams, level: u8) -> PlanLink {
    PlanLink { a, b, latency: params.latency, cycles_per_flit: params.cycles_per_flit, level }
}
