//! Networks of several families before they run.
//!
//! | file | holds |
//! |------|-------|
//! | [`channels`] | whose channels are whose |
//! | [`spec`] | what sets them apart |

pub mod channels;
pub mod spec;
