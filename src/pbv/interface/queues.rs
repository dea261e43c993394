//! The queues of an engine: by which numbers congestion metrics and reports name them, and how large the output queue is.

/// Most point-to-point channels of a system with packet engines.
pub const MOST_CHANNELS: usize = 8;

/// Queues that are measured.
pub const QUEUES: usize = 2 * MOST_CHANNELS + 2;
/// Number of the queue of checked frames.
pub const INBOX: usize = 2 * MOST_CHANNELS;
/// Number of the output queue.
pub const OUTPUT: usize = INBOX + 1;

/// The least size of an engine's output queue in messages, for a number of contexts and of engines whose responses are
/// forwarded.
pub const fn messages_of(contexts: u64, handed_on: u64) -> u64 {
    16 + 4 * contexts + handed_on
}
