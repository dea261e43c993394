//! Shortest ways, centres and disjoint trees on any graph of switches, for embeddings on topologies without a formula
//! (requirement X-NET-1).
//!
//! | question | answer |
//! |---|---|
//! | which way to a switch | the fewest links; of those ways the one of least latency, then the lowest port at each step *chosen* |
//! | which switch is in the middle of a set | that of least eccentricity: the least number of links to the farthest of them; ties go to a member of the set, then to the lowest *chosen* |
//! | how many trees have no link in common | as many spanning trees as the graph has, found by matroid union (Roskind and Tarjan: edge-disjoint minimum-cost spanning trees) |
//!
//! Cost: a search takes a step for every link. A middle takes a few searches where distances differ. Where they do not
//! (a torus), it takes the best of up to [`SwitchGraph::SEARCHES`] searches *chosen*. Disjoint trees are looked for in graphs
//! of up to [`SwitchGraph::DISJOINT`] switches.

use super::Layout;
use crate::NodeKind;
use std::collections::VecDeque;

/// One direction of a link between two switches, seen from the first.
#[derive(Clone, Copy, Debug)]
struct DirectedLink {
    port: u16,
    to: u32,
    by: u16,
    /// Number of the link.
    link: u32,
    latency: u16,
}

/// The switches of a system and the links between them.
#[derive(Clone, Debug)]
pub struct SwitchGraph {
    first: Vec<u32>,
    steps: Vec<DirectedLink>,
    links: Vec<(u32, u32)>,
}

/// A tree of paths from all switches to a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeToRoot {
    /// The switch to which all paths lead.
    pub root: u32,
    /// By switch: the port of the next step, the switch there and the port by which it is entered.
    next: Vec<Option<(u16, u32, u16)>>,
    /// By switch: links to the root.
    links: Vec<u32>,
}

impl TreeToRoot {
    /// The output port of the next step; `None` at the root, and where no way leads to it.
    pub fn hop(&self, at: u32) -> Option<u16> {
        self.next[at as usize].map(|(port, ..)| port)
    }

    /// Links from a switch to the root; `None` if no way leads there.
    pub fn distance(&self, from: u32) -> Option<u32> {
        Some(self.links[from as usize]).filter(|&links| links != FAR)
    }
}

const FAR: u32 = u32::MAX;

impl SwitchGraph {
    /// The most searches for a middle.
    pub const SEARCHES: usize = 4096;

    /// The most switches among which disjoint trees are looked for.
    pub const DISJOINT: usize = 1024;

