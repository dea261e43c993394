//! The pipelines of a core: threads that run programs, their local memory, and the interrupt controller (requirements
//! P-CCE-1, P-ISA-1 to P-ISA-3, P-MSR-2, P-AR-1, P-AR-3; "In-network multicast operations", FIG. 3).
//!
//! ```text
//!   MTP 0 … 3   STP 0, 1          one instruction a pipeline and cycle, ready threads of a pipeline in turn
//!      │  │  │    │  ▲
//!   ═══╧══╧══╧════╧══╪═══ crossbar
//!      │      │      └── ICU ◀── events ── CCE ── port 7
//!  scratchpad memory ───────── collectives ── port 7
//! ```
//!
//! | parameter | default | unit | range | effect |
//! |---|---|---|---|---|
//! | `core.mtps`, `core.mtp_threads` | 4, 16 | | 1 to 64 | threads a core can run |
//! | `core.stps` | 2 | | 0 to 16 | single threads, and handlers of interrupts |
//! | `core.xbar_cycles` | 1 | cycles | from 1 | to the CCE or a register, and as long back |
//! | `core.xbar_ports` | 1 | requests | from 1 | that the crossbar takes in a cycle; others wait, pipelines in turn |
//! | `core.outstanding_calls` | 64 | calls | from 1 | calls under way in a core; a further one waits |
//! | `core.register_access`, `core.register_accesses` | in-band, 1 | | | to registers of other switches: see [`access`](super::access) |
//! | `core.interrupt_cycles` | 4 | cycles | from 1 | from an event to the handler's first instruction |
//! | `core.local_memory_words`, `core.scratchpad_words` | 2^20, 2^13 | words | | |
//!
//! Timing: after an instruction that is issued in cycle t the thread issues its next one from t + 1 on, after
//! `compute n` from t + max(n, 1) on. A load or store of local memory takes until the memory has granted the word, plus
//! its latency; one of the scratchpad takes a cycle. An operation over the crossbar reaches its unit at t + xbar, and
//! the thread goes on xbar cycles after it was served. A blocking collective lets the thread go on in the cycle after
//! its last word has landed.
//!
//! *Chosen*: a handler runs on the lowest STP that runs no handler, in a context of its own; the thread of that STP
//! waits meanwhile. Handlers of one tree run one after the other; the ICU holds one bit a tree. A core's calls of one
//! collective id run one after the other. The vector of a call is read word by word, as memory grants them, and its
//! result written likewise: a program that stores into the one or loads from the other meanwhile acts on the words of
//! that cycle. Stores to configuration registers take effect in the cycle after they reach them. A register of the own
//! switch is one crossbar and one link away; one of another switch is as far as a [packet](super::access) goes. A thread goes
//! on when its access is over, so two of them to one place keep their order. A register of a tree that is in use must not be written, and a
//! written tree must be complete before its next use; the run checks both. Calls and messages of ids that meet others
//! at a switch [claim](super::claim) their trees.
//!
//! ```
//! use std::sync::Arc;
//! use watershed_piuma::{EndExtras, End};
//! use watershed_piuma::program::assemble;
//! use watershed_piuma::{Processor, ProcessorCfg};
//! # use watershed_fabric::{Bench, Vcs};
//! # use watershed_piuma::{Core, MemoryCfg, Registers, RegistersCfg};
//! # use watershed_fabric::routing::{Routes, Routing};
//! # use watershed_fabric::topology::Die;
//! # let routes = Routes { routing: Routing::Die(Die::default()), ends: Vec::new() };
//! # let registers = Registers::new(RegistersCfg { switches: 1, ids: 4, external_ports: 10 }, vec!["sw0".to_owned()], routes);
//! # let memory = MemoryCfg { bandwidth: None, scale: 1, read_latency: 0, write_latency: 0 };
//! # let core = Core::new(Arc::new(memory));
//!
//! let cfg = ProcessorCfg {
//!     mtps: 1,
//!     mtp_threads: 1,
//!     stps: 0,
//!     queue_depth: 8,
//!     queue_ports: 1,
//!     xbar: 1,
//!     xbar_ports: 1,
//!     decoders: 1,
//!     calls: 1,
//!     accesses: 1,
//!     interrupt: 4,
//!     local_words: 64,
//!     scratchpad_words: 64,
//! };
//! let program = assemble("compute 7\n add r1, r1, 40\n add r1, r1, 2\n report r1\n").unwrap();
//! let mut processor = Processor::new(cfg, (0, 1), 0, "core0".into(), 4);
//! assert!(processor.start(&Arc::new(program), false, 3)); // a thread, from cycle 3 on
//! let beside = EndExtras { processor: Some(processor), ..EndExtras::default() };
//! let end = End { core: Some(Box::new(core)), beside: Some(Box::new(beside)), ..End::default() };
//! let mut bench = Bench::<_, _, 1>::at_the_end(end, registers, Vcs { set: 2, unicast: 0 }, []);
//! while bench.tick() {}
//! let report = bench.block().processor().unwrap().reports()[0];
//! assert_eq!((report.cycle, report.value), (12, 42)); // 3, 7 cycles of computing, two additions
//! ```

