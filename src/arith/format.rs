//! One description of a floating-point format, and the unpacker that every unit starts with.
//!
//! ```text
//!   lane (right-justified)         width = 1 + exponent bits + fraction bits + pad
//!   +---+----------+-----------+-----+
//!   | s | exponent | fraction  | pad |   pad: TF32 only, 13 bits
//!   +---+----------+-----------+-----+
//! ```
//!
//! | format | exponent | fraction | bias | pad | special values |
//! |--------|---------:|---------:|-----:|----:|----------------|
//! | f16    |  5 | 10 |   15 |  0 | IEEE |
//! | bf16   |  8 |  7 |  127 |  0 | IEEE |
//! | TF32   |  8 | 10 |  127 | 13 | IEEE |
//! | f32    |  8 | 23 |  127 |  0 | IEEE |
//! | f64    | 11 | 52 | 1023 |  0 | IEEE |
//! | E5M2   |  5 |  2 |   15 |  0 | IEEE |
//! | E4M3   |  4 |  3 |    7 |  0 | no infinity; only all-ones is a NaN |
//!
//! Limitations and choices:
//!
//! - The TF32 source defines no storage form. *\[chosen\]* It travels as the upper 19 bits of a 32-bit lane, so that an
//!   f32 whose low 13 fraction bits are zero is the same number. The units ignore the low 13 bits of an operand and
//!   write them as zero. An f32 NaN whose payload lies only in those bits reads as an infinity.
//! - E4M3 has no code for infinity. *\[chosen\]* A result that an IEEE format would turn into an infinity becomes the
//!   NaN (the OCP document's non-saturating behaviour); directed modes still stop at the largest finite number, 448.
//! - E4M3's NaN is quiet.
//!
//! Requirements: A-FMT-1 (`common.md`); OCP 8-bit Floating Point Specification 1.0 for the FP8 formats.

use super::types::{Flags, NanPolicy};

/// How a format uses its largest exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, watershed_state::Saved)]
pub enum Specials {
    /// IEEE 754: largest exponent is infinity (fraction zero) or NaN (quiet if the top fraction bit is set).
    Ieee,
    /// E4M3: the largest exponent holds ordinary numbers; only the all-ones fraction is a NaN.
    NanOnly,
}

/// A binary floating-point format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, watershed_state::Saved)]
pub struct Format {
    /// Width of the exponent field.
    pub exponent_bits: u32,
    /// Width of the fraction field (the significand has one bit more).
    pub fraction_bits: u32,
    /// Unused bits below the fraction.
    pub pad_bits: u32,
    /// Use of the largest exponent.
    pub specials: Specials,
}

/// What kind of value a pattern is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, watershed_state::Saved)]
pub enum Class {
    /// Zero, denormal or normal number.
    #[default]
    Finite,
    /// Infinity.
    Infinite,
    /// Quiet NaN.
    QuietNan,
    /// Signalling NaN.
    SignallingNan,
}

impl Class {
    /// True for both kinds of NaN.
    pub const fn is_nan(self) -> bool {
        matches!(self, Self::QuietNan | Self::SignallingNan)
    }
}

/// An operand taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct Unpacked {
    /// Sign bit.
    pub sign: bool,
    /// Kind of value.
    pub class: Class,
    /// Biased exponent; 1 for zeros and denormals, whose significand has no hidden bit.
    pub exponent: u32,
    /// Significand with the hidden bit at position `fraction_bits`.
    pub significand: u64,
}

impl Format {
    const fn ieee(exponent_bits: u32, fraction_bits: u32) -> Self {
        Self { exponent_bits, fraction_bits, pad_bits: 0, specials: Specials::Ieee }
    }

    /// IEEE 754 binary16.
    pub const F16: Self = Self::ieee(5, 10);
    /// bfloat16.
    pub const BF16: Self = Self::ieee(8, 7);
    /// TF32 in a 32-bit lane.
    pub const TF32: Self = Self { pad_bits: 13, ..Self::ieee(8, 10) };
    /// IEEE 754 binary32.
    pub const F32: Self = Self::ieee(8, 23);
    /// IEEE 754 binary64.
    pub const F64: Self = Self::ieee(11, 52);
    /// OCP FP8 E5M2.
    pub const FP8_E5M2: Self = Self::ieee(5, 2);
    /// OCP FP8 E4M3.
    pub const FP8_E4M3: Self = Self { specials: Specials::NanOnly, ..Self::ieee(4, 3) };

