//! Comparator: minimum, maximum and the predicates eq, le, lt, for floating-point and integer lanes.
//!
//! ```text
//!          keys                  ordered               selected
//!  a -->+----------+          +---------+           +----------+
//!       | order    |--key a-->|         |--a < b--->|  a or b  |--> lane
//!       | keys,    |--key b-->| compare |--a = b--->|  or NaN  |
//!  b -->| NaN?     |---|>-----|         |---|>------|  or 0/1  |--> flags
//!       +----------+          +---------+           +----------+
//!         stage 0               stage 1               stage 2        (stages 3 to 5 only hold the result)
//! ```
//!
//! | operation | NaN operand | zeros | flags |
//! |-----------|-------------|-------|-------|
//! | min, max  | gives a NaN (mode's policy), quieted, sign 0 | -0 is below +0 | invalid for a signalling NaN |
//! | minnum, maxnum | the number wins; two NaNs give a NaN; a signalling NaN against a number: [`SignalPolicy`] | as min | invalid for a signalling NaN |
//! | eq        | false | equal | invalid for a signalling NaN |
//! | le, lt    | false | equal | invalid for any NaN |
//!
//! Both operands are mapped to integer keys in the order of their values, so that one integer comparator serves all
//! formats. Min and max are IEEE 754-2019's `minimum` and `maximum`. The selected operand passes unchanged:
//! flush-to-zero does not touch it. *\[chosen\]* TF32 results have their pad cleared like every other TF32 result.
//!
//! Parameters and timing: as the [adder](super::adder).
//!
//! Requirements: A-OP-1 (`common.md`, section 1); R-AR-3 (`armed.md`) for NaNs.
//!
//! ```
//! use watershed_arith::comparator::{Selection, float_keys, order, select};
//! use watershed_arith::format::builds::F32;
//! use watershed_arith::{Flags, Mode};
//!
//! let (zero, minus_zero) = (0, 0x8000_0000);
//! let keys = float_keys::<F32>(Mode::default(), Selection::Min, zero, minus_zero);
//! let least = select(Selection::Min, order(keys));
//! assert_eq!((least.bits, least.flags), (minus_zero, Flags::NONE));
//! ```

use super::format::{Build, Class, Fault, Unpacked, nan_of_pair};
use super::round::Packed;
use super::types::{DType, Flags, Mode, Op, SignalPolicy};

/// What the comparator delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, watershed_state::Saved)]
pub enum Selection {
    /// The smaller operand.
    Min,
    /// The larger operand.
    Max,
    /// The smaller operand; a number wins over a quiet NaN.
    MinNum,
    /// The larger operand; a number wins over a quiet NaN.
    MaxNum,
    /// 1 if the operands are equal, else 0.
    Equal,
    /// 1 if a <= b, else 0.
    LessOrEqual,
    /// 1 if a < b, else 0.
    Less,
}

impl Selection {
    /// What an operation that selects one of its operands needs.
    pub const fn of(op: Op) -> Option<Self> {
        Some(match op {
            Op::Min => Self::Min,
            Op::Max => Self::Max,
            Op::MinNum => Self::MinNum,
            Op::MaxNum => Self::MaxNum,
            _ => return None,
        })
    }
}

/// Register after stage 0, *keys*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct Keys {
    /// An operand is a NaN.
    pub unordered: bool,
    /// Invalid, if it was raised.
    pub flags: Flags,
    /// Order key of a.
    pub a_key: i64,
    /// Order key of b.
    pub b_key: i64,
    /// Lane a; if unordered, the lane to deliver: a NaN, or the number that wins over one.
    pub a: u64,
    /// Lane b.
    pub b: u64,
}

/// Register after stage 1, *compare*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct Ordered {
    /// An operand is a NaN.
    pub unordered: bool,
    /// Invalid, if it was raised.
    pub flags: Flags,
    /// a < b.
    pub less: bool,
    /// a = b.
    pub equal: bool,
    /// Lane a; if unordered, the lane to deliver: a NaN, or the number that wins over one.
    pub a: u64,
    /// Lane b.
    pub b: u64,
}

