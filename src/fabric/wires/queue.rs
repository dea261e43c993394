//! The entries of queues and links: the state of an input queue, flits of the pool, arrivals, returned credits.

use std::collections::{BTreeMap, VecDeque};

use crate::ports::NONE;
use crate::{Flit, MAX_NODES};
use watershed_kernel::Cycle;

/// What the packet at the head of an input queue is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// No packet, or its head has not been looked at.
    Idle,
    /// Its output port is known.
    Routed,
    /// It holds an output virtual channel.
    Active,
    /// A multicast of several flits: independent copies are under way.
    Fork,
}

/// The phase of a packet, and the output channel it holds in [`Phase::Active`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub(crate) struct State(u8);

impl State {
    pub const IDLE: State = State(0);
    pub const ROUTED: State = State((Phase::Routed as u8) << 5);
    pub const FORK: State = State((Phase::Fork as u8) << 5);

    /// Of a packet that holds this output channel.
    #[inline(always)]
    pub fn active(vc: u8) -> State {
        debug_assert!(vc < 32, "channel {vc} does not fit");
        State((Phase::Active as u8) << 5 | vc)
    }

    #[inline]
    pub fn phase(self) -> Phase {
        match self.0 >> 5 {
            0 => Phase::Idle,
            1 => Phase::Routed,
            2 => Phase::Active,
            _ => Phase::Fork,
        }
    }

    /// The output channel, if the packet holds one.
    #[inline(always)]
    pub fn out_vc(self) -> u8 {
        self.0 & 0x1f
    }
}

/// Input side of a virtual channel of a port: a list in the pool and the state of the packet at its head. 16 bytes; what
/// else is known of the packet stands with its head flit ([`Slot`]).
///
/// The two sides of a channel have nothing to do with each other: flits of one link enter the input side, flits that come
/// from other ports leave by the output side. They stand apart, so that who looks at credits looks at nothing else.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub(crate) struct Input {
    pub head: u32,
    pub tail: u32,
    pub len: u16,
    /// Output port of the packet at the head; in [`Phase::Fork`] the number of its fork record.
    pub out_port: u16,
    /// The output channel that is picked or accepted first, counted over all outputs (separable, iSLIP).
    pub accept_q: u16,
    pub state: State,
    /// For link monitors: the number of the flit that arrives next.
    pub arrived: u8,
}

impl Input {
    pub const IDLE: Input =
        Input { head: NONE, tail: NONE, len: 0, out_port: 0, accept_q: 0, state: State::IDLE, arrived: 0 };
}

/// The bit of [`Slot::allowed`] that says that route computation is asked again.
pub(crate) const RETRY_ROUTE: u32 = 1 << 31;

/// The bit of [`Slot::allowed`] that says that the packet was refused something: what it waits for is noted.
pub(crate) const NOTED: u32 = 1 << 30;

/// The most point-to-point channels: bits of [`Slot::allowed`] that are left.
pub(super) const MOST_UNICAST: u8 = 30;

const _: () = assert!((RETRY_ROUTE | NOTED) >> MOST_UNICAST == 0b11);

/// One flit in the pool. 32 bytes, so that none lies across two lines of the cache.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
#[repr(align(32))]
pub(crate) struct Slot {
    pub flit: Flit,
    pub next: u32,
    /// Head flits: point-to-point channels that route computation allows, from the first such channel on; bit 31: it is
    /// asked again if none is free. All flits: bit 30, [`NOTED`].
    pub allowed: u32,
    /// The first cycle in which switch allocation may serve the flit; not before the one after that in which the flit
    /// before it has left its queue.
    pub ready: Cycle,
}

impl Slot {
    pub(super) fn new(flit: Flit, ready: Cycle) -> Slot {
        Slot { flit, next: NONE, ready, allowed: 0 }
    }
}

/// The node that something reaches, and its number for link monitors: 24 and 8 bits, for as much of these is read and written
/// as of anything that moves.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub(crate) struct Destination(u32);

impl Destination {
    #[inline(always)]
    pub fn new(node: u32, number: u8) -> Destination {
        debug_assert!(node < MAX_NODES, "node {node} does not fit");
        Destination(node | u32::from(number) << 24)
    }

    #[inline(always)]
    pub fn node(self) -> u32 {
        self.0 & (MAX_NODES - 1)
    }

    #[inline(always)]
    pub fn number(self) -> u8 {
        (self.0 >> 24) as u8
    }
}

/// A flit on its way to an input queue; it is stored in the pool.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub(crate) struct Arrival {
    pub queue: u32,
    pub to: Destination,
    pub entry: u32,
}

/// A credit on its way back to an output virtual channel.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub(crate) struct CreditReturn {
    pub queue: u32,
    pub to: Destination,
}

/// A flit or credit that crosses from one part of a system into another.
#[derive(Clone, Debug, watershed_state::Saved)]
pub(crate) enum Crossing {
    /// A flit that arrives in this cycle, with its words behind the first.
    Flit(Cycle, Arrival, Flit, Box<[u64]>),
    /// A credit that arrives in this cycle.
    Credit(Cycle, CreditReturn),
}

impl Crossing {
    /// The queue or channel it goes to.
    pub fn queue(&self) -> u32 {
        match self {
            Self::Flit(_, arrival, ..) => arrival.queue,
            Self::Credit(_, back) => back.queue,
        }
    }

    /// When it arrives.
    pub fn at(&self) -> Cycle {
        let (Self::Flit(at, ..) | Self::Credit(at, _)) = self;
        *at
    }
}

/// Shuffles what reaches different queues in a cycle; what reaches the same one stays in order.
pub(super) fn shuffle_apart<T: Copy>(items: &mut [T], queue: impl Fn(&T) -> u32, rng: &mut watershed_kernel::Rng) {
    let mut of_queue: BTreeMap<u32, VecDeque<T>> = BTreeMap::new();
    for item in &*items {
        of_queue.entry(queue(item)).or_default().push_back(*item);
    }
    rng.shuffle(items);
    for item in items {
        if let Some(first) = of_queue.get_mut(&queue(item)).and_then(VecDeque::pop_front) {
            *item = first;
        }
    }
}

/// Appends a flit of the pool, which is nobody's successor, to an input queue.
#[inline(always)]
pub(super) fn append(queue: &mut Input, pool: &mut [Slot], entry: u32) {
    let last = std::mem::replace(&mut queue.tail, entry);
    if queue.len == 0 {
        queue.head = entry;
    } else {
        pool[last as usize].next = entry;
    }
    queue.len += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_and_a_number_do_not_touch_each_other() {
        for node in [0, 1, 0x5a_5a5a, MAX_NODES - 1] {
            for number in [0, 1, 0xa5, u8::MAX] {
                let to = Destination::new(node, number);
                assert_eq!((to.node(), to.number()), (node, number));
            }
        }
        assert_eq!((size_of::<Arrival>(), size_of::<CreditReturn>()), (12, 8));
    }

    #[test]
    fn a_state_has_its_phase_and_its_channel() {
        let phases = [State::IDLE, State::ROUTED, State::FORK].map(State::phase);
        assert_eq!(phases, [Phase::Idle, Phase::Routed, Phase::Fork]);
        for vc in 0..32 {
            assert_eq!((State::active(vc).phase(), State::active(vc).out_vc()), (Phase::Active, vc));
        }
    }
}
