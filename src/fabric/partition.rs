//! How a system is divided into parts that threads evaluate side by side (requirement K-DET-1).
//!
//! ```text
//!   part 0: switches 0..s, end points 0..e     part 1: switches s.., end points e..
//!        └──────── crossings: flits and credits of links between the parts, handed over at the end of a cycle ───────┘
//! ```
//!
//! A block reads and changes only its own registers, its own queues and its own credit counters; everything it does to
//! others is a flit or a credit that arrives in a later cycle. So the blocks of a cycle can be evaluated in any order,
//! or at once. Flits and credits that cross from one part into another are handed over between two cycles, and every
//! link takes at least one cycle. The division therefore changes only the speed.
//!
//! Parts are stretches of switches in the order of their numbers, with stretches of the end points; ports are numbered
//! part by part, so that each part's share of an array is one stretch of it ([`Arena`](super::arena::Arena)). An engine
//! in the wire belongs to the switch that its port 0 leads to, and the engines of a part are not numbered in a row: a
//! [`BumpPlace`] says where each is.

use super::{NodeKind, Plan};
use std::ops::Range;
use std::sync::Arc;

/// How a system is divided; the default is one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// At most this many parts of about equally many blocks: switches, end points, engines in the wire.
    pub count: usize,
    /// Switches that stay together: every part has a multiple of this many, but for the last one.
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

impl Parts {
    /// A part for each thread; with 0 or 1 the system is whole.
    pub fn by_threads(threads: usize) -> Parts {
        Parts { count: threads, threads, ..Parts::default() }
    }
}

/// Switches, end points and engines in the wire of each part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Partition {
    parts: Vec<(Range<u32>, Range<u32>)>,
    /// How many switches the system has.
    switches: u32,
    /// Nodes before the first end point.
    others: u32,
    /// Of a divided system, where each engine in the wire is.
    places: Arc<[BumpPlace]>,
    /// The same by part: the nodes that are its engines in the wire, in the order of their numbers.
    bumps: Vec<Vec<u32>>,
}

/// Where an engine in the wire of a divided system is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BumpPlace {
    /// The part.
    pub part: u32,
    /// Its number among those of the part.
    pub at: u32,
}

/// Where a row is cut into stretches with about equally many blocks and at least one entry each, with the row's begin and end.
fn cuts(blocks: &[u64], parts: u64) -> impl Iterator<Item = u32> {
    let behind: Vec<u64> = blocks
        .iter()
        .scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        })
        .collect();
    let (entries, all) = (blocks.len() as u64, behind.last().copied().unwrap_or(0));
    (0..=parts).scan(None, move |last: &mut Option<u64>, part| {
        // The cut that is nearest to the part's share.
        let share = part * all / parts;
        let at = behind.partition_point(|sum| *sum <= share);
        let (below, above) = (at.checked_sub(1).map_or(0, |at| behind[at]), behind.get(at).copied().unwrap_or(all));
        let nearest = at as u64 + u64::from(above - share < share - below);
        let cut = nearest.clamp(last.map_or(0, |last| last + 1), entries - (parts - part));
        *last = Some(cut);
        Some(cut as u32)
    })
}

impl Partition {
    /// Engines in the wire by the parts they belong to.
    pub fn by_part<B>(&self, bumps: Vec<B>) -> Vec<Vec<B>> {
        if self.len() == 1 {
            return vec![bumps];
        }
        let mut parts: Vec<Vec<B>> = (0..self.len()).map(|_| Vec::new()).collect();
        for (bump, place) in bumps.into_iter().zip(&**self.places()) {
            parts[place.part as usize].push(bump);
        }
        parts
    }

