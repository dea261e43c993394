//! One operation on one pair of operands, under the rules of the mode, by the library that has the type.
//!
//! The rules, from the text of the requirements:
//!
//! - A NaN result is the default quiet NaN, or, propagating, the payload of an operand: quieted, sign 0, a signalling
//!   operand before a quiet one, the first operand before the second.
//! - `min` and `max`: any NaN gives a NaN; a signalling one raises invalid; -0 is below +0.
//! - `minnum` and `maxnum`: as those, but a number wins over a quiet NaN, and over a signalling one unless the mode is
//!   IEEE's, in which that pair gives a quiet NaN.
//! - Flush-to-zero turns a denormal sum or product into a zero of its sign and raises underflow and inexact.
//! - Integers wrap and raise integer overflow. Bitwise operations see the whole word.
//!
//! Requirements: A-MODE-1, A-GOLD-1 (`common.md`, section 1); R-AR-3, R-AR-4, R-OP-1 (`armed.md`).

use std::cmp::Ordering;

use num_traits::ops::overflowing::{OverflowingAdd, OverflowingMul};
use num_traits::{AsPrimitive, PrimInt, Zero};

use watershed_arith::{DType, Flags, Mode, NanPolicy, Op, SignalPolicy};

use super::exact::{self, Meaning, default_nan, read, shape};
use super::small;
use super::soft::{self, FloatOp, Predicate};

/// One operation on two right-justified lanes.
///
/// # Panics
///
/// For a barrier, which has no data, and for the operations of four words ([`quad`](super::quad)).
pub fn lane_pair(op: Op, dtype: DType, mode: Mode, a: u64, b: u64) -> (u64, Flags) {
    match (op, shape(dtype).is_some()) {
        (Op::Sum, true) => sum_or_product(FloatOp::Add, dtype, mode, a, b),
        (Op::Prod, true) => sum_or_product(FloatOp::Mul, dtype, mode, a, b),
        (Op::Min, true) => extreme(Ordering::Less, dtype, mode, a, b),
        (Op::Max, true) => extreme(Ordering::Greater, dtype, mode, a, b),
        (Op::MinNum, true) => extreme_number(Ordering::Less, dtype, mode, a, b),
        (Op::MaxNum, true) => extreme_number(Ordering::Greater, dtype, mode, a, b),
        (Op::MinNum, false) => integer(Op::Min, dtype, a, b),
        (Op::MaxNum, false) => integer(Op::Max, dtype, a, b),
        (Op::Sum | Op::Prod | Op::Min | Op::Max, false) => integer(op, dtype, a, b),
        (Op::And | Op::Or | Op::Xor | Op::Nand | Op::Nor | Op::Xnor, _) => {
            let mask = u64::MAX >> (64 - dtype.bits());
            (bitwise(op, a, b) & mask, Flags::NONE)
        }
        (Op::Barrier, _) => panic!("a barrier has no operands"),
        (Op::MinMaxLoc | Op::MinMaxNumLoc | Op::RepSum, _) => panic!("{op} has operands of four words"),
    }
}

/// One operation on two 64-bit words of lanes.
pub fn word_pair(op: Op, dtype: DType, mode: Mode, a: u64, b: u64) -> (u64, Flags) {
    if matches!(op, Op::And | Op::Or | Op::Xor | Op::Nand | Op::Nor | Op::Xnor) {
        return (bitwise(op, a, b), Flags::NONE);
    }
    let bytes = dtype.bits() as usize / 8;
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    let mut result = [0; 8];
    let mut flags = Flags::NONE;
    for ((x, y), z) in a.chunks(bytes).zip(b.chunks(bytes)).zip(result.chunks_mut(bytes)) {
        let (lane, raised) = lane_pair(op, dtype, mode, from_bytes(x), from_bytes(y));
        z.copy_from_slice(&lane.to_le_bytes()[..bytes]);
        flags |= raised;
    }
    (u64::from_le_bytes(result), flags)
}

fn from_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |lane, &byte| lane << 8 | u64::from(byte))
}

/// SoftFloat where it has the format; elsewhere the value of apfloat and the flags of the exact evaluation.
pub(super) fn operate(op: FloatOp, dtype: DType, mode: Mode, a: u64, b: u64) -> (u64, Flags) {
    if let Some(result) = soft::operate(op, dtype, mode.round, a, b) {
        return result;
    }
    let (value, _) = small::operate(op, dtype, mode.round, a, b).expect("every floating-point type has an oracle");
    let (exact, flags) = exact::operate(op, dtype, mode.round, a, b);
    // The one deviation of apfloat in values: E4M3 beyond its largest number in a directed mode.
    let beyond = dtype == DType::Fp8E4m3 && flags.contains(Flags::OVERFLOW);
    (if beyond { exact } else { value }, flags)
}

