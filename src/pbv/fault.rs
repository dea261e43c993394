//! How frames of this family look to a [link with faults](crate::fabric::fault): everything on its channels is a frame of
//! the family.
//!
//! Ways are those of the place: [`Way::Up`] is from port 0 to port 1, away from the switch at whose port the link begins.
//!
//! A damaged frame is found by the CRC that every link of this kind has. If the link layer does not repeat it, it goes on with
//! EP set, and whoever gets it refuses it as poisoned *\[chosen\]*.

use crate::fabric::Flit;
use crate::fabric::fault::{View, Way};
use crate::kernel::Rng;

/// Frames of this family.
#[derive(Clone, Copy, Debug)]
pub struct Frames;

/// EP: bit 15 of DW 1, which is the lower half of the first flit.
const EP: u8 = 15;

impl View for Frames {
    fn way(&self, from: u16, _: &Flit) -> Option<Way> {
        Some(if from == 0 { Way::Up } else { Way::Down })
    }

    fn damage(&self, _: &Flit, _: &mut Rng) -> (u16, u8) {
        (0, EP)
    }
}
