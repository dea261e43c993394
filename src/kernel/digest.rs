//! What a block is in the middle of, as one number.
//!
//! A search over all interleavings tells states by it. What says nothing about what the block does next stays out: counters,
//! logs, and clocks, of which only matters whether they run.

use std::fmt::{Debug, Write};
use std::hash::Hasher;

/// Takes the text of values into a hash.
pub struct Digest<'a, H: Hasher>(pub &'a mut H);

impl<H: Hasher> Write for Digest<'_, H> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

impl<H: Hasher> Digest<'_, H> {
    /// Takes a value in.
    pub fn of(&mut self, value: impl Debug) {
        // Writing into a hash does not fail.
        let _ = write!(self, "{value:?};");
    }
}