    /// Width of the significand with its hidden bit.
    pub const fn precision(&self) -> u32 {
        self.fraction_bits + 1
    }

    /// Exponent bias.
    pub const fn bias(&self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// Width of a lane, pad included.
    pub const fn width(&self) -> u32 {
        1 + self.exponent_bits + self.fraction_bits + self.pad_bits
    }

    /// Mask of the fraction field, right-justified.
    pub const fn fraction_mask(&self) -> u64 {
        (1 << self.fraction_bits) - 1
    }

    /// Mask of the exponent field, right-justified.
    pub const fn exponent_mask(&self) -> u64 {
        (1 << self.exponent_bits) - 1
    }

    /// Exponent and fraction of the largest finite number, right-justified, without pad.
    pub const fn largest_finite(&self) -> u64 {
        let all_ones = (self.exponent_mask() << self.fraction_bits) | self.fraction_mask();
        match self.specials {
            Specials::Ieee => all_ones - self.fraction_mask() - 1,
            Specials::NanOnly => all_ones - 1,
        }
    }

    /// Exponent and fraction of the infinity, right-justified, without pad; for E4M3 the NaN that stands for it.
    pub const fn infinity(&self) -> u64 {
        match self.specials {
            Specials::Ieee => self.exponent_mask() << self.fraction_bits,
            Specials::NanOnly => self.default_nan(),
        }
    }

    /// Exponent and fraction of the default quiet NaN, right-justified, without pad. Its sign is 0.
    pub const fn default_nan(&self) -> u64 {
        match self.specials {
            Specials::Ieee => (self.exponent_mask() << self.fraction_bits) | self.quiet_bit(),
            Specials::NanOnly => (self.exponent_mask() << self.fraction_bits) | self.fraction_mask(),
        }
    }

    /// The fraction bit that tells a quiet NaN from a signalling one.
    pub const fn quiet_bit(&self) -> u64 {
        1 << (self.fraction_bits - 1)
    }

    /// Joins a sign with exponent and fraction and puts the pad back.
    #[inline]
    pub const fn join(&self, sign: bool, magnitude: u64) -> u64 {
        (((sign as u64) << (self.exponent_bits + self.fraction_bits)) | magnitude) << self.pad_bits
    }

    /// Takes a lane apart.
    #[inline]
    pub const fn unpack(&self, lane: u64) -> Unpacked {
        let bits = lane >> self.pad_bits;
        let sign = (bits >> (self.exponent_bits + self.fraction_bits)) & 1 != 0;
        let exponent = (bits >> self.fraction_bits) & self.exponent_mask();
        let fraction = bits & self.fraction_mask();
        let largest_exponent = exponent == self.exponent_mask();
        let class = match self.specials {
            _ if !largest_exponent => Class::Finite,
            Specials::Ieee if fraction == 0 => Class::Infinite,
            Specials::Ieee if fraction & self.quiet_bit() == 0 => Class::SignallingNan,
            Specials::Ieee => Class::QuietNan,
            Specials::NanOnly if fraction == self.fraction_mask() => Class::QuietNan,
            Specials::NanOnly => Class::Finite,
        };
        let hidden = (exponent != 0) as u64;
        Unpacked {
            sign,
            class,
            exponent: exponent as u32 + (exponent == 0) as u32,
            significand: (hidden << self.fraction_bits) | fraction,
        }
    }

    /// The NaN that a pair with at least one NaN gives (exponent and fraction), and the flags it raises.
    ///
    /// A signalling operand raises invalid. With [`NanPolicy::Propagate`] a signalling operand's payload wins over
    /// a quiet one's, and `a` (the lower port) wins between equals. *\[chosen\]*
    pub const fn nan_of_pair(&self, a: &Unpacked, b: &Unpacked, policy: NanPolicy) -> (u64, Flags) {
        let a_signals = matches!(a.class, Class::SignallingNan);
        let b_signals = matches!(b.class, Class::SignallingNan);
        let flags = Flags::NONE.with_if(Flags::INVALID, a_signals || b_signals);
        let nan = match (policy, self.specials) {
            (NanPolicy::DefaultQuiet, _) | (_, Specials::NanOnly) => self.default_nan(),
            (NanPolicy::Propagate, Specials::Ieee) => {
                let from_a = if a_signals == b_signals { a.class.is_nan() } else { a_signals };
                let payload = if from_a { a.significand } else { b.significand };
                self.default_nan() | (payload & self.fraction_mask())
            }
        };
        (nan, flags)
    }
}

/// What a datapath is built for. It is a compile-time parameter, as it is in hardware: every stage function is written
/// once, and the compiler makes a datapath of fixed widths for each format.
///
/// A format that is not in [`builds`] needs no more than a type of its own:
///
/// ```
/// use watershed_arith::format::{Build, Format, Specials};
/// use watershed_arith::{Mode, adder};
///
/// /// E3M4, as some accelerators have it.
/// struct E3m4;
/// impl Build for E3m4 {
///     const FORMAT: Format = Format { exponent_bits: 3, fraction_bits: 4, pad_bits: 0, specials: Specials::Ieee };
/// }
/// let one = 0x30;
/// assert_eq!(adder::evaluate::<E3m4>(Mode::default(), one, one, false).bits, 0x40);
/// ```
pub trait Build {
    /// The format of operands and results.
    const FORMAT: Format;
    /// A fault built in on purpose; nothing is left of the question in a sound datapath.
    const FAULT: Fault = Fault::None;
}

/// A seeded fault of a datapath: a mistake that a designer could make. The mutation check builds faulty datapaths and
/// shows that the checks see every one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Sound.
    None,
    /// Adder: the alignment shifter loses what falls out.
    DropSticky,
    /// Adder: the smaller operand is aligned one place short.
    AlignShort,
    /// Adder: operands of equal exponent are not sorted, so that a difference can be negative.
    SortByExponentOnly,
    /// Adder: an exact zero difference is +0 in every rounding mode.
    ZeroAlwaysPositive,
    /// Adder: infinity minus infinity is an infinity.
    InfinitiesNeverCancel,
    /// Adder and multiplier: no shift to the left after cancellation.
    SkipNormalise,
    /// Adder: the left shift does not stop at the smallest exponent.
    DenormalsNormalised,
    /// Multiplier: the lower partial product is lost.
    DropPartial,
    /// Multiplier: bits below the product's guard bits are not collected.
    DropProductTail,
    /// Multiplier: zero times infinity is an infinity.
    ZeroTimesInfinity,
    /// Rounding: up acts as toward zero for positive numbers.
    UpTruncates,
    /// Rounding: ties go away from zero.
    TieAway,
    /// Rounding: a carry out of the significand does not reach the exponent.
    LoseCarry,
    /// Rounding: tininess is detected before rounding.
    TinyBeforeRounding,
    /// Pack: overflow goes to infinity in every mode.
    AlwaysInfinity,
    /// Pack: no overflow flag.
    NoOverflowFlag,
    /// Pack: flush-to-zero forgets the sign.
    FlushLosesSign,
    /// Unpack: a signalling NaN is taken for a quiet one.
    SignalNotSeen,
    /// Comparator: -0 and +0 are equal in minimum and maximum.
    ZerosEqual,
    /// Comparator: negative numbers are ordered by magnitude.
    NegativesByMagnitude,
    /// Locator: of equal values the first operand's index is kept.
    TieKeepsFirst,
    /// Locator: indices are compared as signed numbers.
    SignedIndex,
    /// Locator: a signalling NaN has no more right to the index than a quiet one.
    SignalLosesIndex,
    /// Reproducible sum: a carry passes from word to word.
    RepCarries,
    /// Reproducible sum: a part of a dropped word is added to the word above it.
    RepKeepsDropped,
    /// Reproducible sum: dropping a word is not reported.
    RepForgetsInexact,
    /// Integer unit: the second operand's sign is not extended.
    IntegerZeroExtends,
    /// Integer unit: the upper partial product is lost.
    IntegerDropPartial,
    /// Integer unit: a carry out of a signed sum counts as overflow.
    IntegerCarryIsOverflow,
    /// Conversion: a denormal is widened without being normalised.
    WidenKeepsDenormals,
    /// Conversion: narrowing loses what it shifts out.
    NarrowDropSticky,
}

