//! Programs on the cores of a die: multicast instructions, queues, registers, interrupts, and collectives that are called.

#[path = "../collectives/support.rs"]
#[allow(dead_code)]
mod support;

#[path = "../campaign/mod.rs"]
#[allow(dead_code)]
mod campaign;

#[path = "../campaign/share.rs"]
mod share;

mod bad_programs_are_refused;
mod calls_are_bit_exact;
mod interrupts_run_their_handler;
mod multicasts_cross_nodes;
mod multicasts_take_the_cycles_of_their_path;
mod overlapping_trees_claim;
mod poll_and_wait_take_the_oldest;
mod ports_are_bounded;
mod registers_are_far;
mod stores_are_checked;
mod trees_are_written_between_calls;
mod vectors_move_word_by_word;
