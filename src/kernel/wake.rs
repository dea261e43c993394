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
    #[inline]
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
#[derive(Clone, Debug, watershed_state::Saved)]
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
        let bits = &mut self.words[word];
        if *bits == 0 {
            self.summary[word >> 6] |= 1 << (word & 63);
        }
        *bits |= 1 << (block & 63);
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
///
/// Alarms of the next 256 cycles stand in a calendar, a list a cycle; later ones in a heap. All are looked at in the
/// cycle they are for, so nothing moves from the one to the other. The lists share one array, so that a calendar with a few
/// alarms is a few lines of the cache.
///
/// A block that answers anew takes back what it asked for in the heap: a run does not go on to the time-out of a block
/// that has its answer. One in the calendar rings anyway, which is soon.
///
/// ```
/// use watershed_kernel::Alarms;
///
/// let mut alarms = Alarms::default();
/// alarms.set(0, 1_000_000, 7); // in cycle 0, block 7 asks for cycle 1,000,000
/// assert_eq!(alarms.next(1), Some(1_000_000)); // no cycle before it needs to be simulated
/// assert_eq!(alarms.pop_due(1_000_000), Some(7));
/// assert_eq!(alarms.pop_due(1_000_000), None);
///
/// alarms.set(1_000_000, 2_000_000, 7);
/// alarms.cancel(7); // what it waited for has come
/// assert!(alarms.is_empty());
/// ```
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub struct Alarms {
    /// The entry set last for each cycle of the calendar; valid if its bit in `filled` is set.
    near: Vec<u32>,
    /// Cycles of the calendar that have an alarm, a bit each.
    filled: [u64; (NEAR / 64) as usize],
    /// Blocks of the calendar, each with the entry set before it for the same cycle, or [`END`].
    entries: Vec<(u32, u32)>,
    /// Entries that are free.
    free: Vec<u32>,
    /// Far alarms, the next one in front. What was taken back stands here only behind one that was not.
    heap: BinaryHeap<Reverse<(Cycle, u32)>>,
    count: usize,
    /// The cycle each block asked for last: a busy block that repeats its answer adds nothing.
    last: Vec<Cycle>,
    /// The last far alarm of each block: twice its cycle, and one unless it was taken back.
    far: Vec<u64>,
}

/// Marks alarms in the heap that are not cancelled by a later answer.
const PERSISTENT: u32 = 1 << 31;

/// Cycles of the calendar of near alarms.
const NEAR: u64 = 256;

/// The end of a list of the calendar.
const END: u32 = u32::MAX;

impl Alarms {
    /// In cycle `now`, asks for `block` to be woken in cycle `at`, which lies behind it.
    #[inline]
    pub fn set(&mut self, now: Cycle, at: Cycle, block: u32) {
        let block_index = block as usize;
        if self.last.len() <= block_index {
            self.last.resize(block_index + 1, 0);
        }
        // Cycle 0 never lies in the future, so it stands for "none".
        if self.last[block_index] == at && at != 0 {
            return;
        }
        self.cancel(block);
        self.last[block_index] = at;
        if at.wrapping_sub(now) < NEAR {
            self.set_near(at, block);
        } else {
            self.set_far(at, block);
        }
    }

    /// In cycle `now`, asks for a block to be woken in cycle `at`, whatever it answers until then.
    pub fn set_persistent(&mut self, now: Cycle, at: Cycle, block: u32) {
        if at.wrapping_sub(now) < NEAR {
            self.set_near(at, block);
        } else {
            self.count += 1;
            self.heap.push(Reverse((at, block | PERSISTENT)));
        }
    }

    /// Takes back the far alarm of a block, if it has one: it has answered something else.
    #[inline]
    pub fn cancel(&mut self, block: u32) {
        if !self.heap.is_empty() {
            self.take_back(block);
        }
    }