/// Stage 0 for floating-point lanes.
#[inline]
pub const fn float_keys<B: Build>(mode: Mode, selection: Selection, a: u64, b: u64) -> Keys {
    let format = &B::FORMAT;
    let x = format.unpack(a);
    let y = format.unpack(b);
    let predicate = matches!(selection, Selection::Equal | Selection::LessOrEqual | Selection::Less);
    if x.class.is_nan() || y.class.is_nan() {
        let (nan, flags) = nan_of_pair::<B>(&x, &y, mode.nan);
        if number_wins(mode, selection, &x, &y) {
            let number = if x.class.is_nan() { b } else { a };
            let lane = (number >> format.pad_bits) << format.pad_bits;
            return Keys { unordered: true, flags, a_key: 0, b_key: 0, a: lane, b: 0 };
        }
        let ordered_predicate = matches!(selection, Selection::LessOrEqual | Selection::Less);
        return Keys {
            unordered: true,
            flags: flags.with_if(Flags::INVALID, ordered_predicate),
            a_key: 0,
            b_key: 0,
            a: format.join(false, nan),
            b: 0,
        };
    }
    Keys {
        unordered: false,
        flags: Flags::NONE,
        a_key: float_key::<B>(a, predicate),
        b_key: float_key::<B>(b, predicate),
        a: (a >> format.pad_bits) << format.pad_bits,
        b: (b >> format.pad_bits) << format.pad_bits,
    }
}

/// Whether the number of a pair with a NaN is what the operation delivers.
const fn number_wins(mode: Mode, selection: Selection, x: &Unpacked, y: &Unpacked) -> bool {
    let prefers_numbers = matches!(selection, Selection::MinNum | Selection::MaxNum);
    let both = x.class.is_nan() && y.class.is_nan();
    let signals = matches!(x.class, Class::SignallingNan) || matches!(y.class, Class::SignallingNan);
    prefers_numbers && !both && !(signals && matches!(mode.signal, SignalPolicy::Ieee))
}

/// Exponent and fraction are already in order as an integer; the sign mirrors them. One below the mirror image puts
/// -0 under +0; without it the two zeros are equal.
const fn float_key<B: Build>(lane: u64, zeros_equal: bool) -> i64 {
    let format = &B::FORMAT;
    let zeros_equal = zeros_equal || matches!(B::FAULT, Fault::ZerosEqual);
    let bits = lane >> format.pad_bits;
    let sign_position = format.exponent_bits + format.fraction_bits;
    let magnitude = (bits & ((1 << sign_position) - 1)) as i64;
    if bits >> sign_position == 0 || matches!(B::FAULT, Fault::NegativesByMagnitude) {
        magnitude
    } else if zeros_equal {
        -magnitude
    } else {
        -magnitude - 1
    }
}

/// Stage 0 for integer lanes.
#[inline]
pub const fn integer_keys(dtype: DType, a: u64, b: u64) -> Keys {
    Keys { unordered: false, flags: Flags::NONE, a_key: integer_key(dtype, a), b_key: integer_key(dtype, b), a, b }
}

const fn integer_key(dtype: DType, lane: u64) -> i64 {
    let up = 64 - dtype.bits();
    if dtype.is_signed_integer() {
        ((lane << up) as i64) >> up
    } else {
        // Inverting the top bit turns unsigned order into signed order.
        ((lane << up) ^ (1 << 63)) as i64
    }
}

/// Stage 1: compare the keys.
#[inline]
pub const fn order(k: Keys) -> Ordered {
    Ordered {
        unordered: k.unordered,
        flags: k.flags,
        less: k.a_key < k.b_key,
        equal: k.a_key == k.b_key,
        a: k.a,
        b: k.b,
    }
}

/// Stage 2: choose. Equal operands give a; with these keys equal means equal in every bit that counts.
#[inline]
pub const fn select(selection: Selection, o: Ordered) -> Packed {
    let bits = match selection {
        Selection::Min | Selection::Max | Selection::MinNum | Selection::MaxNum if o.unordered => o.a,
        Selection::Min | Selection::MinNum => {
            if o.less || o.equal {
                o.a
            } else {
                o.b
            }
        }
        Selection::Max | Selection::MaxNum => {
            if o.less {
                o.b
            } else {
                o.a
            }
        }
        Selection::Equal => (!o.unordered && o.equal) as u64,
        Selection::LessOrEqual => (!o.unordered && (o.less || o.equal)) as u64,
        Selection::Less => (!o.unordered && o.less) as u64,
    };
    Packed { bits, flags: o.flags }
}

