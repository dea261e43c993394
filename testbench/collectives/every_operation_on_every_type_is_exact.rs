//! Every operation on every type, with NaN, infinities and denormals among the data: bits and flags are the oracle's
//! (A-GOLD-1, P-SW-3, P-COL-1, P-EMB-2).

use crate::sets;
use crate::share;
use crate::support::{Draw, ONE, die, mesh, only, pass};

const ROUNDS: [&str; 4] = ["nearest-even", "toward-zero", "up", "down"];

/// Every type.
const TYPES: [&str; 11] = ["i32", "u32", "i64", "u64", "f16", "bf16", "tf32", "f32", "f64", "fp8_e4m3", "fp8_e5m2"];

fn is_float(dtype: &str) -> bool {
    !dtype.starts_with(['i', 'u'])
}

fn operations(dtype: &str) -> &'static [&'static str] {
    if is_float(dtype) {
        &["sum", "prod", "min", "max"]
    } else {
        &["sum", "prod", "min", "max", "and", "or", "xor", "nand", "nor", "xnor"]
    }
}

/// Runs; asserts bits, flags, and that every check of the document says so.
fn exact(text: &str, set: &[String]) -> Vec<String> {
    let document = pass(text, set);
    let found = only(&document);
    assert_eq!(found.bit_exact, Some(true), "{set:?}");
    assert_eq!(found.results, found.oracle, "{set:?}");
    assert_eq!(found.flags, found.oracle_flags, "{set:?}");
    assert_eq!(found.exact_elements, found.elements);
    found.flags.clone()
}

/// On two systems with two kinds of data; in `make test` one in three of these cases, each operation of each type among them.
#[test]
fn all_operations_types_and_rounding_modes() {
    let mut raised = std::collections::BTreeSet::new();
    let systems = [(die(ONE), 3), (mesh(&[3, 2], 2, ONE), 4)];
    let mut cases = Vec::new();
    for dtype in TYPES {
        for op in operations(dtype) {
            for round in if is_float(dtype) { &ROUNDS[..] } else { &ROUNDS[..1] } {
                for (text, seed) in &systems {
                    for data in ["bits", "mixed"] {
                        let set = sets!["collective[0].dtype=\"{dtype}\""; "collective[0].op=\"{op}\""; "collective[0].round=\"{round}\"";
                            "collective[0].data.random=\"{data}\""; "collective[0].elements=17"; "seed={seed}"];
                        cases.push((text, set));
                    }
                }
            }
        }
    }
    for (text, set) in share::one_in(3, cases) {
        raised.extend(exact(text, &set));
    }
    let all = ["inexact", "int_overflow", "invalid", "overflow", "underflow"];
    assert!(raised.iter().eq(all), "every flag was raised by some operation: {raised:?}");
}

#[test]
fn one_element_and_odd_numbers_fill_their_lanes() {
    for dtype in TYPES {
        for elements in [1, 2, 3, 7, 33] {
            let set = sets!["collective[0].dtype=\"{dtype}\""; "collective[0].elements={elements}"; "collective[0].data.random=\"bits\""];
            let document = pass(&die(ONE), &set);
            assert_eq!(only(&document).results.len(), elements);
            exact(&die(ONE), &set);
        }
    }
}

#[test]
fn the_padding_of_a_half_filled_word_raises_no_flag() {
    // One f32 in a word: the other lane is +0 everywhere, and zero plus zero is exact.
    let rows = ["[\"0x3f800000\"]"; 8].join(", ");
    let set =
        sets!["collective[0].dtype=\"f32\""; "collective[0].elements=1"; "collective[0].data={{ values = [{rows}] }}"];
    let document = pass(&die(ONE), &set);
    assert_eq!(only(&document).results, ["41000000"], "eight ones");
    assert!(only(&document).flags.is_empty());
}