    fn take_back(&mut self, block: u32) {
        let Some(far) = self.far.get_mut(block as usize) else { return };
        if *far & 1 == 0 {
            return;
        }
        *far &= !1;
        if self.last[block as usize] == *far >> 1 {
            self.last[block as usize] = 0;
        }
        if self.heap.peek().is_some_and(|&Reverse((_, first))| first == block) {
            self.drop_taken_back();
        }
    }

    /// Removes what was taken back from the front of the heap.
    fn drop_taken_back(&mut self) {
        while let Some(&Reverse((at, block))) = self.heap.peek() {
            if block & PERSISTENT != 0 || self.far[block as usize] == at << 1 | 1 {
                break;
            }
            self.heap.pop();
            self.count -= 1;
            let far = &mut self.far[block as usize];
            if *far == at << 1 {
                *far = 0;
            }
        }
    }

    fn set_far(&mut self, at: Cycle, block: u32) {
        if self.far.len() <= block as usize {
            self.far.resize(self.last.len(), 0);
        }
        // One that was taken back and is asked for again still stands in the heap.
        let stands = self.far[block as usize] == at << 1;
        self.far[block as usize] = at << 1 | 1;
        if !stands {
            self.count += 1;
            self.heap.push(Reverse((at, block)));
        }
    }

    #[inline]
    fn set_near(&mut self, at: Cycle, block: u32) {
        self.count += 1;
        if self.near.is_empty() {
            self.near.resize(NEAR as usize, END);
        }
        let place = (at % NEAR) as usize;
        let bit = 1 << (place % 64);
        let before = if self.filled[place / 64] & bit == 0 { END } else { self.near[place] };
        self.near[place] = if let Some(entry) = self.free.pop() {
            self.entries[entry as usize] = (block, before);
            entry
        } else {
            self.entries.push((block, before));
            self.entries.len() as u32 - 1
        };
        self.filled[place / 64] |= bit;
    }

    /// Frees all memory if no alarm is set: one of many calendars needs it only now and then.
    pub fn free_unused(&mut self) {
        if self.is_empty() {
            *self = Alarms::default();
        }
    }

    /// How many alarms are set.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether no alarm is set.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The next cycle, from `now` on, for which an alarm is set.
    pub fn next(&self, now: Cycle) -> Option<Cycle> {
        let far = self.heap.peek().map(|Reverse((at, _))| *at);
        let from = now % NEAR;
        // The words of the calendar from the one with `now` on, and that one again for what lies before it.
        let words = (0..=NEAR / 64).find_map(|step| {
            let w = (from / 64 + step) % (NEAR / 64);
            let kept = match step {
                0 => u64::MAX << (from % 64),
                _ if step == NEAR / 64 => !(u64::MAX << (from % 64)),
                _ => u64::MAX,
            };
            let word = self.filled[w as usize] & kept;
            (word != 0).then(|| w * 64 + u64::from(word.trailing_zeros()))
        });
        let near = words.map(|place| now + (place + NEAR - from) % NEAR);
        [near, far].into_iter().flatten().min()
    }

