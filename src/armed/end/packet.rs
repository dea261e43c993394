//! What an end point sends, flit by flit.

use crate::frame::{ETHERNET_BYTES, ETHERNET_WORDS, FRAME_BYTES, Frame, FrameError};
use watershed_fabric::{Flit, FlitSize, Io};
use watershed_kernel::Cycle;

/// A packet on its way out.
#[derive(Clone, Debug, watershed_state::Saved)]
pub(super) struct Packet {
    pub due: Cycle,
    pub vc: u8,
    pub token: u64,
    pub id: u16,
    /// The words of a frame, in either form.
    pub words: Box<[u64]>,
    /// A point-to-point packet begins with this flit.
    pub header: Option<u64>,
}

impl Packet {
    /// Flits of it: those of the header and the frame.
    pub fn flits(&self, cut: FlitSize) -> usize {
        let bytes = if self.words.len() == ETHERNET_WORDS { ETHERNET_BYTES } else { FRAME_BYTES };
        usize::from(self.header.is_some()) + cut.flits(bytes)
    }

    /// The frame in it, in either form.
    pub fn frame(&self) -> Result<Frame, FrameError> {
        if self.words.len() == ETHERNET_WORDS {
            Frame::from_ethernet_words(&self.words)
        } else {
            Frame::from_words(&self.words)
        }
    }

    /// Sends one of its flits; `flits`: how many it has.
    pub fn send(&self, io: &mut Io<'_>, (vc, cut): (u8, FlitSize), index: usize, flits: usize) {
        let part = |word| Flit::part(self.id, vc, self.token, index as u32, flits as u32, word);
        match self.header {
            Some(word) if index == 0 => io.send(0, vc, part(word)),
            header => {
                let index = index - usize::from(header.is_some());
                io.send_with(0, vc, part(cut.word(&self.words, index, 0)), cut.words_behind(&self.words, index));
            }
        }
    }
}
