//! Scenarios of the armed family: format, cross-field rules, building, running, checking, reporting.
//!
//! | file | holds |
//! |------|-------|
//! | [`build`] | trees, engines, end points |
//! | `trees` | multicast trees, as `embed` shows them |
//! | `faults` | links that misbehave or send again, dead end points |
//! | [`run`](mod@run) | the run |
//! | `report` | the outcome of the rounds of a reduction |
//! | `requested_rounds` | requested rounds, collected from rounds on the wire |
//! | [`golden`] | the golden check: who merged what in which order, walked by the oracle |
//! | [`result`] | results, as a document and as text |
//! | [`ladder`] | message ladders |
//!
//! The table and its checks are in the reader: [`file`](mod@file), [`config`]; [`spec`] says what sets the family apart.

pub mod build;
mod faults;
pub mod golden;
pub mod ladder;
mod report;
mod requested_rounds;
pub mod run;
pub(crate) mod trees;

pub use watershed_reader::families::armed::{config, file, spec};
pub use watershed_scenario_interface::armed_result as result;
