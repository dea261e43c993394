//! watershed: a cycle-level, bit-exact hardware model of collectives computed inside the network.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod arith;
pub mod cli;
pub mod fabric;
pub mod kernel;
pub mod oracle;
pub mod piuma;
pub mod probe;
pub mod scenario;
