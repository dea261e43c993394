//! Scenarios of the armed family: format, cross-field rules, building, running, checking, reporting.
//!
//! | file | holds |
//! |------|-------|
//! | [`file`](mod@file) | the `[armed]` table |
//! | `spec` | what sets the family apart before it runs |
//! | [`config`] | the same after checking: the input of `build` |
//! | [`build`] | trees, engines, end points |
//! | `trees` | multicast trees, as `embed` shows them |
//! | `faults` | links that misbehave or send again, dead end points |
//! | [`run`](mod@run) | the run |
//! | `report` | the outcome of the rounds of a reduction |
//! | `requested_rounds` | requested rounds, collected from rounds on the wire |
//! | [`golden`] | the golden check: who merged what in which order, walked by the oracle |
//! | [`result`] | results, as a document and as text |
//! | [`ladder`] | message ladders |

pub mod build;
pub mod config;
mod faults;
pub mod golden;
pub mod ladder;
mod report;
mod requested_rounds;
pub mod result;
pub mod run;
pub(crate) mod spec;
pub(crate) mod trees;

pub use watershed_language::file::armed as file;
