//! Validation: what is checked, and how to check it oneself.
//!
//! Every run checks itself. The oracle, which shares no code with the datapath, walks the same tree in the same order and compares all
//! bits and flags, and that each contribution entered exactly once; monitors watch credits and order on every link. Flip a bit
//! and see it found:
//!
//! ```sh
//! target/release/watershed run allreduce-die --flip sw4:0:17:0x1   # ends with status 1
//! ```
//!
//! Before cycle 0, `check` proves on the routing function itself that packets arrive and no channels wait for each other in a circle:
//!
//! ```sh
//! target/release/watershed check torus-uniform
//! ```
//!
//! The arithmetic is compared with oracles over every operation, format and rounding mode: `watershed exhaustive --table` prints how
//! many vectors there were and how many mismatches.
//!
//! Nothing depends on the order in which blocks are evaluated, nor on skipping idle ones:
//!
//! ```sh
//! target/release/watershed run allreduce-die --order-seed 7 --no-skip
//! ```
//!
//! The tables of the source documents come out of named studies: `watershed study pbv-table1` prints the source's values beside ours.
//!
//! `make test` runs all tests, `make soak` the long campaigns, and `testbench/testplan.toml` says requirement by requirement which test shows it and
//! what is missing.
