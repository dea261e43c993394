//! A faulty context and another one, with and without the faults (B-ERR-4).
//!
//! What is compared: if the other context has engines and links of its own, everything that is known of it, bits and cycles
//! of every round, whatever fails elsewhere. If the two share engines, links and nodes and only the one's frames are hit, the
//! other's results have the same bits in every round and nobody is reported; its cycles may differ, because frames that
//! are repeated take turns with its own at the engines and on the links they share.

use std::path::Path;

use crate::campaign;
use crate::share;
use watershed::kernel::Rng;
use watershed::scenario::load_text;
use watershed::scenario::pbv::result::{CollectiveResult, PbvResult};
use watershed::scenario::run::{RunOptions, run};

fn result(text: &str) -> PbvResult {
    let loaded = load_text("campaign", text, Path::new(""), "campaign", &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let document = run(&loaded, &RunOptions::default()).unwrap().document;
    let failed = document.checks.iter().find(|check| !check.passed);
    assert!(failed.is_none(), "{failed:?}\n{text}");
    document.pbv.unwrap()
}

/// A number of faults at these places, drawn from a seed; `from` is when they begin.
fn faults(rng: &mut Rng, places: &[&str], with_dead: bool, more: &str, from: u64) -> String {
    let mut text = String::new();
    for _ in 0..=rng.below(3) {
        let effect = ["drop", "corrupt", "duplicate", "delay", "dead"][rng.below(4 + u64::from(with_dead)) as usize];
        let at = places[rng.below(places.len() as u64) as usize];
        let from = if effect == "dead" && from < 1_000_000 { from + rng.below(1500) } else { from };
        text.extend([format!("[[pbv.fault]]\neffect = \"{effect}\"\nat = \"{at}\"\nfrom_cycle = {from}\n")]);
        if effect == "delay" {
            text.extend([format!("delay_cycles = {}\n", 1 + rng.below(1500))]);
        }
        if effect != "dead" {
            text.extend([format!("probability = 0.{:02}\n{more}", 5 + rng.below(40))]);
        }
    }
    text
}

/// In both runs the links with faults are there; in the second nothing ever happens on them.
const NEVER: u64 = 90_000_000;

/// The other context's result with and without faults elsewhere, and whether they hit anything.
fn apart(seed: u64) -> (CollectiveResult, CollectiveResult, bool) {
    let mut rng = Rng::new(seed, 0xa9a7);
    // Shape, end points of the quiet context and their switch, places where something may fail.
    let (shape, quiet, at, places): (_, &str, _, &[&str]) = match rng.below(3) {
        0 => (
            "kind = \"tree\"\nbranching = [2, 2, 2]\nroots = 0",
            "6, 7",
            "s1_1",
            &["s0", "s1_0", "top", "leaf0", "leaf3", "leaf5"],
        ),
        1 => (
            "kind = \"mesh\"\nsize = [3]\nconcentration = 3",
            "6, 7, 8",
            "s2",
            &["s0", "s0.node0", "s0.node2", "s1.node1", "s1.node0"],
        ),
        _ => (
            "kind = \"flattened-butterfly\"\nsize = [4]\nconcentration = 2",
            "6, 7",
            "s3",
            &["s0", "s1", "s0.node1", "s1.node1", "s2.node0"],
        ),
    };
    let timeout = 300 + rng.below(700);
    let head = format!(
        "family = \"pbv\"\nseed = {seed}\n[topology]\n{shape}\n[limits]\nmax_cycles = 100000000\n\
         [link]\nlatency_cycles = {}\n[pbv.setup]\nconfiguration = \"side-port\"\n[pbv.engine]\ntimeout_cycles = {timeout}\n\
         retries = {}\n[[pbv.collective]]\nname = \"quiet\"\nparticipants = [{quiet}]\nmaster = \"{at}\"\nelements = 3\n\
         rounds = 6\nstart_cycle = 3000\nblocks = false\ntask_cycles = {{ random_max = {} }}\n\
         [[pbv.collective]]\nname = \"noisy\"\nexcept = [{quiet}]\nelements = 2\nrounds = {}\nstart_cycle = 3000\nblocks = false\n\
         task_cycles = {{ random_max = {timeout} }}\n",
        1 + rng.below(6),
        rng.below(3),
        timeout / 3,
        1 + rng.below(4),
    );
    let drawn = rng;
    let with = |from: u64| result(&(head.clone() + &faults(&mut drawn.clone(), places, true, "", from)));
    let [mut faulty, mut clean] = [3000, NEVER].map(with);
    let hit = faulty.collectives[1] != clean.collectives[1];
    (faulty.collectives.swap_remove(0), clean.collectives.swap_remove(0), hit)
}

/// The same for a context that shares everything with the faulty one.
fn shared(seed: u64) -> (CollectiveResult, CollectiveResult) {
    let mut rng = Rng::new(seed, 0x54a3);
    let text = format!(
        "family = \"pbv\"\nseed = {seed}\n[topology]\nkind = \"flattened-butterfly\"\nsize = [4]\nconcentration = 2\n\
         [limits]\nmax_cycles = 100000000\n[pbv.setup]\nconfiguration = \"side-port\"\n[pbv.engine]\ntimeout_cycles = 20000\n\
         retries = 2\n[[pbv.collective]]\nname = \"other\"\nelements = 12\norder = \"pbv\"\nrounds = 4\nstart_cycle = 3000\n\
         blocks = false\ntask_cycles = {{ random_max = 60 }}\n[[pbv.collective]]\nname = \"noisy\"\nelements = 20\nrounds = 4\n\
         start_cycle = 3000\nblocks = false\nmaster = \"s{}\"\n",
        rng.below(4)
    );
    let drawn = rng;
    let with =
        |from| result(&(text.clone() + &faults(&mut drawn.clone(), &["all", "s0", "s2"], false, "cc_id = 1\n", from)));
    let [mut faulty, mut clean] = [3000, NEVER].map(with);
    (faulty.collectives.swap_remove(0), clean.collectives.swap_remove(0))
}

/// Both pairs of runs of a seed: whether its faults hit anything, and how many rounds of the context that shares everything moved.
fn one(seed: u64) -> (bool, u64) {
    let (faulty, clean, hit) = apart(seed);
    assert_eq!(clean.outcomes.complete, 6, "seed {seed}");
    assert_eq!(faulty, clean, "seed {seed}: bits and cycles of a context that shares nothing");
    let (faulty, clean) = shared(seed);
    let mut moved = 0;
    for (a, b) in faulty.rounds.iter().zip(&clean.rounds) {
        assert_eq!(
            (&a.result, &a.flags),
            (&b.result, &b.flags),
            "seed {seed}: bits of a context that shares everything"
        );
        assert!(a.missing.is_empty() && a.outcome == b.outcome, "seed {seed}: {a:?}");
        moved += u64::from(a.end_cycle != b.end_cycle);
    }
    assert_eq!((faulty.rounds.len(), clean.rounds.len()), (4, 4), "seed {seed}");
    (hit, moved)
}

fn hold(seeds: impl IntoIterator<Item = u64>) {
    let seen = campaign::over(seeds, |seed| Ok(one(seed)));
    let runs = seen.len() as u64;
    let hit = seen.iter().filter(|(hit, _)| *hit).count() as u64;
    let moved: u64 = seen.iter().map(|(_, moved)| moved).sum();
    // The faults are no idle ones: the faulty context shows them, and sharing moves cycles.
    assert!(hit > runs / 2 && moved > 0, "{hit} of {runs} runs hit, {moved} rounds moved");
}

/// One in four of fifty in `make test`.
#[test]
fn runs_leave_others_as_they_are() {
    hold(share::one_in(4, 0..50));
}

#[test]
#[ignore = "long: make soak"]
fn ten_thousand_runs_leave_others_as_they_are() {
    hold(campaign::asked(50..10_050));
}
