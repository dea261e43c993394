//! Clocked storage: a queue whose writes are staged and become visible at the next edge.
//!
//! ```text
//!              ┌───────────────┐
//!   push ─────▶│ staged │  q   │─────▶ front / pop
//!              └───────────────┘
//!                    edge()
//! ```

use std::collections::VecDeque;

/// A bounded queue of registers. What is pushed in a cycle can be read from the next one on.
///
/// | port | meaning |
/// |---|---|
/// | [`Fifo::room`] | free places as they were at the start of the cycle, less what was pushed in it |
/// | [`Fifo::push`] | staged write |
/// | [`Fifo::front`], [`Fifo::pop`] | the oldest entry that was there at the start of the cycle |
/// | [`Fifo::edge`] | the clock edge: staged writes become visible, freed places become room |
///
/// ```
/// use watershed_kernel::Fifo;
///
/// let mut fifo = Fifo::new(2);
/// fifo.push('a'); // cycle 0
/// assert_eq!(fifo.front(), None); // staged: it can be read from the next cycle on
/// fifo.edge();
/// assert_eq!(fifo.pop(), Some('a')); // cycle 1
/// assert_eq!(fifo.room(), 1); // its place is free from the next cycle on
/// fifo.edge();
/// assert_eq!(fifo.room(), 2); // cycle 2
/// ```
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct Fifo<T> {
    depth: u32,
    /// Entries, oldest first; the last `staged` of them are not visible yet.
    entries: VecDeque<T>,
    staged: u32,
    /// Entries popped in this cycle: their places are room only after the edge.
    popped: u32,
}

impl<T> Fifo<T> {
    /// An empty queue of `depth` places. No memory is taken before the first push.
    pub fn new(depth: usize) -> Fifo<T> {
        Fifo { depth: depth as u32, entries: VecDeque::new(), staged: 0, popped: 0 }
    }

    /// How many entries may still be pushed in this cycle.
    #[inline]
    pub fn room(&self) -> usize {
        (self.depth - self.popped) as usize - self.entries.len()
    }

    /// Stages a write.
    ///
    /// # Panics
    /// If there is no room: the sender did not look at [`Fifo::room`].
    #[inline]
    pub fn push(&mut self, entry: T) {
        assert!(self.room() > 0, "push into a full queue of depth {}: look at room() first", self.depth);
        self.entries.push_back(entry);
        self.staged += 1;
    }

    /// How many entries are visible.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len() - self.staged as usize
    }

    /// Whether no entry is visible.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether nothing is visible and nothing staged.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.entries.is_empty()
    }

    /// The oldest visible entry.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { self.entries.front() }
    }

    /// Removes the oldest visible entry.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        self.popped += 1;
        self.entries.pop_front()
    }

    /// The clock edge. Idempotent while nothing was pushed or popped.
    #[inline]
    pub fn edge(&mut self) {
        self.staged = 0;
        self.popped = 0;
    }

    /// The visible entries, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().take(self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_visible_and_places_free_after_the_edge() {
        let mut fifo = Fifo::new(2);
        fifo.push(1);
        fifo.push(2);
        assert_eq!((fifo.room(), fifo.len(), fifo.front()), (0, 0, None));
        fifo.edge();
        assert_eq!((fifo.room(), fifo.len(), fifo.front()), (0, 2, Some(&1)));
        assert_eq!(fifo.pop(), Some(1));
        assert_eq!(fifo.room(), 0, "a place freed in this cycle is room in the next");
        fifo.edge();
        assert_eq!((fifo.room(), fifo.front()), (1, Some(&2)));
    }

    #[test]
    #[should_panic(expected = "look at room() first")]
    fn overflow_is_a_bug_of_the_sender() {
        let mut fifo = Fifo::new(1);
        fifo.push(());
        fifo.push(());
    }
}
