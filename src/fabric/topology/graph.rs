//! A topology read from a file of switches, links and end points.
//!
//! Ports are as the file says; every switch has as many as the widest one needs, and those without a link are free. This
//! block takes a description that is sound: the reader of the file checks names, ports and connection.
//!
//! | parameter | unit | effect on cycles |
//! |---|---|---|
//! | [`GraphLink::latency`], [`GraphLink::cycles_per_flit`], [`GraphEnd::latency`] | cycles | latency and width of this link; those of the system where a link names none |
//!
//! Limitations: routes follow shortest paths in hops, whatever the latencies; the table of distances grows with the square
//! of the number of switches.

use std::sync::Arc;

use super::rule::Reader;
use super::site::join;
use super::{Common, Complaint, EndPlace, LinkParams, Parameter, Shape, Site, Topology, TopologyKind};
use crate::{NodeKind, Plan, PlanNode};

/// A switch of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphSwitch {
    /// Its name.
    pub name: String,
}

/// A link of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphLink {
    /// One end: switch and port.
    pub a: (u32, u16),
    /// The other end.
    pub b: (u32, u16),
    /// Latency and width, if its own.
    pub latency: Option<u16>,
    /// Cycles a flit keeps it busy, if its own.
    pub cycles_per_flit: Option<u16>,
    /// Level, an index into [`Graph::levels`].
    pub level: u8,
}

/// An end point of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphEnd {
    /// Its name.
    pub name: String,
    /// Where it attaches.
    pub place: EndPlace,
    /// Latency of its link, if its own.
    pub latency: Option<u16>,
}

/// A topology of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The switches.
    pub switches: Vec<GraphSwitch>,
    /// The links between them.
    pub links: Vec<GraphLink>,
    /// The end points.
    pub ends: Vec<GraphEnd>,
    /// Names of the levels; the first is that of the end points' links.
    pub levels: Vec<String>,
}

impl Topology for Graph {
    fn kind(&self) -> TopologyKind {
        TopologyKind::File
    }

    fn switches(&self) -> Option<u64> {
        Some(self.switches.len() as u64)
    }

    fn end_points(&self) -> Option<u64> {
        Some(self.ends.len() as u64)
    }

    /// Enough for the widest.
    fn ports(&self) -> u32 {
        let links = self.links.iter().flat_map(|link| [link.a.1, link.b.1]);
        let ends = self.ends.iter().map(|end| end.place.port);
        links.chain(ends).max().map_or(1, |port| u32::from(port) + 1)
    }

    fn switch_name(&self, switch: u32) -> String {
        self.switches[switch as usize].name.clone()
    }

    fn switch_by_numbers(&self, name: &str, _: &[u64]) -> Option<u64> {
        self.switches.iter().position(|switch| switch.name == name).map(|at| at as u64)
    }

    fn end_place(&self, end: u32) -> EndPlace {
        self.ends[end as usize].place
    }

    fn describe(&self) -> String {
        format!("{} switches of a file", self.switches.len())
    }

    /// All of them on a circle.
    fn position(&self, switch: u32) -> (f64, f64) {
        let count = self.switches.len().max(1) as f64;
        let radius = (count / 4.0).max(1.5);
        let angle = f64::from(switch) / count * std::f64::consts::TAU;
        (radius - radius * angle.cos(), radius + radius * angle.sin())
    }

    /// None: who read the file knows its name.
    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        Vec::new()
    }

    fn site(&self, common: &Common) -> Site {
        let external = u16::try_from(self.ports()).expect("scenario checks bound the ports");
        let node = |switch: &GraphSwitch| PlanNode {
            kind: NodeKind::Switch,
            ports: external + u16::from(common.engine),
            engine: common.engine,
            name: switch.name.clone(),
            path: format!("net.{}.switch", switch.name),
        };
        let link = |link: &GraphLink| {
            let params = LinkParams {
                latency: link.latency.unwrap_or(common.link.latency),
                cycles_per_flit: link.cycles_per_flit.unwrap_or(common.link.cycles_per_flit),
            };
            join(link.a, link.b, params, link.level)
        };
        let plan = Plan {
            vcs: common.vcs,
            nodes: self.switches.iter().map(node).collect(),
            links: self.links.iter().map(link).collect(),
            levels: self.levels.clone(),
        };
        let mut site = Site::new(plan, self.ends.len(), external);
        for end in &self.ends {
            let local = LinkParams { latency: end.latency.unwrap_or(common.local.latency), ..common.local };
            let path = format!("net.{}", end.name);
            site.push_end(end.place, local, end.name.clone(), path);
        }
        site
    }
}

/// How a topology of a file is read, when its file has been.
pub(super) const READER: Reader = Reader {
    called: "topology of a file",
    keys: &["file"],
    sized_by: |_| "file",
    read: |_, around, complaints| {
        let Some(graph) = around.graph else {
            let what = "a topology of a file needs its name";
            complaints.push(Complaint::missing("file", what, "a TOML file of switches and links"));
            return None;
        };
        Some(Shape::Graph(Arc::clone(graph)))
    },
};
