//! The embedding of prefix scans on systems of nodes: a tree in which whatever comes together is a row of ranks without a
//! gap (requirement H-SCAN-1, `hardware.md`; P-COL-2; the whole of it is *chosen*).
//!
//! ```text
//!   row of nodes                  node                                 socket
//!
//!   n0 ─▶ n1 ◀─ n2 ─▶ n4 ◀─ …     s0 ─▶ s7 ◀─ s1                        tile 0      tile 1
//!          leaders                       ▲                             c0 c1 ─┐    ┌─ from s3 (passes through tile 0)
//!                                        s2 … s15                      c2 c3 ─┴ E ─┴─ E ─▶
//! ```
//!
//! The tree of an all-reduce ([`embed`](super::embed)) joins whatever meets on shortest ways. In a node those are ranks of
//! sockets far apart: the socket with the root gets another socket's total at each of its switches, between its own cores.
//! Here totals pass through switches until they meet a neighbour in rank. Links and engines limit that: an id has one request a
//! link and direction, and one engine a switch.
//!
//! | level | tree |
//! |---|---|
//! | between nodes | dimension by dimension towards the root node, as P-EMB-1; in a row of many nodes by leaders of neighbouring nodes |
//! | between sockets of a node | rows of neighbours in rank that stand in different sockets meet in one of them |
//! | in a die | rows of neighbours meet at an engine that all of them reach by ways without a common link (a largest flow), or parts of the row do |
//!
//! What is tried first has the fewest levels: up to 32 leaders a node, then 16, 8, 4 and 2, and the same between sockets. Within
//! each try, choices that are equally good are drawn; the draws start from a constant, so the result is always the same.
//! Nodes with the same part in the tree share one plan ([`Plan`]), from which the ways of absent cores are left out: who takes part
//! changes no order. With ranks in another order than that of the end points a plan is made for what takes part.
//!
//! The root is in the node of the root that is given (at the very switch if a switch is), or of the middle participant.

use super::embed::{Key, Vectors};
use super::{REQUEST, RESPONSE};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::rc::Rc;
use watershed_fabric::topology::{EndPlace, NodePlace, Nodes};

/// Why a scan has no tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Ranks that must meet before others do, and cannot.
    pub pair: (usize, usize),
    /// Where, and what is between them.
    pub why: String,
}

/// Leaders of a node and sockets of a meeting that are tried, in this order.
const ARITIES: [usize; 5] = [32, 16, 8, 4, 2];
/// Draws that are tried for each, and in nodes of few switches, where a try costs little.
const TRIES: [u64; 2] = [36, 400];
/// Switches of a node that are few.
const FEW_SWITCHES: usize = 32;

/// What enters a node's part of the tree: a core, or the total of another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Entry {
    /// Switch, counted in the node.
    switch: u32,
    port: u16,
}

/// Where a node's total goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Exit {
    /// By a port of a switch, to another node.
    Link(u32, u16),
    /// It is the scan's: the last engine is the root, at this switch if one is given.
    Root(Option<u32>),
}

/// Where something comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Entry(usize),
    Engine(usize),
}

/// A way through switches: in by a port (none: out of the engine), out by another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hop {
    switch: u32,
    input: Option<u16>,
    output: u16,
}

/// The way of one value to the engine that joins it with others, or out of the node.
#[derive(Clone, Debug)]
struct Leg {
    from: From,
    hops: Vec<Hop>,
    /// Engine and its input; `None`: out of the node.
    to: Option<(usize, u16)>,
}

/// A node's part of the tree; whatever enters an engine is listed before what leaves it.
#[derive(Clone, Debug)]
struct Plan {
    legs: Vec<Leg>,
    /// Switches of its engines, counted in the node.
    engines: Vec<u32>,
}

/// Draws, always the same.
struct Draw {
    state: u64,
    /// Whether rows that meet are drawn as well.
    wanders: bool,
}

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % bound.max(1)
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at + 1));
        }
    }
}

/// Something on its way: where it is, and how it came there.
#[derive(Clone, Debug)]
struct Stream {
    from: From,
    hops: Vec<Hop>,
    switch: u32,
    /// By which it came into this switch; `None`: it is an engine's result.
    input: Option<u16>,
    /// The last entry of the node that is in it.
    last: usize,
}

/// A link inside a die, or between dies of a node.
#[derive(Clone, Copy, Debug)]
struct Edge {
    output: u16,
    to: u32,
    input: u16,
}

