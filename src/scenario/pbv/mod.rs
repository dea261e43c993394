//! Scenarios of the PBV family: format, cross-field rules, building, running, checking, reporting.
//!
//! | file | holds |
//! |------|-------|
//! | [`file`](mod@file) | the `[pbv]` table |
//! | [`config`] | the same after checking: what a system is built from |
//! | `rules` | what makes no sense whatever the network is |
//! | [`context_share`] | rounds that are spread over several contexts |
//! | [`build`] | device IDs, trees of engines, frames that set them up, nodes |
//! | `faults` | links that misbehave |
//! | [`congestion`] | congestion metrics that were asked for |
//! | `mail` | what congestion metrics and reports came to |
//! | [`run`](mod@run) | the run |
//! | `report` | what the runs of a collective came to |
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
pub mod stranger_frames;

pub use watershed_language::pbv as file;
