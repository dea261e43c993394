//! The computation of the management agent: spanning trees over a fabric, and their entries in the multicast tables
//! (requirements R-TAB-1, R-TAB-2, R-EP-4; description (36), (50), (51), (70), (77), (78)). Trees of the start of a run
//! are written before cycle 0; at run time the [`manager`](super::manager) writes them with frames.
//!
//! A request names a root end point and any set of others. The agent walks outwards from the root's switch, prunes
//! branches without participants, counts the end points below every switch, takes the lowest multicast id that is free
//! at all switches of the tree, and writes one entry a switch. A request that does not fit is refused: the job then
//! reduces in software.
//!
//! **Deadlock.** Climbing frames of different trees share one channel of each link, so all trees together must not make
//! a cycle of links in which each waits for the next. The agent numbers the switches once and lets every way to a root go
//! first up, then down in that order (up*/down* routing), which cannot close a cycle *chosen*:
//!
//! | order | when | ways |
//! |---|---|---|
//! | by distance from the nearest end point | every switch with end points can reach every other so: fat-trees | shortest |
//! | by distance from switch 0 | all others: meshes, dragonflies, generic trees | shortest in meshes and trees |
//!
//! [`Agent::dependency_cycle`] checks the installed tables again, on the graph that they make. Descending frames take
//! the same ways backwards on the other channel.
//!
//! **Two disjoint trees** ([`Agent::pair`]): the second one uses none of the first one's links between switches, and
//! none of its switches except those with end points of the request; failing that, one that is disjoint in links only.
//! If the order of the switches leaves no such pair, ways against the order are tried: two trees that begin with
//! different links of the root's switch and avoid passing the switches of end points *chosen*. The order does not keep
//! those free of deadlock, so the written tables are checked, and a tree that closes a cycle is deleted again. An end
//! point has one link, so its own switch is always shared. The search is not exhaustive: it may miss a pair that
//! exists.

use super::admission::Owner;
use super::header::MAX_COUNT;
use super::tables::{AgentRoutes, Entry, Ports, TableError, Tables};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use watershed_fabric::topology::{EndPlace, Layout, Neighbours};

/// A tree before it is written into tables: one row a switch, the root's switch first, parents before children.
#[derive(Clone, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct SpanningTree {
    /// The rows.
    pub rows: Vec<Row>,
    /// Where the root sits.
    pub root: EndPlace,
    /// How many end points are below the root's switch: participants without the root.
    pub leaves: u32,
}

/// One switch of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Row {
    /// The switch.
    pub switch: u32,
    /// The port towards the root.
    pub parent: u16,
    /// The ports towards the leaves.
    pub children: Ports,
    /// End points below.
    pub wait_count: u32,
    /// Switches between it and the root end point: 0 for the root's switch.
    pub depth: u32,
}

impl SpanningTree {
    /// The switches.
    pub fn switches(&self) -> impl Iterator<Item = u32> + '_ {
        self.rows.iter().map(|row| row.switch)
    }

    /// Ports on which frames climb: where engines sit.
    pub fn climbs(&self) -> impl Iterator<Item = (u32, u16)> + '_ {
        self.rows.iter().map(|row| (row.switch, row.parent))
    }
}

/// Why there is no tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No way from the root.
    #[error("there is no way from {root} to {switch} that the other trees and this one allow")]
    Unreachable {
        /// Switch of the root.
        root: String,
        /// Switch that cannot be reached.
        switch: String,
    },
    /// A tree needs an end point besides the root.
    #[error("a reduction tree needs a root and at least one other end point")]
    Alone,
    /// More end points than a wait count can say.
    #[error("{0} end points are more than a wait count of 20 bits holds")]
    TooMany(usize),
    /// Its ways and those of other trees could wait for each other.
    #[error("with the other trees its links could wait for each other in a circle: {0}")]
    Deadlock(String),
    /// The tables refuse.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// The agent.
