//! What the memories of a collective engine can do in a cycle: each has so many ports, and what touches many entries takes
//! the cycles that these need *\[chosen\]* (B-CE-3, B-CE-5, B-ERR-1).
//!
//! | memory | what | cycles, with p ports |
//! |---|---|---|
//! | PBV table | a configuration frame replaces all entries; what needs the table waits | 128 / p |
//! | tracking store | a message reads when it is taken and writes two cycles later; with one port nothing is taken in the cycle of a write | - |
//! | accumulators | a word into the reduction unit is a read, one out of it a write, which goes first | 1 word, every other cycle with one port |
//! | | a context that begins anew has its words cleared, by ports that are left; its first word waits for that | words / p |
//! | words kept for the order of PBV entries | those of a message are written before what comes behind it | words / p |
//! | | when everybody has answered they are read in order, into the reduction unit | words of all |
//! | deadlines | when the earliest one has come, all contexts of the store are looked at, stored or not; the k-th acts k / p cycles later | contexts / p |

use std::collections::VecDeque;

use crate::context::Context;

/// What waits for ports.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// Contexts whose accumulators are being cleared: slot, generation, words left.
    clears: VecDeque<(u16, u32, u32)>,
    /// The next context that a scan of the deadlines looks at.
    pub scan: Option<u16>,
}

impl Memory {
    /// A context has begun anew.
    pub fn clear(&mut self, slot: u16, context: &Context) {
        let words = context.accumulators.len() as u32;
        self.clears.retain(|&(other, ..)| other != slot);
        if words > 0 {
            self.clears.push_back((slot, context.generation, words));
        }
    }

    /// Whether the accumulators of a context are not clear yet.
    pub fn is_clearing(&self, slot: u16) -> bool {
        self.clears.iter().any(|&(other, ..)| other == slot)
    }

    /// Clears by so many ports that are left in this cycle.
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
