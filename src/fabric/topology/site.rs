//! What a topology lays out, and the parameters that all topologies share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Parameter;
use crate::{NodeKind, Plan, PlanLink, PlanNode, Vcs};

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

/// How the latencies of links follow from that of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lengths {
    /// The same for all links of a dimension.
    #[default]
    Equal,
    /// The latency of a step times the switches it spans in its row.
    Distance,
    /// Twice the latency of a step: a torus that is folded to have no long links.
    Folded,
}

impl Lengths {
    /// Its word in a scenario.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Lengths::Equal => "equal",
            Lengths::Distance => "distance",
            Lengths::Folded => "folded",
        }
    }
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
    pub(super) fn link(&self, common: &Common, dimension: usize, steps: u32) -> LinkParams {
        let step = self.latencies.get(dimension).copied().unwrap_or(common.link.latency);
        let times = match self.lengths {
            Lengths::Equal => 1,
            Lengths::Distance => steps.max(1),
            Lengths::Folded => 2,
        };
        let latency = u16::try_from(u32::from(step).saturating_mul(times)).unwrap_or(u16::MAX);
        LinkParams { latency, ..common.link }
    }

    /// Its keys with their values, as a document shows them; lengths where a topology has that key.
    pub(super) fn parameters(&self, lengths: bool) -> impl Iterator<Item = (&'static str, Parameter)> {
        let word = lengths.then(|| ("latency", self.lengths.name().into()));
        let list = (!self.latencies.is_empty()).then(|| ("latencies_cycles", self.latencies[..].into()));
        word.into_iter().chain(list)
    }

    /// The longest latency that results, before it is cut to what a link can have.
    pub(super) fn longest(&self, step: u64, sides: &[u32]) -> u64 {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, watershed_state::Saved)]
pub struct EndPlace {
    /// The switch.
    pub switch: u32,
    /// Its port.
    pub port: u16,
}

impl EndPlace {
    /// That of an end point where all switches have `concentration` of them, from port `first` on.
    pub(super) fn on_equal_switches(end: u32, concentration: u16, first: u32) -> EndPlace {
        let (switch, local) = (end / u32::from(concentration), end % u32::from(concentration));
        EndPlace { switch, port: (first + local) as u16 }
    }
}

/// Switches, links and end points of a topology; how packets find their way is no part of it.
#[derive(Clone, Debug)]
pub struct Site {
    /// Nodes and links.
    pub plan: Plan,
    /// Place of every end point, in their order.
    pub ends: Vec<EndPlace>,
    /// How many of the end points are cores.
    pub cores: usize,
    /// External ports of a switch, the engine port not counted.
    pub external_ports: u16,
}

impl Site {
    /// Switches and links, to which end points are added.
    pub(super) fn new(plan: Plan, cores: usize, external_ports: u16) -> Site {
        Site { plan, ends: Vec::new(), cores, external_ports }
    }

    /// Adds `concentration` end points to each of the first `switches` switches, from port `first` on.
    pub(super) fn populate(&mut self, switches: u32, first: u16, concentration: u16, local: LinkParams) {
        for switch in 0..switches {
            for end in 0..concentration {
                let node = &self.plan.nodes[switch as usize];
                let leaf = if concentration == 1 { "node".to_string() } else { format!("node{end}") };
                let name = format!("{}.{leaf}", node.name);
                let path = format!("{}.{leaf}", node.path.strip_suffix(".switch").unwrap_or(&node.path));
                self.push_end(EndPlace { switch, port: first + end }, local, name, path);
            }
        }
    }

    /// Adds an end point.
    pub(super) fn push_end(&mut self, place: EndPlace, local: LinkParams, name: String, path: String) {
        push_end(&mut self.plan, &mut self.ends, place, (local, name, path));
    }
}

/// Adds an end point with its link, its name and its path; returns the number of its node.
pub(super) fn push_end(
    plan: &mut Plan,
    ends: &mut Vec<EndPlace>,
    place: EndPlace,
    (local, name, path): (LinkParams, String, String),
) -> u32 {
    let node = plan.nodes.len() as u32;
    plan.nodes.push(PlanNode { kind: NodeKind::End, ports: 1, engine: false, name, path });
    plan.links.push(join((node, 0), (place.switch, place.port), local, 0));
    ends.push(place);
    node
}

/// A link between two switches.
pub(super) fn join(a: (u32, u16), b: (u32, u16), params: LinkParams, level: u8) -> PlanLink {
    PlanLink { a, b, latency: params.latency, cycles_per_flit: params.cycles_per_flit, level }
}