/// The whole unit without registers, for floating-point lanes.
#[inline]
pub const fn evaluate_float<B: Build>(mode: Mode, selection: Selection, a: u64, b: u64) -> Packed {
    select(selection, order(float_keys::<B>(mode, selection, a, b)))
}

/// The whole unit without registers, for integer lanes.
#[inline]
pub const fn evaluate_integer(dtype: DType, selection: Selection, a: u64, b: u64) -> Packed {
    select(selection, order(integer_keys(dtype, a, b)))
}

#[cfg(test)]
mod tests {
    use super::super::format::builds::{F16, F32};
    use super::*;
    use crate::types::NanPolicy;

    fn run<B: Build>(selection: Selection, a: u64, b: u64) -> (u64, Flags) {
        let p = evaluate_float::<B>(Mode::default(), selection, a, b);
        (p.bits, p.flags)
    }

    #[test]
    fn minus_zero_is_below_plus_zero_but_equal_to_it() {
        let minus = 0x8000_0000;
        for (a, b) in [(0, minus), (minus, 0)] {
            assert_eq!(run::<F32>(Selection::Min, a, b), (minus, Flags::NONE));
            assert_eq!(run::<F32>(Selection::Max, a, b), (0, Flags::NONE));
            assert_eq!(run::<F32>(Selection::Equal, a, b).0, 1);
            assert_eq!(run::<F32>(Selection::Less, a, b).0, 0);
            assert_eq!(run::<F32>(Selection::LessOrEqual, a, b).0, 1);
        }
    }

    #[test]
    fn nan_wins_and_is_quieted() {
        let one = 0x3f80_0000;
        let quiet = 0xffc0_0001;
        let signalling = 0xff80_0001;
        assert_eq!(run::<F32>(Selection::Min, one, quiet), (0x7fc0_0000, Flags::NONE));
        assert_eq!(run::<F32>(Selection::Max, signalling, one), (0x7fc0_0000, Flags::INVALID));
        assert_eq!(run::<F32>(Selection::Equal, quiet, quiet), (0, Flags::NONE));
        assert_eq!(run::<F32>(Selection::Less, quiet, one), (0, Flags::INVALID));
        let mode = Mode { nan: NanPolicy::Propagate, ..Mode::default() };
        let p = evaluate_float::<F32>(mode, Selection::Min, quiet, signalling);
        assert_eq!((p.bits, p.flags), (0x7fc0_0001, Flags::INVALID));
    }

    #[test]
    fn numbers_win_over_nans_in_minnum() {
        let (one, quiet, signalling) = (0x3f80_0000, 0xffc0_0001, 0xff80_0001);
        let ieee = Mode { signal: SignalPolicy::Ieee, ..Mode::default() };
        let min = |mode, a, b| {
            let p = evaluate_float::<F32>(mode, Selection::MinNum, a, b);
            (p.bits, p.flags)
        };
        for mode in [Mode::default(), ieee] {
            assert_eq!(min(mode, one, quiet), (one, Flags::NONE));
            assert_eq!(min(mode, quiet, quiet), (0x7fc0_0000, Flags::NONE));
            assert_eq!(min(mode, quiet, signalling), (0x7fc0_0000, Flags::INVALID));
        }
        assert_eq!(min(Mode::default(), signalling, one), (one, Flags::INVALID));
        assert_eq!(min(ieee, signalling, one), (0x7fc0_0000, Flags::INVALID));
    }

    #[test]
    fn infinities_bound_everything() {
        let (plus, minus) = (0x7c00, 0xfc00);
        for lane in [0, 0x8000, 0x0001, 0x8001, 0x7bff, 0xfbff, plus, minus] {
            assert_eq!(run::<F16>(Selection::Max, lane, plus).0, plus);
            assert_eq!(run::<F16>(Selection::Min, minus, lane).0, minus);
        }
    }

    #[test]
    fn signed_and_unsigned_integers_differ() {
        let m1 = 0xffff_ffff;
        assert_eq!(evaluate_integer(DType::I32, Selection::Min, m1, 1).bits, m1);
        assert_eq!(evaluate_integer(DType::U32, Selection::Min, m1, 1).bits, 1);
        assert_eq!(evaluate_integer(DType::I64, Selection::Max, u64::MAX, 1).bits, 1);
        assert_eq!(evaluate_integer(DType::U64, Selection::Max, u64::MAX, 1).bits, u64::MAX);
    }
}
