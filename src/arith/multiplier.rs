//! Floating-point multiplier.
//!
//! ```text
//!          factored        partials         product       normalised      rounded
//!  a -->+----------+     +----------+     +--------+     +-----------+     +-------+     +------+
//!       | unpack & |     | two      |     | add    |     | count     |     |       |     |      |--> product
//!       | add      |--|>-| partial  |--|>-| them   |--|>-| zeros and |--|>-| round |--|>-| pack |
//!  b -->| exponents|     | products |     |        |     | normalise |     |       |     |      |--> flags
//!       +----------+     +----------+     +--------+     +-----------+     +-------+     +------+
//!         stage 0          stage 1          stage 2         stage 3         stage 4       stage 5
//! ```
//!
//! | port | width | meaning |
//! |------|-------|---------|
//! | a, b | lane  | operands |
//! | product | lane | a x b |
//! | flags | 5 | invalid, overflow, underflow, inexact |
//!
//! Parameters and timing: as the [adder](super::adder).
//!
//! *\[chosen\]* Stage 1 multiplies a by the lower and by the upper half of b; stage 2 adds the two. A carry-save array
//! would hold different bits in the register between them and give the same product. Denormal operands are not
//! normalised first: the leading-zero count of stage 3 covers the whole product, and moves it right again where the
//! result is denormal.
//!
//! Requirements: A-PIPE-1, A-MODE-1 (`common.md`, section 1).
//!
//! ```
//! use watershed_arith::format::builds::F32;
//! use watershed_arith::multiplier::{factor, multiply, normalise, sum};
//! use watershed_arith::round::{pack, round};
//! use watershed_arith::{Flags, Mode};
//!
//! let mode = Mode::default();
//! let [a, b] = [3.0_f32, -0.5].map(|value| u64::from(value.to_bits()));
//! let product = sum::<F32>(multiply::<F32>(factor::<F32>(mode, a, b)));
//! let packed = pack::<F32>(mode, round::<F32>(mode, normalise::<F32>(product)));
//! assert_eq!((packed.bits as u32, packed.flags), ((-1.5_f32).to_bits(), Flags::NONE));
//! ```

use super::format::{Build, Class, Fault, Format, nan_of_pair};
use super::round::{EXTRA_BITS, Normalised, Packed, Special, pack, round};
use super::types::{Flags, Mode};

/// A register of up to 128 bits, as two words: it needs no wider alignment than its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct Wide {
    /// Bits 63 to 0.
    pub low: u64,
    /// Bits 127 to 64.
    pub high: u64,
}

impl Wide {
    /// Splits a number.
    #[inline]
    pub const fn from_u128(value: u128) -> Self {
        Self { low: value as u64, high: (value >> 64) as u64 }
    }

    /// Joins the halves.
    #[inline]
    pub const fn to_u128(self) -> u128 {
        (self.high as u128) << 64 | self.low as u128
    }
}

/// Register after stage 0, *unpack and add exponents*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct Factored {
    /// Bypass of NaN and infinity; for a NaN, `a` carries exponent and fraction.
    pub special: Special,
    /// Sign of the product.
    pub sign: bool,
    /// Invalid, if it was raised.
    pub flags: Flags,
    /// Sum of the biased exponents less the bias; may be negative or too large.
    pub exponent: i32,
    /// Significand of a.
    pub a: u64,
    /// Significand of b.
    pub b: u64,
}

/// Register after stage 1, *partial products*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct Partials {
    /// Bypass of NaN and infinity; for a NaN, `lower` carries exponent and fraction.
    pub special: Special,
    /// Sign of the product.
    pub sign: bool,
    /// Invalid, if it was raised.
    pub flags: Flags,
    /// Exponent of the product.
    pub exponent: i32,
    /// a times the lower half of b.
    pub lower: Wide,
    /// a times the upper half of b.
    pub upper: Wide,
}

/// Register after stage 2, *product*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct Product {
    /// Bypass of NaN and infinity; for a NaN, `product` carries exponent and fraction.
    pub special: Special,
    /// Sign of the product.
    pub sign: bool,
    /// Invalid, if it was raised.
    pub flags: Flags,
    /// Exponent of the product.
    pub exponent: i32,
    /// All bits of the product of the significands.
    pub product: Wide,
}

/// Where stage 1 cuts the significand of b.
pub const fn split(format: &Format) -> u32 {
    format.precision().div_ceil(2)
}

/// Stage 0: unpack, add exponents, find the special cases.
#[inline]
pub const fn factor<B: Build>(mode: Mode, a: u64, b: u64) -> Factored {
    let format = &B::FORMAT;
    let x = format.unpack(a);
    let y = format.unpack(b);
    let sign = x.sign != y.sign;
    if x.class.is_nan() || y.class.is_nan() {
        let (nan, flags) = nan_of_pair::<B>(&x, &y, mode.nan);
        return special(Special::Nan, false, flags, nan);
    }
    let x_infinite = matches!(x.class, Class::Infinite);
    let y_infinite = matches!(y.class, Class::Infinite);
    if x_infinite || y_infinite {
        let zero = (!x_infinite && x.significand == 0) || (!y_infinite && y.significand == 0);
        return if zero && !matches!(B::FAULT, Fault::ZeroTimesInfinity) {
            special(Special::Nan, false, Flags::INVALID, format.default_nan())
        } else {
            special(Special::Infinity, sign, Flags::NONE, 0)
        };
    }
    Factored {
        special: Special::Number,
        sign,
        flags: Flags::NONE,
        exponent: x.exponent as i32 + y.exponent as i32 - format.bias(),
        a: x.significand,
        b: y.significand,
    }
}

