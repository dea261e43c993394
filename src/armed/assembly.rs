//! A frame that comes flit by flit: the register at the entrance of an engine and of an end point.

use super::frame::{FRAME_BYTES, FRAME_WORDS, Frame, FrameError};
use watershed_fabric::{Flit, FlitSize};

/// Where the count of words stays: its register has four bits.
const LAST_COUNT: u32 = 15;

/// A frame under assembly: the words of its flits as they come.
#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
pub(super) struct Assembly {
    words: [u64; FRAME_WORDS],
    flits: u16,
    /// Words of them, which waves show as `entrance_flits`: flits of 64 bits.
    filled: u16,
    token: u64,
}

impl Assembly {
    /// Takes a flit; at the tail the whole frame, or why it is none.
    pub(super) fn take(&mut self, cut: FlitSize, flit: (&Flit, &[u64])) -> Option<Result<(Frame, u64), FrameError>> {
        let words = self.take_words(cut, flit)?;
        Some(words.and_then(|words| Frame::from_words(&words)).map(|frame| (frame, self.token)))
    }

    /// As [`Assembly::take`], whatever the words mean.
    pub(super) fn take_words(
        &mut self,
        cut: FlitSize,
        (flit, more): (&Flit, &[u64]),
    ) -> Option<Result<[u64; FRAME_WORDS], FrameError>> {
        if flit.tag.head() {
            self.flits = 0;
            self.token = flit.tag.seq();
        }
        cut.put(&mut self.words, self.flits.into(), flit.word, more);
        self.flits = self.flits.saturating_add(1);
        self.filled = (cut.bits() * u32::from(self.flits)).div_ceil(64).min(LAST_COUNT) as u16;
        if !flit.tag.tail() {
            return None;
        }
        let flits = usize::from(self.flits);
        (self.flits, self.filled) = (0, 0);
        let whole = flits == cut.flits(FRAME_BYTES);
        Some(if whole { Ok(self.words) } else { Err(FrameError::Length { got: flits * cut.bits() as usize / 8 }) })
    }

    /// Words that it holds, flits of 64 bits.
    pub(super) fn filled(&self) -> u16 {
        self.filled
    }
}
