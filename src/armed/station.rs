//! What stations write down beside the hardware: who merged what in which order (for the golden check), and which
//! frame they saw when (for ladders). Nothing here is read by a block.
//!
//! Every frame that a station makes has a *token*: the station's number in bits 35:18 and a running number in 17:0. It
//! travels in the side band of the flits, not in the frame, and a frame that is passed on keeps it. So the merges of
//! all stations together are the tree by which each result came about, whatever happened on the way.

use super::frame::Frame;
use crate::kernel::Cycle;

/// Bits of the running number.
const NUMBER_BITS: u32 = 18;
/// Stations that tokens can name.
pub const MAX_STATIONS: usize = 1 << (36 - NUMBER_BITS);

/// The token of frames nobody asks about.
pub const NO_TOKEN: u64 = (1 << 36) - 1;

/// A token.
pub fn token(station: u32, number: u64) -> u64 {
    u64::from(station) << NUMBER_BITS | number & ((1 << NUMBER_BITS) - 1)
}

/// The station that made the frame.
pub fn station_of(token: u64) -> u32 {
    (token >> NUMBER_BITS) as u32
}

/// Which of the station's frames it was, modulo the range of the running number.
pub fn number_of(token: u64) -> u64 {
    token & ((1 << NUMBER_BITS) - 1)
}

/// What a frame was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// From these frames, in this order.
    From(Box<[u64]>),
    /// It is what one participant contributes to one round.
    Contribution {
        /// Which reduction of the system.
        job: u16,
        /// The participant: 0 is the root.
        rank: u32,
        /// The data round; `None` is the opening barrier.
        round: Option<u32>,
        /// The opcode it was sent under.
        op: u8,
        /// The end point that sent it.
        source: u32,
    },
    /// From nothing: an arm frame, a release, a stranger's frame.
    Nothing,
}

/// What one station made, frame by frame.
#[derive(Clone, Debug)]
pub struct Merges {
    station: u32,
    made: u64,
    lists: Vec<Made>,
}

impl Merges {
    /// Nothing yet.
    pub fn new(station: u32) -> Merges {
        Merges { station, made: 0, lists: Vec::new() }
    }

    /// Counts a frame that the station made from this, and returns its token.
    pub fn made(&mut self, record: bool, from: Made) -> u64 {
        let token = token(self.station, self.made);
        self.made += 1;
        if record {
            self.lists.push(from);
        }
        token
    }

    /// Frames made so far.
    pub fn count(&self) -> u64 {
        self.made
    }

    /// What a frame of this station was made from; `None` if it was not recorded.
    pub fn of(&self, token: u64) -> Option<&Made> {
        debug_assert_eq!(station_of(token), self.station);
        self.lists.get(number_of(token) as usize)
    }
}

/// What a station did with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Made it and sent it.
    Sent,
    /// Passed it on.
    Passed,
    /// Was armed by it, and passed it on.
    Armed,
    /// Would have been armed by it and had no free descriptor; passed it on.
    NotArmed,
    /// Took it into a reduction.
    Merged,
    /// Took it: it was for this end point.
    Received,
    /// Handed it to its process, after what software takes.
    Delivered,
    /// Dropped it.
    Dropped,
}

/// One entry of a log.
#[derive(Clone, Copy, Debug)]
pub struct Logged {
    /// When.
    pub cycle: Cycle,
    /// What.
    pub what: Happening,
    /// Token of the frame.
    pub token: u64,
    /// The frame.
    pub frame: Frame,
}

/// The log of one station.
#[derive(Clone, Debug, Default)]
pub struct Log {
    entries: Vec<Logged>,
}

impl Log {
    /// Adds an entry.
    pub fn push(&mut self, cycle: Cycle, what: Happening, token: u64, frame: &Frame) {
        self.entries.push(Logged { cycle, what, token, frame: *frame });
    }

    /// All entries, in the order of time.
    pub fn entries(&self) -> &[Logged] {
        &self.entries
    }
}
