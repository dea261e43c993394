//! R-EX-1 to R-EX-10, R-FIG-1: what the source says of its figures comes out of the cycle-level run.

use watershed::scenario::result::Document;

use crate::share;
use crate::support::{armed, engines, passed, reduction, round, shipped, text};

fn counts(document: &Document, number: u32) -> Vec<u32> {
    round(document, number).counts.clone()
}

#[test]
fn fig2_the_root_gets_one_frame_with_count_16() {
    let document = shipped("fig2-tree", &[]);
    passed(&document);
    for number in 0..2 {
        assert_eq!(counts(&document, number), [16]);
        assert_eq!(round(&document, number).outcome, "complete");
    }
    // Three rounds, the opening included: sixteen frames at leaf switches and four at the root switch in each.
    assert_eq!(engines(&document, "merged"), 3 * (16 + 4));
    assert_eq!((engines(&document, "passed"), engines(&document, "completed")), (0, 3 * 5));
    assert_eq!(engines(&document, "armed"), 3 * 5);
}

#[test]
fn an_unbalanced_tree_waits_for_what_is_below() {
    // Five participants: three below one leaf switch, one below another; the root at a third.
    let document =
        shipped("fig2-tree", &["armed.reduction.0.participants=[0, 1, 2, 7, 12]", "armed.reduction.0.root=12"]);
    passed(&document);
    assert_eq!(counts(&document, 0), [4]);
    // The engine of a leaf switch with one leaf passes on a count of 1 as well: it waits for one.
    assert_eq!(engines(&document, "merged"), 3 * (3 + 1 + 2 + 1));
}

#[test]
fn fig4_a_late_leaf_gives_three_outcomes_by_the_time_outs() {
    // Graded: the leaf switch gives up at 3, the root switch waits for the late one.
    let document = shipped("fig4-late-leaf", &[]);
    passed(&document);
    assert_eq!(counts(&document, 0), [16]);
    assert_eq!((engines(&document, "expired"), engines(&document, "passed")), (1, 1));
    // Sixteen frames of the opening and its four; fifteen at leaf switches; 4, 4, 4, 3 and 1 at the root switch.
    assert_eq!(engines(&document, "merged"), 20 + 15 + 5);
    // Longer at the root by more than two link latencies, but not long enough for the late one.
    let document = shipped("fig4-longer-at-root", &[]);
    passed(&document);
    assert_eq!(counts(&document, 0), [15, 1]);
    assert_eq!((engines(&document, "expired"), engines(&document, "passed")), (2, 2));
    // Truly equal: the root switch was armed first and gives up first.
    let document = shipped("fig4-equal-timeouts", &[]);
    passed(&document);
    assert_eq!(counts(&document, 0), [12, 3, 1]);
    assert_eq!((engines(&document, "expired"), engines(&document, "passed")), (2, 1 + 1 + 1));
}

#[test]
fn fig5_the_root_knows_that_one_is_missing() {
    let document = shipped("fig5-dead-leaf", &[]);
    passed(&document);
    let of = round(&document, 0);
    assert_eq!((of.counts.as_slice(), of.attempts, of.outcome.as_str()), (&[15][..], 2, "incomplete"));
    assert_eq!(of.missing, ["leaf6"], "the run's report knows the name, the root only the number");
    let document = shipped("fig5-two-frames", &[]);
    passed(&document);
    assert_eq!(counts(&document, 0), [12, 3]);
    assert_eq!(round(&document, 0).missing, ["leaf6"]);
}

#[test]
fn fig6_a_switch_without_an_engine_changes_time_only() {
    let with = shipped("fig6-no-engine", &["armed.engine.unavailable=[]"]);
    let without = shipped("fig6-no-engine", &[]);
    passed(&without);
    assert_eq!(counts(&without, 0), [16]);
    // The opening and one round: twelve at three leaf switches, and seven frames at the root switch.
    assert_eq!(engines(&without, "merged"), 2 * (12 + 7));
    assert_eq!((engines(&without, "passed"), engines(&without, "no_descriptor")), (2 * 4, 2));
    assert_eq!(armed(&with).outcomes, armed(&without).outcomes);
}