/// The NaN and the flags of a pair with at least one NaN, as a build gives them.
#[inline]
pub(super) const fn nan_of_pair<B: Build>(a: &Unpacked, b: &Unpacked, policy: NanPolicy) -> (u64, Flags) {
    let (nan, flags) = B::FORMAT.nan_of_pair(a, b, policy);
    (nan, if matches!(B::FAULT, Fault::SignalNotSeen) { Flags::NONE } else { flags })
}

/// A type for every format, to build datapaths with.
pub mod builds {
    use super::{Build, Format};

    macro_rules! builds {
        ($( $(#[$doc:meta])* $name:ident = $format:ident; )+) => { $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $name {}

            impl Build for $name {
                const FORMAT: Format = Format::$format;
            }
        )+ };
    }

    builds! {
        /// IEEE 754 binary16.
        F16 = F16;
        /// bfloat16.
        Bf16 = BF16;
        /// TF32 in a 32-bit lane.
        Tf32 = TF32;
        /// IEEE 754 binary32.
        F32 = F32;
        /// IEEE 754 binary64.
        F64 = F64;
        /// OCP FP8 E4M3.
        Fp8E4m3 = FP8_E4M3;
        /// OCP FP8 E5M2.
        Fp8E5m2 = FP8_E5M2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_the_documented_patterns() {
        assert_eq!(Format::F16.largest_finite(), 0x7bff);
        assert_eq!(Format::F32.infinity(), 0x7f80_0000);
        assert_eq!(Format::F64.default_nan(), 0x7ff8_0000_0000_0000);
        assert_eq!(Format::FP8_E4M3.largest_finite(), 0x7e);
        assert_eq!(Format::FP8_E4M3.default_nan(), 0x7f);
        assert_eq!(Format::FP8_E5M2.largest_finite(), 0x7b);
        assert_eq!(Format::FP8_E5M2.default_nan(), 0x7e);
        assert_eq!(Format::TF32.join(true, Format::TF32.infinity()), 0xff80_0000);
    }

    #[test]
    fn unpack_tells_classes_apart() {
        assert_eq!(Format::F32.unpack(0x7f80_0000).class, Class::Infinite);
        assert_eq!(Format::F32.unpack(0x7f80_0001).class, Class::SignallingNan);
        assert_eq!(Format::F32.unpack(0xffc0_0001).class, Class::QuietNan);
        assert_eq!(Format::FP8_E4M3.unpack(0x7e).class, Class::Finite);
        assert_eq!(Format::FP8_E4M3.unpack(0xff).class, Class::QuietNan);
        let denormal = Format::F32.unpack(0x8000_0001);
        assert_eq!((denormal.sign, denormal.exponent, denormal.significand), (true, 1, 1));
        let one = Format::F32.unpack(0x3f80_0000);
        assert_eq!((one.exponent, one.significand), (127, 1 << 23));
    }

    #[test]
    fn tf32_ignores_its_pad() {
        assert_eq!(Format::TF32.unpack(0x3f80_1fff), Format::TF32.unpack(0x3f80_0000));
        assert_eq!(Format::TF32.unpack(0x7f80_0001).class, Class::Infinite);
    }

    #[test]
    fn propagated_payload_is_quiet_and_positive_and_signalling_wins() {
        let f = &Format::F32;
        let quiet = f.unpack(0xffc0_0123);
        let signalling = f.unpack(0xff80_0456);
        let (nan, flags) = f.nan_of_pair(&quiet, &signalling, NanPolicy::Propagate);
        assert_eq!((nan, flags), (0x7fc0_0456, Flags::INVALID));
        let (nan, flags) = f.nan_of_pair(&quiet, &f.unpack(0x7fc0_0999), NanPolicy::Propagate);
        assert_eq!((nan, flags), (0x7fc0_0123, Flags::NONE));
    }
}
