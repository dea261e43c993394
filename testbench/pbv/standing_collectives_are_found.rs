//! A collective that stands while another one goes on is found by the watchdog (K-WD-1), and one that waits for a time that
//! comes is not.

use std::path::Path;

use watershed::scenario::load_text;
use watershed::scenario::result::{Document, Outcome};
use watershed::scenario::run::{RunOptions, run};

fn document(tables: &str) -> Document {
    let text = format!("family = \"pbv\"\n[topology]\nkind = \"tree\"\nbranching = [2, 2]\n{tables}");
    let loaded = load_text("x.toml", &text, Path::new("."), "x", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    run(&loaded, &RunOptions::default()).unwrap().document
}

/// From cycle 3000 on frames of context 0 are lost, while context 1 runs round after round.
fn lost(watchdog: u64, more: &str) -> Document {
    document(&format!(
        "[limits]\nmax_cycles = 200_000\nwatchdog_cycles = {watchdog}\n\
         [[pbv.collective]]\nname = \"stands\"\nkind = \"barrier\"\nstart_cycle = 3000\nblocks = false\n{more}\n\
         [[pbv.collective]]\nname = \"flows\"\nkind = \"barrier\"\nrounds = 90_000\nstart_cycle = 3000\nblocks = false\n\
         [[pbv.fault]]\neffect = \"drop\"\nat = \"all\"\ncc_id = 0\nfrom_cycle = 3000\n"
    ))
}

fn progress(document: &Document) -> &str {
    let check = document.checks.iter().find(|check| check.name == "progress").expect("every run is checked for it");
    assert_eq!(check.passed, document.outcome == Outcome::Finished);
    &check.detail
}

#[test]
fn a_collective_that_flows_does_not_hide_one_that_stands() {
    let document = lost(20_000, "");
    assert_eq!(document.outcome, Outcome::Deadlock);
    assert!((23_000..32_000).contains(&document.cycles), "given up in cycle {}", document.cycles);
    let said = progress(&document);
    assert!(said.contains("stands has come no further since cycle"), "{said}");
    assert!(said.contains("no time-out is pending") && said.contains("not done: "), "{said}");
}

#[test]
fn without_a_watchdog_the_cycle_limit_ends_it() {
    let document = lost(0, "");
    assert_eq!((document.outcome, document.cycles), (Outcome::MaxCycles, 200_000));
}

#[test]
fn nodes_that_will_ask_again_are_waited_for() {
    let document = lost(20_000, "patience_cycles = 90_000\nmax_asks = 1\n");
    assert!(document.cycles > 90_000, "{}: {}", document.cycles, progress(&document));
}

#[test]
fn late_tasks_and_delayed_frames_are_waited_for() {
    let limits = "[limits]\nwatchdog_cycles = 1000\nmax_cycles = 100_000_000_000\n";
    for more in [
        "late = [{ end_point = 3, round = 0, cycles = 20_000_000_000 }]\n",
        "start_cycle = 700_000\nrounds = 2\ntask_cycles = 60_000\n",
        "start_cycle = 3000\n[[pbv.fault]]\neffect = \"delay\"\nat = \"all\"\nfrom_cycle = 3000\nuntil_cycle = 3100\ndelay_cycles = 300_000\n",
    ] {
        let document = document(&format!("{limits}[[pbv.collective]]\nname = \"sum\"\n{more}"));
        assert_eq!(document.outcome, Outcome::Finished, "{more}: {}", progress(&document));
        assert!(document.cycles > 100_000);
    }
}