    /// At most this many parts of about equally many blocks; each has one grain of switches or more. A part has the engines in
    /// the wire of its switches and their end points too, as far as end points are numbered in the order of their switches.
    pub fn new(plan: &Plan, parts: Parts) -> Partition {
        let Parts { count: parts, grain, .. } = parts;
        let switches = plan.count(NodeKind::Switch) as u32;
        let ends = plan.count(NodeKind::End) as u32;
        let others = plan.nodes.len() as u32 - ends;
        let none = || Arc::from(Vec::new());
        let whole =
            Partition { parts: vec![(0..switches, 0..ends)], switches, others, places: none(), bumps: Vec::new() };
        let grains = switches.div_ceil(grain.max(1));
        let parts = parts.min(grains as usize).max(1) as u64;
        if parts == 1 {
            return whole;
        }
        let Some(mut place) = plan.hosts() else { return whole };
        let bumps = place.split_off(ends as usize);
        // Parts have end points in a row. One that is numbered behind those of a later switch goes with them, and its link crosses.
        for end in 1..place.len() {
            place[end] = place[end].max(place[end - 1]);
        }
        let mut blocks = vec![0; grains as usize];
        let of_all = (0..switches).chain(place.iter().chain(&bumps).copied());
        of_all.for_each(|switch| blocks[(switch / grain.max(1)) as usize] += 1);
        let cuts: Vec<u32> = cuts(&blocks, parts).map(|cut| (cut * grain.max(1)).min(switches)).collect();
        let end = |cut: u32| place.partition_point(|&switch| switch < cut) as u32;
        let parts = cuts.windows(2).map(|cut| (cut[0]..cut[1], end(cut[0])..end(cut[1]))).collect();
        let mut divided = Partition { parts, bumps: Vec::new(), ..whole };
        let mut lists = vec![Vec::new(); divided.len()];
        let place = |(bump, switch): (usize, &u32)| {
            let part = divided.part_of(*switch);
            lists[part].push(switches + bump as u32);
            BumpPlace { part: part as u32, at: lists[part].len() as u32 - 1 }
        };
        let places: Vec<BumpPlace> = bumps.iter().enumerate().map(place).collect();
        (divided.places, divided.bumps) = (places.into(), lists);
        divided
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

    /// The nodes of a part that are no end points and numbered in a row: its switches, and the engines in the wire of a whole
    /// system.
    pub fn inner(&self, part: usize) -> Range<u32> {
        if self.parts.len() == 1 { 0..self.others } else { self.switches(part) }
    }

    /// The nodes of a part of a divided system that are engines in the wire.
    pub fn bumps(&self, part: usize) -> &[u32] {
        self.bumps.get(part).map_or(&[], Vec::as_slice)
    }

    /// Where each engine in the wire of a divided system is.
    pub fn places(&self) -> &Arc<[BumpPlace]> {
        &self.places
    }

    /// The first node that is an engine in the wire, if there are any.
    pub fn first_bump(&self) -> u32 {
        self.switches
    }

    /// The nodes of a part that are end points.
    pub fn end_nodes(&self, part: usize) -> Range<u32> {
        let ends = self.ends(part);
        self.others + ends.start..self.others + ends.end
    }

    /// The nodes of a part: switches, engines in the wire, end points.
    pub fn nodes(&self, part: usize) -> impl Iterator<Item = u32> {
        self.inner(part).chain(self.bumps(part).iter().copied()).chain(self.end_nodes(part))
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
        match (node.checked_sub(self.others), node.checked_sub(self.switches)) {
            (Some(end), _) => find(end, &|part| self.ends(part)),
            (None, Some(bump)) => self.places[bump as usize].part as usize,
            (None, None) => find(node, &|part| self.switches(part)),
        }
    }

    /// The shortest latency of a link between two parts; `None` if there is no such link.
    pub fn shortest_crossing(&self, plan: &Plan) -> Option<u16> {
        let crosses = |link: &&super::PlanLink| self.part_of(link.a.0) != self.part_of(link.b.0);
        plan.links.iter().filter(crosses).map(|link| link.latency).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_have_equally_many_blocks() {
        let cut = |blocks: &[u64], parts| cuts(blocks, parts).collect::<Vec<_>>();
        assert_eq!(cut(&[1; 10], 2), [0, 5, 10]);
        assert_eq!(cut(&[1; 10], 3), [0, 3, 6, 10]);
        assert_eq!(cut(&[5, 5, 1, 1, 1, 1], 2), [0, 1, 6]);
        assert_eq!(cut(&[1, 1, 1, 1, 5, 5], 2), [0, 5, 6]);
        // Nobody is left without anything, however the blocks lie.
        assert_eq!(cut(&[9, 1, 1, 1], 4), [0, 1, 2, 3, 4]);
        assert_eq!(cut(&[1, 1, 1, 9], 3), [0, 2, 3, 4]);
        assert_eq!(cut(&[1, 90], 2), [0, 1, 2]);
    }
}
