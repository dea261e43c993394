//! What the scenario language makes of single words: names, near ones and ones that mean another, lengths of results.

use std::fmt;

use watershed::arith::{DType, Op, Round};
use watershed::scenario::names::{NamedValues, nearest, one_of};
use watershed::scenario::result_detail::ResultDetail;

#[test]
fn nearest_finds_misspellings_and_ignores_other_words() {
    let keys = ["pipeline_stages", "arbiter", "collective_ids"];
    assert_eq!(nearest("pipeline_stage", keys).as_deref(), Some("pipeline_stages"));
    assert_eq!(nearest("Pipeline-Stages", keys).as_deref(), Some("pipeline_stages"));
    assert_eq!(nearest("arbitre", keys).as_deref(), Some("arbiter"));
    assert_eq!(nearest("frequency", keys), None);
    assert_eq!(nearest("", keys), None);
}

#[test]
fn typical_wrong_words_get_the_right_hint_or_none() {
    let ops: Vec<&str> = Op::names().collect();
    let types: Vec<&str> = DType::names().collect();
    let rounds: Vec<&str> = Round::names().collect();
    let shapes =
        ["die", "nodes", "mesh", "torus", "hyperx", "flattened-butterfly", "fat-tree", "dragonfly", "tree", "file"];
    let kinds = ["allreduce", "reduce", "broadcast", "barrier", "scan"];
    let keys = ["name", "engine", "kind", "op", "dtype", "elements"];
    let table: [(&[&str], &str, Option<&str>); 53] = [
        (&ops, "add", Some("sum")),
        (&ops, "plus", Some("sum")),
        (&ops, "SUM", Some("sum")),
        (&ops, "summ", Some("sum")),
        (&ops, "mul", Some("prod")),
        (&ops, "product", Some("prod")),
        (&ops, "maximum", Some("max")),
        (&ops, "mxa", Some("max")),
        (&ops, "bitwise-and", Some("and")),
        (&ops, "order", None),
        (&ops, "minimal", None),
        (&ops, "avg", None),
        (&ops, "mean", None),
        (&ops, "sub", None),
        (&ops, "div", None),
        (&ops, "not", None),
        (&ops, "any", None),
        (&types, "double", Some("f64")),
        (&types, "float32", Some("f32")),
        (&types, "half", Some("f16")),
        (&types, "int", Some("i32")),
        (&types, "E4M3", Some("fp8_e4m3")),
        (&types, "f128", None),
        (&types, "i8", None),
        (&rounds, "rne", Some("nearest-even")),
        (&rounds, "truncate", Some("toward-zero")),
        (&shapes, "tile", Some("die")),
        (&shapes, "chip", Some("die")),
        (&shapes, "node", Some("nodes")),
        (&shapes, "grid", Some("mesh")),
        (&shapes, "ring", Some("torus")),
        (&shapes, "clos", Some("fat-tree")),
        (&shapes, "fattree", Some("fat-tree")),
        (&shapes, "dragon-fly", Some("dragonfly")),
        (&shapes, "trus", Some("torus")),
        (&shapes, "tre", Some("tree")),
        (&shapes, "hypercube", Some("hyperx")),
        (&shapes, "star", None),
        (&shapes, "bus", None),
        (&shapes, "line", None),
        (&kinds, "all-reduce", Some("allreduce")),
        (&kinds, "bcast", Some("broadcast")),
        (&kinds, "prefix-sum", Some("scan")),
        (&kinds, "tile", None),
        (&kinds, "alltoall", None),
        (&["sw1", "sw2"], "sw7", None),
        (&keys, "family", Some("engine")),
        (&keys, "operation", Some("op")),
        (&keys, "oparation", Some("op")),
        (&keys, "data_type", Some("dtype")),
        (&keys, "length", Some("elements")),
        (&keys, "optional", None),
        (&ops, "addtion", Some("sum")),
    ];
    for (legal, given, meant) in table {
        assert_eq!(nearest(given, legal.iter().copied()).as_deref(), meant, "{given} among {legal:?}");
    }
}

#[test]
fn names_are_unique_and_come_back() {
    fn all<T: NamedValues + fmt::Debug>() {
        for &(name, value) in T::NAMES {
            assert_eq!(value.name(), name);
            assert_eq!(T::from_name(name), Some(value));
        }
    }
    all::<Op>();
    all::<DType>();
    all::<Round>();
}

#[test]
fn lists_read_as_prose() {
    assert_eq!(one_of(["a"]), "a");
    assert_eq!(one_of(["a", "b"]), "a or b");
    assert_eq!(one_of(["a", "b", "c"]), "a, b or c");
}

#[test]
fn words_are_read_as_they_are_written() {
    for (text, kept) in [
        ("auto", ResultDetail::Auto),
        ("all", ResultDetail::All),
        ("hash", ResultDetail::Hash),
        ("first 8", ResultDetail::First(8)),
    ] {
        assert_eq!((text.parse(), kept.to_string()), (Ok(kept), text.to_owned()));
    }
    for wrong in ["", "first", "first 0", "first -1", "first x", "first  8", "All", "none"] {
        assert!(wrong.parse::<ResultDetail>().is_err(), "{wrong}");
    }
}

#[test]
fn short_vectors_are_whole_and_long_ones_begin() {
    const WHOLE: usize = 65_536;
    const HEAD: usize = 16;
    let kept = |kept: ResultDetail| [0, 1, 20, WHOLE, WHOLE + 1].map(|length| kept.of(length));
    assert_eq!(kept(ResultDetail::Auto), [0, 1, 20, WHOLE, HEAD]);
    assert_eq!(kept(ResultDetail::All), [0, 1, 20, WHOLE, WHOLE + 1]);
    assert_eq!(kept(ResultDetail::First(7)), [0, 1, 7, 7, 7]);
    assert_eq!(kept(ResultDetail::Hash), [0; 5]);
}
