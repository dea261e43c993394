//! The operations on frames of four words, from the text of the rules.
//!
//! - Lanes: each by [`pair`](super::pair).
//! - `minmaxloc`, `minmaxnumloc`: the value is what `min`, `max`, `minnum` or `maxnum` of the pair gives; the index is the
//!   lowest one among the operands that have that value. If the value is a NaN, the operands in question are the signalling
//!   NaNs if there is one, else the quiet ones.
//! - `repsum`: a double's words are the base-2^40 digits of its magnitude, from the digit M downwards, three of them,
//!   with the double's sign; M is the place of the window in which the top bit of its exponent lies. A partial sum is, for each
//!   place, an integer modulo 2^64; places below M - 3 do not exist.
//! - Codes: the larger of the operands' codes and of the operation's own.
//!
//! Written with [`exact`](super::exact) numbers; nothing is shared with the datapath but names and the type of a
//! frame's contents.
//!
//! Requirements: R-AR-1 to R-AR-6, R-RC-1 (`armed.md`).

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use watershed_arith::{DType, Flags, Mode, Op, Quad, ResultCode};

use super::exact::{Exact, Meaning, read};
use super::pair::lane_pair;

/// The code of these flags: the largest of the codes that any one of them stands for.
pub fn code_of(flags: Flags) -> ResultCode {
    let table = [
        (Flags::INEXACT, ResultCode::FltInexact),
        (Flags::UNDERFLOW, ResultCode::FltInexact),
        (Flags::OVERFLOW, ResultCode::FltOverflow),
        (Flags::INVALID, ResultCode::FltInvalid),
        (Flags::REP_INEXACT, ResultCode::RepInexact),
        (Flags::INT_OVERFLOW, ResultCode::IntOverflow),
    ];
    table.into_iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, code)| code).max().unwrap_or_default()
}

/// One operation on two frames' contents.
///
/// # Panics
///
/// If the operation does not exist for the type.
pub fn quad_pair(op: Op, dtype: DType, mode: Mode, a: Quad, b: Quad) -> Quad {
    let code = a.code.max(b.code);
    match op {
        Op::Barrier => Quad { code, ..Quad::default() },
        Op::RepSum => rep_sum(a, b),
        Op::MinMaxLoc | Op::MinMaxNumLoc => {
            let (low, high) = if op == Op::MinMaxLoc { (Op::Min, Op::Max) } else { (Op::MinNum, Op::MaxNum) };
            let (min, min_index, p) = located(low, dtype, mode, (a.lanes[0], a.lanes[1]), (b.lanes[0], b.lanes[1]));
            let (max, max_index, q) = located(high, dtype, mode, (a.lanes[2], a.lanes[3]), (b.lanes[2], b.lanes[3]));
            Quad { lanes: [min, min_index, max, max_index], code: code.max(code_of(p | q)), ..Quad::default() }
        }
        _ => {
            let mut result = Quad { code, ..Quad::default() };
            for k in 0..4 {
                let (lane, flags) = lane_pair(op, dtype, mode, a.lanes[k], b.lanes[k]);
                result.lanes[k] = lane;
                result.code = result.code.max(code_of(flags));
            }
            result
        }
    }
}

fn located(op: Op, dtype: DType, mode: Mode, a: (u64, u64), b: (u64, u64)) -> (u64, u64, Flags) {
    let (value, flags) = lane_pair(op, dtype, mode, a.0, b.0);
    let signals = |lane| match dtype.is_float().then(|| read(dtype, lane)) {
        Some(Meaning::Nan { signalling, .. }) => Some(signalling),
        _ => None,
    };
    let lowest = |has_it: &dyn Fn(u64) -> bool| {
        [a, b].into_iter().filter(|(operand, _)| has_it(*operand)).map(|(_, index)| index).min()
    };
    let index = match signals(value) {
        None => lowest(&|operand| operand == value),
        Some(_) => {
            lowest(&|operand| signals(operand) == Some(true)).or_else(|| lowest(&|operand| signals(operand).is_some()))
        }
    };
    (value, index.expect("the value comes from an operand"), flags)
}

