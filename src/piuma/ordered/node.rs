//! A node's part of the tree of a scan: it joins neighbours in rank, in its dies and between them.

use std::collections::VecDeque;
use watershed_fabric::topology::Nodes;

/// Leaders of a node and sockets of a meeting that are tried, in this order.
pub(super) const ARITIES: [usize; 5] = [32, 16, 8, 4, 2];
/// Draws that are tried for each, and in nodes of few switches, where a try costs little.
const TRIES: [u64; 2] = [36, 400];
/// Switches of a node that are few.
const FEW_SWITCHES: usize = 32;

/// What enters a node's part of the tree: a core, or the total of another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    /// Switch, counted in the node.
    pub(super) switch: u32,
    pub(super) port: u16,
}

/// Where a node's total goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Exit {
    /// By a port of a switch, to another node.
    Link(u32, u16),
    /// It is the scan's: the last engine is the root, at this switch if one is given.
    Root(Option<u32>),
}

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Entry(usize),
    Engine(usize),
}

/// A way through switches: in by a port (none: out of the engine), out by another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    pub(super) switch: u32,
    pub(super) input: Option<u16>,
    pub(super) output: u16,
}

/// The way of one value to the engine that joins it with others, or out of the node.
#[derive(Clone, Debug)]
pub(super) struct Leg {
    pub(super) from: Source,
    pub(super) hops: Vec<Hop>,
    /// Engine and its input; `None`: out of the node.
    pub(super) to: Option<(usize, u16)>,
}

/// A node's part of the tree; whatever enters an engine is listed before what leaves it.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) legs: Vec<Leg>,
    /// Switches of its engines, counted in the node.
    pub(super) engines: Vec<u32>,
}

/// A seeded sequence of draws.
pub(super) struct SeededDraw {
    state: u64,
    /// Whether rows that meet are drawn as well.
    random_rows: bool,
}

impl SeededDraw {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed, random_rows: false }
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
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
    from: Source,
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
pub(super) struct NodeLinks<'a> {
    nodes: &'a Nodes,
    edges: Vec<Vec<Edge>>,
}

