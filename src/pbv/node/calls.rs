//! Calls of runs: what goes on at a device between its parts and an application that contributes when it likes
//! ([`TaskTime::Called`](super::TaskTime::Called)).

use super::Node;
use watershed_kernel::Cycle;

impl Node {
    /// Runs of a context are called, up to this one: their tasks are over.
    pub fn call(&mut self, cc_id: u16, runs: u32, now: Cycle) {
        let Some(running) = self.parts.iter_mut().find(|running| running.part.cc_id == cc_id) else { return };
        let waited = running.is_uncalled();
        running.called = runs;
        if waited && !running.is_uncalled() {
            running.until = now;
        }
    }
}
