//! The core collective engine (CCE) of a core: multicast queues and their machine specific registers (requirements
//! P-CCE-1, P-CCE-2, P-MSR-1, P-MSR-2; "In-network multicast operations", paragraphs 22 to 29, FIG. 4, Table 2).
//!
//! ```text
//!             ┌──────────────────────────── CCE ────────────────────────────┐
//!             │            ┌─ mcast thread 0 ─ queue: slots of data, sender │
//!  crossbar ─▶│ decoder ──▶├─ mcast thread 1 ─ queue                        ├─▶ port 7 of the switch: requests
//!   (send,    │            │       …                                        │◀─ port 7: requests of others
//!    poll,    │            └─ mcast thread n ─ queue ─▶ MSRs ─▶ events ─────┼─▶ ICU
//!    wait)    └─────────────────────────────────────────────────────────────┘
//! ```
//!
//! | parameter | default | unit | range | effect |
//! |---|---|---|---|---|
//! | `core.mcast_queue_depth` | 8 | messages | from 1 | a full queue stops its sender and the network's requests for it |
//! | `core.mcast_queue_ports` | 1 | operations | from 1 | messages into a queue, and messages out of it, per cycle, both sides together |
//! | `core.cce_decoders` | 1 | operations | from 1 | decoded in a cycle; others wait in the order in which they came |
//! | `core.xbar_cycles` | 1 | cycles | from 1 | from issue to the CCE, and as long back with the answer |
//!
//! There is a mcast thread with a queue of its own for each collective id. Slots hold messages on their way out and
//! messages that were received; each leaves in its own order, the oldest first.
//!
//! | MSR | offset | access | what |
//! |---|---|---|---|
//! | MODE | 0x00 | R/W | 0 poll, 1 push |
//! | COUNT | 0x08 | R | messages received and not taken yet |
//! | INT_ALL | 0x10 | R/W | push: an event for each message that is received |
//! | INT_EMPTY_2_NEMPTY | 0x18 | R/W | push, INT_ALL off: an event when COUNT goes from 0 to 1 |
//! | INT_NFULL_2_FULL | 0x20 | R/W | push, INT_ALL off: an event when COUNT comes to the depth of the queue |
//!
//! Timing: a message that arrives at the start of cycle t is in its queue in t and can be taken from t + 1 on. A
//! message that a send put into its queue in cycle t can leave from t + 1 on. All queues together send one message a
//! cycle, in turn.
//!
//! An id that overlaps another one ([`claim`](super::claim)) sends only under a grant, with a credit for a slot at
//! every receiver. Its messages carry the number of their source among the sources of the id, and the slots of its
//! queues are divided among these sources.
//!
//! *Chosen*, where the patent is silent: a full queue accepts nothing. A send then waits in the crossbar, and a request
//! waits at the head of the channel, which stops all requests behind it until the credits run out upstream. So no
//! message is lost. When the network and a thread want the port into a queue in one cycle, the network goes first and
//! the thread in the next cycle. Out of a queue a thread goes first, and the network next. Accesses to MSRs are
//! operations like others: they act when they are decoded. COUNT and events are about received messages only. The
//! sender's id is 36 bits wide. All MSRs are 0 at reset.

use super::REQUEST;
use super::claim::{Event, EventKind, QueueClaim};
use std::collections::VecDeque;
use watershed_fabric::{Cause, Flit, Io};
use watershed_kernel::Cycle;
use watershed_probe::{EnumTable, Scope};

/// What a source of a multicast that overlaps others does, in waves.
static CLAIMS: EnumTable = EnumTable { name: "claim", names: &["IDLE", "ASKS", "HOLDS"] };

/// The MSRs of a multicast id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum Msr {
    /// Push or poll.
    Mode,
    /// Messages to be taken.
    Count,
    /// An event for each message.
    IntAll,
    /// An event when the queue is no longer empty.
    IntEmptyToNonEmpty,
    /// An event when the queue has become full.
    IntNonFullToFull,
}

