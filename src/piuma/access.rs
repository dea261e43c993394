//! Accesses to configuration registers of other switches, in band (requirement H-CFG-1).
//!
//! ```text
//!             ┌───────────── end point ─────────────┐      point-to-point channels
//!   thread ──▶│ crossbar ─▶ requests ─┐             │
//!             │                       ├─▶ leaving ──┼─▶ link ─▶ switches ─▶ link ─▶ port of the register's switch
//!             │  ┌─▶ answers ─────────┘             │
//!             │ registers of its switch ◀─ arriving ◀── link     all that arrives, at once
//!             └─────────────────────────────────────┘
//! ```
//!
//! A request goes to the first end point of the register's switch: the registers of a switch are reached through its own port
//! *chosen*. There a store changes the register, or a load reads it, in the cycle in which the request's last flit is taken,
//! and the answer goes back.
//!
//! | packet | flits | words behind the header |
//! |---|---|---|
//! | load | 2 | address |
//! | store | 3 | address, value |
//! | answer to a load | 2 | value |
//! | answer to a store | 1 | |
//!
//! The header names the end point a packet goes to. The tag says whose access it is: the pipeline in the id, core and thread in
//! the number; bits 7 to 5 of the flags say that it is an access, an answer, a store.
//!
//! | parameter | default | unit | effect |
//! |---|---|---|---|
//! | `core.register_access` | in-band | | out-of-band: the cycles of a packet that meets nobody, and no channel is used |
//! | `core.register_accesses` | 1 | accesses | a core has under way at once; a thread that wants one more waits |
//!
//! Timing: a request enters `core.xbar_cycles` after it was issued, a flit a cycle, behind words of collectives and messages of
//! the core and before its traffic; the thread goes on `core.xbar_cycles` after the last flit of the answer was taken. A store
//! counts from the next cycle on. Requests take the channels of the first lane of traffic, answers those of the last.
//!
//! A port takes what arrives whatever waits to leave it, so accesses never stand in each other's way for ever: a core has
//! `core.register_accesses` under way, hence a port owes that many answers to each core at most.

use super::Registers;
use super::processor::Processor;
use super::thread::{Key, Request, Store};
use std::collections::VecDeque;
use watershed_fabric::traffic::Traffic;
use watershed_fabric::{Flit, Io, Tag};
use watershed_kernel::{Cycle, Wake};
use watershed_probe::Scope;

/// Bits of the flags of a flit that belongs to an access.
const ACCESS: u8 = 0x80;
const ANSWER: u8 = 0x40;
const STORE: u8 = 0x20;

/// Bits of a thread's number within its pipeline, plus one; 0 is the handler.
const THREAD_BITS: u32 = 12;

/// Flits of the longest packet.
const MOST_FLITS: usize = 3;

/// A packet that waits to leave.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
struct Packet {
    flags: u8,
    id: u16,
    seq: u64,
    words: [u64; MOST_FLITS],
    flits: u32,
    ready: Cycle,
}

/// A packet that is arriving on a channel.
#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
struct IncomingPacket {
    words: [u64; MOST_FLITS],
    flits: usize,
}

/// What waits to leave, answers before requests.
const QUEUES: [Queue; 2] = [Queue::Answers, Queue::Requests];

#[derive(Clone, Copy, Debug)]
enum Queue {
    Answers,
    Requests,
}

/// Packets that wait to leave on the channels of a lane.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct LaneQueue {
    packets: VecDeque<Packet>,
    /// Channel and next flit of the first one, if it has begun.
    begun: Option<(u8, u32)>,
    next_vc_q: u8,
}

/// What an end point has for accesses to registers of other switches; see the module's text.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub struct RegisterPort {
    /// By point-to-point channel.
    arriving: Vec<IncomingPacket>,
    leaving: [LaneQueue; 2],
    stores: Vec<Store>,
    /// The last access that was served here: its address, and what was stored.
    served_q: Option<(u64, Option<u64>)>,
}

/// Whether a flit belongs to an access.
fn is_access(flit: Flit) -> bool {
    flit.tag.flags() & ACCESS != 0
}

/// Core and thread of an access.
fn whose(tag: Tag) -> (u32, Key) {
    let thread = (tag.seq() & ((1 << THREAD_BITS) - 1)) as usize;
    ((tag.seq() >> THREAD_BITS) as u32, (usize::from(tag.id()), thread.checked_sub(1)))
}

