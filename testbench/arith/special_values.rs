//! The table of special values: every line names its operands, its result and its flags.

use watershed::arith::comparator::Selection;
use watershed::arith::{DType, Flags, Function, Mode, Round, SignalPolicy, Unit};
use watershed::oracle::soft;

const NONE: Flags = Flags::NONE;
const INVALID: Flags = Flags::INVALID;
const INEXACT: Flags = Flags::INEXACT;
const OVERFLOW: Flags = Flags::OVERFLOW.union(Flags::INEXACT);
const UNDERFLOW: Flags = Flags::UNDERFLOW.union(Flags::INEXACT);

use Function::{Add, Mul, Sub};
use Round::{Down, NearestEven, TowardZero, Up};
use Selection::{Max, MaxNum, Min, MinNum};
use SignalPolicy::{Associative, Ieee};

/// f32 patterns by name.
const ZERO: u32 = 0;
const M_ZERO: u32 = 0x8000_0000;
const TINY: u32 = 1;
const M_TINY: u32 = 0x8000_0001;
const DENORMAL: u32 = 0x007f_ffff;
const NORMAL: u32 = 0x0080_0000;
const M_NORMAL: u32 = 0x8080_0000;
const HALF: u32 = 0x3f00_0000;
const BELOW_ONE: u32 = 0x3f7f_ffff;
const ONE: u32 = 0x3f80_0000;
const M_ONE: u32 = 0xbf80_0000;
const ABOVE_ONE: u32 = 0x3f80_0001;
const TWO: u32 = 0x4000_0000;
const EPS: u32 = 0x3380_0000; // 2^-24, half an ulp of one
const MAX: u32 = 0x7f7f_ffff;
const M_MAX: u32 = 0xff7f_ffff;
const HALF_ULP_MAX: u32 = 0x7300_0000; // 2^103
const INF: u32 = 0x7f80_0000;
const M_INF: u32 = 0xff80_0000;
const QNAN: u32 = 0x7fc0_0000;
const M_QNAN: u32 = 0xffc1_2345;
const SNAN: u32 = 0x7f80_0001;
const M_SNAN: u32 = 0xffa0_0000;

pub type Line = (Function, Round, u32, u32, u32, Flags);