/// Links inside the dies of a node, by switch.
struct Ground<'a> {
    nodes: &'a Nodes,
    edges: Vec<Vec<Edge>>,
}

impl<'a> Ground<'a> {
    fn new(nodes: &'a Nodes) -> Ground<'a> {
        let die = nodes.die_switches();
        let edges = (0..nodes.sockets * die).map(|switch| {
            let links = (0..nodes.ports()).filter(|&port| !Nodes::is_hsio(port));
            let links = links.filter_map(|output| nodes.link(switch, output).map(|link| (output, link)));
            links.map(|(output, link)| Edge { output, to: link.switch, input: link.port }).collect()
        });
        Ground { nodes, edges: edges.collect() }
    }

    fn die(&self, switch: u32) -> u32 {
        switch / self.nodes.die_switches()
    }

    /// Steps between two switches of a die.
    fn distance(&self, a: u32, b: u32) -> usize {
        let place = |switch: u32| self.nodes.die.place(switch % self.nodes.die_switches());
        let ((tile, position), (to_tile, to_position)) = (place(a), place(b));
        usize::from(tile.abs_diff(to_tile)) + usize::from(position != to_position)
    }

    fn switches_of(&self, die: u32) -> std::ops::Range<u32> {
        let count = self.nodes.die_switches();
        die * count..(die + 1) * count
    }
}

/// A plan in the making: what of a node is taken.
#[derive(Clone)]
struct Draft<'a> {
    ground: &'a Ground<'a>,
    /// Output ports, a bit each, by switch.
    taken: Vec<u64>,
    busy: Vec<bool>,
    plan: Plan,
}

/// What was made, or the last entry of what cannot meet its neighbour.
type Step<T> = Result<T, usize>;

/// Ways of several streams to one switch.
struct Meeting {
    at: u32,
    ways: Vec<Vec<Edge>>,
    longest: usize,
    steps: usize,
}

