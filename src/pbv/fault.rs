//! How frames of this family look to a [link with faults](crate::fabric::fault): everything on its channels is a frame of
//! the family.
//!
//! Ways are those of the place: [`Way::Up`] is from port 0 to port 1, away from the switch at whose port the link begins.
//!
//! Damage flips a bit of the frame, any one of header and payload. If the link layer does not repeat the frame, it goes on like
//! that, is damaged again where a link further on is faulty, and whoever it is for finds that its CRC is wrong. The address on
//! the side-band, by which switches route, is never damaged *\[chosen\]*.

use super::packet::{FLIT_BYTES, HEADER_BYTES, MAX_PAYLOAD_BYTES};
use crate::fabric::Flit;
use crate::fabric::fault::{View, Way};
use crate::kernel::Rng;

/// Flits of the longest payload.
const MOST: u64 = MAX_PAYLOAD_BYTES as u64 / FLIT_BYTES as u64;

/// Frames of this family.
#[derive(Clone, Copy, Debug)]
pub struct Frames;

impl View for Frames {
    fn way(&self, from: u16, _: &Flit) -> Option<Way> {
        Some(if from == 0 { Way::Up } else { Way::Down })
    }

    fn damage(&self, head: &Flit, rng: &mut Rng) -> (u16, u8) {
        // Length is the lowest field of DW 0, which is the upper half of the first flit; a wrong one ends within the header.
        let payload = (head.word >> 32 & 0x3ff) / 2;
        let flits = HEADER_BYTES as u64 / FLIT_BYTES as u64 + if payload <= MOST { payload } else { 0 };
        (rng.below(flits) as u16, rng.below(64) as u8)
    }
}
