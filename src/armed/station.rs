//! Records of the stations beside the hardware: who merged what in which order (for the golden check), and which frame
//! they saw when (for ladders). No block reads them.
//!
//! Every frame that a station makes has a *token*: the station's number in its upper bits, a running number in the rest
//! of its 36. It travels in the side band of the flits, not in the frame, and a frame that is passed on keeps it. So
//! the merges of all stations together are the tree of each result, whatever happened on the way.
//!
//! The size of the system sets the number of bits of the station's number ([`Tokens`]); the rest counts frames. So a
//! running number is unique unless, in a system of 131,073 stations or more, a station makes more than 262,144 frames.
//! Then the record is unknown ([`Merges::of`]) and never names a wrong frame.

use super::frame::Frame;
use watershed_kernel::Cycle;

/// Bits of a token: those of a flit's `seq`.
const TOKEN_BITS: u32 = 36;
/// Stations that tokens can name.
pub const MAX_STATIONS: usize = 1 << 18;

/// The token of frames nobody asks about.
pub const NO_TOKEN: u64 = (1 << TOKEN_BITS) - 1;

/// How tokens of a system are divided into a station and a running number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Tokens {
    number_bits: u32,
}

impl Tokens {
    /// For a system of up to this many stations.
    ///
    /// # Panics
    /// For more than [`MAX_STATIONS`].
    pub fn new(stations: usize) -> Tokens {
        assert!(stations <= MAX_STATIONS, "{stations} stations are more than tokens can name");
        // One number more than there are stations, so that no station's token is `NO_TOKEN`.
        let station_bits = usize::BITS - stations.leading_zeros();
        Tokens { number_bits: TOKEN_BITS - station_bits.min(18) }
    }

    /// The station that made the frame.
    pub fn station(self, token: u64) -> u32 {
        (token >> self.number_bits) as u32
    }

    /// Which of the station's frames it was, modulo [`Tokens::range`].
    pub fn number(self, token: u64) -> u64 {
        token & (self.range() - 1)
    }

    /// How many running numbers there are.
    pub fn range(self) -> u64 {
        1 << self.number_bits
    }

    fn token(self, station: u32, number: u64) -> u64 {
        u64::from(station) << self.number_bits | number & (self.range() - 1)
    }
}

/// What a frame was made from.
#[derive(Clone, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum FrameOrigin {
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
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct Merges {
    station: u32,
    tokens: Tokens,
    made: u64,
    lists: Vec<FrameOrigin>,
}

impl Merges {
    /// Nothing yet, at this station of a system with these tokens.
    pub fn new(station: u32, tokens: Tokens) -> Merges {
        Merges { station, tokens, made: 0, lists: Vec::new() }
    }

    /// Counts a frame that the station made from this, and returns its token.
    pub fn made(&mut self, record: bool, from: FrameOrigin) -> u64 {
        let token = self.tokens.token(self.station, self.made);
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

    /// What a frame of this station was made from; `None` if it was not recorded, or if the station made more frames
    /// than the running number can tell apart.
    pub fn of(&self, token: u64) -> Option<&FrameOrigin> {
        debug_assert_eq!(self.tokens.station(token), self.station);
        if self.made > self.tokens.range() {
            return None;
        }
        self.lists.get(self.tokens.number(token) as usize)
    }

    /// How tokens of the system are divided.
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }
}

/// What a station did with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum FrameEvent {
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
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub struct LogEntry {
    /// When.
    pub cycle: Cycle,
    /// What.
    pub what: FrameEvent,
    /// Token of the frame.
    pub token: u64,
    /// The frame.
    pub frame: Frame,
}

/// The log of one station.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub struct Log {
    entries: Vec<LogEntry>,
}

impl Log {
    /// Adds an entry.
    pub fn push(&mut self, cycle: Cycle, what: FrameEvent, token: u64, frame: &Frame) {
        self.entries.push(LogEntry { cycle, what, token, frame: *frame });
    }

    /// All entries, in the order of time.
    pub fn entries(&self) -> &[LogEntry] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_name_every_station_and_none_is_the_token_of_nobody() {
        for stations in [1, 2, 7, 8, 1000, 1 << 17, (1 << 18) - 1] {
            let tokens = Tokens::new(stations);
            for number in [0, 5, tokens.range() - 1] {
                let token = tokens.token(stations as u32 - 1, number);
                assert!(token < NO_TOKEN, "{stations}");
                assert_eq!((tokens.station(token) as usize, tokens.number(token)), (stations - 1, number));
            }
        }
        assert!(Tokens::new(7).range() > 1 << 32, "a small system never wraps");
    }

    #[test]
    fn a_number_that_names_two_frames_names_none() {
        let tokens = Tokens { number_bits: 2 };
        let mut merges = Merges::new(1, tokens);
        let first = merges.made(true, FrameOrigin::Nothing);
        (0..3).for_each(|_| _ = merges.made(true, FrameOrigin::From(Box::new([first]))));
        assert_eq!(merges.of(first), Some(&FrameOrigin::Nothing));
        assert_eq!(merges.made(true, FrameOrigin::Nothing), first);
        assert_eq!(merges.of(first), None);
    }
}