impl Draft<'_> {
    fn is_free(&self, switch: u32, port: u16) -> bool {
        self.taken[switch as usize] >> port & 1 == 0
    }

    /// Moves a stream over a link.
    fn step(&mut self, stream: &mut Stream, edge: Edge) {
        self.taken[stream.switch as usize] |= 1 << edge.output;
        stream.hops.push(Hop { switch: stream.switch, input: stream.input, output: edge.output });
        (stream.switch, stream.input) = (edge.to, Some(edge.input));
    }

    /// Moves a stream to another switch of its die.
    fn move_to(&mut self, stream: &mut Stream, to: u32) -> bool {
        let Some(mut meeting) = self.meeting(std::slice::from_ref(stream), to, usize::MAX) else { return false };
        for edge in meeting.ways.remove(0) {
            self.step(stream, edge);
        }
        true
    }

    /// Ways of streams in a die to one of its switches over free links, none twice: a largest flow, link by link. `None` if
    /// they do not all get there, or one must go farther than `radius`.
    fn meeting(&self, streams: &[Stream], at: u32, radius: usize) -> Option<Meeting> {
        let ground = self.ground;
        if streams.iter().any(|stream| ground.distance(stream.switch, at) > radius) {
            return None;
        }
        let first = ground.switches_of(ground.die(at)).start;
        let count = ground.nodes.die_switches() as usize;
        let local = |switch: u32| (switch - first) as usize;
        let edges = &ground.edges[first as usize..first as usize + count];
        // Links that the flow uses, a bit for each edge of a switch.
        let mut flow = vec![0u32; count];
        for stream in streams {
            let mut before: Vec<Option<(usize, usize, bool)>> = vec![None; count];
            let mut queue = VecDeque::from([local(stream.switch)]);
            let start = local(stream.switch);
            while let Some(here) = queue.pop_front() {
                if here == local(at) {
                    break;
                }
                for (number, edge) in edges[here].iter().enumerate() {
                    let to = local(edge.to);
                    if flow[here] >> number & 1 == 0
                        && self.is_free(first + here as u32, edge.output)
                        && before[to].is_none()
                        && to != start
                    {
                        before[to] = Some((here, number, true));
                        queue.push_back(to);
                    }
                }
                for (there, list) in edges.iter().enumerate() {
                    for (number, edge) in list.iter().enumerate() {
                        if local(edge.to) == here
                            && flow[there] >> number & 1 == 1
                            && before[there].is_none()
                            && there != start
                        {
                            before[there] = Some((here, number, false));
                            queue.push_back(there);
                        }
                    }
                }
            }
            let mut here = local(at);
            while here != start {
                let (from, number, forward) = before[here]?;
                if forward {
                    flow[from] |= 1 << number;
                } else {
                    flow[here] &= !(1 << number);
                }
                here = from;
            }
        }
        let mut ways = Vec::with_capacity(streams.len());
        let (mut longest, mut steps) = (0, 0);
        for stream in streams {
            let (mut here, mut way) = (local(stream.switch), Vec::new());
            while here != local(at) {
                let number = flow[here].trailing_zeros() as usize;
                flow[here] &= flow[here] - 1;
                let edge = edges[here][number];
                way.push(edge);
                here = local(edge.to);
            }
            (longest, steps) = (longest.max(way.len()), steps + way.len());
            ways.push(way);
        }
        (longest <= radius).then_some(Meeting { at, ways, longest, steps })
    }

    /// The best engine for streams to meet at: the shortest ways, then near to where the result goes.
    fn best(&self, streams: &[Stream], radius: usize, towards: Option<u32>, draw: &mut Draw) -> Option<Meeting> {
        let ground = self.ground;
        let mut best: Option<((usize, usize, usize, usize), Meeting)> = None;
        for at in ground.switches_of(ground.die(streams[0].switch)) {
            if self.busy[at as usize] {
                continue;
            }
            let Some(meeting) = self.meeting(streams, at, radius) else { continue };
            let on = towards.map_or(0, |to| ground.distance(at, to));
            let key = (meeting.longest + on, meeting.steps, on, draw.below(16));
            if best.as_ref().is_none_or(|(least, _)| key < *least) {
                best = Some((key, meeting));
            }
        }
        best.map(|(_, meeting)| meeting)
    }

    /// Joins streams at an engine.
    fn meet(&mut self, streams: Vec<Stream>, meeting: Meeting) -> Stream {
        let engine = self.plan.engines.len();
        let last = streams.last().map_or(0, |stream| stream.last);
        self.plan.engines.push(meeting.at);
        self.busy[meeting.at as usize] = true;
        for (mut stream, way) in streams.into_iter().zip(meeting.ways) {
            for edge in way {
                self.step(&mut stream, edge);
            }
            let input = stream.input.expect("a result never stays at its engine");
            self.plan.legs.push(Leg { from: stream.from, hops: stream.hops, to: Some((engine, input)) });
        }
        Stream { from: From::Engine(engine), hops: Vec::new(), switch: meeting.at, input: None, last }
    }

    /// Joins a row of streams in one die to one.
    fn join(&mut self, mut row: Vec<Stream>, towards: Option<u32>, draw: &mut Draw) -> Step<Stream> {
        let farthest = usize::from(self.ground.nodes.die.tiles) + 2;
        while row.len() > 1 {
            if let Some(meeting) = self.best(&row, farthest, towards, draw) {
                return Ok(self.meet(row, meeting));
            }
            // Parts of the row: near ones first, large ones first.
            let part = (1..=farthest).find_map(|radius| {
                let sizes = (2..row.len().min(10)).rev();
                sizes.into_iter().find_map(|size| {
                    let starts = 0..=row.len() - size;
                    let options = starts.filter_map(|start| {
                        let meeting = self.best(&row[start..start + size], radius, None, draw)?;
                        Some((meeting.steps, draw.below(16), start, meeting))
                    });
                    let best = options.min_by_key(|(steps, drawn, start, _)| (*steps, *drawn, *start));
                    best.map(|(_, _, start, meeting)| (start, size, meeting))
                })
            });
            let (start, size, meeting) = part.ok_or(row[0].last)?;
            let members = row.drain(start..start + size).collect();
            let joined = self.meet(members, meeting);
            row.insert(start, joined);
        }
        Ok(row.remove(0))
    }
}

