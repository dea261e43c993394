//! Operations that end points compose: deterministic sums by a maximum first (description (48)), and means. What every node holds is
//! recomputed here from the operands, in other arithmetic than the model's or the oracle's.

use watershed::armed::Job;
use watershed::fabric::Step;
use watershed::scenario::armed::build::{ArmedBuild, BuildOptions, build};
use watershed::scenario::load_text;
use watershed::scenario::result::Document;
use watershed::scenario::run::{RunOptions, run};
use watershed::scenario::why::WhyQuery;

use crate::order_of_evaluation_changes_nothing::every_way;
use crate::share;
use crate::support::{armed, passed, reduction, refused, root, text};

fn scenario(topology: &str, op: &str, rest: &str) -> String {
    format!(
        "family = \"armed\"\n[topology]\n{topology}\n[link]\nlatency_cycles = 3\n\
         [armed.engine]\ntimeouts_1024_cycles = [1, 1, 1, 1]\n[[armed.reduction]]\nname = \"sum\"\nop = \"{op}\"\n{rest}\n"
    )
}

const TREE: &str = "kind = \"tree\"\nbranching = [3, 3]";

/// What a deterministic sum of these doubles is, by its definition, in scaled doubles and 128-bit integers.
fn deterministic(all: &[f64]) -> u64 {
    let most = all.iter().map(|x| (x.to_bits() >> 52 & 2047).max(1)).max().unwrap() as i32;
    assert!(most < 2047);
    let log = all.len().next_power_of_two().trailing_zeros() as i32;
    let shift = 62 - log - (most - 1022);
    // Twice half of the way: neither step overflows, and powers of two lose nothing above the subnormal numbers.
    let scaled = |x: f64| x * 2f64.powi(shift / 2) * 2f64.powi(shift - shift / 2);
    let sum: i128 = all.iter().map(|&x| scaled(x).round_ties_even() as i128).sum();
    let back = -shift;
    (sum as f64 * 2f64.powi(back / 2) * 2f64.powi(back - back / 2)).to_bits()
}

/// Operands of everybody in a round that was asked for, lane by lane.
fn operands(job: &Job, round: u32) -> [Vec<f64>; 4] {
    let quads: Vec<_> = (0..job.members.len() as u32).flat_map(|rank| job.inputs.of(rank, round)).collect();
    std::array::from_fn(|lane| quads.iter().map(|quad| f64::from_bits(quad.lanes[lane])).collect())
}

