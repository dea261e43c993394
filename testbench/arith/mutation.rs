//! Mutation check: does every seeded fault fail a named check, and does the sound datapath pass them all?
//!
//! The checks are those of the other files, written over the build of the datapath: tables, corner pairs and random pairs
//! against SoftFloat, rule text, frames. The golden lists which check saw which fault. What a check takes longest for is to find
//! nothing: of those that do not see a fault by that list, `make test` takes one case in eight, and `make soak` all.

use std::fmt::Write as _;
use std::path::Path;

use watershed::arith::comparator::{self, Selection};
use watershed::arith::format::builds::F16;
use watershed::arith::format::{Build, Fault, Format};
use watershed::arith::integer::{self, Gate};
use watershed::arith::round::Packed;
use watershed::arith::{
    DType, Function, Mode, Op, Quad, Round, SignalPolicy, adder, locator, multiplier, repsum, widen,
};
use watershed::oracle::exact::convert;
use watershed::oracle::{lane_pair, quad_pair, soft};

use crate::share;
use crate::special_values::{FLUSHED, TABLE};
use crate::vectors::{Random, corners};

/// A datapath with one fault, in the two widths that the checks use.
struct Subject {
    fault: Fault,
    /// The checks that fail.
    failed: Vec<&'static str>,
}

/// Types for every fault: what a datapath is built for is a compile-time parameter.
macro_rules! subjects {
    ($($fault:ident),+ $(,)?) => {
        fn subjects(golden: &str) -> Vec<Subject> {
            vec![$({
                enum Narrow {}
                impl Build for Narrow {
                    const FORMAT: Format = Format::F32;
                    const FAULT: Fault = Fault::$fault;
                }
                enum Wide {}
                impl Build for Wide {
                    const FORMAT: Format = Format::F64;
                    const FAULT: Fault = Fault::$fault;
                }
                Subject { fault: Fault::$fault, failed: failed_checks::<Narrow, Wide>(Fault::$fault, golden) }
            }),+]
        }
    };
}

#[rustfmt::skip]
subjects!(
    None,
    DropSticky, AlignShort, SortByExponentOnly, ZeroAlwaysPositive, InfinitiesNeverCancel, SkipNormalise, DenormalsNormalised, DropPartial, DropProductTail, ZeroTimesInfinity, UpTruncates, TieAway, LoseCarry, TinyBeforeRounding, AlwaysInfinity, NoOverflowFlag, FlushLosesSign, SignalNotSeen, ZerosEqual, NegativesByMagnitude, TieKeepsFirst, SignedIndex, SignalLosesIndex, RepCarries, RepKeepsDropped, RepForgetsInexact, IntegerZeroExtends, IntegerDropPartial, IntegerCarryIsOverflow, WidenKeepsDenormals, NarrowDropSticky,
);

fn apply<B: Build>(function: Function, mode: Mode, a: u64, b: u64) -> Packed {
    let compare = |selection| comparator::evaluate_float::<B>(mode, selection, a, b);
    match function {
        Function::Add => adder::evaluate::<B>(mode, a, b, false),
        Function::Sub => adder::evaluate::<B>(mode, a, b, true),
        Function::Mul => multiplier::evaluate::<B>(mode, a, b),
        Function::Select(Selection::Min) => compare(Selection::Min),
        Function::Select(Selection::MinNum) => compare(Selection::MinNum),
        Function::Select(Selection::MaxNum) => compare(Selection::MaxNum),
        _ => compare(Selection::Max),
    }
}

/// Whether a datapath passes one in this many of a check's cases.
type Check = fn(usize) -> bool;

