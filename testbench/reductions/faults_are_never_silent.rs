//! R-ERR-1, R-EP-3, R-EP-4: whatever is lost, damaged, repeated or dead, a result is right or somebody knows that there is none.

use std::fmt::Write;

use crate::campaign;
use crate::share;
use crate::support::{armed, engines, passed, reduction, round, shipped, text};
use watershed::kernel::Rng;
use watershed::scenario::armed::result::Outcomes;

/// A random faulty system: 16 to 256 leaves, two or three levels, several kinds of fault.
fn faulty(seed: u64, sequence_check: bool) -> String {
    let mut rng = Rng::new(seed, 0xca_b1e5);
    // Small ones often, large ones now and then.
    let branching = match rng.below(10) {
        0..5 => [4, 4, 0],
        5..7 => [2, 8, 0],
        7 => [4, 8, 0],
        8 => [2, 4, 4],
        _ => [16, 16, 0],
    };
    let shape: Vec<String> = branching.iter().filter(|&&b| b > 0).map(ToString::to_string).collect();
    let leaves: u64 = branching.iter().filter(|&&b| b > 0).product();
    let op = ["flt-sum-near", "int-sum", "flt-repsum", "flt-minmaxloc", "xor", "barrier", "flt-maxnum"]
        [rng.below(7) as usize];
    let (ids, rounds) = (1 + rng.below(2), 2 + rng.below(3));
    let mut text = format!(
        "family = \"armed\"\nseed = {seed}\n[topology]\nkind = \"tree\"\nbranching = [{}]\n[armed.engine]\n\
         timeouts_1024_cycles = [1, {}, {}, 3]\n[armed.link_layer]\nsequence_check = {sequence_check}\n{}\
         [[armed.reduction]]\nop = \"{op}\"\nrounds = {rounds}\nreduction_ids = {ids}\nmax_retries = {}\n\
         compute_cycles = {{ random_max = {} }}\n",
        shape.join(", "),
        1 + rng.below(2),
        1 + rng.below(3),
        if rng.below(4) == 0 && sequence_check { "[link.reliability]\n" } else { "" },
        rng.below(7),
        rng.below(1500),
    );
    // Losses scaled to the number of frames, so that most runs have some and many complete.
    for _ in 0..=rng.below(3) {
        let effect = ["drop", "corrupt", "duplicate", "delay", "drop", "duplicate"][rng.below(6) as usize];
        let way = ["up", "down", "both"][rng.below(3) as usize];
        let _ = write!(text, "[[armed.fault]]\neffect = \"{effect}\"\nway = \"{way}\"\n");
        if rng.below(3) == 0 {
            let _ = write!(text, "at = \"leaf{}\"\nnth = {}\n", rng.below(leaves), rng.below(4));
        } else {
            let _ = write!(text, "at = \"all\"\nprobability = {}\n", (1 + rng.below(16)) as f64 / (8 * leaves) as f64);
        }
        if effect == "delay" {
            let _ = writeln!(text, "delay_cycles = {}", 1 + rng.below(3000));
        }
    }
    match rng.below(12) {
        0 => {
            let (leaf, from) = (rng.below(leaves), rng.below(4000));
            let _ = write!(text, "[[armed.fault]]\neffect = \"dead\"\nat = \"leaf{leaf}\"\nfrom_cycle = {from}\n");
        }
        1 => {
            let from = rng.below(4000);
            let _ = write!(
                text,
                "[[armed.fault]]\neffect = \"dead\"\nat = \"s{}\"\nfrom_cycle = {from}\n",
                rng.below(branching[0])
            );
        }
        2 => {
            let _ = write!(
                text,
                "[[armed.stranger]]\nend_point = {}\nreduction = \"r0\"\nwrong = \"{}\"\nuntil_cycle = 2000\nevery_cycles = 50\n",
                rng.below(leaves),
                ["cookie", "vni", "stale", "malformed"][rng.below(4) as usize],
            );
        }
        _ => {}
    }
    text
}

/// Runs seeded faulty systems and returns how their rounds ended.
fn hold(seeds: impl IntoIterator<Item = u64>) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for of in campaign::over(seeds, |seed| Ok(one(seed))) {
        outcomes.add(&of);
    }
    outcomes
}

