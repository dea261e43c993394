//! What is known of the PIUMA family without its engines: who reads a scenario, or assembles a program, needs no more.
//!
//! | file | what |
//! |---|---|
//! | [`channels`] | planes and their channels |
//! | [`program`] | the instruction set of threads and its text form |
//! | [`schedule`] | who sends what to whom in collectives of software |

pub mod channels;
pub mod program;
pub mod schedule;
