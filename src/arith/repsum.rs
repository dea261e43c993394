//! Reproducible sum: four integer words of a 40-bit window and an exponent index M.
//!
//! ```text
//!           compared            aligned              summed
//!  a, M -->+----------+       +------------+       +-----------+--> four words, M
//!          | larger M |--|>---| move words |--|>---| four      |
//!          | first,   |       | of smaller |       | wrapping  |--> rep_inexact
//!  b, M -->| distance |--|>---| M down     |--|>---| adders    |--> int_overflow, oflow_id
//!          +----------+       +------------+       +-----------+
//!            stage 0             stage 1             stage 2      (stages 3 to 5 only hold the result)
//!
//!   word 3            word 2            word 1            word 0
//!  +-------+--------+-------+--------+-------+--------+-------+--------+
//!  | carry | 40 bit | carry | 40 bit | carry | 40 bit | carry | 40 bit |   each a signed 64-bit integer
//!  +-------+--------+-------+--------+-------+--------+-------+--------+
//!   x 2^40M          x 2^40(M-1)       x 2^40(M-2)       x 2^40(M-3)
//! ```
//!
//! | port | width | meaning |
//! |------|-------|---------|
//! | words | 4 x 64 | word k weighs 2^(40(M-3+k)): M names the top word |
//! | m | 8, signed | -26 to 25 for numbers; 125 minus infinity, 126 infinity, 127 NaN |
//! | code | 4 | REP_INEXACT if a dropped word was not zero, INT_OVERFLOW if a word wrapped |
//! | oflow_id | 2 | the most significant word that wrapped |
//!
//! Why it is reproducible: no carry passes between words, so the sum is a vector of integers, one for each window of 40
//! bits, of which the four below the largest M are kept. Integer addition wraps and so is associative; a word that
//! an early alignment drops lies below the final window too. Words and M therefore depend neither on the order of the
//! operands nor on the shape of the tree. Codes and oflow_id may.
//!
//! Capacity: a fresh word is below 2^40, so 2^23 operands of any value fit a signed 64-bit word and one more can
//! wrap. (The source's 2^24 holds only for smaller words.)
//!
//! Choices:
//!
//! - *\[chosen\]* An overflow that came with an operand moves down with its word. If the alignment drops that word, the
//!   overflow is dropped with it, and what remains of it is REP_INEXACT.
//! - *\[chosen\]* Of several overflows the most significant word, after alignment, is named.
//! - Infinities and NaN are zero words with the largest M, so they win by the same rule as any number: the rule makes
//!   infinity plus minus infinity an infinity, not a NaN, and a finite non-zero operand raises REP_INEXACT. A
//!   signalling NaN raises FLT_INVALID where it is split.
//! - *\[chosen\]* The simple conversion back rounds each word to a double and adds them from the lowest up; it is within an
//!   ulp or two. The correct one joins the words to one integer and rounds once.
//!
//! Split and conversion back run on the host; they are written here with integers and the [rounding
//! stages](super::round) because this folder has no other floating point.
//!
//! Requirements: R-AR-5, R-AR-6 (`armed.md`).

use super::adder;
use super::code::ResultCode;
use super::format::{Build, Class, Fault, builds};
use super::quad::Quad;
use super::round::{self, EXTRA_BITS, Normalised, Packed, Special};
use super::types::{Flags, Mode};

/// Bits of a window.
pub const WINDOW: u32 = 40;

/// Operands of any value that never overflow a word.
pub const CAPACITY: u64 = 1 << (63 - WINDOW);

/// M of a minus infinity.
pub const M_MINUS_INFINITY: i8 = 125;
/// M of an infinity.
pub const M_INFINITY: i8 = 126;
/// M of a NaN.
pub const M_NAN: i8 = 127;

/// Register after stage 0, *compare*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct RepCompared {
    /// The larger M.
    pub m: i8,
    /// Words to move down, at most 4.
    pub distance: u8,
    /// The operand with the larger M.
    pub larger: Quad,
    /// The other one.
    pub smaller: Quad,
}