mod call;
mod calls;
mod crossbar;
mod operands;
mod reports;
mod state;

use super::Registers;
use call::Calls;
pub use call::{Call, ReadyCall, Role};
pub use crossbar::RegisterAccess;

use super::cce::{Cce, CceCounts, MAX_SENDER};
use super::core::Core;
use super::icu::Icu;
use super::program::{Instruction, Program, REGISTERS, SCRATCHPAD, Source};
use super::thread::{Activity, Pipeline, State, Thread};
pub use super::thread::{Key, Request, Store};
use std::sync::Arc;
use watershed_fabric::Io;
use watershed_kernel::{Cycle, Wake};

/// Parameters; see the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorCfg {
    /// Multi-threaded pipelines.
    pub mtps: u32,
    /// Threads of each.
    pub mtp_threads: u32,
    /// Single-threaded pipelines.
    pub stps: u32,
    /// Messages of a multicast queue.
    pub queue_depth: u32,
    /// Operations that each queue takes, and gives, in a cycle.
    pub queue_ports: u32,
    /// Cycles through the crossbar.
    pub xbar: u64,
    /// Requests that the crossbar takes in a cycle.
    pub xbar_ports: u32,
    /// Operations that the CCE decodes in a cycle.
    pub decoders: u32,
    /// Calls of collectives under way.
    pub calls: u32,
    /// Accesses to registers of other switches under way.
    pub accesses: u32,
    /// Cycles from an event to the handler.
    pub interrupt: u64,
    /// Words of local memory.
    pub local_words: u64,
    /// Words of the scratchpad.
    pub scratchpad_words: u64,
}

/// A value that a program reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Report {
    /// When.
    pub cycle: Cycle,
    /// Number of the thread.
    pub thread: u32,
    /// Line of the program.
    pub line: u32,
    /// What.
    pub value: u64,
}

/// The last use of a collective id by a core: a call, or a message to a tree.
#[derive(Clone, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct IdUse {
    /// The id.
    pub id: u16,
    /// Cycle of the instruction.
    pub cycle: Cycle,
    /// Thread and line.
    pub by: (u32, u32),
}

/// The programmable part of a core.
#[derive(Clone, Debug)]
pub struct Processor {
    cfg: ProcessorCfg,
    /// Its number, and how many cores there are.
    ranks: (u32, u32),
    /// The switch it is at.
    switch: u32,
    name: String,
    /// MTPs, then STPs.
    pipelines: Vec<Pipeline>,
    cce: Cce,
    roles: Vec<Option<Role>>,
    handler: Option<Arc<Program>>,
    icu: Icu,
    crossbar: crossbar::Crossbar,
    local: Vec<u64>,
    scratchpad: Vec<u64>,
    calls: Calls,
    reports: Vec<Report>,
    handled: u64,
    halted: u32,
    started: u32,
    /// Stores to configuration registers that the driver is to make.
    stores: Vec<Store>,
    /// The last use of each id, for the checks of the run.
    uses: Vec<IdUse>,
}

