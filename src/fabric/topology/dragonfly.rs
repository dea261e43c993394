//! Dragonfly: groups of switches, all-to-all within a group, and all-to-all between groups over global links.
//!
//! | port | what |
//! |---|---|
//! | 0 to a - 2 | the other switches of the group, in order, own place skipped |
//! | a - 1 to a + h - 2 | global links |
//! | then `concentration` ports | the end points |
//! | the last, if switches have an engine | the engine |
//!
//! A switch is named `g<group>_<number in its group>`.
//!
//! The arrangement of global links is the "absolute" one *chosen*. The global ports of a group are counted through its
//! switches, c = switch x h + port. Port c of a group leads to the (c mod (g - 1))-th other group, own group skipped.
//! With g - 1 = a h every pair of groups has one link; with fewer groups floor(a h / (g - 1)) links, and global ports
//! that do not go into whole rounds stay free. The k-th link from group A to group B meets the k-th from B to A.
//!
//! | parameter | unit | range | effect on cycles | effect on storage |
//! |---|---|---|---|---|
//! | `switches_per_group`, a | switches | from 1 | balanced: 2h | a - 1 ports |
//! | `global`, h | ports | from 1 | global bandwidth | a port each |
//! | `groups`, g | groups | 1 to a h + 1 | fewer groups have several links to each other | a switches each |
//! | `concentration`, p | end points a switch | from 1; balanced: h | shared links | a port each |
//! | `wiring` | cycles | two latencies: in a group, between groups | | |

use super::rule::Reader;
use super::site::join;
use super::{Common, Complaint, EndPlace, Parameter, Shape, Site, Topology, TopologyKind, Wiring, shape_count};
use crate::routing::Algorithm;
use crate::{NodeKind, Plan, PlanNode};

/// A dragonfly's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dragonfly {
    /// Switches of a group, a.
    pub switches_per_group: u32,
    /// Global ports of a switch, h.
    pub global: u32,
    /// Groups, g: at most a h + 1.
    pub groups: u32,
    /// End points of a switch, p.
    pub concentration: u16,
    /// Latencies: links in a group, links between groups.
    pub wiring: Wiring,
}

impl Dragonfly {
    /// The balanced dragonfly of h global ports a switch: a = 2h, p = h, g = a h + 1.
    pub fn balanced(global: u32) -> Dragonfly {
        let switches_per_group = 2 * global;
        let groups = switches_per_group * global + 1;
        Dragonfly { switches_per_group, global, groups, concentration: global as u16, wiring: Wiring::default() }
    }

    /// The first port of an end point.
    pub fn first_local_port(&self) -> u32 {
        self.switches_per_group - 1 + self.global
    }

    /// Global links between a pair of groups.
    pub fn links_of_a_pair(&self) -> u32 {
        if self.groups < 2 { 0 } else { self.switches_per_group * self.global / (self.groups - 1) }
    }

    /// The global port (switch of the group, port) of the `copy`-th link from group `from` to group `to`.
    pub fn gate(&self, from: u32, to: u32, copy: u32) -> (u32, u16) {
        let channel = copy * (self.groups - 1) + to - u32::from(to > from);
        (channel / self.global, (self.switches_per_group - 1 + channel % self.global) as u16)
    }
}

impl Topology for Dragonfly {
    fn kind(&self) -> TopologyKind {
        TopologyKind::Dragonfly
    }

    fn switches(&self) -> Option<u64> {
        Some(u64::from(self.switches_per_group) * u64::from(self.groups))
    }

    fn end_points(&self) -> Option<u64> {
        self.switches()?.checked_mul(self.concentration.into())
    }

    fn ports(&self) -> u32 {
        self.first_local_port() + u32::from(self.concentration)
    }

    fn switch_name(&self, switch: u32) -> String {
        format!("g{}_{}", switch / self.switches_per_group, switch % self.switches_per_group)
    }

    fn switch_by_numbers(&self, _: &str, numbers: &[u64]) -> Option<u64> {
        let [group, number] = *numbers else { return None };
        group.checked_mul(u64::from(self.switches_per_group))?.checked_add(number)
    }

    fn smaller(&self) -> Option<Shape> {
        let full = self.groups == self.switches_per_group * self.global + 1;
        let (a, h) = if self.switches_per_group > 2 {
            (self.switches_per_group - 1, self.global)
        } else if self.global > 1 {
            (self.switches_per_group, self.global - 1)
        } else {
            return None;
        };
        let groups = if full { a * h + 1 } else { self.groups.min(a * h + 1) };
        Some(Shape::Dragonfly(Dragonfly { switches_per_group: a, global: h, groups, ..self.clone() }))
    }