impl RegisterPort {
    /// Stores that arrived since the last time.
    pub fn take_stores(&mut self) -> impl Iterator<Item = Store> + '_ {
        self.stores.drain(..)
    }

    /// Takes a request of core `core`.
    pub(super) fn request(&mut self, core: u32, request: &Request, now: Cycle) {
        let Request { thread: (pipeline, thread), address, store, to, ready } = *request;
        let number = thread.map_or(0, |thread| thread as u64 + 1);
        self.leaving[Queue::Requests as usize].packets.push_back(Packet {
            flags: ACCESS | if store.is_some() { STORE } else { 0 },
            id: pipeline as u16,
            seq: u64::from(core) << THREAD_BITS | number,
            words: [Flit::header(to, now), address, store.unwrap_or_default()],
            flits: if store.is_some() { 3 } else { 2 },
            ready,
        });
    }

    /// Takes what has arrived of accesses: requests are served, answers are handed to the processor.
    pub(super) fn receive(&mut self, io: &mut Io<'_>, registers: &Registers, mut processor: Option<&mut Processor>) {
        let vcs = io.vcs();
        for channel in 0..vcs.unicast {
            let vc = vcs.set + channel;
            while io.head(0, vc).is_some_and(is_access) {
                let flit = io.take(0, vc);
                if self.arriving.len() <= usize::from(channel) {
                    self.arriving.resize(usize::from(channel) + 1, IncomingPacket::default());
                }
                let packet = &mut self.arriving[usize::from(channel)];
                packet.words[packet.flits] = flit.word;
                packet.flits += 1;
                if flit.tag.tail() {
                    let words = std::mem::take(packet).words;
                    self.serve(flit.tag, words, io, registers, processor.as_deref_mut());
                }
            }
        }
    }

    /// A packet is here whole.
    fn serve(
        &mut self,
        tag: Tag,
        words: [u64; MOST_FLITS],
        io: &mut Io<'_>,
        registers: &Registers,
        processor: Option<&mut Processor>,
    ) {
        let (core, thread) = whose(tag);
        let (flags, now) = (tag.flags(), io.now());
        let is_store = flags & STORE != 0;
        if flags & ANSWER != 0 {
            match processor {
                Some(processor) => processor.answered(thread, (!is_store).then_some(words[1]), now),
                None => io.fail(|| format!("an answer for core {core} came to one without programs")),
            }
            return;
        }
        let [_, address, value] = words;
        self.served_q = Some((address, is_store.then_some(value)));
        if is_store {
            self.stores.push(Store { address, value, cycle: now, core, thread });
            io.complete();
        }
        self.leaving[Queue::Answers as usize].packets.push_back(Packet {
            flags: ACCESS | ANSWER | flags & STORE,
            id: tag.id(),
            seq: tag.seq(),
            words: [Flit::header(core, now), registers.load(address).unwrap_or_default(), 0],
            flits: if is_store { 1 } else { 2 },
            ready: now,
        });
    }

    /// Lets at most one flit leave, and says when there is more to do. `traffic` has the same channels and keeps those on which
    /// its packets have begun.
    pub(super) fn send(&mut self, io: &mut Io<'_>, registers: &Registers, traffic: Option<&Traffic>) -> Wake {
        let (now, shares) = (io.now(), registers.shares);
        let mut wake = Wake::OnInput;
        for queue in QUEUES {
            let lane = match queue {
                Queue::Answers => shares.lanes - 1,
                Queue::Requests => 0,
            };
            let (first, each) = shares.lane(io.vcs(), lane);
            let other = self.leaving[1 - queue as usize].begun;
            let LaneQueue { packets, begun, next_vc_q } = &mut self.leaving[queue as usize];
            let Some(packet) = packets.front().copied() else { continue };
            if packet.ready > now {
                wake = wake.or(Wake::At(packet.ready));
                continue;
            }
            if begun.is_none() {
                let mut turn = (0..each).map(|turn| first + (*next_vc_q + turn) % each);
                let is_taken = |vc: u8| {
                    traffic.is_some_and(|traffic| traffic.is_entering_on(vc)) || other.is_some_and(|(on, _)| on == vc)
                };
                *begun = turn.find(|&vc| io.can_start(0, vc) && !is_taken(vc)).map(|vc| (vc, 0));
            }
            if let Some((vc, index)) = *begun
                && io.can_send(0, vc)
            {
                let mut flit = Flit::part(packet.id, vc, packet.seq, index, packet.flits, packet.words[index as usize]);
                flit.tag.set_flags(packet.flags);
                io.send(0, vc, flit);
                *begun = Some((vc, index + 1));
                if index + 1 == packet.flits {
                    packets.pop_front();
                    *begun = None;
                    *next_vc_q = (vc - first + 1) % each;
                }
            }
            // Without credits, one that comes back wakes.
            let may_go = match *begun {
                Some((vc, _)) => io.credits(0, vc) > 0,
                None => (first..first + each).any(|vc| io.has_room(0, vc)),
            };
            if may_go && !packets.is_empty() {
                wake = wake.or(io.busy_until(0).map_or(Wake::Next, Wake::At));
            }
        }
        wake
    }

    /// Whether a credit that comes back could let something leave.
    pub(super) fn wants_credits(&self) -> bool {
        self.leaving.iter().any(|leaving| !leaving.packets.is_empty())
    }

    /// Describes its registers to a wave.
    pub(super) fn probe(&self, scope: &mut Scope<'_>) {
        scope.scope("registers", |scope| {
            scope.bits("requests", 16, self.leaving[Queue::Requests as usize].packets.len() as u64);
            scope.bits("answers", 16, self.leaving[Queue::Answers as usize].packets.len() as u64);
            scope.valid("address", 48, self.served_q.map(|(address, _)| address));
            scope.valid("stored", 64, self.served_q.and_then(|(_, stored)| stored));
        });
    }
}
