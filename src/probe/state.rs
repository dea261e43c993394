//! All values of a recording at a moment, for sinks that write later than they are called.

use super::scope::Slot;
use super::{SignalId, Values};

/// The values.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    slots: Vec<Slot>,
    wide: Vec<u64>,
}

impl State {
    /// A copy of what a sink sees.
    pub fn of(values: Values<'_>) -> State {
        State { slots: values.slots.to_vec(), wide: values.wide.to_vec() }
    }

    /// What a sink is to see.
    pub fn values(&self) -> Values<'_> {
        Values { slots: &self.slots, wide: &self.wide }
    }

    /// Gives a signal a new value; `words` are those of a wide one.
    pub fn set(&mut self, signal: SignalId, slot: &Slot, words: &[u64]) {
        let mine = &mut self.slots[signal as usize];
        if slot.width <= 64 {
            *mine = *slot;
        } else {
            // The place of a wide value stays; its words move.
            mine.unknown = slot.unknown;
            let begin = mine.value as usize;
            self.wide[begin..begin + words.len()].copy_from_slice(words);
        }
    }
}
