//! Doubles as fixed-point integers below a common exponent, and back: the conversions that software makes before and
//! after the integer sum of a deterministic reduction.
//!
//! ```text
//!  double ──▶ exponent field ──▶ (maximum over all) ──┐
//!  double ──▶ significand ──────────────────────────▶ shift, round ──▶ integer ──▶ (sum over all) ──▶ round ──▶ double
//! ```
//!
//! | value | how |
//! |---|---|
//! | E | the largest exponent field, 1 to 2046 (a subnormal number counts as 1); 2047 if an infinity or a NaN takes part |
//! | F | 62 - ceil(log2 n) for n contributions: the sum of n integers of at most 2^F never overflows 64 bits |
//! | integer | x * 2^(F - E + 1022), to the nearest, ties to even: at most 2^F in magnitude |
//! | result | sum * 2^(E - 1022 - F), rounded once, to the nearest, ties to even; a sum of 0 is +0 |
//!
//! Integer addition is associative, and every integer depends on its own double and on E alone: the result is the same in every
//! order. It is at most n/2 * 2^(E - 1022 - F) and half an ulp away from the exact sum. With E = 2047 the integers count NaNs and
//! infinities of either sign instead, see [`special`]. *\[chosen\]*, all of it: the source (description (48)) says that a
//! maximum is followed by a sum.

use super::format::builds::F64;
use super::format::{Build, Class};
use super::multiplier::{Product, Wide, normalise};
use super::round::{Special, pack, round};
use super::types::{Flags, Mode};

/// The exponent field that infinities and NaNs have.
pub const SPECIAL: u64 = 2047;
/// Exponent field of doubles below 1, from 1/2 on.
const HALF: i32 = 1022;
/// Bits of a field of [`special`].
const FIELD: u32 = 21;

/// The exponent field of a double; 1 for zeros and subnormal numbers.
pub fn exponent(double: u64) -> u64 {
    (double >> 52 & SPECIAL).max(1)
}

/// F for a number of contributions.
///
/// # Panics
/// If there are none, or 2^31 or more.
pub fn fraction_bits(contributions: u64) -> u32 {
    assert!((1..1 << 31).contains(&contributions), "{contributions} contributions");
    62 - contributions.next_power_of_two().trailing_zeros()
}

/// A finite double as an integer, where `largest` is the largest exponent field and `bits` is F; and whether it was rounded.
///
/// # Panics
/// If its exponent is above the largest one.
pub fn to_fixed(double: u64, largest: u64, bits: u32) -> (i64, bool) {
    let below = largest.checked_sub(exponent(double)).expect("the largest exponent is no smaller than any") as i32;
    let significand = F64::FORMAT.unpack(double).significand;
    let shift = bits as i32 - 53 - below;
    let (magnitude, lost) = if shift >= 0 {
        (significand << shift, false)
    } else if shift < -54 {
        (0, significand != 0)
    } else {
        let (whole, rest) = (significand >> -shift, significand & !(u64::MAX << -shift));
        let half = 1u64 << (-shift - 1);
        (whole + u64::from(rest > half || rest == half && whole & 1 == 1), rest != 0)
    };
    let magnitude = magnitude as i64;
    (if double >> 63 == 1 { -magnitude } else { magnitude }, lost)
}

/// The double that a sum of such integers is; inexact if it was rounded.
pub fn from_fixed(sum: i64, largest: u64, bits: u32) -> (u64, Flags) {
    // A significand of the format, as an integer, stands for 2^-52 below its exponent.
    let exponent = largest as i32 - HALF - bits as i32 + (HALF + 1) + 2 * 52;
    let product = Product {
        special: Special::Number,
        sign: sum < 0,
        flags: Flags::NONE,
        exponent,
        product: Wide::from_u128(u128::from(sum.unsigned_abs())),
    };
    let packed = pack::<F64>(Mode::default(), round::<F64>(Mode::default(), normalise::<F64>(product)));
    (packed.bits, packed.flags)
}

/// What a double counts where an infinity or a NaN takes part: bit 0 for plus infinity, bit 21 for minus infinity, bit 42 for a
/// NaN. Several of one node are or-ed, so that 2^21 nodes do not fill a field.
pub fn special(double: u64) -> i64 {
    match F64::FORMAT.unpack(double).class {
        Class::QuietNan | Class::SignallingNan => 1 << (2 * FIELD),
        Class::Infinite if double >> 63 == 1 => 1 << FIELD,
        Class::Infinite => 1,
        Class::Finite => 0,
    }
}

/// The double that such counts come to: an infinity if all are of one sign and there is no NaN, else the default NaN; invalid if
/// infinities of both signs met.
pub fn from_special(counts: i64) -> (u64, Flags) {
    let field = |at: u32| counts as u64 >> (at * FIELD) & ((1 << FIELD) - 1) > 0;
    match (field(2), field(1), field(0)) {
        (false, false, true) => (SPECIAL << 52, Flags::NONE),
        (false, true, false) => (1 << 63 | SPECIAL << 52, Flags::NONE),
        (nan, ..) => (SPECIAL << 52 | 1 << 51, if nan { Flags::NONE } else { Flags::INVALID }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_a_few_doubles() {
        let bits = |x: f64| x.to_bits();
        assert_eq!((exponent(bits(1.0)), exponent(0), exponent(1), exponent(bits(f64::NAN))), (1023, 1, 1, 2047));
        assert_eq!((fraction_bits(1), fraction_bits(2), fraction_bits(5), fraction_bits(1 << 24)), (62, 61, 59, 38));
        // Below 2 = 2^1 with 38 bits: 1.0 is half of it.
        assert_eq!(to_fixed(bits(-1.0), 1023, 38), (-(1 << 37), false));
        assert_eq!(to_fixed(bits(2f64.powi(-37)), 1023, 38), (1, false));
        assert_eq!(to_fixed(bits(2f64.powi(-38)), 1023, 38), (0, true), "a tie goes to even");
        assert_eq!(to_fixed(bits(3.0 * 2f64.powi(-38)), 1023, 38), (2, true));
        assert_eq!(to_fixed(bits(2f64.powi(-900)), 1023, 38), (0, true));
        assert_eq!(from_fixed(-(1 << 37), 1023, 38), (bits(-1.0), Flags::NONE));
        assert_eq!(from_fixed(0, 1023, 38), (0, Flags::NONE));
        assert_eq!(from_fixed(i64::MIN, 2046, 38), (bits(f64::NEG_INFINITY), Flags::OVERFLOW | Flags::INEXACT));
        assert_eq!(from_fixed(1, 1, 62), (0, Flags::UNDERFLOW | Flags::INEXACT));
    }

    #[test]
    fn infinities_and_nans_are_counted() {
        let of = |all: &[f64]| from_special(all.iter().map(|x| special(x.to_bits())).sum());
        assert_eq!(of(&[1.0, f64::INFINITY, f64::INFINITY]), (f64::INFINITY.to_bits(), Flags::NONE));
        assert_eq!(of(&[f64::NEG_INFINITY, 0.0]), (f64::NEG_INFINITY.to_bits(), Flags::NONE));
        assert_eq!(of(&[f64::NEG_INFINITY, f64::INFINITY]), (0x7ff8 << 48, Flags::INVALID));
        assert_eq!(of(&[f64::NAN, f64::INFINITY]), (0x7ff8 << 48, Flags::NONE));
    }
}
