//! The critical path of a collective in software: from the rank that was done last back through its rounds, and, where
//! a round waited for its partner's message, along that message to the partner's round.
//!
//! | part | phase, kind | cycles |
//! |---|---|---|
//! | a rank that starts late | inject, late start | from the host's start to the beginning of the rank's first round |
//! | overhead of a round | inject, software | from its beginning to the exchange |
//! | sending | inject: memory read, credit wait, inject | from there to the packet that is followed, or to the flag, if that was the last thing of the exchange |
//! | a message | transit: all causes of delay of a packet | from its header to its last flit in the partner's memory |
//! | merging | reduce: memory read, reduce | from the exchange to the end of the round |
//!
//! Within sending and merging the kinds alternate word by word; their sums are shown one after the other.

use super::hops::{Hops, NoInlineBlocks};
use super::{Kind, LastOperand, Path, Phase, Why};
use std::ops::Range;
use watershed_fabric::{Journal, Plan};
use watershed_piuma::host::Host;
use watershed_piuma::host::log::{CycleUse, RoundLog};

/// What a journal says of the messages of hosts.
pub struct Reader<'a> {
    hops: Hops<'a>,
    plan: &'a Plan,
    /// Node of end point 0.
    first: u32,
}

impl<'a> Reader<'a> {
    /// Reads a journal of a system with `ends` end points, the last nodes of its plan, and messages on these channels.
    pub fn new(plan: &'a Plan, journal: &'a Journal, ends: usize, messages: Range<u8>) -> Self {
        Self { hops: Hops::new(plan, journal, messages), plan, first: (plan.nodes.len() - ends) as u32 }
    }

    /// Explains a host from the cycle in which it started to the end of its last rank.
    ///
    /// # Errors
    /// A rank has not ended, no log was kept, or the journal lacks a part of a way.
    pub fn explain(&self, name: &str, ranks: &[&Host], start: u64) -> Result<Why, String> {
        let ends: Option<Vec<u64>> = ranks.iter().map(|rank| rank.end()).collect();
        let ends = ends.ok_or("not every rank has ended")?;
        let end = ends.iter().copied().max().ok_or("it has no ranks")?;
        let mut at = ends.iter().position(|&other| other == end).ok_or("it has no ranks")?;
        let landed = self.name(ranks[at]).to_owned();
        let mut path = Path::new(start, end, Phase::Reduce);
        let mut left = rounds(ranks[at])?.len();
        let last = u64::from(ranks[at].rank());
        // Whether the round is explained from its end, or from a packet of it.
        let mut whole = true;
        while !path.is_done() {
            let place = self.name(ranks[at]);
            let Some(round) = left.checked_sub(1) else {
                path.phase = Phase::Inject;
                path.prepend(start, Kind::LateStart, place);
                break;
            };
            let log = &rounds(ranks[at])?[round];
            if whole {
                path.phase = Phase::Reduce;
                explain_work(
                    &mut path,
                    &log.merging,
                    log.exchanged,
                    Kind::Reduce,
                    &format!("{place}, round {}", log.number + 1),
                );
                if log.arrived == Some(log.exchanged) {
                    let (next, number) = self.message(ranks, at, log, &mut path)?;
                    left = number + 1;
                    at = next;
                    whole = false;
                    continue;
                }
            }
            path.phase = Phase::Inject;
            let place = format!("{place}, round {}", log.number + 1);
            explain_work(&mut path, &log.sending, log.exchange, Kind::Inject, &place);
            path.prepend(log.begun, Kind::Software, place);
            (left, whole) = (round, true);
        }
        path.finish((name, "rank", last), landed, end, None)
    }

    fn name(&self, rank: &Host) -> &'a str {
        self.hops.name(self.first + rank.job().ends[rank.rank() as usize])
    }

    /// Follows the last piece of the message that a round waited for to the rank that sent it; that rank's place in the list, and
    /// that of its round in its log.
    fn message(&self, ranks: &[&Host], at: usize, log: &RoundLog, path: &mut Path) -> Result<(usize, usize), String> {
        let rank = ranks[at];
        let job = rank.job();
        let port = self.hops.base(self.first + job.ends[rank.rank() as usize]);
        let fits = |tag: watershed_fabric::Tag| {
            !self.plan.vcs.is_set(tag.vc()) && tag.id() == job.class && Host::round_of(tag) == log.number
        };
        let (queued, left) = self.hops.last_departure(port, path.at, fits).ok_or("a message came that nobody sent")?;
        path.phase = Phase::Transit;
        // Between the last flit and the end of the exchange there is nothing: both are the same cycle.
        path.prepend(left, Kind::Landing, self.name(rank));
        let origin = self.hops.trace_back(queued, Kind::MemoryWrite, &NoInlineBlocks, path)?;
        let next = ranks
            .iter()
            .position(|other| self.first + other.job().ends[other.rank() as usize] == origin.node)
            .ok_or("a message came from a stranger")?;
        path.engines.push(LastOperand {
            switch: format!("{}, round {}", self.name(rank), log.number + 1),
            from: self.name(ranks[next]).to_owned(),
            cycle: left,
            others: log.sent.iter().map(|sent| ("own sending".to_owned(), left - sent)).collect(),
        });
        let number = rounds(ranks[next])?.iter().position(|round| round.number == log.number);
        Ok((next, number.ok_or("a message of a round that the sender did not have")?))
    }
}

fn rounds(rank: &Host) -> Result<&[RoundLog], String> {
    rank.log().map(watershed_piuma::host::log::Log::rounds).ok_or_else(|| "no log was kept".to_owned())
}

/// Adds sending or merging from a cycle on, up to what is explained already: first what held it up, then the work.
fn explain_work(path: &mut Path, list: &[(u64, CycleUse)], from: u64, work: Kind, place: &str) {
    let to = path.at;
    let mut sums = [0; 3];
    for (index, (cycle, doing)) in list.iter().enumerate() {
        let until = list.get(index + 1).map_or(to, |(next, _)| *next).min(to);
        let slot = match doing {
            CycleUse::Memory => 0,
            CycleUse::NoCredit => 1,
            CycleUse::Work => 2,
        };
        sums[slot] += until.saturating_sub(*cycle);
    }
    // Before the first of them the block turned to it: that is work as well.
    let held = sums[0] + sums[1];
    path.prepend(from + held, work, place);
    path.prepend(from + sums[0], Kind::CreditWait, place);
    path.prepend(from, Kind::MemoryRead, place);
}
