//! Scenarios with programs: `[core]`, `[[multicast]]` and `[[program]]`, and collectives that programs call.
//!
//! | file | holds |
//! |------|-------|
//! | [`build`] | register values of multicast trees, processors at the end points |
//! | [`circular_wait`] | calls that wait for each other in a cycle, and never end |
//! | `tree_writes` | trees that the text of a program may write |
//! | [`result`] | what programs reported, and the check of every call |
//!
//! The tables and their checks are in the reader: [`file`](mod@file), [`config`], where program texts are assembled.

pub mod build;
pub mod circular_wait;
pub mod result;
pub mod rules;
mod tree_writes;

pub use watershed_reader::programs::{config, file};