impl Processor {
    /// A core without threads. `ids` is the number of collective ids.
    pub fn new(cfg: ProcessorCfg, ranks: (u32, u32), switch: u32, name: String, ids: u16) -> Processor {
        Processor {
            cfg,
            ranks,
            switch,
            name,
            pipelines: vec![Pipeline::default(); (cfg.mtps + cfg.stps) as usize],
            cce: Cce::new(ids, cfg.queue_depth, cfg.queue_ports),
            roles: vec![None; usize::from(ids)],
            handler: None,
            icu: Icu::default(),
            crossbar: crossbar::Crossbar::default(),
            local: Vec::new(),
            scratchpad: Vec::new(),
            calls: Calls::default(),
            reports: Vec::new(),
            handled: 0,
            halted: 0,
            started: 0,
            stores: Vec::new(),
            uses: Vec::new(),
        }
    }

    /// Starts a thread in cycle `start`, on the next free place of an MTP (in turn) or of an STP; `false` if there is none.
    pub fn start(&mut self, program: &Arc<Program>, on_stp: bool, start: Cycle) -> bool {
        let (mtps, stps) = (self.cfg.mtps as usize, self.cfg.stps as usize);
        let (range, most) = if on_stp { (mtps..mtps + stps, 1) } else { (0..mtps, self.cfg.mtp_threads as usize) };
        let place = range.min_by_key(|&at| (self.pipelines[at].threads.len(), at));
        let Some(place) = place.filter(|&at| self.pipelines[at].threads.len() < most) else { return false };
        let state = if start == 0 { State::Ready } else { State::Until(start, Activity::Compute) };
        let number = self.started;
        self.started += 1;
        let program = Arc::clone(program);
        let thread = Thread { number, program, pc: 0, regs: [0; REGISTERS], state, handler: None };
        self.pipelines[place].threads.push(thread);
        true
    }

    /// The program whose handler the interrupts of this core run.
    pub fn set_handler(&mut self, program: &Arc<Program>) {
        self.handler = Some(Arc::clone(program));
    }

    /// Whether a handler is set.
    pub fn has_handler(&self) -> bool {
        self.handler.is_some()
    }

    /// The CCE.
    pub fn cce_mut(&mut self) -> &mut Cce {
        &mut self.cce
    }

    /// Whether messages to a tree are on their way to the switch.
    pub fn is_sending_to(&self, id: u16, now: Cycle) -> bool {
        let crossing = |of: &IdUse| of.id == id && of.cycle + self.cfg.xbar + 1 >= now;
        self.cce.is_sending_to(id) || (self.cce.serves(id) && self.uses.iter().any(crossing))
    }

    /// The CCE, to look at.
    pub fn cce(&self) -> &Cce {
        &self.cce
    }

    /// What the CCE counted.
    pub fn counted(&self) -> CceCounts {
        self.cce.counted()
    }

    /// Gives the core a part in a collective that programs call.
    pub fn set_role(&mut self, id: u16, role: Role) {
        self.roles[usize::from(id)] = Some(role);
    }

    /// Writes words of local memory before cycle 0; `false` if there is no room.
    pub fn fill(&mut self, address: u64, words: &[u64]) -> bool {
        let first = address / 8;
        if first + words.len() as u64 > self.cfg.local_words {
            return false;
        }
        self.grow(first + words.len() as u64);
        self.local[first as usize..][..words.len()].copy_from_slice(words);
        true
    }

    /// Lets the jobs of all calls keep the cycles in which their words land, and the core those of its accesses to registers;
    /// before the first cycle.
    pub fn keep_times(&mut self) {
        self.calls.keeps_times = true;
        self.crossbar.log = Some(Vec::new());
    }

    /// The calls, in the order in which they were issued.
    pub fn calls(&self) -> &[Call] {
        &self.calls.list
    }

    /// What was reported.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// Runs of the handler that have ended.
    pub fn handled(&self) -> u64 {
        self.handled
    }

    /// Threads.
    pub fn threads(&self) -> u32 {
        self.started
    }

