//! Topologies: which switches there are, how they are linked, where end points attach.
//!
//! A topology yields a [`Layout`]: the plan of the system, its point-to-point routing, and the place of every end
//! point. A new topology is one file here and its arms in the methods of [`Shape`]; [`routing`](super::routing) gives it
//! shortest paths until it has a rule of its own.
//!
//! | file | what | switches | ports of a switch, engine and free ones not counted |
//! |---|---|---|---|
//! | [`die`](Die) | PIUMA die | tiles x positions | up to 8 |
//! | [`nodes`](Nodes) | PIUMA nodes of sockets on a HyperX | nodes x sockets x those of a die | up to 10 |
//! | [`mesh`](Mesh) | mesh | product of the sides | 2 a dimension + end points |
//! | [`torus`](Torus) | torus | product of the sides | 2 a dimension + end points |
//! | [`hyperx`](HyperX) | HyperX, flattened butterfly | product of the sides | side - 1 a dimension + end points |
//! | [`fat_tree`](FatTree) | k-ary n-tree | n k^(n-1) | 2k |
//! | [`dragonfly`](Dragonfly) | dragonfly | groups x switches a group | a - 1 + h + p |
//! | [`tree`](GenericTree) | tree with a branching factor for each level | 1 + b + b b' + ... | children + parent |
//! | [`graph`](Graph) | a file of switches and links | | |
//!
//! [`trees`] lays several trees on one of them.

mod die;
mod dragonfly;
mod fat_tree;
mod graph;
mod hyperx;
mod mesh;
pub mod nodes;
mod survey;
mod torus;
mod tree;
pub mod trees;
mod ways;

pub use die::{Die, port as die_port};
pub use dragonfly::Dragonfly;
pub use fat_tree::FatTree;
pub use graph::{Graph, GraphEnd, GraphLink, GraphSwitch};
pub use hyperx::HyperX;
pub use mesh::Mesh;
pub use nodes::{Budget, NodeLink, NodePlace, Nodes, Subnodes};
pub use survey::{Survey, survey};
pub use torus::Torus;
pub use tree::GenericTree;
pub use ways::{Towards, Ways};

use super::routing::{Algorithm, Router, Routing, Unroutable};
use super::{NodeKind, Plan, PlanLink, PlanNode, Vcs};
use std::collections::HashMap;
use std::sync::OnceLock;

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

/// How the latencies of links between switches follow from [`Common::link`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lengths {
    /// All links of a dimension have the same latency.
    #[default]
    Equal,
    /// The latency is that of a step times the steps between the switches in their row: a row of tiles on a chip. The
    /// link that closes a ring of a torus of side k spans k - 1 steps.
    Distance,
    /// Twice the latency of a step for every link: a torus folded so that its rings have no long link.
    Folded,
}

/// Latencies of links between switches, where a topology has several kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wiring {
    /// One latency for every dimension (level of a tree, local and global links of a dragonfly); empty: all have that
    /// of [`Common::link`].
    pub latencies: Vec<u16>,
    /// What follows from the distance.
    pub lengths: Lengths,
}

impl Wiring {
    /// The link of a step in dimension `dimension` that spans `steps` steps.
    fn link(&self, common: &Common, dimension: usize, steps: u32) -> LinkParams {
        let step = self.latencies.get(dimension).copied().unwrap_or(common.link.latency);
        let times = match self.lengths {
            Lengths::Equal => 1,
            Lengths::Distance => steps.max(1),
            Lengths::Folded => 2,
        };
        let latency = u16::try_from(u32::from(step).saturating_mul(times)).unwrap_or(u16::MAX);
        LinkParams { latency, ..common.link }
    }

    /// The longest latency that results, before it is cut to what a link can have: scenario checks ask.
    pub fn longest(&self, step: u64, sides: &[u32]) -> u64 {
        let times = |side: u32| match self.lengths {
            Lengths::Equal => 1,
            Lengths::Distance => u64::from(side.max(2) - 1),
            Lengths::Folded => 2,
        };
        let each = |(d, &side): (usize, &u32)| self.latencies.get(d).map_or(step, |&l| u64::from(l)) * times(side);
        sides.iter().enumerate().map(each).max().unwrap_or(step)
    }
}

