//! Floating-point adder and subtractor.
//!
//! ```text
//!          compared         aligned         summed        normalised      rounded
//!  a -->+----------+     +---------+     +-------+     +-----------+     +-------+     +------+
//!       | unpack & |     |  align  |     |  add  |     | count     |     |       |     |      |--> sum
//!       | compare  |--|>-| G, R, S |--|>-|  or   |--|>-| zeros and |--|>-| round |--|>-| pack |
//!  b -->| exponents|     |         |     |  sub  |     | normalise |     |       |     |      |--> flags
//!       +----------+     +---------+     +-------+     +-----------+     +-------+     +------+
//!         stage 0          stage 1        stage 2         stage 3         stage 4       stage 5
//! ```
//!
//! `--|>-` is a place where a register may lie; [`unit::cut`](super::unit::cut) says where it does.
//!
//! | port | width | meaning |
//! |------|-------|---------|
//! | a, b | lane  | operands |
//! | sum  | lane  | a + b, or a - b when the sign of b is inverted at the input |
//! | flags | 5 | invalid, overflow, underflow, inexact |
//!
//! | parameter | default | effect |
//! |-----------|---------|--------|
//! | format | - | field widths; the same text serves every format |
//! | rounding mode, flush-to-zero, NaN policy | see [`Mode`] | bits and flags only |
//!
//! Timing: as many cycles as the unit is cut into; one pair a cycle.
//!
//! The larger magnitude is always the minuend, so the difference is never negative and one shifter suffices. A sum
//! that falls into the denormal range is exact; underflow is therefore raised only when flush-to-zero discards it.
//! An exact zero of operands with different signs is +0, or -0 when rounding down.
//!
//! Limitation: a single path (no separate near and far path); the two give the same bits.
//!
//! Requirements: A-PIPE-1, A-MODE-1 (`common.md`, section 1); IEEE 754-2019, 6.3 for the sign of zero.
//!
//! ```
//! use watershed_arith::adder::{add, align, compare, normalise};
//! use watershed_arith::format::builds::F64;
//! use watershed_arith::round::{pack, round};
//! use watershed_arith::{Flags, Mode};
//!
//! let mode = Mode::default();
//! let (a, b) = (1.0_f64.to_bits(), f64::EPSILON.to_bits() / 2); // the segments, one after another
//! let compared = compare::<F64>(mode, a, b, false);
//! let aligned = align::<F64>(compared);
//! let summed = add::<F64>(mode, aligned);
//! let rounded = round::<F64>(mode, normalise::<F64>(summed));
//! let packed = pack::<F64>(mode, rounded);
//! assert_eq!((packed.bits, packed.flags), (a, Flags::INEXACT)); // too small to change 1.0
//! ```

use super::format::{Build, Class, Fault, nan_of_pair};
use super::round::{EXTRA_BITS, Normalised, Packed, Special, pack, round, shift_right_sticky};
use super::types::{Flags, Mode, Round};

/// Register after stage 0, *unpack and compare exponents*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct Compared {
    /// Bypass of NaN and infinity; for a NaN, `larger` carries exponent and fraction.
    pub special: Special,
    /// Sign of the operand of larger magnitude.
    pub sign: bool,
    /// The signs differ: subtract.
    pub subtract: bool,
    /// Invalid, if it was raised.
    pub flags: Flags,
    /// Biased exponent of the larger operand, at least 1.
    pub exponent: i32,
    /// How far the smaller significand has to move right.
    pub distance: u32,
    /// Significand of the larger operand.
    pub larger: u64,
    /// Significand of the smaller operand.
    pub smaller: u64,
}

/// Register after stage 1, *align*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct Aligned {
    /// Bypass of NaN and infinity; for a NaN, `larger` carries exponent and fraction.
    pub special: Special,
    /// Sign of the operand of larger magnitude.
    pub sign: bool,
    /// The signs differ: subtract.
    pub subtract: bool,
    /// Invalid, if it was raised.
    pub flags: Flags,
    /// Biased exponent of both significands.
    pub exponent: i32,
    /// Larger significand, three zeros below it.
    pub larger: u64,
    /// Smaller significand, moved right, with guard, round and sticky.
    pub smaller: u64,
}

