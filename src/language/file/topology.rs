//! `[topology]` and `[routing]`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize as DeriveDeserialize, Serialize};

/// The shape of the network.
#[derive(Debug, Clone, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
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
    pub latency: Option<LengthsFile>,
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

/// The shapes there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, DeriveDeserialize, JsonSchema)]
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
}

/// How the latencies of links follow from that of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LengthsFile {
    /// The same for all links of a dimension.
    Equal,
    /// The latency of a step times the switches it spans in its row.
    Distance,
    /// Twice the latency of a step: a torus that is folded to have no long links.
    Folded,
}

/// How packets find their way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct RoutingFile {
    /// The algorithm. Default: "dimension-order" where there are dimensions, "minimal-random" elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<AlgorithmFile>,
}

/// Routing algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AlgorithmFile {
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
