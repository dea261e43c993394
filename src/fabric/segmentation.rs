//! How frames are cut into flits (requirement H-WIDTH-1).
//!
//! A frame is words of 64 bits, the first byte in the uppermost bits. A flit of F bits carries the next F bits of it, so
//! a frame of B bits has ceil(B / F) flits; what the last one carries beyond the frame is zero. F is a multiple of 32
//! *\[chosen: fields by which frames are routed then stand in one flit\]*.
//!
//! | F | in a [`Flit`](super::Flit) |
//! |---|---|
//! | below 64 | the upper F bits of its word |
//! | 64 | its word |
//! | above 64 | its word, and behind it in the pool as many more as it takes, the last one filled from above |
//!
//! ```
//! use watershed_fabric::FlitSize;
//!
//! // A frame of 84 bytes: 11 flits of 64 bits, 3 of 256, 21 of 32.
//! let flits = |bits| FlitSize::of_bits(bits).unwrap().flits(84);
//! assert_eq!([64, 256, 32].map(flits), [11, 3, 21]);
//! ```

/// The size of a flit, for frames that are cut into flits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct FlitSize {
    /// Pieces of 32 bits in a flit.
    pieces: u16,
}

impl Default for FlitSize {
    fn default() -> FlitSize {
        FlitSize::WORD
    }
}

/// Piece `at` of 32 bits of words; zero behind their end.
fn piece(words: &[u64], at: usize) -> u64 {
    let word = words.get(at / 2).copied().unwrap_or(0);
    if at.is_multiple_of(2) { word >> 32 } else { word & 0xffff_ffff }
}

impl FlitSize {
    /// Flits of one word.
    pub const WORD: FlitSize = FlitSize { pieces: 2 };
    /// The smallest flit in bits.
    pub const LEAST_BITS: u32 = 32;
    /// The largest flit in bits.
    pub const MOST_BITS: u32 = 4096;

    /// Flits of this many bits: a multiple of 32, from [`FlitSize::LEAST_BITS`] to [`FlitSize::MOST_BITS`].
    pub const fn of_bits(bits: u32) -> Option<FlitSize> {
        if bits.is_multiple_of(32) && bits >= FlitSize::LEAST_BITS && bits <= FlitSize::MOST_BITS {
            Some(FlitSize { pieces: (bits / 32) as u16 })
        } else {
            None
        }
    }

    /// Bits of a flit.
    pub const fn bits(self) -> u32 {
        32 * self.pieces as u32
    }

    /// Words of a flit, the last one perhaps not full.
    pub const fn words(self) -> usize {
        (self.pieces as usize).div_ceil(2)
    }

    /// Words of a flit behind its first.
    pub const fn more(self) -> usize {
        self.words() - 1
    }

    /// Flits of a frame of this many bytes.
    pub const fn flits(self, bytes: usize) -> usize {
        (8 * bytes).div_ceil(self.bits() as usize)
    }

    /// Word `k` of flit `index` of a frame.
    pub fn word(self, frame: &[u64], index: usize, k: usize) -> u64 {
        let pieces = usize::from(self.pieces);
        if pieces.is_multiple_of(2) {
            return frame.get(index * pieces / 2 + k).copied().unwrap_or(0);
        }
        let upper = piece(frame, index * pieces + 2 * k) << 32;
        // An odd number of pieces ends in the upper half of the last word.
        if 2 * k + 1 < pieces { upper | piece(frame, index * pieces + 2 * k + 1) } else { upper }
    }

    /// The words of flit `index` of a frame behind the first.
    pub fn words_behind(self, frame: &[u64], index: usize) -> impl Iterator<Item = u64> {
        (1..self.words()).map(move |k| self.word(frame, index, k))
    }

    /// Puts flit `index` of a frame, whose words are `first` and `more`, into its place; what lies behind the end of `frame`
    /// is padding.
    #[inline]
    pub fn put(self, frame: &mut [u64], index: usize, first: u64, more: &[u64]) {
        let pieces = usize::from(self.pieces);
        let word = |k: usize| if k == 0 { first } else { more.get(k - 1).copied().unwrap_or(0) };
        if pieces.is_multiple_of(2) {
            let places = frame.iter_mut().skip(index * pieces / 2).take(pieces / 2);
            places.enumerate().for_each(|(k, place)| *place = word(k));
            return;
        }
        for at in 0..pieces {
            let of = word(at / 2);
            let bits = if at.is_multiple_of(2) { of >> 32 } else { of & 0xffff_ffff };
            let to = index * pieces + at;
            let Some(place) = frame.get_mut(to / 2) else { return };
            *place =
                if to.is_multiple_of(2) { *place & 0xffff_ffff | bits << 32 } else { *place & !0xffff_ffff | bits };
        }
    }

    /// Where bit `bit` of word `word` of a frame is: the flit, and the bit of it; bit 64 k + b is bit b of its k-th word.
    pub fn place(self, word: usize, bit: u8) -> (u16, u16) {
        let (pieces, at) = (usize::from(self.pieces), 2 * word + usize::from(bit < 32));
        let (flit, at) = (at / pieces, at % pieces);
        let upper = if at.is_multiple_of(2) { 32 } else { 0 };
        (flit as u16, (64 * (at / 2)) as u16 + upper + u16::from(bit % 32))
    }
}