    /// The graph of a layout.
    pub fn new(layout: &Layout) -> SwitchGraph {
        let nodes = &layout.plan.nodes;
        let switch = |node: u32| nodes[node as usize].kind == NodeKind::Switch;
        let between = layout.plan.links.iter().filter(|link| switch(link.a.0) && switch(link.b.0));
        let mut links = Vec::new();
        let mut list: Vec<(u32, DirectedLink)> = Vec::new();
        for link in between {
            let number = links.len() as u32;
            links.push((link.a.0, link.b.0));
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                list.push((
                    from.0,
                    DirectedLink { port: from.1, to: to.0, by: to.1, link: number, latency: link.latency },
                ));
            }
        }
        list.sort_by_key(|(from, step)| (*from, step.port));
        let mut first = vec![0u32; layout.switches() + 1];
        for (from, _) in &list {
            first[*from as usize + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        SwitchGraph { first, steps: list.into_iter().map(|(_, step)| step).collect(), links }
    }

    fn switches(&self) -> usize {
        self.first.len() - 1
    }

    fn of(&self, switch: u32) -> &[DirectedLink] {
        &self.steps[self.first[switch as usize] as usize..self.first[switch as usize + 1] as usize]
    }

    /// Links from every switch to one.
    fn distances(&self, root: u32) -> Vec<u32> {
        let mut links = vec![FAR; self.switches()];
        links[root as usize] = 0;
        let mut queue = VecDeque::from([root]);
        while let Some(at) = queue.pop_front() {
            for step in self.of(at) {
                if links[step.to as usize] == FAR {
                    links[step.to as usize] = links[at as usize] + 1;
                    queue.push_back(step.to);
                }
            }
        }
        links
    }

    /// The ways from everywhere to a switch; `None`: over all links, or over those only that are marked.
    pub fn towards(&self, root: u32, only: Option<&[bool]>) -> TreeToRoot {
        let count = self.switches();
        let (mut links, mut latency) = (vec![FAR; count], vec![u64::MAX; count]);
        let mut next: Vec<Option<(u16, u32, u16)>> = vec![None; count];
        (links[root as usize], latency[root as usize]) = (0, 0);
        let mut queue = VecDeque::from([root]);
        while let Some(at) = queue.pop_front() {
            // All ways of fewer links are known: what is behind is looked at from each switch that is as near.
            for step in self.of(at).iter().filter(|step| only.is_none_or(|only| only[step.link as usize])) {
                let to = step.to as usize;
                if links[to] == FAR {
                    links[to] = links[at as usize] + 1;
                    queue.push_back(step.to);
                }
                let through = latency[at as usize] + u64::from(step.latency);
                let back = (step.by, at, step.port);
                if links[to] == links[at as usize] + 1
                    && next[to].is_none_or(|(port, ..)| (through, step.by) < (latency[to], port))
                {
                    (latency[to], next[to]) = (through, Some(back));
                }
            }
        }
        TreeToRoot { root, next, links }
    }

    /// The switch in the middle of some of them.
    ///
    /// # Panics
    /// If there are none.
    pub fn middle(&self, places: &[u32]) -> u32 {
        let mut own = vec![false; self.switches()];
        for &at in places {
            own[at as usize] = true;
        }
        // The least that the eccentricity of a switch can be, from searches so far.
        let mut least = vec![0u32; self.switches()];
        let mut best: Option<(u32, bool, u32)> = None;
        for _ in 0..Self::SEARCHES {
            let rank = |at: u32| (least[at as usize], !own[at as usize], at);
            let candidate = (0..self.switches() as u32).map(rank).min().expect("a collective has participants");
            if best.is_some_and(|best| best <= candidate) {
                break;
            }
            let from = self.distances(candidate.2);
            let farthest = places.iter().copied().max_by_key(|&at| (from[at as usize], u32::MAX - at));
            let farthest = farthest.expect("a collective has participants");
            least[candidate.2 as usize] = from[farthest as usize];
            let exact = (from[farthest as usize], candidate.1, candidate.2);
            best = best.into_iter().chain([exact]).min();
            for (least, far) in least.iter_mut().zip(self.distances(farthest)) {
                *least = (*least).max(far);
            }
        }
        best.expect("there is a candidate").2
    }

    /// The switch in the middle of some of them, over the links of a tree.
    ///
    /// # Panics
    /// If there are none.
    pub fn middle_of(&self, tree: &[bool], places: &[u32]) -> u32 {
        let most = |at: u32| {
            let towards = self.towards(at, Some(tree));
            places.iter().map(|&place| towards.links[place as usize]).max()
        };
        let rank = |&at: &u32| (most(at), places.binary_search(&at).is_err(), at);
        (0..self.switches() as u32).min_by_key(rank).expect("a system has switches")
    }

    /// Up to this many trees, each over all switches, of which no two have a link in common, as marks of their links;
    /// fewer if the graph has no more. Links near `centre` come first, so that trees are not deep.
    pub fn disjoint(&self, centre: u32, most: usize) -> Vec<Vec<bool>> {
        if self.switches() > Self::DISJOINT {
            return Vec::new();
        }
        let near = self.distances(centre);
        let mut order: Vec<u32> = (0..self.links.len() as u32).collect();
        order.sort_by_key(|&link| {
            let (a, b) = self.links[link as usize];
            let (a, b) = (near[a as usize], near[b as usize]);
            (a.min(b), a.max(b), link)
        });
        // With one tree more than there are, some are not whole; with one less, all are.
        (1..=most)
            .rev()
            .map(|count| self.forests(&order, count))
            .find(|trees| {
                let whole = |tree: &Vec<bool>| tree.iter().filter(|&&taken| taken).count() + 1 == self.switches();
                trees.iter().all(whole)
            })
            .unwrap_or_default()
    }

    /// As many links as can be divided into this many forests, link by link: one that closes a circle in every forest
    /// takes the place of another one that has a place elsewhere.
    fn forests(&self, order: &[u32], count: usize) -> Vec<Vec<bool>> {
        let mut forests = Forests { ways: self, of: vec![None; self.links.len()], near: vec![Vec::new(); count] };
        for near in &mut forests.near {
            near.resize(self.switches(), Vec::new());
        }
        let mut left = count * (self.switches() - 1);
        for &link in order {
            if left == 0 {
                break;
            }
            left -= usize::from(forests.add(link));
        }
        let marks = |tree: usize| forests.of.iter().map(|of| *of == Some(tree)).collect();
        (0..count).map(marks).collect()
    }
}

/// Forests under way.
struct Forests<'a> {
    ways: &'a SwitchGraph,
    /// By link: the forest that has it.
    of: Vec<Option<usize>>,
    /// By forest and switch: links of the forest there.
    near: Vec<Vec<Vec<u32>>>,
}