/// Where an end point attaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
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
    /// What was laid out.
    pub shape: Shape,
    /// Far ends of ports, made when it is first asked for.
    far: OnceLock<HashMap<(u32, u16), (u32, u16)>>,
}

impl Layout {
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
    /// they are then; [`Neighbours`] is the faster table.
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
        self.routing = Router::make(&self, algorithm)?;
        Ok(self)
    }

    /// As [`Layout::routed`], of a layout in place.
    ///
    /// # Errors
    /// The same; the layout stays as it was.
    pub fn route(&mut self, algorithm: Algorithm) -> Result<(), Unroutable> {
        self.routing = Router::make(self, algorithm)?;
        Ok(())
    }

    /// Whether there are as many point-to-point channels as the simplest routing needs to be free of deadlocks.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn check_channels(&self) -> Result<(), Unroutable> {
        Router::make(self, Algorithm::of(&self.shape)[0]).map(|_| ())
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
        if let Some(far) = self.far.get_mut() {
            far.insert((node, 0), (place.switch, place.port));
            far.insert((place.switch, place.port), (node, 0));
        }
    }
}

/// A topology and its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// PIUMA die.
    Die(Die),
    /// PIUMA nodes.
    Nodes(Nodes),
    /// Mesh.
    Mesh(Mesh, Wiring),
    /// Torus.
    Torus(Torus),
    /// HyperX.
    HyperX(HyperX),
    /// K-ary n-tree.
    FatTree(FatTree),
    /// Dragonfly.
    Dragonfly(Dragonfly),
    /// Tree with a branching factor for each level.
    Tree(GenericTree),
    /// As a file says.
    Graph(std::sync::Arc<Graph>),
}

