//! The plain vocabulary of the arithmetic: operations, data types, rounding modes, exception flags, modes.
//!
//! Nothing in this file computes; `oracle/` uses these enumerations too and shares nothing else with `arith/`.
//!
//! Requirements: A-FMT-1, A-OP-1, A-MODE-1, A-FLAG-1 (`common.md`, section 1).

use std::fmt;
use std::ops::{BitOr, BitOrAssign};
use std::str::FromStr;

use super::format::Format;

/// A name that is not in the list it was looked up in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{given}`; one of: {}", legal.join(", "))]
pub struct UnknownName {
    /// What was looked for, in words (`operation`, `data type` and so on).
    pub what: &'static str,
    /// The name as it was given.
    pub given: String,
    /// Every legal name, in declaration order.
    pub legal: Vec<&'static str>,
}

/// Declares a plain enumeration together with `ALL`, `name`, `Display` and `FromStr`, so that a value and its
/// spelling are written once.
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident, $what:literal {
            $( $(#[$vmeta:meta])* $variant:ident = $text:literal $(| $alias:literal)* ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, watershed_state::Saved)]
        pub enum $name {
            $( $(#[$vmeta])* $variant, )+
        }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [Self] = &[ $( Self::$variant ),+ ];

            /// The spelling used in scenarios, reports and on the command line.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $text ),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $name {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, UnknownName> {
                match text {
                    $( $text $(| $alias)* => Ok(Self::$variant), )+
                    _ => Err(UnknownName {
                        what: $what,
                        given: text.to_owned(),
                        legal: Self::ALL.iter().map(|v| v.name()).collect(),
                    }),
                }
            }
        }
    };
}

named_enum! {
    /// A collective operation: what a reduction does with two operands.
    pub enum Op, "operation" {
        /// Sum; integers wrap.
        Sum = "sum",
        /// Product; integers wrap.
        Prod = "prod",
        /// Minimum. Floating point: any NaN gives a NaN, and -0 is below +0.
        Min = "min",
        /// Maximum. Floating point: any NaN gives a NaN, and +0 is above -0.
        Max = "max",
        /// Bitwise AND.
        And = "and",
        /// Bitwise OR.
        Or = "or",
        /// Bitwise exclusive OR.
        Xor = "xor",
        /// Bitwise NAND of each pair (not associative: a tree gives what its shape gives).
        Nand = "nand",
        /// Bitwise NOR of each pair (not associative: a tree gives what its shape gives).
        Nor = "nor",
        /// Bitwise exclusive NOR of each pair.
        Xnor = "xnor",
        /// Synchronisation without data: the result word is zero.
        Barrier = "barrier",
        /// Minimum in which a number wins over a quiet NaN.
        MinNum = "minnum",
        /// Maximum in which a number wins over a quiet NaN.
        MaxNum = "maxnum",
        /// Minimum and maximum with their indices, in four lanes; any NaN gives a NaN.
        MinMaxLoc = "minmaxloc",
        /// Minimum and maximum with their indices, in four lanes; numbers win over quiet NaNs.
        MinMaxNumLoc = "minmaxnumloc",
        /// Reproducible sum of doubles: four words of a 40-bit window and an exponent index.
        RepSum = "repsum",
    }
}

impl Op {
    /// The operations every family has: those that work word by word and need nothing beside the word.
    pub const COMMON: &'static [Self] = &[
        Self::Sum,
        Self::Prod,
        Self::Min,
        Self::Max,
        Self::And,
        Self::Or,
        Self::Xor,
        Self::Nand,
        Self::Nor,
        Self::Xnor,
        Self::Barrier,
    ];

    /// True for the operations whose operand is all four words of a frame: they need the
    /// [quad unit](super::quad), and no reduction tree takes them.
    pub const fn is_wide(self) -> bool {
        matches!(self, Self::MinMaxLoc | Self::MinMaxNumLoc | Self::RepSum)
    }

    /// True for the six operations that treat a word as bits and do not look at the data type.
    pub const fn is_bitwise(self) -> bool {
        matches!(self, Self::And | Self::Or | Self::Xor | Self::Nand | Self::Nor | Self::Xnor)
    }
}

