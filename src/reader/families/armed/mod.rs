//! The armed family before it runs.
//!
//! | file | holds |
//! |------|-------|
//! | [`file`](mod@file) | the `[armed]` table |
//! | [`config`] | the same after checking: what a system is built from |
//! | [`spec`] | what sets the family apart |

pub mod config;
pub mod spec;

pub use watershed_language::file::armed as file;
