//! Many rounds, pipelined reductions, several contributions a node.

use crate::share;
use crate::support::{armed, engines, passed, reduction, round, shipped, text};

/// Five thousand rounds in `make soak`; in `make test` as many as it takes to begin anew twice.
#[test]
fn many_rounds_wrap_the_sequence_number_and_stay_right() {
    let rounds = if share::is_whole() { 5000 } else { 1100 };
    let document = shipped("many-rounds", &[&format!("armed.reduction.0.rounds={rounds}")]);
    passed(&document);
    let sum = reduction(&document, "sum");
    assert_eq!((sum.outcomes.complete, sum.retries, sum.distinct.len()), (rounds + 1, 0, 1));
    // From number 1000 on, modulo 1023.
    assert_eq!(engines(&document, "stale") + engines(&document, "passed"), 0);
    assert_eq!(armed(&document).root_discards, [0, 0]);
}

#[test]
fn the_reserved_number_is_left_out() {
    let document = shipped("many-rounds", &["armed.reduction.0.rounds=12", "armed.reduction.0.first_seqno=1015"]);
    let numbers: Vec<u16> = armed(&document).reductions[0].rounds.iter().map(|round| round.seqno).collect();
    assert_eq!(numbers, [1015, 1016, 1017, 1018, 1019, 1020, 1021, 1022, 0, 1, 2, 3, 4]);
}

#[test]
fn eight_reductions_on_one_tree_overlap() {
    let scenario = |ids: u32| {
        format!(
            "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [4, 4]\n[[armed.reduction]]\nop = \"flt-sum-near\"\n\
             rounds = 16\nreduction_ids = {ids}\ncompute_cycles = 1000"
        )
    };
    let (one, eight) = (text(&scenario(1)), text(&scenario(8)));
    passed(&one);
    passed(&eight);
    assert_eq!(armed(&eight).reductions[0].outcomes.complete, 16 + 8);
    assert_eq!(engines(&eight, "most_active"), 8);
    assert!(eight.cycles * 4 < one.cycles, "{} against {} cycles", eight.cycles, one.cycles);
    // Whichever id a round had, its result is the same.
    assert_eq!(round(&one, 3).result, round(&eight, 3).result);
}

#[test]
fn a_node_reduces_its_own_contributions_first() {
    let rows: Vec<String> = (0..5 * 3).map(|k| format!("[{}, 1, {k}, 0]", 1 << k)).collect();
    let document = text(&format!(
        "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 2]\n[[armed.reduction]]\nop = \"int-sum\"\n\
         contributions_per_node = 3\n[armed.reduction.data]\nvalues = [{}]",
        rows.join(", ")
    ));
    passed(&document);
    let of = round(&document, 0);
    assert_eq!(of.counts, [4], "one contribution a node");
    let lanes = [(1u64 << 15) - 1, 15, 14 * 15 / 2, 0].map(|lane| format!("{lane:016x}"));
    assert_eq!(of.result, lanes);
}

#[test]
fn measured_compute_times_are_used_row_by_row() {
    let document = text(
        "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [3]\n[[armed.reduction]]\nop = \"int-sum\"\nrounds = 2\n\
         compute_cycles = [[0, 0], [100, 2000], [300, 10], [20, 700]]",
    );
    passed(&document);
    let span = |number| {
        let round = round(&document, number);
        round.end_cycle.unwrap() - round.armed_cycle
    };
    assert_eq!(span(1) - span(0), 2000 - 300, "the slowest decides");
}

/// In one other order in `make test`, in three in `make soak`.
#[test]
fn the_order_of_evaluation_and_skipping_idle_cycles_change_nothing() {
    use watershed::scenario::load_file;
    use watershed::scenario::run::{RunOptions, run};
    for name in ["lossy-links", "more-than-descriptors", "two-trees", "interference"] {
        let path = crate::support::root().join(format!("testbench/armed/{name}.toml"));
        let short = ["armed.reduction.0.rounds=6", "armed.reduction.0.retry_after_cycles=4000"].map(String::from);
        let loaded = load_file(&path, &short).unwrap_or_else(|problems| panic!("{problems}"));
        let of = |options: RunOptions<'_>| run(&loaded, &options).unwrap_or_else(|error| panic!("{error}")).document;
        let plain = of(RunOptions::default());
        for seed in share::one_in(3, 0..3) {
            assert_eq!(
                of(RunOptions { order_seed: Some(seed), ..RunOptions::default() }),
                plain,
                "{name}, order {seed}"
            );
        }
        assert_eq!(of(RunOptions { no_skip: true, ..RunOptions::default() }), plain, "{name}, every cycle");
    }
}

#[test]
fn a_time_out_of_twenty_seconds_costs_nothing() {
    let document =
        shipped("fig2-tree", &["armed.engine.timeouts_1024_cycles=[16777215, 16777215, 16777215, 16777215]"]);
    passed(&document);
    assert!(document.cycles < 1000, "{}", document.cycles);
}

#[test]
#[ignore = "minutes: part of make soak"]
fn the_largest_system_of_the_issue_runs() {
    let document = text(
        "family = \"armed\"\n[clock]\nfrequency_mhz = 850\n[topology]\nkind = \"fat-tree\"\narity = 16\nlevels = 3\n\
         [[armed.reduction]]\nop = \"flt-sum-near\"\nrounds = 100\ncompute_cycles = { random_max = 500 }\n\
         data = { random = \"normal\", same_every_round = true }",
    );
    passed(&document);
    assert_eq!(armed(&document).reductions[0].outcomes.complete, 101);
}

#[test]
fn local_contributions_take_the_time_of_the_unit() {
    let first = |per_node: u32, stages: u32| {
        let document = text(&format!(
            "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [4]\n[armed.engine]\nstages = {stages}\n\
             [[armed.reduction]]\nop = \"int-sum\"\nopening_barrier = false\ncontributions_per_node = {per_node}\n"
        ));
        passed(&document);
        reduction(&document, "r0").start_cycle.unwrap()
    };
    assert_eq!(first(5, 3) - first(1, 3), 4 * 3);
    assert_eq!(first(9, 6) - first(1, 6), 8 * 6);
}
