//! Congestion metrics of a packet engine: how full its queues were (B-HI-6, paragraph 91).
//!
//! ```text
//!   ├─ window ─┼─ window ─┼─ window ─┼─ present …        mean and maximum of the last complete window are kept
//! ```
//!
//! | queue | what | unit |
//! |---|---|---|
//! | 8 p + c | input buffer of port p (0: from the switch, 1: from what lies behind), channel c | flits |
//! | 16 | frames that are checked and wait for the collective engine | flits |
//! | 17 | output queue | messages |
//!
//! A level is the length of the queue at the start of a cycle; a mean is over all cycles of a window. A register sets
//! the window; 0 measures without end, from the write on. The first window begins with cycle 0, or with the write.
//! *\[chosen\]*
//!
//! Storage: for each queue a level, two sums of 40 bits and two maxima of 16 bits.
//!
//! Levels are sampled when the engine is evaluated, which is whenever one of them changes.
//!
//! ```
//! use watershed_pbv::metrics::{INBOX, Metrics};
//!
//! let mut metrics = Metrics::default();
//! metrics.set_window(10);
//! // Four flits wait in cycles 2 and 3, none in the others of the window.
//! for (cycle, flits) in [(0, 0), (2, 4), (4, 0), (10, 0)] {
//!     metrics.advance(cycle);
//!     metrics.set(INBOX, flits);
//! }
//! assert_eq!(metrics.complete(), 1);
//! assert_eq!((metrics.reading(INBOX).sum, metrics.reading(INBOX).most), (8, 4));
//! assert_eq!(metrics.mean_256ths(INBOX), 256 * 8 / 10);
//! ```

use watershed_kernel::Cycle;
pub use watershed_pbv_interface::queues::{INBOX, MOST_CHANNELS, OUTPUT, QUEUES};

/// What is known of a queue in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Occupancy {
    /// Sum of its levels over all cycles.
    pub sum: u64,
    /// Its highest level.
    pub most: u32,
}

/// The metrics of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Metrics {
    window: u32,
    begun: Cycle,
    seen: Cycle,
    levels: [u32; QUEUES],
    /// Queues that are not empty, a bit each: only their sums grow.
    filled: u32,
    present: [Occupancy; QUEUES],
    last: [Occupancy; QUEUES],
    complete: u32,
}

impl Metrics {
    /// The cycles of a window; 0: without end.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// Sets the window and begins the first one in the present cycle.
    pub fn set_window(&mut self, cycles: u32) {
        let Metrics { seen, levels, filled, .. } = *self;
        *self = Metrics { window: cycles, begun: seen, seen, levels, filled, ..Metrics::default() };
        self.begin();
    }

    /// The level of a queue when it was last looked at.
    pub fn level(&self, queue: usize) -> u32 {
        self.levels[queue]
    }

    /// Complete windows so far.
    pub fn complete(&self) -> u32 {
        self.complete
    }

    /// Cycles that the readings are of: a window, or all so far; 0 if there are no readings yet.
    pub fn measured(&self) -> u64 {
        match (self.window, self.complete) {
            (0, _) => self.seen - self.begun,
            (_, 0) => 0,
            (window, _) => window.into(),
        }
    }

    /// The reading of a queue.
    pub fn reading(&self, queue: usize) -> Occupancy {
        if self.window == 0 { self.present[queue] } else { self.last[queue] }
    }

    /// The mean level of a queue in 256ths, rounded down.
    pub fn mean_256ths(&self, queue: usize) -> u32 {
        (self.reading(queue).sum * 256).checked_div(self.measured()).unwrap_or(0).try_into().unwrap_or(u32::MAX)
    }

    /// A window begins with the levels as they are.
    fn begin(&mut self) {
        for (present, &level) in self.present.iter_mut().zip(&self.levels) {
            *present = Occupancy { sum: 0, most: level };
        }
    }

    fn add(&mut self, cycles: u64) {
        let mut filled = self.filled;
        while filled != 0 {
            let queue = filled.trailing_zeros() as usize;
            self.present[queue].sum += u64::from(self.levels[queue]) * cycles;
            filled &= filled - 1;
        }
    }

    /// A cycle starts: what was in the queues up to it is counted. Behind it, every queue that can hold something is
    /// [set](Self::set).
    pub fn advance(&mut self, now: Cycle) {
        let window = u64::from(self.window);
        if window > 0 && now - self.begun >= window {
            self.add(self.begun + window - self.seen);
            self.seen = self.begun + window;
            self.last = self.present;
            let more = (now - self.seen) / window;
            self.begin();
            if more > 0 {
                // Nothing changed in all of these.
                self.add(window);
                self.last = self.present;
                self.begin();
            }
            self.complete = self.complete.wrapping_add(1 + more as u32);
            self.begun = self.seen + more * window;
            self.seen = self.begun;
        }
        self.add(now - self.seen);
        self.seen = now;
        if self.begun == now {
            // The levels before are none of this window.
            self.present = [Occupancy::default(); QUEUES];
        }
    }

    /// The level of a queue at the start of the cycle to which these metrics have [advanced](Self::advance).
    #[inline]
    pub fn set(&mut self, queue: usize, level: u32) {
        self.levels[queue] = level;
        self.filled = self.filled & !(1 << queue) | u32::from(level > 0) << queue;
        self.present[queue].most = self.present[queue].most.max(level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_kernel::Rng;

    /// Sampling only when something changes gives what counting every cycle gives, for any window.
    #[test]
    fn windows_are_those_of_counting_every_cycle() {
        for (seed, window) in [(1, 0), (2, 1), (3, 7), (4, 64), (5, 1000)] {
            let mut rng = Rng::new(seed, 0x9e7);
            let levels: Vec<u32> = (0..5000)
                .scan(0, |level, _| {
                    if rng.below(20) == 0 {
                        *level = rng.below(9) as u32;
                    }
                    Some(*level)
                })
                .collect();
            let mut metrics = Metrics::default();
            metrics.set_window(window);
            for now in 0..5000usize {
                let level = levels[now];
                let changed = now == 0 || level != levels[now - 1];
                if !changed && now % 611 != 0 {
                    continue;
                }
                metrics.advance(now as u64);
                metrics.set(3, level);
                let all = if window == 0 {
                    0..now
                } else {
                    (now / window as usize).saturating_sub(1) * window as usize..now / window as usize * window as usize
                };
                assert_eq!(metrics.measured(), all.len() as u64, "{window} {now}");
                let seen = &levels[all.clone()];
                let sum: u64 = seen.iter().map(|&level| u64::from(level)).sum();
                assert_eq!(metrics.reading(3).sum, sum, "{window} {now}");
                // The present window's maximum has this cycle's level already.
                let most = seen.iter().copied().chain((window == 0).then_some(level)).max().unwrap_or(0);
                assert_eq!(metrics.reading(3).most, most, "{window} {now}");
                assert_eq!(metrics.reading(4), Occupancy::default());
                if !all.is_empty() {
                    assert_eq!(u64::from(metrics.mean_256ths(3)), sum * 256 / all.len() as u64);
                }
            }
            assert_eq!(metrics.complete(), if window == 0 { 0 } else { (metrics.seen / u64::from(window)) as u32 });
        }
    }
}