    /// Groups on a circle, the switches of a group on a small one.
    fn position(&self, switch: u32) -> (f64, f64) {
        let a = f64::from(self.switches_per_group);
        let (group, number) = (switch / self.switches_per_group, f64::from(switch % self.switches_per_group));
        let small = if self.switches_per_group == 1 { 0.0 } else { (a / 5.0).max(0.8) };
        let large = (f64::from(self.groups) * (small + 1.0) / std::f64::consts::PI).max(small + 1.0);
        let angle = f64::from(group) / f64::from(self.groups) * std::f64::consts::TAU;
        let inner = angle + number / a * std::f64::consts::TAU;
        let middle = large + small;
        (middle + large * angle.cos() + small * inner.cos(), middle + large * angle.sin() + small * inner.sin())
    }

    fn end_place(&self, end: u32) -> EndPlace {
        EndPlace::on_equal_switches(end, self.concentration, self.first_local_port())
    }

    fn describe(&self) -> String {
        let Dragonfly { groups, switches_per_group, global, .. } = self;
        format!("dragonfly of {groups} groups x {switches_per_group} switches, {global} global links each")
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let own: [(_, Parameter); 4] = [
            ("group_switches", self.switches_per_group.into()),
            ("global_links", self.global.into()),
            ("groups", self.groups.into()),
            ("concentration", self.concentration.into()),
        ];
        own.into_iter().chain(self.wiring.parameters(false)).collect()
    }

    fn algorithms(&self) -> &'static [Algorithm] {
        &[Algorithm::MinimalRandom, Algorithm::Valiant, Algorithm::Adaptive]
    }

    fn latency_kinds(&self) -> Option<(usize, &'static str)> {
        Some((2, "kinds of links, in and between groups"))
    }

    fn longest_link(&self, step: u64) -> (u64, u64) {
        (self.wiring.longest(step, &[]), step)
    }

    fn site(&self, common: &Common) -> Site {
        let Dragonfly { switches_per_group: a, groups, concentration, .. } = *self;
        let switches = self.switches().and_then(|n| u32::try_from(n).ok()).expect("scenario checks bound the size");
        let first_local = self.first_local_port() as u16;
        let external = first_local + concentration;
        let nodes = (0..switches)
            .map(|switch| {
                let name = self.switch_name(switch);
                let path = format!("dragonfly.group{}.{name}.switch", switch / a);
                let ports = external + u16::from(common.engine);
                PlanNode { kind: NodeKind::Switch, ports, engine: common.engine, name, path }
            })
            .collect();
        let mut links = Vec::new();
        let (near, far) = (self.wiring.link(common, 0, 1), self.wiring.link(common, 1, 1));
        for group in 0..groups {
            for one in 0..a {
                for other in one + 1..a {
                    let ends = ((group * a + one, (other - 1) as u16), (group * a + other, one as u16));
                    links.push(join(ends.0, ends.1, near, 1));
                }
            }
            for to in group + 1..groups {
                for copy in 0..self.links_of_a_pair() {
                    let (out, back) = (self.gate(group, to, copy), self.gate(to, group, copy));
                    links.push(join((group * a + out.0, out.1), (to * a + back.0, back.1), far, 2));
                }
            }
        }
        let levels = ["local", "group", "global"].map(String::from).to_vec();
        let cores = switches as usize * usize::from(concentration);
        let mut site = Site::new(Plan { vcs: common.vcs, nodes, links, levels }, cores, external);
        site.populate(switches, first_local, concentration, common.local);
        site
    }
}

/// How a dragonfly is read.
pub(super) const READER: Reader = Reader {
    called: "dragonfly",
    keys: &["global_links", "group_switches", "groups", "concentration", "latencies_cycles"],
    sized_by: |_| "groups",
    read: |given, _, complaints| {
        let global = given.global_links.unwrap_or(2);
        let group = given.group_switches.unwrap_or(2 * global);
        let most = group * global + 1;
        let groups = given.groups.unwrap_or(most);
        if groups > most {
            let expected = format!("up to {most}: a group has {group} x {global} global links");
            complaints.push(Complaint::at(
                "topology.groups",
                format!("{groups} groups cannot all be joined"),
                expected,
            ));
            return None;
        }
        Some(Shape::Dragonfly(Dragonfly {
            switches_per_group: shape_count(group),
            global: shape_count(global),
            groups: shape_count(groups),
            concentration: given.end_points_a_switch(global),
            wiring: given.wiring(),
        }))
    },
};