impl Draft<'_> {
    /// Takes a stream to another die of the node.
    fn cross(&mut self, mut stream: Stream, to: u32) -> Step<Stream> {
        let (die, nodes) = (self.ground.die(stream.switch), self.ground.nodes);
        let (switch, output) = nodes.to_socket(die, to);
        let (switch, last) = (die * nodes.die_switches() + switch, stream.last);
        if !self.is_free(switch, output) || !self.move_to(&mut stream, switch) {
            return Err(last);
        }
        let link = nodes.link(switch, output).ok_or(last)?;
        self.step(&mut stream, Edge { output, to: link.switch, input: link.port });
        Ok(stream)
    }

    /// Takes rows of streams, each in another die, to one die, and joins them there.
    fn gather(&mut self, rows: &[Vec<Stream>], host: u32, towards: Option<u32>, draw: &mut Draw) -> Step<Stream> {
        let nodes = self.ground.nodes;
        let mut met = Vec::new();
        for row in rows {
            let die = self.ground.die(row[0].switch);
            if die == host {
                met.extend(row.iter().cloned());
                continue;
            }
            let leaves = die * nodes.die_switches() + nodes.to_socket(die, host).0;
            let total = self.join(row.clone(), Some(leaves), draw)?;
            met.push(self.cross(total, host)?);
        }
        self.join(met, towards, draw)
    }

    /// Joins everything that enters a node and takes it to where it goes.
    fn finish(&mut self, entries: &[Entry], exit: Exit, arity: usize, draw: &mut Draw) -> Step<()> {
        let nodes = self.ground.nodes;
        let stream = |(at, entry): (usize, &Entry)| Stream {
            from: From::Entry(at),
            hops: Vec::new(),
            switch: entry.switch,
            input: Some(entry.port),
            last: at,
        };
        let (Exit::Link(goal, _) | Exit::Root(Some(goal))) = exit else {
            return self.round(entries.iter().enumerate().map(stream).collect(), None, arity, draw).and_then(|total| {
                // A total that met nobody still turns round in an engine.
                if total.input.is_some() { self.turn(total, None) } else { Ok(()) }
            });
        };
        let total = self.round(entries.iter().enumerate().map(stream).collect(), Some(goal), arity, draw)?;
        let die = self.ground.die(goal);
        let mut total = if self.ground.die(total.switch) == die { total } else { self.cross(total, die)? };
        debug_assert!(goal < nodes.sockets * nodes.die_switches());
        match exit {
            Exit::Link(_, port) => {
                let last = total.last;
                if !self.is_free(goal, port) || !self.move_to(&mut total, goal) {
                    return Err(last);
                }
                self.taken[goal as usize] |= 1 << port;
                total.hops.push(Hop { switch: goal, input: total.input, output: port });
                self.plan.legs.push(Leg { from: total.from, hops: total.hops, to: None });
                Ok(())
            }
            Exit::Root(_) if total.input.is_none() && total.switch == goal => Ok(()),
            Exit::Root(_) => self.turn(total, Some(goal)),
        }
    }

    /// Takes a total to an engine of its own, where it turns round.
    fn turn(&mut self, mut total: Stream, at: Option<u32>) -> Step<()> {
        let (at, last) = (at.unwrap_or(total.switch), total.last);
        if self.busy[at as usize] || !self.move_to(&mut total, at) {
            return Err(last);
        }
        let meeting = Meeting { at, ways: vec![Vec::new()], longest: 0, steps: 0 };
        self.meet(vec![total], meeting);
        Ok(())
    }

    /// Joins streams, die by die and round by round, until one is left.
    fn round(&mut self, mut all: Vec<Stream>, goal: Option<u32>, arity: usize, draw: &mut Draw) -> Step<Stream> {
        loop {
            // Neighbours in one die.
            let mut rows: Vec<Vec<Stream>> = Vec::new();
            for stream in all.drain(..) {
                let die = self.ground.die(stream.switch);
                match rows.last_mut().filter(|row| self.ground.die(row[0].switch) == die) {
                    Some(row) => row.push(stream),
                    None => rows.push(vec![stream]),
                }
            }
            if rows.len() == 1 {
                let die = self.ground.die(rows[0][0].switch);
                let towards = goal.filter(|&goal| self.ground.die(goal) == die);
                return self.join(rows.remove(0), towards, draw);
            }
            if draw.wanders {
                all = self.wander(rows, arity, draw)?;
                continue;
            }
            for group in self.groups(rows, arity) {
                let joined = self.place(&group, goal, draw)?;
                all.push(joined);
            }
        }
    }

    /// Joins neighbouring rows, drawn, in the die of one of them; others stay as they are.
    fn wander(&mut self, mut rows: Vec<Vec<Stream>>, arity: usize, draw: &mut Draw) -> Step<Vec<Stream>> {
        let mut stuck = rows[0].last().map_or(0, |stream| stream.last);
        for _ in 0..4 * rows.len() {
            let at = draw.below(rows.len());
            let die = |row: &[Stream]| self.ground.die(row[0].switch);
            let host = die(&rows[at]);
            // As far as every other die has one row only, on both sides.
            let (mut from, mut to, mut seen) = (at, at + 1, vec![host]);
            let most = 2 + draw.below(arity.min(rows.len()));
            while to - from < most {
                let right = rows.get(to).filter(|row| die(row) == host || !seen.contains(&die(row)));
                let left = from.checked_sub(1).filter(|&at| die(&rows[at]) == host || !seen.contains(&die(&rows[at])));
                match (left, right) {
                    (Some(at), right) if right.is_none() || draw.below(2) == 0 => {
                        seen.push(die(&rows[at]));
                        from = at;
                    }
                    (_, Some(row)) => {
                        seen.push(die(row));
                        to += 1;
                    }
                    _ => break,
                }
            }
            if to - from < 2 {
                continue;
            }
            let mut draft = self.clone();
            match draft.gather(&rows[from..to], host, None, draw) {
                Ok(joined) => {
                    *self = draft;
                    rows.splice(from..to, [vec![joined]]);
                    return Ok(rows.into_iter().flatten().collect());
                }
                Err(at) => stuck = at,
            }
        }
        Err(stuck)
    }

    /// Groups of neighbouring rows, each in another die.
    fn groups(&self, rows: Vec<Vec<Stream>>, arity: usize) -> Vec<Vec<Vec<Stream>>> {
        let mut groups: Vec<Vec<Vec<Stream>>> = Vec::new();
        for row in rows {
            let die = self.ground.die(row[0].switch);
            let fits = |group: &&mut Vec<Vec<Stream>>| {
                group.len() < arity && group.iter().all(|other| self.ground.die(other[0].switch) != die)
            };
            match groups.last_mut().filter(fits) {
                Some(group) => group.push(row),
                None => groups.push(vec![row]),
            }
        }
        groups
    }

    /// Joins a group in the first die that can: the one of the goal, then those of the group, then others.
    fn place(&mut self, group: &[Vec<Stream>], goal: Option<u32>, draw: &mut Draw) -> Step<Stream> {
        let mut hosts: Vec<u32> = group.iter().map(|row| self.ground.die(row[0].switch)).collect();
        if group.len() > 1 {
            draw.shuffle(&mut hosts);
            let goal = goal.map(|goal| self.ground.die(goal));
            let mut others: Vec<u32> = (0..self.ground.nodes.sockets).filter(|die| !hosts.contains(die)).collect();
            draw.shuffle(&mut others);
            hosts.extend(others);
            // Where it must go in the end is mostly, but not always, the best place to meet.
            if draw.below(3) > 0 {
                hosts.sort_by_key(|&die| Some(die) != goal);
            }
        }
        let mut stuck = 0;
        for host in hosts {
            let mut draft = self.clone();
            let towards = goal.filter(|&goal| self.ground.die(goal) == host);
            match draft.gather(group, host, towards, draw) {
                Ok(joined) => {
                    *self = draft;
                    return Ok(joined);
                }
                Err(at) => stuck = at,
            }
        }
        Err(stuck)
    }
}

