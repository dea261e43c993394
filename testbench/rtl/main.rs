//! The RTL twin against the model: do the SystemVerilog modules of `src/rtl` show, under Verilator, what the model shows, in every
//! cycle and in every register?
//!
//! | file | what |
//! |---|---|
//! | [`verilator`] | finds Verilator, builds a simulator of a module, runs it as a process |
//! | [`bench`] | a module with its inputs and what is looked at; stimulus and expectation cycle by cycle; the first difference, as a wave |
//! | [`registers`] | stage registers: what the model calls them, and where the RTL has them |
//! | [`links`] | what a running system does at the ports of a node |
//! | [`puppet`], [`pbv_puppet`] | an end point at both ends of an engine in the wire, which sends and takes at random |
//! | the others | tests, a file a module |
//!
//! Without Verilator the tests say so and pass. `WATERSHED_SEED` sets another seed of random stimuli;
//! `WATERSHED_ONLY=name,name` compares the switches of these shipped scenarios only (`make soak` compares those of all).

#[path = "../campaign/share.rs"]
mod share;

mod arith;
mod armed;
mod bench;
mod ceng;
mod faults;
mod fit;
mod links;
mod lint;
mod pbv_bench;
mod pbv_ce;
mod pbv_engines;
mod pbv_frame_bench;
mod pbv_frames;
mod pbv_links;
mod pbv_puppet;
mod pbv_registers;
#[allow(dead_code, reason = "waveforms are played for other tests too")]
#[path = "../probe/player.rs"]
mod player;
mod puppet;
mod quad;
mod random;
mod registers;
mod scenarios;
mod switch;
mod synth;
mod timing;
mod tracker;
mod tree;
mod unicast;
mod verilator;
mod watched;
