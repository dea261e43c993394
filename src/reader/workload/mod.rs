//! Traces of applications that end points run.

pub mod config;
pub mod network;

pub use watershed_language::workload as file;