#[derive(Clone, Debug)]
pub struct Agent {
    neighbours: Neighbours,
    switches: u32,
    ports: u16,
    /// Height of every switch in the order of up*/down*: all different.
    height: Vec<u32>,
    names: Vec<String>,
}

/// What a tree must not use.
#[derive(Clone, Debug, Default)]
struct Exclusions {
    switches: BTreeSet<u32>,
    /// Links, by either end.
    links: BTreeSet<(u32, u16)>,
}

/// How many switches with end points are tried as roots when the order is chosen.
const SAMPLES: usize = 64;

impl Agent {
    /// An agent for a layout without engines in the wire (they are put in afterwards, where trees climb).
    pub fn new(layout: &Layout) -> Agent {
        let neighbours = Neighbours::new(&layout.plan);
        let switches = layout.switches() as u32;
        let mut agent = Agent {
            neighbours,
            switches,
            ports: layout.external_ports,
            height: Vec::new(),
            names: layout.switch_names().map(String::from).collect(),
        };
        let places: BTreeSet<u32> = layout.ends.iter().map(|end| end.switch).collect();
        let near = agent.distances(places.iter().copied());
        // Higher is further from end points; equals are told apart by number.
        agent.height = ranks(&near.iter().map(|&distance| i64::from(distance)).collect::<Vec<_>>());
        let step = places.len().div_ceil(SAMPLES).max(1);
        let spans = places.iter().step_by(step).all(|&root| {
            let depth = agent.outwards(root, &Exclusions::default());
            places.iter().all(|switch| depth[*switch as usize].is_some())
        });
        if !spans {
            let far = agent.distances(std::iter::once(0));
            agent.height = ranks(&far.iter().map(|&distance| -i64::from(distance)).collect::<Vec<_>>());
        }
        agent
    }

