//! Scenarios of the PBV family: format, cross-field rules, building, running, checking, reporting.
//!
//! | file | holds |
//! |------|-------|
//! | [`file`](mod@file) | the `[pbv]` table |
//! | `spec` | what sets the family apart before it runs |
//! | [`config`] | the same after checking: what a system is built from |
//! | `rules` | rules that hold on every network |
//! | [`context_share`] | rounds that are spread over several contexts |
//! | [`build`] | device IDs, trees of engines, frames that set them up, nodes |
//! | `trees` | trees of engines, as `embed` shows them |
//! | `faults` | links that misbehave |
//! | [`congestion`] | congestion metrics that were asked for |
//! | `mailbox_reports` | results of congestion metrics and reports |
//! | [`run`](mod@run) | the run |
//! | `report` | the outcome of the runs of a collective |
//! | [`golden`] | the golden check: who entered where in which order, walked by the oracle |
//! | [`stranger_frames`] | frames of strangers |
//! | [`result`] | results, as a document and as text |
//! | [`ladder`] | message ladders |

pub mod build;
pub mod config;
pub mod congestion;
pub mod context_share;
mod faults;
pub mod golden;
pub mod ladder;
mod mailbox_reports;
mod report;
pub mod result;
mod rules;
pub mod run;
pub(crate) mod spec;
pub mod stranger_frames;
pub(crate) mod trees;

pub use watershed_language::file::pbv as file;
