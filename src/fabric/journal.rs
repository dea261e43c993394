//! A journal of the flits: when each entered a queue, left it, and was put on a link.
//!
//! It is a test instrument like the link monitors: it observes and changes nothing, and where it is off it costs a
//! branch. `why` reads from it afterwards where the cycles of a collective went.

use super::{Flit, Tag};
use watershed_kernel::Cycle;

/// An event in the life of a flit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum FlitEvent {
    /// It entered the queue of a port, and may be served from cycle `ready` on.
    Entered {
        /// The first cycle in which it may leave.
        ready: Cycle,
    },
    /// It left the queue of a port.
    Left,
    /// It entered the slot of the engine of its switch, and left the queue of a port.
    EnteredEngine {
        /// The cycle from which on the engine sees it.
        visible: Cycle,
    },
    /// It was put on the link of a port.
    Sent {
        /// In a switch: the port and channel of the queue it came out of. A block between or behind links says nothing.
        from: Option<(u32, u8)>,
    },
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Entry {
    /// When.
    pub cycle: Cycle,
    /// At which port, counted over the whole system in the order of the plan's nodes.
    pub port: u32,
    /// Of which flit; its channel is that of the queue or the link.
    pub tag: Tag,
    /// Its payload.
    pub word: u64,
    /// What.
    pub what: FlitEvent,
}

/// The journal of a system.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub struct Journal {
    /// All entries, cycle by cycle; the order of those of a cycle says nothing but that a flit leaves before it is sent.
    pub entries: Vec<Entry>,
    /// Credits of every output channel before cycle 0: those of all channels of port 0, then of port 1, and so on.
    pub(super) credits: Vec<u16>,
    /// Channels of a port.
    pub(super) of_port: u8,
    /// Cycles in front of switch allocation.
    pub front: u16,
    /// Cycles behind it.
    pub post: u16,
    /// Flits of a point-to-point packet that its route is computed from.
    pub route_flits: u16,
    /// Cycles a switch takes to process a credit.
    pub credit_delay: u16,
    /// Channels that are watched: all from 0 up to this one.
    pub(super) channels: u8,
    /// The queue out of which the next flit comes that is sent.
    pub(super) comes_from: Option<(u32, u8)>,
}

impl Journal {
    /// Credits of an output channel before cycle 0.
    ///
    /// # Panics
    /// If the system has no such port or channel.
    pub fn initial_credits(&self, port: u32, vc: u8) -> u16 {
        self.credits[port as usize * usize::from(self.of_port) + usize::from(vc)]
    }

    pub(super) fn note(&mut self, cycle: Cycle, port: u32, flit: &Flit, what: FlitEvent) {
        let what = if let FlitEvent::Sent { .. } = what { FlitEvent::Sent { from: self.comes_from } } else { what };
        self.entries.push(Entry { cycle, port, tag: flit.tag, word: flit.word, what });
    }
}
