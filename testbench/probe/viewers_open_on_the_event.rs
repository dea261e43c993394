//! Viewer files open on some thirty signals around the first event of interest, for every family, VCD and FST.

use std::fs;
use std::path::Path;

use watershed::probe::wave_in::WaveFile;
use watershed::scenario::config::Wave;
use watershed::scenario::load_named;
use watershed::scenario::run::{RunOptions, WaveOptions, run};

use crate::share;

/// Scenario, what must be among the signals, the state of an engine or of who does the work without one; and which part of 3000 cycles is
/// recorded in `make test`: a tenth where the event comes early.
const FAMILIES: [(&str, &str, u64); 5] = [
    ("allreduce-die", "ceng.state", 10),
    ("fig2-tree", "engine.descriptor", 10),
    ("fig7-eleven-writes", "engine.ce", 1),
    ("fig6-no-engine", "leaf", 10),
    ("mesh-transpose", "phase", 10),
];

/// The time of the marker, and the signals, of a GTKWave file.
fn listed(text: &str) -> (Option<u64>, u64, Vec<String>) {
    let start = text.lines().find_map(|line| line.strip_prefix("[timestart] ")).unwrap().parse().unwrap();
    let marker = text.lines().find(|line| line.starts_with("*-")).unwrap();
    let marker = marker.split_whitespace().nth(1).unwrap().parse().ok();
    let other = |line: &&str| !line.starts_with(['[', '*', '@', '-', '^']) && !line.is_empty();
    let name = |line: &str| line.split('[').next().unwrap().to_owned();
    (marker, start, text.lines().filter(other).map(name).collect())
}

/// The flagship records the tree of the root's engine: viewers open on that engine, and on its tree.
#[test]
fn stage_registers_that_were_asked_for_are_where_viewers_open() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = load_named(Path::new("allreduce-die"), &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let path = folder.path().join("run.vcd");
    let wave = WaveOptions::of(path.clone(), Wave { to_cycle: Some(100), ..loaded.scenario.wave.clone() });
    run(&loaded, &RunOptions { wave: Some(&wave), ..RunOptions::default() }).unwrap();
    let text = fs::read_to_string(path.with_extension("gtkw")).unwrap();
    let (_, _, signals) = listed(&text);
    assert_eq!(signals[0], "die.tile2.sw4.switch.ceng.state", "{signals:?}");
    assert!(text.contains("@800200\n-stage registers"), "{text}");
    let staged = signals.iter().filter(|name| name.starts_with("die.tile2.sw4.switch.ceng.tree.")).count();
    assert!(staged >= 5, "{signals:?}");
    // How the unit computes is no news.
    let settings = |name: &&String| ["round", "flush_to_zero"].contains(&name.rsplit('.').next().unwrap());
    assert_eq!(signals.iter().find(settings), None, "{signals:?}");
}

#[test]
fn every_family_opens_where_something_happens() {
    for (scenario, expected, part) in FAMILIES {
        let mut events = Vec::new();
        for end in ["vcd", "fst"] {
            let folder = tempfile::tempdir().unwrap();
            let loaded = load_named(Path::new(scenario), &[]).unwrap_or_else(|problems| panic!("{problems}"));
            let path = folder.path().join(format!("run.{end}"));
            let to_cycle = Some(share::of(part, 3000));
            let wave = WaveOptions::of(path.clone(), Wave { signals: Vec::new(), to_cycle, ..Wave::default() });
            run(&loaded, &RunOptions { wave: Some(&wave), ..RunOptions::default() }).unwrap();
            let (event, start, signals) = listed(&fs::read_to_string(path.with_extension("gtkw")).unwrap());
            let event = event.unwrap_or_else(|| panic!("{scenario}: no event"));
            println!("{scenario}.{end}: {event} ps\n  {}", signals.join("\n  "));
            assert!((12..=30).contains(&signals.len()), "{scenario}: {}", signals.len());
            assert!(signals.iter().any(|name| name.contains(expected)), "{scenario}: {signals:?}");
            assert!(start < event, "{scenario}: it starts in {start}, {event} is what happens");

            // One of them changes at the marker, and all are there.
            let mut wave = WaveFile::open(&path).unwrap();
            let header = wave.header().clone();
            let find = |name: &String| header.variables.iter().find(|variable| variable.name == *name).unwrap().signal;
            let numbers: Vec<usize> = signals.iter().map(find).collect();
            let values = wave.load(numbers.iter().copied()).unwrap();
            let changes = |number: &usize| {
                let mut changes = wave.changes(&values, *number);
                changes.go_to(u128::from(event) * 1000, false);
                changes.next_fs() == Some(u128::from(event) * 1000)
            };
            assert!(numbers.iter().any(changes), "{scenario}: nothing happens in {event} ps");

            // Surfer gets the same.
            let commands = fs::read_to_string(path.with_extension("sucl")).unwrap();
            let added: Vec<&str> = commands.lines().filter_map(|line| line.strip_prefix("variable_add ")).collect();
            assert_eq!(added, signals, "{scenario}");
            assert!(commands.ends_with(&format!("cursor_set {event}\ngoto_cursor\n")), "{commands}");
            events.push((event, signals));
        }
        assert_eq!(events[0], events[1], "{scenario}: VCD and FST differ");
    }
}
