//! A hasher of words.

use std::hash::Hasher;

/// Hashes registers word by word. The standard hasher resists keys that are chosen to collide. That is not needed here,
/// and would take a third of the time to build the registers of a million switches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WordHasher(u64);

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            self.write_u64(u64::from_le_bytes(padded));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        // The lower bits of a product know nothing of the higher ones of its factors.
        self.0.rotate_left(26)
    }
}
