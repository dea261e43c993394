//! Traces of applications on the end points of a scenario (X-WORK-1 to X-WORK-3, X-WORK-5).

#[path = "../campaign/share.rs"]
mod share;

mod broken_traces_are_named;
mod collectives_cost_what_the_algorithm_says;
mod engines_of_every_family_serve_ranks;
mod iterations_follow_from_their_all_reduces;
mod keys_act_or_are_refused;
mod large_traces_run;
mod messages_follow_the_closed_form;
mod paths_follow_dependencies;
mod ranks_say_where_their_time_went;
mod receives_of_anything_take_what_comes;
mod support;
mod wrong_workloads_are_refused;
