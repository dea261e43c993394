//! The critical path of a workload: from the last operation back to the first, through ranks and messages.
//!
//! Every cycle from 0 to the end belongs to one step:
//!
//! | step | what it is |
//! |---|---|
//! | compute, load, store | the time of a node |
//! | overhead | software at one end of a message |
//! | message | from its hand-over by the sender until its last word was taken, with the time in the queue of the port |
//! | collective | from when its last member began to the end at the rank of the path |
//! | stream | the node waits for its stream, which a node outside the path occupies |

use crate::run::system::PiumaSystem as System;
use watershed_piuma::rank::Rank;
use watershed_piuma::rank::plan::Record;
use watershed_workload::{Format, Kind, MatchedTrace, Trace};

use super::config::TracedWorkload;
use super::result::Step;

struct PathWalk<'a> {
    trace: &'a Trace,
    matched: &'a MatchedTrace,
    ranks: &'a [&'a Rank],
    steps: Vec<Step>,
}

/// The ranks of a system, by number.
pub fn ranks(system: &System) -> Vec<&Rank> {
    let mut ranks: Vec<&Rank> = system.ends().filter_map(|end| end.rank()).collect();
    ranks.sort_by_key(|rank| rank.number());
    ranks
}

/// The critical path of a workload that has ended, first step first.
pub fn path(traced: &TracedWorkload, ranks: &[&Rank]) -> Vec<Step> {
    let mut walk = PathWalk { trace: &traced.trace, matched: &traced.matched, ranks, steps: Vec::new() };
    let last = (0..).zip(ranks).max_by_key(|(number, rank): &(u32, _)| (rank.end(), u32::MAX - number));
    let Some((number, rank)) = last else { return Vec::new() };
    let node = (0..).zip(rank.records()).max_by_key(|(at, record): &(u32, _)| (record.end, u32::MAX - at));
    let Some((node, record)) = node.filter(|(_, record)| record.end != u64::MAX) else { return Vec::new() };
    let (mut at, mut until) = (Some((number, node)), record.end);
    while let Some(here) = at {
        // What was entered by its start, as `irequires` has it, took none of the path's cycles.
        let entered = until <= walk.record(here).start;
        at = if entered { walk.enabling_operation(here, &mut until) } else { walk.step_back(here, &mut until) };
    }
    walk.steps.reverse();
    walk.steps
}

impl PathWalk<'_> {
    fn record(&self, (rank, node): (u32, u32)) -> Record {
        self.ranks[rank as usize].records()[node as usize]
    }

    /// Puts down a step that ends in cycle `until`, if it takes any.
    fn step(&mut self, what: &str, (rank, node): (u32, u32), start: u64, until: &mut u64) {
        let start = start.min(*until);
        if start == *until {
            return;
        }
        let node = self.trace.ranks[rank as usize].nodes[node as usize].title(self.trace.format);
        let (what, end_cycle) = (what.to_owned(), *until);
        self.steps.push(Step { what, rank: rank.into(), node, start_cycle: start, end_cycle });
        *until = start;
    }

    /// Goes back over one operation; the one before it.
    fn step_back(&mut self, at: (u32, u32), until: &mut u64) -> Option<(u32, u32)> {
        let record = self.record(at);
        let kind = self.trace.ranks[at.0 as usize].nodes[at.1 as usize].kind;
        let overhead = self.ranks[at.0 as usize].plan().overhead;
        match kind {
            Kind::Nothing | Kind::Compute(_) | Kind::Memory { .. } => self.step(kind.word(), at, record.start, until),
            Kind::Send { .. } => {
                if self.trace.format == Format::Chakra {
                    self.step("message", at, record.start + overhead, until);
                }
                self.step("overhead", at, record.start, until);
            }
            Kind::Receive { .. } => {
                self.step("overhead", at, until.saturating_sub(overhead), until);
                // The message came after the receive was posted, or had been there.
                let sender = self.sender(at, record.number);
                let sent = sender.map(|sender| self.record(sender).start + overhead);
                if let (Some(sender), Some(sent)) = (sender, sent)
                    && (record.busy > record.start || sent >= record.start)
                {
                    self.step("message", sender, sent, until);
                    self.step("overhead", sender, sent - overhead, until);
                    return self.enabling_operation(sender, until);
                }
                self.step("message", at, record.start, until);
            }
            Kind::Collective(_) => {
                let index = self.matched.index_of[at.0 as usize][at.1 as usize] as usize;
                let instance = &self.matched.collectives[index];
                let ranks = &self.trace.groups[instance.collective.group as usize].ranks;
                let members = ranks.iter().zip(&instance.nodes).map(|(&rank, &node)| (rank, node));
                // The last to begin; those that began after this one was over held up nobody here.
                let late = members.filter(|&of| self.record(of).start <= *until);
                let last = late.max_by_key(|&of| (self.record(of).start, of == at)).unwrap_or(at);
                let start = self.record(last).start;
                self.step(kind.word(), at, start, until);
                return self.enabling_operation(last, until);
            }
        }
        self.enabling_operation(at, until)
    }

    /// What let an operation start.
    fn enabling_operation(&mut self, at: (u32, u32), until: &mut u64) -> Option<(u32, u32)> {
        let record = self.record(at);
        if record.by == u32::MAX {
            self.step("stream", at, 0, until);
            return None;
        }
        let by = (at.0, record.by);
        let before = self.record(by);
        // With `irequires` the start of the other is enough.
        let go_on = before.end.min(*until);
        self.step("stream", at, if before.end <= *until { go_on } else { before.start }, until);
        Some(by)
    }

    /// The node that sent a message.
    fn sender(&self, at: (u32, u32), number: u32) -> Option<(u32, u32)> {
        let own = [self.matched.index_of[at.0 as usize][at.1 as usize]];
        let channels = self.matched.wildcards.get(&at).map_or(&own[..], Vec::as_slice);
        channels.iter().find_map(|&channel| {
            let channel = &self.matched.channels[channel as usize];
            let sent = |node: &&u32| self.record((channel.from, **node)).number == number;
            channel.sends.iter().find(sent).map(|&node| (channel.from, node))
        })
    }
}