/// Register after stage 1, *align*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct RepAligned {
    /// The M of both.
    pub m: i8,
    /// Words of the operand with the larger M.
    pub larger: [u64; 4],
    /// Words of the other one, in their new places.
    pub smaller: [u64; 4],
    /// Code so far.
    pub code: ResultCode,
    /// An operand had wrapped in a word that is still there.
    pub overflowed: bool,
    /// Which one, if so.
    pub oflow_id: u8,
}

/// Stage 0: the operand with the larger M comes first.
#[inline]
pub const fn compare(a: Quad, b: Quad) -> RepCompared {
    let (larger, smaller) = if a.m < b.m { (b, a) } else { (a, b) };
    let distance = (larger.m as i32 - smaller.m as i32) as u32;
    RepCompared { m: larger.m, distance: if distance < 4 { distance as u8 } else { 4 }, larger, smaller }
}

/// Stage 1: move the words of the smaller M down and see what falls out.
#[inline]
pub const fn align<B: Build>(c: RepCompared) -> RepAligned {
    let distance = c.distance as usize;
    let mut words = [0; 4];
    let mut dropped = false;
    let mut k = 0;
    while k < 4 {
        if k < distance {
            dropped |= c.smaller.lanes[k] != 0;
        } else {
            words[k - distance] = c.smaller.lanes[k];
        }
        k += 1;
    }
    if matches!(B::FAULT, Fault::RepKeepsDropped) && distance > 0 && distance < 4 {
        // The word that falls out last is added to the lowest one instead.
        words[0] = words[0].wrapping_add(c.smaller.lanes[distance - 1] >> WINDOW);
    }
    let larger_overflowed = matches!(c.larger.code, ResultCode::IntOverflow);
    let smaller_had = matches!(c.smaller.code, ResultCode::IntOverflow);
    let smaller_overflowed = smaller_had && c.smaller.oflow_id >= c.distance;
    let smaller_code = if smaller_had && !smaller_overflowed { ResultCode::RepInexact } else { c.smaller.code };
    let larger_id = if larger_overflowed { c.larger.oflow_id } else { 0 };
    let smaller_id = if smaller_overflowed { c.smaller.oflow_id - c.distance } else { 0 };
    let lost = dropped && !matches!(B::FAULT, Fault::RepForgetsInexact);
    let inexact = if lost { ResultCode::RepInexact } else { ResultCode::Ok };
    RepAligned {
        m: c.m,
        larger: c.larger.lanes,
        smaller: words,
        code: c.larger.code.climb(smaller_code).climb(inexact),
        overflowed: larger_overflowed || smaller_overflowed,
        oflow_id: if larger_id < smaller_id { smaller_id } else { larger_id },
    }
}

/// Stage 2: four adders without a carry between them.
#[inline]
pub const fn add<B: Build>(r: RepAligned) -> Quad {
    let mut lanes = [0; 4];
    let mut oflow_id = r.oflow_id;
    let mut overflowed = r.overflowed;
    let mut carry = 0;
    let mut k = 0;
    while k < 4 {
        let (sum, wrapped) = (r.larger[k] as i64).overflowing_add(r.smaller[k] as i64);
        lanes[k] = sum as u64;
        if matches!(B::FAULT, Fault::RepCarries) {
            lanes[k] = lanes[k].wrapping_add(carry);
            carry = (r.larger[k] as u128 + r.smaller[k] as u128 > u64::MAX as u128) as u64;
        }
        if wrapped && (!overflowed || oflow_id < k as u8) {
            oflow_id = k as u8;
        }
        overflowed |= wrapped;
        k += 1;
    }
    let code = if overflowed { r.code.climb(ResultCode::IntOverflow) } else { r.code };
    Quad { lanes, code, m: r.m, oflow_id }
}

/// The whole unit without registers.
#[inline]
pub const fn merge<B: Build>(a: Quad, b: Quad) -> Quad {
    add::<B>(align::<B>(compare(a, b)))
}

