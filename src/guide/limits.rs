//! Limits: what the model does not say.
//!
//! - Times are those of the model's clock and of the latencies that a scenario gives. No silicon was measured; gate equivalents are
//!   a documented estimate to compare configurations with (`watershed cost`).
//! - A link carries a flit in a cycle, or in as many cycles as `cycles_per_flit` says; electrical effects, retiming and link training
//!   are in its latency. Bit errors happen where a scenario has faults, and nowhere else.
//! - A core is its memory port and what collectives and small programs ask of it: no caches, no virtual memory.
//! - A run has one thread unless `--threads` asks for more. A system whose end points are not numbered in the order of their
//!   switches (flows attach some to free ports) stays on one, and the run says so. `sweep` and `curve` run many at a time.
//! - A prefix scan needs ranks that are neighbours wherever their paths meet.
//! - `why` follows one path, the critical one. What would have been critical next without it is not told: set the value and run
//!   again.
//! - Waves show registers after the clock edge; combinational signals within a cycle have no waveform.
//!
//! How big a scenario may be is in [`scenario::limits`](crate::scenario::limits); every block's page ends with limitations of its own.
//!
//! ```sh
//! target/release/watershed cost allreduce-die
//! ```
