//! The ports of a collective engine's memories, and the cycles of operations that touch many entries *\[chosen\]*
//! (B-CE-3, B-CE-5, B-ERR-1).
//!
//! The table is on the page of the [collective engine](super).

use std::collections::VecDeque;

use crate::context::Context;

/// The accesses that wait for ports.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub(super) struct Memory {
    /// Contexts whose accumulators are being cleared: slot, generation, lines left.
    clears: VecDeque<(u16, u32, u32)>,
    /// The next context that a scan of the deadlines looks at.
    pub scan: Option<u16>,
}

impl Memory {
    /// A context has begun anew; a line has this many words.
    pub fn clear(&mut self, slot: u16, context: &Context, line: u32) {
        let lines = (context.data.accumulators.len() as u32).div_ceil(line);
        self.clears.retain(|&(other, ..)| other != slot);
        if lines > 0 {
            self.clears.push_back((slot, context.generation, lines));
        }
    }

    /// Whether the accumulators of a context are not clear yet.
    pub fn is_clearing(&self, slot: u16) -> bool {
        self.clears.iter().any(|&(other, ..)| other == slot)
    }

    /// Clears lines through the ports that are free in this cycle.
    pub fn tick(&mut self, mut ports: u32) {
        while ports > 0
            && let Some((.., left)) = self.clears.front_mut()
        {
            let now = ports.min(*left);
            (*left, ports) = (*left - now, ports - now);
            if *left == 0 {
                self.clears.pop_front();
            }
        }
    }

    pub fn is_idle(&self) -> bool {
        self.clears.is_empty() && self.scan.is_none()
    }
}
