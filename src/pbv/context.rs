//! A context of the collective engine: its stored and tracked fields, and the frames made from it (B-CE-2, B-CE-8).
//!
//! Its states and their transitions are in the table of the [collective engine](super::ce).

use std::collections::BTreeSet;
use std::hash::Hasher;

use super::packet::{Header, InitRecord, Message, Packet, Status};
use super::tables::engine_tag;
use super::tracking::Track;
use watershed_arith::{Flags, Op};
use watershed_kernel::{Cycle, Digest};
use watershed_probe::EnumTable;

/// State of a context; see the table of the [collective engine](super::ce).
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
#[repr(u8)]
pub enum State {
    /// Not in the store.
    Absent,
    /// Stored, not tracked.
    Inactive,
    /// Tracked.
    Active,
    /// Tracked, not completed.
    Paused,
    /// The partial response is under way upstream.
    Waiting,
    /// Satisfied was sent down.
    Done,
}

pub(super) static STATES: EnumTable =
    EnumTable { name: "context", names: &["ABSENT", "INACTIVE", "ACTIVE", "PAUSED", "WAITING", "DONE"] };

/// Whom a context hears and answers.
#[derive(Clone, Debug, watershed_state::Saved)]
pub(super) struct Peers {
    /// Who sent the command or the initialisation: answers go there.
    pub requester: u16,
    /// Offset in its address space.
    pub requester_offset: u16,
    /// Who initialised it.
    pub initialiser: u16,
    /// The device whose commands and results count: the engine above, at the master the source.
    pub above: u16,
    /// The engine that expects its response.
    pub collector: u16,
    /// P_ID of this engine at its requester.
    pub p_id: u8,
    /// End point that issued the collective.
    pub dmu_id: u16,
}

/// What a context has of operands and results.
#[derive(Clone, Debug, watershed_state::Saved)]
pub(super) struct Data {
    pub accumulators: Vec<Option<u64>>,
    pub kept: Vec<Option<Vec<u64>>>,
    /// The result that came from upstream, for those who ask for it again.
    pub result: Option<Vec<u64>>,
    /// Data of the multicast under way, for those who have not got it.
    pub cast: Vec<u64>,
    /// Responses that were handed to the source, for when it asks for them again.
    pub handed: Vec<Packet>,
    /// Armed again: the answer of the run before, for those who have not got it.
    pub last: Option<Packet>,
}

/// A context: what is stored of it and what is tracked.
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct Context {
    /// Its number.
    pub cc_id: u16,
    /// State.
    pub state: State,
    /// What initialisation stored.
    pub stored: InitRecord,
    /// The tracking store's entry, as of the last message whose verdict is known.
    pub track: Track,
    /// Those it hears and answers.
    pub(super) peers: Peers,
    /// Header of what it computes: operation, type, mode, run.
    pub(super) like: Header,
    pub(super) flags: Flags,
    pub(super) error: Status,
    pub(super) missing: BTreeSet<u16>,
    pub(super) data: Data,
    /// Counts how often any context of the engine began anew: what is under way in its pipelines carries the one it was
    /// issued in.
    pub(super) generation: u32,
    /// All participants have answered.
    pub(super) satisfied: bool,
    /// The source's contribution was here before the command of this run.
    pub(super) early: bool,
    /// The command of this run has come.
    pub(super) commanded: bool,
    /// Group of an inter-group barrier, at the master: the last run in which all of it have arrived.
    pub(super) arrived: Option<u32>,
    /// Which of the last eight runs up to that one were complete: bit k is that of k runs before.
    pub(super) complete: u8,
    /// Group of an inter-group barrier: it may go on, and with which status.
    pub(super) release: Option<Status>,
    /// Words of this context that wait for or are in the reduction unit.
    pub(super) under_way: u32,
    pub(super) deadline: Option<Cycle>,
    pub(super) retries: u8,
}

impl Context {
    /// The run that it is in, or was in last.
    pub fn run(&self) -> u32 {
        self.like.run
    }