    /// Neighbours of every port.
    pub fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    fn links(&self, switch: u32) -> impl Iterator<Item = (u16, u32, u16)> + '_ {
        (0..self.ports).filter_map(move |port| {
            let (far, far_port) = self.neighbours.of(switch, port)?;
            (far < self.switches).then_some((port, far, far_port))
        })
    }

    /// Hops from the nearest of some switches.
    fn distances(&self, from: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut distance = vec![u32::MAX; self.switches as usize];
        let mut queue: VecDeque<u32> = VecDeque::new();
        for switch in from {
            distance[switch as usize] = 0;
            queue.push_back(switch);
        }
        while let Some(at) = queue.pop_front() {
            for (_, far, _) in self.links(at) {
                if distance[far as usize] == u32::MAX {
                    distance[far as usize] = distance[at as usize] + 1;
                    queue.push_back(far);
                }
            }
        }
        distance
    }

    /// For every switch the port towards the root and the number of hops, on ways that go first up, then down.
    fn outwards(&self, root: u32, avoid: &Exclusions) -> Vec<Option<(u16, u32)>> {
        let mut way: Vec<Option<(u16, u32)>> = vec![None; self.switches as usize];
        let usable = |switch: u32, port: u16, far: u32, far_port: u16| {
            !avoid.switches.contains(&far)
                && !avoid.links.contains(&(switch, port))
                && !avoid.links.contains(&(far, far_port))
        };
        // Seen from the root outwards: first to higher switches only (their way to the root goes down all the way) …
        way[root as usize] = Some((u16::MAX, 0));
        let mut order = vec![root];
        let mut next = 0;
        while next < order.len() {
            let at = order[next];
            next += 1;
            let depth = way[at as usize].map_or(0, |(_, depth)| depth);
            for (port, far, far_port) in self.links(at) {
                let higher = self.height[far as usize] > self.height[at as usize];
                if higher && way[far as usize].is_none() && usable(at, port, far, far_port) {
                    way[far as usize] = Some((far_port, depth + 1));
                    order.push(far);
                }
            }
        }
        // … then from all of these to lower ones, nearest to the root first (their way begins with going up).
        let mut layers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &switch in &order {
            layers.entry(way[switch as usize].map_or(0, |(_, depth)| depth)).or_default().push(switch);
        }
        while let Some((depth, mut layer)) = layers.pop_first() {
            layer.sort_unstable();
            for at in layer {
                for (port, far, far_port) in self.links(at) {
                    let lower = self.height[far as usize] < self.height[at as usize];
                    if lower && way[far as usize].is_none() && usable(at, port, far, far_port) {
                        way[far as usize] = Some((far_port, depth + 1));
                        layers.entry(depth + 1).or_default().push(far);
                    }
                }
            }
        }
        way
    }

    /// The ways of a management agent at this place to all switches, in the order of all trees.
    pub fn ways(&self, place: EndPlace) -> AgentRoutes {
        AgentRoutes::new(&self.neighbours, place, &self.outwards(place.switch, &Exclusions::default()))
    }

    /// A spanning tree for these end points, whichever end points there are elsewhere.
    ///
    /// # Errors
    /// If there is no end point besides the root, or no way to one of them.
    pub fn tree(&self, root: EndPlace, leaves: &[EndPlace]) -> Result<SpanningTree, Refusal> {
        self.tree_avoiding(root, leaves, &Exclusions::default())
    }

    fn tree_avoiding(&self, root: EndPlace, leaves: &[EndPlace], avoid: &Exclusions) -> Result<SpanningTree, Refusal> {
        if leaves.is_empty() {
            return Err(Refusal::Alone);
        }
        if leaves.len() > MAX_COUNT as usize {
            return Err(Refusal::TooMany(leaves.len()));
        }
        self.grow(root, leaves, &self.outwards(root.switch, avoid))
    }

    /// The tree of the ways that lead to end points.
    fn grow(&self, root: EndPlace, leaves: &[EndPlace], way: &[Option<(u16, u32)>]) -> Result<SpanningTree, Refusal> {
        let mut rows: BTreeMap<u32, Row> = BTreeMap::new();
        let row =
            |switch: u32, parent: u16, depth: u32| Row { switch, parent, children: Ports::EMPTY, wait_count: 0, depth };
        rows.insert(root.switch, row(root.switch, root.port, 0));
        for leaf in leaves {
            let (mut at, mut child) = (leaf.switch, leaf.port);
            loop {
                let (parent, depth) = way[at as usize].ok_or_else(|| Refusal::Unreachable {
                    root: self.names[root.switch as usize].clone(),
                    switch: self.names[leaf.switch as usize].clone(),
                })?;
                let parent = if at == root.switch { root.port } else { parent };
                let here = rows.entry(at).or_insert_with(|| row(at, parent, depth));
                here.children.insert(child);
                here.wait_count += 1;
                if at == root.switch {
                    break;
                }
                (at, child) = self.neighbours.of(at, parent).expect("ways follow links");
            }
        }
        let mut rows: Vec<Row> = rows.into_values().collect();
        rows.sort_by_key(|row| (row.depth, row.switch));
        Ok(SpanningTree { rows, root, leaves: leaves.len() as u32 })
    }

    /// The trees of a job: one, and a second one if two are wanted and can be had.
    ///
    /// # Errors
    /// If there is not even one tree.
    pub fn planned(
        &self,
        root: EndPlace,
        leaves: &[EndPlace],
        redundant: bool,
    ) -> Result<(SpanningTree, Option<SpanningTree>), Refusal> {
        if redundant {
            self.pair(root, leaves).map(|(first, second)| (first, second.ok()))
        } else {
            self.tree(root, leaves).map(|first| (first, None))
        }
    }

    /// Two trees for the same end points that share no link between switches, if they can be had; otherwise the first tree
    /// alone and why there is no second.
    ///
    /// # Errors
    /// If there is not even one tree.
    pub fn pair(
        &self,
        root: EndPlace,
        leaves: &[EndPlace],
    ) -> Result<(SpanningTree, Result<SpanningTree, Refusal>), Refusal> {
        let first = self.tree(root, leaves)?;
        let refusal = match self.disjoint(&first, leaves) {
            Ok(second) => return Ok((first, Ok(second))),
            Err(refusal) => refusal,
        };
        let at_ends: BTreeSet<u32> = leaves.iter().map(|place| place.switch).collect();
        let links: Vec<(u16, u32, u16)> = self.links(root.switch).collect();
        for &(only, ..) in &links {
            let others = links.iter().filter(|(port, ..)| *port != only).map(|(port, ..)| (root.switch, *port));
            let avoid = Exclusions { links: others.collect(), ..Exclusions::default() };
            let Ok(first) = self.grow(root, leaves, &self.anyhow(root.switch, &avoid, &at_ends)) else { continue };
            let avoid = Exclusions { links: self.between(&first), ..Exclusions::default() };
            if let Ok(second) = self.grow(root, leaves, &self.anyhow(root.switch, &avoid, &at_ends)) {
                return Ok((first, Ok(second)));
            }
        }
        Ok((first, Err(refusal)))
    }

    /// Links between switches that a tree climbs.
    fn between(&self, tree: &SpanningTree) -> BTreeSet<(u32, u16)> {
        tree.climbs()
            .filter(|&(switch, port)| self.neighbours.of(switch, port).is_some_and(|(far, _)| far < self.switches))
            .collect()
    }

    /// As [`Agent::outwards`], on ways of any kind; passing a switch of `costly` counts as sixteen hops more.
    fn anyhow(&self, root: u32, avoid: &Exclusions, costly: &BTreeSet<u32>) -> Vec<Option<(u16, u32)>> {
        let mut way: Vec<Option<(u16, u32)>> = vec![None; self.switches as usize];
        let mut cost: Vec<u32> = vec![u32::MAX; self.switches as usize];
        let mut queue: BTreeSet<(u32, u32)> = BTreeSet::from([(0, root)]);
        (way[root as usize], cost[root as usize]) = (Some((u16::MAX, 0)), 0);
        while let Some((so_far, at)) = queue.pop_first() {
            let depth = way[at as usize].map_or(0, |(_, depth)| depth);
            let transit = if at != root && costly.contains(&at) { 17 } else { 1 };
            for (port, far, far_port) in self.links(at) {
                let used = avoid.links.contains(&(at, port)) || avoid.links.contains(&(far, far_port));
                if used || avoid.switches.contains(&far) || so_far + transit >= cost[far as usize] {
                    continue;
                }
                queue.remove(&(cost[far as usize], far));
                cost[far as usize] = so_far + transit;
                way[far as usize] = Some((far_port, depth + 1));
                queue.insert((so_far + transit, far));
            }
        }
        way
    }

    /// A second tree for the same end points that shares no link between switches with the first, and no switch but
    /// those where end points sit, if that can be had.
    ///
    /// # Errors
    /// If the graph has no second tree.
    pub fn disjoint(&self, first: &SpanningTree, leaves: &[EndPlace]) -> Result<SpanningTree, Refusal> {
        let mut avoid = Exclusions { links: self.between(first), ..Exclusions::default() };
        let at_ends: BTreeSet<u32> = leaves.iter().chain([&first.root]).map(|place| place.switch).collect();
        let in_links = avoid.clone();
        avoid.switches = first.switches().filter(|switch| !at_ends.contains(switch)).collect();
        self.tree_avoiding(first.root, leaves, &avoid).or_else(|_| self.tree_avoiding(first.root, leaves, &in_links))
    }

    /// Writes a tree of this owner into the tables under the lowest multicast id that is free at all its switches, and
    /// checks it.
    ///
    /// # Errors
    /// If a table is full. Nothing is written then.
    pub fn install(&self, tables: &mut Tables, tree: &SpanningTree, owner: Owner) -> Result<u16, Refusal> {
        self.install_under(tables, tree, owner, |_| true)
    }

    /// The same under one of the ids that are allowed.
    ///
    /// # Errors
    /// As [`Agent::install`].
    pub fn install_under(
        &self,
        tables: &mut Tables,
        tree: &SpanningTree,
        owner: Owner,
        allowed: impl Fn(u16) -> bool,
    ) -> Result<u16, Refusal> {
        let multicast_id = tables.free_id(&tree.switches().collect::<Vec<u32>>(), allowed)?;
        for row in &tree.rows {
            let Row { parent, children, wait_count, .. } = *row;
            tables.insert(row.switch, Entry { multicast_id, parent, children, wait_count, owner })?;
        }
        if let Err(error) = tables.check_tree(&self.neighbours, multicast_id, (tree.root.switch, tree.root.port)) {
            self.delete(tables, tree, multicast_id);
            return Err(error.into());
        }
        if !self.in_order(tree)
            && let Some(cycle) = self.dependency_cycle(tables)
        {
            self.delete(tables, tree, multicast_id);
            return Err(Refusal::Deadlock(cycle.join(", ")));
        }
        Ok(multicast_id)
    }

    /// Whether every way of a tree goes first up, then down.
    fn in_order(&self, tree: &SpanningTree) -> bool {
        let mut goes_up: BTreeMap<u32, bool> = BTreeMap::new();
        // Parents come before children.
        tree.rows.iter().all(|row| {
            let far = self.neighbours.of(row.switch, row.parent).filter(|(far, _)| *far < self.switches);
            let Some((far, _)) = far else {
                goes_up.insert(row.switch, false);
                return true;
            };
            let up = self.height[far as usize] > self.height[row.switch as usize];
            let later = goes_up.get(&far).copied().unwrap_or(false);
            goes_up.insert(row.switch, up || later);
            up || !later
        })
    }

    /// Deletes a tree from the tables.
    pub fn delete(&self, tables: &mut Tables, tree: &SpanningTree, multicast_id: u16) {
        for switch in tree.switches() {
            tables.remove(switch, multicast_id);
        }
    }

    /// A cycle in the graph of links that wait for each other when frames climb the trees in the tables, as names of the
    /// links; `None` proves that there is no deadlock. Cost: linear in the number of entries' ports (K-PIPE-1).
    pub fn dependency_cycle(&self, tables: &Tables) -> Option<Vec<String>> {
        // An edge from the link a frame comes in by to the link it climbs by, for every child port of every entry.
        let mut next: BTreeMap<(u32, u16), BTreeSet<(u32, u16)>> = BTreeMap::new();
        for switch in 0..self.switches {
            for entry in tables.entries(switch) {
                for port in &entry.children {
                    if let Some((far, far_port)) = self.neighbours.of(switch, port).filter(|far| far.0 < self.switches)
                    {
                        next.entry((far, far_port)).or_default().insert((switch, entry.parent));
                    }
                }
            }
        }
        // 1: on the way, 2: done.
        let mut state: BTreeMap<(u32, u16), u8> = BTreeMap::new();
        for &start in next.keys() {
            let mut stack = vec![(start, false)];
            let mut way: Vec<(u32, u16)> = Vec::new();
            while let Some((link, leaving)) = stack.pop() {
                if leaving {
                    state.insert(link, 2);
                    way.pop();
                    continue;
                }
                match state.get(&link) {
                    Some(2) => continue,
                    Some(_) => {
                        let from = way.iter().position(|&on_way| on_way == link).unwrap_or(0);
                        let name = |(switch, port): &(u32, u16)| format!("{}.P{port}", self.names[*switch as usize]);
                        return Some(way[from..].iter().map(name).collect());
                    }
                    None => {}
                }
                state.insert(link, 1);
                way.push(link);
                stack.push((link, true));
                for &after in next.get(&link).into_iter().flatten() {
                    stack.push((after, false));
                }
            }
        }
        None
    }
}

/// Ranks of values, equal ones told apart by their place.
fn ranks(values: &[i64]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|&at| (values[at], at));
    let mut ranks = vec![0; values.len()];
    for (rank, at) in order.into_iter().enumerate() {
        ranks[at] = rank as u32;
    }
    ranks
}
