//! Topologies: which switches there are, how they are linked, where end points attach.
//!
//! A topology yields a [`Site`]: the plan of the system and the place of every end point. With a point-to-point routing it
//! is a [`Layout`]. Every topology implements the trait [`Topology`].
//! A new one is a file of this folder, and in `mod.rs` its word, its variant of [`Shape`] and its keys;
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
//! `rule` has the trait and how a topology is read, `grid` what those on a grid have in common; [`trees`] lays several trees on a
//! topology.

use std::ops::Deref;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

mod die;
mod dragonfly;
mod fat_tree;
mod graph;
mod grid;
mod hyperx;
mod layout;
mod mesh;
mod names;
mod neighbours;
pub mod nodes;
mod rule;
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
pub use mesh::{Mesh, WiredMesh};
pub use names::Names;
pub use neighbours::Neighbours;
pub use nodes::{Budget, NodeLink, NodePlace, Nodes, Subnodes};
pub use rule::{Complaint, Parameter, Surroundings, Topology};
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
    Mesh(WiredMesh),
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
    Graph(Arc<Graph>),
}

/// A shape answers as the topology that it is.
impl Deref for Shape {
    type Target = dyn Topology;

    fn deref(&self) -> &(dyn Topology + 'static) {
        match self {
            Shape::Die(die) => die,
            Shape::Nodes(nodes) => nodes,
            Shape::Mesh(mesh) => mesh,
            Shape::Torus(torus) => torus,
            Shape::HyperX(hyperx) => hyperx,
            Shape::FatTree(tree) => tree,
            Shape::Dragonfly(dragonfly) => dragonfly,
            Shape::Tree(tree) => tree,
            Shape::Graph(graph) => &**graph,
        }
    }
}

/// The shapes there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TopologyKind {
    /// A PIUMA die: a row of tiles of up to four switches, all-to-all inside a tile, joined position by position.
    Die,
    /// PIUMA nodes on a HyperX of up to 6 dimensions: sockets, each a die, joined all-to-all in a node.
    Nodes,
    /// A mesh of 1 to 6 dimensions.
    Mesh,
    /// A torus of 1 to 6 dimensions: a mesh whose rows are closed to rings.
    Torus,
    /// Switches on a grid of 1 to 6 dimensions, each joined with all others of its rows.
    Hyperx,
    /// Another name of hyperx.
    FlattenedButterfly,
    /// A k-ary n-tree: n levels of switches with k ports down and k ports up.
    FatTree,
    /// Groups of switches, all-to-all in a group and between groups.
    Dragonfly,
    /// A tree of switches with a branching factor for each level.
    Tree,
    /// Switches and links of a file.
    File,
}

impl TopologyKind {
    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Die => "die",
            Self::Nodes => "nodes",
            Self::Mesh => "mesh",
            Self::Torus => "torus",
            Self::Hyperx => "hyperx",
            Self::FlattenedButterfly => "flattened-butterfly",
            Self::FatTree => "fat-tree",
            Self::Dragonfly => "dragonfly",
            Self::Tree => "tree",
            Self::File => "file",
        }
    }

    /// How it is read.
    fn reader(self) -> &'static rule::Reader {
        match self {
            Self::Die => &die::READER,
            Self::Nodes => &nodes::READER,
            Self::Mesh => &mesh::READER,
            Self::Torus => &torus::READER,
            Self::Hyperx | Self::FlattenedButterfly => &hyperx::READER,
            Self::FatTree => &fat_tree::READER,
            Self::Dragonfly => &dragonfly::READER,
            Self::Tree => &tree::READER,
            Self::File => &graph::READER,
        }
    }
}