#[rustfmt::skip]
pub const TABLE: &[Line] = &[
    // NaNs: quiet ones are silent, signalling ones are invalid, the result is always the default one
    (Add, NearestEven, QNAN,    ONE,     QNAN,    NONE),
    (Add, NearestEven, ONE,     M_QNAN,  QNAN,    NONE),
    (Add, NearestEven, SNAN,    ONE,     QNAN,    INVALID),
    (Add, NearestEven, QNAN,    M_SNAN,  QNAN,    INVALID),
    (Mul, NearestEven, M_QNAN,  INF,     QNAN,    NONE),
    (Mul, NearestEven, ZERO,    SNAN,    QNAN,    INVALID),
    // infinities
    (Add, NearestEven, INF,     MAX,     INF,     NONE),
    (Add, NearestEven, INF,     INF,     INF,     NONE),
    (Add, NearestEven, INF,     M_INF,   QNAN,    INVALID),
    (Sub, NearestEven, INF,     INF,     QNAN,    INVALID),
    (Sub, NearestEven, M_INF,   INF,     M_INF,   NONE),
    (Mul, NearestEven, INF,     M_ONE,   M_INF,   NONE),
    (Mul, NearestEven, INF,     ZERO,    QNAN,    INVALID),
    (Mul, NearestEven, M_ZERO,  M_INF,   QNAN,    INVALID),
    (Mul, NearestEven, M_TINY,  M_INF,   INF,     NONE),
    // signs of zero
    (Add, NearestEven, ZERO,    M_ZERO,  ZERO,    NONE),
    (Add, Up,          ZERO,    M_ZERO,  ZERO,    NONE),
    (Add, TowardZero,  M_ZERO,  ZERO,    ZERO,    NONE),
    (Add, Down,        ZERO,    M_ZERO,  M_ZERO,  NONE),
    (Add, NearestEven, M_ZERO,  M_ZERO,  M_ZERO,  NONE),
    (Sub, Down,        ONE,     ONE,     M_ZERO,  NONE),
    (Sub, NearestEven, M_ZERO,  ZERO,    M_ZERO,  NONE),
    (Mul, NearestEven, M_ZERO,  ONE,     M_ZERO,  NONE),
    (Mul, NearestEven, M_ZERO,  M_ONE,   ZERO,    NONE),
    // rounding at a tie, and beyond it
    (Add, NearestEven, ONE,     EPS,     ONE,     INEXACT),
    (Add, NearestEven, ABOVE_ONE, EPS,   0x3f80_0002, INEXACT),
    (Add, Up,          ONE,     TINY,    ABOVE_ONE, INEXACT),
    (Add, Down,        ONE,     TINY,    ONE,     INEXACT),
    (Add, Down,        ONE,     M_TINY,  BELOW_ONE, INEXACT),
    (Add, TowardZero,  ONE,     M_TINY,  BELOW_ONE, INEXACT),
    (Add, Up,          ONE,     M_TINY,  ONE,     INEXACT),
    // overflow: to infinity or to the largest finite number
    (Add, NearestEven, MAX,     MAX,     INF,     OVERFLOW),
    (Add, NearestEven, MAX,     HALF_ULP_MAX, INF, OVERFLOW),
    (Add, TowardZero,  MAX,     MAX,     MAX,     OVERFLOW),
    (Add, Down,        MAX,     MAX,     MAX,     OVERFLOW),
    (Add, Up,          MAX,     TINY,    INF,     OVERFLOW),
    (Add, Down,        MAX,     TINY,    MAX,     INEXACT),
    (Add, Up,          M_MAX,   M_MAX,   M_MAX,   OVERFLOW),
    (Add, Down,        M_MAX,   M_MAX,   M_INF,   OVERFLOW),
    (Mul, NearestEven, MAX,     TWO,     INF,     OVERFLOW),
    (Mul, TowardZero,  MAX,     M_MAX,   M_MAX,   OVERFLOW),
    // denormals: sums are exact, products round once
    (Add, NearestEven, TINY,    TINY,    2,       NONE),
    (Add, NearestEven, DENORMAL, TINY,   NORMAL,  NONE),
    (Sub, NearestEven, NORMAL,  TINY,    DENORMAL, NONE),
    (Mul, NearestEven, NORMAL,  HALF,    0x0040_0000, NONE),
    (Mul, NearestEven, TINY,    HALF,    ZERO,    UNDERFLOW),
    (Mul, Up,          TINY,    HALF,    TINY,    UNDERFLOW),
    (Mul, NearestEven, M_TINY,  TINY,    M_ZERO,  UNDERFLOW),
    (Mul, Down,        M_TINY,  TINY,    M_TINY,  UNDERFLOW),
    (Mul, NearestEven, 3,       HALF,    2,       UNDERFLOW),
    // just below the smallest normal number: rounds up to it; tiny or not is decided after rounding
    (Mul, NearestEven, NORMAL,  BELOW_ONE, NORMAL, UNDERFLOW),
    (Mul, Up,          NORMAL,  BELOW_ONE, NORMAL, UNDERFLOW),
    (Mul, TowardZero,  NORMAL,  BELOW_ONE, DENORMAL, UNDERFLOW),
    (Mul, Up,          0x0080_0001, 0x3f7f_fffe, NORMAL, INEXACT),
];

#[test]
fn every_line_of_the_table_holds() {
    for &(function, round, a, b, result, flags) in TABLE {
        let unit = Unit::new(function, DType::F32, Mode::rounding(round));
        let got = unit.evaluate(u64::from(a), u64::from(b));
        assert_eq!(
            (got.bits, got.flags),
            (u64::from(result), flags),
            "{function:?} {round} {a:#010x} {b:#010x}: {:#010x} {}",
            got.bits,
            got.flags
        );
    }
}