/// The word at an absolute place, and whether that place exists.
fn at(quad: &Quad, place: i32) -> Option<i64> {
    usize::try_from(place - (i32::from(quad.m) - 3)).ok().and_then(|k| quad.lanes.get(k)).map(|&word| word as i64)
}

fn rep_sum(a: Quad, b: Quad) -> Quad {
    let m = a.m.max(b.m);
    let lowest = i32::from(m) - 3;
    let mut result = Quad { m, ..Quad::default() };
    let mut overflow: Option<u8> = None;
    // What the operands bring: an overflow stays with its place; below the lowest it is a loss like any other.
    for operand in [&a, &b] {
        let mut code = operand.code;
        if code == ResultCode::IntOverflow {
            let place = i32::from(operand.m) - 3 + i32::from(operand.oflow_id);
            match u8::try_from(place - lowest) {
                Ok(word) => overflow = overflow.max(Some(word)),
                Err(_) => code = ResultCode::RepInexact,
            }
        }
        let bottom = i32::from(operand.m) - 3;
        if (bottom..lowest).any(|place| at(operand, place).is_some_and(|word| word != 0)) {
            code = code.max(ResultCode::RepInexact);
        }
        result.code = result.code.max(code);
    }
    for k in 0..4u8 {
        let place = lowest + i32::from(k);
        let (p, q) = (at(&a, place).unwrap_or(0), at(&b, place).unwrap_or(0));
        let sum = i128::from(p) + i128::from(q);
        result.lanes[usize::from(k)] = sum as u64;
        if i64::try_from(sum).is_err() {
            overflow = overflow.max(Some(k));
        }
    }
    if let Some(word) = overflow {
        result.code = result.code.max(ResultCode::IntOverflow);
        result.oflow_id = word;
    }
    result
}

/// Words and M of a double, digit by digit.
pub fn rep_split(double: u64) -> Quad {
    let special = |m, code| Quad { code, m, ..Quad::default() };
    let value = match read(DType::F64, double) {
        Meaning::Nan { signalling: true, .. } => return special(127, ResultCode::FltInvalid),
        Meaning::Nan { .. } => return special(127, ResultCode::Ok),
        Meaning::Infinity { negative: false } => return special(126, ResultCode::Ok),
        Meaning::Infinity { negative: true } => return special(125, ResultCode::Ok),
        Meaning::Number { value, .. } => value,
    };
    // The exponent as the format counts it: that of the top bit, or the smallest one for denormals and zero.
    let top = (value.integer.bits() as i64 - 1 + value.scale).max(-1022);
    let m = top.div_euclid(40);
    let digit = |place: i64| -> u64 {
        let up = value.scale - 40 * place;
        let magnitude = value.integer.magnitude();
        let whole = if up >= 0 { magnitude << up as u64 } else { magnitude >> (-up) as u64 };
        (whole % (1u64 << 40)).to_u64().expect("40 bits")
    };
    let sign = |word: u64| if value.integer.is_negative() { word.wrapping_neg() } else { word };
    let lanes = [0, sign(digit(m - 2)), sign(digit(m - 1)), sign(digit(m))];
    Quad { lanes, m: m as i8, ..Quad::default() }
}

/// The number that words and M say; `None` for infinities and NaN.
pub fn rep_value(quad: &Quad) -> Option<Exact> {
    if quad.m >= 125 {
        return None;
    }
    let sum = quad.lanes.iter().enumerate().fold(Exact::zero(), |sum, (k, &word)| {
        sum.plus(&Exact { integer: BigInt::from(word as i64), scale: 40 * (i64::from(quad.m) - 3 + k as i64) })
    });
    Some(sum)
}
