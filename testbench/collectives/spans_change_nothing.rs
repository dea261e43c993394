//! A run that is looked at only when there is something to see ends as one that is looked at after every cycle (X-RUN-1, K-WD-1).

use std::collections::BTreeSet;
use std::path::Path;

use watershed::fabric::Step;
use watershed::scenario::load_named;
use watershed::scenario::result::{Document, Outcome};
use watershed::scenario::run::{RunOptions, RunResult, run};
use watershed::scenario::shipped::SHIPPED;

use crate::sets;
use crate::share;
use crate::support::{FLAGSHIP, MESH, TWO_IDS, mesh, ready, run_with};
use crate::what_stands_is_named::crossed;

/// Runs in spans, and with a timeline, for which a run stops after every cycle.
fn same(text: &str, sets: &[String], options: &RunOptions<'_>) -> Document {
    let [spans, cycles] = [false, true].map(|timeline| {
        let options = RunOptions { timeline, all_links: true, ..*options };
        let RunResult { document, timeline: samples, .. } = run_with(text, sets, &options);
        assert_eq!(samples.is_empty(), !timeline);
        document
    });
    assert_eq!(
        serde_json::to_string_pretty(&spans).unwrap(),
        serde_json::to_string_pretty(&cycles).unwrap(),
        "{sets:?}"
    );
    spans
}

#[test]
fn of_collectives() {
    let late = sets!["collective[0].elements=40"; "collective[0].delay_cycles={{ random_max = 3000 }}"];
    assert!(same(FLAGSHIP, &late, &RunOptions::default()).passed());
    let two = sets!["collective[0].elements=300"; "collective[1].elements=70"; "link.cycles_per_flit=2"];
    assert!(same(TWO_IDS, &two, &RunOptions::default()).passed());
    assert!(
        same(MESH, &sets!["topology.size=[4, 3]"], &RunOptions { no_skip: true, ..RunOptions::default() }).passed()
    );
}

#[test]
fn of_measured_traffic() {
    let traffic =
        "[[traffic]]\npattern = \"uniform\"\nrate = 0.1\n[measure]\nwarmup_cycles = 130\nmeasure_cycles = 700\n";
    let text = mesh(&[4, 4], 1, traffic).replace("piuma", "fabric");
    for set in [sets![], sets!["traffic[0].rate=0.002"], sets!["measure.precision=0.05"; "traffic[0].packet_flits=5"]] {
        let document = same(&text, &set, &RunOptions::default());
        assert!(document.passed() && document.measure.is_some(), "{set:?}");
    }
}

/// The last look at a window may fall into the cycle in which the run has to end.
#[test]
fn of_traffic_measured_up_to_the_limit() {
    let traffic =
        "[[traffic]]\npattern = \"uniform\"\nrate = 0.1\n[measure]\nwarmup_cycles = 130\nmeasure_cycles = 700\n";
    let text = mesh(&[4, 4], 1, traffic).replace("piuma", "fabric");
    for (limit, drain, outcome) in
        [(830, 0, Outcome::Finished), (830, 1000, Outcome::MaxCycles), (1000, 128, Outcome::Finished)]
    {
        let set = sets!["limits.max_cycles={limit}"; "measure.drain_cycles={drain}"; "traffic[0].rate=0.3"];
        let document = same(&text, &set, &RunOptions::default());
        assert_eq!(document.outcome, outcome, "{set:?}");
        assert!(document.measure.is_some(), "{set:?}");
    }
    // Little moves when the window ends and afterwards.
    for stop in 830..834 {
        let document = same(&text, &sets!["traffic[0].stop_cycle={stop}"], &RunOptions::default());
        assert!(document.measure.is_some(), "{stop}");
    }
}

