//! A run that stops moving ends with the autopsy that names who waits for whom (K-WD-1).

use watershed::fabric::Evaluation;
use watershed::scenario::result::{Document, Outcome};
use watershed::scenario::run::RunOptions;

use crate::sets;
use crate::support::{FLAGSHIP, TWO_IDS, UNLIMITED, ready, run_with};

/// Half of the cores start with one collective and half with the other: every engine holds operands of both.
pub fn crossed(claims: bool) -> Vec<String> {
    sets!["checks.claims={claims}"; "collective[1].start_cycle=0";
        "collective[0].delay_cycles=[0, 400, 0, 400, 0, 400, 0, 400]";
        "collective[1].delay_cycles=[400, 0, 400, 0, 400, 0, 400, 0]"]
}

fn ended_badly(document: &Document) -> &str {
    assert!(!document.passed());
    let failed: Vec<_> = document.checks.iter().filter(|check| check.name == "progress" && !check.passed).collect();
    assert_eq!(failed.len(), 1, "{:#?}", document.checks);
    &failed[0].detail
}

#[test]
fn two_collectives_that_claim_nothing_deadlock_and_the_cycle_is_named() {
    let document = run_with(TWO_IDS, &crossed(false), &RunOptions::default()).document;
    assert_eq!(document.outcome, Outcome::Deadlock);
    let autopsy = ended_badly(&document);
    assert!(autopsy.contains("wait for each other in a cycle"), "{autopsy}");
    assert!(autopsy.contains(" engine waits for "), "{autopsy}");
    assert!(autopsy.contains("and so back to "), "{autopsy}");
    assert!(autopsy.contains("not complete: sum, smallest"), "{autopsy}");
    assert!(document.collectives.iter().all(|collective| collective.end_cycle.is_none()));
    assert!(document.collectives.iter().all(|collective| collective.bit_exact == Some(false)));
}

#[test]
fn the_same_two_run_one_after_the_other_when_they_claim_their_switches() {
    assert!(run_with(TWO_IDS, &crossed(true), &RunOptions::default()).document.passed());
}

const ENDLESS: &str = r#"
[[traffic]]
pattern = "flows"
flows = [{ from = "core1.P0", to = "core5.P0", rate = 0.5 }, { from = "sw2.P0", to = "sw7.P1", rate = 0.9 }]
"#;

#[test]
fn traffic_that_flows_does_not_hide_a_collective_that_stands() {
    let mut set = crossed(false);
    set.push("limits.watchdog_cycles=3000".into());
    let document = run_with(&format!("{TWO_IDS}{ENDLESS}"), &set, &RunOptions::default()).document;
    assert_eq!(document.outcome, Outcome::Deadlock);
    let detail = ended_badly(&document);
    assert!(detail.contains("no end point has taken or sent a flit since cycle"), "{detail}");
    assert!(detail.contains("in a cycle"), "{detail}");
    assert!((3000..8000).contains(&document.cycles), "given up in cycle {}", document.cycles);
    assert!(document.traffic[0].packets > 1000);
}

#[test]
fn without_a_watchdog_the_cycle_limit_ends_it() {
    let mut set = crossed(false);
    set.extend(sets!["limits.watchdog_cycles=0"; "limits.max_cycles=20000"]);
    let document = run_with(&format!("{TWO_IDS}{ENDLESS}"), &set, &RunOptions::default()).document;
    assert_eq!((document.outcome, document.cycles), (Outcome::MaxCycles, 20_000));
    assert_eq!(ended_badly(&document), "not done after limits.max_cycles = 20000");
}

#[test]
fn the_cycle_limit_cuts_a_run_short() {
    let document =
        run_with(FLAGSHIP, &sets!["limits.max_cycles=65"; "collective[0].elements=1"], &RunOptions::default()).document;
    assert_eq!((document.outcome, document.cycles), (Outcome::MaxCycles, 65));
    ended_badly(&document);
    // The last element lands in cycle 66: cycles 0 to 66 are 67 cycles.
    let enough =
        run_with(FLAGSHIP, &sets!["limits.max_cycles=67"; "collective[0].elements=1"], &RunOptions::default()).document;
    assert!(enough.passed());
    let short =
        run_with(FLAGSHIP, &sets!["limits.max_cycles=66"; "collective[0].elements=1"], &RunOptions::default()).document;
    assert_eq!(short.outcome, Outcome::MaxCycles);
}

#[test]
fn the_chain_behind_a_blocked_consumer_ends_at_its_core() {
    let mut ready = ready(FLAGSHIP, &sets!["collective[0].elements=400"; "{UNLIMITED}"]);
    ready.system.evaluate(Evaluation { no_skip: true, shuffle: None });
    ready.system.end_mut(6).core.as_mut().unwrap().block_until(1 << 40);
    for _ in 0..2000 {
        ready.system.step();
    }
    let moves = ready.system.moves();
    ready.system.step();
    assert_eq!(ready.system.moves(), moves, "nothing moves any more");
    let autopsy = ready.system.autopsy();
    assert!(autopsy.cycle.is_empty(), "{autopsy}");
    // The consumer's queue waits for the consumer; its switch for that queue; the tile's root for its switch; and so on.
    let whom = |chain: &[watershed::kernel::WaitFor]| chain.iter().map(|wait| wait.whom.clone()).collect::<Vec<_>>();
    let longest = whom(&autopsy.ends[0]);
    assert_eq!(longest.last().unwrap(), "core6.memory", "{autopsy}");
    let text = autopsy.to_string();
    for link in [
        "core6.memory response waits for core6.memory",
        "core6.I3 response waits for core6.memory response",
        "core4.I6 response waits for core6.I3 response",
        "sw4.I10 response waits for core4.I6 response",
    ] {
        assert!(text.contains(link), "no \"{link}\" in\n{text}");
    }
    assert!(text.contains("takes nothing for now"), "{text}");
}

#[test]
fn a_participant_that_never_comes_is_named_by_the_engine_that_waits() {
    // The program of core 2 does not call.
    let programs = "[[program]]\ncores = [0, 1, 3, 4, 5, 6, 7]\ntext = \"barrier 0\"\n[[program]]\ncores = [2]\ntext = \"compute 900\"\n";
    let barrier = "[[job]]\nkind = \"barrier\"\npiuma.id = 0\npiuma.called = true\n";
    let set = sets!["limits.watchdog_cycles=5000"];
    let text = crate::support::die(&format!("{barrier}{programs}{ENDLESS}"));
    let document = run_with(&text, &set, &RunOptions::default()).document;
    assert_eq!(document.outcome, Outcome::Deadlock);
    let detail = ended_badly(&document);
    assert!(
        detail.contains(
            "core0 engine waits for core2 to send over P3: element 0 of collective id 0 has no operand from port 3"
        ),
        "{detail}"
    );
}

#[test]
fn words_that_wait_for_billions_of_cycles_are_served_when_the_last_one_comes() {
    let cycles = |delay: u64| {
        let set = sets!["collective[0].elements=40"; "collective[0].delay_cycles=[0, 0, 0, 0, 0, 0, 0, {}]", delay;
            "limits.max_cycles=99999999999"; "limits.watchdog_cycles=0"];
        let document = run_with(FLAGSHIP, &set, &RunOptions::default()).document;
        assert!(document.passed(), "{:?}", document.checks);
        document.cycles
    };
    let after = cycles(1000) - 1000;
    for delay in [2_200_000_000, 3_000_000_000, 5_000_000_000] {
        assert_eq!(cycles(delay), delay + after, "late by {delay} cycles");
    }
}
