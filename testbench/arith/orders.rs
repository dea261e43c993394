//! R-EX-7: the same operands under 1000 arrival orders: how many results, how far apart?

use std::collections::BTreeMap;
use std::fmt::Write;

use watershed::arith::{DType, Mode, Op, Quad, QuadUnit, Round, repsum};
use watershed::oracle::exact::{Exact, Meaning, read, round_to};
use watershed::oracle::ulp_distance;

use crate::frames::shuffle;
use crate::vectors::Random;

fn number(double: u64) -> Exact {
    match read(DType::F64, double) {
        Meaning::Number { value, .. } => value,
        _ => unreachable!("all are numbers"),
    }
}

#[test]
fn a_thousand_orders_give_one_reproducible_sum_and_many_others() {
    let mut random = Random::new(7);
    // 64 operands from 2^-30 to 2^30, of both signs.
    let operands: Vec<u64> =
        (0..64).map(|_| random.word() & !(0x7ff << 52) | (1023 - 30 + random.below(61)) << 52).collect();
    let exact = operands.iter().fold(Exact::zero(), |sum, &operand| sum.plus(&number(operand)));
    let (nearest, _) = round_to(DType::F64, Round::NearestEven, &exact, false);
    let mode = Mode::default();
    let sum = QuadUnit::new(Op::Sum, DType::F64, mode).unwrap();
    let rep = QuadUnit::new(Op::RepSum, DType::F64, mode).unwrap();

    let mut sums: BTreeMap<u64, u32> = BTreeMap::new();
    let mut reps: BTreeMap<([u64; 4], i8), u32> = BTreeMap::new();
    let mut order = operands;
    for _ in 0..1000 {
        shuffle(&mut random, &mut order);
        let one = order.iter().map(|&v| Quad::of([v, 0, 0, 0])).reduce(|a, b| sum.evaluate(a, b)).unwrap();
        *sums.entry(one.lanes[0]).or_default() += 1;
        let one = order.iter().map(|&v| repsum::split(v)).reduce(|a, b| rep.evaluate(a, b)).unwrap();
        *reps.entry((one.lanes, one.m)).or_default() += 1;
    }

    let mut report = String::new();
    writeln!(report, "64 operands from 2^-30 to 2^30, 1000 arrival orders").unwrap();
    writeln!(report, "exact sum            {}", exact.decimal(30)).unwrap();
    writeln!(report, "correctly rounded    {nearest:#018x}\n").unwrap();
    writeln!(report, "FLT SUM: {} values", sums.len()).unwrap();
    writeln!(report, "  times  result              error (ulp)  ulps from the correctly rounded").unwrap();
    let mut rows: Vec<(u64, u32)> = sums.iter().map(|(&bits, &times)| (bits, times)).collect();
    rows.sort_by_key(|&(bits, times)| (u32::MAX - times, bits));
    for (bits, times) in rows {
        let error = number(bits).ulps_from(&exact, DType::F64);
        let distance = ulp_distance(DType::F64, bits, nearest).unwrap();
        writeln!(report, "  {times:>5}  {bits:#018x}  {error:>11.3}  {distance:>3}").unwrap();
    }
    writeln!(report, "\nFLT REPSUM: {} value", reps.len()).unwrap();
    for ((words, m), times) in &reps {
        let value = repsum::join(mode, *words, *m).bits;
        let error = number(value).ulps_from(&exact, DType::F64);
        writeln!(
            report,
            "  {times:>5}  {value:#018x}  {error:>11.3}  {:>3}",
            ulp_distance(DType::F64, value, nearest).unwrap()
        )
        .unwrap();
        for (k, word) in words.iter().enumerate().rev() {
            writeln!(report, "         word {k} {word:#018x}").unwrap();
        }
        writeln!(report, "         M {m}").unwrap();
    }
    assert!(sums.len() > 3 && reps.len() == 1, "{report}");
    insta::with_settings!({snapshot_path => "../../golden/arith", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("order_experiment", report);
    });
}