named_enum! {
    /// The type of the lanes of a 64-bit word.
    pub enum DType, "data type" {
        /// Signed 32-bit integer, two's complement.
        I32 = "i32",
        /// Unsigned 32-bit integer.
        U32 = "u32",
        /// Signed 64-bit integer, two's complement.
        I64 = "i64",
        /// Unsigned 64-bit integer.
        U64 = "u64",
        /// IEEE 754 binary16.
        F16 = "f16",
        /// bfloat16: 8 exponent bits, 7 fraction bits.
        Bf16 = "bf16",
        /// TF32: 8 exponent bits, 10 fraction bits, left-justified in a 32-bit lane.
        Tf32 = "tf32",
        /// IEEE 754 binary32.
        F32 = "f32",
        /// IEEE 754 binary64.
        F64 = "f64",
        /// OCP FP8 E4M3 (the "FN" form: no infinity, one NaN pattern a sign).
        Fp8E4m3 = "fp8_e4m3" | "e4m3" | "e4m3fn" | "fp8e4m3",
        /// OCP FP8 E5M2.
        Fp8E5m2 = "fp8_e5m2" | "e5m2" | "fp8e5m2",
    }
}

impl DType {
    /// Width of a lane in bits. TF32 counts 32: it travels in a 32-bit lane.
    pub const fn bits(self) -> u32 {
        match self {
            Self::I64 | Self::U64 | Self::F64 => 64,
            Self::I32 | Self::U32 | Self::Tf32 | Self::F32 => 32,
            Self::F16 | Self::Bf16 => 16,
            Self::Fp8E4m3 | Self::Fp8E5m2 => 8,
        }
    }

    /// Lanes in a 64-bit word: 1, 2, 4 or 8.
    pub const fn lanes(self) -> u32 {
        64 / self.bits()
    }

    /// A mask of one right-justified lane.
    pub const fn lane_mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// True for the floating-point types.
    pub const fn is_float(self) -> bool {
        self.format().is_some()
    }

    /// True for the signed integers.
    pub const fn is_signed_integer(self) -> bool {
        matches!(self, Self::I32 | Self::I64)
    }

    /// The description of a floating-point type; `None` for integers.
    pub const fn format(self) -> Option<&'static Format> {
        match self {
            Self::I32 | Self::U32 | Self::I64 | Self::U64 => None,
            Self::F16 => Some(&Format::F16),
            Self::Bf16 => Some(&Format::BF16),
            Self::Tf32 => Some(&Format::TF32),
            Self::F32 => Some(&Format::F32),
            Self::F64 => Some(&Format::F64),
            Self::Fp8E4m3 => Some(&Format::FP8_E4M3),
            Self::Fp8E5m2 => Some(&Format::FP8_E5M2),
        }
    }
}

named_enum! {
    /// Rounding mode.
    #[derive(Default)]
    pub enum Round, "rounding mode" {
        /// To the nearest, ties to the even significand.
        #[default]
        NearestEven = "nearest-even" | "nearest_even" | "near_even" | "rnear_even" | "rne",
        /// Toward zero (truncate).
        TowardZero = "toward-zero" | "toward_zero" | "zero" | "minMag" | "rminMag" | "rtz",
        /// Toward plus infinity.
        Up = "up" | "max" | "rmax" | "rup",
        /// Toward minus infinity.
        Down = "down" | "min" | "rmin" | "rdn",
    }
}

named_enum! {
    /// What the result is when an operand is a NaN.
    #[derive(Default)]
    pub enum NanPolicy, "NaN policy" {
        /// Every NaN result is the one default quiet NaN of the format: sign 0, only the quiet bit set.
        #[default]
        DefaultQuiet = "default",
        /// The payload of an operand survives, quieted, with sign 0. Of two NaNs a signalling one wins over a
        /// quiet one; otherwise the operand of the lower port wins. *\[chosen\]*
        Propagate = "propagate",
    }
}

named_enum! {
    /// What a signalling NaN does to a number in `minnum`, `maxnum` and `minmaxnumloc`
    /// (register `R_TF_RED_CFG_MODE` of the armed family). Invalid is raised either way.
    #[derive(Default)]
    pub enum SignalPolicy, "signalling-NaN policy" {
        /// The number wins, so that a result does not depend on the order. *\[chosen as the default\]*
        #[default]
        Associative = "associative",
        /// The pair gives a quiet NaN, as IEEE 754-2008 has it.
        Ieee = "ieee",
    }
}

