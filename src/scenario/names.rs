//! The words a scenario uses for operations, data types and rounding modes.
//!
//! The one place where names meet [`crate::arith`]: a type or operation that the arithmetic gains is added to
//! a list here and is then known to the schema, to the error messages and to the result document.

use std::fmt;

pub use crate::arith::{Accumulate, DType, Op, Round};

/// A type whose values have names in a scenario.
pub trait Named: Copy + PartialEq + 'static {
    /// Every value with its name, in the order in which messages list them.
    const NAMES: &'static [(&'static str, Self)];

    /// The name of this value.
    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, value)| *value == self).map_or("?", |(name, _)| name)
    }

    /// The value of this name.
    fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// All names.
    fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().map(|(name, _)| *name)
    }
}

impl Named for Op {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("sum", Self::Sum),
        ("prod", Self::Prod),
        ("min", Self::Min),
        ("max", Self::Max),
        ("and", Self::And),
        ("or", Self::Or),
        ("xor", Self::Xor),
        ("nand", Self::Nand),
        ("nor", Self::Nor),
        ("xnor", Self::Xnor),
        ("barrier", Self::Barrier),
    ];
}

impl Named for DType {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("i32", Self::I32),
        ("u32", Self::U32),
        ("i64", Self::I64),
        ("u64", Self::U64),
        ("f16", Self::F16),
        ("bf16", Self::Bf16),
        ("tf32", Self::Tf32),
        ("f32", Self::F32),
        ("f64", Self::F64),
        ("fp8_e4m3", Self::Fp8E4m3),
        ("fp8_e5m2", Self::Fp8E5m2),
    ];
}

impl Named for Round {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("nearest-even", Self::NearestEven),
        ("toward-zero", Self::TowardZero),
        ("up", Self::Up),
        ("down", Self::Down),
    ];
}

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

/// Whether an operation exists for a type, and if not, why.
///
/// # Errors
/// The reason, as the end of a sentence.
pub fn supports(op: Op, dtype: DType) -> Result<(), &'static str> {
    let float = matches!(layout(dtype), Layout::Float { .. });
    if float && op.is_bitwise() {
        return Err("is bitwise and takes integers only");
    }
    Ok(())
}

/// The name that a misspelt one most likely stands for.
pub fn nearest<'a, S: AsRef<str> + ?Sized + 'a>(
    given: &str,
    candidates: impl IntoIterator<Item = &'a S>,
) -> Option<String> {
    let fold = |s: &str| s.to_lowercase().replace(['_', '-', ' '], "");
    let wanted = fold(given);
    if wanted.is_empty() {
        return None;
    }
    candidates
        .into_iter()
        .map(|candidate| {
            let candidate = candidate.as_ref();
            let folded = fold(candidate);
            let mut distance = strsim::damerau_levenshtein(&wanted, &folded);
            // A cut-off or lengthened word is a likelier slip than its edit distance says.
            if wanted.len() >= 3 && (folded.starts_with(&wanted) || wanted.starts_with(&folded)) {
                distance = distance.min(1);
            }
            (distance, candidate)
        })
        .filter(|(distance, candidate)| *distance <= (given.len().max(candidate.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}

/// Joins words for a sentence: `a`, `a or b`, `a, b or c`.
pub fn one_of(words: impl IntoIterator<Item = impl fmt::Display>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| word.to_string()).collect();
    match words.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [head @ .., last] => format!("{} or {last}", head.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_slips_and_leaves_strangers_alone() {
        let keys = ["pipeline_stages", "arbiter", "collective_ids"];
        assert_eq!(nearest("pipeline_stage", keys).as_deref(), Some("pipeline_stages"));
        assert_eq!(nearest("Pipeline-Stages", keys).as_deref(), Some("pipeline_stages"));
        assert_eq!(nearest("arbitre", keys).as_deref(), Some("arbiter"));
        assert_eq!(nearest("frequency", keys), None);
        assert_eq!(nearest("", keys), None);
    }

    #[test]
    fn names_are_unique_and_come_back() {
        fn all<T: Named + fmt::Debug>() {
            for &(name, value) in T::NAMES {
                assert_eq!(value.name(), name);
                assert_eq!(T::from_name(name), Some(value));
            }
        }
        all::<Op>();
        all::<DType>();
        all::<Round>();
    }

    #[test]
    fn lists_read_as_prose() {
        assert_eq!(one_of(["a"]), "a");
        assert_eq!(one_of(["a", "b"]), "a or b");
        assert_eq!(one_of(["a", "b", "c"]), "a, b or c");
    }
}