fn ran(scenario: &str) -> ArmedBuild {
    let loaded = load_text("test.toml", scenario, root(), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let mut ready = build(&loaded, BuildOptions { no_checks: true, ..BuildOptions::default() }).expect("it is sound");
    while ready.system.step_before(3_000_000) == Step::Ran {}
    ready
}

/// How many results nodes hold in the end, each of which is what `right` makes of its round's operands.
fn held(ready: &ArmedBuild, each: u32, right: impl Fn(&[f64]) -> u64) -> usize {
    let mut results = 0;
    let laid = &ready.reductions[0];
    let job = laid.job_of(&ready.system);
    let mut take = |data: u32, lanes: [u64; 4]| {
        if data % each == each - 1 {
            results += 1;
            let all = operands(job, data / each);
            assert_eq!(lanes, all.each_ref().map(|lane| right(lane)), "round {data}: {all:?}");
        }
    };
    for end in ready.system.ends() {
        for of in end.roots().iter().flat_map(watershed::armed::Root::rounds).filter(|of| of.token.is_some()) {
            of.round.data.into_iter().for_each(|data| take(data, of.quad.lanes));
        }
        for of in end.leaves().iter().flat_map(watershed::armed::Leaf::results) {
            of.round.data.into_iter().for_each(|data| take(data, of.quad.lanes));
        }
        end.softs().iter().flat_map(watershed::armed::Soft::results).for_each(|of| take(of.round, of.quad.lanes));
    }
    results
}

#[test]
fn deterministic_sums_are_what_the_definition_says_at_every_node() {
    let wide = "data = { random = \"normal\" }\nrounds = 12\ncompute_cycles = { random_max = 300 }\n";
    for (topology, rest, nodes) in [
        (TREE, "", 10),
        (TREE, "method = \"software\"\n", 10),
        (TREE, "opening_barrier = false\ncontributions_per_node = 3\nreduction_ids = 3\n", 10),
        ("kind = \"fat-tree\"\narity = 2\nlevels = 3", "redundant = true\nroot = 5\n", 8),
        ("kind = \"mesh\"\nsize = [4]\nconcentration = 2", "participants = [0, 3, 4]\nroot = 4\n", 3),
    ] {
        let text = scenario(topology, "flt-sum-deterministic", &format!("{wide}{rest}"));
        let document = every_way(&text, &[3]);
        passed(&document);
        let of = reduction(&document, "sum");
        let data = of.outcomes.complete - of.opening_rounds;
        assert_eq!((data, of.bit_exact), (12, Some(true)), "two rounds on the wire are one sum");
        let ready = ran(&text);
        assert_eq!(held(&ready, 2, deterministic), 12 * nodes, "{rest}");
    }
}

/// The only result of a document with one round that was asked for.
fn result(document: &Document) -> Vec<u64> {
    let round = &reduction(document, "sum").rounds;
    let last = round.iter().find(|round| round.round == Some(1)).expect("the second round has the sum");
    last.result.iter().map(|word| u64::from_str_radix(word, 16).unwrap()).collect()
}

/// A thousand orders, of which `make test` has a third.
#[test]
fn many_orders_of_arrival_give_one_deterministic_sum() {
    let rounds = share::of(3, 1000);
    let rest = format!(
        "rounds = {rounds}\ncompute_cycles = {{ random_max = 400 }}\ndata = {{ random = \"normal\", same_every_round = true }}\n"
    );
    let values = |op: &str| {
        let document = text(&scenario("kind = \"tree\"\nbranching = [4, 4]", op, &rest));
        passed(&document);
        let of = reduction(&document, "sum");
        (of.distinct_values, of.distinct[0].rounds)
    };
    assert_eq!(values("flt-sum-deterministic"), (1, rounds));
    assert!(values("flt-sum-near").0 > 5, "an ordinary sum depends on the order");
}

#[test]
fn trees_roots_and_ranks_change_no_bit_of_a_deterministic_sum() {
    let row = |x: f64| format!("[{x:?}, {:?}, {:?}, 1.0]", x * 1e-9, 1.0 / x);
    let values: Vec<f64> = (0..8).map(|at| (f64::from(at) - 3.3) * 10f64.powi(at - 4)).collect();
    let mut seen = Vec::new();
    for (topology, root, turned) in [
        ("kind = \"tree\"\nbranching = [7]", 7, 0),
        ("kind = \"mesh\"\nsize = [8]", 0, 3),
        ("kind = \"mesh\"\nsize = [2, 2]\nconcentration = 2", 5, 5),
        ("kind = \"fat-tree\"\narity = 2\nlevels = 3", 2, 6),
    ] {
        let rows: Vec<String> = (0..8).map(|at| row(values[(at + turned) % 8])).collect();
        let rest = format!(
            "root = {root}\ncompute_cycles = {{ random_max = 90 }}\ndata = {{ values = [{}] }}\n",
            rows.join(", ")
        );
        let document = text(&scenario(topology, "flt-sum-deterministic", &rest));
        passed(&document);
        seen.push(result(&document));
    }
    assert!(seen.iter().all(|result| *result == seen[0]), "{seen:x?}");
    assert_eq!(seen[0][0], deterministic(&values));
    assert_eq!(seen[0][3], 8f64.to_bits());
}

#[test]
fn infinities_nans_zeros_and_the_largest_numbers_have_their_sums() {
    let of = |lanes: [[&str; 4]; 4]| {
        let rows: Vec<String> =
            lanes.iter().map(|row| format!("[{}]", row.map(|x| format!("\"{x}\"")).join(", "))).collect();
        let rest = format!("data = {{ values = [{}] }}\n", rows.join(", "));
        let document = text(&scenario("kind = \"tree\"\nbranching = [3]", "flt-sum-deterministic", &rest));
        passed(&document);
        let rounds = &reduction(&document, "sum").rounds;
        let code = rounds.iter().find(|round| round.round == Some(1)).unwrap().code.clone();
        (result(&document).try_into().unwrap(), code)
    };
    let bits = |all: [f64; 4]| all.map(f64::to_bits);
    let (sums, code) = of([
        ["inf", "-inf", "-0.0", "1.0"],
        ["1.0", "2.0", "-0.0", "2.0"],
        ["inf", "0.0", "0.0", "3.0"],
        ["-5.0", "-inf", "-0.0", "4.0"],
    ]);
    assert_eq!((sums, code.as_str()), (bits([f64::INFINITY, f64::NEG_INFINITY, 0.0, 10.0]), "OK"));
    let (sums, code) = of([
        ["inf", "nan", "1e308", "0.0"],
        ["1.0", "2.0", "1e308", "0.0"],
        ["-inf", "inf", "1e308", "0.0"],
        ["0.0", "0.0", "0.0", "0.0"],
    ]);
    let nan = 0x7ff8 << 48;
    assert_eq!((sums, code.as_str()), ([nan, nan, f64::INFINITY.to_bits(), 0], "FLT_INVALID"));
    // Subnormal numbers are summed exactly; a small one beside a large one is rounded away, and the code says so.
    let (sums, code) = of([
        ["5e-324", "1e300", "1.0", "0.0"],
        ["5e-324", "1.0", "-1.0", "0.0"],
        ["5e-324", "0.0", "0.5", "0.0"],
        ["5e-324", "0.0", "0.0", "0.0"],
    ]);
    assert_eq!((sums, code.as_str()), ([4, 1e300f64.to_bits(), 0.5f64.to_bits(), 0], "FLT_INEXACT"));
}

#[test]
fn faults_make_no_deterministic_sum_wrong() {
    let base = "rounds = 6\nmax_retries = 3\nretry_after_cycles = 4000\ncompute_cycles = { random_max = 200 }\n";
    for (seed, rest) in (0..).zip([
        "[[armed.fault]]\neffect = \"drop\"\nat = \"all\"\nway = \"both\"\nprobability = 0.02\n",
        "reduction_ids = 3\n[[armed.fault]]\neffect = \"corrupt\"\nat = \"all\"\nway = \"both\"\nprobability = 0.02\n",
        "[[armed.fault]]\neffect = \"duplicate\"\nat = \"all\"\nway = \"both\"\nprobability = 0.2\n",
        "[[armed.fault]]\neffect = \"delay\"\nat = \"all\"\nway = \"up\"\nprobability = 0.1\ndelay_cycles = 1500\n",
    ]) {
        let text = format!("seed = {seed}\n{}", scenario(TREE, "flt-sum-deterministic", &format!("{base}{rest}")));
        let document = every_way(&text, &[seed]);
        let outcomes = armed(&document).outcomes;
        assert_eq!((outcomes.silent, outcomes.open), (0, 0), "{text}");
        assert!(outcomes.complete + outcomes.after_retry > 4, "{}", outcomes.words());
        held(&ran(&text), 2, deterministic);
    }
}

#[test]
fn a_maximum_that_failed_makes_the_sum_fail_with_it() {
    let rest = "rounds = 3\n[[armed.stranger]]\nend_point = 4\nreduction = \"sum\"\nwrong = \"op\"\nop = \"int-sum\"\n";
    let document = text(&scenario(TREE, "flt-sum-deterministic", rest));
    let of = reduction(&document, "sum");
    // The leaf is wrong in the maximum only: an int-sum is what the others send in the second round.
    assert_eq!(
        (of.outcomes.incomplete, of.outcomes.silent, of.outcomes.complete),
        (3, 0, 1),
        "{}",
        of.outcomes.words()
    );
    assert!(of.rounds.iter().filter(|round| round.round.is_some()).all(|round| round.code == "OP_MISMATCH"));
}

#[test]
fn a_mean_is_divided_once_by_all_contributions() {
    let mean = |all: &[f64]| (all.iter().sum::<f64>() / all.len() as f64).to_bits();
    for rest in ["", "contributions_per_node = 3\nreduction_ids = 2\n", "method = \"software\"\n", "redundant = true\n"]
    {
        // Small whole numbers: every order has the same sum.
        let text = scenario(
            "kind = \"fat-tree\"\narity = 2\nlevels = 2",
            "mean",
            &format!("rounds = 5\ndata = {{ random = \"integers\" }}\n{rest}"),
        );
        let document = every_way(&text, &[1]);
        passed(&document);
        assert_eq!(reduction(&document, "sum").bit_exact, Some(true));
        assert!(held(&ran(&text), 1, mean) >= 20, "{rest}");
    }
}

#[test]
fn a_deterministic_sum_takes_the_time_of_two_rounds() {
    let time = |op: &str| {
        let document = text(&scenario(TREE, op, "rounds = 20\nopening_barrier = false\ncompute_cycles = 0\n"));
        passed(&document);
        reduction(&document, "sum").latency_cycles.unwrap()
    };
    let (one, two) = (time("flt-sum-near"), time("flt-sum-deterministic"));
    assert!(two >= 2 * one - one / 20 && two <= 2 * one + one / 20, "{one} {two}");
}

#[test]
fn latencies_of_a_deterministic_sum_are_those_of_both_its_rounds() {
    // With one sum, and nobody who computes anything, all of the job is its latency, and `why` explains it whole.
    let rest = "opening_barrier = false\ncompute_cycles = { random_max = 80 }\n";
    let text = scenario(TREE, "flt-sum-deterministic", rest);
    let loaded = load_text("test.toml", &text, root(), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let options = RunOptions { why: Some(WhyQuery::default()), ..RunOptions::default() };
    let result = run(&loaded, &options).unwrap_or_else(|error| panic!("{error}"));
    let of = reduction(&result.document, "sum");
    let [maximum, sum] = &of.rounds[..] else { panic!("two rounds on the wire: {:?}", of.rounds) };
    let latency = of.round_latency_cycles.unwrap().max;
    assert!(latency >= maximum.latency_cycles.unwrap() + sum.latency_cycles.unwrap(), "{latency} {:?}", of.rounds);
    let why = &result.why[0];
    assert_eq!((why.number, why.since_last_contribution()), (0, Some(latency)), "{:?}", result.notes);
    assert_eq!(why.start_cycle, maximum.armed_cycle);
    assert_eq!(why.parts.iter().map(|part| part.to - part.from).sum::<u64>(), why.latency_cycles);
    // The last operands are those of whom it waits for first, by the nodes' own words.
    let ready = ran(&text);
    let entered = |data: u32| {
        let leaves =
            ready.system.ends().iter().flat_map(|end| end.leaves().iter().flat_map(watershed::armed::Leaf::results));
        leaves.filter(|of| of.round.data == Some(data)).map(|of| (of.entered, of.got)).max().unwrap()
    };
    let own = ready.system.ends().iter().flat_map(|end| end.roots()).map(|root| root.rounds()[0].own_ready).max();
    let last = entered(0).0.max(own.unwrap());
    let got = ready.system.ends().iter().flat_map(|end| end.leaves().iter().flat_map(watershed::armed::Leaf::results));
    assert_eq!(got.map(|of| of.got).max().unwrap() - last, latency);
}

#[test]
fn a_sum_whose_maximum_was_lost_is_one_incomplete_round() {
    let rest = "rounds = 4\nopening_barrier = false\nmax_retries = 0\nretry_after_cycles = 3000\n\
                [[armed.fault]]\neffect = \"drop\"\nat = \"leaf4\"\nnth = 2\n";
    let document = text(&scenario(TREE, "flt-sum-deterministic", rest));
    let of = reduction(&document, "sum");
    // The third frame of the leaf is that of the second maximum; after it, nothing of its flow is started.
    assert_eq!(
        (of.outcomes.complete, of.outcomes.incomplete, of.outcomes.unstarted),
        (1, 1, 2),
        "{}",
        of.outcomes.words()
    );
}

#[test]
fn composed_operations_are_no_opcodes_of_strangers() {
    let text = scenario(
        TREE,
        "mean",
        "[[armed.stranger]]\nend_point = 2\nreduction = \"sum\"\nwrong = \"op\"\nop = \"mean\"\n",
    );
    assert!(refused(&text).contains("armed.stranger[0].op"), "{}", refused(&text));
    assert!(refused(&scenario(TREE, "flt-sum-determinist", "")).contains("flt-sum-deterministic"));
}