/// One seeded faulty system: nothing is silent, nothing leaks, who is missing has a name.
fn one(seed: u64) -> Outcomes {
    let document = text(&faulty(seed, true));
    let armed = armed(&document);
    for check in &document.checks {
        // After a round that was given up, the rounds of its flow are not started, and the run says so.
        let unended = check.name == "progress" && armed.outcomes.unstarted > 0;
        assert!(check.passed || unended, "seed {seed}: {}: {}\n{}", check.name, check.detail, faulty(seed, true));
    }
    assert_eq!((armed.outcomes.silent, armed.outcomes.open), (0, 0), "seed {seed}\n{}", faulty(seed, true));
    assert_eq!(armed.leaked, [""; 0], "seed {seed}");
    for round in armed.reductions.iter().flat_map(|reduction| &reduction.rounds) {
        // A round the root gave up has its missing ones in the report, unless their frames came too late.
        assert!(round.outcome != "incomplete" || !round.missing.is_empty() || round.end_cycle.is_some(), "seed {seed}");
    }
    armed.outcomes
}

/// One in five of two hundred in `make test`.
#[test]
fn faulty_runs_are_right_or_reported() {
    let outcomes = hold(share::one_in(5, 0..200));
    println!("rounds of the faulty runs: {}", outcomes.words());
    let [complete, after_retry, incomplete] = [100, 50, 20].map(|most| share::of(10, most));
    assert!(
        outcomes.complete > complete && outcomes.after_retry > after_retry && outcomes.incomplete > incomplete,
        "{}",
        outcomes.words()
    );
}

#[test]
#[ignore = "minutes: part of make soak"]
fn ten_thousand_faulty_runs_are_right_or_reported() {
    let outcomes = hold(campaign::asked(1000..11_000));
    println!("rounds of 10,000 faulty runs: {}", outcomes.words());
    assert!(outcomes.after_retry > 1000 && outcomes.incomplete > 1000, "{}", outcomes.words());
}

/// One leaf's frame lost and its neighbour's repeated, in the same round.
const LOST_AND_REPEATED: &str = "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 4]\n[[armed.reduction]]\n\
     op = \"int-sum\"\n[[armed.fault]]\neffect = \"drop\"\nat = \"leaf1\"\nnth = 1\n[[armed.fault]]\neffect = \"duplicate\"\n\
     at = \"leaf2\"\nnth = 1\n";

#[test]
fn a_repeated_frame_is_removed_by_the_link_layer() {
    let document = text(LOST_AND_REPEATED);
    passed(&document);
    let of = round(&document, 0);
    assert_eq!((of.outcome.as_str(), of.attempts), ("after-retry", 2));
    assert_eq!(armed(&document).faults.as_ref().unwrap()["duplicates_removed"], 1);
}

#[test]
fn without_the_link_layers_check_a_loss_and_a_repetition_look_complete() {
    // The hole that counting leaves: the root sees a full count. The run's check sees it.
    let document = text(
        &LOST_AND_REPEATED
            .replace("[[armed.reduction]]", "[armed.link_layer]\nsequence_check = false\n[[armed.reduction]]"),
    );
    let of = round(&document, 0);
    assert_eq!((of.outcome.as_str(), of.attempts, of.counts.as_slice()), ("silent", 1, &[8][..]));
    assert!(of.fault.as_ref().unwrap().contains("entered"), "{of:?}");
    assert!(!document.passed());
}

#[test]
fn a_damaged_frame_is_dropped_or_sent_again_by_the_link() {
    let scenario = |layer: &str| {
        format!(
            "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 4]\n[armed.link_layer]\n{layer}\n[[armed.reduction]]\n\
             op = \"int-sum\"\n[[armed.fault]]\neffect = \"corrupt\"\nat = \"leaf5\"\nnth = 1\n"
        )
    };
    let document = text(&scenario(""));
    passed(&document);
    assert_eq!((round(&document, 0).outcome.as_str(), engines(&document, "damaged")), ("after-retry", 1));
    let document = text(&scenario("[link.reliability]"));
    passed(&document);
    assert_eq!((round(&document, 0).outcome.as_str(), engines(&document, "damaged")), ("complete", 0));
    assert!(armed(&document).faults.as_ref().unwrap()["replayed"].as_u64() > Some(0));
}

