//! The embedding of prefix scans on systems of nodes: a tree in which every subtree has consecutive ranks (requirement
//! H-SCAN-1, `hardware.md`; P-COL-2; all of it is *chosen*).
//!
//! ```text
//!   row of nodes                  node                                 socket
//!
//!   n0 ─▶ n1 ◀─ n2 ─▶ n4 ◀─ …     s0 ─▶ s7 ◀─ s1                        tile 0      tile 1
//!          leaders                       ▲                             c0 c1 ─┐    ┌─ from s3 (passes through tile 0)
//!                                        s2 … s15                      c2 c3 ─┴ E ─┴─ E ─▶
//! ```
//!
//! The tree of an all-reduce ([`embed`](super::embed)) joins the shortest ways where they meet. In a node that joins
//! ranks of different sockets: the socket with the root gets another socket's total at each of its switches, between
//! its own cores. Here totals pass through switches until they meet a neighbour in rank. Links and engines limit that:
//! an id has one request a link and direction, and one engine a switch.
//!
//! | level | tree |
//! |---|---|
//! | between nodes | dimension by dimension towards the root node, as P-EMB-1; in a row of many nodes by leaders of neighbouring nodes; where no such tree serves, by corners of planes, and then by trees that are drawn |
//! | between sockets of a node | rows of neighbours in rank that stand in different sockets meet in one of them |
//! | in a die | rows of neighbours meet at an engine that all of them reach by ways without a common link (a largest flow), or parts of the row do |
//!
//! Trees with the fewest levels are tried first: up to 32 leaders a node, then 16, 8, 4 and 2, and the same between
//! sockets. Within each try, choices that are equally good are drawn at random from a constant seed, so the result is
//! always the same. Nodes with the same part in the tree share one plan (`Plan`), from which the ways of absent cores
//! are left out: who takes part changes no order. With ranks in another order than that of the end points a plan is
//! made for the participants only.
//!
//! The root is in the node of the given root (at the given switch, if it is one), or in the node of the middle
//! participant.

mod node;

use self::node::{ARITIES, Attempt, Entry, Exit, NodeLinks, Plan, SeededDraw, Source, plan};
use super::embed::{Key, Vectors};
use super::{REQUEST, RESPONSE};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::rc::Rc;
use watershed_fabric::topology::{EndPlace, NodePlace, Nodes, Topology as _};

/// Why a scan has no tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Ranks that must meet before others do, and cannot.
    pub pair: (usize, usize),
    /// Where, and what is between them.
    pub why: String,
}

/// The parent of each coordinate in a row of `side` nodes, with `root` its own. Every subtree is a stretch of the row, and no
/// node has more than `arity` children; with an arity of 1 each hands on to its neighbour, and the root has two.
fn leaders(side: u32, root: u32, arity: usize) -> Vec<u32> {
    if arity == 1 {
        return (0..side).map(|at| at + u32::from(at < root) - u32::from(at > root)).collect();
    }
    let mut parents = vec![root; side as usize];
    let mut work = vec![(0, side, root)];
    while let Some((from, to, leader)) = work.pop() {
        let (left, right) = (leader - from, to - leader - 1);
        let others = (left + right) as usize;
        if others == 0 {
            continue;
        }
        // Children on both sides, by how many nodes there are.
        let all = others.min(arity) as u32;
        let least = u32::from(left > 0);
        let lefts = (left * all / (left + right)).max(least).min(all - u32::from(right > 0));
        for (from, to, count) in [(from, leader, lefts), (leader + 1, to, all - lefts)] {
            for at in 0..count {
                let part = |at: u32| from + (u64::from(to - from) * u64::from(at) / u64::from(count)) as u32;
                let (from, to) = (part(at), part(at + 1));
                let middle = from + (to - from) / 2;
                parents[middle as usize] = leader;
                work.push((from, to, middle));
            }
        }
    }
    parents
}

