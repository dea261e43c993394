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
//! | `minmaxloc`, a number and a NaN | the NaN (mode's policy, quieted), its index |
//! | both, a quiet and a signalling NaN | the signalling one (mode's policy, quieted), its index; invalid |
//! | both, two quiet or two signalling NaNs | a NaN (mode's policy, quieted), the lower index |
//! | `minmaxnumloc`, a number and a quiet NaN | the number, its index |
//! | `minmaxnumloc`, a number and a signalling NaN | associative mode: the number; IEEE mode: a quiet NaN with the NaN's index |
//!
//! Two comparators work side by side, one for each half of the operand; indices are unsigned 64-bit numbers.
//! *\[chosen\]* Zeros: -0 is below +0, as in `min` and `max`, so equal means the same bits. Of two NaNs of one kind the index
//! is the lower one, whichever payload survives.
//!
//! Both operations are commutative but for payloads that the mode propagates. In associative mode any tree gives the
//! same four words, with one exception. Where a signalling NaN and another NaN compete for one index, the rule decides
//! pair by pair, and a signalling NaN that has won is quiet from then on. So which NaN the index names depends on the
//! tree; the value (a NaN) and the invalid flag do not.
//!
//! Values are f64, i64 or u64. Timing: as every unit, one operand pair a cycle.
//!
//! Requirements: R-AR-2, R-AR-3 (`armed.md`); A-OP-1 (`common.md`).

use super::comparator::{self, Keys, Ordered, Selection};
use super::format::{Build, Class, Fault};
use super::types::{DType, Flags, Mode};

/// One half of the register after stage 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct HalfKeys {
    /// The comparator's register.
    pub keys: Keys,
    /// Index of a; if unordered, the index to deliver.
    pub a_index: u64,
    /// Index of b; if unordered, the index to deliver or a second candidate.
    pub b_index: u64,
}

/// Register after stage 0, *keys*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct LocatorKeys {
    /// The minima.
    pub min: HalfKeys,
    /// The maxima.
    pub max: HalfKeys,
}

/// One half of the register after stage 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
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
    let (a_rank, b_rank) = (nan_rank::<B>(a.0), nan_rank::<B>(b.0));
    if a_rank == b_rank {
        return HalfKeys { keys, a_index: a.1, b_index: b.1 };
    }
    // The higher rank wins, but where a number wins over a NaN.
    let delivers_nan = B::FORMAT.unpack(keys.a).class.is_nan();
    let index = if (a_rank > b_rank) == delivers_nan { a.1 } else { b.1 };
    HalfKeys { keys, a_index: index, b_index: index }
}

/// What wins: a number 0, a quiet NaN 1, a signalling one 2.
const fn nan_rank<B: Build>(lane: u64) -> u8 {
    match B::FORMAT.unpack(lane).class {
        Class::SignallingNan if !matches!(B::FAULT, Fault::SignalLosesIndex) => 2,
        Class::SignallingNan | Class::QuietNan => 1,
        _ => 0,
    }
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
    use crate::types::{NanPolicy, SignalPolicy};

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
        assert_eq!(run(DType::F64, mode, false, (QUIET, 9), (QUIET, 4)), ([QUIET, 4, QUIET, 4], Flags::NONE));
        assert_eq!(run(DType::F64, mode, true, (SIGNALLING, 2), (ONE, 4)), ([ONE, 4, ONE, 4], Flags::INVALID));
        let ieee = Mode { signal: SignalPolicy::Ieee, ..mode };
        assert_eq!(run(DType::F64, ieee, true, (SIGNALLING, 2), (ONE, 4)), ([QUIET, 2, QUIET, 2], Flags::INVALID));
    }
    #[test]
    fn a_signalling_nan_and_its_index_win_over_a_quiet_one() {
        for signal in SignalPolicy::ALL {
            for nan in [NanPolicy::DefaultQuiet, NanPolicy::Propagate] {
                let mode = Mode { signal: *signal, nan, ..Mode::default() };
                for numbers_win in [false, true] {
                    for (quiet, signalling) in [(4, 2), (2, 4), (0, u64::MAX), (3, 3)] {
                        let value = if nan == NanPolicy::Propagate { QUIET | 1 } else { QUIET };
                        let expected = ([value, signalling, value, signalling], Flags::INVALID);
                        let (q, s) = ((QUIET, quiet), (SIGNALLING, signalling));
                        assert_eq!(run(DType::F64, mode, numbers_win, q, s), expected, "{mode:?}");
                        assert_eq!(run(DType::F64, mode, numbers_win, s, q), expected, "{mode:?}");
                    }
                    let two = run(DType::F64, mode, numbers_win, (SIGNALLING, 8), (SIGNALLING, 5));
                    assert_eq!((two.0[1], two.0[3], two.1), (5, 5, Flags::INVALID));
                }
            }
        }
    }
}
