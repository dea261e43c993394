//! Skipping idle blocks and the order in which blocks of a cycle are evaluated change no result, not even a cycle.

use watershed::fabric::Step;
use watershed::scenario::armed::build::{BuildOptions, build};
use watershed::scenario::load_text;
use watershed::scenario::result::Document;
use watershed::scenario::run::{RunOptions, run};

use crate::support::{armed, passed, reduction, root};

/// Runs a scenario as it is, without skipping, and in shuffled orders, and returns the document of all of them.
pub fn every_way(scenario: &str, orders: &[u64]) -> Document {
    let loaded = load_text("test.toml", scenario, root(), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let once = |options: &RunOptions<'_>| run(&loaded, options).unwrap_or_else(|error| panic!("{error}")).document;
    let usual = once(&RunOptions::default());
    let same = |other: &Document, how: &str| {
        let parts = [
            (usual.cycles, &usual.armed, &usual.checks, &usual.links),
            (other.cycles, &other.armed, &other.checks, &other.links),
        ];
        assert!(parts[0] == parts[1], "{how} changes the run\n{scenario}");
    };
    same(&once(&RunOptions { no_skip: true, ..RunOptions::default() }), "evaluating every block in every cycle");
    for &seed in orders {
        same(&once(&RunOptions { order_seed: Some(seed), ..RunOptions::default() }), "a shuffled order");
    }
    usual
}

/// A stranger whose NIC is blocked by the link when its next frame is due.
const BLOCKED_STRANGER: &str = "family = \"armed\"\n[topology]\nkind = \"fat-tree\"\narity = 2\nlevels = 2\n[link]\nlatency_cycles = 20\n\
     [[armed.reduction]]\nname = \"r0\"\nop = \"int-max\"\nreduction_ids = 8\nroot = 3\nredundant = true\n\
     compute_cycles = { random_max = 500 }\n[[armed.stranger]]\nend_point = 2\nreduction = \"r0\"\nwrong = \"stale\"\nbehind = 7\n\
     every_cycles = 30\nuntil_cycle = 1600\n";

#[test]
fn a_stranger_behind_a_blocked_link_sends_in_the_same_cycles() {
    every_way(BLOCKED_STRANGER, &[1, 2, 3]);
}

#[test]
fn strangers_of_every_rate_and_kind_send_in_the_same_cycles() {
    for (wrong, every) in [("cookie", 7), ("malformed", 13), ("address", 11), ("vni", 40)] {
        let scenario = BLOCKED_STRANGER.replace(
            "wrong = \"stale\"\nbehind = 7\nevery_cycles = 30",
            &format!("wrong = \"{wrong}\"\nevery_cycles = {every}"),
        );
        every_way(&scenario, &[4]);
    }
}

#[test]
fn software_and_dead_end_points_do_the_same_in_the_same_cycles() {
    every_way(
        "family = \"armed\"\n[topology]\nkind = \"mesh\"\nsize = [3, 3]\n[[armed.reduction]]\nmethod = \"software\"\nop = \"int-sum\"\n\
         rounds = 3\npatience_cycles = 700\ncompute_cycles = { random_max = 300 }\nsend_overhead_cycles = 5\n\
         receive_overhead_cycles = 7\n[[armed.reduction]]\nop = \"flt-sum-near\"\nrounds = 4\nroot = 2\nmax_retries = 2\n\
         [[armed.fault]]\neffect = \"dead\"\nat = \"s1_1.node\"\nfrom_cycle = 300\nuntil_cycle = 900\n",
        &[5],
    );
}

/// A stranger sends a frame in every eleven cycles, and the link carries nothing else for most of the time.
fn busy_stranger(rounds: u32, compute: u32, until: u32) -> Document {
    let document = every_way(
        &format!(
            "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2]\n[limits]\nmax_cycles = 2000000000\n[armed.engine]\n\
             timeouts_1024_cycles = [400, 400, 400, 400]\n[[armed.reduction]]\nop = \"int-sum\"\nrounds = {rounds}\n\
             compute_cycles = {compute}\n[[armed.stranger]]\nend_point = 0\nreduction = \"r0\"\nwrong = \"vni\"\nevery_cycles = 11\n\
             until_cycle = {until}\n"
        ),
        &[1],
    );
    passed(&document);
    let of = reduction(&document, "r0");
    assert_eq!(of.outcomes.complete, u64::from(rounds) + 1, "{}", of.outcomes.words());
    document
}

#[test]
fn a_stranger_on_every_link_cycle_changes_nothing_without_skipping() {
    busy_stranger(4, 3000, 12_000);
}

/// More frames than a counter of 18 bits tells apart.
#[test]
#[ignore = "minutes: part of make soak"]
fn more_frames_than_a_counter_holds_are_the_same_without_skipping() {
    let document = busy_stranger(12, 280_000, 3_300_000);
    assert!(armed(&document).stranger_frames > 1 << 18, "{}", armed(&document).stranger_frames);
}

/// Leaves wait for half a million cycles before they give up, and the root for fifty thousand; none of these alarms is left behind.
#[test]
fn a_system_is_quiet_soon_after_the_last_result() {
    let text = "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 2]\n[[armed.reduction]]\nop = \"int-sum\"\n\
                rounds = 2\nretry_after_cycles = 50_000\npatience_cycles = 500_000\n";
    let loaded = load_text("test.toml", text, root(), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let mut ready = build(&loaded, BuildOptions::default()).unwrap_or_else(|problems| panic!("{problems}"));
    while ready.system.step() != Step::Quiet {}
    let now = ready.system.now();
    assert!(now < 15_000, "it goes on until cycle {now}");
}
