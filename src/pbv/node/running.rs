//! What a node knows of a part of its while it runs, and what its runs came to.

use super::part::{Part, TaskTime};
use crate::packet::{Header, Packet, Status};
use watershed_arith::Flags;
use watershed_kernel::Cycle;
use watershed_probe::EnumTable;

/// State of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
#[repr(u8)]
pub enum PartState {
    /// Nothing asked of it.
    Idle,
    /// Its task waits for another one.
    Waits,
    /// Its task runs.
    Working,
    /// Contribution made.
    Met,
}

pub(super) static STATES: EnumTable = EnumTable { name: "part", names: &["IDLE", "WAITS", "WORKING", "MET"] };

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Outcome {
    /// Which run.
    pub run: u32,
    /// Cycle in which the contribution was made; of a node that only watches the cycle of the answer.
    pub met: Cycle,
    /// Cycle of the last flit of satisfied.
    pub cycle: Cycle,
    /// The result.
    pub words: Vec<u64>,
    /// Its flags.
    pub flags: Flags,
    /// Whether it is marked as an error, and why.
    pub error: Option<Status>,
}

#[derive(Clone, Debug, watershed_state::Saved)]
pub(super) struct Running {
    pub(super) part: Part,
    pub(super) state: PartState,
    /// Cycle in which the task ends.
    pub(super) until: Cycle,
    pub(super) run: u32,
    pub(super) started: u32,
    pub(super) outcomes: Vec<Outcome>,
    /// The command it sent as a source.
    pub(super) command: Option<Packet>,
    /// The run, and with which status, in which the other groups were there before this node was.
    pub(super) released: Option<(u32, Option<Status>)>,
    /// As the source of a group: the last run in which all of the group have arrived.
    pub(super) arrived: Option<u32>,
    /// When its patience ends, and how often it has asked.
    pub(super) alarm: Option<Cycle>,
    pub(super) asked: u32,
    /// Runs and cycles in which it made its contributions.
    pub(super) made: Vec<(u32, Cycle)>,
    /// When the context is set up again, when it was last, and how often for this run.
    pub(super) set_up_due: Option<Cycle>,
    pub(super) set_up_at: Cycle,
    pub(super) set_ups: u32,
    /// Runs that were called.
    pub(super) called: u32,
}

impl Running {
    /// Whether the node begins nothing else for now.
    pub(super) fn blocks_others(&self) -> bool {
        self.part.blocks && matches!(self.state, PartState::Working | PartState::Met)
    }

    /// Whether its run waits for a call.
    pub(super) fn is_uncalled(&self) -> bool {
        self.state == PartState::Working && self.part.task == TaskTime::Called && self.run > self.called
    }

    /// Whether a run is later than every one that it knows the end of.
    pub(super) fn is_news(&self, run: u32) -> bool {
        self.outcomes.last().is_none_or(|last| run.wrapping_sub(last.run) as i32 > 0)
    }

    /// Waits for an answer from now on.
    pub(super) fn wait(&mut self, now: Cycle) {
        self.alarm = (self.part.patience > 0).then(|| now + self.part.patience);
        self.asked = 0;
    }

    /// Whether it waits for the answer of this run, its contribution made.
    pub(super) fn has_met(&self, run: u32) -> bool {
        self.state == PartState::Met && self.run == run
    }

    /// Whether the master asks for the result that this source has, or has given up.
    pub(super) fn is_asked_for_result(&self, header: &Header) -> bool {
        let waits = self.state != PartState::Idle || self.command.is_some();
        let gather = self.part.gather.as_ref().filter(|gather| gather.master == header.requester);
        gather.is_some_and(|gather| !waits || gather.answer(header.run).is_some())
    }

    /// A run ends without an answer.
    pub(super) fn give_up(&mut self, status: Status, now: Cycle) {
        let met = self.until.min(now);
        let (words, flags, error) = (Vec::new(), Flags::NONE, Some(status));
        if self.is_news(self.run) {
            self.outcomes.push(Outcome { run: self.run, met, cycle: now, words, flags, error });
        }
        if self.command.is_some() {
            self.arrived = Some(self.run);
        }
        (self.state, self.alarm, self.command) = (PartState::Idle, None, None);
    }

    /// A run ends with an answer.
    pub(super) fn end(&mut self, outcome: Outcome) {
        self.outcomes.push(outcome);
        self.state = PartState::Idle;
        if !self.part.group {
            self.command = None;
        }
        // The source of a group waits to hear that all of it are there.
        if self.command.is_none() {
            self.alarm = None;
        }
    }
}