#[test]
fn an_engine_that_is_missing_or_late_never_changes_an_order_free_result() {
    for op in [
        "and",
        "or",
        "xor",
        "int-min",
        "int-max",
        "int-minmaxloc",
        "int-sum",
        "flt-min",
        "flt-max",
        "flt-minmaxloc",
        "flt-minnum",
        "flt-maxnum",
        "flt-minmaxnumloc",
        "flt-repsum",
    ] {
        let op = format!("armed.reduction.0.op={op}");
        let data = "armed.reduction.0.data={ random = \"bits\" }";
        let results: Vec<Vec<String>> = [
            ("fig2-tree", vec!["armed.reduction.0.rounds=1"]),
            ("fig6-no-engine", vec![]),
            ("fig4-late-leaf", vec![]),
            ("all-time-out", vec![]),
        ]
        .into_iter()
        .map(|(name, mut overrides)| {
            overrides.extend([op.as_str(), data]);
            let document = shipped(name, &overrides);
            passed(&document);
            assert_eq!(round(&document, 0).outcome, "complete", "{name} {op}");
            round(&document, 0).result.clone()
        })
        .collect();
        // Which NaN payload survives may depend on the order; of the others nothing may.
        if !op.contains("flt-m") {
            assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{op}: {results:?}");
        }
    }
}

#[test]
fn when_all_time_out_every_frame_reaches_the_root() {
    let document = shipped("all-time-out", &[]);
    passed(&document);
    assert_eq!(counts(&document, 0), [1; 16]);
    assert_eq!(engines(&document, "expired_empty"), 5, "expiry with nothing sends nothing");
    assert_eq!(engines(&document, "expired"), 0);
}

#[test]
fn a_process_mesh_is_two_roots_of_p_plus_one_trees() {
    let document = shipped("process-mesh", &[]);
    passed(&document);
    let reductions = &armed(&document).reductions;
    assert_eq!(reductions.len(), 2 * 4 + 1);
    for reduction in reductions {
        assert_eq!(reduction.outcomes.complete, 5, "{}", reduction.name);
        assert_eq!(reduction.bit_exact, Some(true), "{}", reduction.name);
    }
    // Rows are below one leaf switch each: their trees do not meet, and all have the same multicast id.
    let ids: Vec<u16> = (0..4).map(|row| reductions[row].multicast_ids[0]).collect();
    assert_eq!(ids, [0; 4]);
}

/// A thousand orders in `make soak`, a quarter of them in `make test`.
#[test]
fn many_orders_give_several_sums_and_one_reproducible_sum() {
    let rounds = share::of(4, 1000);
    let elements = [format!("job.0.elements={}", 4 * rounds), format!("job.1.elements={rounds}")];
    let document = shipped("order-sum", &elements.each_ref().map(String::as_str));
    passed(&document);
    let sum = reduction(&document, "sum");
    assert!(sum.distinct_values > 10, "{}", sum.distinct_values);
    assert!(sum.distinct.iter().any(|distinct| distinct.ulps > Some(0)), "with their distance in ulps");
    let reproducible = reduction(&document, "reproducible");
    assert_eq!((reproducible.distinct_values, reproducible.distinct[0].rounds), (1, rounds));
}

#[test]
fn fig3_nobody_leaves_the_barrier_before_all_have_entered() {
    let document = shipped("barrier-tree", &[]);
    passed(&document);
    let barrier = reduction(&document, "barrier");
    assert_eq!(barrier.outcomes.complete, 5);
    // From the last entering to the last leaving; it would be negative, and so 0, if somebody left too early.
    assert!(barrier.round_latency_cycles.unwrap().min > 0);
    for number in 0..4 {
        assert_eq!(round(&document, number).result, ["0000000000000000"; 4], "barriers return 0");
        assert_eq!(counts(&document, number), [64]);
    }
}

#[test]
fn nobody_leaves_the_barrier_while_one_is_on_the_way() {
    // The frame of one leaf to the opening barrier is held up for longer than all time-outs: the root has the others' in pieces.
    let late = 3000;
    let scenario = format!(
        "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 2]\n[armed.engine]\ntimeouts_1024_cycles = [1, 1, 1, 1]\n\
         [[armed.reduction]]\nop = \"int-sum\"\nrounds = 1\nretry_after_cycles = 9000\n\
         [[armed.fault]]\neffect = \"delay\"\nat = \"leaf3\"\nway = \"up\"\nnth = 0\ndelay_cycles = {late}\n"
    );
    let document = text(&scenario);
    passed(&document);
    let rounds = &reduction(&document, "r0").rounds;
    let opening = rounds.iter().find(|round| round.round.is_none()).expect("it is listed: it came in pieces");
    assert!(opening.counts.len() > 1 && opening.counts.iter().sum::<u32>() == 4, "{:?}", opening.counts);
    assert!(opening.end_cycle.unwrap() > late, "the root waits for the last one");
    let data = rounds.iter().find(|round| round.round == Some(0)).expect("it is listed");
    assert!(data.armed_cycle > late && data.outcome == "complete");
}

