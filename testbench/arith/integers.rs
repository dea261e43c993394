//! Integer and bitwise operations: do they wrap, compare and raise as the rules say?

use watershed::arith::{DType, Mode, Op, TreeCfg, TreeIn, Unit, tree};
use watershed::oracle::{lane_pair, word_pair};

use crate::vectors::{Random, seed};

const INTEGERS: [DType; 4] = [DType::I32, DType::U32, DType::I64, DType::U64];

fn edges(dtype: DType) -> Vec<u64> {
    let mask = dtype.lane_mask();
    let top = 1 << (dtype.bits() - 1);
    let half = 1 << (dtype.bits() / 2);
    vec![0, 1, 2, 3, half - 1, half, half + 1, top - 1, top, top + 1, mask - 1, mask]
}

#[test]
fn integer_operations_match_plain_integers() {
    let seed = seed(0x5eed_0010);
    for dtype in INTEGERS {
        let mut random = Random::new(seed);
        for op in [Op::Sum, Op::Prod, Op::Min, Op::Max] {
            let unit = Unit::of(op, dtype, Mode::default()).expect("has data");
            let check = |a: u64, b: u64| {
                let got = unit.evaluate(a, b);
                let expected = lane_pair(op, dtype, Mode::default(), a, b);
                assert_eq!((got.bits, got.flags), expected, "{op} {dtype} {a:#x} {b:#x} (seed {seed})");
            };
            for &a in &edges(dtype) {
                for &b in &edges(dtype) {
                    check(a, b);
                }
            }
            for _ in 0..50_000 {
                let (a, b) = random.pair(dtype);
                check(a, b);
                // Small factors, so that products do not overflow every time.
                let cut = random.below(dtype.bits() as u64);
                check(a >> cut, b >> (dtype.bits() as u64 - 1 - cut));
            }
        }
    }
}

#[test]
fn bitwise_operations_ignore_the_type() {
    let seed = seed(0x5eed_0011);
    let mut random = Random::new(seed);
    let cfg = TreeCfg { radix: 2, unit_stages: 1 };
    for op in [Op::And, Op::Or, Op::Xor, Op::Nand, Op::Nor, Op::Xnor] {
        for &dtype in DType::ALL {
            for _ in 0..200 {
                let (a, b) = (random.word(), random.word());
                let got = tree::eval(cfg, &TreeIn::of(op, dtype, &[a, b]));
                let expected = word_pair(op, dtype, Mode::default(), a, b);
                assert_eq!((got.value, got.flags), expected, "{op} {dtype} {a:#x} {b:#x} (seed {seed})");
            }
        }
    }
}
