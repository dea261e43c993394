//! Programs of cores, multicast trees, collectives that programs call.

pub mod config;

pub use watershed_language::programs as file;