#[test]
fn minnum_depends_on_the_order_in_ieee_mode_only() {
    let (one, two, nan) = ("3ff0000000000000", "4000000000000000", "7ff8000000000000");
    let document = shipped("minnum-ieee", &[]);
    passed(&document);
    let mut values: Vec<&str> =
        reduction(&document, "minimum").distinct.iter().map(|distinct| distinct.result[0].as_str()).collect();
    values.sort_unstable();
    assert_eq!(values, [one, two, nan]);
    let document = shipped("minnum-associative", &[]);
    passed(&document);
    let distinct = &reduction(&document, "minimum").distinct;
    assert_eq!((distinct.len(), distinct[0].result[0].as_str()), (1, one));
    assert_eq!(distinct[0].codes, ["FLT_INVALID"]);
}

#[test]
fn a_signalling_nans_payload_survives_in_engines_and_software_if_asked() {
    let scenario = |policy: &str, method: &str| {
        let row = |word: &str| format!("[{}]", vec![format!("\"{word}\""); 4].join(", "));
        format!(
            "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2]\n[armed.engine]\n{policy}[[armed.reduction]]\n\
             op = \"flt-max\"\nmethod = \"{method}\"\n[armed.reduction.data]\nvalues = [{}, {}, {}]\n",
            row("0x3ff0000000000000"),
            row("0x7ff8000000000011"),
            row("0xfff0000000000022"),
        )
    };
    // In engines, at the root where no engine is in service, and between ranks.
    for (method, engines) in [("engines", ""), ("engines", "unavailable = [\"top\"]\n"), ("software", "")] {
        let document = text(&scenario(engines, method));
        passed(&document);
        assert_eq!(round(&document, 0).result, ["7ff8000000000000"; 4], "{method}: the default NaN");
        let document = text(&scenario(&format!("nan = \"propagate\"\n{engines}"), method));
        assert_eq!(counts(&document, 0).len(), if method == "software" || !engines.is_empty() { 2 } else { 1 });
        // The check walks the same merges with the oracle.
        passed(&document);
        assert_eq!(round(&document, 0).result, ["7ff8000000000022"; 4], "{method}: quieted, without a sign");
        assert_eq!(round(&document, 0).code, "FLT_INVALID", "{method}");
    }
}

#[test]
fn more_reductions_than_descriptors_are_reduced_higher_up_and_all_right() {
    let few = shipped("more-than-descriptors", &[]);
    passed(&few);
    assert!(engines(&few, "no_descriptor") > 0);
    assert_eq!(engines(&few, "most_active"), 8);
    let many = shipped("more-than-descriptors", &["armed.engine.descriptors=16"]);
    passed(&many);
    assert_eq!(engines(&many, "no_descriptor"), 0);
    let lowest = |document: &Document, name| reduction(document, name).merged_at[0].share;
    assert!(lowest(&many, "first") > 0.999, "enough descriptors: all at the leaf switches");
    let shares: f64 = reduction(&few, "second").merged_at.iter().map(|share| share.share).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    assert!(lowest(&few, "first").min(lowest(&few, "second")) < 1.0, "some are merged higher up");
}

#[test]
fn engines_are_several_times_faster_than_software_on_the_same_fabric() {
    let document = shipped("against-software", &[]);
    passed(&document);
    let mean = |name| reduction(&document, name).round_latency_cycles.unwrap().mean;
    let ratio = mean("software") / mean("engines");
    assert!((4.0..15.0).contains(&ratio), "the source says about ten: {ratio}");
}

#[test]
fn a_refused_job_reduces_in_software_and_says_so() {
    let document = shipped("table-full", &[]);
    passed(&document);
    let second = reduction(&document, "second");
    assert_eq!(second.method, "software");
    assert!(second.refused.as_ref().unwrap().contains("the multicast table of top is full: all 1 entries"));
    assert_eq!((second.outcomes.complete, second.bit_exact), (2, Some(true)));
    assert_eq!(reduction(&document, "first").method, "engines");
}

#[test]
fn ethernet_nics_get_the_same_bits_some_cycles_later() {
    let with = shipped("ethernet-nics", &[]);
    let without = shipped("ethernet-nics", &["armed.ethernet=[]"]);
    passed(&with);
    passed(&without);
    for number in 0..3 {
        assert_eq!(round(&with, number).result, round(&without, number).result);
    }
    let latency = |document: &Document| armed(document).reductions[0].round_latency_cycles.unwrap().min;
    assert!(latency(&with) > latency(&without));
}

#[test]
fn the_recommended_time_out_is_offered_as_a_hint() {
    // One leaf 5000 cycles late in the only data round, which is armed about 144 cycles after the opening.
    let document = shipped("fig4-longer-at-root", &[]);
    assert_eq!(reduction(&document, "sum").timeout_hint_1024_cycles, Some((144 + 2 * 5000_u64).div_ceil(1024)));
    let with = shipped("fig4-longer-at-root", &["armed.engine.timeouts_1024_cycles=[10, 10, 10, 10]"]);
    passed(&with);
    assert_eq!(counts(&with, 0), [16], "with it nobody gives up");
}
