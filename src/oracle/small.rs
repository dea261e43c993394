//! `rustc_apfloat` for bf16, TF32 and the two FP8 formats.
//!
//! TF32 is defined here as a format of that crate's generic type: 19 bits, 8 of them exponent.
//!
//! Only values are taken from here ([`pair`](super::pair) asks [`exact`](super::exact) for flags): the crate's flags
//! differ from IEEE 754 in two places, which the module page of [`oracle`](super) names.

use rustc_apfloat::ieee::{BFloat, Float8E4M3FN, Float8E5M2, IeeeFloat, Semantics};
use rustc_apfloat::{Float, Round as ApRound, Status};

use watershed_arith::{DType, Flags, Round};

use super::exact::{Meaning, default_nan, read, shape};
use super::soft::FloatOp;

/// TF32 as the generic format sees it.
struct Tf32Semantics;

impl Semantics for Tf32Semantics {
    const BITS: usize = 19;
    const EXP_BITS: usize = 8;
}

type Tf32 = IeeeFloat<Tf32Semantics>;

fn apply<F: Float>(op: FloatOp, round: Round, a: u64, b: u64) -> (u64, Flags) {
    let round = match round {
        Round::NearestEven => ApRound::NearestTiesToEven,
        Round::TowardZero => ApRound::TowardZero,
        Round::Up => ApRound::TowardPositive,
        Round::Down => ApRound::TowardNegative,
    };
    let (a, b) = (F::from_bits(a as u128), F::from_bits(b as u128));
    let result = match op {
        FloatOp::Add => a.add_r(b, round),
        FloatOp::Sub => a.sub_r(b, round),
        FloatOp::Mul => a.mul_r(b, round),
    };
    let raised = |status| result.status.contains(status);
    let flags = Flags::NONE
        .with_if(Flags::INVALID, raised(Status::INVALID_OP))
        .with_if(Flags::OVERFLOW, raised(Status::OVERFLOW))
        .with_if(Flags::UNDERFLOW, raised(Status::UNDERFLOW))
        .with_if(Flags::INEXACT, raised(Status::INEXACT));
    (result.value.to_bits() as u64, flags)
}

/// One operation on right-justified lanes, value and flags as the crate gives them; `None` for other formats.
pub fn operate(op: FloatOp, dtype: DType, round: Round, a: u64, b: u64) -> Option<(u64, Flags)> {
    Some(match dtype {
        DType::Bf16 => apply::<BFloat>(op, round, a, b),
        DType::Tf32 => {
            let (value, flags) = apply::<Tf32>(op, round, a >> 13, b >> 13);
            (value << 13, flags)
        }
        DType::Fp8E4m3 => apply::<Float8E4M3FN>(op, round, a, b),
        DType::Fp8E5m2 => apply::<Float8E5M2>(op, round, a, b),
        _ => return None,
    })
}

/// Where the crate's answer is known to differ from the definition; [`exact`](super::exact) is taken there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deviation {
    /// A directed mode stops at the largest finite number, and the overflow flag is missing.
    SaturatedWithoutOverflow,
    /// The underflow flag of a product that rounds up to the smallest normal number.
    UnderflowAtSmallestNormal,
    /// E4M3 beyond 448 in a directed mode: NaN and 448 change places.
    E4m3BeyondLargest,
}

impl Deviation {
    /// Every deviation.
    pub const ALL: &'static [Self] =
        &[Self::SaturatedWithoutOverflow, Self::UnderflowAtSmallestNormal, Self::E4m3BeyondLargest];

    /// What is different, in words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::SaturatedWithoutOverflow => "no overflow flag where a directed mode stops at the largest number",
            Self::UnderflowAtSmallestNormal => {
                "underflow flag of a product that rounds up to the smallest normal number"
            }
            Self::E4m3BeyondLargest => "E4M3 beyond 448 in a directed mode: NaN for 448, 448 for NaN",
        }
    }
}

/// How the crate's answer differs from the [exact](super::exact::operate) one, NaN payloads apart; `None` if it does not.
///
/// # Errors
///
/// If it differs in a way that is not [listed](Deviation::ALL).
///
/// # Panics
///
/// If the format is not one of [`operate`].
#[allow(clippy::result_unit_err)]
pub fn deviation(
    op: FloatOp,
    dtype: DType,
    round: Round,
    (a, b): (u64, u64),
    (value, flags): (u64, Flags),
) -> Result<Option<Deviation>, ()> {
    let (ap_value, ap_flags) = operate(op, dtype, round, a, b).expect("a format of this crate");
    let is_nan = |lane| matches!(read(dtype, lane), Meaning::Nan { .. });
    let magnitude = |lane: u64| lane & !(1 << (dtype.bits() - 1));
    let overflow = Flags::OVERFLOW | Flags::INEXACT;
    let directed = round != Round::NearestEven;
    if value == ap_value || (is_nan(value) && is_nan(ap_value)) {
        if flags == ap_flags {
            return Ok(None);
        }
        if (flags, ap_flags) == (overflow, Flags::INEXACT) && directed {
            return Ok(Some(Deviation::SaturatedWithoutOverflow));
        }
        let s = shape(dtype).ok_or(())?;
        let smallest_normal = 1 << (s.precision - 1 + s.pad);
        let only_underflow = flags.bits() ^ ap_flags.bits() == Flags::UNDERFLOW.bits();
        if op == FloatOp::Mul && magnitude(value) == smallest_normal && only_underflow {
            return Ok(Some(Deviation::UnderflowAtSmallestNormal));
        }
    } else if dtype == DType::Fp8E4m3
        && directed
        && flags == overflow
        && (is_nan(ap_value) || magnitude(ap_value) == default_nan(dtype) - 1)
    {
        return Ok(Some(Deviation::E4m3BeyondLargest));
    }
    Err(())
}