/// Plans a node's part of the tree.
fn plan(ground: &Ground<'_>, entries: &[Entry], exit: Exit) -> Step<Plan> {
    let switches = ground.edges.len();
    let mut stuck = 0;
    let sockets = ground.nodes.sockets as usize;
    for arity in ARITIES.into_iter().filter(|&arity| arity == 2 || arity / 2 < sockets) {
        let tries = TRIES[usize::from(switches <= FEW_SWITCHES)];
        for seed in 0..tries {
            let plan = Plan { legs: Vec::new(), engines: Vec::new() };
            let mut draft = Draft { ground, taken: vec![0; switches], busy: vec![false; switches], plan };
            match draft.finish(entries, exit, arity, &mut Draw { state: seed, wanders: seed >= tries / 3 }) {
                Ok(()) => return Ok(draft.plan),
                Err(at) => stuck = at,
            }
        }
    }
    Err(stuck)
}

/// The parent of each coordinate in a row of `side` nodes, with `root` its own: every subtree is a stretch of the row, and no
/// node has more than `arity` children.
fn leaders(side: u32, root: u32, arity: usize) -> Vec<u32> {
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

/// A step between nodes: the dimension, and the coordinates of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Stride {
    dimension: usize,
    from: u32,
    to: u32,
}

/// How nodes make a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Dimension by dimension to the root, in this order.
    Dimensions,
    /// What is before a plane comes to its first node, and what is behind it to its last: few children a node, more steps.
    Corners,
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
                let parents: Vec<Vec<u32>> =
                    (0..at.len()).map(|d| leaders(nodes.size[d], at[d], arity)).collect();
                for node in 0..count {
                    let step = order.iter().find_map(|&dimension| {
                        let from = nodes.coordinate(node, dimension).0;
                        (from != at[dimension]).then(|| Stride { dimension, from, to: parents[dimension][from as usize] })
                    });
                    rows.link(node, step);
                }
            }
            Shape::Corners => rows.corners(root, at.len(), arity),
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
            let Some((_, Stride { dimension, from, to })) = self.up(child) else { unreachable!("a child has a parent") };
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
    let at = nodes.place(root);
    let local = exact.then(|| root - nodes.number(NodePlace { node: at.node, socket: 0, switch: 0 }));
    let mut builder = Builder { nodes, ground: Ground::new(nodes), engine, ranks, natural, plans: HashMap::new() };
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
    }
    let mut blocked = None;
    for node in roots {
        for (arity, shape) in ARITIES.iter().flat_map(|&arity| [(arity, Shape::Dimensions), (arity, Shape::Corners)]) {
            for order in &orders[..if shape == Shape::Corners { 1 } else { orders.len() }] {
                let rows = Rows::new(nodes, node, order, arity, shape);
                match builder.build(&rows, local) {
                    Ok(vectors) => return Ok(vectors),
                    Err(why) => blocked = blocked.or(Some(why)),
                }
            }
        }
    }
    Err(blocked.expect("there is a first try"))
}