/// Register after stage 2, *add*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct Summed {
    /// Bypass of NaN and infinity; for a NaN, `sum` carries exponent and fraction.
    pub special: Special,
    /// Sign of the result.
    pub sign: bool,
    /// Invalid, if it was raised.
    pub flags: Flags,
    /// Biased exponent of the sum's hidden-bit position.
    pub exponent: i32,
    /// Sum or difference with a carry bit above and guard, round and sticky below.
    pub sum: u64,
}

/// Stage 0: unpack both operands, sort them by magnitude, find the alignment distance and the special cases.
#[inline]
pub const fn compare<B: Build>(mode: Mode, a: u64, b: u64, negate_b: bool) -> Compared {
    let format = &B::FORMAT;
    let x = format.unpack(a);
    let mut y = format.unpack(b);
    y.sign ^= negate_b;
    let subtract = x.sign != y.sign;

    if x.class.is_nan() || y.class.is_nan() {
        let (nan, flags) = nan_of_pair::<B>(&x, &y, mode.nan);
        return special(Special::Nan, false, flags, nan);
    }
    let x_infinite = matches!(x.class, Class::Infinite);
    let y_infinite = matches!(y.class, Class::Infinite);
    if x_infinite && y_infinite && subtract && !matches!(B::FAULT, Fault::InfinitiesNeverCancel) {
        return special(Special::Nan, false, Flags::INVALID, format.default_nan());
    }
    if x_infinite || y_infinite {
        let sign = if x_infinite { x.sign } else { y.sign };
        return special(Special::Infinity, sign, Flags::NONE, 0);
    }

    let sorts = !matches!(B::FAULT, Fault::SortByExponentOnly);
    let swap = x.exponent < y.exponent || (sorts && x.exponent == y.exponent && x.significand < y.significand);
    let (larger, smaller) = if swap { (y, x) } else { (x, y) };
    Compared {
        special: Special::Number,
        sign: larger.sign,
        subtract,
        flags: Flags::NONE,
        exponent: larger.exponent as i32,
        distance: larger.exponent - smaller.exponent,
        larger: larger.significand,
        smaller: smaller.significand,
    }
}

const fn special(special: Special, sign: bool, flags: Flags, magnitude: u64) -> Compared {
    Compared { special, sign, subtract: false, flags, exponent: 1, distance: 0, larger: magnitude, smaller: 0 }
}

/// Stage 1: move the smaller significand under the larger one, keeping guard, round and sticky.
#[inline]
pub const fn align<B: Build>(c: Compared) -> Aligned {
    let smaller = match B::FAULT {
        Fault::DropSticky if c.distance > 63 => 0,
        Fault::DropSticky => (c.smaller << EXTRA_BITS) >> c.distance,
        Fault::AlignShort => shift_right_sticky(c.smaller << EXTRA_BITS, c.distance.saturating_sub(1)),
        _ => shift_right_sticky(c.smaller << EXTRA_BITS, c.distance),
    };
    let is_number = matches!(c.special, Special::Number);
    Aligned {
        special: c.special,
        sign: c.sign,
        subtract: c.subtract,
        flags: c.flags,
        exponent: c.exponent,
        larger: if is_number { c.larger << EXTRA_BITS } else { c.larger },
        smaller,
    }
}

/// Stage 2: add or subtract; an exact zero difference gets its sign here.
#[inline]
pub const fn add<B: Build>(mode: Mode, a: Aligned) -> Summed {
    let sum = match B::FAULT {
        // A negative difference, in a register as wide as the sum.
        Fault::SortByExponentOnly if a.subtract => {
            a.larger.wrapping_sub(a.smaller) & (u64::MAX >> (60 - B::FORMAT.precision()))
        }
        _ if a.subtract => a.larger - a.smaller,
        _ => a.larger + a.smaller,
    };
    let cancelled = a.subtract && sum == 0;
    Summed {
        special: a.special,
        sign: if cancelled {
            matches!(mode.round, Round::Down) && !matches!(B::FAULT, Fault::ZeroAlwaysPositive)
        } else {
            a.sign
        },
        flags: a.flags,
        exponent: a.exponent,
        sum,
    }
}