impl Msr {
    /// All of them, in the order of their addresses.
    pub const ALL: [Msr; 5] = [Msr::Mode, Msr::Count, Msr::IntAll, Msr::IntEmptyToNonEmpty, Msr::IntNonFullToFull];

    /// Its address among the MSRs.
    pub fn address(self, id: u16) -> u64 {
        u64::from(id) << 12 | (self as u64) << 3
    }

    /// What is at an address among the MSRs of `ids` ids.
    pub fn at(address: u64, ids: u16) -> Option<(u16, Msr)> {
        let (id, offset) = (address >> 12, address & 0xfff);
        let msr = Msr::ALL.get((offset >> 3) as usize).filter(|_| offset % 8 == 0)?;
        (id < u64::from(ids)).then_some((id as u16, *msr))
    }
}

/// A message: data and the id of the thread that sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Message {
    /// Data.
    pub data: u64,
    /// Sender, 36 bits.
    pub sender: u64,
}

/// Largest sender id.
pub const MAX_SENDER: u64 = (1 << 36) - 1;

/// A mcast thread.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct Queue {
    /// What went in and came out in the cycle of the last operation.
    ports: Ports,
    received: VecDeque<(Message, Cycle)>,
    outgoing: VecDeque<(Message, Cycle)>,
    push: bool,
    int_all: bool,
    int_nonempty: bool,
    int_full: bool,
    /// Of an id that overlaps another one.
    claim: Option<Box<QueueClaim>>,
    /// For reports: messages received, events raised.
    arrived: u64,
    events: u64,
}

/// All ports of a queue are taken in this cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPort;

/// The ports of a queue.
#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
struct Ports {
    /// The cycle that is counted, and what it had: messages in, and out.
    cycle: Cycle,
    pushed: u32,
    popped: u32,
    /// A thread's message found no port into the queue, or one to the network none out of it: it goes first next time.
    send_waits_q: bool,
    leave_waits_q: bool,
}

impl Ports {
    /// Ports that are taken in a cycle: in, and out.
    fn taken(&mut self, now: Cycle) -> (&mut u32, &mut u32) {
        if self.cycle != now {
            (self.cycle, self.pushed, self.popped) = (now, 0, 0);
        }
        (&mut self.pushed, &mut self.popped)
    }
}

/// Counters of a CCE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CceCounts {
    /// Messages sent.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// Events raised.
    pub events: u64,
    /// Messages that were never taken.
    pub left: u64,
}

/// A CCE.
///
/// ```
/// use watershed_piuma::Cce;
/// use watershed_piuma::cce::{Message, Msr, NoPort};
///
/// let mut cce = Cce::new(4, 2, 1); // four ids; queues of two messages with one port
/// let message = |data| Message { data, sender: 9 };
/// assert!(cce.accept(3, message(1), 10)); // a send is decoded in cycle 10
/// assert!(!cce.accept(3, message(2), 10)); // the port of the queue is taken
/// assert!(cce.accept(3, message(2), 11));
/// assert!(!cce.accept(3, message(3), 12)); // the queue is full
/// assert_eq!(cce.load(3, Msr::Count), 0); // COUNT is about received messages
/// assert_eq!(cce.take(3, 12), Ok(None));
/// ```
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct Cce {
    depth: usize,
    /// Ports of a queue in each direction.
    ports: u32,
    queues: Vec<Queue>,
    /// Ids whose requests are multicasts.
    multicast: Vec<bool>,
    next_q: usize,
    sent: u64,
    /// What the claim wires are to be told.
    told: Vec<Event>,
}

impl Cce {
    /// A CCE with a queue of `depth` messages for each of `ids` ids, and as many ports into each and out of it.
    pub fn new(ids: u16, depth: u32, ports: u32) -> Cce {
        let queues = vec![Queue::default(); usize::from(ids)];
        Cce {
            depth: depth as usize,
            ports,
            multicast: vec![false; queues.len()],
            queues,
            next_q: 0,
            sent: 0,
            told: Vec::new(),
        }
    }