impl Shape {
    /// The kind, as a word of a scenario.
    pub fn kind(&self) -> &'static str {
        match self {
            Shape::Die(_) => "die",
            Shape::Nodes(_) => "nodes",
            Shape::Mesh(..) => "mesh",
            Shape::Torus(_) => "torus",
            Shape::HyperX(_) => "hyperx",
            Shape::FatTree(_) => "fat-tree",
            Shape::Dragonfly(_) => "dragonfly",
            Shape::Tree(_) => "tree",
            Shape::Graph(_) => "file",
        }
    }

    /// Lays it out, with the simplest routing it has.
    pub fn layout(&self, common: &Common) -> Layout {
        match self {
            Shape::Die(die) => die.layout(common),
            Shape::Nodes(nodes) => nodes.layout(common),
            Shape::Mesh(mesh, wiring) => mesh.layout_with(common, wiring),
            Shape::Torus(torus) => torus.layout(common),
            Shape::HyperX(hyperx) => hyperx.layout(common),
            Shape::FatTree(tree) => tree.layout(common),
            Shape::Dragonfly(dragonfly) => dragonfly.layout(common),
            Shape::Tree(tree) => tree.layout(common),
            Shape::Graph(graph) => graph.layout(common),
        }
    }

    /// How many switches there are, or `None` if that overflows.
    pub fn switches(&self) -> Option<u64> {
        match self {
            Shape::Die(die) => Some(u64::from(die.tiles) * u64::from(die.positions)),
            Shape::Nodes(nodes) => nodes.switches(),
            Shape::Mesh(Mesh { size, .. }, _)
            | Shape::Torus(Torus { size, .. })
            | Shape::HyperX(HyperX { size, .. }) => {
                size.iter().try_fold(1u64, |product, &side| product.checked_mul(u64::from(side)))
            }
            Shape::FatTree(tree) => tree.switches(),
            Shape::Dragonfly(dragonfly) => Some(dragonfly.switches()),
            Shape::Tree(tree) => Some(tree.switches()),
            Shape::Graph(graph) => Some(graph.switches.len() as u64),
        }
    }

    /// How many end points there are, or `None` if that overflows.
    pub fn end_points(&self) -> Option<u64> {
        let switches = self.switches()?;
        match self {
            Shape::Die(die) => Some(u64::from(die.tiles.min(2)) * u64::from(die.positions)),
            Shape::Nodes(nodes) => nodes.cores(),
            Shape::Mesh(Mesh { concentration, .. }, _)
            | Shape::Torus(Torus { concentration, .. })
            | Shape::HyperX(HyperX { concentration, .. })
            | Shape::Dragonfly(Dragonfly { concentration, .. }) => switches.checked_mul(u64::from(*concentration)),
            Shape::FatTree(tree) => tree.leaves()?.checked_mul(u64::from(tree.concentration)),
            Shape::Tree(tree) => Some(tree.end_points()),
            Shape::Graph(graph) => Some(graph.ends.len() as u64),
        }
    }

    /// The sides of its dimensions and the end points of a switch, where switches are on a grid.
    pub fn grid(&self) -> Option<(&[u32], u16)> {
        match self {
            Shape::Mesh(Mesh { size, concentration }, _)
            | Shape::Torus(Torus { size, concentration, .. })
            | Shape::HyperX(HyperX { size, concentration, .. }) => Some((size, *concentration)),
            _ => None,
        }
    }

    /// External ports of a switch.
    pub fn ports(&self) -> u32 {
        match self {
            Shape::Die(_) => u32::from(die_port::EXTERNAL),
            Shape::Nodes(nodes) => u32::from(nodes.ports()),
            Shape::Mesh(mesh, _) => u32::from(mesh.first_local_port()) + u32::from(mesh.concentration),
            Shape::Torus(torus) => u32::from(torus.as_mesh().first_local_port()) + u32::from(torus.concentration),
            Shape::HyperX(hyperx) => hyperx.first_local_port() + u32::from(hyperx.concentration),
            Shape::FatTree(tree) => u32::from(tree.down()) + u32::from(tree.arity),
            Shape::Dragonfly(dragonfly) => dragonfly.first_local_port() + u32::from(dragonfly.concentration),
            Shape::Tree(tree) => tree.ports(),
            Shape::Graph(graph) => u32::from(graph.ports()),
        }
    }

    /// Short name of a switch.
    pub fn switch_name(&self, switch: u32) -> String {
        match self {
            Shape::Die(die) => die.switch_name(switch),
            Shape::Nodes(nodes) => nodes.switch_name(switch),
            Shape::Mesh(Mesh { size, .. }, _)
            | Shape::Torus(Torus { size, .. })
            | Shape::HyperX(HyperX { size, .. }) => mesh::coordinate_name(size, switch),
            Shape::FatTree(tree) => tree.switch_name(switch),
            Shape::Dragonfly(dragonfly) => dragonfly.switch_name(switch),
            Shape::Tree(tree) => tree.name(switch),
            Shape::Graph(graph) => graph.switches[switch as usize].name.clone(),
        }
    }

    /// The switch of a short name.
    pub fn switch_by_name(&self, name: &str) -> Option<u32> {
        // A name has its numbers in it: guess from them and compare, rather than to parse each form by a parser of its own.
        let numbers = numbers(name)?;
        let guess = match self {
            Shape::Graph(graph) => graph.switches.iter().position(|switch| switch.name == name).map(|at| at as u64),
            Shape::Tree(tree) => tree.switch_by_numbers(&numbers),
            Shape::Die(die) => die.switch_by_numbers(name, &numbers),
            Shape::Nodes(nodes) => nodes.switch_by_numbers(name, &numbers),
            Shape::Mesh(Mesh { size, .. }, _)
            | Shape::Torus(Torus { size, .. })
            | Shape::HyperX(HyperX { size, .. }) => mesh::coordinate_number(size, &numbers),
            Shape::FatTree(tree) => tree.switch_by_numbers(&numbers),
            Shape::Dragonfly(dragonfly) => dragonfly.switch_by_numbers(&numbers),
        }?;
        let switch = u32::try_from(guess).ok().filter(|_| self.switches().is_some_and(|all| guess < all))?;
        (self.switch_name(switch) == name).then_some(switch)
    }

    /// Where an end point sits.
    pub fn end_place(&self, end: u32) -> EndPlace {
        let each = |concentration: u16, first: u32| {
            let (switch, local) = (end / u32::from(concentration), end % u32::from(concentration));
            EndPlace { switch, port: (first + local) as u16 }
        };
        match self {
            Shape::Die(die) => die.end_place(end),
            Shape::Nodes(nodes) => nodes.end_place(end),
            Shape::Mesh(mesh, _) => each(mesh.concentration, u32::from(mesh.first_local_port())),
            Shape::Torus(torus) => each(torus.concentration, u32::from(torus.as_mesh().first_local_port())),
            Shape::HyperX(hyperx) => each(hyperx.concentration, hyperx.first_local_port()),
            Shape::FatTree(tree) => each(tree.concentration, 0),
            Shape::Dragonfly(dragonfly) => each(dragonfly.concentration, dragonfly.first_local_port()),
            Shape::Tree(tree) => tree.end_point(u64::from(end)),
            Shape::Graph(graph) => graph.ends[end as usize].place,
        }
    }

    /// The shape in a line, for people.
    pub fn describe(&self) -> String {
        let sides = |size: &[u32]| size.iter().map(u32::to_string).collect::<Vec<_>>().join(" x ");
        match self {
            Shape::Die(die) => format!("die of {} tiles x {} switches", die.tiles, die.positions),
            Shape::Nodes(nodes) => {
                let (tiles, positions) = (nodes.die.tiles, nodes.die.positions);
                let count = nodes.nodes().unwrap_or(0);
                let of = if nodes.size.len() > 1 { format!(" ({})", sides(&nodes.size)) } else { String::new() };
                let plural = |count: u64, more: &'static str| if count == 1 { "" } else { more };
                format!(
                    "{count} node{}{of} of {}{} socket{} of {tiles} tile{} x {positions} switch{}",
                    plural(count, "s"),
                    if nodes.subnodes.count > 1 {
                        format!("{} subnodes of ", nodes.subnodes.count)
                    } else {
                        String::new()
                    },
                    nodes.subnode_sockets(),
                    plural(nodes.subnode_sockets().into(), "s"),
                    plural(tiles.into(), "s"),
                    plural(positions.into(), "es")
                )
            }
            Shape::Mesh(mesh, _) => format!("mesh of {} switches", sides(&mesh.size)),
            Shape::Torus(torus) => format!("torus of {} switches", sides(&torus.size)),
            Shape::HyperX(hyperx) => format!("HyperX of {} switches", sides(&hyperx.size)),
            Shape::FatTree(tree) => format!("{}-ary {}-tree", tree.arity, tree.levels),
            Shape::Dragonfly(d) => {
                format!(
                    "dragonfly of {} groups x {} switches, {} global links each",
                    d.groups, d.switches_per_group, d.global
                )
            }
            Shape::Tree(tree) => {
                let branching: Vec<String> = tree.branching.iter().map(ToString::to_string).collect();
                format!("tree of {} switches (branching {})", tree.switches(), branching.join(" x "))
            }
            Shape::Graph(graph) => format!("{} switches of a file", graph.switches.len()),
        }
    }

    /// The same shape a step smaller, with the same kinds of rings, turns and levels in it, for proofs on representative
    /// sizes; `None` if it cannot be made smaller.
    pub fn smaller(&self) -> Option<Shape> {
        let shrink = |size: &[u32], least: u32| -> Option<Vec<u32>> {
            let longest = *size.iter().max()?;
            // Parity stays: an even ring has ties, an odd one has none.
            (longest >= least + 2).then(|| {
                let cut = if longest > 8 { 8 - longest % 2 } else { longest - 2 };
                let one = |&side: &u32| match cut - (side + cut) % 2 {
                    less if side > cut && less >= least => less,
                    _ => side,
                };
                size.iter().map(one).collect()
            })
        };
        match self {
            Shape::Die(_) | Shape::Tree(_) | Shape::Graph(_) => None,
            Shape::Nodes(nodes) => nodes.smaller().map(Shape::Nodes),
            Shape::Mesh(mesh, wiring) => shrink(&mesh.size, 2)
                .map(|size| Shape::Mesh(Mesh { size, concentration: mesh.concentration }, wiring.clone())),
            Shape::Torus(torus) => shrink(&torus.size, 3).map(|size| Shape::Torus(Torus { size, ..torus.clone() })),
            Shape::HyperX(hyperx) => {
                shrink(&hyperx.size, 2).map(|size| Shape::HyperX(HyperX { size, ..hyperx.clone() }))
            }
            Shape::FatTree(tree) => {
                if tree.arity > 2 {
                    Some(Shape::FatTree(FatTree { arity: tree.arity - 1, ..tree.clone() }))
                } else if tree.levels > 2 {
                    Some(Shape::FatTree(FatTree { levels: tree.levels - 1, ..tree.clone() }))
                } else {
                    None
                }
            }
            Shape::Dragonfly(d) => d.smaller().map(Shape::Dragonfly),
        }
    }

    /// A place for every switch in a drawing, in units of one switch, and whether it is near or far from its neighbours.
    pub fn position(&self, switch: u32) -> (f64, f64) {
        match self {
            Shape::Die(die) => die.position(switch),
            Shape::Nodes(nodes) => nodes.position(switch),
            Shape::Mesh(Mesh { size, .. }, _)
            | Shape::Torus(Torus { size, .. })
            | Shape::HyperX(HyperX { size, .. }) => mesh::position(size, switch),
            Shape::FatTree(tree) => tree.position(switch),
            Shape::Tree(tree) => tree.position(switch),
            Shape::Dragonfly(dragonfly) => dragonfly.position(switch),
            Shape::Graph(graph) => {
                let count = graph.switches.len().max(1) as f64;
                let radius = (count / 4.0).max(1.5);
                let angle = f64::from(switch) / count * std::f64::consts::TAU;
                (radius - radius * angle.cos(), radius + radius * angle.sin())
            }
        }
    }
}

