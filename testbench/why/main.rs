//! `why` against the registers: what each cycle of a latency was spent with, by code that shares nothing with it.
//!
//! A scenario is run once, with its waveform and its account. Then every cycle of every step of the account is compared with
//! what the registers in the waveform show; the definitions stand at the heads of the modules, and in the documentation of
//! `why` in the words of users.

mod blocks;
mod causes;
mod fabric;
mod head_waits;
mod network;
mod piuma;
mod registers;
mod scenarios;
#[path = "../campaign/share.rs"]
mod share;
mod steps;
