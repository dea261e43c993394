//! `[topology]` and `[routing]`: the shape, its lengths, and the links that only some shapes have.

use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{MAX_LATENCY, MOST_PORTS, Resolver, saturated_count};
use crate::config::{self, Link, Topology};
use crate::file::{AlgorithmFile, Family, LengthsFile, ScenarioFile, TopologyFile, TopologyKind};
use crate::problem::Problem;
use crate::{limits, names};
use watershed_fabric::routing::Algorithm;
use watershed_fabric::topology::{
    Die, Dragonfly, FatTree, GenericTree, HyperX, Lengths, Mesh, Nodes, Shape, Subnodes, Torus, Wiring,
};

/// Sockets of a node.
fn sockets(topology: &TopologyFile) -> u64 {
    topology.sockets.unwrap_or(16 * topology.subnodes.unwrap_or(1))
}

impl Resolver<'_> {
    pub(super) fn topology(&mut self, file: &ScenarioFile, link: &Link) -> Option<Topology> {
        let step = link.latency.cycles;
        let topology = &file.topology;
        let kind = topology.kind;
        self.foreign_topology_keys(topology);
        let shape = self.shape(topology, link)?;
        let place = match kind {
            TopologyKind::Die => "topology.tiles",
            TopologyKind::Nodes if topology.size.is_none() => "topology.sockets",
            TopologyKind::Nodes
            | TopologyKind::Mesh
            | TopologyKind::Torus
            | TopologyKind::Hyperx
            | TopologyKind::FlattenedButterfly => "topology.size",
            TopologyKind::FatTree => "topology.levels",
            TopologyKind::Dragonfly => "topology.groups",
            TopologyKind::Tree => "topology.branching",
            TopologyKind::File => "topology.file",
        };
        // Sizes that are given are multiplied in more bits than a number of switches has.
        let product = |factors: &[u64]| factors.iter().fold(1u128, |all, &one| all.saturating_mul(u128::from(one)));
        let switches = match kind {
            TopologyKind::FatTree | TopologyKind::Nodes => shape.switches().map_or(u128::MAX, u128::from),
            _ => topology.size.as_deref().map_or_else(|| shape.switches().map_or(u128::MAX, u128::from), product),
        };
        if switches > u128::from(limits::SWITCHES) {
            self.report(
                Problem::at(place, format!("{} switches are too many", saturated_count(switches)))
                    .expected(format!("up to {} switches", limits::SWITCHES)),
            );
            return None;
        }
        let end_points = shape.end_points().unwrap_or(u64::MAX);
        if end_points > limits::END_POINTS {
            self.report(
                Problem::at(
                    "topology.concentration",
                    format!("{} end points are too many", saturated_count(end_points.into())),
                )
                .expected(format!("up to {} end points", limits::END_POINTS)),
            );
            return None;
        }
        let ports = shape.ports();
        if ports > MOST_PORTS {
            let widest = if topology.concentration.is_some() { "topology.concentration" } else { place };
            self.report(
                Problem::at(widest, format!("{ports} ports a switch are too many")).expected(format!(
                    "up to {MOST_PORTS} ports without the engine: a set of ports is a word of 64 bits"
                )),
            );
            return None;
        }
        if let Shape::Nodes(nodes) = &shape
            && !self.nodes(nodes)
        {
            return None;
        }
        self.latencies(topology, &shape, step);
        Some(Topology { shape, file: topology.file.clone() })
    }

    /// Keys of other topologies.
    fn foreign_topology_keys(&mut self, topology: &TopologyFile) {
        let grid: &[&str] = &["size", "concentration", "latency", "latencies_cycles"];
        let (article, keys): (_, &[&str]) = match topology.kind {
            TopologyKind::Die => ("die", &["tiles", "positions"]),
            TopologyKind::Nodes => {
                let keys =
                    &["size", "sockets", "subnodes", "subnode_links", "tiles", "positions", "hsio_ports", "latency"];
                ("system of nodes", keys)
            }
            TopologyKind::Mesh => ("mesh", &["size", "concentration", "latencies_cycles"]),
            TopologyKind::Torus => ("torus", grid),
            TopologyKind::Hyperx | TopologyKind::FlattenedButterfly => ("hyperx", grid),
            TopologyKind::FatTree => ("fat-tree", &["arity", "levels", "concentration", "latencies_cycles"]),
            TopologyKind::Dragonfly => {
                ("dragonfly", &["global_links", "group_switches", "groups", "concentration", "latencies_cycles"])
            }
            TopologyKind::Tree => ("tree", &["branching", "roots"]),
            TopologyKind::File => ("topology of a file", &["file"]),
        };
        let all = [
            ("tiles", topology.tiles.is_some()),
            ("positions", topology.positions.is_some()),
            ("sockets", topology.sockets.is_some()),
            ("subnodes", topology.subnodes.is_some()),
            ("subnode_links", topology.subnode_links.is_some()),
            ("hsio_ports", topology.hsio_ports.is_some()),
            ("size", topology.size.is_some()),
            ("concentration", topology.concentration.is_some()),
            ("latency", topology.latency.is_some()),
            ("latencies_cycles", topology.latencies_cycles.is_some()),
            ("arity", topology.arity.is_some()),
            ("levels", topology.levels.is_some()),
            ("global_links", topology.global_links.is_some()),
            ("group_switches", topology.group_switches.is_some()),
            ("groups", topology.groups.is_some()),
            ("branching", topology.branching.is_some()),
            ("roots", topology.roots.is_some()),
            ("file", topology.file.is_some()),
        ];
        for (key, _) in all.iter().filter(|(key, given)| *given && !keys.contains(key)) {
            let problem = Problem::at_key(format!("topology.{key}"), format!("a {article} has no `{key}`"));
            self.report(problem.expected(names::one_of(keys.iter().map(|key| format!("`{key}`")))));
        }
        if topology.kind == TopologyKind::Torus || topology.latency != Some(LengthsFile::Folded) {
            return;
        }
        if matches!(topology.kind, TopologyKind::Nodes | TopologyKind::Hyperx | TopologyKind::FlattenedButterfly) {
            let problem = Problem::at("topology.latency", "a hyperx has no rings to fold");
            self.report(problem.expected("\"equal\" or \"distance\""));
        }
    }

    /// The shape of the keys that are given. Sizes may still be too big.
    pub(super) fn shape(&mut self, topology: &TopologyFile, link: &Link) -> Option<Shape> {
        let concentration = |default: u64| topology.concentration.unwrap_or(default) as u16;
        let latencies: Vec<u16> = topology.latencies_cycles.iter().flatten().map(|&cycles| cycles as u16).collect();
        let lengths = match topology.latency {
            None | Some(LengthsFile::Equal) => Lengths::Equal,
            Some(LengthsFile::Distance) => Lengths::Distance,
            Some(LengthsFile::Folded) => Lengths::Folded,
        };
        let wiring = Wiring { latencies, lengths };
        Some(match topology.kind {
            TopologyKind::Die => Shape::Die(Die {
                tiles: topology.tiles.unwrap_or(4) as u16,
                positions: topology.positions.unwrap_or(4) as u16,
            }),
            TopologyKind::Nodes => Shape::Nodes(Nodes {
                size: topology.size.iter().flatten().map(|&side| shape_count(side)).collect(),
                subnodes: self.subnodes(topology, link)?,
                sockets: sockets(topology) as u32,
                die: Die {
                    tiles: topology.tiles.unwrap_or(4) as u16,
                    positions: topology.positions.unwrap_or(4) as u16,
                },
                hsio_ports: topology.hsio_ports.unwrap_or(2) as u16,
                socket_latency: link.socket_latency.map_or(1, |latency| latency.cycles as u16),
                node_latency: link.node_latency.map_or(1, |latency| latency.cycles.min(u64::from(u16::MAX)) as u16),
                socket_width: link.socket_cycles_per_flit.unwrap_or(link.cycles_per_flit) as u16,
                node_width: link.node_cycles_per_flit.unwrap_or(link.cycles_per_flit) as u16,
                distance: lengths == Lengths::Distance,
            }),
            TopologyKind::Mesh | TopologyKind::Torus | TopologyKind::Hyperx | TopologyKind::FlattenedButterfly => {
                self.grid(topology, wiring)?
            }
            TopologyKind::FatTree => {
                let (Some(arity), Some(levels)) = (topology.arity, topology.levels) else {
                    let key = if topology.arity.is_none() { "arity" } else { "levels" };
                    let expected = "a k-ary n-tree by `arity` = k and `levels` = n, for example 4 and 3";
                    self.report(missing(key, "a fat-tree has no default size", expected));
                    return None;
                };
                let concentration = concentration(arity);
                Shape::FatTree(FatTree { arity: arity as u16, levels: levels as u32, concentration, wiring })
            }
            TopologyKind::Dragonfly => {
                let global = topology.global_links.unwrap_or(2);
                let group = topology.group_switches.unwrap_or(2 * global);
                let most = group * global + 1;
                let groups = topology.groups.unwrap_or(most);
                if groups > most {
                    self.report(
                        Problem::at("topology.groups", format!("{groups} groups cannot all be joined"))
                            .expected(format!("up to {most}: a group has {group} x {global} global links")),
                    );
                    return None;
                }
                Shape::Dragonfly(Dragonfly {
                    switches_per_group: shape_count(group),
                    global: shape_count(global),
                    groups: shape_count(groups),
                    concentration: concentration(global),
                    wiring,
                })
            }
            TopologyKind::Tree => {
                let Some(branching) = &topology.branching else {
                    let expected = "children of a switch of each level, the last counts end points: [4, 4]";
                    self.report(missing("branching", "a tree has no default shape", expected));
                    return None;
                };
                Shape::Tree(GenericTree {
                    branching: branching.iter().map(|&b| b as u16).collect(),
                    roots: topology.roots.unwrap_or(1) as u16,
                })
            }
            TopologyKind::File => {
                let Some(graph) = &self.graph else {
                    self.report(missing(
                        "file",
                        "a topology of a file needs its name",
                        "a TOML file of switches and links",
                    ));
                    return None;
                };
                Shape::Graph(Arc::clone(graph))
            }
        })
    }

    /// How the sockets of a node are divided.
    fn subnodes(&mut self, topology: &TopologyFile, link: &Link) -> Option<Subnodes> {
        let (count, sockets) = (topology.subnodes.unwrap_or(1), sockets(topology));
        if !sockets.is_multiple_of(count) {
            let place = if topology.sockets.is_some() { "topology.sockets" } else { "topology.subnodes" };
            let message = format!("{sockets} sockets cannot be divided into {count} equal subnodes");
            self.report(Problem::at(place, message).expected(format!("a multiple of {count}")));
            return None;
        }
        if count == 1 {
            for key in ["topology.subnode_links", "link.subnode"] {
                if self.source.has(key) {
                    let problem = Problem::at_key(key, "a node without subnodes has no such links");
                    self.report(problem.expected("`topology.subnodes` = 2 or more"));
                }
            }
            return Some(Subnodes::default());
        }
        let (latency, width) = link.subnode.map_or((1, 1), |link| (link.latency.cycles, link.cycles_per_flit));
        let links = topology.subnode_links.unwrap_or(sockets / count) as u32;
        Some(Subnodes { count: count as u32, links, latency: latency as u16, width: width as u16 })
    }

    /// Switches along dimensions.
    fn grid(&mut self, topology: &TopologyFile, wiring: Wiring) -> Option<Shape> {
        let Some(given) = &topology.size else {
            let what = format!("a {} has no default size", topology.kind.name());
            self.report(missing("size", &what, "the switches along each dimension, for example [4, 4]"));
            return None;
        };
        let size: Vec<u32> = given.iter().map(|&side| shape_count(side)).collect();
        let concentration = topology.concentration.unwrap_or(1) as u16;
        if topology.kind == TopologyKind::Torus
            && let Some(at) = given.iter().position(|&side| side > u64::from(u16::MAX))
            && given.iter().all(|&side| side <= limits::SWITCHES)
        {
            let problem = Problem::at(format!("topology.size[{at}]"), "a ring cannot be so long");
            self.report(problem.expected(format!("up to {} switches a ring", u16::MAX)));
            return None;
        }
        Some(match topology.kind {
            TopologyKind::Mesh => Shape::Mesh(Mesh { size, concentration }, wiring),
            TopologyKind::Torus => Shape::Torus(Torus { size, concentration, wiring }),
            _ => Shape::HyperX(HyperX { size, concentration, wiring }),
        })
    }

    /// Whether latencies are as many as there are kinds of links, and no longer than a link can be.
    fn latencies(&mut self, topology: &TopologyFile, shape: &Shape, step: u64) {
        let (kinds, what, wiring, sides): (usize, _, _, &[u32]) = match shape {
            Shape::Mesh(mesh, wiring) => (mesh.size.len(), "dimensions", wiring, &mesh.size),
            Shape::Torus(torus) => (torus.size.len(), "dimensions", &torus.wiring, &torus.size),
            Shape::HyperX(hyperx) => (hyperx.size.len(), "dimensions", &hyperx.wiring, &hyperx.size),
            Shape::FatTree(tree) => (tree.levels as usize - 1, "levels above the leaves", &tree.wiring, &[]),
            Shape::Dragonfly(dragonfly) => (2, "kinds of links, in and between groups,", &dragonfly.wiring, &[]),
            Shape::Die(_) | Shape::Nodes(_) | Shape::Tree(_) | Shape::Graph(_) => return,
        };
        if let Some(list) = &topology.latencies_cycles
            && list.len() != kinds
        {
            let message = format!("{} latencies for {kinds} {what}", list.len());
            self.report(
                Problem::at("topology.latencies_cycles", message.trim_end_matches(',')).expected("one for each"),
            );
        }
        let longest = wiring.longest(step, sides);
        if longest > MAX_LATENCY && step <= MAX_LATENCY {
            self.report(
                Problem::at("topology.latency", format!("the longest link takes {longest} cycles, too many"))
                    .expected(format!("up to {MAX_LATENCY} cycles")),
            );
        }
    }

    /// Whether the ports that leave the dies of a node suffice (requirement P-TOPO-4), and no link is too long.
    pub(super) fn nodes(&mut self, nodes: &Nodes) -> bool {
        let budget = nodes.budget();
        if !budget.suffices {
            let place =
                if self.source.has("topology.size") && budget.nodes > 0 { "topology.size" } else { "topology.sockets" };
            let inside = budget.sockets + budget.subnodes;
            let free = budget.ports.saturating_sub(inside);
            let message = format!(
                "a node would need {} HSIO ports for other nodes and {inside} for its sockets, it has {}",
                budget.nodes, budget.ports
            );
            let expected = if budget.subnodes > 0 {
                "fewer sockets, `topology.subnode_links` or nodes, or more `topology.hsio_ports`".to_owned()
            } else if budget.ports < budget.sockets {
                format!("up to {} sockets, or more `topology.hsio_ports`", budget.ports / u64::from(nodes.sockets) + 1)
            } else {
                format!("sides whose sum is at most {}, or more `topology.hsio_ports`", free + nodes.size.len() as u64)
            };
            self.report(Problem::at(place, message).expected(expected));
            return false;
        }
        // One that is too long by itself has been told.
        if nodes.longest() > MAX_LATENCY && u64::from(nodes.node_latency) <= MAX_LATENCY {
            self.report(
                Problem::at("topology.latency", format!("the longest link takes {} cycles, too many", nodes.longest()))
                    .expected(format!("up to {MAX_LATENCY} cycles")),
            );
        }
        true
    }

    /// Latencies of links that a topology does not have.
    pub(super) fn foreign_link_keys(&mut self, file: &ScenarioFile) {
        if file.topology.kind == TopologyKind::Nodes {
            return;
        }
        let keys = ["latency_ns", "latency_cycles", "width_bits", "cycles_per_flit"];
        let levels = ["socket", "node"].iter().flat_map(|level| keys.map(|key| format!("{level}_{key}")));
        for key in levels.chain(["subnode".to_owned()]) {
            let path = format!("link.{key}");
            if self.source.has(&path) {
                let kind = file.topology.kind.name();
                let problem = Problem::at_key(path, format!("the topology \"{kind}\" has no such links"));
                self.report(problem.expected("the topology \"nodes\""));
            }
        }
    }

    pub(super) fn routing(&mut self, file: &ScenarioFile, shape: &Shape) -> Option<config::Routing> {
        let given = file.routing.algorithm.map(|algorithm| match algorithm {
            AlgorithmFile::DimensionOrder => Algorithm::DimensionOrder,
            AlgorithmFile::MinimalRandom => Algorithm::MinimalRandom,
            AlgorithmFile::Valiant => Algorithm::Valiant,
            AlgorithmFile::Adaptive => Algorithm::Adaptive,
        });
        if file.family != Family::Fabric {
            if self.source.has("routing") {
                self.report(
                    Problem::at_key("routing", "`routing` can be chosen in a plain fabric only")
                        .help("packets beside collectives go in dimension order"),
                );
            }
            return None;
        }
        let all = Algorithm::of(shape);
        let algorithm = given.unwrap_or(all[0]);
        if !all.contains(&algorithm) {
            let kind = file.topology.kind.name();
            self.report(
                Problem::at(
                    "routing.algorithm",
                    format!("there is no {} routing for the topology \"{kind}\"", algorithm.name()),
                )
                .expected(names::one_of(all.iter().map(|algorithm| format!("\"{}\"", algorithm.name())))),
            );
        }
        Some(config::Routing { algorithm })
    }
}

