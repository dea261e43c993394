//! Collectives in software, to compare with.

pub mod config;

pub use watershed_language::hosts as file;
