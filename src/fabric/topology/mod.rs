//! Topologies: which switches there are, how they are linked, where end points attach.
//!
//! A topology yields a [`Site`]: the plan of the system and the place of every end point. With a point-to-point routing it
//! is a [`Layout`]. A new topology is one file here and its arms in the methods of [`Shape`];
//! [`routing`](super::routing) gives it shortest paths until it has a rule of its own.
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
mod layout;
mod mesh;
mod neighbours;
pub mod nodes;
mod site;
mod survey;
mod switch_graph;
mod torus;
mod tree;
pub mod trees;

pub use die::{Die, port as die_port};
pub use dragonfly::Dragonfly;
pub use fat_tree::FatTree;
pub use graph::{Graph, GraphEnd, GraphLink, GraphSwitch};
pub use hyperx::HyperX;
pub use layout::Layout;
pub use mesh::Mesh;
pub use neighbours::Neighbours;
pub use nodes::{Budget, NodeLink, NodePlace, Nodes, Subnodes};
pub use site::{Common, EndPlace, Lengths, LinkParams, Site, Wiring};
pub use survey::{Survey, survey};
pub use switch_graph::{SwitchGraph, TreeToRoot};
pub use torus::Torus;
pub use tree::GenericTree;

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

    /// Its switches, links and end points.
    pub fn site(&self, common: &Common) -> Site {
        match self {
            Shape::Die(die) => die.site(common),
            Shape::Nodes(nodes) => nodes.site(common),
            Shape::Mesh(mesh, wiring) => mesh.site_with(common, wiring),
            Shape::Torus(torus) => torus.site(common),
            Shape::HyperX(hyperx) => hyperx.site(common),
            Shape::FatTree(tree) => tree.site(common),
            Shape::Dragonfly(dragonfly) => dragonfly.site(common),
            Shape::Tree(tree) => tree.site(common),
            Shape::Graph(graph) => graph.site(common),
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
