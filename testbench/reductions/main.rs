//! The armed family: engines on their own, trees of them, and what faults and strangers do to them.

mod agent_builds_trees;
mod engine_keeps_its_table;
mod faults_are_never_silent;
mod frames_on_the_command_line;
mod long_runs;
mod standing_reductions_are_found;
mod strangers_change_nothing;
mod support;
mod worked_examples;
