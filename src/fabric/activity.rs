//! What came about in a system, cycle by cycle: a driver that looks after many cycles finds what it would have seen after each.

use watershed_kernel::Cycle;
use watershed_state::Saved;

/// What came about since cycle 0.
#[derive(Clone, Copy, Default, Saved)]
pub(super) struct Activity {
    /// The cycle after the last one in which anything happened.
    pub alive_until: Cycle,
    /// Cycles in which a node was awake: in all others everything waited for a time, or for a flit or a credit on its way.
    pub awake_cycles: u64,
    /// The cycle after the last one in which a flit left a queue or an end point reported a completion.
    pub moved_until: Cycle,
    /// Flits moved and completions by then.
    seen: (u64, u64),
}

impl Activity {
    /// After a step: flits moved and completions by now.
    pub fn note_step(&mut self, now: Cycle, seen: (u64, u64)) {
        if seen != self.seen {
            (self.seen, self.moved_until) = (seen, now);
        }
    }
}