impl Forests<'_> {
    /// Adds a link to some forest, moving others if need be; whether that was possible.
    fn add(&mut self, link: u32) -> bool {
        // Itself for the link that begins.
        let mut before: Vec<Option<u32>> = vec![None; self.of.len()];
        before[link as usize] = Some(link);
        let mut queue = VecDeque::from([link]);
        while let Some(at) = queue.pop_front() {
            for forest in (0..self.near.len()).filter(|&forest| self.of[at as usize] != Some(forest)) {
                let Some(circle) = self.way(forest, self.ways.links[at as usize]) else {
                    self.shift(at, forest, &before);
                    return true;
                };
                for other in circle {
                    if before[other as usize].is_none() {
                        before[other as usize] = Some(at);
                        queue.push_back(other);
                    }
                }
            }
        }
        false
    }

    /// Puts a link into a forest, the one for whose sake it was looked at into the place it leaves, and so on.
    fn shift(&mut self, mut link: u32, mut forest: usize, before: &[Option<u32>]) {
        loop {
            let (a, b) = self.ways.links[link as usize];
            let left = self.of[link as usize].replace(forest);
            for switch in [a, b] {
                if let Some(left) = left {
                    self.near[left][switch as usize].retain(|&other| other != link);
                }
                self.near[forest][switch as usize].push(link);
            }
            let (Some(left), Some(next)) = (left, before[link as usize]) else { return };
            (link, forest) = (next, left);
        }
    }

    /// The links of a forest between two switches; `None` if it does not join them.
    fn way(&self, forest: usize, (from, to): (u32, u32)) -> Option<Vec<u32>> {
        let mut back: Vec<Option<(u32, u32)>> = vec![None; self.near[forest].len()];
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            if at == to {
                let (mut at, mut way) = (to, Vec::new());
                while at != from {
                    let (link, before) = back[at as usize].expect("it was reached");
                    way.push(link);
                    at = before;
                }
                return Some(way);
            }
            for &link in &self.near[forest][at as usize] {
                let (a, b) = self.ways.links[link as usize];
                let far = if a == at { b } else { a };
                if far != from && back[far as usize].is_none() {
                    back[far as usize] = Some((link, at));
                    queue.push_back(far);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph of links, all of one latency unless given.
    fn graph(switches: u32, links: &[(u32, u32, u16)]) -> SwitchGraph {
        let mut ports = vec![0u16; switches as usize];
        let mut list = Vec::new();
        for (number, &(a, b, latency)) in links.iter().enumerate() {
            let (at, by) = (ports[a as usize], ports[b as usize]);
            ports[a as usize] += 1;
            ports[b as usize] += 1;
            list.push((a, DirectedLink { port: at, to: b, by, link: number as u32, latency }));
            list.push((b, DirectedLink { port: by, to: a, by: at, link: number as u32, latency }));
        }
        list.sort_by_key(|(from, step)| (*from, step.port));
        let first = (0..=switches).map(|at| list.iter().filter(|(from, _)| *from < at).count() as u32).collect();
        let steps = list.into_iter().map(|(_, step)| step).collect();
        SwitchGraph { first, steps, links: links.iter().map(|&(a, b, _)| (a, b)).collect() }
    }

    fn random(seed: &mut u64, switches: u32, more: u32) -> SwitchGraph {
        let mut draw = |bound: u32| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*seed >> 33) as u32 % bound
        };
        let mut links: Vec<(u32, u32, u16)> = (1..switches).map(|at| (draw(at), at, 1 + draw(5) as u16)).collect();
        for _ in 0..more {
            let (a, b) = (draw(switches), draw(switches));
            if a != b {
                links.push((a, b, 1 + draw(5) as u16));
            }
        }
        graph(switches, &links)
    }

    /// All distances, by Floyd and Warshall: links in the first place, latency in the second.
    fn slowly(ways: &SwitchGraph) -> Vec<Vec<(u32, u64)>> {
        let n = ways.switches();
        let mut far = vec![vec![(u32::MAX / 4, u64::MAX / 4); n]; n];
        for (at, row) in far.iter_mut().enumerate() {
            row[at] = (0, 0);
            for step in ways.of(at as u32) {
                row[step.to as usize] = row[step.to as usize].min((1, step.latency.into()));
            }
        }
        for k in 0..n {
            for i in 0..n {
                for j in 0..n {
                    let through = (far[i][k].0 + far[k][j].0, far[i][k].1 + far[k][j].1);
                    far[i][j] = far[i][j].min(through);
                }
            }
        }
        far
    }

    #[test]
    fn ways_are_shortest_and_middles_least_eccentric() {
        let mut seed = 1;
        for case in 0..60 {
            let ways = random(&mut seed, 2 + case % 17, case % 11);
            let n = ways.switches() as u32;
            let far = slowly(&ways);
            for root in 0..n {
                let tree = ways.towards(root, None);
                for from in 0..n {
                    let (mut at, mut latency) = (from, 0);
                    while let Some((port, next, by)) = tree.next[at as usize] {
                        let step = ways.of(at).iter().find(|step| step.port == port).expect("a port of the switch");
                        assert_eq!((step.to, step.by), (next, by));
                        (at, latency) = (next, latency + u64::from(step.latency));
                    }
                    assert_eq!(at, root);
                    let best = far[from as usize][root as usize];
                    assert_eq!((tree.distance(from), latency), (Some(best.0), best.1), "from {from} to {root}");
                }
            }
            let places: Vec<u32> = (0..n).filter(|at| (at + case) % 3 != 1).collect();
            let key = |at: u32| {
                let most = places.iter().map(|&to| far[at as usize][to as usize].0).max();
                (most, !places.contains(&at), at)
            };
            if !places.is_empty() {
                assert_eq!(ways.middle(&places), (0..n).min_by_key(|&at| key(at)).unwrap(), "case {case}");
            }
        }
    }

    fn spans(ways: &SwitchGraph, marks: &[bool]) -> bool {
        let tree = ways.towards(0, Some(marks));
        marks.iter().filter(|&&taken| taken).count() + 1 == ways.switches()
            && (0..ways.switches() as u32).all(|at| tree.distance(at).is_some())
    }

    #[test]
    fn trees_that_share_no_link_are_as_many_as_there_are() {
        let complete = |n: u32| {
            let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b, 1)));
            graph(n, &pairs.collect::<Vec<_>>())
        };
        // n (n - 1) / 2 links make floor(n / 2) trees of n - 1.
        for n in 2..=9 {
            let ways = complete(n);
            for centre in 0..n {
                let trees = ways.disjoint(centre, 8);
                assert_eq!(trees.len(), (n / 2) as usize, "K{n}");
                assert!(trees.iter().all(|tree| spans(&ways, tree)));
                assert!((0..ways.links.len()).all(|at| trees.iter().filter(|tree| tree[at]).count() <= 1));
            }
        }
        // A 4 x 4 torus has 32 links and 15 of them in a tree: two. A ring has one; a ring twice has two.
        let torus = (0..16u32).flat_map(|at| [(at, at / 4 * 4 + (at + 1) % 4, 1), (at, (at + 4) % 16, 1)]);
        let torus = graph(16, &torus.collect::<Vec<_>>());
        assert_eq!(torus.disjoint(5, 8).len(), 2);
        let ring: Vec<_> = (0..6).map(|at| (at, (at + 1) % 6, 1)).collect();
        assert_eq!(graph(6, &ring).disjoint(0, 8).len(), 1);
        assert_eq!(graph(6, &[ring.clone(), ring].concat()).disjoint(0, 8).len(), 2);
    }

    #[test]
    fn the_number_of_trees_is_that_of_nash_williams_and_tutte() {
        // k trees exist if and only if every division of the switches into p classes leaves k (p - 1) links between them.
        let mut seed = 7;
        for case in 0..40u32 {
            let ways = random(&mut seed, 2 + case % 5, 3 + case % 9);
            let n = ways.switches();
            let mut most = usize::MAX;
            for partition in 0..n.pow(n as u32) {
                let class = |at: u32| partition / n.pow(at) % n;
                let mut classes: Vec<usize> = (0..n as u32).map(class).collect();
                let between = ways.links.iter().filter(|(a, b)| class(*a) != class(*b)).count();
                classes.sort_unstable();
                classes.dedup();
                if classes.len() > 1 {
                    most = most.min(between / (classes.len() - 1));
                }
            }
            let trees = ways.disjoint(case % n as u32, 8);
            assert_eq!(trees.len(), most.min(8), "case {case}");
            assert!(trees.iter().all(|tree| spans(&ways, tree)), "case {case}");
        }
    }
}
