//! A generic tree: one switch at the top, a branching factor for each level, end points below the lowest switches.
//!
//! ```text
//!                 root0  root1 …          end points at the top switch
//!                    \   /
//!                     top                  level 0: branching[0] switches (or end points) below it
//!               /      |      \
//!            s0        s1      s2          level 1: branching[1] below each
//!          / | \     / | \    / | \
//!         leaf0 …                          the last branching factor counts end points
//! ```
//!
//! | port of a switch | what |
//! |---|---|
//! | 0 to branching - 1 | its children |
//! | branching | its parent; at the top switch the first of the `roots` end points |
//! | from branching + 1 | the other `roots` end points, top switch only |
//! | the last, if switches have an engine | the engine |
//!
//! Switches are named by their path from the top, `top`, `s2`, `s2_0`; they are numbered level by level. End points are
//! numbered leaves first, left to right, then those at the top. All switches have as many ports as the widest needs.
//!
//! Point-to-point packets climb to the lowest common switch and descend: there is one route, and none can deadlock.

use super::rule::Reader;
use super::site::join;
use super::{Common, Complaint, EndPlace, Parameter, Shape, Site, Topology, TopologyKind};
use crate::routing::Algorithm;
use crate::{NodeKind, Plan, PlanNode};

/// A tree's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenericTree {
    /// Children of a switch of each level, from the top; the last number counts end points.
    pub branching: Vec<u16>,
    /// End points at the top switch.
    pub roots: u16,
}

impl GenericTree {
    /// Switches of a level.
    fn width(&self, level: usize) -> u64 {
        self.branching[..level].iter().fold(1u64, |product, &b| product.saturating_mul(u64::from(b)))
    }

    /// How many end points there are below the lowest switches.
    pub fn leaves(&self) -> u64 {
        self.width(self.branching.len())
    }

    /// Level of a switch, and its place within the level.
    fn place(&self, switch: u32) -> (usize, u64) {
        let mut rest = u64::from(switch);
        for level in 0..self.branching.len() {
            let width = self.width(level);
            if rest < width {
                return (level, rest);
            }
            rest -= width;
        }
        unreachable!("a switch number beyond the last switch")
    }

    /// Number of the first switch of a level.
    fn first(&self, level: usize) -> u64 {
        (0..level).map(|level| self.width(level)).sum()
    }

    /// The output port of a step from switch `at` towards switch `to`; `None` if they are the same.
    pub fn hop(&self, at: u32, to: u32) -> Option<u16> {
        if at == to {
            return None;
        }
        let ((level, place), (mut to_level, mut to_place)) = (self.place(at), self.place(to));
        let mut step = 0;
        while to_level > level {
            to_level -= 1;
            step = to_place % u64::from(self.branching[to_level]);
            to_place /= u64::from(self.branching[to_level]);
        }
        // Below this switch: down to the child on the way; anywhere else: up.
        if to_level == level && to_place == place { Some(step as u16) } else { Some(self.branching[level]) }
    }
}

impl Topology for GenericTree {
    fn kind(&self) -> TopologyKind {
        TopologyKind::Tree
    }

    fn switches(&self) -> Option<u64> {
        Some((0..self.branching.len()).fold(0u64, |sum, level| sum.saturating_add(self.width(level))))
    }

    fn end_points(&self) -> Option<u64> {
        Some(self.leaves().saturating_add(u64::from(self.roots)))
    }

    /// All switches have as many as the widest needs.
    fn ports(&self) -> u32 {
        let widest = self.branching.iter().copied().max().map_or(0, u32::from);
        (widest + 1).max(self.branching.first().copied().map_or(0, u32::from) + u32::from(self.roots))
    }

    fn switch_name(&self, switch: u32) -> String {
        let (level, mut at) = self.place(switch);
        if level == 0 {
            return "top".into();
        }
        let mut steps = Vec::new();
        for up in (0..level).rev() {
            steps.push((at % u64::from(self.branching[up])).to_string());
            at /= u64::from(self.branching[up]);
        }
        steps.reverse();
        format!("s{}", steps.join("_"))
    }

    fn switch_by_numbers(&self, _: &str, steps: &[u64]) -> Option<u64> {
        if steps.len() >= self.branching.len() {
            return None;
        }
        let mut at = 0u64;
        for (&step, &below) in steps.iter().zip(&self.branching) {
            at = at.checked_mul(u64::from(below))?.checked_add(step)?;
        }
        Some(self.first(steps.len()) + at)
    }

    fn end_place(&self, end: u32) -> EndPlace {
        let end = u64::from(end);
        let last = self.branching.len() - 1;
        if end >= self.leaves() {
            return EndPlace { switch: 0, port: self.branching[0] + (end - self.leaves()) as u16 };
        }
        let below = u64::from(self.branching[last]);
        EndPlace { switch: (self.first(last) + end / below) as u32, port: (end % below) as u16 }
    }

    fn describe(&self) -> String {
        let branching: Vec<String> = self.branching.iter().map(ToString::to_string).collect();
        format!("tree of {} switches (branching {})", self.switches().unwrap_or(u64::MAX), branching.join(" x "))
    }

