//! Runs of the PIUMA family and of the plain fabric: collectives over configuration registers, programs, hosts in software,
//! traffic.
//!
//! | file | holds |
//! |------|-------|
//! | `claims` | the pulses by which trees that overlap take turns |
//! | [`overlaps`] | which trees those are |
//! | [`ground`] | what embeddings stand on |
//! | [`run`] | who may start when, and when all is done |
//! | [`results`] | results of collectives, critical paths, checks |

mod claims;
pub(crate) mod ground;
pub mod overlaps;
pub(crate) mod results;
pub(crate) mod run;
