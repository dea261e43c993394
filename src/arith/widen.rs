//! Accumulating in a wider format: widen before the tree, round once where the result leaves it.
//!
//! ```text
//!   word of narrow lanes            words of wide lanes                        word of narrow lanes
//!  +----+----+----+----+  widen   +---------+---------+    tree    +----------+  narrow  +----+
//!  | 3  | 2  | 1  | 0  |--------->|    1    |    0    |----------->|          |--------->|    |
//!  +----+----+----+----+ (exact)  |    3    |    2    |            |          | (rounds) +----+
//!                                 +---------+---------+
//! ```
//!
//! | operand | accumulator | operand lanes a word | wide words a word |
//! |---------|-------------|---------------------:|------------------:|
//! | E4M3, E5M2 | f16 | 8 | 2 |
//! | E4M3, E5M2 | f32 | 8 | 4 |
//! | f16, bf16 | f32 | 4 | 2 |
//!
//! The fragmenter widens first, so lanes are counted in the accumulator's width everywhere in the network. Widening is
//! exact: every operand is a number of the accumulator's format. The one rounding of *narrow* is in the mode's direction
//! and raises the flags of a conversion. The result may also stay wide.
//!
//! ```text
//!   lane -->+--------+     +-----------+     +-------+     +------+--> lane of the other format
//!           | unpack |-----| count     |-----| round |-----| pack |
//!           |        |     | zeros,    |     |       |     |      |--> flags
//!           +--------+     | rebias    |     +-------+     +------+
//!                          +-----------+
//! ```
//!
//! *\[chosen\]* A signalling NaN is quieted and raises invalid at either end; a propagated payload keeps its leading
//! bits. An infinity that is narrowed to E4M3 becomes its NaN and raises invalid: the format has no infinity.
//! Limitation: the converter is combinational; it belongs to the end point, not to the engine.
//!
//! Requirement: A-FMT-1 (`common.md`).

use super::format::{Build, Class, Fault, Specials, builds};
use super::lanes::{lane, pack_lanes, unpack_lanes};
use super::round::{self, EXTRA_BITS, Normalised, Packed, Special, shift_right_sticky};
use super::types::{DType, Flags, Mode, NanPolicy};

/// Stages *unpack* and *count zeros, rebias*: a lane of `From` as a normalised number of `To`.
#[inline]
pub const fn rebias<From: Build, To: Build>(mode: Mode, lane: u64) -> Normalised {
    let (from, to) = (&From::FORMAT, &To::FORMAT);
    let x = from.unpack(lane);
    match x.class {
        Class::QuietNan | Class::SignallingNan => {
            let flags = Flags::NONE.with_if(Flags::INVALID, matches!(x.class, Class::SignallingNan));
            let payload = x.significand & from.fraction_mask();
            let payload = if from.fraction_bits <= to.fraction_bits {
                payload << (to.fraction_bits - from.fraction_bits)
            } else {
                payload >> (from.fraction_bits - to.fraction_bits)
            };
            let keeps = matches!((mode.nan, from.specials), (NanPolicy::Propagate, Specials::Ieee))
                && matches!(to.specials, Specials::Ieee);
            return normalised(Special::Nan, false, flags, 1, to.default_nan() | if keeps { payload } else { 0 });
        }
        Class::Infinite => {
            return match to.specials {
                Specials::Ieee => normalised(Special::Infinity, x.sign, Flags::NONE, 1, 0),
                Specials::NanOnly => normalised(Special::Nan, false, Flags::INVALID, 1, to.default_nan()),
            };
        }
        Class::Finite if x.significand == 0 => return normalised(Special::Number, x.sign, Flags::NONE, 1, 0),
        Class::Finite => {}
    }
    let keeps_denormals = matches!(To::FAULT, Fault::WidenKeepsDenormals);
    let top = if keeps_denormals { from.fraction_bits as i32 } else { 63 - x.significand.leading_zeros() as i32 };
    let exponent = x.exponent as i32 - from.bias() + top - from.fraction_bits as i32 + to.bias();
    let below = if exponent < 1 { 1 - exponent } else { 0 };
    let right = top - (to.fraction_bits + EXTRA_BITS) as i32 + below;
    let significand = if right <= 0 {
        x.significand << -right
    } else if matches!(From::FAULT, Fault::NarrowDropSticky) && right < 64 {
        x.significand >> right
    } else {
        shift_right_sticky(x.significand, right as u32)
    };
    normalised(Special::Number, x.sign, Flags::NONE, exponent + below, significand)
}

const fn normalised(special: Special, sign: bool, flags: Flags, exponent: i32, significand: u64) -> Normalised {
    Normalised { special, sign, flags, exponent, significand }
}

/// Converts a lane: exact if `To` has room, else rounded once.
#[inline]
pub const fn convert<From: Build, To: Build>(mode: Mode, lane: u64) -> Packed {
    round::pack::<To>(mode, round::round::<To>(mode, rebias::<From, To>(mode, lane)))
}

/// A pair of formats: what operands are, and in what they are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, watershed_state::Saved)]
pub struct Accumulate {
    operand: DType,
    accumulator: DType,
}

