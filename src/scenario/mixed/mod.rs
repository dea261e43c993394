//! Scenarios with the engines of several families in one network.
//!
//! | file | holds |
//! |---|---|
//! | `channels` | whose channels are whose |
//! | `build` | the system with all of them, and what runs on it |

pub(super) mod build;
pub(super) mod channels;
