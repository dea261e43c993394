//! The command line and the scenario format, from outside: what the user types, reads and gets.

#[path = "../campaign/share.rs"]
mod share;

mod bad_scenarios_are_explained;
mod command_line_serves_people_and_scripts;
mod commands_name_the_program;
mod costs_come_from_synthesis;
mod curves_are_drawn;
mod data_comes_from_every_source;
mod document_keeps_its_shape;
mod embeddings_are_shown;
#[cfg(unix)]
mod engines_are_compared;
mod failures_are_cut_down;
mod files_have_one_writer;
#[cfg(unix)]
mod full_disks_lose_no_results;
mod hardware_is_counted;
mod help_fits_the_terminal;
mod hints_lead_on;
mod input_never_panics;
mod inputs_are_not_written_over;
mod jobs_are_compared;
mod jobs_are_written_once;
mod jobs_have_one_time;
mod knobs_act_or_are_refused;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod large_systems_touch_few_pages;
mod latency_is_told;
mod long_runs_can_be_stopped;
mod numbers_are_held_side_by_side;
mod one_word_changes_the_engine;
mod overrides_reach_every_value;
#[cfg(unix)]
mod progress_is_shown;
mod ranks_are_shown_over_time;
mod reports_are_clicked_through;
mod reports_are_readable;
mod results_are_hashed;
mod results_are_replayed;
mod results_are_stamped;
mod scenarios_are_held_against_goldens;
mod scenarios_are_written_out;
mod scenarios_extend_others;
mod schema_describes_scenarios;
mod shipped_scenarios_are_sound;
mod signals_are_named;
mod studies_compare_at_many_lengths;
mod support;
mod sweeps_are_checked_first;
mod sweeps_are_exported;
#[cfg(unix)]
mod sweeps_are_shared;
mod sweeps_name_their_best;
mod sweeps_survive;
mod terms_are_explained;
mod topologies_are_shown;
mod traces_are_inspected;
mod training_is_written;
mod trees_are_shown;
mod usage_and_exit_statuses;
mod waves_are_compared_and_shown;
mod waves_are_pointed_at;
mod webdriver;
mod words_are_read;
mod wrong_files_are_named;
