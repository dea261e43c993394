//! The reproducible sum, end to end: split, merge in any order and shape, conversion back, capacity.

use watershed::arith::format::builds::F64;
use watershed::arith::repsum::{CAPACITY, join, join_simply, merge, split};
use watershed::arith::{DType, Mode, Quad, ResultCode, Round};
use watershed::oracle::exact::{Exact, Meaning, read, round_to};
use watershed::oracle::quad::rep_value;
use watershed::oracle::ulp_distance;

use crate::frames::{any_tree, shuffle};
use crate::vectors::{Random, corners, seed};

fn doubles(random: &mut Random, count: usize) -> Vec<u64> {
    let near = random.below(2) == 0;
    (0..count)
        .map(|_| {
            let word = random.lane(DType::F64);
            // Half of the sets stay within a few windows, so that nothing is dropped.
            if near { word & !(0x7ff << 52) | (1000 + random.below(60)) << 52 } else { word }
        })
        .collect()
}

#[test]
fn any_permutation_and_any_tree_give_the_same_words_and_m() {
    let seed = seed(0x5eed_0060);
    let mut random = Random::new(seed);
    for _ in 0..400 {
        let count = 1 + random.below(40) as usize;
        let mut quads: Vec<Quad> = doubles(&mut random, count).into_iter().map(split).collect();
        let first = any_tree(&mut random, quads.clone(), &merge::<F64>);
        for _ in 0..20 {
            shuffle(&mut random, &mut quads);
            let other = any_tree(&mut random, quads.clone(), &merge::<F64>);
            assert_eq!((other.lanes, other.m), (first.lanes, first.m), "(seed {seed})");
        }
    }
}

/// Crafted words wrap; words and M still do not depend on the order.
#[test]
fn even_sums_that_overflow_are_reproducible() {
    let seed = seed(0x5eed_0061);
    let mut random = Random::new(seed);
    let mut overflows = 0;
    for _ in 0..300 {
        let mut quads: Vec<Quad> = (0..12)
            .map(|_| Quad {
                lanes: std::array::from_fn(|_| random.word()),
                m: random.below(6) as i8,
                ..Quad::default()
            })
            .collect();
        let first = any_tree(&mut random, quads.clone(), &merge::<F64>);
        for _ in 0..10 {
            shuffle(&mut random, &mut quads);
            let other = any_tree(&mut random, quads.clone(), &merge::<F64>);
            assert_eq!((other.lanes, other.m), (first.lanes, first.m), "(seed {seed})");
            overflows += u32::from(other.code == ResultCode::IntOverflow);
        }
    }
    assert!(overflows > 1000, "{overflows}");
}

/// Whatever was not dropped comes back correctly rounded, in every mode; the simple way is near it.
#[test]
fn conversion_back_rounds_once() {
    let seed = seed(0x5eed_0062);
    let mut random = Random::new(seed);
    let mut simple_differs = 0;
    let mut check = |quad: Quad| {
        for &round in Round::ALL {
            let mode = Mode::rounding(round);
            let value = rep_value(&quad).expect("finite");
            let (bits, flags) = round_to(DType::F64, round, &value, false);
            let got = join(mode, quad.lanes, quad.m);
            assert_eq!((got.bits, got.flags), (bits, flags), "{round} {quad:x?} (seed {seed})");
            let simple = join_simply(mode, quad.lanes, quad.m);
            simple_differs += u32::from(simple.bits != bits);
        }
    };
    check(Quad::default());
    for _ in 0..20_000 {
        let m = (random.below(60) as i8) - 30;
        let lanes = std::array::from_fn(|_| random.word() >> random.below(64));
        check(Quad { lanes, m, ..Quad::default() });
        check(Quad { lanes: lanes.map(u64::wrapping_neg), m, ..Quad::default() });
        // Cancelling words: the value lies far below the top word.
        let word = random.word() >> 30;
        let lanes = [random.word() >> 30, word << 24, word.wrapping_neg() << 24 >> 40, 0];
        check(Quad { lanes, m, ..Quad::default() });
    }
    for m in [-128, -60, 40, 100, 124] {
        check(Quad { lanes: [1, 2, 3, u64::MAX], m, ..Quad::default() });
        check(Quad { lanes: [1 << 63; 4], m, ..Quad::default() });
    }
    assert!(simple_differs > 0, "a test of two ways that never differ shows nothing");
}

