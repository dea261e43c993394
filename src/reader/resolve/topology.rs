//! `[topology]` and `[routing]`: the shape, its lengths, and the links that only some shapes have.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{MAX_LATENCY, MOST_PORTS, Resolver, saturated_count};
use crate::config::{self, Latency, Link, Topology};
use crate::file::{Family, ScenarioFile, TopologyFile, TopologyKind};
use crate::problem::Problem;
use crate::{limits, link, names};
use watershed_fabric::topology::{Complaint, LinkParams, Shape, Surroundings};

impl Resolver<'_> {
    pub fn topology(&mut self, file: &ScenarioFile, link: &Link) -> Option<Topology> {
        let topology = &file.topology;
        self.foreign_topology_keys(topology);
        let shape = self.shape(file, link)?;
        let place = format!("topology.{}", topology.sized_by());
        // Sizes that are given are multiplied in more bits than a number of switches has.
        let product = |factors: &[u64]| factors.iter().fold(1u128, |all, &one| all.saturating_mul(u128::from(one)));
        let switches = match (&topology.size, shape.grid()) {
            (Some(size), Some(_)) => product(size),
            _ => shape.switches().map_or(u128::MAX, u128::from),
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
            let widest = if topology.concentration.is_some() { "topology.concentration" } else { &place };
            self.report(
                Problem::at(widest, format!("{ports} ports a switch are too many")).expected(format!(
                    "up to {MOST_PORTS} ports without the engine: a set of ports is a word of 64 bits"
                )),
            );
            return None;
        }
        if let Some(fault) = shape.fault(topology) {
            self.complain(fault);
            return None;
        }
        self.latencies(topology, &shape, link.latency.cycles);
        Some(Topology { shape, file: topology.file.clone() })
    }

    /// Reports what a topology finds wrong with itself.
    fn complain(&mut self, complaint: Complaint) {
        let Complaint { path, of_key, message, expected } = complaint;
        let problem = if of_key { Problem::at_key(path, message) } else { Problem::at(path, message) };
        self.report(problem.expected(expected));
    }

    /// Keys of other topologies.
    fn foreign_topology_keys(&mut self, topology: &TopologyFile) {
        let given = serde_json::to_value(topology).expect("a table of plain values");
        let keys = topology.keys();
        let others = given.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
        for key in others.filter(|key| *key != "kind" && !keys.contains(key)) {
            let problem = Problem::at_key(format!("topology.{key}"), format!("a {} has no `{key}`", topology.called()));
            self.report(problem.expected(names::one_of(keys.iter().map(|key| format!("`{key}`")))));
        }
    }

    /// The shape of the keys that are given. Sizes may still be too big.
    fn shape(&mut self, file: &ScenarioFile, link: &Link) -> Option<Shape> {
        let cycles = |cycles: u64| cycles.min(u64::from(u16::MAX)) as u16;
        let params = |latency: Option<Latency>, cycles_per_flit: Option<u32>| LinkParams {
            latency: latency.map_or(1, |latency| cycles(latency.cycles)),
            cycles_per_flit: cycles_per_flit.unwrap_or(link.cycles_per_flit) as u16,
        };
        let subnode = |link: link::SubnodeLink| params(Some(link.latency), Some(link.cycles_per_flit));
        let graph = self.graph.clone();
        let around = Surroundings {
            socket: params(link.socket_latency, link.socket_cycles_per_flit),
            node: params(link.node_latency, link.node_cycles_per_flit),
            subnode: link.subnode.map(subnode),
            subnode_table: file.link.subnode.is_some(),
            graph: graph.as_ref(),
            most_switches: limits::SWITCHES,
        };
        let (shape, complaints) = file.topology.shape(&around);
        for complaint in complaints {
            self.complain(complaint);
        }
        shape
    }

    /// Whether latencies are as many as there are kinds of links, and no longer than a link can be.
    fn latencies(&mut self, topology: &TopologyFile, shape: &Shape, step: u64) {
        if let (Some(list), Some((kinds, what))) = (&topology.latencies_cycles, shape.latency_kinds())
            && list.len() != kinds
        {
            let message = format!("{} latencies for {kinds} {what}", list.len());
            self.report(Problem::at("topology.latencies_cycles", message).expected("one for each"));
        }
        // A step that is too long by itself has been told.
        let (longest, step) = shape.longest_link(step);
        if longest > MAX_LATENCY && step <= MAX_LATENCY {
            self.report(
                Problem::at("topology.latency", format!("the longest link takes {longest} cycles, too many"))
                    .expected(format!("up to {MAX_LATENCY} cycles")),
            );
        }
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

    pub fn routing(&mut self, file: &ScenarioFile, shape: &Shape) -> Option<config::Routing> {
        if file.family != Family::Fabric {
            if self.source.has("routing") {
                self.report(
                    Problem::at_key("routing", "`routing` can be chosen in a plain fabric only")
                        .help(format!("packets beside collectives take {} routing", shape.algorithms()[0].name())),
                );
            }
            return None;
        }
        let all = shape.algorithms();
        let algorithm = file.routing.algorithm.unwrap_or(all[0]);
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

impl Serialize for Topology {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.shape.kind().name())?;
        for (key, value) in self.shape.parameters() {
            map.serialize_entry(key, &value)?;
        }
        if let Some(file) = &self.file {
            map.serialize_entry("file", file)?;
        }
        map.end()
    }
}