const fn special(special: Special, sign: bool, flags: Flags, magnitude: u64) -> Factored {
    Factored { special, sign, flags, exponent: 1, a: magnitude, b: 0 }
}

/// Stage 1: a times each half of b.
#[inline]
pub const fn multiply<B: Build>(f: Factored) -> Partials {
    let cut = split(&B::FORMAT);
    let (lower, upper) = if matches!(f.special, Special::Number) {
        let lower_half = f.b & ((1 << cut) - 1);
        let upper_half = f.b >> cut;
        (f.a as u128 * lower_half as u128, f.a as u128 * upper_half as u128)
    } else {
        (f.a as u128, 0)
    };
    Partials {
        special: f.special,
        sign: f.sign,
        flags: f.flags,
        exponent: f.exponent,
        lower: Wide::from_u128(lower),
        upper: Wide::from_u128(upper),
    }
}

/// Stage 2: add the partial products.
#[inline]
pub const fn sum<B: Build>(p: Partials) -> Product {
    let dropped = matches!(B::FAULT, Fault::DropPartial) && matches!(p.special, Special::Number);
    let lower = if dropped { 0 } else { p.lower.to_u128() };
    Product {
        special: p.special,
        sign: p.sign,
        flags: p.flags,
        exponent: p.exponent,
        product: Wide::from_u128(lower + (p.upper.to_u128() << split(&B::FORMAT))),
    }
}

/// Stage 3: count leading zeros, normalise, and move right what is below the smallest exponent.
#[inline]
pub const fn normalise<B: Build>(p: Product) -> Normalised {
    let format = &B::FORMAT;
    let product = p.product.to_u128();
    let (exponent, significand) = if !matches!(p.special, Special::Number) || product == 0 {
        (1, product as u64)
    } else {
        // The product of two hidden bits lies at 2 x fraction_bits: that is where `exponent` points.
        let top = match B::FAULT {
            Fault::SkipNormalise => 2 * format.fraction_bits as i32,
            _ => 127 - product.leading_zeros() as i32,
        };
        let exponent = p.exponent + top - 2 * format.fraction_bits as i32;
        let below = if exponent < 1 { 1 - exponent } else { 0 };
        let target = (format.fraction_bits + EXTRA_BITS) as i32;
        let right = top - target + below;
        let significand = if right <= 0 {
            (product as u64) << -right
        } else if right < 128 {
            let lost = product & ((1 << right) - 1) != 0;
            (product >> right) as u64 | (lost && !matches!(B::FAULT, Fault::DropProductTail)) as u64
        } else {
            1
        };
        (exponent + below, significand)
    };
    Normalised { special: p.special, sign: p.sign, flags: p.flags, exponent, significand }
}

/// The whole unit without registers: the same stage functions, composed.
#[inline]
pub const fn evaluate<B: Build>(mode: Mode, a: u64, b: u64) -> Packed {
    let product = sum::<B>(multiply::<B>(factor::<B>(mode, a, b)));
    pack::<B>(mode, round::<B>(mode, normalise::<B>(product)))
}

#[cfg(test)]
mod tests {
    use super::super::format::builds::{F32, F64};
    use super::*;
    use crate::types::Round;

    fn f32_mul(a: u32, b: u32) -> (u64, Flags) {
        let p = evaluate::<F32>(Mode::default(), a as u64, b as u64);
        (p.bits, p.flags)
    }

    #[test]
    fn small_products() {
        assert_eq!(f32_mul(0x4040_0000, 0x4000_0000), (0x40c0_0000, Flags::NONE)); // 3 x 2
        assert_eq!(f32_mul(0x8000_0000, 0x4000_0000), (0x8000_0000, Flags::NONE)); // -0 x 2
        assert_eq!(f32_mul(0x7f80_0000, 0), (0x7fc0_0000, Flags::INVALID));
        assert_eq!(f32_mul(0xff80_0000, 0x4000_0000), (0xff80_0000, Flags::NONE));
        assert_eq!(f32_mul(0x7f00_0000, 0x7f00_0000), (0x7f80_0000, Flags::OVERFLOW | Flags::INEXACT));
    }

    #[test]
    fn denormal_results_round_once() {
        // smallest denormal x 0.5 is a tie: to even zero; up gives the smallest denormal again
        let tiny = Flags::UNDERFLOW | Flags::INEXACT;
        assert_eq!(f32_mul(1, 0x3f00_0000), (0, tiny));
        let up = evaluate::<F32>(Mode::rounding(Round::Up), 1, 0x3f00_0000);
        assert_eq!((up.bits, up.flags), (1, tiny));
        // denormal x 2^24 is normal and exact
        assert_eq!(f32_mul(1, 0x4b80_0000), (0x0100_0000, Flags::NONE));
    }

    #[test]
    fn partial_products_add_up() {
        let factored = factor::<F64>(Mode::default(), 0x3fff_ffff_ffff_ffff, 0x3fff_ffff_ffff_ffff);
        let product = sum::<F64>(multiply::<F64>(factored));
        assert_eq!(product.product.to_u128(), ((1u128 << 53) - 1) * ((1u128 << 53) - 1));
    }
}