#[test]
fn a_lone_double_comes_back_as_it_was() {
    for double in corners(DType::F64) {
        let quad = split(double);
        let back = join(Mode::default(), quad.lanes, quad.m).bits;
        match read(DType::F64, double) {
            Meaning::Nan { .. } => assert_eq!(back, 0x7ff8 << 48),
            // An integer has no minus zero.
            _ if double == 1 << 63 => assert_eq!(back, 0),
            _ => assert_eq!(back, double),
        }
        assert_eq!(back, join_simply(Mode::default(), quad.lanes, quad.m).bits);
    }
}

/// Operands within three windows: the sum is exact, and so is rounded once.
#[test]
fn sums_within_the_window_are_correctly_rounded() {
    let seed = seed(0x5eed_0063);
    let mut random = Random::new(seed);
    let mut worst = 0;
    for _ in 0..500 {
        // Exponents within 39 of 2^-10: the lowest bit of the smallest lies above the lowest window.
        let values: Vec<u64> =
            (0..50).map(|_| random.word() & !(0x7ff << 52) | (1013 - random.below(39)) << 52).collect();
        let exact = values.iter().fold(Exact::zero(), |sum, &value| match read(DType::F64, value) {
            Meaning::Number { value, .. } => sum.plus(&value),
            _ => unreachable!("all are numbers"),
        });
        let sum = values.iter().map(|&value| split(value)).reduce(merge::<F64>).unwrap();
        assert_eq!(sum.code, ResultCode::Ok);
        let (bits, _) = round_to(DType::F64, Round::NearestEven, &exact, false);
        assert_eq!(join(Mode::default(), sum.lanes, sum.m).bits, bits, "(seed {seed})");
        let simple = join_simply(Mode::default(), sum.lanes, sum.m).bits;
        worst = worst.max(ulp_distance(DType::F64, simple, bits).unwrap());
    }
    assert!(worst <= 2, "{worst} ulps");
}

/// R-AR-5: 2^23 operands of any value are safe, and one more need not be: the largest word there is, at the edge.
#[test]
fn capacity_is_two_to_the_23_operands_of_any_value() {
    // 2^39 + (2^39 - 2^-13): all 40 bits of word 3 and the 13 below are ones.
    let largest = split(0x426f_ffff_ffff_ffff);
    assert_eq!(largest.lanes[3], (1 << 40) - 1);
    for operand in [largest, split(0x426f_ffff_ffff_ffff | 1 << 63)] {
        let doubled = (0..23).fold(operand, |sum, _| merge::<F64>(sum, sum));
        assert_eq!((doubled.code, 1 << 23), (ResultCode::Ok, CAPACITY));
        let one_more = merge::<F64>(doubled, operand);
        assert_eq!((one_more.code, one_more.oflow_id), (ResultCode::IntOverflow, 3));
        // Twice as many, the source's figure, wrap too.
        assert_eq!(merge::<F64>(doubled, doubled).code, ResultCode::IntOverflow);
    }
    // The source's 2^24 does hold for words of 39 bits.
    let smaller = Quad { lanes: [0, 0, 0, (1 << 39) - 1], ..Quad::default() };
    let doubled = (0..24).fold(smaller, |sum, _| merge::<F64>(sum, sum));
    assert_eq!(doubled.code, ResultCode::Ok);
    assert_eq!(merge::<F64>(doubled, smaller).code, ResultCode::IntOverflow);
}

/// The middle words overflow at the same count and name themselves; the most significant one is reported.
#[test]
fn overflow_names_the_most_significant_word() {
    let full = (1 << 40) - 1;
    for (lanes, word) in
        [([full, 0, 0, 0], 0), ([full, full, 0, 0], 1), ([full, 0, full, 0], 2), ([0, full, 0, full], 3)]
    {
        let operand = Quad { lanes, ..Quad::default() };
        let doubled = (0..23).fold(operand, |sum, _| merge::<F64>(sum, sum));
        assert_eq!(doubled.code, ResultCode::Ok);
        let over = merge::<F64>(doubled, operand);
        assert_eq!((over.code, over.oflow_id), (ResultCode::IntOverflow, word));
    }
}

#[test]
fn result_codes_may_depend_on_order_but_words_do_not() {
    // Small first: nothing to drop yet when the two meet; large first: the same drop. A cancelled word is not dropped.
    let (small, minus_small, large) = (split(1), split(1 | 1 << 63), split(0x4330 << 48));
    let cancelled = merge::<F64>(merge::<F64>(small, minus_small), large);
    let dropped = merge::<F64>(merge::<F64>(small, large), minus_small);
    assert_eq!((cancelled.lanes, cancelled.m), (dropped.lanes, dropped.m));
    assert_eq!((cancelled.code, dropped.code), (ResultCode::Ok, ResultCode::RepInexact));
}
