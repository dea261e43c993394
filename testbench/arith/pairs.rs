//! One operation on one pair: is every bit and every flag what the oracle says?

use watershed::arith::comparator::Selection;
use watershed::arith::{DType, Function, Mode, NanPolicy, Op, Round, SignalPolicy, Unit};
use watershed::oracle::{lane_pair, soft};

use crate::vectors::{Random, SOFTFLOAT, corners, float_types, seed};

const FLOAT_OPS: [Op; 4] = [Op::Sum, Op::Prod, Op::Min, Op::Max];

fn check(op: Op, dtype: DType, mode: Mode, a: u64, b: u64, note: &dyn Fn() -> String) {
    let unit = Unit::of(op, dtype, mode).expect("has data");
    let got = unit.evaluate(a, b);
    let (bits, flags) = lane_pair(op, dtype, mode, a, b);
    assert!(
        (got.bits, got.flags) == (bits, flags),
        "{op} {dtype} {mode:?} {a:#x} {b:#x}: got {:#x} {}, expected {bits:#x} {flags} {}",
        got.bits,
        got.flags,
        note()
    );
}

/// All pairs of corner patterns through add, subtract and multiply against SoftFloat itself, flags included.
fn corner_pairs_against_softfloat(dtype: DType) {
    let corners = corners(dtype);
    let functions =
        [(Function::Add, soft::FloatOp::Add), (Function::Sub, soft::FloatOp::Sub), (Function::Mul, soft::FloatOp::Mul)];
    for &round in Round::ALL {
        for (function, op) in functions {
            let unit = Unit::new(function, dtype, Mode::rounding(round));
            for &a in &corners {
                for &b in &corners {
                    let got = unit.evaluate(a, b);
                    let expected = soft::operate(op, dtype, round, a, b).expect("SoftFloat has it");
                    assert_eq!((got.bits, got.flags), expected, "{function:?} {dtype} {round} {a:#x} {b:#x}");
                }
            }
        }
    }
}

#[test]
fn f16_corner_pairs_match_softfloat_in_bits_and_flags() {
    corner_pairs_against_softfloat(DType::F16);
}

#[test]
fn f32_corner_pairs_match_softfloat_in_bits_and_flags() {
    corner_pairs_against_softfloat(DType::F32);
}

#[test]
fn f64_corner_pairs_match_softfloat_in_bits_and_flags() {
    corner_pairs_against_softfloat(DType::F64);
}

/// Random pairs: this many per operation and rounding mode.
const RANDOM_PAIRS: u32 = 200_000;

fn random_pairs_against_softfloat(dtype: DType) {
    let seed = seed(0x5eed_0001);
    for &round in Round::ALL {
        for (function, op) in [(Function::Add, soft::FloatOp::Add), (Function::Mul, soft::FloatOp::Mul)] {
            let mut random = Random::new(seed);
            let unit = Unit::new(function, dtype, Mode::rounding(round));
            for _ in 0..RANDOM_PAIRS {
                let (a, b) = random.pair(dtype);
                let got = unit.evaluate(a, b);
                let expected = soft::operate(op, dtype, round, a, b).expect("SoftFloat has it");
                assert_eq!((got.bits, got.flags), expected, "{function:?} {dtype} {round} {a:#x} {b:#x} (seed {seed})");
            }
        }
    }
}

#[test]
fn f16_random_pairs_match_softfloat_in_bits_and_flags() {
    random_pairs_against_softfloat(DType::F16);
}

#[test]
fn f32_random_pairs_match_softfloat_in_bits_and_flags() {
    random_pairs_against_softfloat(DType::F32);
}

#[test]
fn f64_random_pairs_match_softfloat_in_bits_and_flags() {
    random_pairs_against_softfloat(DType::F64);
}

