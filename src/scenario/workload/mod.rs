//! `[workload]`: traces of applications on the end points of a scenario (requirements X-WORK-1 to X-WORK-3).
//!
//! | file | holds |
//! |---|---|
//! | [`build`] | from the trace to the plan of each end point |
//! | [`volume`] | words of each round of an algorithm, in closed form |
//! | [`result`] | times of ranks, counts |
//! | [`report`] | the results of a run, and the checks of bits and volumes |
//! | [`path`] | the critical path through ranks and messages |
//! | [`perfetto`] | the timeline of ranks, for Perfetto |
//!
//! The table and its checks are in the reader: [`file`](mod@file), [`config`] with the trace, [`network`] with jobs of engines
//! for its collectives.

pub mod build;
pub mod path;
pub mod report;
pub mod volume;

pub use watershed_reader::workload::{config, file, network};
pub use watershed_scenario_interface::{perfetto, workload_result as result};
