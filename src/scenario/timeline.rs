//! Samples over the time of a run: flits in the network, and flits moved.

use watershed_fabric::{LinkCount, Simulation};
use watershed_scenario_interface::run::Sample;

/// Samples the network at most [`Timeline::MOST`] times: beyond that, every second sample is dropped and the rate
/// halves.
#[derive(Debug, Default, watershed_state::Saved)]
pub(super) struct Timeline {
    samples: Vec<Sample>,
    pace: u64,
    next: u64,
}

impl Timeline {
    const MOST: usize = 512;

    /// Links whose load is looked at, at most: more of them cannot be drawn.
    const COUNTED: usize = 4096;

    /// Takes a sample if it is time for one: flits in the network, and those that have left a queue since cycle 0.
    pub fn sample_if_due(&mut self, system: &dyn Simulation) {
        let now = system.now();
        if now < self.next {
            return;
        }
        let busy = |(_, count, cycles_per_flit): (u8, LinkCount, u16)| {
            (count.set + count.unicast) * u64::from(cycles_per_flit)
        };
        let counted = system.plan().links.len() <= Self::COUNTED;
        let busy = if counted { system.link_counts().map(busy).collect() } else { Vec::new() };
        self.samples.push(Sample { cycle: now, live: system.live_flits() as u64, moved: system.moves(), busy });
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

    /// The samples, and the names of the links that were sampled.
    pub fn samples(self, system: &dyn Simulation) -> (Vec<Sample>, Vec<String>) {
        let links = self.samples.first().map_or(0, |sample| sample.busy.len());
        let name = |at: usize| {
            let (from, to) = system.link_ends(at);
            format!("{from} -> {to}")
        };
        (self.samples, (0..links).map(name).collect())
    }
}
