//! Calls of collectives of engines: those of a line wait for each other, lines go beside each other.
//!
//! | field | meaning |
//! |---|---|
//! | `current` | the call under way: its operation, its number in the plan, the core's job |
//! | `answer` | what an engine beside the core's has answered, until the rank looks |
//! | `over` | calls of the line that are over: the turn of the next one |
//! | `held` | operations that wait for their turn, by that |
//!
//! Line 0 is the core's, each job of an engine beside it has one of its own.

use std::collections::BTreeMap;

use super::plan::{Call, Engine, Outcome, Plan, Rounds, digest};
use crate::core::Core;

/// Calls of one line.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Line {
    current: Option<Current>,
    answer: Option<u64>,
    over: u32,
    held: BTreeMap<u32, u32>,
}

/// A call under way.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Current {
    operation: u32,
    call: Call,
}

/// A call that is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Over {
    /// Its outcome.
    pub outcome: Outcome,
    /// The operation that has waited for its turn.
    pub next: Option<u32>,
}

/// The calls of a rank.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Lines {
    list: Vec<Line>,
    /// Where the core keeps the job.
    slot: Option<usize>,
    /// Calls that were begun.
    begun: u32,
}

impl Lines {
    /// Before the first call of a plan.
    pub fn new(plan: &Plan) -> Lines {
        let count = plan.calls.iter().map(|call| usize::from(call.line) + 1).max().unwrap_or(1);
        Lines { list: vec![Line::default(); count], slot: None, begun: 0 }
    }

    /// How many lines there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Calls that were begun.
    pub fn begun(&self) -> u32 {
        self.begun
    }

    /// Where the core keeps the job of a call.
    pub fn slot(&self) -> Option<usize> {
        self.slot
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

    /// A call begins; one of the core's engine with this job.
    pub fn begin(&mut self, call: &Call, operation: u32, job: Option<usize>) {
        self.list[usize::from(call.line)].current = Some(Current { operation, call: *call });
        self.slot = job.or(self.slot);
        self.begun += 1;
    }

    /// The call of a line that an engine beside the core's has not answered.
    pub fn asks(&self, line: usize) -> Option<Rounds> {
        let line = &self.list[line];
        match line.current.filter(|_| line.answer.is_none())?.call.engine {
            Engine::Beside(rounds) => Some(rounds),
            Engine::Core(_) => None,
        }
    }

    /// An engine beside the core's has these words.
    pub fn answer(&mut self, line: usize, mut words: Vec<u64>) {
        let line = &mut self.list[line];
        let Some(Current { call, .. }) = line.current else { return };
        // The last frame may be longer than what is left of the vector.
        words.truncate(if call.kind.receives && call.kind.data { call.words as usize } else { 0 });
        line.answer = Some(digest(&words));
    }

    /// The next call that is over.
    pub fn over(&mut self, core: &Core) -> Option<Over> {
        let slot = self.slot;
        self.list.iter_mut().find_map(|line| {
            let Current { operation, call } = line.current?;
            let (digest, flags) = match call.engine {
                Engine::Core(_) => {
                    let job = &core.jobs()[slot?];
                    job.end()?;
                    (digest(job.output()), job.flags())
                }
                Engine::Beside(_) => (line.answer.take()?, 0),
            };
            line.current = None;
            line.over += 1;
            let next = line.held.remove(&line.over);
            Some(Over { outcome: Outcome { operation, digest, words: [0; 2], flags }, next })
        })
    }

    /// The operations of the calls under way, by line.
    pub fn operations(&self) -> impl Iterator<Item = Option<u32>> {
        self.list.iter().map(|line| line.current.map(|current| current.operation))
    }
}
