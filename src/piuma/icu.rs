//! The interrupt controller unit: one pending bit for each source, a multicast id (requirements P-MSR-2, H-PORT-1).
//!
//! ```text
//!   CCE ── event of id n ──▶ pending[n] ──▶ oldest that is due ──▶ handler on an STP
//! ```
//!
//! | parameter | default | unit | effect |
//! |---|---|---|---|
//! | `core.interrupt_cycles` | 4 | cycles | from an event to the handler's first instruction |
//!
//! *Chosen*: the bit is cleared when its handler starts; an event of a source whose bit is set merges with the one that waits, and
//! is counted. So the unit holds as many bits as there are ids, and a handler that takes all there is misses nothing.

use watershed_kernel::Cycle;

/// An ICU.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub(super) struct Icu {
    /// Sources whose bit is set, oldest first, and when their handlers may start.
    pending: Vec<(Cycle, u16)>,
    merged: u64,
}

impl Icu {
    /// An event: its handler may start in cycle `due`.
    pub(super) fn raise(&mut self, id: u16, due: Cycle) {
        if self.pending.iter().any(|&(_, pending)| pending == id) {
            self.merged += 1;
        } else {
            self.pending.push((due, id));
        }
    }

    /// Sources whose bit is set, oldest first.
    pub(super) fn pending(&self) -> &[(Cycle, u16)] {
        &self.pending
    }

    /// Clears a source's bit.
    pub(super) fn clear(&mut self, id: u16) {
        self.pending.retain(|&(_, pending)| pending != id);
    }

    /// Events that merged with one that waited.
    pub(super) fn merged(&self) -> u64 {
        self.merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_event_of_a_source_merges() {
        let mut icu = Icu::default();
        for (id, due) in [(3, 10), (5, 11), (3, 12), (3, 13)] {
            icu.raise(id, due);
        }
        assert_eq!((icu.pending().to_vec(), icu.merged()), (vec![(10, 3), (11, 5)], 2));
        icu.clear(3);
        icu.raise(3, 20);
        assert_eq!((icu.pending().to_vec(), icu.merged()), (vec![(11, 5), (20, 3)], 2));
    }
}
