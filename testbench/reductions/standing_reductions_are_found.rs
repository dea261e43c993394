//! A reduction that stands while frames of others go on is found by the watchdog (K-WD-1), and one that waits for a time
//! that comes is not.

use watershed::scenario::result::{Document, Outcome};

use crate::support::text;

/// A leaf is dead, the root never asks again and nobody gives up, while a stranger floods the tree.
fn flooded(watchdog: u64, more: &str) -> Document {
    text(&format!(
        "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 2]\n[limits]\nmax_cycles = 200_000\nwatchdog_cycles = {watchdog}\n\
         [armed.engine]\ntimeouts_1024_cycles = [1, 2, 2, 2]\n[[armed.reduction]]\nname = \"sum\"\ncompute_cycles = 400\n\
         patience_cycles = 0\n{more}\n[[armed.fault]]\neffect = \"dead\"\nat = \"leaf1\"\nfrom_cycle = 300\n\
         [[armed.stranger]]\nend_point = 2\nreduction = \"sum\"\nwrong = \"cookie\"\nuntil_cycle = 9_000_000_000\n"
    ))
}

fn progress(document: &Document) -> &str {
    let check = document.checks.iter().find(|check| check.name == "progress").expect("every run is checked for it");
    assert_eq!(check.passed, document.outcome == Outcome::Finished);
    &check.detail
}

#[test]
fn a_flood_does_not_hide_a_reduction_that_stands() {
    let document = flooded(5000, "retry_after_cycles = 0");
    assert_eq!(document.outcome, Outcome::Deadlock);
    // The last time-out of an engine runs out some 2,500 cycles into the round; the watchdog looks every 1,024 steps.
    assert!((6_000..16_000).contains(&document.cycles), "given up in cycle {}", document.cycles);
    let said = progress(&document);
    assert!(said.contains("sum has come no further since cycle"), "{said}");
    assert!(said.contains("no time-out is pending") && said.contains("not done: "), "{said}");
}

#[test]
fn more_patience_ends_it_later_and_none_at_the_limit() {
    let short = flooded(5000, "retry_after_cycles = 0").cycles;
    let long = flooded(50_000, "retry_after_cycles = 0");
    assert_eq!(long.outcome, Outcome::Deadlock);
    assert!((short + 40_000..short + 50_000).contains(&long.cycles), "{short} and {}", long.cycles);
    let off = flooded(0, "retry_after_cycles = 0");
    assert_eq!((off.outcome, off.cycles), (Outcome::MaxCycles, 200_000));
}

#[test]
fn a_root_that_will_ask_again_is_waited_for() {
    // Its retries are further apart than the watchdog's patience.
    let document = flooded(5000, "retry_after_cycles = 60_000\nmax_retries = 1");
    assert!(document.cycles > 60_000, "{}: {}", document.cycles, progress(&document));
}

#[test]
fn late_leaves_and_delayed_frames_are_waited_for() {
    let tree = "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 2]\n[limits]\nwatchdog_cycles = 1000\n\
                max_cycles = 100_000_000_000\n[[armed.reduction]]\nname = \"sum\"\nrounds = 2\n";
    for more in [
        "late = [{ end_point = 3, round = 0, cycles = 20_000_000_000 }]\n",
        "compute_cycles = 50_000\nsend_overhead_cycles = 9000\nreceive_overhead_cycles = 9000\nmethod = \"software\"\n",
        "start_cycle = 700_000\n",
        "[[armed.fault]]\neffect = \"delay\"\nat = \"leaf1\"\nnth = 1\ndelay_cycles = 300_000\n",
    ] {
        let document = text(&format!("{tree}{more}"));
        assert_eq!(document.outcome, Outcome::Finished, "{more}: {}", progress(&document));
        assert!(document.cycles > 50_000);
    }
}
