//! Calls of collectives of engines: those of a line wait for each other, lines go beside each other.
//!
//! | field | meaning |
//! |---|---|
//! | `current` | the call under way: its operation, its number in the plan |
//! | `jobs` | where the core keeps jobs of the line: those that claim are told of after they end, so that the next one takes another place |
//! | `answer` | what an engine beside the core's has answered, until the rank looks |
//! | `over` | calls of the line that are over: the turn of the next one |
//! | `held` | operations that wait for their turn, by that |
//!
//! `ready` are calls that have become ready to [claim](crate::claim): the driver takes them to its wires.

use std::collections::BTreeMap;

use super::plan::{Call, Engine, Outcome, Plan, Rounds, digest};
use crate::core::Core;
use crate::job::Job;
use crate::processor::ReadyCall;
use watershed_kernel::Cycle;

/// Calls of one line.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct CallLine {
    current: Option<ActiveCall>,
    jobs: [Option<usize>; 2],
    answer: Option<u64>,
    over: u32,
    held: BTreeMap<u32, u32>,
}

/// A call under way.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
struct ActiveCall {
    operation: u32,
    call: Call,
}

impl Call {
    /// The place of its job among those of its line.
    fn place(&self) -> usize {
        match self.engine {
            Engine::Core { claims: true, .. } => self.turn as usize % 2,
            _ => 0,
        }
    }
}

/// A call that is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct FinishedCall {
    /// Its outcome.
    pub outcome: Outcome,
    /// The operation that has waited for its turn.
    pub next: Option<u32>,
}

/// The calls of a rank.
#[derive(Clone, Debug, watershed_state::Saved)]
pub(super) struct CallLines {
    list: Vec<CallLine>,
    ready: Vec<ReadyCall>,
    /// Calls that were begun.
    begun: u32,
}

impl CallLines {
    /// Before the first call of a plan.
    pub fn new(plan: &Plan) -> CallLines {
        let count = plan.calls.iter().map(|call| usize::from(call.line) + 1).max().unwrap_or(1);
        CallLines { list: vec![CallLine::default(); count], ready: Vec::new(), begun: 0 }
    }

    /// How many lines there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Calls that were begun.
    pub fn begun(&self) -> u32 {
        self.begun
    }

    /// Whether it is the turn of a call; if not, its operation waits.
    pub fn is_turn(&mut self, call: &Call, operation: u32) -> bool {
        let line = &mut self.list[usize::from(call.line)];
        let is_turn = line.over == call.turn;
        if !is_turn {
            line.held.insert(call.turn, operation);
        }
        is_turn
    }

    /// A call begins; one of the core's engine with these words, from the next cycle on.
    pub fn begin(&mut self, call: &Call, operation: u32, (core, words): (&mut Core, Vec<u64>), now: Cycle) {
        let line = &mut self.list[usize::from(call.line)];
        line.current = Some(ActiveCall { operation, call: *call });
        self.begun += 1;
        let Engine::Core { id, claims } = call.engine else { return };
        let mut job = Job::new(id, call.kind, if call.kind.data { call.words } else { 1 }, words.into(), 0, now + 1);
        if claims {
            job.claim(now + 1);
        }
        let place = &mut line.jobs[call.place()];
        let at = core.call_in(*place, job);
        *place = Some(at);
        if claims {
            self.ready.push(ReadyCall { id, job: at, cycle: now + 1 });
        }
    }

    /// Calls that have become ready to claim since the last time.
    pub fn take_ready(&mut self) -> Vec<ReadyCall> {
        std::mem::take(&mut self.ready)
    }

    /// Whether there are such.
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The call of a line that an engine beside the core's has not answered.
    pub fn unanswered_call(&self, line: usize) -> Option<Rounds> {
        let line = &self.list[line];
        match line.current.filter(|_| line.answer.is_none())?.call.engine {
            Engine::Beside(rounds) => Some(rounds),
            Engine::Core { .. } => None,
        }
    }

    /// An engine beside the core's has these words.
    pub fn answer(&mut self, line: usize, mut words: Vec<u64>) {
        let line = &mut self.list[line];
        let Some(ActiveCall { call, .. }) = line.current else { return };
        // The last frame may be longer than what is left of the vector.
        words.truncate(if call.kind.receives && call.kind.data { call.words as usize } else { 0 });
        line.answer = Some(digest(&words));
    }

    /// The next call that is over.
    pub fn over(&mut self, core: &Core) -> Option<FinishedCall> {
        self.list.iter_mut().find_map(|line| {
            let ActiveCall { operation, call } = line.current?;
            let (digest, flags) = match call.engine {
                Engine::Core { .. } => {
                    let job = &core.jobs()[line.jobs[call.place()]?];
                    job.end()?;
                    (digest(job.output()), job.flags())
                }
                Engine::Beside(_) => (line.answer.take()?, 0),
            };
            line.current = None;
            line.over += 1;
            let next = line.held.remove(&line.over);
            Some(FinishedCall { outcome: Outcome { operation, digest, words: [0; 2], flags }, next })
        })
    }

    /// The operations of the calls under way, by line.
    pub fn operations(&self) -> impl Iterator<Item = Option<u32>> {
        self.list.iter().map(|line| line.current.map(|current| current.operation))
    }
}