#[test]
fn of_traces_in_a_window() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packets.txt");
    // Traces are read 4096 cycles ahead of the first packet. The second packet is on its way when a run reads on, and the third follows
    // where that ends: it must not be read after its cycle.
    let ahead = 3 + 4096;
    for (before, behind) in (1..30).flat_map(|before| (0..3).map(move |behind| (before, behind))) {
        let packets = format!("3 0 15 1\n{} 1 2 1\n{} 2 13 1\n", ahead - before, ahead + behind);
        std::fs::write(&path, packets).unwrap();
        let traffic = format!(
            "[[traffic]]\npattern = \"trace\"\nfile = {:?}\n[measure]\nwarmup_cycles = 100\nmeasure_cycles = 9000\n",
            path.display().to_string()
        );
        let document = same(&mesh(&[4, 4], 1, &traffic).replace("piuma", "fabric"), &[], &RunOptions::default());
        assert_eq!(document.traffic[0].packets, 3, "{before} and {behind}");
    }
}

/// Of every family, with hosts, programs, ranks of workloads, claims, whatever a scenario has. One in five in `make test`.
#[test]
fn of_shipped_scenarios() {
    let (mut runs, mut families) = (0, BTreeSet::new());
    for (path, _) in share::one_in(5, SHIPPED) {
        let loaded = load_named(Path::new(path), &[]).unwrap_or_else(|problems| panic!("{problems}"));
        if loaded.scenario.topology.end_points() > 64 {
            continue;
        }
        let [spans, cycles] = [false, true].map(|timeline| {
            let options = RunOptions { timeline, ..RunOptions::default() };
            let result = run(&loaded, &options).unwrap_or_else(|error| panic!("{path}: {error}"));
            serde_json::to_string_pretty(&result.document).unwrap()
        });
        assert!(spans == cycles, "{path}: another document");
        families.insert(loaded.scenario.family.name());
        runs += 1;
    }
    assert!(runs > if share::is_whole() { 60 } else { 9 } && families.len() >= 4, "{runs}, {families:?}");
}

#[test]
fn of_runs_that_do_not_end() {
    let mut set = crossed(false);
    set.push("limits.watchdog_cycles=3000".into());
    assert_eq!(same(TWO_IDS, &set, &RunOptions::default()).outcome, Outcome::Deadlock);
    let set = sets!["limits.max_cycles=57"; "collective[0].elements=500"];
    assert_eq!(same(FLAGSHIP, &set, &RunOptions::default()).outcome, Outcome::MaxCycles);
    let set = sets!["collective[0].elements=500"];
    let stopped = same(FLAGSHIP, &set, &RunOptions { stop_cycle: Some(91), ..RunOptions::default() });
    assert_eq!((stopped.outcome, stopped.cycles), (Outcome::Interrupted, 91));
}

#[test]
fn which_end_with_completions() {
    let set = sets!["collective[0].delay_cycles={{ random_max = 900 }}"];
    let [mut spans, mut cycles] = [ready(FLAGSHIP, &set), ready(FLAGSHIP, &set)].map(|ready| ready.system);
    let mut one_by_one = Vec::new();
    loop {
        let before = cycles.completions();
        let step = cycles.step_before(u64::MAX);
        if cycles.completions() > before {
            one_by_one.push((cycles.now(), cycles.completions()));
        }
        if step == Step::Quiet {
            break;
        }
    }
    let (mut seen, mut most, mut longest) = (Vec::new(), 1, 0);
    loop {
        most = most % 97 + 1;
        let before = spans.completions();
        let (step, ran) = spans.run_before(u64::MAX, most);
        assert!(ran <= most && (step == Step::Quiet || ran > 0));
        longest = longest.max(ran);
        if spans.completions() > before {
            seen.push((spans.now(), spans.completions()));
        } else {
            assert!(step == Step::Quiet || ran == most, "nothing was there to stop for");
        }
        if step == Step::Quiet {
            break;
        }
    }
    assert!(one_by_one.len() > 1 && longest > 20);
    assert_eq!((seen, spans.now()), (one_by_one, cycles.now()));
    let mut ends = ready(FLAGSHIP, &set).system;
    assert_eq!((ends.run_before(7, 100).0, ends.now()), (Step::End, 7), "a span ends where it is told to");
}