    /// Stores to registers of its own switch since the last time.
    pub fn take_stores(&mut self) -> impl Iterator<Item = Store> + '_ {
        self.stores.drain(..)
    }

    /// The last use of each id.
    pub fn uses(&self) -> &[IdUse] {
        &self.uses
    }

    /// Calls that have become ready to claim since the last time.
    pub fn take_ready(&mut self) -> Vec<ReadyCall> {
        std::mem::take(&mut self.calls.ready)
    }

    /// The end point it is at.
    pub fn number(&self) -> u32 {
        self.ranks.0
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn note_use(&mut self, key: Key, id: u16, cycle: Cycle) {
        let thread = self.thread(key);
        let by = (thread.number, thread.line());
        match self.uses.iter_mut().find(|known| known.id == id) {
            Some(known) => *known = IdUse { id, cycle, by },
            None => self.uses.push(IdUse { id, cycle, by }),
        }
    }

    /// Whether all threads have ended, no handler runs or is to run, and nothing is on its way out.
    pub fn is_done(&self) -> bool {
        self.halted == self.started
            && (self.icu.pending().is_empty() || self.handler.is_none() || self.cfg.stps == 0)
            && self.pipelines.iter().all(|pipeline| pipeline.handler.is_none())
            && self.calls.list.iter().all(|call| call.end.is_some())
            && !self.cce.is_sending()
    }

    /// A word of local memory, for tests and results.
    pub fn local(&self, address: u64) -> u64 {
        self.local.get((address / 8) as usize).copied().unwrap_or(0)
    }

    /// Local memory, for the core beside it.
    pub(super) fn local_mut(&mut self) -> &mut Vec<u64> {
        &mut self.local
    }

    fn grow(&mut self, words: u64) {
        if self.local.len() < words as usize {
            self.local.resize(words as usize, 0);
        }
    }

    // --------------------------------------------------------------------------------------------------- cycle

    /// One clock; the collective end point `core` has had its own before.
    pub fn tick(&mut self, core: &mut Core, io: &mut Io<'_>, registers: &Registers) -> Wake {
        let now = io.now();
        let mut wake = Wake::OnInput;

        // Collectives: what has landed, and what may start.
        self.complete(core, io);
        if self.begin(core, now) {
            wake = Wake::Next;
        }
        let told = !self.calls.ready.is_empty();

        // CCE: a request in, operations of threads in order, a message out.
        if let Some(id) = self.cce.receive_from(io) {
            self.icu.raise(id, now + self.cfg.interrupt);
        }
        self.operate(io);
        self.access(registers, io);
        if self.cce.ask(io) || told {
            // The driver takes it to the wires of claims.
            io.complete();
        }
        if self.cce.send_to(io) {
            wake = Wake::Next;
        }
        if io.head(0, super::REQUEST).is_some_and(|flit| self.cce.serves(flit.tag.id())) {
            wake = Wake::Next;
        }

        self.interrupts(now);

        // Pipelines: one instruction each.
        core.no_thread_waits();
        let (count, first) = (self.pipelines.len(), self.crossbar.next_q);
        self.crossbar.left = self.cfg.xbar_ports;
        for at in (first..count).chain(0..first) {
            self.issue(at, core, io, registers);
        }
        wake.or(self.next_wake(core, now))
    }

    fn thread(&mut self, (pipeline, thread): Key) -> &mut Thread {
        let pipeline = &mut self.pipelines[pipeline];
        match thread {
            Some(thread) => &mut pipeline.threads[thread],
            None => pipeline.handler.as_mut().expect("an operation of a handler that runs"),
        }
    }

    /// Starts handlers of events that are due.
    fn interrupts(&mut self, now: Cycle) {
        let Some(program) = self.handler.clone() else { return };
        let Some(entry) = program.handler else { return };
        let first = self.cfg.mtps as usize;
        let due: Vec<(Cycle, u16)> = self.icu.pending().iter().filter(|(since, _)| *since <= now).copied().collect();
        for due in due {
            let stps = &mut self.pipelines[first..];
            let handles = |stp: &Pipeline| stp.handler.as_ref().is_some_and(|thread| thread.handler == Some(due.1));
            if stps.iter().any(handles) {
                continue;
            }
            let Some(stp) = stps.iter_mut().find(|stp| stp.handler.is_none()) else { return };
            self.icu.clear(due.1);
            let mut regs = [0; REGISTERS];
            regs[0] = u64::from(due.1);
            let number = stp.threads.first().map_or(u32::MAX, |thread| thread.number);
            let program = Arc::clone(&program);
            stp.handler = Some(Thread { number, program, pc: entry, regs, state: State::Ready, handler: Some(due.1) });
        }
    }

    /// Whether a thread computes, or begins, until a time that will come.
    pub(super) fn expects(&self, now: Cycle) -> bool {
        let mut threads = self.pipelines.iter().flat_map(|pipeline| pipeline.threads.iter().chain(&pipeline.handler));
        threads.any(|thread| matches!(thread.state, State::Until(at, Activity::Compute) if at > now))
    }

    fn next_wake(&mut self, core: &mut Core, now: Cycle) -> Wake {
        let mut wake = Wake::OnInput;
        let mut memory = false;
        for pipeline in &self.pipelines {
            let threads = pipeline.handler.iter().chain(if pipeline.handler.is_some() {
                [].iter()
            } else {
                pipeline.threads.iter()
            });
            for thread in threads {
                match thread.state {
                    State::Ready | State::Crossbar => wake = Wake::Next,
                    State::Calls if self.has_call_left() => wake = Wake::Next,
                    State::Remotes if self.has_access_left() => wake = Wake::Next,
                    State::Until(at, _) => wake = wake.or(Wake::At(at.max(now + 1))),
                    State::Memory => memory = true,
                    State::Collective(call) if self.calls.list[call].end.is_some() => wake = Wake::Next,
                    State::Engine(..)
                    | State::Register(_)
                    | State::Remote
                    | State::Remotes
                    | State::Collective(_)
                    | State::Calls
                    | State::Halted => {}
                }
            }
        }
        // Threads of interrupted pipelines may have operations in the CCE, too.
        for &(key, decoded) in &self.crossbar.operations.clone() {
            let State::Engine(since, activity) = self.thread(key).state else { continue };
            let thread = self.thread(key);
            let (instruction, _) = thread.program.code[thread.pc];
            let served = match instruction {
                Instruction::Wait(_, _, tree, _) if activity == Activity::Wait => {
                    let tree = self.value(key, tree, now);
                    self.cce.has_message(tree as u16)
                }
                Instruction::Send(tree, ..) if activity == Activity::Send => {
                    let tree = self.value(key, tree, now);
                    self.cce.has_room_to_send(tree as u16)
                }
                _ => true,
            };
            if since > now {
                wake = wake.or(Wake::At(since));
            } else if !decoded || served {
                wake = Wake::Next;
            }
        }
        for &key in &self.crossbar.accesses.clone() {
            if let State::Register(at) = self.thread(key).state {
                wake = wake.or(Wake::At(at.max(now + 1)));
            }
        }
        let stps = &self.pipelines[self.cfg.mtps as usize..];
        for &(at, id) in self.icu.pending().iter().filter(|_| self.handler.is_some()) {
            let busy = |stp: &Pipeline| stp.handler.as_ref().is_some_and(|thread| thread.handler == Some(id));
            if at > now {
                wake = wake.or(Wake::At(at));
                break;
            }
            if stps.iter().any(|stp| stp.handler.is_none()) && !stps.iter().any(busy) {
                wake = Wake::Next;
            }
        }
        for (at, call) in self.calls.list.iter().enumerate().filter(|(_, call)| call.job.is_none()) {
            // Who comes behind another call starts when that is complete.
            if !self.calls.list[..at].iter().any(|before| before.id == call.id && before.end.is_none()) {
                wake = wake.or(Wake::At((call.issued + self.cfg.xbar).max(now + 1)));
            }
        }
        if memory {
            wake = wake.or(Wake::At(core.memory_mut().next_grant(now)));
        }
        wake
    }

    // ------------------------------------------------------------------------------------------------- threads

    fn value(&mut self, key: Key, source: Source, now: Cycle) -> u64 {
        match source {
            Source::Reg(register) => self.thread(key).regs[usize::from(register)],
            Source::Number(number) => number,
            Source::Core => u64::from(self.ranks.0),
            Source::Cores => u64::from(self.ranks.1),
            Source::Thread => u64::from(self.thread(key).number),
            Source::Cycle => now,
        }
    }

    fn issue(&mut self, at: usize, core: &mut Core, io: &mut Io<'_>, registers: &Registers) {
        let now = io.now();
        let pipeline = &mut self.pipelines[at];
        // Answers that have arrived make the threads of this pipeline ready.
        for thread in pipeline.threads.iter_mut().chain(&mut pipeline.handler) {
            match thread.state {
                State::Until(due, _) if due <= now => thread.state = State::Ready,
                State::Collective(call) if self.calls.list[call].end.is_some() => thread.state = State::Ready,
                _ => {}
            }
        }
        let (calls, accesses) = (self.has_call_left(), self.has_access_left());
        let pipeline = &mut self.pipelines[at];
        let can = |thread: &Thread| match thread.state {
            State::Calls => calls,
            State::Remotes => accesses,
            state => matches!(state, State::Ready | State::Memory | State::Crossbar),
        };
        let key = if let Some(handler) = &pipeline.handler {
            can(handler).then_some((at, None))
        } else {
            let count = pipeline.threads.len();
            let mut turn = (0..count).map(|i| (pipeline.next_q + i) % count);
            let next = turn.find(|&thread| can(&pipeline.threads[thread]));
            if let Some(thread) = next {
                pipeline.next_q = thread + 1;
            }
            next.map(|thread| (at, Some(thread)))
        };
        if let Some(key) = key {
            self.execute(key, core, io, registers);
        }
    }

    fn execute(&mut self, key: Key, core: &mut Core, io: &mut Io<'_>, registers: &Registers) {
        use Instruction as I;
        let now = io.now();
        let thread = self.thread(key);
        let (instruction, _) = thread.program.code.get(thread.pc).copied().unwrap_or((I::Halt, 0));
        let set = |this: &mut Self, register: u8, value: u64| {
            this.thread(key).regs[usize::from(register)] = value;
        };
        if self.departs(key, instruction, registers, io) {
            return;
        }
        let mut next = State::Ready;
        match instruction {
            I::Mov(d, x) => {
                let value = self.value(key, x, now);
                set(self, d, value);
            }
            I::Alu(alu, d, x, y) => {
                let value = alu.apply(self.value(key, x, now), self.value(key, y, now));
                set(self, d, value);
            }
            I::Branch(condition, x, y, to) => {
                let (x, y) = (self.value(key, x, now), self.value(key, y, now));
                if condition.holds(x, y) {
                    self.thread(key).pc = to;
                    return;
                }
            }
            I::Compute(x) => {
                let cycles = self.value(key, x, now);
                if cycles > 1 {
                    next = State::Until(now.saturating_add(cycles), Activity::Compute);
                }
            }
            I::Load(d, base, offset) => match self.load_into(key, (d, base, offset), core, io) {
                Some(state) => next = state,
                None => return,
            },
            I::Store(base, offset, x) => match self.store_from(key, (base, offset, x), core, io) {
                Some(state) => next = state,
                None => return,
            },
            I::Send(tree, _, sender, _) => {
                let sender = self.value(key, sender, now);
                if sender > MAX_SENDER {
                    return self.trap(key, io, &format!("sender id {sender:#x} is wider than 36 bits"));
                }
                return self.engine(key, tree, Activity::Send, io);
            }
            I::Poll(_, _, _, tree) => return self.engine(key, tree, Activity::Poll, io),
            I::Wait(_, _, tree, _) => return self.engine(key, tree, Activity::Wait, io),
            I::Call(intrinsic, handle, arguments) => match self.start_call(key, (intrinsic, handle, arguments), io) {
                Some(state) => next = state,
                None => return,
            },
            I::Test(d, handle) => {
                let handle = self.value(key, handle, now) as usize;
                let Some(call) = self.calls.list.get(handle) else {
                    return self.trap(key, io, &format!("there is no call {handle}"));
                };
                let done = u64::from(call.end.is_some());
                set(self, d, done);
            }
            I::Await(handle) => {
                let handle = self.value(key, handle, now) as usize;
                if handle >= self.calls.list.len() {
                    return self.trap(key, io, &format!("there is no call {handle}"));
                }
                next = State::Collective(handle);
            }
            I::Report(x) => {
                let value = self.value(key, x, now);
                let thread = self.thread(key);
                let report = Report { cycle: now, thread: thread.number, line: thread.line(), value };
                self.reports.push(report);
            }
            I::Expect(x, y) => {
                let (x, y) = (self.value(key, x, now), self.value(key, y, now));
                if x != y {
                    return self.trap(key, io, &format!("{x:#x} is not {y:#x}"));
                }
            }
            I::Iret => return self.leave_handler(key, io),
            I::Halt => return self.halt(key, io),
        }
        let thread = self.thread(key);
        thread.pc += 1;
        thread.state = next;
    }

    fn leave_handler(&mut self, key: Key, io: &mut Io<'_>) {
        if self.thread(key).handler.is_none() {
            return self.trap(key, io, "`iret` outside of a handler");
        }
        self.handled += 1;
        self.pipelines[key.0].handler = None;
        io.complete();
    }

    fn halt(&mut self, key: Key, io: &mut Io<'_>) {
        if self.thread(key).handler.is_some() {
            return self.trap(key, io, "the handler ends without `iret`");
        }
        self.thread(key).state = State::Halted;
        self.halted += 1;
        io.complete();
    }

    fn trap(&mut self, key: Key, io: &mut Io<'_>, why: &str) {
        let name = self.describe(key);
        io.fail(|| format!("{name}: {why}"));
        self.thread(key).state = State::Halted;
    }

    /// A thread, in words: its core, pipeline and line.
    pub fn describe(&self, key: Key) -> String {
        let (pipeline, mtps) = (key.0, self.cfg.mtps as usize);
        let unit = if pipeline < mtps { format!("MTP {pipeline}") } else { format!("STP {}", pipeline - mtps) };
        let name = &self.name;
        let of = &self.pipelines[pipeline];
        let Some(thread) = key.1.map_or(of.handler.as_ref(), |at| of.threads.get(at)) else { return name.clone() };
        let what = if thread.handler.is_some() { "handler".to_owned() } else { format!("thread {}", thread.number) };
        format!("{name}, {what} on {unit}, line {}", thread.line())
    }

    /// Sends an operation through the crossbar to the CCE.
    fn engine(&mut self, key: Key, tree: Source, activity: Activity, io: &mut Io<'_>) {
        let now = io.now();
        let tree = self.value(key, tree, now);
        if tree >= u64::from(self.cce.ids()) || !self.cce.serves(tree as u16) {
            return self.trap(key, io, &format!("there is no multicast tree {tree}"));
        }
        if activity == Activity::Send {
            self.note_use(key, tree as u16, now);
        }
        self.cross(key, activity, now);
    }

    // -------------------------------------------------------------------------------------------------- memory

    fn word(&self, address: u64) -> Result<usize, String> {
        if address & 7 != 0 {
            return Err("it is not a multiple of 8".into());
        }
        let (word, words) = (
            (address & (SCRATCHPAD - 1)) / 8,
            if address >> 60 == 0 { self.cfg.local_words } else { self.cfg.scratchpad_words },
        );
        if word < words { Ok(word as usize) } else { Err(format!("there are {words} words")) }
    }

    /// The word at an address and the cycle in which the thread has it; `None` if the memory has no bandwidth left now.
    fn load(&mut self, address: u64, core: &mut Core, now: Cycle) -> Result<Option<(u64, Cycle)>, String> {
        match address & (0xf << 60) {
            0 => {
                let word = self.word(address)?;
                let value = self.local.get(word).copied().unwrap_or(0);
                let (read, _) = core.latencies();
                Ok(core.grant_thread(now).then_some((value, now + 1 + read)))
            }
            SCRATCHPAD => {
                let word = self.word(address)?;
                Ok(Some((self.scratchpad.get(word).copied().unwrap_or(0), now + 1)))
            }
            _ => Err("nothing is there".into()),
        }
    }

    /// Stores a word; the cycle from which the thread goes on, `None` if the memory has no bandwidth left now.
    fn store(&mut self, address: u64, value: u64, core: &mut Core, now: Cycle) -> Result<Option<Cycle>, String> {
        match address & (0xf << 60) {
            0 => {
                let word = self.word(address)?;
                if !core.grant_thread(now) {
                    return Ok(None);
                }
                self.grow(word as u64 + 1);
                self.local[word] = value;
                Ok(Some(now + 1))
            }
            SCRATCHPAD => {
                let word = self.word(address)?;
                if self.scratchpad.len() <= word {
                    self.scratchpad.resize(word + 1, 0);
                }
                self.scratchpad[word] = value;
                Ok(Some(now + 1))
            }
            _ => Err("nothing is there".into()),
        }
    }
}

/// The low bytes.
fn mask(size: u8) -> u64 {
    u64::MAX >> (64 - 8 * u32::from(size))
}
