//! How the bits of an element are to be read.

use watershed_arith::DType;

/// How the bits of an element are to be read: all that loading and printing data needs to know of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Two's complement or unsigned integer.
    Integer {
        /// Width in bits.
        bits: u32,
        /// Two's complement.
        signed: bool,
    },
    /// Sign, exponent, fraction, as in IEEE 754.
    Float {
        /// Exponent bits.
        exponent: u32,
        /// Fraction bits, without the hidden one.
        fraction: u32,
        /// Unused low bits: TF32 stands left-justified in its lane.
        pad: u32,
        /// The largest exponent is kept for infinities and NaN. Without them (E4M3) it counts on to the largest
        /// number, and only the pattern of all ones is a NaN.
        ieee: bool,
    },
}

impl Layout {
    /// Width of an element in bits.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Integer { bits, .. } => bits,
            Self::Float { exponent, fraction, pad, .. } => 1 + exponent + fraction + pad,
        }
    }

    /// A mask over the bits of an element.
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// Whether the type has infinities.
    pub const fn has_infinity(self) -> bool {
        matches!(self, Self::Float { ieee: true, .. })
    }
}

/// The layout of a data type.
pub const fn layout(dtype: DType) -> Layout {
    const fn integer(bits: u32, signed: bool) -> Layout {
        Layout::Integer { bits, signed }
    }
    const fn float(exponent: u32, fraction: u32, pad: u32) -> Layout {
        Layout::Float { exponent, fraction, pad, ieee: true }
    }
    match dtype {
        DType::I32 => integer(32, true),
        DType::U32 => integer(32, false),
        DType::I64 => integer(64, true),
        DType::U64 => integer(64, false),
        DType::F16 => float(5, 10, 0),
        DType::Bf16 => float(8, 7, 0),
        DType::Tf32 => float(8, 10, 13),
        DType::F32 => float(8, 23, 0),
        DType::F64 => float(11, 52, 0),
        DType::Fp8E4m3 => Layout::Float { exponent: 4, fraction: 3, pad: 0, ieee: false },
        DType::Fp8E5m2 => float(5, 2, 0),
    }
}
