//! The log of a rank: its rounds with their cycles, from which `why` explains a latency. It is kept only on request.

use std::collections::BTreeMap;

use watershed_kernel::Cycle;

/// How a rank's sending or merging used a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum CycleUse {
    /// A flit went onto the link, or the link was busy with the one before; a word was merged.
    Work,
    /// The next buffer had no place.
    NoCredit,
    /// The memory was not fast enough.
    Memory,
}

/// A round of a rank. Cycles follow each other in the order of the fields.
#[derive(Clone, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct RoundLog {
    /// Its number in the schedule.
    pub number: u32,
    /// It began, with its overhead.
    pub begun: Cycle,
    /// The overhead was over.
    pub exchange: Cycle,
    /// From each of these cycles on, what sending came to.
    pub sending: Vec<(Cycle, CycleUse)>,
    /// The flag behind the words was sent; none if it sends nothing.
    pub sent: Option<Cycle>,
    /// The last word or flag of the partner was taken; none if nothing comes.
    pub arrived: Option<Cycle>,
    /// Both were done.
    pub exchanged: Cycle,
    /// From each of these cycles on, what merging came to.
    pub merging: Vec<(Cycle, CycleUse)>,
    /// The round was over; the next one begins in this cycle.
    pub end: Cycle,
}

/// The rounds of a rank, in order; those in which it has nothing to do are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Log {
    rounds: Vec<RoundLog>,
    /// When the last piece of a round's message came, for rounds that are not over.
    arrived: BTreeMap<u32, Cycle>,
}

impl Log {
    /// The rounds that are over, and at most one that is not.
    pub fn rounds(&self) -> &[RoundLog] {
        &self.rounds
    }

    pub(super) fn begin(&mut self, number: u32, begun: Cycle, exchange: Cycle) {
        self.rounds.push(RoundLog {
            number,
            begun,
            exchange,
            sending: Vec::new(),
            sent: None,
            arrived: None,
            exchanged: Cycle::MAX,
            merging: Vec::new(),
            end: Cycle::MAX,
        });
    }

    pub(super) fn arrive(&mut self, round: u32, now: Cycle) {
        self.arrived.insert(round, now);
    }

    pub(super) fn send(&mut self, now: Cycle, doing: CycleUse) {
        if let Some(round) = self.rounds.last_mut() {
            note(&mut round.sending, now, doing);
        }
    }

    pub(super) fn sent(&mut self, now: Cycle) {
        if let Some(round) = self.rounds.last_mut() {
            round.sent = Some(now);
        }
    }

    pub(super) fn exchanged(&mut self, now: Cycle) {
        if let Some(round) = self.rounds.last_mut() {
            round.exchanged = now;
            round.arrived = self.arrived.remove(&round.number);
        }
    }

    pub(super) fn merge(&mut self, now: Cycle, doing: CycleUse) {
        if let Some(round) = self.rounds.last_mut() {
            note(&mut round.merging, now, doing);
        }
    }

    pub(super) fn over(&mut self, now: Cycle) {
        if let Some(round) = self.rounds.last_mut() {
            round.end = now;
        }
    }
}

fn note(list: &mut Vec<(Cycle, CycleUse)>, now: Cycle, doing: CycleUse) {
    // What was foreseen and did not come to pass.
    while list.last().is_some_and(|(from, _)| *from >= now) {
        list.pop();
    }
    if list.last().is_none_or(|(_, last)| *last != doing) {
        list.push((now, doing));
    }
}