    /// Children spread below their parent.
    fn position(&self, switch: u32) -> (f64, f64) {
        let (level, place) = self.place(switch);
        let widest = self.width(self.branching.len() - 1) as f64 * 1.4;
        let share = widest / self.width(level) as f64;
        ((place as f64 + 0.5) * share, level as f64 * 1.8)
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        vec![("branching", self.branching[..].into()), ("roots", self.roots.into())]
    }

    fn algorithms(&self) -> &'static [Algorithm] {
        &[Algorithm::MinimalRandom]
    }

    fn site(&self, common: &Common) -> Site {
        let switches = self.switches().and_then(|n| u32::try_from(n).ok()).expect("scenario checks bound the size");
        let external = u16::try_from(self.ports()).expect("scenario checks bound the ports");
        let nodes = (0..switches)
            .map(|switch| {
                let name = self.switch_name(switch);
                let path = format!("tree.{name}.switch");
                let ports = external + u16::from(common.engine);
                PlanNode { kind: NodeKind::Switch, ports, engine: common.engine, name, path }
            })
            .collect();
        let mut levels = vec!["local".to_string()];
        let mut links = Vec::new();
        for level in 1..self.branching.len() {
            levels.push(format!("level{level}"));
            let above = u64::from(self.branching[level - 1]);
            for place in 0..self.width(level) {
                let child = (self.first(level) + place) as u32;
                let parent = (self.first(level - 1) + place / above) as u32;
                let (up, down) = (self.branching[level], (place % above) as u16);
                links.push(join((child, up), (parent, down), common.link, level as u8));
            }
        }
        let (leaves, ends) = (self.leaves() as u32, (self.leaves() + u64::from(self.roots)) as u32);
        let mut site = Site::new(Plan { vcs: common.vcs, nodes, links, levels }, ends as usize, external);
        for end in 0..ends {
            let leaf = end < leaves;
            let number = if leaf { end } else { end - leaves };
            let name = format!("{}{number}", if leaf { "leaf" } else { "root" });
            let path = format!("tree.{name}");
            site.push_end(self.end_place(end), common.local, name, path);
        }
        site
    }
}

/// How a tree is read.
pub(super) const READER: Reader = Reader {
    called: "tree",
    keys: &["branching", "roots"],
    sized_by: |_| "branching",
    read: |given, _, complaints| {
        let Some(branching) = &given.branching else {
            let expected = "children of a switch of each level, the last counts end points: [4, 4]";
            complaints.push(Complaint::missing("branching", "a tree has no default shape", expected));
            return None;
        };
        Some(Shape::Tree(GenericTree {
            branching: branching.iter().map(|&below| below as u16).collect(),
            roots: given.roots.unwrap_or(1) as u16,
        }))
    },
};

#[cfg(test)]
mod tests {
    use super::super::{Layout, LinkParams, Neighbours};
    use super::*;
    use crate::Vcs;
    use crate::routing::{dependency_cycle, walk};

    fn layout(branching: &[u16], roots: u16) -> Layout {
        let link = LinkParams { latency: 1, cycles_per_flit: 1 };
        let common = Common { vcs: Vcs { set: 2, unicast: 1 }, engine: true, link, local: link };
        GenericTree { branching: branching.to_vec(), roots }.layout(&common)
    }

    #[test]
    fn sizes_names_and_places() {
        let tree = layout(&[4, 4], 1);
        assert_eq!(tree.plan.fault(), None);
        assert_eq!((tree.switches(), tree.cores, tree.external_ports), (5, 17, 5));
        assert_eq!(tree.switch_names().collect::<Vec<_>>(), ["top", "s0", "s1", "s2", "s3"]);
        assert_eq!(tree.ends[16], EndPlace { switch: 0, port: 4 });
        assert_eq!(tree.ends[7], EndPlace { switch: 2, port: 3 });
        assert_eq!(tree.neighbour(3, 4), Some((0, 2)));
        let deep = layout(&[2, 3, 5], 2);
        assert_eq!(deep.plan.fault(), None);
        assert_eq!((deep.switches(), deep.cores), (1 + 2 + 6, 30 + 2));
        assert_eq!(deep.plan.nodes[8].name, "s1_2");
    }

    #[test]
    fn every_route_arrives_and_none_can_deadlock() {
        for (branching, roots) in [(&[4, 4][..], 1), (&[2, 3, 2], 0), (&[7], 1), (&[1, 1, 3], 2)] {
            let layout = layout(branching, roots);
            assert_eq!(layout.plan.fault(), None, "{branching:?}");
            let neighbours = Neighbours::new(&layout.plan);
            for from in 0..layout.switches() as u32 {
                for to in 0..layout.switches() as u32 {
                    let way = walk(&layout, from, to).expect("arrives");
                    assert_eq!(way.last(), Some(&to));
                    assert!(way.windows(2).all(|pair| {
                        (0..layout.external_ports)
                            .any(|port| neighbours.of(pair[0], port).is_some_and(|far| far.0 == pair[1]))
                    }));
                }
            }
            assert_eq!(dependency_cycle(&layout), None);
        }
    }
}