/// Stage 3: count leading zeros and normalise; the left shift stops at the smallest exponent (denormals).
///
/// The count starts at the carry position, so that a carry is a shift by nothing and needs no path of its own; the
/// result is then taken one place further down.
#[inline]
pub const fn normalise<B: Build>(s: Summed) -> Normalised {
    let format = &B::FORMAT;
    if !matches!(s.special, Special::Number) {
        let Summed { special, sign, flags, exponent, sum } = s;
        return Normalised { special, sign, flags, exponent, significand: sum };
    }
    let zeros = s.sum.leading_zeros() - (63 - format.precision() - EXTRA_BITS);
    let room = s.exponent as u32;
    let shift = match B::FAULT {
        Fault::SkipNormalise if zeros > 1 => 1,
        Fault::DenormalsNormalised => zeros,
        _ if zeros < room => zeros,
        _ => room,
    };
    Normalised {
        special: s.special,
        sign: s.sign,
        flags: s.flags,
        // The exponent of a zero means nothing and is the smallest.
        exponent: if s.sum == 0 { 1 } else { s.exponent + 1 - shift as i32 },
        significand: shift_right_sticky(s.sum << shift, 1),
    }
}

/// The whole unit without registers: the same stage functions, composed.
#[inline]
pub const fn evaluate<B: Build>(mode: Mode, a: u64, b: u64, negate_b: bool) -> Packed {
    let summed = add::<B>(mode, align::<B>(compare::<B>(mode, a, b, negate_b)));
    pack::<B>(mode, round::<B>(mode, normalise::<B>(summed)))
}

#[cfg(test)]
mod tests {
    use super::super::format::builds::{F16, F32, F64};
    use super::*;

    fn f32_add(a: u32, b: u32) -> (u64, Flags) {
        let p = evaluate::<F32>(Mode::default(), a as u64, b as u64, false);
        (p.bits, p.flags)
    }

    #[test]
    fn small_sums() {
        // 1 + 1 = 2; 1 - 1 = +0; largest + half an ulp overflows
        assert_eq!(f32_add(0x3f80_0000, 0x3f80_0000), (0x4000_0000, Flags::NONE));
        assert_eq!(f32_add(0x3f80_0000, 0xbf80_0000), (0, Flags::NONE));
        assert_eq!(f32_add(0x7f7f_ffff, 0x7300_0000), (0x7f80_0000, Flags::OVERFLOW | Flags::INEXACT));
        // denormal + denormal = smallest normal, exactly
        assert_eq!(f32_add(0x007f_ffff, 0x0000_0001), (0x0080_0000, Flags::NONE));
    }

    #[test]
    fn sign_of_zero() {
        let down = Mode::rounding(Round::Down);
        let minus_zero = 1u64 << 63;
        assert_eq!(evaluate::<F64>(down, 0, minus_zero, false).bits, minus_zero);
        assert_eq!(evaluate::<F64>(Mode::default(), 0, minus_zero, false).bits, 0);
        assert_eq!(evaluate::<F64>(Mode::default(), minus_zero, minus_zero, false).bits, minus_zero);
        assert_eq!(evaluate::<F64>(down, 0, 0, false).bits, 0);
        assert_eq!(evaluate::<F64>(down, 0, 0, true).bits, minus_zero);
    }

    #[test]
    fn alignment_keeps_guard_round_and_sticky() {
        let c = Compared { distance: 4, larger: 0x80_0000, smaller: 0x80_0009, ..Compared::default() };
        // 0x800009 << 3 = 0x4000048; >> 4 = 0x400004 with 8 falling out: sticky
        let a = align::<F32>(c);
        assert_eq!((a.larger, a.smaller), (0x400_0000, 0x40_0005));
    }

    #[test]
    fn normalise_counts_zeros_and_stops_at_the_smallest_exponent() {
        let s = Summed { exponent: 3, sum: 1 << 4, ..Summed::default() };
        let n = normalise::<F16>(s);
        assert_eq!((n.exponent, n.significand), (1, 1 << 6));
        let s = Summed { exponent: 10, sum: 1 << 12, ..Summed::default() };
        let n = normalise::<F16>(s);
        assert_eq!((n.exponent, n.significand), (9, 1 << 13));
    }

    #[test]
    fn infinities_of_opposite_sign_are_invalid() {
        assert_eq!(f32_add(0x7f80_0000, 0xff80_0000), (0x7fc0_0000, Flags::INVALID));
        assert_eq!(f32_add(0x7f80_0000, 0x7f80_0000), (0x7f80_0000, Flags::NONE));
        assert_eq!(f32_add(0x3f80_0000, 0xff80_0000), (0xff80_0000, Flags::NONE));
    }
}