    /// Takes out one block whose alarm is due in cycle `now`. No cycle with an alarm may be left out.
    #[inline]
    pub fn pop_due(&mut self, now: Cycle) -> Option<u32> {
        let place = (now % NEAR) as usize;
        if self.filled[place / 64] >> (place % 64) & 1 == 1 {
            let entry = self.near[place];
            let (block, before) = self.entries[entry as usize];
            self.near[place] = before;
            self.filled[place / 64] &= !(u64::from(before == END) << (place % 64));
            self.free.push(entry);
            self.count -= 1;
            return Some(block);
        }
        match self.heap.peek() {
            Some(&Reverse((at, block))) if at <= now => {
                self.count -= 1;
                self.heap.pop();
                if block & PERSISTENT == 0 {
                    self.far[block as usize] = 0;
                }
                self.drop_taken_back();
                Some(block & !PERSISTENT)
            }
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
        alarms.set(0, 17_000_000_000, 2);
        alarms.set(0, 5, 1);
        assert_eq!(alarms.next(0), Some(5));
        assert_eq!(alarms.pop_due(4), None);
        assert_eq!(alarms.pop_due(5), Some(1));
        assert_eq!(alarms.pop_due(5), None);
        assert_eq!(alarms.next(5), Some(17_000_000_000));
        assert_eq!(alarms.pop_due(17_000_000_000), Some(2));
        assert!(alarms.is_empty() && alarms.next(6).is_none());
    }

    #[test]
    fn an_answer_that_is_repeated_every_cycle_is_one_alarm() {
        for (at, sooner, then) in [(70, 50, Some(3)), (7000, 5000, None)] {
            let mut alarms = Alarms::default();
            for now in 0..40 {
                alarms.set(now, at, 3);
            }
            assert_eq!(alarms.len(), 1);
            alarms.set(40, sooner, 3);
            assert_eq!((alarms.pop_due(sooner), alarms.pop_due(sooner)), (Some(3), None));
            assert_eq!(
                (alarms.pop_due(at), alarms.pop_due(at)),
                (then, None),
                "only a near one rings though another answer came"
            );
            assert!(alarms.is_empty());
        }
    }

    #[test]
    fn cancelled_alarms_do_not_ring_and_persistent_ones_do() {
        let mut alarms = Alarms::default();
        for block in 0..4 {
            alarms.set(0, 5000 + u64::from(block), block);
        }
        alarms.set_persistent(0, 7000, 1);
        alarms.cancel(2);
        alarms.cancel(0);
        alarms.cancel(1);
        assert_eq!(alarms.next(1), Some(5003));
        // Asked for again, it is one alarm; another answer takes the place of the first.
        alarms.set(1, 5002, 2);
        alarms.set(2, 6000, 3);
        alarms.set(3, 5002, 2);
        assert_eq!((alarms.next(4), alarms.pop_due(5002), alarms.pop_due(5003)), (Some(5002), Some(2), None));
        // A near answer stands for itself, and the far one before it is gone.
        alarms.set(5900, 5910, 3);
        assert_eq!((alarms.next(5900), alarms.pop_due(5910)), (Some(5910), Some(3)));
        assert_eq!((alarms.next(5911), alarms.pop_due(7000), alarms.pop_due(7000)), (Some(7000), Some(1), None));
        assert!(alarms.is_empty() && alarms.next(7001).is_none());
    }

    #[test]
    fn moving_an_alarm_every_cycle_leaves_nothing_behind() {
        let mut alarms = Alarms::default();
        for now in 0..10_000 {
            alarms.set(now, now + 3000, 1);
            if now % 3 == 0 {
                alarms.cancel(1);
            }
            assert!(alarms.len() <= 1, "{now}");
        }
    }

    #[test]
    fn near_and_far_alarms_ring_when_they_were_asked_for() {
        // Distances around the length of the calendar, asked for from every place in it.
        let mut rng = crate::Rng::new(5, 5);
        for start in 0..2 * NEAR {
            let mut alarms = Alarms::default();
            let mut asked: Vec<Cycle> = (0..20).map(|_| start + 1 + rng.below(3 * NEAR)).collect();
            for (block, &at) in asked.iter().enumerate() {
                alarms.set(start, at, block as u32);
            }
            asked.sort_unstable();
            let mut rang = Vec::new();
            let mut now = start;
            while let Some(next) = alarms.next(now) {
                assert!(next >= now);
                now = next;
                while let Some(block) = alarms.pop_due(now) {
                    assert!(block < 20);
                    rang.push(now);
                }
                now += 1;
            }
            assert_eq!(rang, asked, "from {start}");
            assert_eq!(alarms.len(), 0);
        }
    }

    #[test]
    fn the_earlier_wake_wins() {
        assert_eq!(Wake::OnInput.or(Wake::At(4)), Wake::At(4));
        assert_eq!(Wake::At(9).or(Wake::At(4)), Wake::At(4));
        assert_eq!(Wake::Next.or(Wake::At(4)), Wake::Next);
        assert_eq!(Wake::OnInput.or(Wake::OnInput), Wake::OnInput);
    }
}