/// Host side: the words and M of a double.
pub const fn split(double: u64) -> Quad {
    let x = builds::F64::FORMAT.unpack(double);
    match x.class {
        Class::Infinite if x.sign => return empty(M_MINUS_INFINITY, ResultCode::Ok),
        Class::Infinite => return empty(M_INFINITY, ResultCode::Ok),
        Class::QuietNan => return empty(M_NAN, ResultCode::Ok),
        Class::SignallingNan => return empty(M_NAN, ResultCode::FltInvalid),
        Class::Finite => {}
    }
    // For zeros and denormals the exponent is 1 and the hidden bit is clear.
    let exponent = x.exponent as i32 - 1023;
    let window = WINDOW as i32;
    let m = exponent.div_euclid(window);
    let w = exponent.rem_euclid(window) as u32;
    // w + 1 bits of the 53 belong to the top word; the rest hangs below it.
    let below = 52 - w;
    let wide = (x.significand as u128) << (2 * WINDOW - below);
    let mask = (1 << WINDOW) - 1;
    let words = [0, wide as u64 & mask, (wide >> WINDOW) as u64 & mask, (wide >> (2 * WINDOW)) as u64];
    let mut lanes = [0; 4];
    let mut k = 0;
    while k < 4 {
        lanes[k] = if x.sign { words[k].wrapping_neg() } else { words[k] };
        k += 1;
    }
    Quad { lanes, code: ResultCode::Ok, m: m as i8, oflow_id: 0 }
}

const fn empty(m: i8, code: ResultCode) -> Quad {
    Quad { lanes: [0; 4], code, m, oflow_id: 0 }
}

/// Host side, correctly rounded: the double nearest (in the mode's sense) to the number that words and M say.
pub const fn join(mode: Mode, words: [u64; 4], m: i8) -> Packed {
    let format = &builds::F64::FORMAT;
    match m {
        M_MINUS_INFINITY => return Packed { bits: format.join(true, format.infinity()), flags: Flags::NONE },
        M_INFINITY => return Packed { bits: format.join(false, format.infinity()), flags: Flags::NONE },
        M_NAN => return Packed { bits: format.join(false, format.default_nan()), flags: Flags::NONE },
        _ => {}
    }
    // Carries out of every window into the next: 24 signed bits above it are at most what arrives there.
    let (mut digits, mut top) = propagate(words, false);
    let sign = top < 0;
    if sign {
        (digits, top) = propagate(words, true);
    }
    let low = digits[0] as u128
        | (digits[1] as u128) << WINDOW
        | (digits[2] as u128) << (2 * WINDOW)
        | (digits[3] as u128) << (3 * WINDOW);
    let high = (digits[3] >> (128 - 3 * WINDOW)) | (top as u64) << (4 * WINDOW - 128);
    if low == 0 && high == 0 {
        return Packed { bits: 0, flags: Flags::NONE };
    }

    let last = if high != 0 { 191 - high.leading_zeros() as i32 } else { 127 - low.leading_zeros() as i32 };
    let exponent = last + WINDOW as i32 * (m as i32 - 3) + format.bias();
    let below = if exponent < 1 { 1 - exponent } else { 0 };
    let right = last - (format.fraction_bits + EXTRA_BITS) as i32 + below;
    let significand = if right <= 0 { (low as u64) << -right } else { shift_sticky(high, low, right as u32) };
    // Far above the largest exponent one overflow is as good as another.
    let exponent = if exponent + below > 2047 { 2047 } else { exponent + below };
    let normalised = Normalised { special: Special::Number, sign, flags: Flags::NONE, exponent, significand };
    round::pack::<builds::F64>(mode, round::round::<builds::F64>(mode, normalised))
}

/// The four windows with every carry moved up, and what leaves the highest.
const fn propagate(words: [u64; 4], negate: bool) -> ([u64; 4], i64) {
    let mut digits = [0; 4];
    let mut carry: i128 = 0;
    let mut k = 0;
    while k < 4 {
        let word = words[k] as i64 as i128;
        let sum = carry + if negate { -word } else { word };
        digits[k] = sum as u64 & ((1 << WINDOW) - 1);
        carry = sum >> WINDOW;
        k += 1;
    }
    (digits, carry as i64)
}

/// 192 bits moved right by at least one place, everything lost in the sticky bit; the result fits 64 bits.
const fn shift_sticky(high: u64, low: u128, right: u32) -> u64 {
    if right >= 192 {
        return 1;
    }
    if right >= 128 {
        let lost = low != 0 || (right > 128 && high & ((1 << (right - 128)) - 1) != 0);
        return high >> (right - 128) | lost as u64;
    }
    let lost = low & ((1 << right) - 1) != 0;
    let from_high = (high as u128) << (128 - right);
    (low >> right | from_high) as u64 | lost as u64
}

