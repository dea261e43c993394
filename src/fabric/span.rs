//! The numbers of the nodes of a part of a system, within the part and within the whole system.
//!
//! ```text
//!   system-wide   switches [ first .. )    engines in the wire, here and there    end points [ first_end .. )
//!   in the part            [ 0 .. inner )  [ inner .. inner + bumps )             [ inner + bumps .. )
//! ```
//!
//! A part has a stretch of the switches, a stretch of the end points, and the engines in the wire of its switches.
//! Within the part its nodes are counted from 0, so that a part of a thousand nodes keeps bits, times and records for a
//! thousand nodes, whatever the size of the system. The order of the numbers is that of the system. In an undivided
//! system the two numbers are equal; its engines in the wire count among the stretch of the switches, and no look-up is
//! needed.

use super::partition::{BumpPlace, Partition};
use std::sync::Arc;

/// The nodes of a part.
#[derive(Clone, Debug)]
pub(super) struct Span {
    /// Whether the two numbers of every node are equal.
    whole: bool,
    first: u32,
    inner: u32,
    first_end: u32,
    ends: u32,
    /// The first engine in the wire of a divided system, and how many there are; none in a whole one.
    first_bump: u32,
    all_bumps: u32,
    /// Where each of them is.
    places: Arc<[BumpPlace]>,
    /// Those of this part.
    bumps: Arc<[u32]>,
}

impl Span {
    /// The nodes of a part of a division.
    pub fn new(partition: &Partition, part: usize) -> Span {
        let (inner, ends) = (partition.inner(part), partition.end_nodes(part));
        let has_bumps = !partition.places().is_empty();
        Span {
            whole: inner.start == 0 && ends.start == inner.end && !has_bumps,
            first: inner.start,
            inner: inner.end - inner.start,
            first_end: ends.start,
            ends: ends.end - ends.start,
            first_bump: partition.first_bump(),
            all_bumps: partition.places().len() as u32,
            places: Arc::clone(partition.places()),
            bumps: partition.bumps(part).into(),
        }
    }

    /// How many nodes the part has.
    pub fn len(&self) -> usize {
        (self.inner + self.ends) as usize + self.bumps.len()
    }

    /// Whether a node's number in the part is its number in the system.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// The number in the part of a node of the part.
    #[inline(always)]
    pub fn to_local(&self, node: u32) -> u32 {
        if self.whole {
            return node;
        }
        if node.wrapping_sub(self.first_bump) < self.all_bumps {
            return self.inner + self.places[(node - self.first_bump) as usize].at;
        }
        let ends = self.first_end.wrapping_sub(self.inner + self.bumps.len() as u32);
        let place = node.wrapping_sub(std::hint::select_unpredictable(node < self.first_end, self.first, ends));
        debug_assert!(self.to_node(place) == node, "node {node} is one of another part");
        place
    }

    /// The node with a number in the part.
    #[inline]
    pub fn to_node(&self, at: u32) -> u32 {
        let Some(behind) = at.checked_sub(self.inner) else { return at + self.first };
        match behind.checked_sub(self.bumps.len() as u32) {
            None => self.bumps[behind as usize],
            Some(end) => end + self.first_end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NodeKind, Parts, Plan, PlanLink, PlanNode, Vcs};
    use super::*;

    /// Four switches in a row with an end point each. There is an engine on every port that leads on, added from the
    /// last to the first, one before the end point of switch 1, and three on the link between switches 1 and 2.
    fn row() -> Plan {
        let node = |kind, ports, name: String| PlanNode { kind, ports, engine: false, path: name.clone(), name };
        let link = |a, b| PlanLink { a, b, latency: 1, cycles_per_flit: 1, level: 0 };
        let mut plan = Plan {
            vcs: Vcs { set: 0, unicast: 1 },
            nodes: (0..4).map(|at| node(NodeKind::Switch, 3, format!("s{at}"))).collect(),
            links: (0..3).map(|at| link((at, 1), (at + 1, 0))).collect(),
            levels: Vec::new(),
        };
        plan.nodes.extend((0..4).map(|at| node(NodeKind::End, 1, format!("e{at}"))));
        plan.links.extend((0..4).map(|at| link((at, 2), (4 + at, 0))));
        for at in (0..3).rev() {
            plan.insert_bump(at, 1, 1, &format!("s{at}.engine"));
        }
        plan.insert_bump(1, 2, 1, "e1.engine");
        // An engine of the other side of a link that has one, and a fault between the two, put there from either side.
        plan.insert_bump(2, 0, 1, "s2.engine");
        let (node, port) = plan.outermost(1, 1);
        plan.insert_bump(node, port, 1, "fault");
        plan
    }

    #[test]
    fn every_node_is_in_the_part_of_its_switch_and_found_there() {
        let plan = row();
        for count in 1..=4 {
            let partition = Partition::new(&plan, Parts { count, ..Parts::default() });
            assert_eq!(partition.len(), count);
            let mut seen = Vec::new();
            for part in 0..count {
                let span = Span::new(&partition, part);
                let nodes: Vec<u32> = partition.nodes(part).collect();
                assert!(nodes.is_sorted(), "{nodes:?}");
                assert_eq!(span.len(), nodes.len());
                for (at, &node) in nodes.iter().enumerate() {
                    assert_eq!((span.to_local(node), span.to_node(at as u32)), (at as u32, node));
                    assert_eq!(partition.part_of(node), part);
                }
                assert_eq!(span.is_whole(), count == 1);
                seen.extend(nodes);
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..plan.nodes.len() as u32).collect::<Vec<_>>());
            // Bumps 4, 5, 6 sit at switches 2, 1, 0; bump 7 before the end point of switch 1.
            let parts = [4, 5, 6, 7, 8].map(|bump| partition.part_of(bump));
            assert_eq!(parts, [2, 1, 0, 1, 2].map(|switch| partition.part_of(switch)));
        }
    }

    #[test]
    #[should_panic(expected = "of another part")]
    fn a_node_of_another_part_is_refused() {
        let plan = row();
        let partition = Partition::new(&plan, Parts { count: 2, ..Parts::default() });
        Span::new(&partition, 0).to_local(3);
    }
}
