//! Collectives on PIUMA systems: the right bits, in the right cycle, whatever else goes on. Times are checked against
//! arithmetic from first principles ([`first_principles`]), never against another run of the model alone.

mod a_flipped_bit_is_found;
mod any_graph_reduces;
mod background_traffic_costs_no_cycle;
mod claims_are_searched;
mod completion_counts_landed_elements;
mod evaluation_order_changes_nothing;
mod every_engine_on_every_network;
mod every_operation_on_every_type_is_exact;
mod first_principles;
mod jobs_end_when_they_are_done;
mod ladders_show_who_sent_what;
mod latency_is_explained;
mod latency_is_the_sum_of_its_parts;
mod latency_of_rounds_is_explained;
mod legality_holds_under_mutation;
mod links_are_narrow;
mod nodes_have_subnodes;
mod nodes_reduce_as_the_paper_says;
mod nothing_is_lost_under_back_pressure;
mod order_of_arrival_changes_no_bit;
mod overlapping_embeddings_take_turns;
mod ranks_change_nothing;
mod registers_are_all_there_is;
mod runs_go_on_from_checkpoints;
mod scans_are_serial_scans;
mod segments_use_more_links;
mod several_engines_in_one_network;
#[path = "../campaign/share.rs"]
mod share;
mod spans_change_nothing;
mod stalls_have_one_cycle;
mod streams_at_the_rate_of_the_narrowest_part;
mod support;
mod threads_change_nothing;
mod traffic_beside_engines;
mod waves_agree_with_the_arithmetic;
mod what_stands_is_named;
mod wider_accumulation_rounds_once;
mod widths_cost_time;
mod windows_change_nothing;
mod wrong_registers_are_refused;
