//! Oracles quick enough for all 2^32 pairs: f16 by SoftFloat, bf16 by SoftFloat's f32 rounded to odd.
//!
//! A bf16 operand is an f32 with sixteen zeros below it. Rounding an f32 result to bf16 would round twice. Instead the
//! f32 result is truncated, and its last bit records whether anything was lost (rounding to odd). The second rounding
//! then has all it needs: f32 keeps 16 bits more than bf16, and both have the same exponents, denormals included.
//!
//! Minimum and maximum follow the rule text, with SoftFloat's predicates for the order.
//!
//! [`pair`](super::pair) is slower; a test compares the two.
//!
//! Requirement: A-VER-1 (`common.md`).

use watershed_arith::{DType, Flags, Round};

use super::soft::{self, FloatOp, Predicate};

/// What can be asked of all pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
    /// a + b.
    Add,
    /// a x b.
    Mul,
    /// The smaller one; any NaN gives a NaN.
    Min,
    /// The larger one; any NaN gives a NaN.
    Max,
}

/// The answer for two right-justified f16 or bf16 lanes, with the default NaN; `None` for other types.
pub fn answer(question: Question, dtype: DType, round: Round, a: u64, b: u64) -> Option<(u64, Flags)> {
    let op = match question {
        Question::Add => FloatOp::Add,
        Question::Mul => FloatOp::Mul,
        Question::Min => return extreme(true, dtype, a, b),
        Question::Max => return extreme(false, dtype, a, b),
    };
    match dtype {
        DType::F16 => soft::operate(op, dtype, round, a, b),
        DType::Bf16 => {
            let (truncated, flags) = soft::operate(op, DType::F32, Round::TowardZero, a << 16, b << 16)?;
            // SoftFloat decides the sign of an exact zero by the mode.
            if truncated.trailing_zeros() >= 31 && flags.is_empty() {
                let (zero, _) = soft::operate(op, DType::F32, round, a << 16, b << 16)?;
                return Some((zero >> 16, flags));
            }
            Some(to_bf16(round, truncated as u32, flags))
        }
        _ => None,
    }
}

/// The second rounding: an f32 that was truncated, with its flags, to bf16.
fn to_bf16(round: Round, truncated: u32, flags: Flags) -> (u64, Flags) {
    if truncated & 0x7fff_ffff > 0x7f80_0000 {
        return (0x7fc0, flags);
    }
    let odd = truncated | u32::from(flags.contains(Flags::INEXACT));
    let negative = odd >> 31 == 1;
    let away = |kept: u32, rest: u32, half: u32| match round {
        Round::NearestEven => rest > half || (rest == half && kept & 1 == 1),
        Round::TowardZero => false,
        Round::Up => rest != 0 && !negative,
        Round::Down => rest != 0 && negative,
    };
    let (kept, rest) = (odd >> 16, odd & 0xffff);
    if rest == 0 {
        return (u64::from(kept), flags);
    }
    let result = kept + u32::from(away(kept, rest, 0x8000));
    // Tiny: below the smallest normal number, and still below it with one more bit of precision kept.
    let magnitude = odd & 0x7fff_ffff;
    let finer = (magnitude >> 15) + u32::from(away(magnitude >> 15, magnitude & 0x7fff, 0x4000));
    let tiny = magnitude < 0x0080_0000 && finer < 0x0080_0000 >> 15;
    let overflow = flags.contains(Flags::OVERFLOW) || result & 0x7fff == 0x7f80;
    let raised = Flags::INEXACT
        .with_if(Flags::UNDERFLOW, tiny)
        .with_if(Flags::OVERFLOW, overflow)
        .with_if(Flags::INVALID, flags.contains(Flags::INVALID));
    (u64::from(result), raised)
}

fn extreme(smaller: bool, dtype: DType, a: u64, b: u64) -> Option<(u64, Flags)> {
    let (judge, up, nan, infinity) = match dtype {
        DType::F16 => (DType::F16, 0, 0x7e00, 0x7c00),
        DType::Bf16 => (DType::F32, 16, 0x7fc0, 0x7f80),
        _ => return None,
    };
    let (equal, flags) = soft::predicate(Predicate::Equal, judge, a << up, b << up)?;
    if a & 0x7fff > infinity || b & 0x7fff > infinity {
        return Some((nan, flags));
    }
    let a_is_less = if equal {
        // Zeros of different signs are the only equal numbers that differ: the negative one is the smaller.
        a >> 15 == 1
    } else {
        soft::predicate(Predicate::Less, judge, a << up, b << up)?.0
    };
    Some((if a_is_less == smaller { a } else { b }, Flags::NONE))
}