#[test]
fn an_engine_arms_from_no_damaged_frame() {
    // The first frame down, on its way into the lower engine. That counts it and stays free, and so do the leaves behind it; only
    // the second attempt arms.
    for layer in ["", "[armed.link_layer]\nsequence_check = false\n"] {
        let document = text(&format!(
            "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 4]\n{layer}[[armed.reduction]]\nop = \"int-sum\"\n\
             [[armed.fault]]\neffect = \"corrupt\"\nway = \"down\"\nat = \"s1\"\nnth = 0\n"
        ));
        passed(&document);
        let end_points = armed(&document).end_points["damaged"].as_u64();
        assert_eq!(
            (engines(&document, "damaged"), end_points),
            (1, Some(4)),
            "one engine, and the four leaves below it"
        );
        let clean = text(
            "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 4]\n[[armed.reduction]]\nop = \"int-sum\"\n",
        );
        // Of the three engines, the two that the first attempt reached arm once more than without the fault.
        assert_eq!(engines(&document, "armed"), engines(&clean, "armed") + 2);
    }
}

#[test]
fn a_leaf_that_misses_a_result_catches_up_with_the_retry() {
    // The result of round 0, which arms round 1, is lost on its way to one leaf.
    let document = text(
        "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 4]\n[[armed.reduction]]\nop = \"int-sum\"\nrounds = 3\n\
         [[armed.fault]]\neffect = \"drop\"\nway = \"down\"\nat = \"leaf3\"\nnth = 2\n",
    );
    passed(&document);
    let outcomes: Vec<&str> = (0..3).map(|number| round(&document, number).outcome.as_str()).collect();
    assert_eq!(outcomes, ["complete", "after-retry", "complete"]);
    assert_eq!(reduction(&document, "r0").untold, [""; 0]);
}

#[test]
fn a_result_that_never_reaches_a_leaf_is_known_there() {
    let document = text(
        "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 4]\n[[armed.reduction]]\nop = \"int-sum\"\n\
         [[armed.fault]]\neffect = \"drop\"\nway = \"down\"\nat = \"leaf3\"\nnth = 2\n",
    );
    passed(&document);
    assert_eq!(round(&document, 0).outcome, "incomplete");
    assert_eq!(reduction(&document, "r0").untold, ["leaf3"], "its patience is over: it knows that it has no result");
}

#[test]
fn lossy_links_are_survived_by_asking_again() {
    let document = shipped("lossy-links", &[]);
    passed(&document);
    let sum = reduction(&document, "sum");
    assert!(sum.outcomes.after_retry > 0 && sum.retries > 0);
    assert_eq!(sum.outcomes.silent, 0);
    let faults = armed(&document).faults.as_ref().unwrap();
    for what in ["dropped", "corrupted", "duplicates_removed", "delayed"] {
        assert!(faults[what].as_u64() > Some(0), "{what}");
    }
}

#[test]
fn a_second_tree_carries_on_when_a_switch_of_the_first_dies() {
    let document = shipped("two-trees", &[]);
    passed(&document);
    let sum = reduction(&document, "sum");
    assert_eq!(sum.multicast_ids.len(), 2);
    assert_eq!((sum.outcomes.complete, sum.outcomes.incomplete, sum.retries), (9, 0, 0), "without asking again");
    let one = shipped("two-trees", &["armed.reduction.0.redundant=false", "armed.reduction.0.max_retries=1"]);
    let outcomes = reduction(&one, "sum").outcomes;
    assert!(outcomes.incomplete > 0 && outcomes.silent == 0, "one tree alone does not survive it");
    assert!(outcomes.unstarted > 0 && !one.passed(), "and the rounds after that are not started");
}

#[test]
fn every_descriptor_is_free_again_after_its_time_out_whatever_died() {
    for at in ["s1", "top", "leaf9", "root0"] {
        for from in [0, 40, 90, 150, 400] {
            let document = text(&format!(
                "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [4, 4]\n[[armed.reduction]]\nop = \"int-sum\"\nrounds = 3\n\
                 reduction_ids = 2\nmax_retries = 1\n[[armed.fault]]\neffect = \"dead\"\nat = \"{at}\"\nfrom_cycle = {from}\n"
            ));
            assert_eq!(armed(&document).leaked, [""; 0], "{at} from {from}");
            assert_eq!(armed(&document).outcomes.silent, 0, "{at} from {from}");
            let leak = document.checks.iter().find(|check| check.name == "no descriptor leaked");
            assert!(leak.is_some_and(|check| check.passed), "{at} from {from}: {:?}", document.checks);
        }
    }
}