fn failed_checks<Narrow: Build, Wide: Build>(fault: Fault, golden: &str) -> Vec<&'static str> {
    let checks: [(&str, Check); 10] = [
        ("special values table", |_| special_values::<Narrow>()),
        ("flush-to-zero table", |_| flush_table::<Narrow>()),
        ("f32 corner pairs", |step| corner_pairs::<Narrow>(DType::F32, step)),
        ("f32 random pairs", |step| random_pairs::<Narrow>(DType::F32, step)),
        ("f64 random pairs", |step| random_pairs::<Wide>(DType::F64, step)),
        ("minimum and maximum rules", rules::<Narrow>),
        ("locator rules", |_| locators::<Wide>()),
        ("reproducible sum rules", reproducible::<Wide>),
        ("integer rules", integers::<Wide>),
        ("conversions", conversions::<Narrow>),
    ];
    let failed = checks.into_iter().filter(|(name, passes)| !passes(step(fault, name, golden)));
    failed.map(|(name, _)| name).collect()
}

/// One in how many cases of a check is looked at: all of the sound datapath, and of a fault that the check sees or that is new.
fn step(fault: Fault, check: &str, golden: &str) -> usize {
    let name = format!("{fault:?}");
    let known = golden.lines().find(|line| line.split_whitespace().next() == Some(name.as_str()));
    let seen = fault == Fault::None || known.is_none_or(|line| line.contains(check));
    let whole = share::is_whole() || std::env::var_os("WATERSHED_GOLDEN").is_some();
    if seen || whole { 1 } else { 8 }
}

fn special_values<B: Build>() -> bool {
    TABLE.iter().all(|&(function, round, a, b, result, flags)| {
        let got = apply::<B>(function, Mode::rounding(round), u64::from(a), u64::from(b));
        (got.bits, got.flags) == (u64::from(result), flags)
    })
}

fn flush_table<B: Build>() -> bool {
    FLUSHED.iter().all(|&(function, round, a, b, result, flags)| {
        let mode = Mode { flush_to_zero: true, ..Mode::rounding(round) };
        let got = apply::<B>(function, mode, u64::from(a), u64::from(b));
        (got.bits, got.flags) == (u64::from(result), flags)
    })
}

fn agrees<B: Build>(dtype: DType, round: Round, a: u64, b: u64) -> bool {
    [(Function::Add, soft::FloatOp::Add), (Function::Sub, soft::FloatOp::Sub), (Function::Mul, soft::FloatOp::Mul)]
        .into_iter()
        .all(|(function, op)| {
            let got = apply::<B>(function, Mode::rounding(round), a, b);
            soft::operate(op, dtype, round, a, b) == Some((got.bits, got.flags))
        })
}

fn corner_pairs<B: Build>(dtype: DType, step: usize) -> bool {
    let corners = corners(dtype);
    Round::ALL.iter().all(|&round| {
        corners.iter().enumerate().all(|(k, &a)| {
            let step = 3 * step;
            corners.iter().skip(k % step).step_by(step).all(|&b| agrees::<B>(dtype, round, a, b))
        })
    })
}

fn random_pairs<B: Build>(dtype: DType, step: usize) -> bool {
    let mut random = Random::new(0x5eed_0080);
    (0..40_000 / step).all(|k| {
        let (a, b) = random.pair(dtype);
        agrees::<B>(dtype, Round::ALL[k % 4], a, b)
    })
}

fn rules<B: Build>(step: usize) -> bool {
    let pairs = [
        (Function::Select(Selection::Min), Op::Min),
        (Function::Select(Selection::Max), Op::Max),
        (Function::Select(Selection::MinNum), Op::MinNum),
        (Function::Select(Selection::MaxNum), Op::MaxNum),
    ];
    let corners = corners(DType::F32);
    SignalPolicy::ALL.iter().all(|&signal| {
        let mode = Mode { signal, ..Mode::default() };
        corners.iter().enumerate().all(|(k, &a)| {
            corners.iter().step_by(5).skip(k % step).step_by(step).all(|&b| {
                pairs.iter().all(|&(function, op)| {
                    let got = apply::<B>(function, mode, a, b);
                    (got.bits, got.flags) == lane_pair(op, DType::F32, mode, a, b)
                })
            })
        })
    })
}

