//! R-EP-1, R-EP-2, R-ERR-1: whatever dies, a run ends, and rounds without a result are named and fail it.

use watershed::scenario::result::{Check, Document, Outcome};

use crate::order_of_evaluation_changes_nothing::every_way;
use crate::support::{armed, passed, reduction, round};

/// A scenario in memory, run with and without skipping.
fn text(scenario: &str) -> Document {
    every_way(scenario, &[])
}

fn progress(document: &Document) -> &Check {
    document.checks.iter().find(|check| check.name == "progress").expect("every run has this check")
}

const DEAD_ROOT: &str = "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [4]\n[[armed.reduction]]\nop = \"int-sum\"\n\
     rounds = 5\ncompute_cycles = 100\n[[armed.fault]]\neffect = \"dead\"\nat = \"root0\"\nfrom_cycle = 200\n";

#[test]
fn rounds_of_a_dead_root_are_named_and_fail_the_run() {
    let document = text(DEAD_ROOT);
    let progress = progress(&document);
    assert!(!progress.passed && !document.passed(), "status 1");
    assert_eq!(
        progress.detail,
        "r0: round 0 open, round 1, round 2, round 3, round 4 not started (root0 is dead since cycle 200)"
    );
    let outcomes = reduction(&document, "r0").outcomes;
    assert_eq!((outcomes.complete, outcomes.open, outcomes.unstarted, outcomes.rounds()), (1, 1, 4, 6));
}

#[test]
fn an_open_round_says_whose_contributions_are_missing() {
    let document = text(&DEAD_ROOT.replace("from_cycle = 200", "from_cycle = 300").replace(
        "compute_cycles = 100",
        "compute_cycles = 100\nlate = [{ end_point = 2, cycles = 5000 }]\nretry_after_cycles = 50_000",
    ));
    let open = &armed(&document).reductions[0].rounds;
    let open = open.iter().find(|round| round.outcome == "open").expect("round 0 is open");
    assert!(open.missing.contains(&"leaf2".to_owned()), "{open:?}");
}

const DEAD_FOR_A_WHILE: &str = "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [4]\n[[armed.reduction]]\n\
     op = \"int-sum\"\nrounds = 3\ncompute_cycles = 100\nmax_retries = 6\n[[armed.fault]]\neffect = \"dead\"\nat = \"leaf1\"\n\
     from_cycle = 100\nuntil_cycle = 110\n";

#[test]
fn an_end_point_is_dead_until_the_cycle_that_is_asked_for() {
    let document = text(DEAD_FOR_A_WHILE);
    passed(&document);
    let outcomes = reduction(&document, "r0").outcomes;
    assert_eq!((outcomes.rounds(), outcomes.incomplete, outcomes.open), (4, 0, 0), "{}", outcomes.words());
    // For good it is missing.
    let document = text(&DEAD_FOR_A_WHILE.replace("until_cycle = 110\n", ""));
    assert_eq!(round(&document, 0).missing, ["leaf1"]);
    assert!(!document.passed(), "rounds 1 and 2 are not started");
}

#[test]
fn an_end_point_that_comes_back_has_lost_what_came_meanwhile() {
    // The arm frame of round 1 comes while leaf 1 is dead: the retry brings it.
    let document = text(
        &DEAD_FOR_A_WHILE
            .replace("from_cycle = 100", "from_cycle = 60")
            .replace("until_cycle = 110", "until_cycle = 200"),
    );
    passed(&document);
    assert!(reduction(&document, "r0").retries > 0);
}

/// A software reduction over eight ranks, of which one dies.
fn software(dead: &str, patience: &str) -> Document {
    text(&format!(
        "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 4]\nroots = 0\n[[armed.reduction]]\nmethod = \"software\"\n\
         op = \"int-sum\"\nrounds = 9\ncompute_cycles = 100\n{patience}[[armed.fault]]\neffect = \"dead\"\nat = \"leaf{dead}\"\n\
         from_cycle = 250\n"
    ))
}

#[test]
fn a_software_reduction_ends_without_a_dead_rank_and_names_it() {
    for dead in 1..8 {
        let document = software(&dead.to_string(), "patience_cycles = 2000\n");
        assert_eq!(document.outcome, Outcome::Finished, "leaf{dead}: {:?}", document.checks);
        let rounds = &reduction(&document, "r0").rounds;
        let incomplete = rounds.iter().find(|round| round.outcome == "incomplete").expect("one round has no result");
        // What is below a dead rank cannot get through; all others do.
        let below = 1 << (dead as u32).trailing_zeros();
        assert!(incomplete.missing.contains(&format!("leaf{dead}")), "{incomplete:?}");
        assert!(incomplete.missing.len() <= below, "leaf{dead}: {incomplete:?}");
        assert!(!progress(&document).passed, "later rounds are not started");
        assert!(document.cycles < 20_000, "leaf{dead}: {} cycles", document.cycles);
    }
}

#[test]
fn a_software_reduction_without_its_root_ends() {
    let document = software("0", "patience_cycles = 2000\n");
    assert_eq!(document.outcome, Outcome::Finished, "{:?}", document.checks);
    assert!(progress(&document).detail.contains("leaf0 is dead since cycle 250"), "{}", progress(&document).detail);
    // The time-out that follows from the scenario ends it as well.
    assert_eq!(software("3", "").outcome, Outcome::Finished);
}

/// More frames than a counter of 18 bits tells apart. Each is one flit here; of eleven, and without skipping, they are sent in
/// `order_of_evaluation_changes_nothing::more_frames_than_a_counter_holds_are_the_same_without_skipping`.
#[test]
fn a_right_result_is_right_after_a_station_made_half_a_million_frames() {
    // Every cycle of it without skipping would take long.
    let document = crate::support::text(
        "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2]\n[link]\nflit_bits = 1024\n[limits]\n\
         max_cycles = 2000000000\n[armed.engine]\ntimeouts_1024_cycles = [400, 400, 400, 400]\n[[armed.reduction]]\n\
         op = \"int-sum\"\nrounds = 12\ncompute_cycles = 45000\n[[armed.stranger]]\nend_point = 0\nreduction = \"r0\"\n\
         wrong = \"vni\"\nevery_cycles = 2\nuntil_cycle = 540000\n",
    );
    passed(&document);
    let outcomes = reduction(&document, "r0").outcomes;
    assert_eq!((outcomes.complete, outcomes.silent), (13, 0), "{}", outcomes.words());
    assert!(armed(&document).stranger_frames > 262_144, "{}", armed(&document).stranger_frames);
}

#[test]
fn a_root_that_gives_up_releases_its_engines_before_their_time() {
    // R-EP-1, R-EX-8: engines would hold their descriptors for a million cycles.
    let document = text(
        "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 4]\n[armed.engine]\n\
         timeouts_1024_cycles = [1000, 1000, 1000, 1000]\n[[armed.reduction]]\nop = \"int-sum\"\nretry_after_cycles = 3000\n\
         max_retries = 0\npatience_cycles = 10_000\n[[armed.fault]]\neffect = \"dead\"\nat = \"leaf2\"\nfrom_cycle = 60\n",
    );
    assert_eq!(document.outcome, Outcome::Finished);
    let held = crate::support::engines(&document, "released");
    assert!(held >= 2, "the engine above leaf 2 and that of the root's switch: {held}");
    assert_eq!(crate::support::engines(&document, "expired") + crate::support::engines(&document, "expired_empty"), 0);
    assert!(document.cycles < 15_000, "{} cycles", document.cycles);
    assert_eq!(armed(&document).leaked, [""; 0]);
}
