//! Scenarios of the PBV family: format, cross-field rules, building, running, checking, reporting.
//!
//! | file | holds |
//! |------|-------|
//! | [`build`] | device IDs, trees of engines, frames that set them up, nodes |
//! | `trees` | trees of engines, as `embed` shows them |
//! | `faults` | links that misbehave |
//! | `mailbox_reports` | results of congestion metrics and reports |
//! | [`run`](mod@run) | the run |
//! | `report` | the outcome of the runs of a collective |
//! | [`golden`] | the golden check: who entered where in which order, walked by the oracle |
//! | [`stranger_frames`] | frames of strangers |
//! | [`result`] | results, as a document and as text |
//! | [`ladder`] | message ladders |
//!
//! The table and its checks are in the reader: [`file`](mod@file), [`config`], [`context_share`], [`congestion`]; [`spec`] says what sets
//! the family apart.

pub mod build;
mod faults;
pub mod golden;
pub mod ladder;
mod mailbox_reports;
mod report;
pub mod run;
pub mod stranger_frames;
pub(crate) mod trees;

pub use watershed_reader::families::pbv::{config, congestion, context_share, file, spec};
pub use watershed_scenario_interface::pbv_result as result;