fn sum_or_product(op: FloatOp, dtype: DType, mode: Mode, a: u64, b: u64) -> (u64, Flags) {
    let (value, flags) = operate(op, dtype, mode, a, b);
    match read(dtype, value) {
        Meaning::Nan { .. } => (nan(dtype, mode, a, b), flags),
        Meaning::Infinity { .. } => (value, flags),
        Meaning::Number { negative, .. } => {
            if mode.flush_to_zero && is_denormal(dtype, value) {
                let zero = u64::from(negative) << (dtype.bits() - 1);
                (zero, flags | Flags::UNDERFLOW | Flags::INEXACT)
            } else {
                (value, flags)
            }
        }
    }
}

/// A comparison by the text of its rule: a NaN makes it false, and raises invalid if it signals or the comparison is one of
/// order; zeros of both signs are equal.
pub fn lane_predicate(predicate: Predicate, dtype: DType, a: u64, b: u64) -> (bool, Flags) {
    let holds = |order: Ordering| match predicate {
        Predicate::Equal => order == Ordering::Equal,
        Predicate::LessOrEqual => order != Ordering::Greater,
        Predicate::Less => order == Ordering::Less,
    };
    let order = match dtype {
        DType::I32 => order_of::<i32>(a, b),
        DType::U32 => order_of::<u32>(a, b),
        DType::I64 => order_of::<i64>(a, b),
        DType::U64 => order_of::<u64>(a, b),
        _ => {
            let nan = |lane| match read(dtype, lane) {
                Meaning::Nan { signalling, .. } => Some(signalling),
                _ => None,
            };
            if let (Some(signals), other) | (other @ None, Some(signals)) = (nan(a), nan(b)) {
                let invalid = signals || other == Some(true) || predicate != Predicate::Equal;
                return (false, Flags::NONE.with_if(Flags::INVALID, invalid));
            }
            let is_zero = |lane| matches!(read(dtype, lane), Meaning::Number { value, .. } if value.integer.is_zero());
            if is_zero(a) && is_zero(b) { Ordering::Equal } else { order(dtype, a, b) }
        }
    };
    (holds(order), Flags::NONE)
}

/// `a - b` on two right-justified lanes of a floating-point type.
pub fn lane_difference(dtype: DType, mode: Mode, a: u64, b: u64) -> (u64, Flags) {
    sum_or_product(FloatOp::Sub, dtype, mode, a, b)
}

pub(super) fn is_denormal(dtype: DType, lane: u64) -> bool {
    let s = shape(dtype).expect("a floating-point type");
    let magnitude = (lane & !(1 << (dtype.bits() - 1))) >> s.pad;
    (1..1 << (s.precision - 1)).contains(&magnitude)
}

/// The NaN of a pair whose result is a NaN.
pub(super) fn nan(dtype: DType, mode: Mode, a: u64, b: u64) -> u64 {
    let s = shape(dtype).expect("a floating-point type");
    let default = default_nan(dtype);
    if mode.nan == NanPolicy::DefaultQuiet || !s.has_infinity {
        return default;
    }
    let operands = [read(dtype, a), read(dtype, b)];
    let payload_of = |wanted: &[bool]| {
        operands.iter().find_map(|operand| match operand {
            Meaning::Nan { signalling, payload } if wanted.contains(signalling) => Some(*payload),
            _ => None,
        })
    };
    // A signalling one first, then whichever comes first, then none: the operation itself was invalid.
    let payload = payload_of(&[true]).or_else(|| payload_of(&[false]));
    payload.map_or(default, |payload| default | (payload << s.pad))
}

fn extreme(wanted: Ordering, dtype: DType, mode: Mode, a: u64, b: u64) -> (u64, Flags) {
    let signals = |lane| matches!(read(dtype, lane), Meaning::Nan { signalling: true, .. });
    let is_nan = |lane| matches!(read(dtype, lane), Meaning::Nan { .. });
    if is_nan(a) || is_nan(b) {
        let flags = Flags::NONE.with_if(Flags::INVALID, signals(a) || signals(b));
        return (nan(dtype, mode, a, b), flags);
    }
    let chosen = if order(dtype, a, b) == wanted { a } else { b };
    // Bits below the format's fraction are not part of the number.
    let pad = shape(dtype).expect("a floating-point type").pad;
    (chosen >> pad << pad, Flags::NONE)
}