/// All orders of so many things.
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
    ground: Ground<'a>,
    engine: u16,
    ranks: &'a [EndPlace],
    /// Ranks are in the order of end points.
    natural: bool,
    plans: HashMap<(Vec<Entry>, Exit), Step<Rc<Plan>>>,
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
            while let Some((parent, _)) = rows.up(*way.last().unwrap_or(&node)).filter(|(up, _)| !depths.contains_key(up)) {
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

    fn planned(&mut self, entries: &[Entry], exit: Exit) -> Step<Rc<Plan>> {
        let key = (entries.to_vec(), exit);
        if let Some(known) = self.plans.get(&key) {
            return known.clone();
        }
        let made = plan(&self.ground, entries, exit).map(Rc::new);
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
                From::Entry(entry) => live[entry],
                From::Engine(engine) => inputs[engine] != 0,
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
                    (None, From::Engine(engine)) if joins(engine) => (self.engine, inputs[engine]),
                    (None, From::Engine(engine)) => (inputs[engine].trailing_zeros() as u16, inputs[engine]),
                    (None, From::Entry(_)) => unreachable!("an entry comes in by a port"),
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

    #[test]
    fn every_shape_that_fits_has_a_tree() {
        let mut count = 0;
        for (tiles, positions) in [(2, 2), (1, 1), (2, 4), (4, 1), (1, 2), (3, 3), (1, 4)] {
            for sockets in 1..=16 {
                for size in [
                    &[1][..], &[2], &[3], &[5], &[8], &[17], &[40], &[128], &[2, 2], &[3, 3], &[1, 4], &[5, 2], &[7, 6], &[3, 3, 3],
                    &[2, 2, 2], &[1, 5, 2], &[4, 2, 3], &[2, 2, 2, 2], &[3, 3, 3, 3], &[4, 3, 2, 5], &[1, 1, 1, 9],
                ] {
                    let nodes = nodes(size, sockets, tiles, positions);
                    if !nodes.budget().suffices {
                        continue;
                    }
                    count += 1;
                    let t = std::time::Instant::now();
                    let made = scan(&nodes, 10, &everyone(&nodes), middle(&nodes), false);
                    if made.is_err() || t.elapsed().as_millis() > 2000 {
                        println!("== {size:?} {sockets} {tiles}x{positions} {:?} {:?}", made.err(), t.elapsed());
                    }
                }
            }
        }
        println!("== {count}");
    }
}
