//! Comparing a run with the oracle: the first difference, how far apart, and where it arose.
//!
//! Requirement: A-GOLD-1 (`common.md`, section 1).

use std::fmt;

use watershed_arith::{DType, Flags, Mode, Op};

use super::exact::{Meaning, read, shape};
use super::tree::{Node, evaluate_with};

/// The first difference between a run and the oracle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Type of the lanes.
    pub dtype: DType,
    /// Index of the 64-bit word.
    pub word: usize,
    /// Lane of the word; `None` if the values agree and only the flags differ.
    pub lane: Option<u32>,
    /// The lane (or word) the run gave.
    pub got: u64,
    /// The lane (or word) it had to give.
    pub expected: u64,
    /// Flags the run gave.
    pub got_flags: Flags,
    /// Flags it had to give.
    pub expected_flags: Flags,
    /// Distance of the two values in units in the last place (integers: their difference); `None` for a NaN.
    pub ulps: Option<u64>,
    /// The lowest node whose recorded value differs, if values were recorded.
    pub node: Option<String>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.lane.map_or(16, |_| self.dtype.bits() as usize / 4);
        write!(f, "word {}", self.word)?;
        if let Some(lane) = self.lane {
            write!(f, " lane {lane} ({})", self.dtype)?;
            write!(f, ": got {:#0w$x}, expected {:#0w$x}", self.got, self.expected, w = digits + 2)?;
            match self.ulps {
                Some(ulps) => write!(f, ", {}", apart(ulps))?,
                None => write!(f, ", not comparable")?,
            }
        } else {
            write!(f, ": value {:#018x} is right", self.got)?;
        }
        if self.got_flags != self.expected_flags {
            write!(f, "; flags {}, expected {}", self.got_flags, self.expected_flags)?;
        }
        if let Some(node) = &self.node {
            write!(f, "; they part at {node}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Mismatch {}

/// What was run: everything the oracle needs to do it again.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Operation.
    pub op: Op,
    /// Type of the lanes.
    pub dtype: DType,
    /// Rounding, flushing, NaN policy.
    pub mode: Mode,
    /// Words in each contribution.
    pub words: usize,
    /// Word `.1` of contribution `.0`.
    pub contribution: &'a dyn Fn(usize, usize) -> u64,
    /// What the run saw leave a node, by name and word, if it was recorded.
    pub recorded: &'a dyn Fn(&str, usize) -> Option<u64>,
}

/// Compares every word of a result, value and flags, with the untimed tree.
///
/// # Errors
///
/// The first difference, the lowest word and lane first. With recorded node values it also names the first node, in
/// the order children before parents, whose value is not what the oracle has there.
pub fn compare(node: &Node, run: &Run<'_>, result: &dyn Fn(usize) -> (u64, Flags)) -> Result<(), Box<Mismatch>> {
    for word in 0..run.words {
        let (got, got_flags) = result(word);
        let mut parted: Option<String> = None;
        let (expected, expected_flags) = evaluate_with(
            node,
            run.op,
            run.dtype,
            run.mode,
            &|contribution| (run.contribution)(contribution, word),
            &mut |name, value, _| {
                if parted.is_none() && (run.recorded)(name, word).is_some_and(|seen| seen != value) {
                    parted = Some(name.to_owned());
                }
            },
        );
        if (got, got_flags) == (expected, expected_flags) {
            continue;
        }
        let bits = run.dtype.bits();
        let lane = (got != expected).then(|| (got ^ expected).trailing_zeros() / bits);
        let cut = |value: u64| match lane {
            Some(lane) => value >> (lane * bits) & (u64::MAX >> (64 - bits)),
            None => value,
        };
        return Err(Box::new(Mismatch {
            dtype: run.dtype,
            word,
            lane,
            got: cut(got),
            expected: cut(expected),
            got_flags,
            expected_flags,
            ulps: match lane {
                Some(_) => ulp_distance(run.dtype, cut(got), cut(expected)),
                None => Some(0),
            },
            node: parted,
        }));
    }
    Ok(())
}

/// A distance in words: "1 ulp apart".
pub fn apart(ulps: u64) -> String {
    format!("{ulps} ulp{} apart", if ulps == 1 { "" } else { "s" })
}

/// How many representable values lie between two right-justified lanes.
///
/// Zeros of both signs are one value; infinity is the value after the largest number. Integers give their difference.
/// `None` if either is a NaN, unless both are the same pattern.
pub fn ulp_distance(dtype: DType, a: u64, b: u64) -> Option<u64> {
    let mask = u64::MAX >> (64 - dtype.bits());
    let (a, b) = (a & mask, b & mask);
    if a == b {
        return Some(0);
    }
    let Some(s) = shape(dtype) else {
        return Some(match dtype {
            DType::I32 => u64::from((a as i32).abs_diff(b as i32)),
            DType::I64 => (a as i64).abs_diff(b as i64),
            _ => a.abs_diff(b),
        });
    };
    if [a, b].iter().any(|&lane| matches!(read(dtype, lane), Meaning::Nan { .. })) {
        return None;
    }
    // Patterns of one sign are in the order of their values; the negative ones count downwards from zero.
    let place = |lane: u64| {
        let magnitude = ((lane & (mask >> 1)) >> s.pad) as i64;
        if lane >> (dtype.bits() - 1) == 1 { -magnitude } else { magnitude }
    };
    Some(place(a).abs_diff(place(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(ulp_distance(DType::F32, 0x3f80_0000, 0x3f80_0003), Some(3));
        assert_eq!(ulp_distance(DType::F32, 0x8000_0001, 0x0000_0001), Some(2));
        assert_eq!(ulp_distance(DType::F32, 0x8000_0000, 0), Some(0));
        assert_eq!(ulp_distance(DType::F32, 0x7f7f_ffff, 0x7f80_0000), Some(1));
        assert_eq!(ulp_distance(DType::F32, 0x7fc0_0000, 0), None);
        assert_eq!(ulp_distance(DType::F32, 0x7fc0_0000, 0x7fc0_0000), Some(0));
        assert_eq!(
            ulp_distance(DType::F64, 0xfff0_0000_0000_0000, 0x7ff0_0000_0000_0000),
            Some(2 * 0x7ff0_0000_0000_0000)
        );
        assert_eq!(ulp_distance(DType::Tf32, 0x3f80_0000, 0x3f80_2000), Some(1));
        assert_eq!(ulp_distance(DType::I32, 0xffff_ffff, 1), Some(2));
        assert_eq!(ulp_distance(DType::U32, 0xffff_ffff, 1), Some(0xffff_fffe));
    }

    fn two_levels() -> Node {
        let engine = |name: &str, inputs| Node::Reduce { name: name.to_owned(), radix: 2, inputs };
        engine(
            "root",
            vec![
                (0, engine("left", vec![(0, Node::Leaf(0)), (1, Node::Leaf(1))])),
                (1, engine("right", vec![(0, Node::Leaf(2)), (1, Node::Leaf(3))])),
            ],
        )
    }

    #[test]
    fn the_first_difference_is_found_and_placed() {
        let node = two_levels();
        let contribution = |who: usize, word: usize| (who + word) as u64;
        let sum = |word: usize| 6 + 4 * word as u64;
        // Word 2 is wrong by one, because the right engine gave one too many.
        let recorded = |name: &str, word: usize| match (name, word) {
            ("left", _) => Some(1 + 2 * word as u64),
            ("right", 2) => Some(5 + 2 * 2 + 1),
            ("right", _) => Some(5 + 2 * word as u64),
            ("root", 2) => Some(sum(2) + 1),
            _ => None,
        };
        let run = Run {
            op: Op::Sum,
            dtype: DType::I64,
            mode: Mode::default(),
            words: 4,
            contribution: &contribution,
            recorded: &recorded,
        };
        assert_eq!(compare(&node, &run, &|word| (sum(word), Flags::NONE)), Ok(()));
        let wrong = |word: usize| (sum(word) + u64::from(word == 2), Flags::NONE);
        let mismatch = compare(&node, &run, &wrong).unwrap_err();
        assert_eq!((mismatch.word, mismatch.lane, mismatch.ulps), (2, Some(0), Some(1)));
        assert_eq!(mismatch.node.as_deref(), Some("right"));
        assert_eq!(
            mismatch.to_string(),
            "word 2 lane 0 (i64): got 0x000000000000000f, expected 0x000000000000000e, 1 ulp apart; \
             they part at right"
        );
    }

    #[test]
    fn a_difference_in_flags_alone_counts() {
        let node = two_levels();
        let run = Run {
            op: Op::Max,
            dtype: DType::F32,
            mode: Mode::default(),
            words: 1,
            contribution: &|_, _| 0x3f80_0000,
            recorded: &|_, _| None,
        };
        let mismatch = compare(&node, &run, &|_| (0x3f80_0000, Flags::INEXACT)).unwrap_err();
        assert_eq!((mismatch.lane, mismatch.ulps), (None, Some(0)));
        assert!(mismatch.to_string().contains("flags inexact, expected none"));
    }
}