/// The table was not written from what the datapath does: SoftFloat agrees with each of its lines.
#[test]
fn softfloat_agrees_with_the_table() {
    for &(function, round, a, b, result, flags) in TABLE {
        let op = match function {
            Add => soft::FloatOp::Add,
            Sub => soft::FloatOp::Sub,
            _ => soft::FloatOp::Mul,
        };
        let expected = soft::operate(op, DType::F32, round, u64::from(a), u64::from(b));
        assert_eq!(expected, Some((u64::from(result), flags)), "{function:?} {round} {a:#010x} {b:#010x}");
    }
}

#[rustfmt::skip]
pub const FLUSHED: &[Line] = &[
    (Add, NearestEven, TINY,     TINY,    ZERO,    UNDERFLOW),
    (Add, NearestEven, M_TINY,   M_TINY,  M_ZERO,  UNDERFLOW),
    (Sub, NearestEven, NORMAL,   TINY,    ZERO,    UNDERFLOW),
    (Add, Up,          M_NORMAL, TINY,    M_ZERO,  UNDERFLOW),
    (Mul, NearestEven, NORMAL,   HALF,    ZERO,    UNDERFLOW),
    (Mul, Up,          M_NORMAL, HALF,    M_ZERO,  UNDERFLOW),
    (Add, NearestEven, TINY,     ZERO,    ZERO,    UNDERFLOW),
    // not denormal after rounding, or exactly zero: untouched
    (Add, NearestEven, DENORMAL, TINY,    NORMAL,  NONE),
    (Mul, NearestEven, NORMAL,   BELOW_ONE, NORMAL, UNDERFLOW),
    (Sub, NearestEven, TINY,     TINY,    ZERO,    NONE),
    (Mul, NearestEven, M_ZERO,   TINY,    M_ZERO,  NONE),
    (Add, NearestEven, SNAN,     TINY,    QNAN,    INVALID),
];

#[test]
fn flush_to_zero_follows_its_table() {
    for &(function, round, a, b, result, flags) in FLUSHED {
        let mode = Mode { flush_to_zero: true, ..Mode::rounding(round) };
        let got = Unit::new(function, DType::F32, mode).evaluate(u64::from(a), u64::from(b));
        assert_eq!((got.bits, got.flags), (u64::from(result), flags), "{function:?} {round} {a:#010x} {b:#010x}");
    }
}

/// Selections: function, operands, result, flags; in both orders of operands unless the operation is not symmetric.
#[rustfmt::skip]
const SELECTED: &[(Selection, SignalPolicy, u32, u32, u32, Flags)] = &[
    (Min, Associative, ZERO,   M_ZERO, M_ZERO, NONE),
    (Max, Associative, ZERO,   M_ZERO, ZERO,   NONE),
    (Min, Associative, TINY,   M_TINY, M_TINY, NONE),
    (Max, Associative, INF,    MAX,    INF,    NONE),
    (Min, Associative, M_INF,  M_MAX,  M_INF,  NONE),
    (Min, Associative, DENORMAL, NORMAL, DENORMAL, NONE),
    (Min, Associative, ONE,    M_QNAN, QNAN,   NONE),
    (Max, Associative, INF,    SNAN,   QNAN,   INVALID),
    (Max, Associative, QNAN,   SNAN,   QNAN,   INVALID),
    (MinNum, Associative, ONE, QNAN,   ONE,    NONE),
    (MinNum, Ieee,        ONE, QNAN,   ONE,    NONE),
    (MaxNum, Associative, M_INF, SNAN, M_INF,  INVALID),
    (MaxNum, Ieee,        M_INF, SNAN, QNAN,   INVALID),
    (MinNum, Associative, M_QNAN, QNAN, QNAN,  NONE),
    (MinNum, Associative, M_SNAN, QNAN, QNAN,  INVALID),
    (MinNum, Ieee,        ZERO, M_ZERO, M_ZERO, NONE),
];

#[test]
fn selections_follow_their_table() {
    for &(selection, signal, a, b, result, flags) in SELECTED {
        let unit = Unit::new(Function::Select(selection), DType::F32, Mode { signal, ..Mode::default() });
        for (a, b) in [(a, b), (b, a)] {
            let got = unit.evaluate(u64::from(a), u64::from(b));
            let expected = (u64::from(result), flags);
            assert_eq!((got.bits, got.flags), expected, "{selection:?} {signal} {a:#010x} {b:#010x}");
        }
    }
}