#[test]
fn sums_are_what_ordinary_arithmetic_says() {
    // An oracle beside the oracle: wrapping integer sums do not depend on the tree.
    let rows: Vec<Vec<u64>> =
        (0..8u64).map(|row| (0..5u64).map(|at| ((row + 1) * 0x1234_5678_9abc_def1) ^ (at << 40)).collect()).collect();
    let text = rows
        .iter()
        .map(|row| format!("[{}]", row.iter().map(|word| format!("\"{word:#x}\"")).collect::<Vec<_>>().join(", ")));
    let text = text.collect::<Vec<_>>().join(", ");
    for (op, fold) in [
        ("sum", u64::wrapping_add as fn(u64, u64) -> u64),
        ("prod", u64::wrapping_mul),
        ("xor", |a, b| a ^ b),
        ("max", u64::max),
    ] {
        let set = sets!["collective[0].dtype=\"u64\""; "collective[0].op=\"{op}\""; "collective[0].elements=5"; "collective[0].data={{ values = [{text}] }}"];
        let expected: Vec<String> =
            (0..5).map(|at| format!("{:016x}", rows.iter().map(|row| row[at]).reduce(fold).unwrap())).collect();
        assert_eq!(only(&pass(&die(ONE), &set)).results, expected, "{op}");
    }
}

#[test]
fn random_subsets_with_random_roots_on_dies_and_meshes() {
    let mut draw = Draw(2024);
    for round in 0..150u64 {
        let (text, ends, roots): (String, u64, Vec<String>) = if round % 2 == 0 {
            (die(ONE), 8, (0..8).map(|core| format!("core{core}")).chain((0..8).map(|sw| format!("sw{sw}"))).collect())
        } else {
            let (x, y, c) = (1 + draw.below(4) as u32, 1 + draw.below(4) as u32, 1 + draw.below(2) as u32);
            let roots = (0..x).flat_map(|at| (0..y).map(move |other| format!("s{at}_{other}"))).collect();
            (mesh(&[x, y], c, ONE), u64::from(x * y * c), roots)
        };
        let participants = draw.subset(ends);
        let kinds: &[&str] =
            if participants.len() > 1 { &["allreduce", "reduce", "broadcast", "barrier"] } else { &["allreduce"] };
        let kind = kinds[draw.below(kinds.len() as u64) as usize];
        let mut set = sets!["seed={round}"; "collective[0].participants={participants:?}"; "switch.pipeline_stages={}", 1 + draw.below(4);
            "switch.ceng.stages={}", 1 + draw.below(6); "collective[0].kind=\"{kind}\""];
        let dtype = TYPES[draw.below(11) as usize];
        if kind != "barrier" {
            set.extend(sets!["collective[0].elements={}", 1 + draw.below(20); "collective[0].dtype=\"{dtype}\""; "collective[0].data.random=\"bits\""]);
        }
        if kind == "broadcast" {
            set.push(format!("collective[0].source={}", draw.below(participants.len() as u64)));
        } else {
            if kind != "barrier" {
                let ops = operations(dtype);
                set.push(format!("collective[0].op=\"{}\"", ops[draw.below(ops.len() as u64) as usize]));
            }
            if draw.below(2) == 0 {
                set.push(format!("collective[0].root=\"{}\"", roots[draw.below(roots.len() as u64) as usize]));
            }
        }
        let document = pass(&text, &set);
        assert_eq!(only(&document).bit_exact, Some(true), "{set:?}");
    }
}

#[test]
fn the_arbiter_does_not_matter_to_single_flits() {
    let mut seen = std::collections::BTreeSet::new();
    for arbiter in ["round-robin", "matrix", "fixed"] {
        for pipeline in [1, 4] {
            let set = sets!["switch.arbiter=\"{arbiter}\""; "switch.pipeline_stages={pipeline}"; "collective[0].elements=40"; "collective[0].data.random=\"mixed\""];
            for text in [die(ONE), mesh(&[4, 4], 1, ONE)] {
                let document = pass(&text, &set);
                assert_eq!(only(&document).bit_exact, Some(true));
                seen.insert((text, pipeline, only(&document).results.clone(), only(&document).latency_cycles));
            }
        }
    }
    // One tree, no contention: every policy gives the same bits in the same cycle.
    assert_eq!(seen.len(), 4);
}