impl Accumulate {
    /// Every pair of formats.
    pub const ALL: &'static [Self] = &[
        Self { operand: DType::Fp8E4m3, accumulator: DType::F16 },
        Self { operand: DType::Fp8E4m3, accumulator: DType::F32 },
        Self { operand: DType::Fp8E5m2, accumulator: DType::F16 },
        Self { operand: DType::Fp8E5m2, accumulator: DType::F32 },
        Self { operand: DType::F16, accumulator: DType::F32 },
        Self { operand: DType::Bf16, accumulator: DType::F32 },
    ];

    /// The pair, if it is one of [`Accumulate::ALL`].
    pub fn new(operand: DType, accumulator: DType) -> Option<Self> {
        Self::ALL.iter().copied().find(|pair| (pair.operand, pair.accumulator) == (operand, accumulator))
    }

    /// Type of the operands.
    pub const fn operand(self) -> DType {
        self.operand
    }

    /// Type in which they are summed: that of the lanes in the network.
    pub const fn accumulator(self) -> DType {
        self.accumulator
    }

    /// Wide words that a word of operands becomes: 2 or 4.
    pub const fn words(self) -> u32 {
        self.accumulator.bits() / self.operand.bits()
    }

    /// One operand in the accumulator's format, exactly.
    pub fn widen(self, mode: Mode, lane: u64) -> Packed {
        self.convert(true, Mode { flush_to_zero: false, ..mode }, lane)
    }

    /// One result in the operands' format, rounded once.
    pub fn narrow(self, mode: Mode, lane: u64) -> Packed {
        self.convert(false, mode, lane)
    }

    fn convert(self, widens: bool, mode: Mode, lane: u64) -> Packed {
        fn way<Narrow: Build, Wide: Build>(widens: bool, mode: Mode, lane: u64) -> Packed {
            if widens { convert::<Narrow, Wide>(mode, lane) } else { convert::<Wide, Narrow>(mode, lane) }
        }
        match (self.operand, self.accumulator) {
            (DType::Fp8E4m3, DType::F16) => way::<builds::Fp8E4m3, builds::F16>(widens, mode, lane),
            (DType::Fp8E4m3, _) => way::<builds::Fp8E4m3, builds::F32>(widens, mode, lane),
            (DType::Fp8E5m2, DType::F16) => way::<builds::Fp8E5m2, builds::F16>(widens, mode, lane),
            (DType::Fp8E5m2, _) => way::<builds::Fp8E5m2, builds::F32>(widens, mode, lane),
            (DType::F16, _) => way::<builds::F16, builds::F32>(widens, mode, lane),
            _ => way::<builds::Bf16, builds::F32>(widens, mode, lane),
        }
    }

    /// Wide word `index` of a word of operands, lane 0 of the operands being lane 0 of wide word 0.
    pub fn widen_word(self, mode: Mode, word: u64, index: u32) -> (u64, Flags) {
        let lanes = self.accumulator.lanes();
        let mut flags = Flags::NONE;
        let wide: Vec<u64> = (0..lanes)
            .map(|k| {
                let packed = self.widen(mode, lane(self.operand, word, index * lanes + k));
                flags |= packed.flags;
                packed.bits
            })
            .collect();
        (pack_lanes(self.accumulator, &wide), flags)
    }

    /// The word of results that [`Accumulate::words`] wide words become.
    pub fn narrow_words(self, mode: Mode, words: &[u64]) -> (u64, Flags) {
        let mut flags = Flags::NONE;
        let lanes: Vec<u64> = words
            .iter()
            .flat_map(|&word| unpack_lanes(self.accumulator, word))
            .map(|wide| {
                let packed = self.narrow(mode, wide);
                flags |= packed.flags;
                packed.bits
            })
            .collect();
        (pack_lanes(self.operand, &lanes), flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_and_their_words() {
        let pair = Accumulate::new(DType::Fp8E4m3, DType::F32).unwrap();
        assert_eq!(pair.words(), 4);
        assert_eq!(Accumulate::new(DType::F32, DType::F64), None);
        // 1, 2, 448, -0, NaN, ...
        let word = 0x00_01_7f_80_7e_40_38_38;
        let wide: Vec<u64> = (0..4).map(|k| pair.widen_word(Mode::default(), word, k).0).collect();
        assert_eq!(wide[0], 0x3f80_0000_3f80_0000);
        assert_eq!(wide[1], 0x43e0_0000_4000_0000);
        assert_eq!(wide[2], 0x7fc0_0000_8000_0000);
        assert_eq!(wide[3], 0x0000_0000_3b00_0000, "the smallest denormal is 2^-9");
        assert_eq!(pair.narrow_words(Mode::default(), &wide), (word, Flags::NONE));
    }

    #[test]
    fn one_rounding_on_the_way_out() {
        let pair = Accumulate::new(DType::F16, DType::F32).unwrap();
        // 65520 is the tie between 65504 and the infinity
        assert_eq!(pair.narrow(Mode::default(), 0x477f_f000).bits, 0x7c00);
        assert_eq!(pair.narrow(Mode::default(), 0x477f_efff).bits, 0x7bff);
        let fp8 = Accumulate::new(DType::Fp8E4m3, DType::F16).unwrap();
        assert_eq!(fp8.narrow(Mode::default(), 0x7c00), Packed { bits: 0x7f, flags: Flags::INVALID });
    }
}
