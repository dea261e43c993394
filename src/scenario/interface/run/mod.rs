//! How a run is asked for, and what it leaves behind.
//!
//! | file | holds |
//! |---|---|
//! | `options` | how to run, and why there may be no result |
//! | `outcome` | what a run leaves behind |
//! | [`jobs`] | the outcome of every job under the same names |
//! | `result_hash` | results as a hash, where the document does not hold their words |

pub mod jobs;
pub mod options;
pub mod outcome;
mod result_hash;

pub use options::{
    Control, Flip, NetworkContents, Progress, RunError, RunOptions, TriggerOptions, WaveOptions, is_watched,
    notify_watcher, sides_of, watch,
};
pub use outcome::{RunResult, Sample};