/// Host side, simple: every word rounded to a double, added from the lowest up.
pub const fn join_simply(mode: Mode, words: [u64; 4], m: i8) -> Packed {
    if m >= M_MINUS_INFINITY {
        return join(mode, words, m);
    }
    let mut sum = Packed { bits: 0, flags: Flags::NONE };
    let mut k = 0;
    while k < 4 {
        let mut only = [0; 4];
        only[k] = words[k];
        let word = join(mode, only, m);
        let next = adder::evaluate::<builds::F64>(mode, sum.bits, word.bits, false);
        sum = Packed { bits: next.bits, flags: sum.flags.union(word.flags).union(next.flags) };
        k += 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::format::builds::F64;
    use super::*;

    const ONE: u64 = 0x3ff0_0000_0000_0000;

    #[test]
    fn one_is_the_lowest_bit_of_window_zero() {
        assert_eq!(split(ONE), Quad { lanes: [0, 0, 0, 1], ..Quad::default() });
        assert_eq!(split(ONE | 1 << 63).lanes, [0, 0, 0, u64::MAX]);
        // 1 + 2^-52: bit 28 of the window two below
        assert_eq!(split(ONE + 1).lanes, [0, 1 << 28, 0, 1]);
        // 2^39 takes the whole top window
        assert_eq!(split(0x4260_0000_0000_0001).lanes, [0, 0, 1 << 27, 1 << 39]);
        let tiny = split(1);
        assert_eq!((tiny.m, tiny.lanes), (-26, [0, 0, 1 << 6, 0]));
        assert_eq!(split(0), Quad { m: -26, ..Quad::default() });
        assert_eq!(split(0x7fef_ffff_ffff_ffff).m, 25);
    }

    #[test]
    fn special_values_are_zero_words_with_a_large_m() {
        for (double, m) in [(0x7ff0u64, 126), (0xfff0, 125), (0x7ff8, 127), (0xfff9, 127)] {
            assert_eq!(split(double << 48), Quad { m, ..Quad::default() });
        }
        assert_eq!(split(0x7ff0_0000_0000_0001).code, ResultCode::FltInvalid);
        assert_eq!(join(Mode::default(), [0; 4], 125).bits, 0xfff0_0000_0000_0000);
        let infinite = merge::<F64>(split(ONE), split(0x7ff0_0000_0000_0000));
        assert_eq!((infinite.lanes, infinite.m, infinite.code), ([0; 4], 126, ResultCode::RepInexact));
    }

    #[test]
    fn alignment_drops_words_and_says_so() {
        let small = Quad { lanes: [1, 2, 3, 4], m: 0, ..Quad::default() };
        let large = Quad { lanes: [10, 20, 30, 40], m: 2, ..Quad::default() };
        let sum = merge::<F64>(small, large);
        assert_eq!(sum, Quad { lanes: [13, 24, 30, 40], m: 2, code: ResultCode::RepInexact, oflow_id: 0 });
        let exact = merge::<F64>(Quad { lanes: [0, 0, 3, 4], ..small }, large);
        assert_eq!(exact.code, ResultCode::Ok);
        let far = merge::<F64>(small, Quad { m: 100, ..large });
        assert_eq!((far.lanes, far.code), (large.lanes, ResultCode::RepInexact));
    }

    #[test]
    fn the_highest_overflow_is_named_unless_alignment_drops_it() {
        let most = i64::MAX as u64;
        let full = Quad { lanes: [most, most, 0, 0], ..Quad::default() };
        let over = merge::<F64>(full, full);
        assert_eq!((over.code, over.oflow_id), (ResultCode::IntOverflow, 1));
        // One window up the overflow lies in word 0, two up it is gone.
        let one = merge::<F64>(over, Quad { m: 1, ..Quad::default() });
        assert_eq!((one.code, one.oflow_id), (ResultCode::IntOverflow, 0));
        let two = merge::<F64>(over, Quad { m: 2, ..Quad::default() });
        assert_eq!((two.code, two.oflow_id), (ResultCode::RepInexact, 0));
    }
}
