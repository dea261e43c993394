//! Blocks evaluated in any order, or all in every cycle, give the same result document and the same waveform bytes; so does
//! the same seed twice (K-CLK-1, K-CLK-2, K-DET-1).

use std::path::PathBuf;

use watershed::scenario::config::Wave;
use watershed::scenario::run::{RunOptions, WaveOptions};

use crate::sets;
use crate::share;
use crate::support::{BACKGROUND, FLAGSHIP, MESH, TWO_IDS, run_with};

struct Seen {
    document: String,
    wave: Vec<u8>,
}

fn see(text: &str, sets: &[String], order_seed: Option<u64>, no_skip: bool) -> Seen {
    let (seen, passed) = look(text, sets, order_seed, no_skip);
    assert!(passed, "{}", seen.document);
    seen
}

/// Runs whatever becomes of it.
fn end_anyhow(text: &str, sets: &[String], no_skip: bool) -> Seen {
    look(text, sets, None, no_skip).0
}

fn look(text: &str, sets: &[String], order_seed: Option<u64>, no_skip: bool) -> (Seen, bool) {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("wave.vcd");
    let wave = WaveOptions::of(path.clone(), Wave::default());
    let options = RunOptions { wave: Some(&wave), order_seed, no_skip, all_links: true, ..RunOptions::default() };
    let document = run_with(text, sets, &options).document;
    let seen = Seen { document: serde_json::to_string_pretty(&document).unwrap(), wave: std::fs::read(path).unwrap() };
    (seen, document.passed())
}

/// The seed of an order, and whether no idle cycle is skipped.
type Way = (Option<u64>, bool);

/// Orders, every cycle, both, and the same once more.
fn ways(orders: u64) -> Vec<Way> {
    (1..=orders).map(|seed| (Some(seed), false)).chain([(None, true), (Some(99), true), (None, false)]).collect()
}

/// Runs in order and in other ways; nothing may differ.
fn same(text: &str, sets: &[String], orders: u64) {
    same_in(ways(orders), text, sets);
}

/// In `make test` in one of three ways, beginning with another one in the next case.
fn same_in_turn(case: usize, text: &str, sets: &[String], orders: u64) {
    let mut ways = ways(orders);
    let first = case % ways.len();
    ways.rotate_left(first);
    same_in(share::one_in(3, ways), text, sets);
}

fn same_in(ways: impl IntoIterator<Item = Way>, text: &str, sets: &[String]) {
    let plain = see(text, sets, None, false);
    assert!(plain.wave.len() > 10_000, "there is a waveform");
    for (order, no_skip) in ways {
        let other = see(text, sets, order, no_skip);
        assert!(plain.document == other.document, "another document with order {order:?}, no_skip {no_skip}\n{sets:?}");
        assert!(plain.wave == other.wave, "another waveform with order {order:?}, no_skip {no_skip}\n{sets:?}");
    }
}

#[test]
fn on_the_die_at_every_pipeline_depth() {
    for pipeline in 1..=4 {
        same_in_turn(
            pipeline,
            FLAGSHIP,
            &sets!["collective[0].elements=24"; "switch.pipeline_stages={pipeline}"; "collective[0].delay_cycles={{ random_max = 50 }}"],
            3,
        );
    }
}

#[test]
fn on_a_mesh() {
    let set = sets!["topology.size=[3, 3]"; "collective[0].elements=21"; "switch.pipeline_stages=2"; "switch.collective_buffer_flits=2"];
    same(MESH, &set, 3);
}

#[test]
fn among_traffic_of_packets_of_every_length() {
    for (pipeline, packet, arbiter) in
        [(1, 1, "round-robin"), (2, 11, "matrix"), (3, 33, "fixed"), (4, 11, "round-robin")]
    {
        let set = sets!["collective[0].elements=12"; "collective[0].start_cycle=150"; "traffic[0].stop_cycle=300";
            "traffic[0].packet_flits={packet}"; "switch.pipeline_stages={pipeline}"; "switch.arbiter=\"{arbiter}\""];
        same_in_turn(pipeline, BACKGROUND, &set, 2);
    }
}

#[test]
fn with_two_ids_and_narrow_links() {
    same(TWO_IDS, &sets!["collective[0].elements=16"; "collective[1].elements=9"; "link.cycles_per_flit=2"], 2);
}

#[test]
fn the_same_seed_gives_the_same_and_another_seed_other_data() {
    let set = |seed: u64| sets!["collective[0].elements=8"; "seed={seed}"; "collective[0].start_cycle=100"; "traffic[0].stop_cycle=200"];
    let [a, b, c] = [7, 7, 8].map(|seed| see(BACKGROUND, &set(seed), None, false));
    assert!(a.document == b.document && a.wave == b.wave);
    assert!(a.document != c.document && a.wave != c.wave);
    let results = |seed| {
        crate::support::pass(FLAGSHIP, &sets!["collective[0].elements=8"; "seed={seed}"]).collectives[0].results.clone()
    };
    assert_ne!(results(7), results(8));
}

#[test]
fn skipping_idle_cycles_looks_at_few_of_them() {
    // A barrier whose participants come millions of cycles late visits no more cycles than one that starts at once.
    let text = crate::support::die("[[collective]]\nkind = \"barrier\"\n");
    let late = sets!["collective[0].start_cycle=4000000"; "collective[0].delay_cycles=[0, 5000000, 0, 0, 0, 0, 0, 0]"];
    let mut ready = crate::support::ready(&text, &late);
    let mut visited = 0;
    while ready.system.completions() < 8 {
        ready.system.step();
        visited += 1;
    }
    assert!(ready.system.now() > 9_000_000);
    assert!(visited < 500, "{visited} cycles were visited");
}

#[test]
fn runs_that_stand_or_are_cut_short_end_in_the_same_cycle_however_they_are_walked() {
    let dead = sets!["checks.claims=false"; "collective[0].elements=64"; "collective[1].elements=64"; "collective[1].start_cycle=0";
        "collective[0].delay_cycles=[0, 400, 0, 400, 0, 400, 0, 400]"; "collective[1].delay_cycles=[400, 0, 400, 0, 400, 0, 400, 0]"];
    let cut = sets!["limits.max_cycles=300"; "collective[0].delay_cycles=[0, 0, 0, 0, 0, 0, 0, 5000]"];
    for (text, set) in [(TWO_IDS, &dead), (TWO_IDS, &cut)] {
        let plain = run_with(text, set, &RunOptions { all_links: true, ..RunOptions::default() }).document;
        assert!(!plain.passed());
        let plain = serde_json::to_string_pretty(&plain).unwrap();
        let (skip, walk) = (end_anyhow(text, set, false), end_anyhow(text, set, true));
        assert_eq!(plain, skip.document);
        assert_eq!(plain, walk.document);
        assert!(skip.wave == walk.wave, "another waveform");
    }
}