    /// Says that requests of an id are multicasts, not of a collective.
    pub fn serve(&mut self, id: u16) {
        self.multicast[usize::from(id)] = true;
    }

    /// Gives the queue of an id its claim registers, or takes them away.
    pub fn claims(&mut self, id: u16, claim: Option<QueueClaim>) {
        self.queues[usize::from(id)].claim = claim.map(Box::new);
    }

    /// Whether messages of an id stand in its queue.
    pub fn holds(&self, id: u16) -> bool {
        self.queues.get(usize::from(id)).is_some_and(|queue| !(queue.outgoing.is_empty() && queue.received.is_empty()))
    }

    /// The claim registers of an id.
    pub fn claim(&self, id: u16) -> Option<&QueueClaim> {
        self.queues.get(usize::from(id))?.claim.as_deref()
    }

    /// The same, with the number of messages that wait to leave.
    pub fn claim_mut(&mut self, id: u16) -> Option<(&mut QueueClaim, u32)> {
        let queue = self.queues.get_mut(usize::from(id))?;
        let outgoing = queue.outgoing.len() as u32;
        Some((queue.claim.as_deref_mut()?, outgoing))
    }

    /// What the claim wires are to be told since the last time.
    pub fn take_told(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.told)
    }

    /// Whether requests of an id are this engine's.
    pub fn serves(&self, id: u16) -> bool {
        self.multicast.get(usize::from(id)).copied().unwrap_or(false)
    }

    /// Number of ids.
    pub fn ids(&self) -> u16 {
        self.queues.len() as u16
    }

    /// Messages on their way out.
    pub fn is_sending(&self) -> bool {
        self.queues.iter().any(|queue| !queue.outgoing.is_empty())
    }

    /// Whether messages to a tree wait to leave.
    pub fn is_sending_to(&self, id: u16) -> bool {
        self.queues.get(usize::from(id)).is_some_and(|queue| !queue.outgoing.is_empty())
    }

    /// Reads an MSR.
    pub fn load(&self, id: u16, msr: Msr) -> u64 {
        let queue = &self.queues[usize::from(id)];
        match msr {
            Msr::Mode => u64::from(queue.push),
            Msr::Count => queue.received.len() as u64,
            Msr::IntAll => u64::from(queue.int_all),
            Msr::IntEmptyToNonEmpty => u64::from(queue.int_nonempty),
            Msr::IntNonFullToFull => u64::from(queue.int_full),
        }
    }

    /// Writes an MSR.
    ///
    /// # Errors
    /// If it cannot be written, or not with this value.
    pub fn store(&mut self, id: u16, msr: Msr, value: u64) -> Result<(), &'static str> {
        if value > 1 {
            return Err("an MSR holds 0 or 1");
        }
        let queue = &mut self.queues[usize::from(id)];
        let on = value == 1;
        match msr {
            Msr::Mode => queue.push = on,
            Msr::Count => return Err("COUNT can only be read"),
            Msr::IntAll => queue.int_all = on,
            Msr::IntEmptyToNonEmpty => queue.int_nonempty = on,
            Msr::IntNonFullToFull => queue.int_full = on,
        }
        Ok(())
    }

    /// Received messages in the queue of an id that it serves, if that has no slot left.
    pub fn full_with(&self, id: u16) -> Option<usize> {
        (self.serves(id) && !self.has_slot(id)).then(|| self.queues[usize::from(id)].received.len())
    }

    pub(super) fn has_slot(&self, id: u16) -> bool {
        let queue = &self.queues[usize::from(id)];
        queue.received.len() + queue.outgoing.len() < self.depth
    }

    /// Whether there is a slot for a message on its way out.
    pub(super) fn has_room_to_send(&self, id: u16) -> bool {
        let queue = &self.queues[usize::from(id)];
        let own = queue.claim.as_ref().filter(|claim| claim.source.is_some());
        self.has_slot(id) && own.is_none_or(|claim| queue.outgoing.len() < claim.own_slots as usize)
    }

    /// Lets the queues that have a message and a credit ask for their trees; whether the wires are to be told anything.
    pub fn ask(&mut self, io: &mut Io<'_>) -> bool {
        let now = io.now();
        for (id, queue) in (0..).zip(&mut self.queues) {
            let Some(claim) = queue.claim.as_deref_mut().filter(|claim| claim.source.is_some()) else { continue };
            match claim.take_waited() {
                0 => {}
                waited => io.waited(0, Cause::Claim, waited),
            }
            if let Some(&(_, since)) = queue.outgoing.front()
                && let Some(cycle) = claim.wants(since + 1, now)
            {
                self.told.push(Event { cycle, id, what: EventKind::Requested });
            }
        }
        !self.told.is_empty()
    }

    /// Takes a message to be sent; `false` if there is no slot, or no port into the queue is left in this cycle.
    pub fn accept(&mut self, id: u16, message: Message, now: Cycle) -> bool {
        if !self.has_room_to_send(id) {
            return false;
        }
        let queue = &mut self.queues[usize::from(id)];
        let pushed = *queue.ports.taken(now).0;
        queue.ports.send_waits_q = pushed >= self.ports;
        if queue.ports.send_waits_q {
            return false;
        }
        *queue.ports.taken(now).0 += 1;
        queue.outgoing.push_back((message, now));
        true
    }

    /// Takes the oldest message that was received before this cycle.
    ///
    /// # Errors
    /// If it has to wait for a port out of the queue.
    pub fn take(&mut self, id: u16, now: Cycle) -> Result<Option<Message>, NoPort> {
        let queue = &mut self.queues[usize::from(id)];
        if queue.received.front().is_none_or(|(_, since)| *since >= now) {
            return Ok(None);
        }
        if *queue.ports.taken(now).1 + u32::from(queue.ports.leave_waits_q) >= self.ports {
            return Err(NoPort);
        }
        *queue.ports.taken(now).1 += 1;
        if let Some(source) = queue.claim.as_mut().and_then(|claim| claim.take()) {
            self.told.push(Event { cycle: now, id, what: EventKind::Dequeued(source) });
        }
        Ok(queue.received.pop_front().map(|(message, _)| message))
    }

    /// Whether a message could be taken, now or from the next cycle on.
    pub fn has_message(&self, id: u16) -> bool {
        !self.queues[usize::from(id)].received.is_empty()
    }

    /// Puts a received message into its queue; says whether that is an event.
    fn receive(&mut self, id: u16, message: Message, now: Cycle) -> bool {
        let depth = self.depth;
        let queue = &mut self.queues[usize::from(id)];
        queue.received.push_back((message, now));
        queue.arrived += 1;
        let count = queue.received.len();
        let event = queue.push
            && if queue.int_all {
                true
            } else {
                (queue.int_nonempty && count == 1) || (queue.int_full && count == depth)
            };
        queue.events += u64::from(event);
        event
    }

    /// Takes at most one request that has arrived; the id, if that is an event.
    pub fn receive_from(&mut self, io: &mut Io<'_>) -> Option<u16> {
        let flit = io.head(0, REQUEST)?;
        let id = flit.tag.id();
        if !self.serves(id) || !self.has_slot(id) {
            return None;
        }
        let ports = &mut self.queues[usize::from(id)].ports;
        if *ports.taken(io.now()).0 + u32::from(ports.send_waits_q) >= self.ports {
            return None;
        }
        *ports.taken(io.now()).0 += 1;
        let flit = io.take(0, REQUEST);
        if let Some(claim) = &mut self.queues[usize::from(id)].claim {
            claim.receive(flit.tag.flags());
            self.told.push(Event { cycle: io.now(), id, what: EventKind::Enqueued(flit.tag.flags()) });
        }
        self.receive(id, Message { data: flit.word, sender: flit.tag.seq() }, io.now()).then_some(id)
    }

    /// Sends at most one message, queues in turn. Says whether anything is left that only waits for its turn.
    pub fn send_to(&mut self, io: &mut Io<'_>) -> bool {
        let (now, count) = (io.now(), self.queues.len());
        let mut left = false;
        let mut sent = false;
        for i in 0..count {
            let at = (self.next_q + i) % count;
            let Some(&(message, since)) = self.queues[at].outgoing.front() else { continue };
            if self.queues[at].claim.as_ref().is_some_and(|claim| !claim.may_send()) {
                continue;
            }
            let ports = &mut self.queues[at].ports;
            let goes = !sent && since < now && io.can_send(0, REQUEST);
            ports.leave_waits_q = goes && *ports.taken(now).1 >= self.ports;
            if !goes || ports.leave_waits_q {
                left = true;
                continue;
            }
            *ports.taken(now).1 += 1;
            self.queues[at].outgoing.pop_front();
            let mut flit = Flit::collective(at as u16, REQUEST, message.sender, message.data);
            let mut goes_on = true;
            if let Some(claim) = &mut self.queues[at].claim {
                flit.tag.set_flags(claim.source.unwrap_or_default());
                claim.sent();
                goes_on = claim.may_send();
            }
            io.send(0, REQUEST, flit);
            left |= goes_on && !self.queues[at].outgoing.is_empty();
            self.sent += 1;
            sent = true;
            self.next_q = (at + 1) % count;
            if left {
                break;
            }
        }
        left && io.credits(0, REQUEST) > 0
    }

    /// What it counted.
    pub fn counted(&self) -> CceCounts {
        let sum = |of: fn(&Queue) -> u64| self.queues.iter().map(of).sum();
        CceCounts {
            sent: self.sent,
            received: sum(|queue| queue.arrived),
            events: sum(|queue| queue.events),
            left: sum(|queue| queue.received.len() as u64),
        }
    }

    /// Describes the queues of the ids it serves to a wave.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        scope.scope("cce", |scope| {
            for (id, queue) in self.queues.iter().enumerate().filter(|(id, _)| self.multicast[*id]) {
                scope.indexed("queue", id, |scope| {
                    scope.bits("count", 16, queue.received.len() as u64);
                    scope.bits("outgoing", 16, queue.outgoing.len() as u64);
                    scope.bits("events", 32, queue.events);
                    if let Some(claim) = queue.claim.as_ref().filter(|claim| claim.source.is_some()) {
                        scope.state("claim", &CLAIMS, claim.wave_state());
                        scope.bits("credits", 16, u64::from(claim.credits));
                    }
                    scope.valid("oldest", 64, queue.received.front().map(|(message, _)| message.data));
                    scope.valid("sender", 36, queue.received.front().map(|(message, _)| message.sender));
                });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(data: u64) -> Message {
        Message { data, sender: data + 100 }
    }

    /// Receives `count` messages one a cycle; the numbers of those that were events.
    fn events(cce: &mut Cce, count: u64) -> Vec<u64> {
        (0..count).filter(|&n| cce.receive(2, message(n), n)).collect()
    }

    fn set(cce: &mut Cce, on: &[Msr]) {
        for &msr in on {
            cce.store(2, msr, 1).unwrap();
        }
    }

    #[test]
    fn each_interrupt_fires_exactly_on_its_condition() {
        use Msr::{IntAll, IntEmptyToNonEmpty, IntNonFullToFull, Mode};
        for (on, expected) in [
            (&[Mode, IntAll] as &[Msr], &[0u64, 1, 2, 3] as &[u64]),
            (&[Mode, IntEmptyToNonEmpty], &[0]),
            (&[Mode, IntNonFullToFull], &[3]),
            (&[Mode, IntEmptyToNonEmpty, IntNonFullToFull], &[0, 3]),
            (&[Mode, IntAll, IntEmptyToNonEmpty, IntNonFullToFull], &[0, 1, 2, 3]),
            (&[Mode], &[]),
            (&[IntAll, IntEmptyToNonEmpty, IntNonFullToFull], &[]),
        ] {
            let mut cce = Cce::new(4, 4, 1);
            set(&mut cce, on);
            assert_eq!(events(&mut cce, 4), expected, "{on:?}");
            assert!(!cce.has_slot(2), "the queue is full");
            // After one message was taken the queue becomes full again, but does not pass from empty.
            assert_eq!(cce.take(2, 9), Ok(Some(message(0))));
            let full = on.contains(&Mode) && (on.contains(&IntAll) || on.contains(&IntNonFullToFull));
            assert_eq!(cce.receive(2, message(7), 9), full, "{on:?}");
            // Emptied, it passes from empty again.
            let mut now = 20;
            while cce.has_message(2) {
                now += 1;
                let _ = cce.take(2, now);
            }
            let nonempty = on.contains(&Mode) && (on.contains(&IntAll) || on.contains(&IntEmptyToNonEmpty));
            assert_eq!(cce.receive(2, message(8), 20), nonempty, "{on:?}");
        }
    }

    #[test]
    fn the_oldest_message_first_and_none_in_the_cycle_it_comes() {
        let mut cce = Cce::new(3, 4, 1);
        assert_eq!(cce.take(2, 5), Ok(None));
        cce.receive(2, message(1), 5);
        cce.receive(2, message(2), 6);
        assert_eq!(cce.take(2, 5), Ok(None), "not in the cycle in which it arrived");
        assert_eq!(cce.load(2, Msr::Count), 2);
        assert_eq!(cce.take(2, 6), Ok(Some(message(1))));
        assert_eq!(cce.take(2, 7), Ok(Some(message(2))));
        assert_eq!(cce.take(1, 7), Ok(None), "queues are apart");
    }

    #[test]
    fn a_slot_is_a_slot_for_both_ways() {
        let mut cce = Cce::new(3, 2, 1);
        assert!(cce.accept(2, message(1), 0));
        cce.receive(2, message(2), 0);
        assert!(!cce.accept(2, message(3), 0), "full");
        assert!(cce.accept(1, message(3), 0), "another queue is not");
        cce.take(2, 1).unwrap();
        assert!(cce.accept(2, message(3), 1));
        assert_eq!(cce.load(2, Msr::Count), 0, "COUNT is about received messages");
    }

    #[test]
    fn a_queue_takes_and_gives_as_many_a_cycle_as_it_has_ports() {
        for ports in [1, 2, 3] {
            let mut cce = Cce::new(3, 8, ports);
            let taken = (0..4).filter(|&n| cce.accept(2, message(n), 5)).count();
            assert_eq!(taken, ports as usize);
            assert!(cce.accept(2, message(9), 6), "the next cycle has its own");
            assert!(cce.accept(1, message(9), 5), "so has another queue");
            (0..4).for_each(|n| _ = cce.receive(1, message(n), 5));
            let given = (0..4).filter(|_| cce.take(1, 7).is_ok()).count();
            assert_eq!(given, ports as usize);
        }
    }

    #[test]
    fn msrs_have_distinct_addresses_and_keep_their_values() {
        let mut cce = Cce::new(5, 2, 1);
        let mut seen = std::collections::BTreeSet::new();
        for id in 0..5 {
            for msr in Msr::ALL {
                assert!(seen.insert(msr.address(id)));
                assert_eq!(Msr::at(msr.address(id), 5), Some((id, msr)));
                assert_eq!(cce.load(id, msr), 0, "0 at reset");
                let stored = cce.store(id, msr, 1);
                assert_eq!(stored.is_ok(), msr != Msr::Count);
                assert_eq!(cce.load(id, msr), u64::from(msr != Msr::Count));
                assert!(cce.store(id, msr, 2).is_err());
            }
        }
        for nowhere in [5 << 12, 0x28, 0x4, Msr::Mode.address(4) + 1] {
            assert_eq!(Msr::at(nowhere, 5), None, "{nowhere:#x}");
        }
    }
}
