//! The fabric as the families use it: packets of 1, 11, 33 and 132 flits, multicasts, wide switches, both forms in which
//! an engine joins, credits, arbiters, point-to-point traffic, the watchdog and the kernel below. Every network here has
//! its link monitors on (K-FC-1); those who look on change nothing (`watchers_change_nothing`).
//!
//! Random tests print their seed in the message of a failure; `WATERSHED_SEED` sets another one.

mod arbiters_share;
mod classes_go_first;
mod credits_are_searched;
mod deadlock_is_named;
mod engine_behind_port;
mod engine_in_wire;
mod head_waits_are_counted;
mod idle_memory;
mod long_multicast;
mod order_of_evaluation;
mod packets_cross_whole;
mod point_to_point;
mod rate_follows_credits;
mod routed_networks;
mod router_knobs_move_cycles;
#[path = "../campaign/share.rs"]
mod share;
mod support;
mod traffic_is_what_it_says;
mod watchers_change_nothing;
mod wide_switches;
