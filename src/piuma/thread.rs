//! The threads of a core's pipelines: their registers and states.

use super::program::{Program, REGISTERS};
use std::sync::Arc;
use watershed_kernel::Cycle;
use watershed_probe::EnumTable;

/// A thread of a core: its pipeline, and its place there or none if it is the handler.
pub type Key = (usize, Option<usize>);

/// A store to a configuration register, in the cycle in which it is at the register.
#[derive(Clone, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Store {
    /// Where, in the address map of the registers.
    pub address: u64,
    /// What.
    pub value: u64,
    /// The cycle.
    pub cycle: Cycle,
    /// The end point whose thread stores.
    pub core: u32,
    /// The thread.
    pub thread: Key,
}

/// An access to a register of another switch that leaves a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Request {
    /// The thread.
    pub thread: Key,
    /// The register.
    pub address: u64,
    /// What is to be stored; a load has nothing.
    pub store: Option<u64>,
    /// The end point through which the register is reached.
    pub to: u32,
    /// From when on it can leave.
    pub ready: Cycle,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub(super) enum State {
    /// It can issue.
    Ready,
    /// Computes, or waits for an answer, until a cycle.
    Until(Cycle, Activity),
    /// Waits for the memory to grant a word.
    Memory,
    /// An access is on its way to a configuration register, until a cycle.
    Register(Cycle),
    /// The answer to a request for a register of another switch has not come.
    Remote,
    /// Waits until the core may have one more such request under way.
    Remotes,
    /// Waits for a port of the crossbar.
    Crossbar,
    /// Waits until the core may have one more call under way.
    Calls,
    /// An operation stands in the CCE since a cycle.
    Engine(Cycle, Activity),
    /// Waits for a call.
    Collective(usize),
    Halted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub(super) enum Activity {
    Compute,
    Load,
    Answer,
    /// An access to an MSR.
    Msr,
    Send,
    Poll,
    Wait,
}

pub(super) static STATES: EnumTable = EnumTable {
    name: "thread",
    names: &[
        "READY",
        "COMPUTE",
        "MEMORY",
        "CROSSBAR",
        "SEND",
        "POLL",
        "WAIT",
        "COLLECTIVE",
        "HALTED",
        "INTERRUPTED",
        "LOAD",
        "CROSSBAR_PORT",
        "CALLS",
    ],
};

/// A thread, or a handler while it runs.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) number: u32,
    pub(super) program: Arc<Program>,
    pub(super) pc: usize,
    pub(super) regs: [u64; REGISTERS],
    pub(super) state: State,
    /// The tree whose event it handles.
    pub(super) handler: Option<u16>,
}

impl Thread {
    /// The line of the instruction that it executes, or that it will issue next. A thread has gone on to the next
    /// instruction when it waits for what the last one does; operations in the CCE and the memory keep theirs.
    pub(super) fn line(&self) -> u32 {
        let waits = matches!(self.state, State::Collective(_) | State::Until(..));
        let at = if waits { self.pc.saturating_sub(1) } else { self.pc };
        self.program.code.get(at).map_or(0, |(_, line)| *line)
    }

    pub(super) fn wave_state(&self) -> u64 {
        match self.state {
            State::Ready => 0,
            State::Until(_, Activity::Compute) => 1,
            State::Until(_, Activity::Load) => 10,
            State::Memory => 2,
            State::Crossbar | State::Remotes => 11,
            State::Calls => 12,
            State::Engine(_, Activity::Msr) | State::Until(..) | State::Register(_) | State::Remote => 3,
            State::Engine(_, Activity::Send) => 4,
            State::Engine(_, Activity::Poll) => 5,
            State::Engine(..) => 6,
            State::Collective(_) => 7,
            State::Halted => 8,
        }
    }
}

/// The threads of a pipeline; a handler goes first.
#[derive(Clone, Debug, Default)]
pub(super) struct Pipeline {
    pub(super) threads: Vec<Thread>,
    pub(super) handler: Option<Thread>,
    pub(super) next_q: usize,
}
