//! The tail that adder and multiplier share: round, then pack.
//!
//! ```text
//!   normalised                      rounded                     packed
//!   sign, exponent,    +-------+    sign, exponent,   +------+  lane bits
//!   1.fff...f G R S -->| round |--> 1.fff...f      -->| pack |--> exception flags
//!                      +-------+    inexact, tiny     +------+
//! ```
//!
//! | stage | does |
//! |-------|------|
//! | round | decides the increment from mode, sign, last bit, guard and the rest; carries into the exponent; finds out whether the result is tiny after rounding |
//! | pack  | overflow to infinity or to the largest finite number, flush-to-zero, NaN and infinity of the bypass, joins the fields |
//!
//! Tininess is detected *after* rounding, as RISC-V and x86 do: a result is tiny if, rounded with an unbounded
//! exponent, it lies below the smallest normal number. For a significand that was shifted right by exactly one place
//! this decision needs only the guard, round and sticky bits, so no register carries it separately.
//!
//! Flush-to-zero looks at the packed result: a number that rounds up to the smallest normal number is not flushed. A
//! flushed result raises underflow and inexact. *\[chosen\]* The requirement names inexact only; underflow is raised
//! too, because the result did underflow.
//!
//! Requirements: A-PIPE-1, A-MODE-1, A-FLAG-1 (`common.md`, section 1); R-AR-4 (`armed.md`).

use super::format::{Build, Fault, Format, Specials};
use super::types::{Flags, Mode, Round};

/// Bits kept below the significand: guard, round, sticky.
pub const EXTRA_BITS: u32 = 3;

/// Shifts right and ORs every bit that falls out into the lowest one (the sticky bit).
#[inline]
pub(super) const fn shift_right_sticky(value: u64, distance: u32) -> u64 {
    // 63 places move everything into the sticky bit: farther is the same.
    let distance = if distance < 63 { distance } else { 63 };
    (value >> distance) | (value & ((1 << distance) - 1) != 0) as u64
}

/// Whether a result goes around the significand path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub enum Special {
    /// An ordinary number.
    #[default]
    Number,
    /// A NaN; the significand register carries its exponent and fraction.
    Nan,
    /// An infinity of the register's sign.
    Infinity,
}

/// Register after normalisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct Normalised {
    /// Bypass of NaN and infinity.
    pub special: Special,
    /// Sign of the result.
    pub sign: bool,
    /// Flags raised so far (only invalid is possible).
    pub flags: Flags,
    /// Biased exponent, at least 1; 1 with a clear hidden bit is a denormal or zero.
    pub exponent: i32,
    /// Significand, hidden bit at position `fraction_bits + 3`, with guard, round and sticky below it.
    pub significand: u64,
}

/// Register after rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct Rounded {
    /// Bypass of NaN and infinity.
    pub special: Special,
    /// Sign of the result.
    pub sign: bool,
    /// Flags raised so far (only invalid is possible).
    pub flags: Flags,
    /// Biased exponent, at least 1.
    pub exponent: i32,
    /// Rounded significand, hidden bit at position `fraction_bits`.
    pub significand: u64,
    /// Guard, round or sticky was set.
    pub inexact: bool,
    /// The result is below the smallest normal number even after rounding.
    pub tiny: bool,
}

/// Register after packing: what leaves the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct Packed {
    /// Right-justified lane.
    pub bits: u64,
    /// Flags of this one operation.
    pub flags: Flags,
}

/// What the rounding decision looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// Last bit that is kept.
    pub last: bool,
    /// First bit that is not.
    pub guard: bool,
    /// Any bit below it.
    pub rest: bool,
}

/// The rounding decision: whether the significand is incremented.
#[inline]
pub const fn increments(round: Round, sign: bool, tail: Tail) -> bool {
    match round {
        Round::NearestEven => tail.guard && (tail.last || tail.rest),
        Round::TowardZero => false,
        Round::Up => !sign && (tail.guard || tail.rest),
        Round::Down => sign && (tail.guard || tail.rest),
    }
}

