//! Laws that hold for every operand, whatever the oracle says.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use watershed::arith::comparator::Selection;
use watershed::arith::{DType, Flags, Function, Mode, Round, Unit};
use watershed::oracle::exact::{Exact, Meaning, read};

use crate::vectors::seed;

/// The seed is fixed, so a failure repeats; a failing case is printed, shrunk.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed(0x5eed_0040)),
        ..ProptestConfig::default()
    }
}

fn float_type() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::ALL.iter().copied().filter(|d| d.is_float()).collect::<Vec<_>>())
}

fn number(dtype: DType, lane: u64) -> Option<Exact> {
    match read(dtype, lane) {
        Meaning::Number { value, .. } => Some(value),
        _ => None,
    }
}

fn run(function: Function, dtype: DType, round: Round, a: u64, b: u64) -> (u64, Flags) {
    let packed = Unit::new(function, dtype, Mode::rounding(round)).evaluate(a, b);
    (packed.bits, packed.flags)
}

proptest! {
    #![proptest_config(config())]

    /// a + b = b + a and a x b = b x a, bits and flags.
    #[test]
    fn sum_and_product_commute(dtype in float_type(), a: u64, b: u64, mode in 0usize..4) {
        let (a, b, round) = (a & dtype.lane_mask(), b & dtype.lane_mask(), Round::ALL[mode]);
        for function in [Function::Add, Function::Mul, Function::Select(Selection::Min), Function::Select(Selection::Max)] {
            prop_assert_eq!(run(function, dtype, round, a, b), run(function, dtype, round, b, a));
        }
    }

    /// a - a is an exact zero, negative only when rounding down.
    #[test]
    fn a_number_less_itself_is_exactly_zero(dtype in float_type(), a: u64, mode in 0usize..4) {
        let (a, round) = (a & dtype.lane_mask(), Round::ALL[mode]);
        if number(dtype, a).is_some() {
            let (zero, flags) = run(Function::Sub, dtype, round, a, a);
            let expected = if round == Round::Down { 1 << (dtype.bits() - 1) } else { 0 };
            prop_assert_eq!((zero, flags), (expected, Flags::NONE));
        }
    }

    /// x times one is x.
    #[test]
    fn one_is_neutral(dtype in float_type(), a: u64, mode in 0usize..4) {
        let format = dtype.format().expect("a floating-point type");
        let pad = (1u64 << format.pad_bits) - 1;
        let (a, round) = (a & dtype.lane_mask() & !pad, Round::ALL[mode]);
        let one = format.join(false, (format.bias() as u64) << format.fraction_bits);
        if number(dtype, a).is_some() {
            prop_assert_eq!(run(Function::Mul, dtype, round, a, one), (a, Flags::NONE));
        }
    }

    /// Down <= exact <= up, toward zero is the one nearer to zero, nearest is one of them; exact results agree in all.
    #[test]
    fn directed_results_enclose_the_exact_one(dtype in float_type(), a: u64, b: u64, product: bool) {
        let (a, b) = (a & dtype.lane_mask(), b & dtype.lane_mask());
        let function = if product { Function::Mul } else { Function::Add };
        let (Some(x), Some(y)) = (number(dtype, a), number(dtype, b)) else { return Ok(()) };
        let exact = if product { x.times(&y) } else { x.plus(&y) };
        let (down, down_flags) = run(function, dtype, Round::Down, a, b);
        let (up, up_flags) = run(function, dtype, Round::Up, a, b);
        let (zero, _) = run(function, dtype, Round::TowardZero, a, b);
        let (near, near_flags) = run(function, dtype, Round::NearestEven, a, b);
        prop_assert!(zero == down || zero == up || near_flags == Flags::NONE);
        prop_assert!(near == down || near == up || near_flags == Flags::NONE);
        if let Some(down) = number(dtype, down) {
            prop_assert!(down.order(&exact).is_le());
            prop_assert_eq!(down.order(&exact).is_eq(), !down_flags.contains(Flags::INEXACT));
        }
        if let Some(up) = number(dtype, up) {
            prop_assert!(up.order(&exact).is_ge());
            prop_assert_eq!(up.order(&exact).is_eq(), !up_flags.contains(Flags::INEXACT));
        }
    }

    /// Rounding is monotonic: a <= b implies a + c <= b + c.
    #[test]
    fn rounding_is_monotonic(dtype in float_type(), a: u64, b: u64, c: u64, mode in 0usize..4) {
        let mask = dtype.lane_mask();
        let (a, b, c, round) = (a & mask, b & mask, c & mask, Round::ALL[mode]);
        let (Some(x), Some(y), Some(_)) = (number(dtype, a), number(dtype, b), number(dtype, c)) else { return Ok(()) };
        let (low, high) = if x.order(&y).is_le() { (a, b) } else { (b, a) };
        let (p, _) = run(Function::Add, dtype, round, low, c);
        let (q, _) = run(Function::Add, dtype, round, high, c);
        if let (Some(p), Some(q)) = (number(dtype, p), number(dtype, q)) {
            prop_assert!(p.order(&q).is_le());
        }
    }
}