/// `minnum` and `maxnum`: drop the NaN of a pair if the rules let it be dropped, then go on as `min` and `max` do.
fn extreme_number(wanted: Ordering, dtype: DType, mode: Mode, a: u64, b: u64) -> (u64, Flags) {
    let kind = |lane| match read(dtype, lane) {
        Meaning::Nan { signalling, .. } => Some(signalling),
        _ => None,
    };
    let ieee = mode.signal == SignalPolicy::Ieee;
    match (kind(a), kind(b)) {
        (Some(signals), None) if !(signals && ieee) => {
            let (number, _) = extreme(wanted, dtype, mode, b, b);
            (number, Flags::NONE.with_if(Flags::INVALID, signals))
        }
        (None, Some(_)) => {
            // The rules do not care which operand is which.
            extreme_number(wanted, dtype, mode, b, a)
        }
        _ => extreme(wanted, dtype, mode, a, b),
    }
}

/// The order of two numbers, -0 below +0.
pub(super) fn order(dtype: DType, a: u64, b: u64) -> Ordering {
    match (read(dtype, a), read(dtype, b)) {
        (Meaning::Infinity { negative: p }, Meaning::Infinity { negative: q }) => q.cmp(&p),
        (Meaning::Infinity { negative }, _) => {
            if negative {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (_, Meaning::Infinity { negative }) => {
            if negative {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        (Meaning::Number { negative: p, value: x }, Meaning::Number { negative: q, value: y }) => {
            x.order(&y).then(q.cmp(&p))
        }
        (Meaning::Nan { .. }, _) | (_, Meaning::Nan { .. }) => unreachable!("NaNs were dealt with"),
    }
}

fn integer(op: Op, dtype: DType, a: u64, b: u64) -> (u64, Flags) {
    match dtype {
        DType::I32 => integer_of::<i32>(op, a, b),
        DType::U32 => integer_of::<u32>(op, a, b),
        DType::I64 => integer_of::<i64>(op, a, b),
        _ => integer_of::<u64>(op, a, b),
    }
}

/// The order of two lanes that hold this type.
fn order_of<T: PrimInt + 'static>(a: u64, b: u64) -> Ordering
where
    u64: AsPrimitive<T>,
{
    let (a, b): (T, T) = (a.as_(), b.as_());
    a.cmp(&b)
}

/// Sum, product, minimum or maximum of two lanes that hold this type.
fn integer_of<T>(op: Op, a: u64, b: u64) -> (u64, Flags)
where
    T: PrimInt + OverflowingAdd + OverflowingMul + AsPrimitive<u64>,
    u64: AsPrimitive<T>,
{
    let (a, b): (T, T) = (a.as_(), b.as_());
    let (result, overflows) = match op {
        Op::Sum => a.overflowing_add(&b),
        Op::Prod => a.overflowing_mul(&b),
        Op::Min => (a.min(b), false),
        _ => (a.max(b), false),
    };
    // The sign of a negative number goes on beyond its lane.
    let lane = u64::MAX >> (64 - T::zero().count_zeros());
    (result.as_() & lane, Flags::NONE.with_if(Flags::INT_OVERFLOW, overflows))
}

fn bitwise(op: Op, a: u64, b: u64) -> u64 {
    match op {
        Op::And => a & b,
        Op::Or => a | b,
        Op::Xor => a ^ b,
        Op::Nand => !(a & b),
        Op::Nor => !(a | b),
        Op::Xnor => !(a ^ b),
        _ => unreachable!("{op} is not bitwise"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_minimum() {
        let mode = Mode::default();
        let min = |a, b| lane_pair(Op::Min, DType::F32, mode, a, b);
        assert_eq!(min(0, 0x8000_0000), (0x8000_0000, Flags::NONE));
        assert_eq!(min(0x8000_0000, 0), (0x8000_0000, Flags::NONE));
        assert_eq!(min(0x7f80_0000, 0xff80_0000), (0xff80_0000, Flags::NONE));
        assert_eq!(min(1, 0x7fc0_0001), (0x7fc0_0000, Flags::NONE));
        assert_eq!(min(0x7f80_0001, 1), (0x7fc0_0000, Flags::INVALID));
    }

    #[test]
    fn flushing_keeps_the_sign_and_says_so() {
        let mode = Mode { flush_to_zero: true, ..Mode::default() };
        // -smallest normal + half of it
        let (value, flags) = lane_pair(Op::Sum, DType::F32, mode, 0x8080_0000, 0x0040_0000);
        assert_eq!((value, flags), (0x8000_0000, Flags::UNDERFLOW | Flags::INEXACT));
    }

    #[test]
    fn words_are_lanes() {
        let (value, flags) =
            word_pair(Op::Sum, DType::I32, Mode::default(), 0x7fff_ffff_0000_0001, 0x0000_0001_0000_0002);
        assert_eq!((value, flags), (0x8000_0000_0000_0003, Flags::INT_OVERFLOW));
    }
}
