//! Formulas of the cost of hardware, and the technology tables with their coefficients.
//!
//! | file | holds |
//! |------|-------|
//! | [`model`] | gates, flip-flops and periods of a block from its parameters |
//! | [`technology`] | what a gate, a flip-flop, a bit of memory take, and how long |

pub mod model;
pub mod technology;
