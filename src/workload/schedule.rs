//! The time of a trace without a network: messages take no time, collectives none or a given time, streams run one node
//! at a time. Only computing and dependencies remain.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use super::{ANY, Collective, Compute, Error, Kind, MatchedTrace, Trace, check::NONE};

/// When everything ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// When each rank has ended, in ps.
    pub ends: Vec<u64>,
    /// The critical path: who computed when, the last one first. What lies between two steps takes no time.
    pub path: Vec<Step>,
    /// When each node of each rank has started and ended, in ps.
    pub nodes: Vec<Vec<(u64, u64)>>,
}

/// How long things take, in ps.
#[derive(Clone, Copy)]
pub struct Durations<'a> {
    /// Computing.
    pub compute: &'a dyn Fn(&Compute) -> u64,
    /// A collective, from when its last member has begun.
    pub collective: &'a dyn Fn(&Collective) -> u64,
}

impl Durations<'_> {
    /// Computing as it was measured; collectives take no time.
    pub const MEASURED: Durations<'static> = Durations { compute: &|compute| compute.ps, collective: &|_| 0 };
}

/// A step of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The rank.
    pub rank: u32,
    /// Its node.
    pub node: u32,
    /// When it started, in ps.
    pub start: u64,
    /// When it ended, in ps.
    pub end: u64,
}

/// Checks that every node can run at all: no rank waits for another one that waits for it.
///
/// # Errors
/// A node that never ends.
pub(crate) fn ends(trace: &Trace, matched: &MatchedTrace) -> Result<(), Error> {
    let mut clock = Scheduler::new(trace, matched, false, Durations { compute: &|_| 0, collective: &|_| 0 });
    clock.relaxed = true;
    clock.run().map(|_| ())
}

/// How long it takes.
///
/// # Errors
/// A node that never starts, as its stream is taken by one that waits for it.
pub fn schedule(trace: &Trace, matched: &MatchedTrace, times: Durations<'_>) -> Result<Schedule, Error> {
    let paced = Scheduler::new(trace, matched, true, times).run();
    if matched.wildcards.is_empty() || paced.is_ok() {
        return paced;
    }
    let mut clock = Scheduler::new(trace, matched, true, times);
    clock.relaxed = true;
    clock.run()
}

/// A node of a rank.
type NodeRef = (u32, u32);

struct Scheduler<'a> {
    trace: &'a Trace,
    matched: &'a MatchedTrace,
    /// Streams run one node at a time.
    streams: bool,
    /// A receive of an open channel takes what comes over any of them: who gets what hangs on when it comes, which only a network knows.
    relaxed: bool,
    times: Durations<'a>,
    nodes: Vec<Vec<NodeState>>,
    followers: Vec<Vec<Vec<(u32, bool)>>>,
    /// What a stream runs, and what waits for it by when it became ready.
    busy: BTreeMap<(u32, u16), StreamState>,
    channels: Vec<UnmatchedMessages>,
    /// Of each rank: messages of open channels that were sent and not received, and receives that wait for such, in their order.
    wildcards: Vec<WildcardMessages>,
    /// Members of each collective that have started.
    started: Vec<u32>,
    events: BinaryHeap<Reverse<(u64, NodeRef)>>,
    ready: VecDeque<(u64, NodeRef)>,
}

#[derive(Default)]
struct StreamState {
    node: Option<u32>,
    waiting: BTreeSet<(u64, u32)>,
}

/// Messages that were sent and that are waited for, and not matched yet.
#[derive(Default)]
struct UnmatchedMessages {
    sent: VecDeque<(u64, u32)>,
    waited: VecDeque<(u64, u32)>,
}

/// Messages of open channels, by their channels, and receives that could take some of them.
#[derive(Default)]
struct WildcardMessages {
    sent: Vec<u32>,
    waited: Vec<u32>,
}

#[derive(Clone, Copy)]
struct NodeState {
    left: u32,
    start: u64,
    end: Option<u64>,
    /// Who let it start or end last.
    by: Option<NodeRef>,
}

/// Whether a receive takes messages of a channel.
fn fits(matched: &MatchedTrace, (rank, node): NodeRef, channel: u32) -> bool {
    match matched.wildcards.get(&(rank, node)) {
        Some(channels) => channels.binary_search(&channel).is_ok(),
        None => matched.index_of[rank as usize][node as usize] == channel,
    }
}

