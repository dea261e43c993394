//! `[[host]]`: collectives that end points compute in software over point-to-point messages.
//!
//! | file | holds |
//! |------|-------|
//! | [`build`] | ranks at the end points |
//! | [`ideal`] | the same without contention: latencies of paths, message by message |
//! | [`result`] | times, counts and checks |
//! | [`volume`] | rounds, words and messages of each algorithm in closed form |
//!
//! The table and its checks are in the reader: [`file`](mod@file), [`config`].

pub mod build;
pub mod ideal;
pub mod result;
pub mod volume;

pub use watershed_reader::hosts::{config, file};
