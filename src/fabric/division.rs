//! How a system is divided into parts that threads evaluate side by side (requirement K-DET-1).
//!
//! ```text
//!   part 0: switches 0..s, end points 0..e     part 1: switches s.., end points e..
//!        └──────── crossings: flits and credits of links between the parts, handed over at the end of a cycle ───────┘
//! ```
//!
//! A block reads and changes only its own registers, its own queues and its own credit counters; everything it does to
//! others is a flit or a credit that arrives in a later cycle. So the blocks of a cycle can be evaluated in any order, or
//! at once; what crosses from one part into another is handed over between two cycles, and every link takes at least one.
//! The division therefore changes nothing but time.
//!
//! Parts are stretches of switches in the order of their numbers, with the end points that hang on them; ports are numbered
//! part by part, so that each part's share of an array is one stretch of it ([`Arena`](super::arena::Arena)).

use super::{NodeKind, Plan};
use std::ops::Range;

/// How a system is divided; the default is one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// At most so many parts of about equally many switches.
    pub count: usize,
    /// Switches that stay together: every part has a multiple of so many, but for the last one.
    pub grain: u32,
    /// Threads that evaluate them; without windows every part has one.
    pub threads: usize,
    /// A part runs as many cycles in a row as the shortest link to another one takes, so that its registers stay in the
    /// cache, and a step is such a window. Cycles are the same, but between two steps all of a window have passed.
    pub windows: bool,
}

impl Default for Parts {
    fn default() -> Parts {
        Parts { count: 1, grain: 1, threads: 1, windows: false }
    }
}

/// Switches and end points of each part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Division {
    parts: Vec<(Range<u32>, Range<u32>)>,
    /// Nodes before the first end point.
    others: u32,
}

impl Division {
    /// At most so many parts of about equally many grains of switches. A system with engines in the wire, or whose end points are
    /// not numbered in the order of their switches, stays whole.
    pub fn new(plan: &Plan, parts: Parts) -> Division {
        let Parts { count: parts, grain, .. } = parts;
        let switches = plan.count(NodeKind::Switch) as u32;
        let ends = plan.count(NodeKind::End) as u32;
        let others = plan.nodes.len() as u32 - ends;
        let whole = Division { parts: vec![(0..switches, 0..ends)], others };
        let grains = switches.div_ceil(grain.max(1));
        let parts = parts.min(grains as usize).max(1) as u64;
        if parts == 1 || others != switches {
            return whole;
        }
        let mut place = vec![u32::MAX; ends as usize];
        for link in &plan.links {
            for (end, switch) in [(link.a.0, link.b.0), (link.b.0, link.a.0)] {
                if end >= others {
                    place[(end - others) as usize] = switch;
                }
            }
        }
        // An end point without a link goes with the one before it.
        let mut before = 0;
        for switch in &mut place {
            *switch = if *switch == u32::MAX { before } else { *switch };
            before = *switch;
        }
        if place.iter().any(|&switch| switch >= switches) || !place.is_sorted() {
            return whole;
        }
        let cut = |part: u64| ((part * u64::from(grains) / parts) as u32 * grain.max(1)).min(switches);
        let end = |part: u64| place.partition_point(|&switch| switch < cut(part)) as u32;
        let parts = (0..parts).map(|part| (cut(part)..cut(part + 1), end(part)..end(part + 1))).collect();
        Division { parts, others }
    }

    /// How many parts there are.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// The switches of a part.
    pub fn switches(&self, part: usize) -> Range<u32> {
        self.parts[part].0.clone()
    }

    /// The end points of a part, counted from the first end point.
    pub fn ends(&self, part: usize) -> Range<u32> {
        self.parts[part].1.clone()
    }

    /// The nodes of a part that are no end points: its switches, and the engines in the wire of a whole system.
    pub fn inner(&self, part: usize) -> Range<u32> {
        if self.parts.len() == 1 { 0..self.others } else { self.switches(part) }
    }

    /// The nodes of a part that are end points.
    pub fn end_nodes(&self, part: usize) -> Range<u32> {
        let ends = self.ends(part);
        self.others + ends.start..self.others + ends.end
    }

    /// The nodes of a part: switches, engines in the wire, end points.
    pub fn nodes(&self, part: usize) -> impl Iterator<Item = u32> + use<> {
        self.inner(part).chain(self.end_nodes(part))
    }

    /// The part to which a node belongs.
    pub fn part_of(&self, node: u32) -> usize {
        if self.parts.len() == 1 {
            return 0;
        }
        // Parts are about equally large, so the search begins where the node would be if they were.
        let find = |at: u32, ranges: &dyn Fn(usize) -> Range<u32>| {
            let all = u64::from(ranges(self.parts.len() - 1).end).max(1);
            let last = self.parts.len() - 1;
            let mut part = ((u64::from(at) * self.parts.len() as u64 / all) as usize).min(last);
            while part > 0 && ranges(part).start > at {
                part -= 1;
            }
            while part < last && ranges(part).end <= at {
                part += 1;
            }
            part
        };
        match node.checked_sub(self.others) {
            Some(end) => find(end, &|part| self.ends(part)),
            None => find(node, &|part| self.switches(part)),
        }
    }

    /// The shortest latency of a link between two parts; `None` if there is no such link.
    pub fn shortest_crossing(&self, plan: &Plan) -> Option<u16> {
        let crosses = |link: &&super::PlanLink| self.part_of(link.a.0) != self.part_of(link.b.0);
        plan.links.iter().filter(crosses).map(|link| link.latency).min()
    }
}