/// Stage *round*.
#[inline]
pub const fn round<B: Build>(mode: Mode, n: Normalised) -> Rounded {
    let format = &B::FORMAT;
    if !matches!(n.special, Special::Number) {
        return Rounded {
            special: n.special,
            sign: n.sign,
            flags: n.flags,
            exponent: n.exponent,
            significand: n.significand,
            inexact: false,
            tiny: false,
        };
    }
    let hidden = 1 << format.fraction_bits;
    let kept = n.significand >> EXTRA_BITS;
    let last = kept & 1 != 0;
    let guard = n.significand & 0b100 != 0;
    let below_guard = n.significand & 0b010 != 0;
    let sticky = n.significand & 0b001 != 0;

    let tail = Tail { last, guard, rest: below_guard || sticky };
    let up = match B::FAULT {
        Fault::UpTruncates if matches!(mode.round, Round::Up) && !n.sign => false,
        Fault::TieAway if matches!(mode.round, Round::NearestEven) => guard,
        _ => increments(mode.round, n.sign, tail),
    };
    let sum = kept + up as u64;
    let carried = sum >> format.precision() != 0;

    // Below the hidden bit the result is tiny, unless it sits directly under the smallest normal number and the
    // same value, rounded one place further down (guard is then the last bit), carries into it.
    let all_ones = kept == hidden - 1 && guard;
    let lower_tail = Tail { last: true, guard: below_guard, rest: sticky };
    let rounds_out = all_ones && increments(mode.round, n.sign, lower_tail);
    let tiny = kept & hidden == 0 && (!rounds_out || matches!(B::FAULT, Fault::TinyBeforeRounding));

    Rounded {
        special: n.special,
        sign: n.sign,
        flags: n.flags,
        exponent: n.exponent + (carried && !matches!(B::FAULT, Fault::LoseCarry)) as i32,
        significand: if carried { sum >> 1 } else { sum },
        inexact: guard || below_guard || sticky,
        tiny,
    }
}

/// Stage *pack*.
#[inline]
pub const fn pack<B: Build>(mode: Mode, r: Rounded) -> Packed {
    let format = &B::FORMAT;
    match r.special {
        Special::Nan => Packed { bits: format.join(false, r.significand), flags: r.flags },
        Special::Infinity => Packed { bits: format.join(r.sign, format.infinity()), flags: r.flags },
        Special::Number => {
            let fraction = r.significand & format.fraction_mask();
            let normal = r.significand >> format.fraction_bits != 0;
            let exponent = if normal { r.exponent as u64 } else { 0 };
            let magnitude = (exponent << format.fraction_bits) | fraction;
            if magnitude > format.largest_finite() {
                let round = if matches!(B::FAULT, Fault::AlwaysInfinity) { Round::NearestEven } else { mode.round };
                return Packed {
                    bits: overflowed(format, round, r.sign),
                    flags: r
                        .flags
                        .with_if(Flags::OVERFLOW, !matches!(B::FAULT, Fault::NoOverflowFlag))
                        .union(Flags::INEXACT),
                };
            }
            if mode.flush_to_zero && !normal && fraction != 0 {
                return Packed {
                    bits: format.join(r.sign && !matches!(B::FAULT, Fault::FlushLosesSign), 0),
                    flags: r.flags.union(Flags::UNDERFLOW).union(Flags::INEXACT),
                };
            }
            Packed {
                bits: format.join(r.sign, magnitude),
                flags: r.flags.with_if(Flags::INEXACT, r.inexact).with_if(Flags::UNDERFLOW, r.tiny && r.inexact),
            }
        }
    }
}

