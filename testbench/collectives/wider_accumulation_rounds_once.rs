//! Narrow elements, summed in a wider type: are widening and the last rounding right in a real run, bit for bit and in the
//! flags, and what do they cost? (A-FMT-1, A-GOLD-1, P-AR-1, P-AR-2)

use watershed::scenario::run::{Flip, RunOptions};

use crate::sets;
use crate::share;
use crate::support::{ONE, UNLIMITED, die, latency, mesh, only, pass, run_with};

/// Elements, the types they can be summed in.
const PAIRS: [(&str, &str); 6] = [
    ("fp8_e4m3", "f16"),
    ("fp8_e4m3", "f32"),
    ("fp8_e5m2", "f16"),
    ("fp8_e5m2", "f32"),
    ("f16", "f32"),
    ("bf16", "f32"),
];

/// Every pair with every operation, rounding, result, length and kind of data; in `make test` one in five of these cases.
#[test]
fn every_pair_of_types_is_exact_in_bits_and_flags() {
    let mut raised = std::collections::BTreeSet::new();
    let mut cases = Vec::new();
    for (at, (dtype, wide)) in PAIRS.into_iter().enumerate() {
        for op in ["sum", "prod", "min", "max"] {
            for round in ["nearest-even", "toward-zero", "up", "down"] {
                for (result, kind) in [(dtype, "allreduce"), (wide, "reduce")] {
                    // No multiple of the lanes of either type, and once fewer elements than one wide word holds.
                    for elements in [1, 5, 19] {
                        for data in ["bits", "mixed"] {
                            let set = sets!["collective[0].dtype=\"{dtype}\""; "collective[0].accumulate=\"{wide}\""; "collective[0].result_dtype=\"{result}\"";
                                "collective[0].op=\"{op}\""; "collective[0].round=\"{round}\""; "collective[0].kind=\"{kind}\"";
                                "collective[0].data.random=\"{data}\""; "collective[0].elements={elements}"; "seed={at}"];
                            cases.push((result, elements, set));
                        }
                    }
                }
            }
        }
    }
    for (result, elements, set) in share::one_in(5, cases) {
        let text = if elements == 19 { mesh(&[3, 2], 2, ONE) } else { die(ONE) };
        let document = pass(&text, &set);
        let found = only(&document);
        assert_eq!(found.bit_exact, Some(true), "{set:?}");
        assert_eq!((&found.results, &found.flags), (&found.oracle, &found.oracle_flags), "{set:?}");
        assert_eq!(found.results.len(), elements);
        let bits = if result == "f32" {
            32
        } else if result.ends_with("16") {
            16
        } else {
            8
        };
        assert!(found.results.iter().all(|pattern| pattern.len() == bits / 4), "{:?}", found.results);
        raised.extend(found.flags.clone());
    }
    assert!(raised.iter().eq(["inexact", "invalid", "overflow", "underflow"]), "{raised:?}");
}

/// 2048 of one core and 1 of seven others: half precision loses the ones on the way, a wide sum does not.
#[test]
fn what_narrow_sums_lose_wide_ones_keep() {
    let ones = ["[1]"; 7].join(", ");
    let data = format!("collective[0].data={{ values = [[2048], {ones}] }}");
    let base = [data, "collective[0].dtype=\"f16\"".to_owned()];
    let run = |more: &[&str]| {
        let set: Vec<String> = base.iter().cloned().chain(more.iter().map(ToString::to_string)).collect();
        let document = pass(&die(ONE), &set);
        (only(&document).results.clone(), only(&document).flags.clone())
    };
    // (2048 + 1) stays 2048; + (1 + 1) = 2050; + 4 = 2054
    assert_eq!(run(&[]), (vec!["6803".to_owned()], vec!["inexact".to_owned()]));
    let wide = "collective[0].accumulate=\"f32\"";
    // 2055 lies between 2054 and 2056: to even.
    assert_eq!(run(&[wide]), (vec!["6804".to_owned()], vec!["inexact".to_owned()]));
    assert_eq!(run(&[wide, "collective[0].round=\"down\""]), (vec!["6803".to_owned()], vec!["inexact".to_owned()]));
    assert_eq!(
        run(&[wide, "collective[0].result_dtype=\"f32\""]),
        (vec!["45007000".to_owned()], vec![]),
        "2055 exactly"
    );
}