/// The numbers in a name, in order; `None` if one does not fit.
fn numbers(name: &str) -> Option<Vec<u64>> {
    name.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).map(|part| part.parse().ok()).collect()
}

/// Who is at the far end of every port, for many look-ups: a table, or arithmetic where a system has too many ports.
#[derive(Clone, Debug)]
pub struct Neighbours(Far);

#[derive(Clone, Debug)]
enum Far {
    Table { base: Vec<u32>, far: Vec<Option<(u32, u16)>> },
    Nodes { nodes: Nodes, switches: u32 },
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
        Neighbours(Far::Table { base, far })
    }

    /// The neighbours in a system of nodes, by arithmetic; end points are its cores, numbered after the switches.
    ///
    /// # Panics
    /// If there are more switches than numbers for them.
    pub fn of_nodes(nodes: &Nodes) -> Neighbours {
        let switches = nodes.switches().and_then(|count| u32::try_from(count).ok()).expect("a size that was checked");
        Neighbours(Far::Nodes { nodes: nodes.clone(), switches })
    }

    /// Node and port at the far end of a port; `None` if the port has no link or there is no such port.
    #[inline]
    pub fn of(&self, node: u32, port: u16) -> Option<(u32, u16)> {
        match &self.0 {
            Far::Table { base, far } => {
                let next = base.get(node as usize + 1).copied().unwrap_or(far.len() as u32);
                let at = *base.get(node as usize)? + u32::from(port);
                if at < next { far[at as usize] } else { None }
            }
            Far::Nodes { nodes, switches } if node < *switches => match port {
                die_port::LOCAL => nodes.end_of(node).map(|end| (switches + end, 0)),
                _ => nodes.link(node, port).map(|link| (link.switch, link.port)),
            },
            Far::Nodes { nodes, switches } => {
                let end = node - switches;
                let place = (port == 0 && u64::from(end) < nodes.cores()?).then(|| nodes.end_place(end))?;
                Some((place.switch, place.port))
            }
        }
    }

    /// How many ports there are in all.
    pub fn ports(&self) -> usize {
        match &self.0 {
            Far::Table { far, .. } => far.len(),
            Far::Nodes { nodes, switches } => {
                *switches as usize * usize::from(nodes.ports() + 1) + nodes.cores().unwrap_or(0) as usize
            }
        }
    }
}

/// Names of switches: listed, or made from the shape when one is asked for.
#[derive(Clone, Debug)]
pub enum Names {
    /// All of them.
    List(Vec<String>),
    /// The shape knows them.
    Shape(Shape),
}

impl Names {
    /// The name of a switch.
    pub fn of(&self, switch: u32) -> std::borrow::Cow<'_, str> {
        match self {
            Names::List(list) => list[switch as usize].as_str().into(),
            Names::Shape(shape) => shape.switch_name(switch).into(),
        }
    }
}

impl From<Vec<String>> for Names {
    fn from(list: Vec<String>) -> Names {
        Names::List(list)
    }
}

/// A link between two switches.
fn join(a: (u32, u16), b: (u32, u16), params: LinkParams, level: u8) -> PlanLink {
    PlanLink { a, b, latency: params.latency, cycles_per_flit: params.cycles_per_flit, level }
}
