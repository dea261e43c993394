//! Scenarios with the engines of several families in one network.
//!
//! | file | holds |
//! |---|---|
//! | `channels` | whose channels are whose |
//! | `build` | the system with all of them, and what runs on it |
//! | `spec` | what sets it apart before it runs |

pub(crate) mod build;
pub(crate) mod channels;
pub(crate) mod spec;