/// What an overflowing result of this sign becomes.
const fn overflowed(format: &Format, round: Round, sign: bool) -> u64 {
    let away = match round {
        Round::NearestEven => true,
        Round::TowardZero => false,
        Round::Up => !sign,
        Round::Down => sign,
    };
    if !away {
        return format.join(sign, format.largest_finite());
    }
    match format.specials {
        Specials::Ieee => format.join(sign, format.infinity()),
        // A NaN result has sign 0 wherever it comes from.
        Specials::NanOnly => format.join(false, format.default_nan()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::builds::{F16, F32};
    use super::*;

    fn number(sign: bool, exponent: i32, significand: u64) -> Normalised {
        Normalised { sign, exponent, significand, ..Normalised::default() }
    }

    #[test]
    fn the_increment_table() {
        use Round::{Down, NearestEven, TowardZero, Up};
        // (last, guard, rest) -> increment for a positive number, in the order of the modes below
        let table = [
            ((false, false, false), [false, false, false, false]),
            ((false, false, true), [false, false, true, false]),
            ((false, true, false), [false, false, true, false]),
            ((true, true, false), [true, false, true, false]),
            ((false, true, true), [true, false, true, false]),
        ];
        for ((last, guard, rest), expected) in table {
            let tail = Tail { last, guard, rest };
            for (mode, want) in [NearestEven, TowardZero, Up, Down].into_iter().zip(expected) {
                assert_eq!(increments(mode, false, tail), want, "{mode} {tail:?}");
            }
            // Mirrored for negative numbers: up and down change places.
            assert_eq!(increments(Up, true, tail), expected[3]);
            assert_eq!(increments(Down, true, tail), expected[2]);
        }
    }

    #[test]
    fn sticky_shift_never_loses_a_bit() {
        assert_eq!(shift_right_sticky(0b1000, 3), 1);
        assert_eq!(shift_right_sticky(0b1001, 3), 1);
        assert_eq!(shift_right_sticky(0b10001, 3), 0b11);
        assert_eq!(shift_right_sticky(1, 64), 1);
        assert_eq!(shift_right_sticky(1 << 63, 200), 1);
        assert_eq!(shift_right_sticky(0, 200), 0);
        assert_eq!(shift_right_sticky(7, 0), 7);
    }

    #[test]
    fn rounding_carries_into_the_exponent() {
        let all_ones = number(false, 15, (0x7ff << 3) | 0b100);
        let r = round::<F16>(Mode::default(), all_ones);
        assert_eq!((r.exponent, r.significand, r.inexact), (16, 0x400, true));
    }

    #[test]
    fn tininess_is_detected_after_rounding() {
        // Just under the smallest normal number. Moved right by one place: kept bits 0x3ff, then G R S.
        // G R S = 1 1 0: with an unbounded exponent the last bit is G = 1 and R S = half, so it carries: not tiny.
        let r = round::<F16>(Mode::default(), number(false, 1, (0x3ff << 3) | 0b110));
        assert!(!r.tiny && r.inexact && r.significand == 0x400);
        // G R S = 1 0 1: rounds up to the smallest normal number here, but not with an unbounded exponent: tiny.
        let r = round::<F16>(Mode::default(), number(false, 1, (0x3ff << 3) | 0b101));
        assert!(r.tiny && r.inexact && r.significand == 0x400);
    }

    #[test]
    fn overflow_goes_where_the_mode_says() {
        for (round, sign, bits) in [
            (Round::NearestEven, false, 0x7f80_0000),
            (Round::NearestEven, true, 0xff80_0000),
            (Round::TowardZero, false, 0x7f7f_ffff),
            (Round::TowardZero, true, 0xff7f_ffff),
            (Round::Up, false, 0x7f80_0000),
            (Round::Up, true, 0xff7f_ffff),
            (Round::Down, false, 0x7f7f_ffff),
            (Round::Down, true, 0xff80_0000),
        ] {
            let r = Rounded { sign, exponent: 255, significand: 1 << 23, ..Rounded::default() };
            let packed = pack::<F32>(Mode::rounding(round), r);
            assert_eq!(packed.bits, bits);
            assert_eq!(packed.flags, Flags::OVERFLOW | Flags::INEXACT);
        }
    }

    #[test]
    fn flush_keeps_the_sign() {
        let mode = Mode { flush_to_zero: true, ..Mode::default() };
        let r = Rounded { sign: true, exponent: 1, significand: 5, ..Rounded::default() };
        let packed = pack::<F32>(mode, r);
        assert_eq!((packed.bits, packed.flags), (0x8000_0000, Flags::UNDERFLOW | Flags::INEXACT));
        assert_eq!(pack::<F32>(Mode::default(), r).bits, 0x8000_0005);
    }
}
