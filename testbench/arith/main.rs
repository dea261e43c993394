//! The arithmetic against its oracles: values and flags, every format, every mode, every pipeline depth.
//!
//! Random tests print their seed in the message of a failure; `WATERSHED_SEED` sets another one.

mod cli;
mod fast_oracle;
mod frames;
mod integers;
mod mutation;
mod orders;
mod pairs;
mod pipeline;
mod properties;
mod quotients;
mod reproducible;
#[path = "../campaign/share.rs"]
mod share;
mod special_values;
mod tree;
mod vectors;
mod wider;