    /// When its watchdog ends, if it runs.
    pub fn deadline(&self) -> Option<Cycle> {
        self.deadline
    }

    /// Whether a run of it is under way: a contribution has entered, or its response has gone up.
    pub fn is_under_way(&self) -> bool {
        let tracked = matches!(self.state, State::Active | State::Paused);
        self.state == State::Waiting && !(self.is_master() && self.stored.groups.is_some())
            || tracked && !self.is_untouched()
    }

    pub(super) fn digest<H: Hasher>(&self, to: &mut Digest<'_, H>) {
        to.of((self.cc_id, self.state, self.stored, self.track, self.like));
        to.of(&self.peers);
        to.of((
            self.flags,
            self.error,
            &self.missing,
            &self.data.accumulators,
            &self.data.kept,
            &self.data.result,
            &self.data.cast,
            &self.data.last,
        ));
        to.of((self.satisfied, self.early, self.commanded, self.release, self.under_way));
        to.of((self.arrived, self.complete));
        to.of((self.deadline.is_some(), self.retries));
    }

    pub(super) fn is_master(&self) -> bool {
        self.stored.master
    }

    /// Whether its responses go on to the source as they are: at the master of an unmerged context.
    pub(super) fn hands_to_source(&self) -> bool {
        self.stored.to_source && self.is_master() && !self.is_multicast()
    }

    /// Whether the receiver of the answer is known: where the source set up every engine, the first command names it.
    pub(super) fn knows_its_requester(&self) -> bool {
        self.is_master() || self.peers.requester != self.peers.dmu_id
    }

    /// Whether its answer of this run was sent down.
    pub(super) fn is_answered(&self) -> bool {
        match self.stored.groups {
            Some(_) => self.release.is_some(),
            None => self.state == State::Done,
        }
    }

    /// Whether it carries a multicast.
    pub(super) fn is_multicast(&self) -> bool {
        self.like.message == Message::Multicast
    }

    /// Notes what went wrong; the first of several stays.
    pub(super) fn fail(&mut self, status: Status) {
        if self.error == Status::Ok {
            self.error = if status == Status::Ok { Status::TimedOut } else { status };
        }
    }

    /// Whether nobody has entered since it was initialised.
    pub(super) fn is_untouched(&self) -> bool {
        (self.track.pbv, self.track.p_count) == (self.stored.pbv, self.stored.p_count)
    }

    pub(super) fn clear(&mut self) {
        self.flags = Flags::NONE;
        self.error = Status::Ok;
        self.missing.clear();
        // The initial value enters once a reduction: at the master. All others begin with their first operand as it is.
        self.data.accumulators.fill(self.stored.initial.filter(|_| self.stored.master));
        self.data.kept.fill(None);
        self.data.result = None;
        self.data.cast.clear();
        self.data.handed.clear();
        self.satisfied = false;
        (self.early, self.commanded, self.release) = (false, false, None);
        self.retries = 0;
        self.under_way = 0;
        self.deadline = None;
    }
}

impl Context {
    /// A response with the data of this context, addressed to its requester.
    pub(super) fn response(&self, message: Message, me: (u16, u16)) -> Packet {
        let mut header = Header { message, requester: me.0, tag: engine_tag(me.1), posted: false, ..self.like };
        (header.device, header.offset) = (self.peers.requester, self.peers.requester_offset);
        (header.p_id, header.dmu_id) = (self.peers.p_id, self.peers.dmu_id);
        header.flags = self.flags;
        header.status = match (message, self.release) {
            // A member that may go on is told of the failures of other groups, not of its own.
            (Message::Satisfied, Some(status)) => status,
            _ => self.error,
        };
        header.error = header.status != Status::Ok;
        header.p_count = self.stored.p_count;
        let barrier = self.like.op == Op::Barrier || self.is_multicast();
        let whole: Option<Vec<u64>> = self.data.accumulators.iter().copied().collect();
        Packet::of(header, if barrier { Vec::new() } else { whole.unwrap_or_default() })
    }
}
