//! The PIUMA family and the plain fabric before they run.
//!
//! | file | holds |
//! |------|-------|
//! | [`spec`] | what sets them apart |

pub mod spec;