/// The same with parts and leaders that are drawn, the root's own row first.
fn drawn_leaders(side: u32, root: u32, draw: &mut SeededDraw) -> Vec<(u32, u32)> {
    let mut list = Vec::new();
    let mut work = VecDeque::from([(0, side, root)]);
    while let Some((from, to, leader)) = work.pop_front() {
        // The nearest parts first.
        for (mut near, far) in [(leader, from), (leader + 1, to)] {
            while near != far {
                let length = 1 + draw.below(near.abs_diff(far) as usize) as u32;
                let (from, to) = if far < near { (near - length, near) } else { (near, near + length) };
                let child = from + draw.below(length as usize) as u32;
                list.push((child, leader));
                work.push_back((from, to, child));
                near = if far < near { from } else { to };
            }
        }
    }
    list
}

/// A step between nodes: the dimension, and the coordinates of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Stride {
    dimension: usize,
    from: u32,
    to: u32,
}

/// Nodes that are tried as the root beside those that are mostly right.
const OTHER_ROOTS: usize = 256;

/// Trees between nodes that are drawn when none of the others serves, and nodes of all of them together: a large system has few.
const DRAWN: u32 = 200_000;
const DRAWN_NODES: u32 = 8_000_000;

/// How nodes make a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Dimension by dimension to the root, in this order.
    Dimensions,
    /// What is before a plane comes to its first node, and what is behind it to its last: few children a node, more steps.
    Corners,
    /// What is before a plane comes to a node that has its first node below it, and what is behind it to one that has its last:
    /// which one, and the tree of each row, are drawn from a seed.
    Drawn(u64),
}

/// The tree between nodes: every node's parent, and the step to it.
struct Rows<'a> {
    nodes: &'a Nodes,
    up: Vec<Option<(u32, Stride)>>,
    /// Parents and their children, ascending.
    down: Vec<(u32, u32)>,
}