#[test]
fn a_signalling_nan_and_an_overflow_of_the_last_rounding_are_reported() {
    let run = |first: &str, second: &str, wide: &str| {
        let set = sets!["collective[0].participants=[0, 5]"; "collective[0].dtype=\"fp8_e5m2\""; "collective[0].accumulate=\"{wide}\"";
            "collective[0].data={{ values = [[\"{first}\"], [\"{second}\"]] }}"];
        let document = pass(&die(ONE), &set);
        (only(&document).results[0].clone(), only(&document).flags.join(" "))
    };
    assert_eq!(run("0x7d", "0x3c", "f16"), ("7e".to_owned(), "invalid".to_owned()), "signalling NaN, 1");
    assert_eq!(run("0x7b", "0x7b", "f32"), ("7c".to_owned(), "overflow inexact".to_owned()), "57344 twice");
    assert_eq!(run("0x7b", "0xfb", "f32"), ("00".to_owned(), String::new()));
}

/// Words of wide lanes stream one a cycle, whatever the elements are.
#[test]
fn the_network_carries_wide_lanes() {
    for (dtype, wide, elements_a_cycle) in
        [("f16", "f32", 2), ("bf16", "f32", 2), ("fp8_e4m3", "f16", 4), ("fp8_e5m2", "f32", 2)]
    {
        let cycles = |elements: u64| {
            let set = sets!["{UNLIMITED}"; "collective[0].dtype=\"{dtype}\""; "collective[0].accumulate=\"{wide}\""; "collective[0].elements={elements}"];
            latency(&die(ONE), &set)
        };
        assert_eq!(cycles(4000) - cycles(2000), 2000 / elements_a_cycle, "{dtype} in {wide}");
    }
}

/// At 51.2 Gb/s and 1 GHz a core moves 0.8 words a cycle. Four halves are one word to read; their result is one word to
/// write if it is rounded, and two if it stays wide.
#[test]
fn memory_is_paid_for_what_is_stored() {
    let cycles = |result: &str, elements: u64| {
        let set = sets!["collective[0].dtype=\"f16\""; "collective[0].accumulate=\"f32\""; "collective[0].result_dtype=\"{result}\"";
            "collective[0].elements={elements}"];
        latency(&die(ONE), &set)
    };
    // words x 10 / 8 for each four elements: 2.5 cycles (more than the two of the network), and 3.75
    assert_eq!(cycles("f16", 6400) - cycles("f16", 3200), 800 * 10 / 4);
    assert_eq!(cycles("f32", 6400) - cycles("f32", 3200), 800 * 15 / 4);
}

#[test]
fn a_flipped_bit_of_a_wide_sum_is_found_where_it_arose() {
    let set = sets!["collective[0].dtype=\"bf16\""; "collective[0].accumulate=\"f32\""; "collective[0].elements=9"; "collective[0].root=\"sw4\""];
    let flip = Flip { switch: "sw4", id: 0, word: 3, mask: 1 << 62 };
    let options = RunOptions { flip: Some(flip), ..RunOptions::default() };
    let document = run_with(&die(ONE), &set, &options).document;
    assert!(!document.passed());
    let found = only(&document);
    let difference = found.first_difference.as_ref().expect("a difference");
    // Word 3 of the network is elements 6 and 7; the bit is in the upper lane.
    assert_eq!((difference.element, difference.node.as_str()), (7, "sw4.ceng"));
    assert_eq!(found.exact_elements, 8);
}

/// The fragmenter sends what it widens without asking the memory again, and must wake for it: skipping idle blocks and the
/// order of evaluation change no cycle, whatever the memory, two collectives at one core included.
#[test]
fn skipping_and_order_change_no_cycle() {
    let two = "[[collective]]\nkind = \"allreduce\"\ndtype = \"fp8_e5m2\"\naccumulate = \"f32\"\nelements = 45\n\
               [[collective]]\nkind = \"allreduce\"\nid = 1\ndtype = \"bf16\"\naccumulate = \"f32\"\nelements = 23\n";
    for memory in ["memory.bandwidth_gbps=51.2", "memory.bandwidth_gbps=3.1", UNLIMITED] {
        for (read, write, delay, result) in [(0, 0, 0, "fp8_e5m2"), (7, 3, 11, "f32"), (1, 0, 2, "fp8_e5m2")] {
            let set = sets!["{memory}"; "memory.read_latency_cycles={read}"; "memory.write_latency_cycles={write}"; "checks.claims=true";
                "collective[0].delay_cycles={{ random_max = {delay} }}"; "collective[0].result_dtype=\"{result}\""];
            let run = |no_skip, order_seed| {
                let options = RunOptions { no_skip, order_seed, ..RunOptions::default() };
                let document = run_with(&die(two), &set, &options).document;
                assert!(document.passed(), "{set:?} {:#?}", document.checks);
                document
            };
            let plain = run(false, None);
            assert_eq!(plain, run(true, None), "{set:?}");
            assert_eq!(plain, run(false, Some(5)), "{set:?}");
        }
    }
}
