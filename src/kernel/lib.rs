//! The clocked kernel: time, registered channels, clocked storage, wake-driven scheduling, and the watchdog's report of
//! a deadlock.
//!
//! ```text
//!            cycle t                                   cycle t + 1
//!   ┌─────────────────────────────┐ edge  ┌─────────────────────────────┐
//!   │ commit │ sample │   tick    │──────▶│ commit │ sample │   tick    │
//!   └─────────────────────────────┘       └─────────────────────────────┘
//!     what the   waves     each awake block reads its own registers and sends;
//!     channels   read      what it sends in t over a channel of latency L is
//!     brought    registers committed at the start of t + L + 1
//! ```
//!
//! A block reads only its own registers and sends only into channels whose latency is at least one cycle (requirement
//! K-CLK-1), so the order in which blocks are evaluated within a cycle cannot matter. An idle block costs nothing
//! (K-CLK-2): [`WakeSet`] names the blocks that are evaluated in a cycle, and cycles in which no block is awake and
//! nothing arrives are skipped.
//!
//! | file | what |
//! |---|---|
//! | [`wheel`](self::Wheel) | registered channels: everything in flight, by the cycle it arrives |
//! | [`wake`](self::WakeSet) | wake-driven scheduling: a two-level bit set, and alarms for far cycles |
//! | [`storage`](self::Fifo) | clocked storage with staged writes |
//! | [`inline_vec`](self::InlineVec) | lists and queues whose first entries are stored in their owner |
//! | [`rng`](self::Rng) | seeded random numbers by integer methods only (K-DET-1) |
//! | [`digest`](self::Digest) | the state that decides what a block does next, as a hash |
//! | [`workers`](self::WorkerPool) | threads that stay, for the parts of a divided system |
//! | `prefetch` | prefetching of the registers that are read next |
//! | [`waits`](self::WaitFor) | the wait-for graph of the watchdog (K-WD-1) |

mod digest;
mod inline_vec;
pub mod prefetch;
mod rng;
mod storage;
mod waits;
mod wake;
mod wheel;
mod workers;

pub use digest::Digest;
pub use inline_vec::{InlineQueue, InlineVec, OneOrMore, QueueHead};
pub use rng::Rng;
pub use storage::Fifo;
pub use waits::{Autopsy, WaitFor};
pub use wake::{Alarms, Wake, WakeSet};
pub use wheel::Wheel;
pub use workers::{OffloadControl, WorkerPool};

/// A point in simulated time, in cycles of the one clock. Cycle 0 is the first. Nanoseconds live above the model: a
/// scenario's times are converted once (rounded up, reported), and waves are stamped by exact fractions (K-TIME-1).
pub type Cycle = u64;