impl<'a> Rows<'a> {
    fn new(nodes: &'a Nodes, root: u32, order: &[usize], arity: usize, shape: Shape) -> Rows<'a> {
        let count = nodes.size.iter().product::<u32>();
        let at = nodes.coordinates(root);
        let mut rows = Rows { nodes, up: vec![None; count as usize], down: Vec::new() };
        match shape {
            Shape::Dimensions => {
                let parents: Vec<Vec<u32>> = (0..at.len()).map(|d| leaders(nodes.size[d], at[d], arity)).collect();
                for node in 0..count {
                    let step = order.iter().find_map(|&dimension| {
                        let from = nodes.coordinate(node, dimension).0;
                        (from != at[dimension]).then(|| Stride {
                            dimension,
                            from,
                            to: parents[dimension][from as usize],
                        })
                    });
                    rows.link(node, step);
                }
            }
            Shape::Corners => rows.corners(root, at.len(), arity),
            Shape::Drawn(seed) => rows.drawn(root, at.len(), &mut SeededDraw::new(seed)),
        }
        let down = (0..).zip(&rows.up).filter_map(|(node, up)| up.map(|(parent, _)| (parent, node)));
        rows.down = down.collect();
        rows.down.sort_unstable();
        rows
    }

    fn link(&mut self, node: u32, step: Option<Stride>) {
        self.up[node as usize] = step.map(|step| {
            let stride = self.nodes.coordinate(node, step.dimension).1;
            (node - step.from * stride + step.to * stride, step)
        });
    }

    /// Links the planes of the first `dimensions` dimensions around a root of theirs.
    fn corners(&mut self, root: u32, dimensions: usize, arity: usize) {
        let Some(dimension) = dimensions.checked_sub(1) else { return };
        let (own, stride) = self.nodes.coordinate(root, dimension);
        self.corners(root, dimension, arity);
        // The first node of the planes of lower dimensions, and the last.
        let first = root - root % stride - own * stride;
        for (from, &to) in (0..).zip(&leaders(self.nodes.size[dimension], own, arity)) {
            if from != own {
                let corner = if from < to { 0 } else { stride - 1 };
                let node = first + from * stride + corner;
                self.corners(node, dimension, arity);
                self.link(node, Some(Stride { dimension, from, to }));
            }
        }
    }

    /// The same, with a tree that is drawn.
    fn drawn(&mut self, root: u32, dimensions: usize, draw: &mut SeededDraw) {
        let Some(dimension) = dimensions.checked_sub(1) else { return };
        let (own, stride) = self.nodes.coordinate(root, dimension);
        self.drawn(root, dimension, draw);
        // The first node of the planes of lower dimensions, and the root of each plane.
        let first = root - root % stride - own * stride;
        let mut roots = BTreeMap::from([(own, root)]);
        for (from, to) in drawn_leaders(self.nodes.size[dimension], own, draw) {
            let corner = first + to * stride + if from < to { 0 } else { stride - 1 };
            let mut above = vec![corner];
            while *above.last().unwrap_or(&corner) != roots[&to]
                && let Some((parent, _)) = above.last().and_then(|&node| self.up(node))
            {
                above.push(parent);
            }
            let node = above[draw.below(above.len())] + from * stride - to * stride;
            roots.insert(from, node);
            self.drawn(node, dimension, draw);
            self.link(node, Some(Stride { dimension, from, to }));
        }
    }

    /// The step from a node to its parent.
    fn up(&self, node: u32) -> Option<(u32, Stride)> {
        self.up[node as usize]
    }

    /// Where a link leaves its node.
    fn leaves(&self, Stride { dimension, from, to }: Stride) -> Entry {
        let (socket, switch, port) = self.nodes.to_node(dimension, from, to);
        Entry { switch: socket * self.nodes.die_switches() + switch, port }
    }

    /// Everything that enters a node if all cores take part in the order of end points.
    fn everything(&self, node: u32) -> Vec<Entry> {
        let nodes = self.nodes;
        let (from, to) = (self.down.partition_point(|of| of.0 < node), self.down.partition_point(|of| of.0 <= node));
        let enters = |&(_, child): &(u32, u32)| {
            let Some((_, Stride { dimension, from, to })) = self.up(child) else {
                unreachable!("a child has a parent")
            };
            self.leaves(Stride { dimension, from: to, to: from })
        };
        let children = &self.down[from..to];
        let before = children.partition_point(|of| of.1 < node);
        let cores = (0..nodes.sockets * nodes.die_cores()).map(|end| {
            let place = nodes.end_place(end);
            Entry { switch: place.switch, port: place.port }
        });
        children[..before].iter().map(enters).chain(cores).chain(children[before..].iter().map(enters)).collect()
    }
}

/// What of a node takes part.
#[derive(Clone, Debug, Default)]
struct Part {
    /// First rank of what enters, and where.
    entries: Vec<(usize, Entry)>,
    last: usize,
    count: usize,
}

impl Part {
    fn first(&self) -> usize {
        self.entries.iter().map(|(first, _)| *first).min().unwrap_or(0)
    }
}

/// The registers of a scan of end points in the order of their ranks, with the root in the node of a switch, or at it.
///
/// # Errors
/// The first pair of ranks that would have to meet and cannot.
pub fn scan(nodes: &Nodes, engine: u16, ranks: &[EndPlace], root: u32, exact: bool) -> Result<Vectors, Blocked> {
    let natural = ranks.is_sorted_by_key(|place| place.switch);
    let count = nodes.size.iter().product::<u32>();
    let at = nodes.place(root);
    let local = exact.then(|| root - nodes.number(NodePlace { node: at.node, socket: 0, switch: 0 }));
    let mut builder =
        Builder { nodes, node_links: NodeLinks::new(nodes), engine, ranks, natural, plans: HashMap::new() };
    let (mut roots, mut orders) = (vec![at.node], vec![(0..nodes.size.len()).collect::<Vec<usize>>()]);
    if !natural {
        orders = permutations(nodes.size.len());
        if !exact {
            roots.extend(builder.split().filter(|&node| node != at.node));
        }
    } else if !exact {
        // In a small die a root in a corner of the grid, where nothing comes from one side, can be all that is left.
        let used = |place: &EndPlace| nodes.place(place.switch).node;
        roots.extend([ranks.first(), ranks.last()].into_iter().flatten().map(used).filter(|&node| node != at.node));
        let others: Vec<u32> = (0..count).filter(|node| !roots.contains(node)).take(OTHER_ROOTS).collect();
        roots.extend(others);
    }
    let mut blocked = None;
    for node in roots {
        let arities = ARITIES.into_iter().chain([1]);
        for (arity, shape) in arities.flat_map(|arity| [(arity, Shape::Dimensions), (arity, Shape::Corners)]) {
            for order in &orders[..if shape == Shape::Corners { 1 } else { orders.len() }] {
                let rows = Rows::new(nodes, node, order, arity, shape);
                match builder.build(&rows, local) {
                    Ok(vectors) => return Ok(vectors),
                    Err(why) => blocked = blocked.or(Some(why)),
                }
            }
        }
    }
    if natural && !exact {
        for seed in (0..DRAWN.min(DRAWN_NODES / count)).map(u64::from) {
            let root = SeededDraw::new(seed).below(count as usize) as u32;
            let rows = Rows::new(nodes, root, &orders[0], 1, Shape::Drawn(seed));
            if let Ok(vectors) = builder.build(&rows, None) {
                return Ok(vectors);
            }
        }
    }
    Err(blocked.expect("there is a first try"))
}

/// All orders of this many things.
fn permutations(count: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..count {
        let longer = |list: &Vec<usize>| {
            let list = list.clone();
            let left: Vec<usize> = (0..count).filter(|at| !list.contains(at)).collect();
            left.into_iter().map(move |at| [list.as_slice(), &[at]].concat())
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

struct Builder<'a> {
    nodes: &'a Nodes,
    node_links: NodeLinks<'a>,
    engine: u16,
    ranks: &'a [EndPlace],
    /// Ranks are in the order of end points.
    natural: bool,
    plans: HashMap<(Vec<Entry>, Exit), Attempt<Rc<Plan>>>,
}

impl Builder<'_> {
    fn node_switches(&self) -> u32 {
        self.nodes.sockets * self.nodes.die_switches()
    }

    /// Nodes whose ranks are not neighbours: one of them must be the root.
    fn split(&self) -> impl Iterator<Item = u32> + use<> {
        let mut spans: BTreeMap<u32, (usize, usize, usize)> = BTreeMap::new();
        for (rank, place) in self.ranks.iter().enumerate() {
            let span = spans.entry(place.switch / self.node_switches()).or_insert((rank, rank, 0));
            (span.1, span.2) = (rank, span.2 + 1);
        }
        spans.into_iter().filter(|(_, (first, last, count))| last - first + 1 != *count).map(|(node, _)| node).take(4)
    }

    /// What takes part, by node; children are listed before their parents.
    fn parts(&self, rows: &Rows<'_>) -> (BTreeMap<u32, Part>, Vec<u32>) {
        let mut parts: BTreeMap<u32, Part> = BTreeMap::new();
        for (rank, place) in self.ranks.iter().enumerate() {
            let (node, switch) = (place.switch / self.node_switches(), place.switch % self.node_switches());
            let part = parts.entry(node).or_default();
            part.entries.push((rank, Entry { switch, port: place.port }));
            part.last = rank;
            part.count += 1;
        }
        let mut depths: BTreeMap<u32, usize> = BTreeMap::new();
        for &node in parts.keys() {
            let mut way = vec![node];
            while let Some((parent, _)) =
                rows.up(*way.last().unwrap_or(&node)).filter(|(up, _)| !depths.contains_key(up))
            {
                way.push(parent);
            }
            for &node in way.iter().rev() {
                let depth = rows.up(node).map_or(0, |(parent, _)| depths[&parent] + 1);
                depths.insert(node, depth);
            }
        }
        let mut order: Vec<u32> = depths.keys().copied().collect();
        order.sort_by_key(|node| (std::cmp::Reverse(depths[node]), *node));
        (parts, order)
    }

    fn build(&mut self, rows: &Rows<'_>, root: Option<u32>) -> Result<Vectors, Blocked> {
        let (mut parts, order) = self.parts(rows);
        let mut list: Vec<(Key, u64)> = Vec::new();
        for node in order {
            let mut part = parts.remove(&node).unwrap_or_default();
            let up = rows.up(node);
            part.entries.sort_unstable_by_key(|(first, _)| *first);
            if part.last - part.first() + 1 != part.count {
                return Err(self.gap(rows, node));
            }
            let exit = match up {
                None => Exit::Root(root),
                Some((_, stride)) => {
                    let leaves = rows.leaves(stride);
                    Exit::Link(leaves.switch, leaves.port)
                }
            };
            let entries: Vec<Entry> = part.entries.iter().map(|(_, entry)| *entry).collect();
            let whole = self.natural.then(|| rows.everything(node));
            let plan = whole.and_then(|whole| self.planned(&whole, exit).ok().map(|plan| (whole, plan)));
            let (whole, plan) = match plan {
                Some(found) => found,
                None => match self.planned(&entries, exit) {
                    Ok(plan) => (entries.clone(), plan),
                    Err(at) => {
                        let next = part.entries.get(at + 1).map_or(part.last, |(first, _)| *first);
                        let why = format!(
                            "in node {} nothing is left by which they could meet",
                            rows.nodes.coordinates(node).iter().map(u32::to_string).collect::<Vec<_>>().join("_")
                        );
                        return Err(Blocked { pair: (next.saturating_sub(1), next), why });
                    }
                },
            };
            let there: HashSet<Entry> = entries.into_iter().collect();
            let live: Vec<bool> = whole.iter().map(|entry| there.contains(entry)).collect();
            self.emit(node * self.node_switches(), &plan, &live, &mut list);
            if let Some((parent, Stride { dimension, from, to })) = up {
                let enters = rows.leaves(Stride { dimension, from: to, to: from });
                let above = parts.entry(parent).or_default();
                above.entries.push((part.first(), enters));
                above.last = above.last.max(part.last);
                above.count += part.count;
            }
        }
        list.sort_unstable();
        Ok(Vectors::ascending(list))
    }

    fn planned(&mut self, entries: &[Entry], exit: Exit) -> Attempt<Rc<Plan>> {
        let key = (entries.to_vec(), exit);
        if let Some(known) = self.plans.get(&key) {
            return known.clone();
        }
        let made = plan(&self.node_links, entries, exit).map(Rc::new);
        self.plans.insert(key, made.clone());
        made
    }

    /// The first two ranks below a node between which others are missing.
    fn gap(&self, rows: &Rows<'_>, node: u32) -> Blocked {
        let below = |place: &EndPlace| {
            let mut at = place.switch / self.node_switches();
            loop {
                if at == node {
                    return true;
                }
                let Some((parent, _)) = rows.up(at) else { return false };
                at = parent;
            }
        };
        let members: Vec<usize> = (0..self.ranks.len()).filter(|&rank| below(&self.ranks[rank])).collect();
        let pair = members.windows(2).find(|pair| pair[1] - pair[0] > 1).map_or((0, 0), |pair| (pair[0], pair[1]));
        let name = self.nodes.switch_name(node * self.node_switches());
        let name = name.split("_s").next().unwrap_or(&name).to_owned();
        Blocked { pair, why: format!("both reach the root by way of node {name}, and what is between them does not") }
    }

    /// The registers of a node's part, without the ways of what takes no part.
    fn emit(&self, first: u32, plan: &Plan, live: &[bool], list: &mut Vec<(Key, u64)>) {
        let mut inputs = vec![0u64; plan.engines.len()];
        let mut moves = vec![false; plan.legs.len()];
        for (at, leg) in plan.legs.iter().enumerate() {
            moves[at] = match leg.from {
                Source::Entry(entry) => live[entry],
                Source::Engine(engine) => inputs[engine] != 0,
            };
            if let Some((engine, port)) = leg.to.filter(|_| moves[at]) {
                inputs[engine] |= 1 << port;
            }
        }
        let root = plan.legs.iter().all(|leg| leg.to.is_some()).then(|| plan.engines.len() - 1);
        // An engine with one input has nothing to join: what comes passes through.
        let joins = |engine: usize| inputs[engine].count_ones() > 1 || root == Some(engine);
        for (leg, _) in plan.legs.iter().zip(moves).filter(|(_, moves)| *moves) {
            for hop in &leg.hops {
                let (input, back) = match (hop.input, leg.from) {
                    (Some(port), _) => (port, 1 << port),
                    (None, Source::Engine(engine)) if joins(engine) => (self.engine, inputs[engine]),
                    (None, Source::Engine(engine)) => (inputs[engine].trailing_zeros() as u16, inputs[engine]),
                    (None, Source::Entry(_)) => unreachable!("an entry comes in by a port"),
                };
                list.push(((first + hop.switch, REQUEST, input), 1 << hop.output));
                list.push(((first + hop.switch, RESPONSE, hop.output), back));
            }
            if let Some((engine, port)) = leg.to.filter(|(engine, _)| joins(*engine)) {
                list.push(((first + plan.engines[engine], REQUEST, port), 1 << self.engine));
            }
        }
        if let Some(root) = root.filter(|&root| inputs[root] != 0) {
            list.push(((first + plan.engines[root], RESPONSE, self.engine), inputs[root]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_fabric::topology::Die;

    fn nodes(size: &[u32], sockets: u32, tiles: u16, positions: u16) -> Nodes {
        Nodes {
            subnodes: watershed_fabric::topology::Subnodes::default(),
            size: size.to_vec(),
            sockets,
            die: Die { tiles, positions },
            hsio_ports: 2,
            socket_latency: 25,
            node_latency: 50,
            socket_width: 1,
            node_width: 1,
            distance: false,
        }
    }

    /// The places of all cores.
    fn everyone(nodes: &Nodes) -> Vec<EndPlace> {
        (0..nodes.cores().unwrap() as u32).map(|end| nodes.end_place(end)).collect()
    }

    fn middle(nodes: &Nodes) -> u32 {
        let node = (0..nodes.size.len()).map(|d| nodes.size[d] / 2 * nodes.size[..d].iter().product::<u32>()).sum();
        nodes.number(NodePlace { node, socket: 0, switch: 0 })
    }

    /// Sides of a grid of up to four dimensions.
    const SIZES: [&[u32]; 13] = [
        &[1],
        &[3],
        &[8],
        &[33],
        &[2, 2],
        &[1, 4],
        &[7, 6],
        &[3, 3, 3],
        &[1, 5, 2],
        &[2, 2, 2, 2],
        &[3, 3, 3, 3],
        &[4, 3, 2, 5],
        &[1, 1, 1, 9],
    ];

    #[test]
    fn small_shapes_of_the_papers_die_have_a_tree() {
        let count = shapes_of_the_papers_die_have_a_tree(64);
        assert!(count > 35, "{count}");
    }

    #[test]
    #[ignore = "takes long: make soak"]
    fn every_shape_of_the_papers_die_has_a_tree() {
        let count = shapes_of_the_papers_die_have_a_tree(u32::MAX);
        assert!(count > 50, "{count}");
    }

    /// Those of up to this many sockets; how many there are.
    fn shapes_of_the_papers_die_have_a_tree(most: u32) -> u32 {
        let mut count = 0;
        for sockets in [1, 2, 3, 7, 16] {
            for size in SIZES {
                let nodes = nodes(size, sockets, 4, 4);
                if nodes.budget().suffices && size.iter().product::<u32>() * sockets <= most {
                    let made = scan(&nodes, 10, &everyone(&nodes), middle(&nodes), false);
                    assert!(made.is_ok(), "{size:?} x {sockets}: {:?}", made.err());
                    count += 1;
                }
            }
        }
        count
    }

    /// Shapes with small dies that only trees with few children, other roots or drawn trees serve: sides, sockets, die.
    const HARD: [(&[u32], u32, (u16, u16)); 9] = [
        (&[4, 2, 2, 2], 2, (2, 1)),
        (&[2, 2, 2], 2, (1, 2)),
        (&[3, 4], 2, (1, 2)),
        (&[4, 2, 2], 2, (1, 2)),
        (&[3, 3, 3], 2, (1, 2)),
        (&[4, 4], 2, (1, 2)),
        (&[3, 2, 2, 2], 2, (1, 2)),
        (&[4, 3, 3], 2, (2, 2)),
        (&[3, 4, 4, 2], 2, (4, 1)),
    ];

    #[test]
    fn small_dies_have_a_tree_where_links_are_few() {
        for (size, sockets, (tiles, positions)) in HARD {
            let nodes = nodes(size, sockets, tiles, positions);
            let made = scan(&nodes, 10, &everyone(&nodes), middle(&nodes), false);
            assert!(made.is_ok(), "{size:?} x {sockets}, {tiles} x {positions}: {:?}", made.err());
        }
    }

    #[test]
    #[ignore = "long: part of make soak"]
    fn every_shape_of_dies_of_up_to_eight_switches_has_a_tree() {
        let mut sizes: Vec<Vec<u32>> = vec![vec![1]];
        for _ in 0..4 {
            let longer = |size: &Vec<u32>| (1..=4).map(|side| [&size[..], &[side]].concat()).collect::<Vec<_>>();
            let more: Vec<Vec<u32>> = sizes.iter().flat_map(longer).collect();
            sizes.extend(more);
        }
        let without_ones = |size: Vec<u32>| size.into_iter().filter(|&side| side > 1).collect::<Vec<u32>>();
        let mut sizes: Vec<Vec<u32>> = sizes.into_iter().map(without_ones).filter(|size| !size.is_empty()).collect();
        sizes.extend([vec![1], vec![5], vec![16], vec![5, 5], vec![8, 8], vec![5, 4, 3], vec![6, 6, 2, 2]]);
        sizes.sort_unstable();
        sizes.dedup();
        let (mut count, mut refused) = (0, Vec::new());
        for (tiles, positions) in [(1, 1), (2, 1), (1, 2), (3, 1), (2, 2), (4, 1), (1, 4), (3, 2), (4, 2), (2, 4)] {
            for (sockets, size) in (1..=16).flat_map(|sockets| sizes.iter().map(move |size| (sockets, size))) {
                let nodes = nodes(size, sockets, tiles, positions);
                if nodes.budget().suffices && size.iter().product::<u32>() * sockets <= 2048 {
                    count += 1;
                    let made = scan(&nodes, 10, &everyone(&nodes), middle(&nodes), false);
                    refused.extend(made.err().map(|why| (size, sockets, (tiles, positions), why)));
                }
            }
        }
        assert!(refused.is_empty() && count > 9_000, "{} of {count}: {refused:#?}", refused.len());
    }

    #[test]
    fn leaders_of_a_row_have_few_children_and_stretches() {
        for (side, root, arity) in
            [(1, 0, 2), (2, 1, 2), (9, 0, 2), (128, 64, 16), (40, 39, 4), (33, 16, 32), (7, 3, 1), (5, 0, 1)]
        {
            let parents = leaders(side, root, arity);
            let children = |of: u32| (0..side).filter(|&at| at != root && parents[at as usize] == of).count();
            assert!((0..side).all(|at| children(at) <= arity.max(1 + usize::from(at == root))), "{side} {arity}");
            for at in 0..side {
                // The ranks below are consecutive: a rank between two of them is below, too.
                let below = |mut of: u32| loop {
                    if of == at {
                        break true;
                    }
                    if of == root {
                        break false;
                    }
                    of = parents[of as usize];
                };
                let members: Vec<u32> = (0..side).filter(|&of| below(of)).collect();
                assert_eq!(members.len() as u32, members[members.len() - 1] - members[0] + 1, "{side} {root} {at}");
            }
        }
    }

    #[test]
    fn no_link_carries_two_values_and_no_engine_is_used_twice() {
        let nodes = nodes(&[5, 5], 16, 4, 4);
        let vectors = scan(&nodes, 10, &everyone(&nodes), middle(&nodes), false).unwrap();
        let mut outputs = HashSet::new();
        for ((switch, channel, port), vector) in vectors.iter() {
            if channel == REQUEST {
                assert_eq!(vector.count_ones(), 1);
                assert!(vector == 1 << 10 || outputs.insert((switch, vector)), "switch {switch} I{port}");
            }
        }
    }
}
