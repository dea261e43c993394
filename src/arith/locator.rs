//! Locator: minimum and maximum of values together with the places they came from.
//!
//! ```text
//!               keys                  ordered                located
//!  a: min, i -->+----------+       +------------+         +-----------+--> lane 0: min value
//!  b: min, i -->| order    |--|>---| compare    |---|>----| value and |--> lane 1: min index
//!               | keys     |       | values and |         | index     |
//!  a: max, i -->| NaN?     |--|>---| indices    |---|>----|           |--> lane 2: max value
//!  b: max, i -->+----------+       +------------+         +-----------+--> lane 3: max index, flags
//!                 stage 0             stage 1               stage 2      (stages 3 to 5 only hold the result)
//! ```
//!
//! | port | width | meaning |
//! |------|-------|---------|
//! | a, b | 4 x 64 | min value, min index, max value, max index of each operand |
//! | result | 4 x 64 | the same of both |
//! | flags | 1 | invalid |
//!
//! | case | result |
//! |------|--------|
//! | equal values | the lowest index, for minimum and maximum |
//! | `minmaxloc`, a NaN | the NaN (mode's policy), its index; of two NaNs the lower index |
//! | `minmaxnumloc`, a number and a quiet NaN | the number, its index |
//! | `minmaxnumloc`, a number and a signalling NaN | associative mode: the number; IEEE mode: a quiet NaN with the NaN's index |
//!
//! Two comparators work side by side, one for each half of the operand; indices are unsigned 64-bit numbers.
//! *\[chosen\]* Zeros: -0 is below +0, as in `min` and `max`, so equal means the same bits. The index beside a NaN is the
//! lowest of the pair's NaN operands, whichever payload survives: so it does not depend on the order of operands.
//!
//! Values are f64, i64 or u64. Timing: as every unit, one operand pair a cycle.
//!
//! Requirements: R-AR-2, R-AR-3 (`armed.md`); A-OP-1 (`common.md`).

use super::comparator::{self, Keys, Ordered, Selection};
use super::format::{Build, Fault};
use super::types::{DType, Flags, Mode};

/// One half of the register after stage 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HalfKeys {
    /// The comparator's register.
    pub keys: Keys,
    /// Index of a; if unordered, the index to deliver.
    pub a_index: u64,
    /// Index of b; if unordered, the index to deliver or a second candidate.
    pub b_index: u64,
}

/// Register after stage 0, *keys*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LocatorKeys {
    /// The minima.
    pub min: HalfKeys,
    /// The maxima.
    pub max: HalfKeys,
}

/// One half of the register after stage 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HalfOrdered {
    /// The comparator's register.
    pub ordered: Ordered,
    /// Index of a.
    pub a_index: u64,
    /// Index of b.
    pub b_index: u64,
    /// The index of a is the lower one.
    pub a_first: bool,
}

/// Register after stage 1, *order*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LocatorOrdered {
    /// The minima.
    pub min: HalfOrdered,
    /// The maxima.
    pub max: HalfOrdered,
}

/// The two selections of a locator.
pub const fn selections(numbers_win: bool) -> (Selection, Selection) {
    if numbers_win { (Selection::MinNum, Selection::MaxNum) } else { (Selection::Min, Selection::Max) }
}

/// Stage 0: order keys of both halves; `dtype` tells the two integer types from the format of `B`.
#[inline]
pub const fn keys<B: Build>(dtype: DType, mode: Mode, numbers_win: bool, a: [u64; 4], b: [u64; 4]) -> LocatorKeys {
    let (low, high) = selections(numbers_win);
    LocatorKeys {
        min: half_keys::<B>(dtype, mode, low, (a[0], a[1]), (b[0], b[1])),
        max: half_keys::<B>(dtype, mode, high, (a[2], a[3]), (b[2], b[3])),
    }
}

const fn half_keys<B: Build>(dtype: DType, mode: Mode, selection: Selection, a: (u64, u64), b: (u64, u64)) -> HalfKeys {
    if !dtype.is_float() {
        return HalfKeys { keys: comparator::integer_keys(dtype, a.0, b.0), a_index: a.1, b_index: b.1 };
    }
    let keys = comparator::float_keys::<B>(mode, selection, a.0, b.0);
    let a_nan = B::FORMAT.unpack(a.0).class.is_nan();
    let b_nan = B::FORMAT.unpack(b.0).class.is_nan();
    let delivers_nan = B::FORMAT.unpack(keys.a).class.is_nan();
    let (a_index, b_index) = if a_nan == b_nan {
        (a.1, b.1)
    } else {
        let index = if a_nan == delivers_nan { a.1 } else { b.1 };
        (index, index)
    };
    HalfKeys { keys, a_index, b_index }
}

/// Stage 1: compare values and indices.
#[inline]
pub const fn order<B: Build>(k: LocatorKeys) -> LocatorOrdered {
    LocatorOrdered { min: half_order::<B>(k.min), max: half_order::<B>(k.max) }
}

