//! `[[host]]`: collectives that end points compute in software over point-to-point messages.
//!
//! | file | holds |
//! |------|-------|
//! | [`file`](mod@file) | the table as it is written |
//! | [`config`] | the same after checking |
//! | [`build`] | ranks at the end points |
//! | [`ideal`] | the same without contention: latencies of paths, message by message |
//! | [`result`] | times, counts and checks |
//! | [`volume`] | rounds, words and messages of each algorithm in closed form |

pub mod build;
pub mod config;
pub mod ideal;
pub mod result;
pub mod volume;

pub use watershed_language::hosts as file;
