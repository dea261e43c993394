//! Hosts as the paper takes them: "we individually determine the latency in each round as a function of the shortest
//! path", without congestion.
//!
//! The same rounds, overheads and memory as on the fabric, but message by message. If a rank begins a round in cycle b,
//! sends s words and receives t, its last word leaves in cycle b + overhead + max(s, (s + t) / memory words a cycle),
//! and the flag a cycle later. The flag is at the partner after the latency of the path without load. A round is over
//! when both are done, and after merging t words, each with its accesses of memory. Headers of packets are left out.
//!
//! With `exchange = "get"` a rank that has begun its round sends the flag at once. Its partner, which must have begun
//! too, requests the words and gets them. The time is that of the flag's way, the request's way, the words, and the way
//! back. So works a machine with shared memory whose cores "exchange a flag between themselves to indicate validity of
//! data in their local collective buffers" (section "Evaluation").

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use super::config::Host;
use super::file::HostExchange;
use watershed_fabric::topology::{Common, Layout, Neighbours, Shape, SwitchGraph, TreeToRoot};
use watershed_piuma::MemoryCfg;
use watershed_piuma::host::Counts;
use watershed_piuma::host::schedule::{Merge, Schedule, Transfer};

/// Latencies of paths without load.
pub struct UnloadedPaths<'a> {
    layout: &'a Layout,
    common: &'a Common,
    neighbours: Neighbours,
    /// By switch and port; empty where the topology knows its links.
    latency: HashMap<(u32, u16), u64>,
    stages: u64,
    /// Where no arithmetic knows the ways: searched ones, to each switch that was asked for.
    graph: OnceCell<SwitchGraph>,
    searched: RefCell<HashMap<u32, TreeToRoot>>,
}

impl<'a> UnloadedPaths<'a> {
    /// The paths of a system whose switches have this many pipeline stages.
    pub fn new(layout: &'a Layout, common: &'a Common, stages: u64) -> UnloadedPaths<'a> {
        if let Shape::Nodes(nodes) = &layout.shape {
            let neighbours = Neighbours::of_nodes(nodes);
            return Self::over(layout, common, neighbours, HashMap::new(), stages);
        }
        let both =
            |link: &watershed_fabric::PlanLink| [(link.a, u64::from(link.latency)), (link.b, u64::from(link.latency))];
        let latency = layout.plan.links.iter().flat_map(both).collect();
        Self::over(layout, common, Neighbours::new(&layout.plan), latency, stages)
    }

    fn over(
        layout: &'a Layout,
        common: &'a Common,
        neighbours: Neighbours,
        latency: HashMap<(u32, u16), u64>,
        stages: u64,
    ) -> UnloadedPaths<'a> {
        UnloadedPaths {
            layout,
            common,
            neighbours,
            latency,
            stages,
            graph: OnceCell::new(),
            searched: RefCell::default(),
        }
    }

    /// The port of the next step: by the topology's arithmetic, or of a searched way of fewest links and least latency.
    fn hop(&self, at: u32, to: u32) -> Option<u16> {
        self.layout.routing.hop(at, to).or_else(|| {
            let graph = self.graph.get_or_init(|| SwitchGraph::new(self.layout));
            let mut searched = self.searched.borrow_mut();
            searched.entry(to).or_insert_with(|| graph.towards(to, None)).hop(at)
        })
    }

    fn link(&self, switch: u32, port: u16) -> u64 {
        let Shape::Nodes(nodes) = &self.layout.shape else {
            return self.latency.get(&(switch, port)).copied().unwrap_or(1);
        };
        let link = nodes.link(switch, port).map(|link| nodes.params(self.common, &link));
        u64::from(link.map_or(self.common.local.latency, |params| params.latency))
    }

    /// Cycles from the cycle in which an end point sends a flit to that in which the other has it, without load; `None`
    /// if no way leads there.
    pub fn cycles(&self, from: u32, to: u32) -> Option<u64> {
        let (from, to) = (self.layout.ends[from as usize], self.layout.ends[to as usize]);
        let at = |switch: u32, port: u16| self.link(switch, port);
        let mut cycles = 1 + at(from.switch, from.port);
        let mut switch = from.switch;
        while switch != to.switch {
            let port = self.hop(switch, to.switch)?;
            cycles += self.stages + at(switch, port);
            switch = self.neighbours.of(switch, port)?.0;
        }
        Some(cycles + self.stages + at(to.switch, to.port))
    }
}

/// The outcome of a host in ideal mode, rank by rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ideal {
    /// When it is done, from a start in cycle 0.
    pub done: Vec<u64>,
    /// What it did.
    pub counts: Vec<Counts>,
}

/// Walks the rounds of a host; `None` if no way leads from one rank to another.
pub fn times(host: &Host, memory: MemoryCfg, paths: &UnloadedPaths<'_>) -> Option<Ideal> {
    let schedule: Schedule = host.schedule();
    let ranks = host.ranks.len();
    // Cycles of this many words of memory, rounded up.
    let grants = |words: u64| {
        memory.bandwidth.map_or(0, |bandwidth| {
            (u128::from(words) * 64 * u128::from(memory.scale)).div_ceil(u128::from(bandwidth.max(1))) as u64
        })
    };
    let length = |transfer: &Option<Transfer>| transfer.as_ref().map_or(0, |t| t.words.end - t.words.start);
    let mut done = vec![0u64; ranks];
    let mut counts = vec![Counts::default(); ranks];
    for number in 0..schedule.rounds() {
        let rounds: Vec<_> = (0..ranks as u32).map(|rank| schedule.round(rank, number)).collect();
        let streams = |rank: usize, done: &[u64]| {
            let (s, t) = (length(&rounds[rank].send), length(&rounds[rank].receive));
            done[rank] + host.file.overhead_cycles + s.max(t).max(grants(s + t))
        };
        let get = host.file.exchange == HostExchange::Get;
        let mut next = done.clone();
        for rank in 0..ranks {
            let round = &rounds[rank];
            if round.is_idle() {
                continue;
            }
            let began = done[rank] + host.file.overhead_cycles;
            let mut over = if get { began } else { streams(rank, &done) };
            over += u64::from(round.send.is_some());
            let counted = &mut counts[rank];
            counted.rounds += 1;
            counted.messages += u64::from(round.send.is_some());
            counted.sent += length(&round.send);
            if let Some(receive) = &round.receive {
                let words = length(&round.receive);
                counted.received += words;
                let peer = receive.peer as usize;
                let way = paths.cycles(host.ranks[peer], host.ranks[rank])?;
                if get {
                    let question = paths.cycles(host.ranks[rank], host.ranks[peer])?;
                    let valid = done[peer] + host.file.overhead_cycles + way;
                    let both = length(&round.send) + words;
                    let answer = words.max(grants(both)) + way;
                    over = over.max(began.max(valid) + question + answer);
                } else {
                    over = over.max(streams(peer, &done) + way);
                }
                if round.merge != Merge::Copy {
                    over += grants(u64::from(host.file.merge_accesses) * words).max(words);
                }
            }
            next[rank] = over;
        }
        done = next;
    }
    Some(Ideal { done, counts })
}
