//! Where the cycles of a collective's latency went.
//!
//! The latency of a collective is explained from its end to its start, along the critical path. The path begins with
//! the last word or answer that arrived, the queues it waited in and the links it crossed. It goes on with the engine
//! that made it and the last operand of that engine, and so on to the participant of that contribution. Each interval
//! between two events of the [journal](watershed_fabric::Journal) and of the blocks' logs is cut into [`Part`]s; they
//! follow each other without a gap, so their sum is exactly the latency.
//!
//! | family | what is explained | number | from | to |
//! |---|---|---|---|---|
//! | PIUMA ([`piuma`]) | a word of a collective or scan | word of the vector | the collective's start, or the first call of a program, or its first store to a register of the id since the call before | the word landed, the last participant was done |
//! | armed ([`armed`]) | a round | data round | the root armed it | the last participant had the result |
//! | PBV ([`pbv`]) | a round | run, from 1 | the source sent the command | the last participant had the answer |
//! | software on the PIUMA fabric ([`hosts`]) | the rounds of the rank that was done last, and of its partners | that rank | the host's start | its last rank was done |
//! | a workload ([`workload`]) | the rank that ended last, and those it waited for | that rank | cycle 0 | its last operation was over |
//! | any with traffic ([`packet`]) | a point-to-point packet | `SOURCE:NUMBER`, or the place in the order of arrival | it was created | its tail arrived |
//!
//! The latencies in results of the armed and PBV families begin later, with the last contribution. [`Why`] has that
//! cycle, no part crosses it, and the parts after it add up to that latency.
//!
#![doc = include_str!("../../glossary/kinds.md")]

pub mod armed;
pub(super) mod hops;
pub mod hosts;
mod index;
pub mod packet;
mod path;
pub mod pbv;
pub mod piuma;
mod ports;
pub mod workload;

use path::Path;
pub use watershed_scenario_interface::why::{Kind, LastOperand, Part, Phase, Why, WhyQuery};
