//! A number divided by a count, by the definition: long division of big integers, then rounded once.
//!
//! The quotient has 256 bits behind the dividend's last one, and a sticky bit for the remainder. No format here has
//! that many fraction bits, so cutting off there cannot change a rounding.

use num_bigint::{BigInt, Sign};

use watershed_arith::{DType, Flags, Mode};

use super::exact::{Exact, Meaning, read, round_to, shape};
use super::pair::{is_denormal, nan};

/// A right-justified lane divided by a count.
///
/// # Panics
///
/// If the type is an integer, or the count is zero.
pub fn lane_quotient(dtype: DType, mode: Mode, lane: u64, n: u32) -> (u64, Flags) {
    let pad = shape(dtype).expect("only floating-point types have a mean").pad;
    let (negative, value) = match read(dtype, lane) {
        Meaning::Nan { signalling, .. } => {
            return (nan(dtype, mode, lane, lane), Flags::NONE.with_if(Flags::INVALID, signalling));
        }
        Meaning::Infinity { .. } => return (lane >> pad << pad, Flags::NONE),
        Meaning::Number { negative, value } => (negative, value),
    };
    let dividend = value.integer.magnitude() << 256u32;
    let left = &dividend % n;
    let mut quotient = (dividend / n) << 1u32;
    if left != 0u8.into() {
        quotient += 1u8;
    }
    let sign = if quotient == 0u8.into() {
        Sign::NoSign
    } else if negative {
        Sign::Minus
    } else {
        Sign::Plus
    };
    let exact = Exact { integer: BigInt::from_biguint(sign, quotient), scale: value.scale - 257 };
    let (bits, flags) = round_to(dtype, mode.round, &exact, negative);
    if mode.flush_to_zero && is_denormal(dtype, bits) {
        return (u64::from(negative) << (dtype.bits() - 1), flags | Flags::UNDERFLOW | Flags::INEXACT);
    }
    (bits, flags)
}

/// The lanes of a 64-bit word divided by a count.
pub fn word_quotient(dtype: DType, mode: Mode, word: u64, n: u32) -> (u64, Flags) {
    let (bits, mut flags, mut result) = (dtype.bits(), Flags::NONE, 0);
    for at in (0..64).step_by(bits as usize) {
        let (lane, raised) = lane_quotient(dtype, mode, word >> at & u64::MAX >> (64 - bits), n);
        result |= lane << at;
        flags |= raised;
    }
    (result, flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use softfloat_wrapper::{F32, F64, Float, RoundingMode};
    use watershed_arith::Round;

    /// SoftFloat divides by counts that are numbers of the format.
    #[test]
    fn softfloat_agrees() {
        let modes = [
            (Round::NearestEven, RoundingMode::TiesToEven),
            (Round::TowardZero, RoundingMode::TowardZero),
            (Round::Up, RoundingMode::TowardPositive),
            (Round::Down, RoundingMode::TowardNegative),
        ];
        let mut state = 0x1234_5678_9abc_def1u64;
        for k in 0..4000u32 {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let n = 1 + (state >> 40) as u32 % 4_194_304;
            let (round, theirs) = modes[k as usize % 4];
            let mode = Mode::rounding(round);
            let single = F32::from_bits(state as u32).div(F32::from_u32(n, theirs), theirs).to_bits();
            assert_eq!(lane_quotient(DType::F32, mode, state & 0xffff_ffff, n).0, u64::from(single), "{k}");
            let double = F64::from_bits(state).div(F64::from_u32(n, theirs), theirs).to_bits();
            assert_eq!(lane_quotient(DType::F64, mode, state, n).0, double, "{k}");
        }
    }
}
