//! K-ary n-tree: a fat tree of n levels of k^(n-1) switches with k ports down and k ports up.
//!
//! ```text
//!   2-ary 3-tree    level 2   t2_0   t2_1   t2_2   t2_3      tops: their up ports are free
//!                              │ ╲___╱ │  …
//!                   level 1   t1_0   t1_1   t1_2   t1_3
//!                              │ ╲ ╱ │     │ ╲ ╱ │
//!                   level 0   t0_0   t0_1   t0_2   t0_3      leaves: their down ports have the end points
//! ```
//!
//! The number of a switch within its level has n - 1 digits of base k. Up port j of switch w of level l leads to the
//! switch of level l + 1 whose number is w with digit l (the lowest is digit 0) replaced by j. It enters that switch at
//! the down port given by digit l of w. So a switch reaches all leaves below it that share its digits from l on. Every
//! shortest path between two leaves goes up to the first level at which they agree, and down again.
//!
//! | port | what |
//! |---|---|
//! | 0 to k - 1 | down; on level 0 the first `concentration` ports have the end points |
//! | d to d + k - 1, d the larger of k and `concentration` | up; free on the highest level |
//! | the last, if switches have an engine | the engine |
//!
//! A switch is named `t<level>_<number>`; switches are numbered level by level from the leaves.
//!
//! | parameter | unit | range | effect on cycles | effect on storage |
//! |---|---|---|---|---|
//! | `arity` | ports up and down | from 1 | fewer levels for the same end points | 2 ports each |
//! | `levels` | levels | from 1 | up to 2 (levels - 1) hops | k^(n-1) switches each |
//! | `concentration` | end points a leaf | from 1; k is full bisection | more share the up ports | a port each |

use super::rule::Reader;
use super::site::join;
use super::{Common, Complaint, EndPlace, Parameter, Shape, Site, Topology, TopologyKind, Wiring};
use crate::{NodeKind, Plan, PlanNode};

/// A k-ary n-tree's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FatTree {
    /// Ports down and up, k.
    pub arity: u16,
    /// Levels of switches, n.
    pub levels: u32,
    /// End points of a leaf switch.
    pub concentration: u16,
    /// Latencies: one for each level above the leaves.
    pub wiring: Wiring,
}

impl FatTree {
    /// Switches of a level, or `None` if that overflows.
    pub fn leaves(&self) -> Option<u64> {
        u64::from(self.arity).checked_pow(self.levels - 1)
    }

    /// Ports downwards of a switch.
    pub fn down(&self) -> u16 {
        self.arity.max(self.concentration)
    }
}

impl Topology for FatTree {
    fn kind(&self) -> TopologyKind {
        TopologyKind::FatTree
    }

    fn switches(&self) -> Option<u64> {
        self.leaves()?.checked_mul(u64::from(self.levels))
    }

    fn end_points(&self) -> Option<u64> {
        self.leaves()?.checked_mul(u64::from(self.concentration))
    }

    fn ports(&self) -> u32 {
        u32::from(self.down()) + u32::from(self.arity)
    }

    fn switch_name(&self, switch: u32) -> String {
        let leaves = self.leaves().expect("scenario checks bound the size") as u32;
        format!("t{}_{}", switch / leaves, switch % leaves)
    }

    fn switch_by_numbers(&self, _: &str, numbers: &[u64]) -> Option<u64> {
        let [level, number] = *numbers else { return None };
        level.checked_mul(self.leaves()?)?.checked_add(number)
    }

    fn position(&self, switch: u32) -> (f64, f64) {
        let leaves = self.leaves().expect("scenario checks bound the size") as u32;
        (f64::from(switch % leaves) * 1.4, f64::from(self.levels - 1 - switch / leaves) * 1.8)
    }

    fn end_place(&self, end: u32) -> EndPlace {
        EndPlace::on_equal_switches(end, self.concentration, 0)
    }

    fn describe(&self) -> String {
        format!("{}-ary {}-tree", self.arity, self.levels)
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let own: [(_, Parameter); 3] = [
            ("arity", self.arity.into()),
            ("levels", self.levels.into()),
            ("concentration", self.concentration.into()),
        ];
        own.into_iter().chain(self.wiring.parameters(false)).collect()
    }

    fn smaller(&self) -> Option<Shape> {
        if self.arity > 2 {
            Some(Shape::FatTree(FatTree { arity: self.arity - 1, ..self.clone() }))
        } else if self.levels > 2 {
            Some(Shape::FatTree(FatTree { levels: self.levels - 1, ..self.clone() }))
        } else {
            None
        }
    }

    fn latency_kinds(&self) -> Option<(usize, &'static str)> {
        Some((self.levels as usize - 1, "levels above the leaves"))
    }

    fn longest_link(&self, step: u64) -> (u64, u64) {
        (self.wiring.longest(step, &[]), step)
    }

    fn site(&self, common: &Common) -> Site {
        let leaves = self.leaves().and_then(|n| u32::try_from(n).ok()).expect("scenario checks bound the size");
        let external = self.down() + self.arity;
        let nodes = (0..self.levels * leaves)
            .map(|switch| {
                let name = self.switch_name(switch);
                let path = format!("tree.{name}.switch");
                let ports = external + u16::from(common.engine);
                PlanNode { kind: NodeKind::Switch, ports, engine: common.engine, name, path }
            })
            .collect();
        let mut links = Vec::new();
        let mut stride = 1;
        for level in 0..self.levels - 1 {
            let params = self.wiring.link(common, level as usize, 1);
            for number in 0..leaves {
                let digit = number / stride % u32::from(self.arity);
                for up in 0..self.arity {
                    let above = number - digit * stride + u32::from(up) * stride;
                    links.push(join(
                        (level * leaves + number, self.down() + up),
                        ((level + 1) * leaves + above, digit as u16),
                        params,
                        level as u8 + 1,
                    ));
                }
            }
            stride *= u32::from(self.arity);
        }
        let between = (1..self.levels).map(|level| format!("level{}-{level}", level - 1));
        let levels = std::iter::once("local".to_string()).chain(between).collect();
        let cores = leaves as usize * usize::from(self.concentration);
        let mut site = Site::new(Plan { vcs: common.vcs, nodes, links, levels }, cores, external);
        site.populate(leaves, 0, self.concentration, common.local);
        site
    }
}

/// How a k-ary n-tree is read.
pub(super) const READER: Reader = Reader {
    called: "fat-tree",
    keys: &["arity", "levels", "concentration", "latencies_cycles"],
    sized_by: |_| "levels",
    read: |given, _, complaints| {
        let (Some(arity), Some(levels)) = (given.arity, given.levels) else {
            let key = if given.arity.is_none() { "arity" } else { "levels" };
            let expected = "a k-ary n-tree by `arity` = k and `levels` = n, for example 4 and 3";
            complaints.push(Complaint::missing(key, "a fat-tree has no default size", expected));
            return None;
        };
        Some(Shape::FatTree(FatTree {
            arity: arity as u16,
            levels: levels as u32,
            concentration: given.end_points_a_switch(arity),
            wiring: given.wiring(),
        }))
    },
};
