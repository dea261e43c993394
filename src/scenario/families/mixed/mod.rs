//! Scenarios with the engines of several families in one network.
//!
//! | file | holds |
//! |---|---|
//! | `build` | the system with all of them, and what runs on it |
//!
//! Whose channels are whose is in the reader: [`channels`], [`spec`].

pub(crate) mod build;

pub(crate) use watershed_reader::families::mixed::{channels, spec};
