//! Operations over a core's crossbar: operations in the CCE, accesses to its MSRs and to configuration registers.

use super::super::cce::{Message, Msr};
use super::super::program::{CONFIGURATION, Instruction, MSR, SCRATCHPAD};
use super::super::thread::{Activity, State};
use super::{Key, Processor, Request, Store, mask};
use crate::Registers;
use watershed_fabric::Io;
use watershed_kernel::Cycle;

/// An access to a configuration register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct RegisterAccess {
    /// The thread.
    thread: Key,
    /// The collective id whose register it is.
    pub id: u16,
    /// Whether it was written.
    pub stored: bool,
    /// Cycle of the instruction.
    pub issued: Cycle,
    /// Cycle from which on the thread went on; none before that.
    pub until: Option<Cycle>,
}

/// What is in the crossbar and behind it.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub(super) struct Crossbar {
    /// Operations in the CCE in the order in which they came: pipeline, thread (`None`: its handler), and whether it is decoded.
    pub(super) operations: Vec<(Key, bool)>,
    /// Accesses to registers of the own switch under way, and out of band to those of others.
    pub(super) accesses: Vec<Key>,
    /// Accesses to registers of other switches under way, and requests for them that are to leave.
    pub(super) remote: u32,
    pub(super) requests: Vec<Request>,
    /// When accesses were issued and when their threads went on, if that is kept: only then.
    pub(super) log: Option<Vec<RegisterAccess>>,
    /// Ports that are left in this cycle.
    pub(super) left: u32,
    /// The pipeline that goes first.
    pub(super) next_q: usize,
}

impl Processor {
    /// Operations in the CCE whose cycle has come, oldest first: as many are decoded as it has decoders; each thread has at most
    /// one.
    pub(super) fn operate(&mut self, io: &mut Io<'_>) {
        let (now, mut decoders) = (io.now(), self.cfg.decoders);
        let operations = std::mem::take(&mut self.crossbar.operations);
        for (key, mut decoded) in operations {
            let thread = self.thread(key);
            let State::Engine(since, _) = thread.state else { continue };
            let (instruction, _) = thread.program.code[thread.pc];
            if !decoded && since <= now && decoders > 0 {
                (decoded, decoders) = (true, decoders - 1);
            }
            if !decoded || !self.serve(key, instruction, io) {
                self.crossbar.operations.push((key, decoded));
                continue;
            }
            let back = now + self.cfg.xbar;
            let thread = self.thread(key);
            if thread.state != State::Halted {
                thread.pc += 1;
                thread.state = State::Until(back, Activity::Answer);
            }
        }
    }

    /// One operation of a thread in the CCE; `false` if it has to wait.
    fn serve(&mut self, key: Key, instruction: Instruction, io: &mut Io<'_>) -> bool {
        let now = io.now();
        match instruction {
            Instruction::Send(tree, data, sender, size) => {
                let (tree, data, sender) =
                    (self.value(key, tree, now), self.value(key, data, now), self.value(key, sender, now));
                self.cce.accept(tree as u16, Message { data: data & mask(size), sender }, now)
            }
            Instruction::Poll(status, data, sender, tree) => {
                let tree = self.value(key, tree, now);
                let Ok(message) = self.cce.take(tree as u16, now) else { return false };
                let thread = self.thread(key);
                thread.regs[usize::from(status)] = u64::from(message.is_some());
                if let Some(message) = message {
                    thread.regs[usize::from(data)] = message.data;
                    thread.regs[usize::from(sender)] = message.sender;
                }
                true
            }
            Instruction::Wait(data, sender, tree, size) => {
                let tree = self.value(key, tree, now);
                let Ok(Some(message)) = self.cce.take(tree as u16, now) else { return false };
                let thread = self.thread(key);
                thread.regs[usize::from(data)] = message.data & mask(size);
                thread.regs[usize::from(sender)] = message.sender;
                true
            }
            Instruction::Load(d, base, offset) => {
                let address = self.value(key, base, now).wrapping_add(offset);
                match Msr::at(address & (SCRATCHPAD - 1), self.cce.ids()) {
                    Some((id, msr)) => self.thread(key).regs[usize::from(d)] = self.cce.load(id, msr),
                    None => self.trap(key, io, &format!("load from {address:#x}: there is no MSR")),
                }
                true
            }
            Instruction::Store(base, offset, x) => {
                let address = self.value(key, base, now).wrapping_add(offset);
                let value = self.value(key, x, now);
                let stored = Msr::at(address & (SCRATCHPAD - 1), self.cce.ids()).ok_or("there is no MSR");
                if let Err(why) = stored.and_then(|(id, msr)| self.cce.store(id, msr, value)) {
                    self.trap(key, io, &format!("store to {address:#x}: {why}"));
                }
                true
            }
            _ => true,
        }
    }

    /// Whether the core may have one more call under way.
    pub(super) fn has_call_left(&self) -> bool {
        self.calls.list.iter().filter(|call| call.end.is_none()).count() < self.cfg.calls as usize
    }

    /// Whether the core may have one more access to a register of another switch under way.
    pub(super) fn has_access_left(&self) -> bool {
        self.crossbar.remote < self.cfg.accesses
    }

