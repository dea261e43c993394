//! Wake-driven scheduling: which blocks are evaluated in the next cycle, and alarms for far ones (K-CLK-2).

use super::Cycle;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a block answers at the end of its `tick`: when it must be evaluated again if nothing reaches it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Only when something arrives.
    OnInput,
    /// In the next cycle.
    Next,
    /// In this cycle (which lies in the future), or earlier when something arrives.
    At(Cycle),
}

impl Wake {
    /// The earlier of two answers.
    #[must_use]
    pub fn or(self, other: Wake) -> Wake {
        match (self, other) {
            (Wake::Next, _) | (_, Wake::Next) => Wake::Next,
            (Wake::OnInput, wake) | (wake, Wake::OnInput) => wake,
            (Wake::At(a), Wake::At(b)) => Wake::At(a.min(b)),
        }
    }
}

/// A set of block numbers: one bit a block, and one bit for every 64 of those words, so that a system of millions of
/// blocks with a handful awake is scanned in a few dozen reads.
#[derive(Clone, Debug)]
pub struct WakeSet {
    words: Vec<u64>,
    summary: Vec<u64>,
}

impl WakeSet {
    /// An empty set for blocks `0..blocks`.
    pub fn new(blocks: usize) -> WakeSet {
        let words = blocks.div_ceil(64);
        WakeSet { words: vec![0; words], summary: vec![0; words.div_ceil(64)] }
    }

    /// Adds a block.
    #[inline]
    pub fn insert(&mut self, block: u32) {
        let word = (block >> 6) as usize;
        self.words[word] |= 1 << (block & 63);
        self.summary[word >> 6] |= 1 << (word & 63);
    }

    /// Whether a block is in the set.
    pub fn contains(&self, block: u32) -> bool {
        self.words[(block >> 6) as usize] >> (block & 63) & 1 == 1
    }

    /// Whether no block is in the set.
    pub fn is_empty(&self) -> bool {
        self.summary.iter().all(|&word| word == 0)
    }

    /// Removes all blocks and appends them to `list` in ascending order.
    pub fn drain_into(&mut self, list: &mut Vec<u32>) {
        for (s, summary) in self.summary.iter_mut().enumerate() {
            let mut words = std::mem::take(summary);
            while words != 0 {
                let w = (s << 6) + words.trailing_zeros() as usize;
                words &= words - 1;
                let mut bits = std::mem::take(&mut self.words[w]);
                while bits != 0 {
                    list.push(((w as u32) << 6) + bits.trailing_zeros());
                    bits &= bits - 1;
                }
            }
        }
    }
}

/// Blocks that asked to be woken in a later cycle. A time-out of twenty simulated seconds is one entry here; nothing
/// ticks to get there.
#[derive(Clone, Debug, Default)]
pub struct Alarms {
    heap: BinaryHeap<Reverse<(Cycle, u32)>>,
    /// The cycle each block asked for last: a busy block that repeats its answer adds nothing.
    last: Vec<Cycle>,
}

impl Alarms {
    /// Wakes `block` in cycle `at`.
    pub fn set(&mut self, at: Cycle, block: u32) {
        let block_index = block as usize;
        if self.last.len() <= block_index {
            self.last.resize(block_index + 1, 0);
        }
        // Cycle 0 never lies in the future, so it stands for "none".
        if self.last[block_index] != at || at == 0 {
            self.last[block_index] = at;
            self.heap.push(Reverse((at, block)));
        }
    }

    /// How many alarms are set.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no alarm is set.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The next cycle for which an alarm is set.
    pub fn next(&self) -> Option<Cycle> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes out one block whose alarm is due in cycle `now`.
    #[inline]
    pub fn due(&mut self, now: Cycle) -> Option<u32> {
        match self.heap.peek() {
            Some(Reverse((at, _))) if *at <= now => self.heap.pop().map(|Reverse((_, block))| block),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_drains_in_ascending_order_and_is_empty_after() {
        let mut set = WakeSet::new(100_000);
        for block in [99_999, 0, 63, 64, 4096, 64, 70_000] {
            set.insert(block);
        }
        assert!(set.contains(4096) && !set.contains(4097));
        let mut list = Vec::new();
        set.drain_into(&mut list);
        assert_eq!(list, [0, 63, 64, 4096, 70_000, 99_999]);
        assert!(set.is_empty());
    }

    #[test]
    fn alarms_ring_in_time_order() {
        let mut alarms = Alarms::default();
        alarms.set(17_000_000_000, 2);
        alarms.set(5, 1);
        assert_eq!(alarms.next(), Some(5));
        assert_eq!(alarms.due(4), None);
        assert_eq!(alarms.due(5), Some(1));
        assert_eq!(alarms.due(5), None);
        assert_eq!(alarms.next(), Some(17_000_000_000));
    }

    #[test]
    fn an_answer_that_is_repeated_every_cycle_is_one_alarm() {
        let mut alarms = Alarms::default();
        for _ in 0..1000 {
            alarms.set(70, 3);
        }
        assert_eq!(alarms.len(), 1);
        alarms.set(50, 3);
        assert_eq!((alarms.due(50), alarms.due(50)), (Some(3), None));
        assert_eq!((alarms.due(70), alarms.due(70)), (Some(3), None));
        assert!(alarms.is_empty());
    }

    #[test]
    fn the_earlier_wake_wins() {
        assert_eq!(Wake::OnInput.or(Wake::At(4)), Wake::At(4));
        assert_eq!(Wake::At(9).or(Wake::At(4)), Wake::At(4));
        assert_eq!(Wake::Next.or(Wake::At(4)), Wake::Next);
        assert_eq!(Wake::OnInput.or(Wake::OnInput), Wake::OnInput);
    }
}
