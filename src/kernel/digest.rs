//! The state of a block that decides what it does next, as one number.
//!
//! A search over all interleavings recognises states by it. Counters and logs stay out, because they decide nothing; of
//! a timer only whether it runs goes in.

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
