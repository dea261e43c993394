//! The PBV family: frames, stores, engines in systems, and the examples of its source.

#[path = "../campaign/mod.rs"]
mod campaign;
mod classes_go_first;
mod contexts_share_an_engine;
mod controls_go_down;
mod engines_report_of_themselves;
mod engines_say_how_full_they_were;
mod every_interleaving_is_searched;
mod examples_of_the_source;
mod faults_are_never_silent;
mod frames_keep_every_bit;
mod groups_wait_for_each_other;
mod links_send_again;
mod means_are_divided_once;
mod memories_have_ports;
mod messages_follow_each_other;
mod messages_have_senders;
mod other_contexts_are_untouched;
mod packets_on_the_command_line;
#[path = "../probe/player.rs"]
mod player;
mod reductions_are_exact;
mod refusals_disturb_nobody;
mod responses_are_handed_on;
mod rounds_are_told_as_they_were;
mod routes_wait_for_the_address;
mod runs_are_recomputed_from_nodes_words;
#[path = "../search/mod.rs"]
mod search;
#[path = "../campaign/share.rs"]
mod share;
mod side_ports_take_their_time;
mod some_frames_go_to_switches_only;
mod sources_merge_themselves;
mod standing_collectives_are_found;
mod strangers_change_nothing;
mod support;
mod table_1_of_the_source;
mod time_outs_are_as_many_as_allowed;
mod time_outs_fill_no_queue;
mod tracking_loses_no_update;
mod tracking_stands_in_waves;
mod widths_cost_time;
