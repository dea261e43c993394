//! What sets a family apart before it runs.
//!
//! A family says here which keys of the language it lacks, what travels on its channels, how long the headers beside its flits are,
//! and what golden files hold of it.

use crate::config::{Link, Scenario};
use crate::workload::file::Engine;

/// Bits that say which flit of a packet this is, and its channel: head, tail, channel (5).
const CONTROL_BITS: u64 = 7;

/// Side-band bits that travel and are stored with a flit where it has no header: those of control, flags (5), collective id (12).
pub(crate) const SIDE_BAND_BITS: u64 = CONTROL_BITS + 5 + 12;

/// The same where every collective flit has a header.
pub(crate) const HEADER_FLIT_BITS: u64 = CONTROL_BITS + Link::HEADER_BITS as u64;

/// A family, before it runs.
pub trait FamilySpec: Sync {
    /// The keys it lacks.
    fn lacks(&self) -> Lacks;

    /// What travels on each virtual channel, in the order of their numbers.
    fn channels(&self, scenario: &Scenario) -> Vec<ChannelKind>;

    /// Bits that are stored beside the word of a flit.
    fn header_bits(&self, _scenario: &Scenario) -> u64 {
        SIDE_BAND_BITS
    }

    /// The engine on which it does collectives of a workload, if it has one of its own.
    fn engine(&self) -> Option<Engine> {
        None
    }

    /// What golden files hold of it unless a scenario says otherwise.
    fn watched(&self, scenario: &Scenario) -> Watched;
}

/// A list of channels from how many there are of each kind.
pub fn channels(of: &[(ChannelKind, u8)]) -> Vec<ChannelKind> {
    of.iter().flat_map(|&(kind, count)| std::iter::repeat_n(kind, count.into())).collect()
}

/// Keys that mean nothing in a family.
pub struct Lacks {
    /// The keys.
    pub keys: &'static [&'static str],
    /// Where they mean nothing: "in the armed family".
    pub place: &'static str,
    /// What to use instead.
    pub help: &'static str,
}

/// What travels on a virtual channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// Operands and results of PIUMA's collectives.
    Collective,
    /// Reduction frames.
    Frames,
    /// Frames of the PBV family.
    Packets,
    /// Messages and traffic.
    PointToPoint,
}

impl ChannelKind {
    /// Whether what travels on it leaves by sets of outputs.
    pub const fn is_set(self) -> bool {
        matches!(self, Self::Collective | Self::Frames)
    }
}

/// Globs and cycles of the golden wave, and of the picture.
pub struct Watched {
    /// Globs of the wave.
    pub signals: &'static [&'static str],
    /// First and last cycle of the wave.
    pub cycles: (u64, u64),
    /// Globs of the picture.
    pub picture: &'static [&'static str],
    /// First and last cycle of the picture.
    pub picture_cycles: (u64, u64),
}