/// How the floating-point units round, flush and treat NaNs.
///
/// The default is nearest-even, no flushing, default quiet NaN, associative `minnum`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, watershed_state::Saved)]
pub struct Mode {
    /// Rounding mode of sums and products.
    pub round: Round,
    /// A sum or product whose rounded result is denormal becomes a zero of the same sign; underflow and inexact
    /// are raised. Values that are only selected (minimum, maximum) or passed on are not touched. *\[chosen\]*
    pub flush_to_zero: bool,
    /// What NaN results look like.
    pub nan: NanPolicy,
    /// What a signalling NaN does in `minnum` and its kin.
    pub signal: SignalPolicy,
}

impl Mode {
    /// The default mode with another rounding mode.
    pub const fn rounding(round: Round) -> Self {
        Self { round, flush_to_zero: false, nan: NanPolicy::DefaultQuiet, signal: SignalPolicy::Associative }
    }
}

/// Sticky exception flags.
///
/// | bit | flag | raised by |
/// |----:|------|-----------|
/// | 0 | inexact | the rounded result differs from the exact one |
/// | 1 | underflow | the result is tiny (after rounding) and inexact, or was flushed |
/// | 2 | overflow | the rounded result exceeds the largest finite number |
/// | 3 | - | division by zero in other units; never set here |
/// | 4 | invalid | signalling NaN operand, infinity minus infinity, infinity times zero, ordered comparison of a NaN |
/// | 5 | integer overflow | an integer sum or product wrapped |
/// | 6 | reproducible sum inexact | an alignment dropped a word that was not zero |
///
/// Bits 0 to 4 lie where SoftFloat and TestFloat put them, so that vectors can be compared as they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, watershed_state::Saved)]
pub struct Flags(u8);

impl Flags {
    /// No exception.
    pub const NONE: Self = Self(0);
    /// The rounded result differs from the exact one.
    pub const INEXACT: Self = Self(1);
    /// The result is tiny after rounding and inexact.
    pub const UNDERFLOW: Self = Self(2);
    /// The rounded result exceeds the largest finite number.
    pub const OVERFLOW: Self = Self(4);
    /// No sensible result exists, or a signalling NaN was an operand.
    pub const INVALID: Self = Self(16);
    /// An integer sum or product wrapped.
    pub const INT_OVERFLOW: Self = Self(32);
    /// The alignment of a reproducible sum dropped a word that was not zero.
    pub const REP_INEXACT: Self = Self(64);

    const NAMES: [(Self, &'static str); 6] = [
        (Self::INVALID, "invalid"),
        (Self::OVERFLOW, "overflow"),
        (Self::UNDERFLOW, "underflow"),
        (Self::INEXACT, "inexact"),
        (Self::INT_OVERFLOW, "int_overflow"),
        (Self::REP_INEXACT, "rep_inexact"),
    ];

    /// The flags as a number, in the layout above.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Flags from a number in the layout above; unknown bits (division by zero among them) are dropped.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0b111_0111)
    }

    /// True if no flag is raised.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if every flag of `other` is raised in `self`.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags with `other` raised too if `condition` holds.
    #[must_use]
    pub const fn with_if(self, other: Self, condition: bool) -> Self {
        if condition { Self(self.0 | other.0) } else { self }
    }

    /// The union; usable in constants.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The names of the raised flags, in a fixed order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, name)| name)
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (k, name) in self.names().enumerate() {
            if k > 0 {
                f.write_str("|")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flags({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_and_strangers_are_refused() {
        for op in Op::ALL {
            assert_eq!(op.name().parse::<Op>().as_ref(), Ok(op));
        }
        for dtype in DType::ALL {
            assert_eq!(dtype.name().parse::<DType>().as_ref(), Ok(dtype));
        }
        for round in Round::ALL {
            assert_eq!(round.name().parse::<Round>().as_ref(), Ok(round));
        }
        let error = "summ".parse::<Op>().unwrap_err();
        assert!(error.to_string().starts_with("unknown operation `summ`; one of: sum, prod"));
    }

    #[test]
    fn lanes_fill_a_word() {
        for dtype in DType::ALL {
            assert_eq!(dtype.lanes() * dtype.bits(), 64);
        }
    }

    #[test]
    fn flags_print_their_names() {
        let flags = Flags::OVERFLOW | Flags::INEXACT;
        assert_eq!(flags.to_string(), "overflow|inexact");
        assert_eq!(Flags::NONE.to_string(), "none");
        assert_eq!(flags.names().collect::<Vec<_>>(), ["overflow", "inexact"]);
        assert!(flags.contains(Flags::INEXACT) && !flags.contains(Flags::INVALID));
    }
}
