//! Does a waveform show what the registers held? Files are read back with an independent reader (`wellen`).

mod player;
mod stage_reference;
mod support;

#[path = "../bench/probe.rs"]
mod bench;
#[path = "../campaign/share.rs"]
mod share;

mod ascii_waves;
mod blocks_are_recorded;
mod counters_are_those_of_waves;
mod cut_off_waves_are_read;
mod flits_show_all_their_words;
mod foreign_waves_are_read;
mod fst_reads_back;
mod gtkwave_shows_names;
mod selection_prunes;
mod sizes_are_estimated;
mod stage_registers_are_clocked;
mod surfer_finds_its_files;
mod triggers_capture;
mod vcd_reads_back;
mod vectors_are_registers;
mod viewers_open_on_the_event;
mod waves_differ;
mod waves_end_with_the_run;
mod writer_fails;

/// Figures for people; `cargo test --profile dist --test probe -- --ignored --nocapture tracing_cost`.
#[test]
#[ignore = "a measurement; it means something in an optimised build only"]
fn tracing_cost() {
    let nanoseconds = |(count, seconds): (u64, f64)| seconds * 1e9 / count as f64;
    println!("{:.1} ns a change", nanoseconds(bench::bench_changes(5_000_000, None)));
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    println!("{:.1} ns a change into a file", nanoseconds(bench::bench_changes(5_000_000, Some(file.path()))));
    println!("{:.1} ns a signal that stays", nanoseconds(bench::bench_unchanged(50_000_000)));
}
