//! Runs of the PIUMA family and of the plain fabric: collectives over configuration registers, programs, hosts in software,
//! traffic.
//!
//! | file | holds |
//! |------|-------|
//! | [`ground`] | what embeddings stand on |
//! | [`run`] | who may start when, and when all is done |
//! | [`traffic`] | traces that are fed, windows that are measured |
//! | [`results`] | results of collectives, critical paths, checks |

pub(crate) mod ground;
pub(crate) mod results;
pub(crate) mod run;
mod traffic;