const fn half_order<B: Build>(k: HalfKeys) -> HalfOrdered {
    HalfOrdered {
        ordered: comparator::order(k.keys),
        a_index: k.a_index,
        b_index: k.b_index,
        a_first: if matches!(B::FAULT, Fault::SignedIndex) {
            k.a_index as i64 <= k.b_index as i64
        } else {
            k.a_index <= k.b_index
        },
    }
}

/// Stage 2: values and their places.
#[inline]
pub const fn select<B: Build>(numbers_win: bool, o: LocatorOrdered) -> ([u64; 4], Flags) {
    let (low, high) = selections(numbers_win);
    let (min, min_index, min_flags) = half_select::<B>(low, o.min);
    let (max, max_index, max_flags) = half_select::<B>(high, o.max);
    ([min, min_index, max, max_index], min_flags.union(max_flags))
}

const fn half_select<B: Build>(selection: Selection, h: HalfOrdered) -> (u64, u64, Flags) {
    let o = h.ordered;
    let tie = o.unordered || (o.equal && !matches!(B::FAULT, Fault::TieKeepsFirst));
    let a_wins = if tie {
        h.a_first
    } else {
        match selection {
            Selection::Min | Selection::MinNum => o.less || o.equal,
            _ => !o.less,
        }
    };
    let value = comparator::select(selection, o);
    (value.bits, if a_wins { h.a_index } else { h.b_index }, value.flags)
}

/// The whole unit without registers.
#[inline]
pub const fn evaluate<B: Build>(
    dtype: DType,
    mode: Mode,
    numbers_win: bool,
    a: [u64; 4],
    b: [u64; 4],
) -> ([u64; 4], Flags) {
    select::<B>(numbers_win, order::<B>(keys::<B>(dtype, mode, numbers_win, a, b)))
}

#[cfg(test)]
mod tests {
    use super::super::format::builds::F64;
    use super::*;
    use crate::arith::types::SignalPolicy;

    const ONE: u64 = 0x3ff0_0000_0000_0000;
    const TWO: u64 = 0x4000_0000_0000_0000;
    const QUIET: u64 = 0x7ff8_0000_0000_0000;
    const SIGNALLING: u64 = 0x7ff0_0000_0000_0001;

    fn run(dtype: DType, mode: Mode, numbers_win: bool, a: (u64, u64), b: (u64, u64)) -> ([u64; 4], Flags) {
        evaluate::<F64>(dtype, mode, numbers_win, [a.0, a.1, a.0, a.1], [b.0, b.1, b.0, b.1])
    }

    #[test]
    fn equal_values_give_the_lowest_index_in_both_halves() {
        for dtype in [DType::F64, DType::I64, DType::U64] {
            for (a, b) in [((ONE, 7), (ONE, 3)), ((ONE, 3), (ONE, 7)), ((ONE, 3), (ONE, u64::MAX))] {
                assert_eq!(run(dtype, Mode::default(), false, a, b), ([ONE, 3, ONE, 3], Flags::NONE));
            }
            assert_eq!(run(dtype, Mode::default(), false, (TWO, 1), (ONE, 9)).0, [ONE, 9, TWO, 1]);
        }
    }

    #[test]
    fn signed_and_unsigned_values() {
        assert_eq!(run(DType::I64, Mode::default(), false, (u64::MAX, 1), (5, 2)).0, [u64::MAX, 1, 5, 2]);
        assert_eq!(run(DType::U64, Mode::default(), false, (u64::MAX, 1), (5, 2)).0, [5, 2, u64::MAX, 1]);
        // -0 is below +0
        assert_eq!(run(DType::F64, Mode::default(), false, (0, 1), (1 << 63, 2)).0, [1 << 63, 2, 0, 1]);
    }

    #[test]
    fn nans_bring_their_index() {
        let mode = Mode::default();
        assert_eq!(run(DType::F64, mode, false, (ONE, 1), (QUIET, 9)), ([QUIET, 9, QUIET, 9], Flags::NONE));
        assert_eq!(run(DType::F64, mode, true, (ONE, 1), (QUIET, 0)), ([ONE, 1, ONE, 1], Flags::NONE));
        assert_eq!(run(DType::F64, mode, true, (QUIET, 4), (SIGNALLING, 2)), ([QUIET, 2, QUIET, 2], Flags::INVALID));
        assert_eq!(run(DType::F64, mode, true, (SIGNALLING, 2), (ONE, 4)), ([ONE, 4, ONE, 4], Flags::INVALID));
        let ieee = Mode { signal: SignalPolicy::Ieee, ..mode };
        assert_eq!(run(DType::F64, ieee, true, (SIGNALLING, 2), (ONE, 4)), ([QUIET, 2, QUIET, 2], Flags::INVALID));
    }
}