impl<'a> Scheduler<'a> {
    fn new(trace: &'a Trace, matched: &'a MatchedTrace, streams: bool, times: Durations<'a>) -> Scheduler<'a> {
        let state = |waits: usize| NodeState { left: waits as u32, start: 0, end: None, by: None };
        let nodes = trace.ranks.iter().map(|rank| rank.nodes.iter().map(|node| state(node.waits.len())).collect());
        let followers = trace.ranks.iter().map(|rank| {
            let mut lists = vec![Vec::new(); rank.nodes.len()];
            for (at, node) in (0..).zip(&rank.nodes) {
                for wait in &node.waits {
                    lists[wait.node as usize].push((at, wait.start));
                }
            }
            lists
        });
        Scheduler {
            trace,
            matched,
            streams,
            relaxed: false,
            times,
            nodes: nodes.collect(),
            followers: followers.collect(),
            busy: BTreeMap::new(),
            channels: matched.channels.iter().map(|_| UnmatchedMessages::default()).collect(),
            wildcards: trace.ranks.iter().map(|_| WildcardMessages::default()).collect(),
            started: vec![0; matched.collectives.len()],
            events: BinaryHeap::new(),
            ready: VecDeque::new(),
        }
    }

    fn state(&mut self, (rank, node): NodeRef) -> &mut NodeState {
        &mut self.nodes[rank as usize][node as usize]
    }

    fn run(mut self) -> Result<Schedule, Error> {
        for rank in 0..self.nodes.len() as u32 {
            for node in 0..self.nodes[rank as usize].len() as u32 {
                if self.state((rank, node)).left == 0 {
                    self.ready.push_back((0, (rank, node)));
                }
            }
        }
        loop {
            while let Some((now, at)) = self.ready.pop_front() {
                self.request_stream(now, at);
            }
            let Some(Reverse((now, at))) = self.events.pop() else { break };
            self.end(now, at, None);
        }
        self.find_deadlock()?;
        Ok(self.result())
    }

    /// Takes the stream of a node that is ready, or lets it wait for it.
    fn request_stream(&mut self, now: u64, at: NodeRef) {
        let node = &self.trace.ranks[at.0 as usize].nodes[at.1 as usize];
        let receives = matches!(node.kind, Kind::Receive { .. });
        let Some(stream) = node.stream.filter(|_| self.streams && !receives) else { return self.start(now, at) };
        let busy = self.busy.entry((at.0, stream)).or_default();
        if busy.node.is_none() {
            busy.node = Some(at.1);
            self.start(now, at);
        } else {
            busy.waiting.insert((now, at.1));
        }
    }

    fn start(&mut self, now: u64, at: NodeRef) {
        self.state(at).start = now;
        self.release(now, at, true);
        let index = self.matched.index_of[at.0 as usize][at.1 as usize];
        match self.trace.ranks[at.0 as usize].nodes[at.1 as usize].kind {
            Kind::Nothing | Kind::Memory { .. } => self.events.push(Reverse((now, at))),
            Kind::Compute(compute) => {
                self.events.push(Reverse((now.saturating_add((self.times.compute)(&compute)), at)));
            }
            Kind::Send { .. } if self.matched.channels[index as usize].has_wildcard => {
                let to = self.matched.channels[index as usize].to;
                let fits = |node: &u32| self.relaxed || fits(self.matched, (to, *node), index);
                match self.wildcards[to as usize].waited.iter().position(fits) {
                    Some(place) => {
                        let node = self.wildcards[to as usize].waited.remove(place);
                        self.end(now, (to, node), Some(at));
                    }
                    None => self.wildcards[to as usize].sent.push(index),
                }
                self.events.push(Reverse((now, at)));
            }
            Kind::Receive { .. } if index == NONE || self.matched.channels[index as usize].has_wildcard => {
                let takes = |&channel: &u32| self.relaxed || fits(self.matched, at, channel);
                let sent = self.wildcards[at.0 as usize].sent.iter().position(takes);
                if let Some(place) = sent {
                    self.wildcards[at.0 as usize].sent.remove(place);
                    self.events.push(Reverse((now, at)));
                } else {
                    self.state(at).by = Some((at.0, NONE));
                    self.wildcards[at.0 as usize].waited.push(at.1);
                }
            }
            Kind::Send { .. } => {
                let to = self.matched.channels[index as usize].to;
                let waited = self.channels[index as usize].waited.pop_front();
                match waited {
                    Some((_, node)) => self.end(now, (to, node), Some(at)),
                    None => self.channels[index as usize].sent.push_back((now, at.1)),
                }
                self.events.push(Reverse((now, at)));
            }
            Kind::Receive { from, .. } => {
                if self.channels[index as usize].sent.pop_front().is_some() {
                    self.events.push(Reverse((now, at)));
                } else {
                    self.state(at).by = Some((from, NONE));
                    self.channels[index as usize].waited.push_back((now, at.1));
                }
            }
            Kind::Collective(_) => {
                let instance = &self.matched.collectives[index as usize];
                self.started[index as usize] += 1;
                if self.started[index as usize] == instance.nodes.len() as u32 {
                    let ranks = &self.trace.groups[instance.collective.group as usize].ranks;
                    let time = (self.times.collective)(&instance.collective);
                    for (&rank, &node) in ranks.iter().zip(&instance.nodes) {
                        let by = Some(at).filter(|_| (rank, node) != at);
                        if time == 0 {
                            self.end(now, (rank, node), by);
                        } else {
                            let state = self.state((rank, node));
                            state.by = by.or(state.by);
                            self.events.push(Reverse((now.saturating_add(time), (rank, node))));
                        }
                    }
                }
            }
        }
    }

    /// Ends a node; `by`: another one that let it end.
    fn end(&mut self, now: u64, at: NodeRef, by: Option<NodeRef>) {
        let state = self.state(at);
        state.end = Some(now);
        state.by = by.or(state.by);
        let node = &self.trace.ranks[at.0 as usize].nodes[at.1 as usize];
        if let Some(busy) = node.stream.and_then(|stream| self.busy.get_mut(&(at.0, stream)))
            && busy.node == Some(at.1)
        {
            busy.node = None;
            if let Some((_, next)) = busy.waiting.pop_first() {
                busy.node = Some(next);
                self.state((at.0, next)).by = Some(at);
                self.start(now, (at.0, next));
            }
        }
        self.release(now, at, false);
    }

    /// Lets those go on that waited for a node to start, or to end.
    fn release(&mut self, now: u64, at: NodeRef, start: bool) {
        for index in 0..self.followers[at.0 as usize][at.1 as usize].len() {
            let (node, on_start) = self.followers[at.0 as usize][at.1 as usize][index];
            if on_start != start {
                continue;
            }
            let state = self.state((at.0, node));
            state.left -= 1;
            if state.left == 0 {
                state.by = Some(at);
                self.ready.push_back((now, (at.0, node)));
            }
        }
    }

    /// The first node that never ends, if there is one.
    fn find_deadlock(&self) -> Result<(), Error> {
        let open = |at: &&NodeState| at.end.is_none();
        for (rank, nodes) in self.nodes.iter().enumerate() {
            // One that waits for other ranks says more than those that wait for it.
            let waits = |state: &&NodeState| open(state) && state.left == 0;
            let Some(node) = nodes.iter().position(|state| waits(&state)) else { continue };
            let index = self.matched.index_of[rank][node] as usize;
            let what = match self.trace.ranks[rank].nodes[node].kind {
                Kind::Receive { from, tag, .. } if from == ANY || tag == ANY => {
                    "it never ends: what could come is received by others, or waits for this rank".to_owned()
                }
                Kind::Receive { from, tag, .. } => {
                    format!("it never ends: rank {from} waits for this rank before it sends the message with tag {tag}")
                }
                Kind::Collective(_) => {
                    let instance = &self.matched.collectives[index];
                    let ranks = &self.trace.groups[instance.collective.group as usize].ranks;
                    let late = ranks.iter().zip(&instance.nodes).find(|&(&rank, &node)| {
                        let state = &self.nodes[rank as usize][node as usize];
                        state.left > 0 || self.waits_for_stream(rank, node)
                    });
                    let late = late.map_or(rank as u32, |(&rank, _)| rank);
                    format!("it never ends: rank {late} waits for this rank before it takes part")
                }
                _ => "it never starts: its stream is taken by what waits for it".to_owned(),
            };
            return Err(self.trace.error(rank, node, what).help("ranks wait for each other in a circle"));
        }
        Ok(())
    }

    fn waits_for_stream(&self, rank: u32, node: u32) -> bool {
        self.busy.range((rank, 0)..=(rank, u16::MAX)).any(|(_, busy)| busy.waiting.iter().any(|&(_, at)| at == node))
    }

    fn result(&self) -> Schedule {
        let end = |nodes: &Vec<NodeState>| nodes.iter().filter_map(|state| state.end).max().unwrap_or(0);
        let ends: Vec<u64> = self.nodes.iter().map(end).collect();
        let mut path = Vec::new();
        let last = ends.iter().copied().max().unwrap_or(0);
        let mut at = ends.iter().position(|&end| end == last).and_then(|rank| {
            let node = self.nodes[rank].iter().position(|state| state.end == Some(last))?;
            Some((rank as u32, node as u32))
        });
        while let Some((rank, node)) = at.filter(|at| at.1 != NONE) {
            let state = self.nodes[rank as usize][node as usize];
            let end = state.end.unwrap_or(state.start);
            if matches!(self.trace.ranks[rank as usize].nodes[node as usize].kind, Kind::Compute(_))
                && end > state.start
            {
                path.push(Step { rank, node, start: state.start, end });
            }
            at = state.by;
        }
        let times = |state: &NodeState| (state.start, state.end.unwrap_or(state.start));
        let nodes = self.nodes.iter().map(|nodes| nodes.iter().map(times).collect()).collect();
        Schedule { ends, path, nodes }
    }
}
