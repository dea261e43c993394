//! Berkeley SoftFloat for f16, f32 and f64: values and flags.
//!
//! SoftFloat keeps rounding mode and sticky flags in thread-local variables; every call here sets the mode, clears
//! the flags before and reads them after. Tininess is detected after rounding and every NaN result is the default
//! NaN (the RISC-V specialisation).

use num_traits::AsPrimitive;
use softfloat_wrapper::{ExceptionFlags, F16, F32, F64, Float, RoundingMode};

use watershed_arith::{DType, Flags, Round};

/// The operations this oracle knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloatOp {
    /// a + b.
    Add,
    /// a - b.
    Sub,
    /// a x b.
    Mul,
}

/// The predicates SoftFloat knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Predicate {
    /// a = b; quiet.
    Equal,
    /// a <= b; signals for any NaN.
    LessOrEqual,
    /// a < b; signals for any NaN.
    Less,
}

fn rounding(round: Round) -> RoundingMode {
    match round {
        Round::NearestEven => RoundingMode::TiesToEven,
        Round::TowardZero => RoundingMode::TowardZero,
        Round::Up => RoundingMode::TowardPositive,
        Round::Down => RoundingMode::TowardNegative,
    }
}

/// Clears the sticky flags, runs, reads them.
fn flagged<T>(run: impl FnOnce() -> T) -> (T, Flags) {
    ExceptionFlags::default().set();
    let value = run();
    let mut raised = ExceptionFlags::default();
    raised.get();
    let flags = Flags::NONE
        .with_if(Flags::INVALID, raised.is_invalid())
        .with_if(Flags::OVERFLOW, raised.is_overflow())
        .with_if(Flags::UNDERFLOW, raised.is_underflow())
        .with_if(Flags::INEXACT, raised.is_inexact());
    (value, flags)
}

/// One operation in a format of SoftFloat, on lanes as wide as its numbers.
fn operate_in<F: Float>(op: FloatOp, round: Round, a: u64, b: u64) -> (u64, Flags)
where
    u64: AsPrimitive<F::Payload>,
    F::Payload: AsPrimitive<u64>,
{
    let (a, b, round) = (F::from_bits(a.as_()), F::from_bits(b.as_()), rounding(round));
    flagged(|| {
        let result = match op {
            FloatOp::Add => a.add(b, round),
            FloatOp::Sub => a.sub(b, round),
            FloatOp::Mul => a.mul(b, round),
        };
        result.to_bits().as_()
    })
}

fn ask_in<F: Float>(predicate: Predicate, a: u64, b: u64) -> (bool, Flags)
where
    u64: AsPrimitive<F::Payload>,
    F::Payload: 'static,
{
    let (a, b) = (F::from_bits(a.as_()), F::from_bits(b.as_()));
    flagged(|| match predicate {
        Predicate::Equal => a.eq(b),
        Predicate::LessOrEqual => a.le(b),
        Predicate::Less => a.lt(b),
    })
}

/// One operation of SoftFloat on right-justified lanes; `None` for formats it does not have.
///
/// The wrapper's bf16 is wrong (it truncates an f32 result) and is not used.
pub fn operate(op: FloatOp, dtype: DType, round: Round, a: u64, b: u64) -> Option<(u64, Flags)> {
    match dtype {
        DType::F16 => Some(operate_in::<F16>(op, round, a, b)),
        DType::F32 => Some(operate_in::<F32>(op, round, a, b)),
        DType::F64 => Some(operate_in::<F64>(op, round, a, b)),
        _ => None,
    }
}

/// One predicate of SoftFloat; `None` for formats it does not have.
pub fn predicate(predicate: Predicate, dtype: DType, a: u64, b: u64) -> Option<(bool, Flags)> {
    match dtype {
        DType::F16 => Some(ask_in::<F16>(predicate, a, b)),
        DType::F32 => Some(ask_in::<F32>(predicate, a, b)),
        DType::F64 => Some(ask_in::<F64>(predicate, a, b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_do_not_stick_from_call_to_call() {
        let (_, flags) = operate(FloatOp::Mul, DType::F32, Round::NearestEven, 0x7f80_0000, 0).unwrap();
        assert_eq!(flags, Flags::INVALID);
        let (two, flags) = operate(FloatOp::Add, DType::F32, Round::NearestEven, 0x3f80_0000, 0x3f80_0000).unwrap();
        assert_eq!((two, flags), (0x4000_0000, Flags::NONE));
    }

    #[test]
    fn every_nan_is_the_default_one() {
        let (nan, flags) = operate(FloatOp::Add, DType::F64, Round::Up, 0xfff0_0000_0000_0001, 0).unwrap();
        assert_eq!((nan, flags), (0x7ff8_0000_0000_0000, Flags::INVALID));
    }
}
