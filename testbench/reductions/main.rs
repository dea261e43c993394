//! The armed family: engines on their own, trees of them, and what faults and strangers do to them.

mod agent_builds_trees;
#[path = "../campaign/mod.rs"]
mod campaign;
mod composed_operations;
mod engine_keeps_its_table;
mod every_interleaving_is_searched;
mod every_node_may_hold_what_it_holds;
mod every_round_ends_or_is_named;
mod faults_are_never_silent;
mod forged_frames_are_refused;
mod frames_follow_each_other;
mod frames_on_the_command_line;
mod links_send_again;
mod long_runs;
mod order_of_evaluation_changes_nothing;
#[path = "../search/mod.rs"]
mod search;
#[path = "../campaign/share.rs"]
mod share;
mod standing_reductions_are_found;
mod strangers_change_nothing;
mod strangers_on_the_agents_channel;
mod support;
mod trees_made_at_run_time;
mod widths_cost_time;
mod worked_examples;
