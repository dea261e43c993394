//! Round-robin: a cursor walks over the requesters; the winner becomes the last in line.

use crate::PortSet;

/// The cursors of a bank of round-robin arbiters.
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct RoundRobin {
    cursor_q: Vec<u16>,
}

impl RoundRobin {
    pub(super) fn new(count: usize) -> RoundRobin {
        RoundRobin { cursor_q: vec![0; count] }
    }

    #[inline(always)]
    pub(super) fn pick<const W: usize>(&self, arbiter: usize, requests: &PortSet<W>) -> Option<u16> {
        requests.next_from(self.cursor_q[arbiter])
    }

    #[inline(always)]
    pub(super) fn granted(&mut self, arbiter: usize, winner: u16) {
        // The cursor may stand one behind the last requester: the search then wraps.
        self.cursor_q[arbiter] = winner + 1;
    }
}
