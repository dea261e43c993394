//! What is in the network, and what moves, over the time of a run.

use super::run::Sample;

/// Looks at the network, at most so many times: when they are more, every second one goes and the pace halves.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    samples: Vec<Sample>,
    pace: u64,
    next: u64,
}

impl Timeline {
    const MOST: usize = 512;

    /// Takes a sample if it is time for one: flits in the network, and those that have left a queue since cycle 0.
    pub fn look(&mut self, now: u64, live: impl FnOnce() -> usize, moved: u64) {
        if now < self.next {
            return;
        }
        self.samples.push(Sample { cycle: now, live: live() as u64, moved });
        self.pace = self.pace.max(1);
        if self.samples.len() > Self::MOST {
            let mut keep = false;
            self.samples.retain(|_| {
                keep = !keep;
                keep
            });
            self.pace *= 2;
        }
        self.next = now + self.pace;
    }

    /// What was seen.
    pub fn samples(self) -> Vec<Sample> {
        self.samples
    }
}
