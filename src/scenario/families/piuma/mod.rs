//! Runs of the PIUMA family and of the plain fabric: collectives over configuration registers, programs, hosts in software,
//! traffic.
//!
//! | file | holds |
//! |------|-------|
//! | [`driver`] | a run step by step, for tests |
//! | `claims` | the pulses by which trees that overlap take turns |
//! | [`overlaps`] | which trees those are |
//! | [`embedding_graph`] | the graph under the embeddings: routes, neighbours, searched ways |
//! | [`run`] | starts of collectives, and the end of the run |
//! | [`results`] | results of collectives, critical paths, checks |
//!
//! What sets them apart before they run is in the reader: [`spec`].

mod claims;
pub(crate) mod driver;
pub(crate) mod embedding_graph;
pub mod overlaps;
pub(crate) mod results;
pub(crate) mod run;

pub(crate) use watershed_reader::families::piuma::spec;