/// The shape of the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct TopologyFile {
    /// The shape of the network.
    pub kind: TopologyKind,
    /// die, nodes: tiles in the row of a die; the first and the last are core tiles, those between have switches only.
    /// Default: 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub tiles: Option<u64>,
    /// die, nodes: switches a tile. Default: 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4))]
    pub positions: Option<u64>,
    /// nodes: parts of equal size that the sockets of a node are divided into. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub subnodes: Option<u64>,
    /// nodes: links between two subnodes, from the first sockets on. Default: as many as a subnode has sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub subnode_links: Option<u64>,
    /// nodes: sockets of a node, joined all-to-all in a subnode. Default: 16 a subnode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub sockets: Option<u64>,
    /// nodes: ports of a switch that leave the die. Default: 2, as on PIUMA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32))]
    pub hsio_ports: Option<u64>,
    /// mesh, torus, hyperx: switches along each dimension; nodes: nodes along each dimension, one node without it. Sides of
    /// 1 have no ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "mesh_size")]
    pub size: Option<Vec<u64>>,
    /// End points a switch; fat-tree: a leaf switch. Default: 1; `arity` in a fat-tree, `global_links` in a dragonfly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub concentration: Option<u64>,
    /// torus, hyperx: how latencies follow from `link.latency_cycles`; nodes: those between nodes from `link.node_latency_ns`.
    /// Default: "equal".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Lengths>,
    /// Latencies of links between switches, one for each dimension of a mesh, torus or hyperx, for each level of a fat-tree
    /// above its leaves, or for the links in and between the groups of a dragonfly. Default: `link.latency_cycles` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "latencies")]
    pub latencies_cycles: Option<Vec<u64>>,
    /// fat-tree: ports down and up of a switch, the k of a k-ary n-tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub arity: Option<u64>,
    /// fat-tree: levels of switches, the n of a k-ary n-tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32))]
    pub levels: Option<u64>,
    /// dragonfly: global links of a switch, h. Default: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub global_links: Option<u64>,
    /// dragonfly: switches of a group, a. Default: twice `global_links`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub group_switches: Option<u64>,
    /// dragonfly: groups, up to `group_switches` x `global_links` + 1, which is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4_194_304))]
    pub groups: Option<u64>,
    /// tree: children of a switch of each level, from the top; the last number counts end points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8), inner(range(min = 1, max = 1024)))]
    pub branching: Option<Vec<u64>>,
    /// tree: end points at the top switch, numbered after all others. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 64))]
    pub roots: Option<u64>,
    /// file: a TOML file of switches and links, relative to the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub file: Option<String>,
}

fn mesh_size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": 6,
        "items": { "type": "integer", "minimum": 1, "maximum": 9_223_372_036_854_775_807_i64 },
    })
}

fn latencies(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": 32,
        "items": { "type": "integer", "minimum": 1, "maximum": 16_384 },
    })
}

impl TopologyFile {
    /// The keys that its kind has, as messages list them.
    pub fn keys(&self) -> &'static [&'static str] {
        self.kind.reader().keys
    }

    /// What messages call its kind, after "a".
    pub fn called(&self) -> &'static str {
        self.kind.reader().called
    }

    /// The key to blame for too many switches.
    pub fn sized_by(&self) -> &'static str {
        (self.kind.reader().sized_by)(self)
    }

    /// Makes the shape, and says what is wrong with the keys, which need not keep a shape from being made. Keys are in the ranges of the
    /// schema; sizes may still be too big.
    pub fn shape(&self, around: &Surroundings<'_>) -> (Option<Shape>, Vec<Complaint>) {
        let mut complaints = Vec::new();
        let shape = (self.kind.reader().read)(self, around, &mut complaints);
        (shape, complaints)
    }

    /// End points of a switch, `default` where they are not given.
    fn end_points_a_switch(&self, default: u64) -> u16 {
        self.concentration.unwrap_or(default) as u16
    }

    /// Latencies of links between switches.
    fn wiring(&self) -> Wiring {
        let latencies = self.latencies_cycles.iter().flatten().map(|&cycles| cycles as u16).collect();
        Wiring { latencies, lengths: self.latency.unwrap_or_default() }
    }
}

/// A count of a shape. One that does not fit becomes the largest, which a limit refuses.
fn shape_count(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