fn locators<B: Build>() -> bool {
    let values =
        [0x3ff0 << 48, 0xbff0 << 48, 0xc000 << 48, 0, 1 << 63, 0x7ff8 << 48, 0x7ff0_0000_0000_0001, 0x7ff0 << 48];
    let places = [0, 5, u64::MAX];
    let mode = Mode::default();
    let mut all = true;
    for (op, numbers_win) in [(Op::MinMaxLoc, false), (Op::MinMaxNumLoc, true)] {
        for a in values {
            for b in values {
                for i in places {
                    for j in places {
                        let (p, q) = (Quad::of([a, i, a, i]), Quad::of([b, j, b, j]));
                        let (lanes, _) = locator::evaluate::<B>(DType::F64, mode, numbers_win, p.lanes, q.lanes);
                        all &= lanes == quad_pair(op, DType::F64, mode, p, q).lanes;
                    }
                }
            }
        }
    }
    all
}

fn reproducible<B: Build>(step: usize) -> bool {
    let mut random = Random::new(0x5eed_0081);
    (0..2_000 / step).all(|_| {
        let mut operand = || repsum::split(random.lane(DType::F64) & !(0x3 << 61) | 0x1 << 61);
        let (a, b, c) = (operand(), operand(), operand());
        let expected = quad_pair(Op::RepSum, DType::F64, Mode::default(), a, b);
        let expected = quad_pair(Op::RepSum, DType::F64, Mode::default(), expected, c);
        repsum::merge::<B>(repsum::merge::<B>(a, b), c) == expected
    })
}

fn integers<B: Build>(step: usize) -> bool {
    let mut random = Random::new(0x5eed_0082);
    let ops = [(Gate::Add, Op::Sum), (Gate::Mul, Op::Prod), (Gate::Xnor, Op::Xnor)];
    [DType::I32, DType::U32, DType::I64, DType::U64].into_iter().all(|dtype| {
        (0..2_000 / step).all(|_| {
            let (a, b) = random.pair(dtype);
            ops.into_iter().all(|(gate, op)| {
                let got = integer::evaluate::<B>(dtype, gate, a, b);
                (got.bits, got.flags) == lane_pair(op, dtype, Mode::default(), a, b)
            })
        })
    })
}

/// Denormal halves and a share of the others become singles, and singles around them become halves.
fn conversions<B: Build>(step: usize) -> bool {
    let (narrow, wide) = (DType::F16, DType::F32);
    let is = |got: Packed, expected| (got.bits, got.flags) == expected;
    (0..0x400).step_by(3).chain((0x400..1 << 16).step_by(29)).step_by(step).all(|lane| {
        let middle = widen::convert::<F16, B>(Mode::default(), lane);
        is(middle, convert(narrow, wide, Round::NearestEven, lane))
            && (0..4).all(|k| {
                let lane = middle.bits ^ (1 << (lane % 14)) ^ k;
                let round = Round::ALL[k as usize];
                is(widen::convert::<B, F16>(Mode::rounding(round), lane), convert(wide, narrow, round, lane))
            })
    })
}

#[test]
fn every_seeded_fault_is_seen_by_a_named_check() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/arith/seeded_faults.snap");
    let subjects = subjects(&std::fs::read_to_string(golden).unwrap_or_default());
    let mut list = String::new();
    for subject in &subjects {
        let seen = if subject.failed.is_empty() { "-".to_owned() } else { subject.failed.join(", ") };
        let _ = writeln!(list, "{:<22} {seen}", format!("{:?}", subject.fault));
    }
    for subject in &subjects {
        let sound = subject.fault == Fault::None;
        assert_eq!(subject.failed.is_empty(), sound, "{:?}\n{list}", subject.fault);
    }
    insta::with_settings!({snapshot_path => "../../golden/arith", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("seeded_faults", list);
    });
}
