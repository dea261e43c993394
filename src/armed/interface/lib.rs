//! What is known of the armed family without its engines: who reads a scenario, or decodes a frame, needs no more.
//!
//! | file | what |
//! |---|---|
//! | [`header`] | reduction header, multicast address, sequence numbers |
//! | [`frame`] | the 84-byte frame, its check sum, its Ethernet form |
//! | `counts` | what the management agent did |
//! | [`composed`] | operations that end points compose of rounds: means, deterministic sums |

pub mod composed;
mod counts;
pub mod frame;
pub mod header;

pub use counts::ManagerCounts;

/// The channel on which frames climb.
pub const UP: u8 = 0;
/// The channel on which frames descend. It has priority over climbing ones.
pub const DOWN: u8 = 1;
/// Number of set-routed channels on which reductions travel.
pub const CHANNELS: u8 = 2;
/// The channel of the management agent, in systems that have one.
pub const MANAGE: u8 = CHANNELS;
