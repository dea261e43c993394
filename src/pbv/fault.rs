//! How frames of this family look to a [link with faults](watershed_fabric::fault): everything on channel [`FRAMES`] is
//! a frame of the family. Background traffic on other channels is stopped only by a dead link *\[chosen: traffic has no
//! recovery\]*.
//!
//! Directions are relative to the place: [`Direction::Up`] is from port 0 to port 1, away from the switch at whose port the
//! link begins.
//!
//! Damage flips a bit of the frame, any one of header and payload. If the link layer does not repeat the frame, it goes
//! on damaged, and a faulty link further on may damage it again. Its receiver finds that the CRC is wrong; so does a
//! device that gets a frame with a damaged address.

use super::packet::words_by_length;
use super::routes::FRAMES;
use watershed_fabric::fault::{Direction, View};
use watershed_fabric::{Flit, FlitSize};
use watershed_kernel::Rng;

/// Frames of this family.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    /// How frames are cut into flits.
    pub cut: FlitSize,
}

impl View for Frames {
    fn direction(&self, from: u16, head: &Flit) -> Option<Direction> {
        (head.tag.vc() == FRAMES).then_some(if from == 0 { Direction::Up } else { Direction::Down })
    }

    fn damage(&self, head: &Flit, rng: &mut Rng) -> (u16, u16) {
        let (word, bit) = (rng.below(words_by_length(head.word) as u64) as usize, rng.below(64) as u8);
        self.cut.place(word, bit)
    }
}
