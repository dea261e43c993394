//! The PBV family before it runs.
//!
//! | file | holds |
//! |------|-------|
//! | [`file`](mod@file) | the `[pbv]` table |
//! | [`config`] | the same after checking: what a system is built from |
//! | `rules` | rules that hold on every network |
//! | [`context_share`] | rounds that are spread over several contexts |
//! | [`congestion`] | congestion metrics that were asked for |
//! | [`spec`] | what sets the family apart |

pub mod config;
pub mod congestion;
pub mod context_share;
mod rules;
pub mod spec;

pub use watershed_language::file::pbv as file;