impl<'a> NodeLinks<'a> {
    pub(super) fn new(nodes: &'a Nodes) -> NodeLinks<'a> {
        let die = nodes.die_switches();
        let edges = (0..nodes.sockets * die).map(|switch| {
            let links = (0..nodes.switch_ports()).filter(|&port| !Nodes::is_hsio(port));
            let links = links.filter_map(|output| nodes.link(switch, output).map(|link| (output, link)));
            links.map(|(output, link)| Edge { output, to: link.switch, input: link.port }).collect()
        });
        NodeLinks { nodes, edges: edges.collect() }
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

/// A plan under construction, with the resources of the node that it has taken.
#[derive(Clone)]
struct PlanBuilder<'a> {
    node_links: &'a NodeLinks<'a>,
    /// Output ports, a bit each, by switch.
    taken: Vec<u64>,
    busy: Vec<bool>,
    plan: Plan,
}

/// The result, or the last entry that cannot be joined with its neighbour.
pub(super) type Attempt<T> = Result<T, usize>;

/// Ways of several streams to one switch.
struct MergePoint {
    at: u32,
    ways: Vec<Vec<Edge>>,
    longest: usize,
    steps: usize,
}

impl PlanBuilder<'_> {
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
    fn meeting(&self, streams: &[Stream], at: u32, radius: usize) -> Option<MergePoint> {
        let node_links = self.node_links;
        if streams.iter().any(|stream| node_links.distance(stream.switch, at) > radius) {
            return None;
        }
        // A switch has as many links into it as out of it: more streams cannot come.
        if streams.iter().filter(|stream| stream.switch != at).count() > node_links.edges[at as usize].len() {
            return None;
        }
        let first = node_links.switches_of(node_links.die(at)).start;
        let count = node_links.nodes.die_switches() as usize;
        let local = |switch: u32| (switch - first) as usize;
        let edges = &node_links.edges[first as usize..first as usize + count];
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
        (longest <= radius).then_some(MergePoint { at, ways, longest, steps })
    }

    /// The best engine for streams to meet at: the shortest ways, then near to where the result goes.
    fn best(
        &self,
        streams: &[Stream],
        radius: usize,
        towards: Option<u32>,
        draw: &mut SeededDraw,
    ) -> Option<MergePoint> {
        let node_links = self.node_links;
        let mut best: Option<((usize, usize, usize, usize), MergePoint)> = None;
        for at in node_links.switches_of(node_links.die(streams[0].switch)) {
            if self.busy[at as usize] {
                continue;
            }
            let Some(meeting) = self.meeting(streams, at, radius) else { continue };
            let on = towards.map_or(0, |to| node_links.distance(at, to));
            let key = (meeting.longest + on, meeting.steps, on, draw.below(16));
            if best.as_ref().is_none_or(|(least, _)| key < *least) {
                best = Some((key, meeting));
            }
        }
        best.map(|(_, meeting)| meeting)
    }

    /// Joins streams at an engine.
    fn meet(&mut self, streams: Vec<Stream>, meeting: MergePoint) -> Stream {
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
        Stream { from: Source::Engine(engine), hops: Vec::new(), switch: meeting.at, input: None, last }
    }

    /// Joins a row of streams in one die to one.
    fn join(&mut self, mut row: Vec<Stream>, towards: Option<u32>, draw: &mut SeededDraw) -> Attempt<Stream> {
        let farthest = usize::from(self.node_links.nodes.die.tiles) + 2;
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

impl PlanBuilder<'_> {
    /// Takes a stream to another die of the node.
    fn cross(&mut self, mut stream: Stream, to: u32) -> Attempt<Stream> {
        let nodes = self.node_links.nodes;
        // Other dies may be on the way to one of another subnode.
        loop {
            let (die, last) = (self.node_links.die(stream.switch), stream.last);
            if die == to {
                return Ok(stream);
            }
            let (switch, output) = nodes.to_socket(die, nodes.next_socket(die, to), 0);
            let switch = die * nodes.die_switches() + switch;
            if !self.is_free(switch, output) || !self.move_to(&mut stream, switch) {
                return Err(last);
            }
            let link = nodes.link(switch, output).ok_or(last)?;
            self.step(&mut stream, Edge { output, to: link.switch, input: link.port });
        }
    }

    /// Takes rows of streams, each in another die, to one die, and joins them there.
    fn gather(
        &mut self,
        rows: &[Vec<Stream>],
        host: u32,
        towards: Option<u32>,
        draw: &mut SeededDraw,
    ) -> Attempt<Stream> {
        let nodes = self.node_links.nodes;
        let mut met = Vec::new();
        for row in rows {
            let die = self.node_links.die(row[0].switch);
            if die == host {
                met.extend(row.iter().cloned());
                continue;
            }
            let leaves = die * nodes.die_switches() + nodes.to_socket(die, nodes.next_socket(die, host), 0).0;
            let total = self.join(row.clone(), Some(leaves), draw)?;
            met.push(self.cross(total, host)?);
        }
        self.join(met, towards, draw)
    }

    /// Joins everything that enters a node and takes it to where it goes.
    fn finish(&mut self, entries: &[Entry], exit: Exit, arity: usize, draw: &mut SeededDraw) -> Attempt<()> {
        let nodes = self.node_links.nodes;
        let stream = |(at, entry): (usize, &Entry)| Stream {
            from: Source::Entry(at),
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
        let die = self.node_links.die(goal);
        let mut total = if self.node_links.die(total.switch) == die { total } else { self.cross(total, die)? };
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
    fn turn(&mut self, mut total: Stream, at: Option<u32>) -> Attempt<()> {
        let (at, last) = (at.unwrap_or(total.switch), total.last);
        if self.busy[at as usize] || !self.move_to(&mut total, at) {
            return Err(last);
        }
        let meeting = MergePoint { at, ways: vec![Vec::new()], longest: 0, steps: 0 };
        self.meet(vec![total], meeting);
        Ok(())
    }

    /// Joins streams, die by die and round by round, until one is left.
    fn round(
        &mut self,
        mut all: Vec<Stream>,
        goal: Option<u32>,
        arity: usize,
        draw: &mut SeededDraw,
    ) -> Attempt<Stream> {
        loop {
            // Neighbours in one die.
            let mut rows: Vec<Vec<Stream>> = Vec::new();
            for stream in all.drain(..) {
                let die = self.node_links.die(stream.switch);
                match rows.last_mut().filter(|row| self.node_links.die(row[0].switch) == die) {
                    Some(row) => row.push(stream),
                    None => rows.push(vec![stream]),
                }
            }
            if rows.len() == 1 {
                let die = self.node_links.die(rows[0][0].switch);
                let towards = goal.filter(|&goal| self.node_links.die(goal) == die);
                return self.join(rows.remove(0), towards, draw);
            }
            if draw.random_rows {
                all = self.merge_random_rows(rows, arity, draw)?;
                continue;
            }
            for group in self.groups(rows, arity) {
                let joined = self.place(&group, goal, draw)?;
                all.push(joined);
            }
        }
    }

    /// Joins randomly drawn neighbouring rows in the die of one of them; others stay as they are.
    fn merge_random_rows(
        &mut self,
        mut rows: Vec<Vec<Stream>>,
        arity: usize,
        draw: &mut SeededDraw,
    ) -> Attempt<Vec<Stream>> {
        let mut stuck = rows[0].last().map_or(0, |stream| stream.last);
        for _ in 0..4 * rows.len() {
            let at = draw.below(rows.len());
            let die = |row: &[Stream]| self.node_links.die(row[0].switch);
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
            let die = self.node_links.die(row[0].switch);
            let fits = |group: &&mut Vec<Vec<Stream>>| {
                group.len() < arity && group.iter().all(|other| self.node_links.die(other[0].switch) != die)
            };
            match groups.last_mut().filter(fits) {
                Some(group) => group.push(row),
                None => groups.push(vec![row]),
            }
        }
        groups
    }

    /// Joins a group in the first die that can: the one of the goal, then those of the group, then others.
    fn place(&mut self, group: &[Vec<Stream>], goal: Option<u32>, draw: &mut SeededDraw) -> Attempt<Stream> {
        let mut hosts: Vec<u32> = group.iter().map(|row| self.node_links.die(row[0].switch)).collect();
        if group.len() > 1 {
            draw.shuffle(&mut hosts);
            let goal = goal.map(|goal| self.node_links.die(goal));
            let mut others: Vec<u32> = (0..self.node_links.nodes.sockets).filter(|die| !hosts.contains(die)).collect();
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
            let towards = goal.filter(|&goal| self.node_links.die(goal) == host);
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
pub(super) fn plan(node_links: &NodeLinks<'_>, entries: &[Entry], exit: Exit) -> Attempt<Plan> {
    let switches = node_links.edges.len();
    let mut stuck = 0;
    let sockets = node_links.nodes.sockets as usize;
    for arity in ARITIES.into_iter().filter(|&arity| arity == 2 || arity / 2 < sockets) {
        let tries = TRIES[usize::from(switches <= FEW_SWITCHES)];
        for seed in 0..tries {
            let plan = Plan { legs: Vec::new(), engines: Vec::new() };
            let mut draft = PlanBuilder { node_links, taken: vec![0; switches], busy: vec![false; switches], plan };
            match draft.finish(entries, exit, arity, &mut SeededDraw { state: seed, random_rows: seed >= tries / 3 }) {
                Ok(()) => return Ok(draft.plan),
                Err(at) => stuck = at,
            }
        }
    }
    Err(stuck)
}
