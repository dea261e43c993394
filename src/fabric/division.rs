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

/// Switches and end points of each part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Division {
    parts: Vec<(Range<u32>, Range<u32>)>,
    switches: u32,
    /// Nodes before the first end point.
    others: u32,
}

impl Division {
    /// At most so many parts of about equally many switches. A system with engines in the wire, or whose end points are
    /// not numbered in the order of their switches, stays whole.
    pub fn new(plan: &Plan, parts: usize) -> Division {
        let switches = plan.count(NodeKind::Switch) as u32;
        let ends = plan.count(NodeKind::End) as u32;
        let others = plan.nodes.len() as u32 - ends;
        let whole = Division { parts: vec![(0..switches, 0..ends)], switches, others };
        let parts = parts.min(switches as usize).max(1) as u64;
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
        if place.iter().any(|&switch| switch >= switches) || !place.is_sorted() {
            return whole;
        }
        let cut = |part: u64| (part * u64::from(switches) / parts) as u32;
        let end = |part: u64| place.partition_point(|&switch| switch < cut(part)) as u32;
        let parts = (0..parts).map(|part| (cut(part)..cut(part + 1), end(part)..end(part + 1))).collect();
        Division { parts, switches, others }
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

    /// The nodes of a part: switches, engines in the wire, end points.
    pub fn nodes(&self, part: usize) -> impl Iterator<Item = u32> + use<> {
        let (switches, ends) = self.parts[part].clone();
        let bumps = if self.parts.len() == 1 { self.switches..self.others } else { 0..0 };
        let others = self.others;
        switches.chain(bumps).chain(ends.map(move |end| others + end))
    }
}