    /// Requests for registers of other switches that leave the crossbar.
    pub fn take_requests(&mut self) -> impl Iterator<Item = Request> + '_ {
        self.crossbar.requests.drain(..)
    }

    /// Accesses to configuration registers, in the order in which they were issued, if [times](Processor::keep_times) are kept.
    pub fn accessed(&self) -> &[RegisterAccess] {
        self.crossbar.log.as_deref().unwrap_or_default()
    }

    /// Whether an instruction leaves the pipeline through the crossbar for another unit than the CCE's queues, or waits for that:
    /// then nothing else is to be done in this cycle.
    pub(super) fn departs(
        &mut self,
        key: Key,
        instruction: Instruction,
        registers: &Registers,
        io: &mut Io<'_>,
    ) -> bool {
        use Instruction as I;
        let now = io.now();
        let address = match instruction {
            I::Load(_, base, offset) | I::Store(base, offset, _) => self.value(key, base, now).wrapping_add(offset),
            _ => 0,
        };
        let space = address & (0xf << 60);
        let crosses = match instruction {
            I::Call(..) if !self.has_call_left() => {
                self.thread(key).state = State::Calls;
                return true;
            }
            I::Load(..) | I::Store(..)
                if space == CONFIGURATION
                    && !self.has_access_left()
                    && self.remote(registers, address & (SCRATCHPAD - 1)).is_some() =>
            {
                self.thread(key).state = State::Remotes;
                return true;
            }
            I::Send(..) | I::Poll(..) | I::Wait(..) | I::Call(..) => true,
            _ => space == CONFIGURATION || space == MSR,
        };
        if crosses && self.crossbar.left == 0 {
            self.thread(key).state = State::Crossbar;
            return true;
        }
        if crosses {
            self.crossbar.left -= 1;
            self.crossbar.next_q = (key.0 + 1) % self.pipelines.len();
        }
        if space == MSR {
            self.cross(key, Activity::Msr, now);
        }
        if space == CONFIGURATION {
            let rest = address & (SCRATCHPAD - 1);
            let what = if matches!(instruction, I::Load(..)) { "load from" } else { "store to" };
            match registers.named(rest) {
                Err(error) => self.trap(key, io, &format!("{what} {address:#x}: {error}")),
                Ok(named) => self.begin_access(key, instruction, (rest, named.id), registers, now),
            }
        }
        space == MSR || space == CONFIGURATION
    }

    /// The end point through which a register is reached in band; none if it is one of the own switch, or out of band.
    fn remote(&self, registers: &Registers, address: u64) -> Option<u32> {
        let switch = registers.switch_of(address);
        registers.access_end(switch).filter(|_| switch != self.switch)
    }

    /// An access to a register of an id leaves the pipeline.
    fn begin_access(
        &mut self,
        thread: Key,
        instruction: Instruction,
        (address, id): (u64, u16),
        registers: &Registers,
        now: Cycle,
    ) {
        let store = match instruction {
            Instruction::Store(.., x) => Some(self.value(thread, x, now)),
            _ => None,
        };
        if let Some(log) = &mut self.crossbar.log {
            log.push(RegisterAccess { thread, id, stored: store.is_some(), issued: now, until: None });
        }
        let ready = now + self.cfg.xbar;
        if let Some(to) = self.remote(registers, address) {
            self.crossbar.remote += 1;
            self.crossbar.requests.push(Request { thread, address, store, to, ready });
            self.thread(thread).state = State::Remote;
        } else {
            let at = ready + registers.reach(self.switch, registers.switch_of(address));
            self.thread(thread).state = State::Register(at);
            self.crossbar.accesses.push(thread);
        }
    }

    /// The answer to a request for a register of another switch has come: with a value, if it was a load.
    pub(crate) fn answered(&mut self, key: Key, value: Option<u64>, now: Cycle) {
        self.crossbar.remote -= 1;
        self.end_access(key, value, now + self.cfg.xbar);
    }

    /// An access is over: the thread goes on in a cycle.
    fn end_access(&mut self, key: Key, value: Option<u64>, back: Cycle) {
        if let Some(log) = &mut self.crossbar.log
            && let Some(access) = log.iter_mut().rfind(|access| access.thread == key)
        {
            access.until = Some(back);
        }
        let thread = self.thread(key);
        let (instruction, _) = thread.program.code[thread.pc];
        if let (Instruction::Load(d, ..), Some(value)) = (instruction, value) {
            thread.regs[usize::from(d)] = value;
        }
        thread.pc += 1;
        thread.state = State::Until(back, Activity::Answer);
    }

    /// Accesses that have come to their register.
    pub(super) fn access(&mut self, registers: &Registers, io: &mut Io<'_>) {
        let now = io.now();
        let here = |this: &mut Self, key| matches!(this.thread(key).state, State::Register(at) if at <= now);
        let accesses = std::mem::take(&mut self.crossbar.accesses);
        for key in accesses {
            if !here(self, key) {
                self.crossbar.accesses.push(key);
                continue;
            }
            let thread = self.thread(key);
            let (instruction, _) = thread.program.code[thread.pc];
            let (mut back, mut loaded) = (self.cfg.xbar, None);
            if let Instruction::Load(_, base, offset) | Instruction::Store(base, offset, _) = instruction {
                let address = self.value(key, base, now).wrapping_add(offset) & (SCRATCHPAD - 1);
                back += registers.reach(self.switch, registers.switch_of(address));
                loaded = registers.load(address).ok();
                if let Instruction::Store(.., x) = instruction {
                    let (value, core) = (self.value(key, x, now), self.ranks.0);
                    self.stores.push(Store { address, value, cycle: now, core, thread: key });
                    io.complete();
                }
            }
            self.end_access(key, loaded, now + back);
        }
    }

    pub(super) fn cross(&mut self, key: Key, activity: Activity, now: Cycle) {
        self.thread(key).state = State::Engine(now + self.cfg.xbar, activity);
        self.crossbar.operations.push((key, false));
    }
}