/// A key that a shape needs.
fn missing(key: &str, what: &str, expected: &str) -> Problem {
    Problem::at(format!("topology.{key}"), format!("`topology.{key}` is missing: {what}")).expected(expected)
}

/// A count for a shape, which refuses the largest.
fn shape_count(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl Serialize for Topology {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        fn wiring<M: SerializeMap>(map: &mut M, wiring: &Wiring, lengths: bool) -> Result<(), M::Error> {
            if lengths {
                let word = match wiring.lengths {
                    Lengths::Equal => "equal",
                    Lengths::Distance => "distance",
                    Lengths::Folded => "folded",
                };
                map.serialize_entry("latency", word)?;
            }
            if !wiring.latencies.is_empty() {
                map.serialize_entry("latencies_cycles", &wiring.latencies)?;
            }
            Ok(())
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.shape.kind())?;
        match &self.shape {
            Shape::Die(die) => {
                map.serialize_entry("tiles", &die.tiles)?;
                map.serialize_entry("positions", &die.positions)?;
            }
            Shape::Nodes(nodes) => {
                map.serialize_entry("size", &nodes.size)?;
                map.serialize_entry("sockets", &nodes.sockets)?;
                if nodes.subnodes.count > 1 {
                    map.serialize_entry("subnodes", &nodes.subnodes.count)?;
                    map.serialize_entry("subnode_links", &nodes.subnodes.links)?;
                }
                map.serialize_entry("tiles", &nodes.die.tiles)?;
                map.serialize_entry("positions", &nodes.die.positions)?;
                map.serialize_entry("hsio_ports", &nodes.hsio_ports)?;
                map.serialize_entry("latency", if nodes.distance { "distance" } else { "equal" })?;
            }
            Shape::Mesh(mesh, of) => {
                map.serialize_entry("size", &mesh.size)?;
                map.serialize_entry("concentration", &mesh.concentration)?;
                wiring(&mut map, of, false)?;
            }
            Shape::Torus(Torus { size, concentration, wiring: of })
            | Shape::HyperX(HyperX { size, concentration, wiring: of }) => {
                map.serialize_entry("size", size)?;
                map.serialize_entry("concentration", concentration)?;
                wiring(&mut map, of, true)?;
            }
            Shape::FatTree(tree) => {
                map.serialize_entry("arity", &tree.arity)?;
                map.serialize_entry("levels", &tree.levels)?;
                map.serialize_entry("concentration", &tree.concentration)?;
                wiring(&mut map, &tree.wiring, false)?;
            }
            Shape::Dragonfly(dragonfly) => {
                map.serialize_entry("group_switches", &dragonfly.switches_per_group)?;
                map.serialize_entry("global_links", &dragonfly.global)?;
                map.serialize_entry("groups", &dragonfly.groups)?;
                map.serialize_entry("concentration", &dragonfly.concentration)?;
                wiring(&mut map, &dragonfly.wiring, false)?;
            }
            Shape::Tree(tree) => {
                map.serialize_entry("branching", &tree.branching)?;
                map.serialize_entry("roots", &tree.roots)?;
            }
            Shape::Graph(_) => map.serialize_entry("file", &self.file)?,
        }
        map.end()
    }
}
