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

use super::site::join;
use super::{Common, EndPlace, LinkParams, Site};
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

impl Graph {
    /// Ports of a switch: enough for the widest.
    pub fn ports(&self) -> u16 {
        let links = self.links.iter().flat_map(|link| [link.a.1, link.b.1]);
        let ends = self.ends.iter().map(|end| end.place.port);
        links.chain(ends).max().map_or(1, |port| port + 1)
    }

    /// Its switches, links and end points.
    pub fn site(&self, common: &Common) -> Site {
        let external = self.ports();
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
