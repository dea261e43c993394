//! What is known of the PBV family without its engines: who reads a scenario, or decodes a frame, needs no more.
//!
//! | file | what |
//! |---|---|
//! | [`packet`] | frames, bit by bit |
//! | [`queues`] | the queues of an engine that congestion metrics and reports speak of; the least size of its output queue |

pub mod packet;
pub mod queues;
