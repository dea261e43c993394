//! Unsolicited congestion reports: an engine sends one when a queue reaches a threshold (paragraph 91).
//!
//! ```text
//!   level      above ─ ─ ─ ─ ─╱─╲─ ─ ─ ─ ─ ─ ─╱╲─ ─        one report where the level comes up to `above`,
//!                            ╱   ╲    ╱╲      ╱  ╲         none until it was down at `until`
//!              until ─ ─ ─ ─╱─ ─ ─╲─ ╱─ ╲─ ─ ╱─ ─ ╲
//! ```
//!
//! | register | bits | meaning |
//! |---|---|---|
//! | 0x130 levels | 15:0 `above`, 31:16 `until` | flits of a buffer or of the inbox, messages of the output queue; `above` = 0: no reports |
//! | 0x134 queues | 17:0 | which queues are watched, numbered as in [`metrics`](super::metrics) |
//! | 0x138 collector | 15:0 | the end device that gets the reports |
//!
//! A report is a posted frame; its words are the cycle, and for each queue that crossed the threshold in this cycle its
//! number in the upper and its level in the lower half. At most one report waits in the output queue: a queue that
//! crosses the threshold meanwhile is reported after it, if it is still that full. So reports never fill the queue that
//! they report on. *\[chosen\]*
//!
//! ```
//! use watershed_pbv::reports::{Reporter, Reports};
//!
//! // Queue 3 is reported when it comes up to 8, and again when it was down at 2.
//! let set = Reports::new(40, 1 << 3, 8, 2);
//! let mut reporter = Reporter::default();
//! let reported: Vec<bool> = [0, 8, 9, 5, 8, 2, 8] // a level a cycle
//!     .map(|level| !reporter.look(set, || false, |_| level).is_empty())
//!     .to_vec();
//! assert_eq!(reported, [false, true, false, false, false, false, true]);
//! ```

use super::metrics::QUEUES;
pub use super::packet::Reports;

/// Which queues were reported and have not come down since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Reporter {
    high: u32,
}

impl Reporter {
    /// Looks at the levels at the start of a cycle. Returns the words for each queue to be reported; where `waits` says that
    /// a report still waits, nothing is.
    pub fn look(&mut self, set: Reports, waits: impl Fn() -> bool, level: impl Fn(usize) -> u32) -> Vec<u64> {
        let mut words = Vec::new();
        if set.above() == 0 {
            self.high = 0;
            return words;
        }
        for queue in (0..QUEUES).filter(|queue| set.queues >> queue & 1 != 0) {
            let (bit, level) = (1 << queue, level(queue));
            if level <= set.until() && level < set.above() {
                self.high &= !bit;
            } else if level >= set.above() && self.high & bit == 0 && !waits() {
                self.high |= bit;
                words.push((queue as u64) << 32 | u64::from(level));
            }
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_reported_once_until_it_was_down() {
        let set = Reports::new(7, 1 << 3 | 1 << 17, 10, 4);
        let mut reporter = Reporter::default();
        let mut reported = Vec::new();
        for (cycle, level) in [3, 9, 10, 12, 9, 11, 5, 10, 4, 9, 10, 10, 0].into_iter().enumerate() {
            // Queue 2 is as full, and not watched.
            let words = reporter.look(set, || false, |queue| if queue == 3 || queue == 2 { level } else { 0 });
            reported.extend(words.into_iter().map(|word| (cycle, word >> 32, word as u32)));
        }
        assert_eq!(reported, [(2, 3, 10), (10, 3, 10)]);
    }

    #[test]
    fn what_crosses_while_a_report_waits_is_reported_behind_it() {
        let set = Reports::new(7, 0b11, 5, 5);
        let mut reporter = Reporter::default();
        assert_eq!(reporter.look(set, || true, |_| 6), Vec::<u64>::new());
        assert_eq!(reporter.look(set, || false, |_| 6), [6, 1 << 32 | 6]);
        assert_eq!(reporter.look(set, || false, |_| 6), Vec::<u64>::new());
        // Relief below the threshold, even where `until` says less strictly.
        assert_eq!(reporter.look(set, || false, |_| 4), Vec::<u64>::new());
        assert_eq!(reporter.look(set, || false, |_| 5).len(), 2);
        assert_eq!(reporter.look(Reports::default(), || false, |_| 99), Vec::<u64>::new());
    }
}
