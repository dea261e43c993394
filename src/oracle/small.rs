//! `rustc_apfloat` for bf16, TF32 and the two FP8 formats.
//!
//! TF32 is an own semantics of that crate's generic format: 19 bits, 8 of them exponent.
//!
//! Only values are taken from here ([`pair`](super::pair) asks [`exact`](super::exact) for flags): the crate's flags
//! differ from IEEE 754 in two places, which the module page of [`oracle`](super) names.

use rustc_apfloat::ieee::{BFloat, Float8E4M3FN, Float8E5M2, IeeeFloat, Semantics};
use rustc_apfloat::{Float, Round as ApRound, Status};

use crate::arith::{DType, Flags, Round};

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
