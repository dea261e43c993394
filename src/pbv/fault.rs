//! How frames of this family look to a [link with faults](crate::fabric::fault): everything on its channels is a frame of
//! the family, and has the length that its first double word says.
//!
//! Ways are those of the place: [`Way::Up`] is from port 0 to port 1, away from the switch at whose port the link begins.

use super::packet::{FLIT_BYTES, HEADER_BYTES};
use crate::fabric::Flit;
use crate::fabric::fault::{View, Way};

/// Frames of this family.
#[derive(Clone, Copy, Debug)]
pub struct Frames;

impl View for Frames {
    fn way(&self, from: u16, _: &Flit) -> Option<Way> {
        Some(if from == 0 { Way::Up } else { Way::Down })
    }

    fn flits(&self, head: &Flit) -> u16 {
        // DW 0 is the upper half of the first flit, Length its low ten bits.
        let length = (head.word >> 32 & 0x3ff) as usize;
        ((HEADER_BYTES + 4 * length) / FLIT_BYTES) as u16
    }
}
