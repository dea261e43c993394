//! Division of a lane by a count: the last step of a mean.
//!
//! ```text
//!  lane ──▶ unpack ──▶ significand x 2^36 ──▶ long division by n ──▶ normalise ─▶ round ─▶ pack ──▶ lane, flags
//!  n ───────────────────────────────────────▶  remainder: sticky
//! ```
//!
//! The quotient of the number in the lane and the integer n, correctly rounded: n itself is never rounded to the lane's format,
//! which may be too narrow for it (1023 is no number of FP8). Behind the division stand the stages of the
//! [multiplier](super::multiplier): there is one way to round. *\[chosen\]*
//!
//! An end point divides once, when it has the sum; this is no pipeline, and its cycles are not counted. NaNs and infinities
//! stay what they are, a signalling NaN raises invalid.
//!
//! ```
//! use watershed_arith::divider::word_quotient;
//! use watershed_arith::{DType, Flags, Mode};
//!
//! // Two lanes of f32, 6.0 and 3.0, divided by four participants.
//! let word = u64::from(6.0_f32.to_bits()) << 32 | u64::from(3.0_f32.to_bits());
//! let (mean, flags) = word_quotient(DType::F32, Mode::default(), word, 4);
//! assert_eq!(f32::from_bits((mean >> 32) as u32), 1.5);
//! assert_eq!((f32::from_bits(mean as u32), flags), (0.75, Flags::NONE));
//! ```

use super::format::{Build, Class, Fault, builds, nan_of_pair};
use super::lanes::{pack_lanes, unpack_lanes};
use super::multiplier::{Product, Wide, normalise};
use super::round::{Packed, Special, pack, round};
use super::types::{DType, Flags, Mode};
use super::unit::with_build;

/// Bits of the quotient below the significand's last one: enough for guard and round behind a divisor of 32 bits.
const MORE: u32 = 36;

/// A lane divided by a count.
pub const fn evaluate<B: Build>(mode: Mode, lane: u64, n: u32) -> Packed {
    let x = B::FORMAT.unpack(lane);
    let (special, flags, exponent, value) = match x.class {
        Class::QuietNan | Class::SignallingNan => {
            let (nan, flags) = nan_of_pair::<B>(&x, &x, mode.nan);
            (Special::Nan, flags, 1, nan as u128)
        }
        Class::Infinite => (Special::Infinity, Flags::NONE, 1, 0),
        Class::Finite => {
            let dividend = (x.significand as u128) << MORE;
            let lost = !dividend.is_multiple_of(n as u128) && !matches!(B::FAULT, Fault::DropProductTail);
            // Where the multiplier's stages expect a product: the last bit is sticky.
            let exponent = x.exponent as i32 + B::FORMAT.fraction_bits as i32 - (MORE as i32 + 1);
            (Special::Number, Flags::NONE, exponent, (dividend / n as u128) << 1 | lost as u128)
        }
    };
    let product = Product { special, sign: x.sign, flags, exponent, product: Wide::from_u128(value) };
    pack::<B>(mode, round::<B>(mode, normalise::<B>(product)))
}

/// The lanes of a word divided by a count.
///
/// # Panics
///
/// If the type is an integer, or the count is zero.
pub fn word_quotient(dtype: DType, mode: Mode, word: u64, n: u32) -> (u64, Flags) {
    let mut flags = Flags::NONE;
    let lanes: Vec<u64> = unpack_lanes(dtype, word)
        .map(|lane| {
            let packed = with_build!(dtype, B => evaluate::<B>(mode, lane, n));
            flags |= packed.flags;
            packed.bits
        })
        .collect();
    (pack_lanes(dtype, &lanes), flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_divided_each_on_its_own() {
        // 3.0 and -1.0 as f32, by 2.
        let (word, flags) = word_quotient(DType::F32, Mode::default(), 0xbf80_0000_4040_0000, 2);
        assert_eq!((word, flags), (0xbf00_0000_3fc0_0000, Flags::NONE));
    }
}