/// bf16 and TF32 have no SoftFloat: apfloat gives the value, the exact evaluation the flags.
#[test]
fn bf16_and_tf32_pairs_match_the_oracle_in_bits_and_flags() {
    let seed = seed(0x5eed_0002);
    for dtype in [DType::Bf16, DType::Tf32] {
        let corners = corners(dtype);
        let mut random = Random::new(seed);
        for &round in Round::ALL {
            let mode = Mode::rounding(round);
            for op in [Op::Sum, Op::Prod] {
                // Every pair of corners in one mode, a stride of them in the others.
                let stride = if round == Round::NearestEven { 1 } else { 5 };
                for (k, &a) in corners.iter().enumerate() {
                    for &b in corners.iter().skip(k % stride).step_by(stride) {
                        check(op, dtype, mode, a, b, &String::new);
                    }
                }
                for _ in 0..20_000 {
                    let (a, b) = random.pair(dtype);
                    check(op, dtype, mode, a, b, &|| format!("(seed {seed})"));
                }
            }
        }
    }
}

/// All 65,536 pairs of both FP8 formats, every operation, every rounding mode.
#[test]
fn fp8_all_pairs_match_the_oracle_in_bits_and_flags() {
    for dtype in [DType::Fp8E4m3, DType::Fp8E5m2] {
        for &round in Round::ALL {
            for op in FLOAT_OPS {
                for a in 0..256 {
                    for b in 0..256 {
                        check(op, dtype, Mode::rounding(round), a, b, &String::new);
                    }
                }
            }
        }
    }
}

#[test]
fn minimum_and_maximum_follow_the_rule_text() {
    for dtype in float_types() {
        for nan in NanPolicy::ALL {
            let mode = Mode { nan: *nan, ..Mode::default() };
            for &a in &corners(dtype) {
                for &b in corners(dtype).iter().step_by(3) {
                    check(Op::Min, dtype, mode, a, b, &String::new);
                    check(Op::Max, dtype, mode, a, b, &String::new);
                    for signal in SignalPolicy::ALL {
                        check(Op::MinNum, dtype, Mode { signal: *signal, ..mode }, a, b, &String::new);
                        check(Op::MaxNum, dtype, Mode { signal: *signal, ..mode }, a, b, &String::new);
                    }
                }
            }
        }
    }
}

#[test]
fn predicates_match_softfloat_in_result_and_flags() {
    let predicates = [
        (Function::Select(Selection::Equal), soft::Predicate::Equal),
        (Function::Select(Selection::LessOrEqual), soft::Predicate::LessOrEqual),
        (Function::Select(Selection::Less), soft::Predicate::Less),
    ];
    for dtype in SOFTFLOAT {
        let corners = corners(dtype);
        for (function, predicate) in predicates {
            let unit = Unit::new(function, dtype, Mode::default());
            for &a in &corners {
                for &b in &corners {
                    let got = unit.evaluate(a, b);
                    let (truth, flags) = soft::predicate(predicate, dtype, a, b).expect("SoftFloat has it");
                    assert_eq!((got.bits, got.flags), (u64::from(truth), flags), "{function:?} {dtype} {a:#x} {b:#x}");
                }
            }
        }
    }
}

#[test]
fn flush_to_zero_changes_denormal_results_only() {
    let seed = seed(0x5eed_0003);
    for dtype in float_types() {
        let corners = corners(dtype);
        let mut random = Random::new(seed);
        for &round in Round::ALL {
            let mode = Mode { flush_to_zero: true, ..Mode::rounding(round) };
            for op in FLOAT_OPS {
                for (k, &a) in corners.iter().enumerate() {
                    for &b in corners.iter().skip(k % 7).step_by(7) {
                        check(op, dtype, mode, a, b, &String::new);
                    }
                }
                for _ in 0..2_000 {
                    let (a, b) = random.pair(dtype);
                    check(op, dtype, mode, a, b, &|| format!("(seed {seed})"));
                }
            }
        }
    }
}

#[test]
fn propagated_nans_match_the_rule_text() {
    for dtype in float_types() {
        let mode = Mode { nan: NanPolicy::Propagate, ..Mode::default() };
        for &a in &corners(dtype) {
            for &b in corners(dtype).iter().step_by(5) {
                check(Op::Sum, dtype, mode, a, b, &String::new);
                check(Op::Prod, dtype, mode, a, b, &String::new);
            }
        }
    }
}
