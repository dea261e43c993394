//! Claims at a data queue: credits for slots, and messages that wait for a grant.

use std::collections::VecDeque;
use watershed_kernel::Cycle;

/// What a source of a multicast holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, watershed_state::Saved)]
pub enum Holder {
    /// Nothing.
    #[default]
    Idle,
    /// It has asked, in a cycle.
    Asked(Cycle),
    /// A grant: messages that are to be sent under it, and those that have not come to every receiver.
    Holds(u32, u32),
}

/// An event that is to be sent on the claim wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Event {
    /// The cycle in which it leaves.
    pub cycle: Cycle,
    /// The id.
    pub id: u16,
    /// What.
    pub what: EventKind,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum EventKind {
    /// The source asks the arbiter.
    Requested,
    /// A message of the source with this number has come into the queue.
    Enqueued(u8),
    /// One of it was taken out.
    Dequeued(u8),
}

/// The claim registers of a data queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, watershed_state::Saved)]
pub struct QueueClaim {
    /// Its number among the sources of its id, if the core is one.
    pub source: Option<u8>,
    /// Messages that may still be sent: slots that are free at every receiver.
    pub credits: u32,
    /// Slots for messages on their way out.
    pub own_slots: u32,
    holder: Holder,
    /// Sources of the messages that were received, oldest first.
    sources: VecDeque<u8>,
    /// Cycles that messages waited for a grant and that were not counted yet.
    waited: u64,
}

impl QueueClaim {
    /// The registers of a queue: the core's number as a source, its credits, and the slots of its own messages.
    pub fn new(source: Option<u8>, credits: u32, own_slots: u32) -> QueueClaim {
        QueueClaim { source, credits, own_slots, ..QueueClaim::default() }
    }

    /// What the source holds.
    pub fn holder(&self) -> Holder {
        self.holder
    }

    /// The same as waves have it.
    pub(crate) fn wave_state(&self) -> u64 {
        match self.holder {
            Holder::Idle => 0,
            Holder::Asked(_) => 1,
            Holder::Holds(..) => 2,
        }
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.holder == Holder::Idle && self.sources.is_empty()
    }

    /// A message stands in the queue that can leave from cycle `from` on: asks if nothing is under way and there is a
    /// credit. The cycle in which the request leaves.
    pub fn wants(&mut self, from: Cycle, now: Cycle) -> Option<Cycle> {
        if self.holder != Holder::Idle || self.credits == 0 {
            return None;
        }
        let at = from.max(now);
        self.holder = Holder::Asked(at);
        Some(at)
    }

    /// The grant has come, for as many of `messages` as there are credits.
    pub fn grant(&mut self, messages: u32, now: Cycle) {
        let Holder::Asked(since) = self.holder else { return };
        let count = messages.min(self.credits);
        self.credits -= count;
        self.waited += now - since;
        self.holder = Holder::Holds(count, count);
    }

    /// Whether a message may leave now.
    pub fn may_send(&self) -> bool {
        matches!(self.holder, Holder::Holds(left, _) if left > 0)
    }

    /// A message leaves.
    pub fn sent(&mut self) {
        if let Holder::Holds(left, _) = &mut self.holder {
            *left -= 1;
        }
    }

    /// A message has come to every receiver; whether that was the last one under this grant.
    pub fn came(&mut self) -> bool {
        if let Holder::Holds(_, open) = &mut self.holder {
            *open -= 1;
            if *open == 0 {
                self.holder = Holder::Idle;
                return true;
            }
        }
        false
    }

    /// A slot is free again at every receiver.
    pub fn credit(&mut self) {
        self.credits += 1;
    }

    /// A message of a source has come.
    pub fn receive(&mut self, source: u8) {
        self.sources.push_back(source);
    }

    /// The oldest message was taken; its source.
    pub fn take(&mut self) -> Option<u8> {
        self.sources.pop_front()
    }

    /// Messages of a source that stand in the queue.
    pub fn queued_from(&self, source: u8) -> u32 {
        self.sources.iter().filter(|of| **of == source).count() as u32
    }

    /// Other trees of the id lead elsewhere: credits and slots are counted anew. Whether a request that was made is to be made
    /// again.
    pub fn recount(&mut self, credits: u32, own_slots: u32) -> bool {
        (self.credits, self.own_slots) = (credits, own_slots);
        matches!(self.holder, Holder::Asked(_))
    }

    /// Cycles that messages waited for grants since the last time.
    pub fn take_waited(&mut self) -> u64 {
        std::mem::take(&mut self.waited)
    }
}
