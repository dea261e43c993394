//! The plan of a rank: its operations, their dependencies, and the destinations of messages.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::super::JobKind;
use super::super::host::Job;

/// Words of a member's vector in a collective: number of the collective, member, words.
pub type Words = dyn Fn(u32, u32, u64) -> Vec<u64> + Send + Sync;

/// Where vectors come from.
#[derive(Clone)]
pub struct Data(pub Arc<Words>);

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Data")
    }
}

/// Everything that one rank is to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The operations.
    pub operations: Vec<Operation>,
    /// Of each operation: those that wait for it, as a range of `followers`.
    pub first: Vec<u32>,
    /// Those that wait for one: an operation, and whether its start is enough.
    pub followers: Vec<(u32, bool)>,
    /// Of each operation: for how many others it waits.
    pub waits: Vec<u32>,
    /// Streams.
    pub streams: u16,
    /// Messages to others, by channel.
    pub outgoing: Vec<Outgoing>,
    /// Messages from others, by channel: their numbers.
    pub incoming: Vec<Range<u32>>,
    /// Of each incoming channel: whether a receive of several channels takes messages of it.
    pub open: Vec<bool>,
    /// Incoming channels that a receive takes messages of, ascending.
    pub patterns: Vec<Vec<u32>>,
    /// Collectives in software.
    pub software: Vec<Software>,
    /// Collectives of an engine in the network, in the order in which they are called.
    pub calls: Vec<Call>,
    /// Cycles of software at the sender and at the receiver of each message.
    pub overhead: u64,
    /// A send is over when the message is handed over; else when its last word has left.
    pub buffered: bool,
    /// Words of a packet.
    pub packet_words: u64,
    /// Bits of a packet's number within its message.
    pub index_bits: u32,
    /// What the words of messages are made from.
    pub seed: u64,
    /// Where vectors come from.
    pub data: Data,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What it does.
    pub kind: Kind,
    /// What it occupies.
    pub stream: Option<u16>,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Takes this many cycles.
    Compute(u64),
    /// Sends this many words over an outgoing channel.
    Send {
        /// The channel.
        channel: u32,
        /// Words.
        words: u64,
    },
    /// Waits for the next message of an incoming channel.
    Receive {
        /// The channel.
        channel: u32,
    },
    /// Waits for the next message of whatever channel of a pattern one comes over first.
    ReceiveOpen {
        /// The pattern.
        pattern: u32,
    },
    /// A collective in software, by its index.
    Software(u32),
    /// A collective of an engine, by its index.
    Call(u32),
}

/// Messages to one end point with one tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The end point.
    pub end: u32,
    /// The rank there.
    pub rank: u32,
    /// What the receiver calls the first of them; the others follow.
    pub first: u32,
}

/// A collective in software as one rank sees it.
#[derive(Clone, Debug)]
pub struct Software {
    /// What all members know.
    pub job: Arc<Job>,
    /// The number of the rank within the collective.
    pub member: u32,
    /// The number of the collective.
    pub collective: u32,
    /// The operation.
    pub operation: u32,
}

impl Software {
    /// The first of the numbers that messages to this rank have.
    pub fn first(&self) -> u32 {
        self.job.numbers.as_ref().map_or(0, |numbers| numbers.first[self.member as usize])
    }
}

/// A collective of an engine as one rank sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Call {
    /// The engine that computes it.
    pub engine: Engine,
    /// Calls of one line wait for each other. All ranks that make the calls of a line make them in one order.
    pub line: u16,
    /// Its number among the calls of its line.
    pub turn: u32,
    /// What the rank does.
    pub kind: JobKind,
    /// Words of the vector.
    pub words: u64,
    /// The number of the collective.
    pub collective: u32,
    /// The number of the rank within it.
    pub member: u32,
}

/// The engine of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum Engine {
    /// The switches' own.
    Core {
        /// The collective id by which the core reaches them.
        id: u16,
        /// Its tree overlaps others: calls [claim](crate::claim) before they start.
        claims: bool,
    },
    /// One that other blocks of the end point talk to: they take the call and answer it.
    Beside(Rounds),
}

/// Rounds of a job of an engine beside the core's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Rounds {
    /// Which engine: a number that those who take and answer calls agree on.
    pub engine: u8,
    /// Number of the job there.
    pub job: u16,
    /// Jobs that its rounds are spread over, from that one on.
    pub spread: u16,
    /// The first round.
    pub first: u32,
    /// How many rounds.
    pub count: u32,
}

/// The outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Record {
    /// When all that it waited for was there.
    pub ready: u64,
    /// When it had its stream.
    pub start: u64,
    /// When it was over; `u64::MAX` if it is not.
    pub end: u64,
    /// From when on it had something to do: of a receive the arrival of the first word, if that came after the start.
    pub busy: u64,
    /// The operation that let it start last; `u32::MAX` if none did.
    pub by: u32,
    /// Of a message: what the receiver calls it.
    pub number: u32,
}

impl Default for Record {
    fn default() -> Record {
        Record { ready: 0, start: u64::MAX, end: u64::MAX, busy: u64::MAX, by: u32::MAX, number: u32::MAX }
    }
}

/// The outcome of a collective at one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Outcome {
    /// The operation.
    pub operation: u32,
    /// A digest of the words of the result.
    pub digest: u64,
    /// Words sent and received as messages; 0 of an engine.
    pub words: [u64; 2],
    /// Exception flags that came with the result; 0 of software.
    pub flags: u8,
}

/// A digest of words.
pub fn digest(words: &[u64]) -> u64 {
    words.iter().fold(0x9e37_79b9_7f4a_7c15, |state, &word| {
        (state ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29).wrapping_add(0x1656_67b1)
    })
}

/// A word of a message: by the rank that receives it, its number there, and the word's place.
pub fn word(seed: u64, receiver: u32, number: u32, at: u64) -> u64 {
    let mut mixed = seed ^ (u64::from(receiver) << 32 | u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = mixed.wrapping_add(at.wrapping_mul(0xd1b5_4a32_d192_ed03));
    mixed = (mixed ^ mixed >> 31).wrapping_mul(0x7fb5_d329_728e_a185);
    mixed ^ mixed >> 29
}
