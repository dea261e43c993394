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
fn lost((limit, watchdog): (u64, u64), more: &str) -> Document {
    document(&format!(
        "[limits]\nmax_cycles = {limit}\nwatchdog_cycles = {watchdog}\n\
         [[pbv.collective]]\nname = \"stands\"\nkind = \"barrier\"\nstart_cycle = 3000\nblocks = false\n{more}\n\
         [[pbv.collective]]\nname = \"flows\"\nkind = \"barrier\"\nrounds = 3000\nstart_cycle = 3000\nblocks = false\n\
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
    let document = lost((200_000, 20_000), "");
    assert_eq!(document.outcome, Outcome::Deadlock);
    assert!((23_000..32_000).contains(&document.cycles), "given up in cycle {}", document.cycles);
    let said = progress(&document);
    assert!(said.contains("stands has come no further since cycle"), "{said}");
    assert!(said.contains("no time-out is pending") && said.contains("not done: "), "{said}");
}

#[test]
fn without_a_watchdog_the_cycle_limit_ends_it() {
    let document = lost((40_000, 0), "");
    assert_eq!((document.outcome, document.cycles), (Outcome::MaxCycles, 40_000));
}

#[test]
fn nodes_that_will_ask_again_are_waited_for() {
    let document = lost((45_000, 10_000), "patience_cycles = 30_000\nmax_asks = 1\n");
    assert!(document.cycles > 30_000, "{}: {}", document.cycles, progress(&document));
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

/// Three collectives whose commands come to the nodes of a row in different orders, from sources in different places.
fn in_different_orders(more: &str) -> Document {
    let job = |name: &str, source: u32| {
        format!(
            "[[pbv.collective]]\nname = \"{name}\"\nelements = 2\nstart_cycle = 3000\nsource = {source}\nrounds = 3\n{more}\n"
        )
    };
    let text = [("left", 0), ("middle", 3), ("right", 6)].map(|(name, source)| job(name, source));
    let text = format!("family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [7, 1]\n{}", text.concat());
    let loaded = load_text("x.toml", &text, Path::new("."), "x", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    run(&loaded, &RunOptions::default()).unwrap().document
}

#[test]
fn collectives_that_block_each_other_are_named_in_a_circle() {
    let document = in_different_orders("");
    assert_eq!(document.outcome, Outcome::Deadlock);
    let said = progress(&document);
    assert!(said.contains("no place in the network waits for another"), "{said}");
    let circle =
        said.split("collectives wait for each other in a circle:\n").nth(1).unwrap_or_else(|| panic!("{said}"));
    let steps: Vec<(&str, &str, &str)> = circle
        .lines()
        .map_while(|line| {
            let (who, rest) = line.strip_prefix("  ")?.split_once(" waits for ")?;
            let (whom, why) = rest.split_once(": ")?;
            Some((who, whom, why.strip_suffix(" works at that and begins nothing else before its end")?))
        })
        .collect();
    assert!(steps.len() > 1, "{said}");
    assert!(!said.contains("\n\n"), "{said}");
    for (at, (who, whom, node)) in steps.iter().enumerate() {
        let job = document.jobs.iter().find(|job| job.name == *who).unwrap();
        assert!(job.start_cycle.is_some_and(|cycle| cycle >= 3000), "{who}: {:?}", job.start_cycle);
        assert_eq!(*whom, steps[(at + 1) % steps.len()].0, "{said}");
        assert!(node.ends_with("_0.node"), "{said}");
    }
    // Nodes that work at several collectives at a time let all of them end, and nodes that ask name who was missing.
    let document = in_different_orders("blocks = false");
    assert_eq!(document.outcome, Outcome::Finished, "{}", progress(&document));
    assert!(document.jobs.iter().all(|job| job.outcomes.complete == 3));
    let document = in_different_orders("patience_cycles = 5000");
    assert_eq!(document.outcome, Outcome::Finished, "{}", progress(&document));
    for of in &document.pbv.unwrap().collectives {
        assert!(of.rounds.iter().all(|round| round.outcome == "complete" || !round.missing.is_empty()), "{of:?}");
    }
}