/// Reassembles a frame from its flits.
#[derive(Clone, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Reassembly {
    words: Vec<u64>,
    flits: usize,
}

impl Reassembly {
    /// Puts the next flit behind the others.
    pub fn push(&mut self, cut: FlitSize, first: u64, more: &[u64]) {
        self.words.resize((usize::from(cut.pieces) * (self.flits + 1)).div_ceil(2), 0);
        cut.put(&mut self.words, self.flits, first, more);
        self.flits += 1;
    }

    /// Forgets all of it.
    pub fn clear(&mut self) {
        self.words.clear();
        self.flits = 0;
    }

    /// Flits so far.
    pub fn flits(&self) -> usize {
        self.flits
    }

    /// Words so far; the last ones may be padding.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The words of a frame of this many bytes, if that many flits are there; all of them otherwise.
    pub fn frame(&self, cut: FlitSize, bytes: usize) -> &[u64] {
        let words = bytes.div_ceil(8);
        if cut.flits(bytes) == self.flits { &self.words[..words.min(self.words.len())] } else { &self.words }
    }
}

/// A flit with all its words.
#[derive(Clone, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct WideFlit {
    /// The flit, with its first word.
    pub flit: super::Flit,
    /// The words behind the first.
    pub more: Box<[u64]>,
}

impl WideFlit {
    /// Flips a bit: bit 64 k + b is bit b of its k-th word.
    pub fn flip(&mut self, bit: u16) {
        let mask = 1 << (bit % 64);
        match usize::from(bit / 64) {
            0 => self.flit.word ^= mask,
            k => {
                if let Some(word) = self.more.get_mut(k - 1) {
                    *word ^= mask;
                }
            }
        }
    }

    /// Its words.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.flit.word).chain(self.more.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits of words, the first one first.
    fn bits(words: &[u64]) -> Vec<bool> {
        words.iter().flat_map(|word| (0..64).rev().map(move |bit| word >> bit & 1 == 1)).collect()
    }

    fn frame(length: usize) -> Vec<u64> {
        (1..=length as u64).map(|k| k.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
    }

    #[test]
    fn flits_are_stretches_of_a_frames_bits() {
        for size in (32..=1024).step_by(32).chain([4096]) {
            let cut = FlitSize::of_bits(size).unwrap();
            for length in [1, 2, 4, 11, 13, 132] {
                let frame = frame(length);
                let mut all = bits(&frame);
                let flits = cut.flits(8 * length);
                assert_eq!(flits, (64 * length).div_ceil(size as usize));
                all.resize(flits * size as usize, false);
                for index in 0..flits {
                    let words: Vec<u64> = (0..cut.words()).map(|k| cut.word(&frame, index, k)).collect();
                    let of_flit = bits(&words);
                    let (inside, outside) = of_flit.split_at(size as usize);
                    assert_eq!(inside, &all[index * size as usize..][..size as usize], "{size} bits, flit {index}");
                    assert!(outside.iter().all(|bit| !bit));
                }
            }
        }
    }

    #[test]
    fn a_frame_comes_together_from_its_flits() {
        for size in (32..=1024).step_by(32).chain([4096]) {
            let cut = FlitSize::of_bits(size).unwrap();
            for length in [1, 4, 11, 13, 132] {
                let frame = frame(length);
                let (mut pieces, mut fixed) = (Reassembly::default(), vec![u64::MAX; length]);
                for index in 0..cut.flits(8 * length) {
                    let more: Vec<u64> = cut.words_behind(&frame, index).collect();
                    assert_eq!(more.len(), cut.more());
                    pieces.push(cut, cut.word(&frame, index, 0), &more);
                    cut.put(&mut fixed, index, cut.word(&frame, index, 0), &more);
                }
                assert_eq!((pieces.frame(cut, 8 * length), &fixed[..]), (&frame[..], &frame[..]), "{size} bits");
            }
        }
    }

    #[test]
    fn a_damaged_bit_is_found_in_its_flit() {
        for size in [32, 64, 96, 160, 256, 672, 1024] {
            let cut = FlitSize::of_bits(size).unwrap();
            let frame = frame(11);
            for (word, bit) in (0..11).flat_map(|word| (0..64u8).map(move |bit| (word, bit))) {
                let (nth, at) = cut.place(word, bit);
                let mut came = Reassembly::default();
                for index in 0..cut.flits(88) {
                    let flit = super::super::Flit { word: cut.word(&frame, index, 0), ..Default::default() };
                    let mut flit = WideFlit { flit, more: cut.words_behind(&frame, index).collect() };
                    if index == usize::from(nth) {
                        flit.flip(at);
                    }
                    came.push(cut, flit.flit.word, &flit.more);
                }
                let mut damaged = frame.clone();
                damaged[word] ^= 1 << bit;
                assert_eq!(came.frame(cut, 88), damaged, "{size} bits, word {word}, bit {bit}");
            }
        }
    }

    #[test]
    fn sizes_are_multiples_of_32_bits() {
        let fits: Vec<u32> = (0..200).filter(|&bits| FlitSize::of_bits(bits).is_some()).collect();
        assert_eq!(fits, [32, 64, 96, 128, 160, 192]);
        assert_eq!((FlitSize::of_bits(4096).map(FlitSize::words), FlitSize::of_bits(4128)), (Some(64), None));
    }
}
