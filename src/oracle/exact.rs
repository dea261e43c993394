//! Exact arithmetic on big integers, rounded once by the definition of IEEE 754: the second opinion.
//!
//! A finite number is `integer x 2^scale`. Sums and products of such numbers are exact; one function then rounds to a
//! format the way the standard defines it: as if to an unbounded exponent, then to the format, and compares. It is slow
//! and simple on purpose. It decides the flags of bf16, TF32 and FP8, which SoftFloat does not have, and gives exact
//! sums of many operands.
//!
//! E4M3 has no infinity: a result that would be one is the NaN (as in the datapath's page, *\[chosen\]* there).

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint};
use num_traits::{One, Signed, ToPrimitive, Zero};

use watershed_arith::{DType, Flags, Round};

use super::soft::FloatOp;

/// The numbers that define a format, written down here a second time on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Significand bits, the hidden one included.
    pub precision: u32,
    /// Exponent of the largest binade.
    pub max_exponent: i64,
    /// Exponent of the smallest normal number.
    pub min_exponent: i64,
    /// Bits of the exponent field.
    pub exponent_bits: u32,
    /// Unused bits below.
    pub pad: u32,
    /// False for E4M3.
    pub has_infinity: bool,
}

/// The shape of a floating-point type; `None` for integers.
pub fn shape(dtype: DType) -> Option<Shape> {
    let (precision, max_exponent, exponent_bits, pad, has_infinity) = match dtype {
        DType::F16 => (11, 15, 5, 0, true),
        DType::Bf16 => (8, 127, 8, 0, true),
        DType::Tf32 => (11, 127, 8, 13, true),
        DType::F32 => (24, 127, 8, 0, true),
        DType::F64 => (53, 1023, 11, 0, true),
        DType::Fp8E4m3 => (4, 8, 4, 0, false),
        DType::Fp8E5m2 => (3, 15, 5, 0, true),
        DType::I32 | DType::U32 | DType::I64 | DType::U64 => return None,
    };
    Some(Shape {
        precision,
        max_exponent,
        // E4M3 gained a binade at the top by giving up infinities; its bias is still 7.
        min_exponent: if has_infinity { 1 - max_exponent } else { 2 - max_exponent },
        exponent_bits,
        pad,
        has_infinity,
    })
}

/// An exact number: `integer x 2^scale`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exact {
    /// The integer.
    pub integer: BigInt,
    /// The power of two.
    pub scale: i64,
}

impl Exact {
    /// Zero.
    pub fn zero() -> Self {
        Self { integer: BigInt::zero(), scale: 0 }
    }

    /// The sum, exactly.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let scale = self.scale.min(other.scale);
        let lift = |x: &Self| &x.integer << (x.scale - scale) as u64;
        Self { integer: lift(self) + lift(other), scale }
    }

    /// The product, exactly.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        Self { integer: &self.integer * &other.integer, scale: self.scale + other.scale }
    }

    /// The order of the two numbers.
    pub fn order(&self, other: &Self) -> Ordering {
        let minus = Self { integer: -&other.integer, scale: other.scale };
        self.plus(&minus).integer.cmp(&BigInt::zero())
    }
}

impl Exact {
    /// The number in decimal, to this many significant digits: plain where that is short, else with a power of ten.
    ///
    /// The last digit is rounded half up; a number that has no more digits is written out, without trailing zeros.
    pub fn decimal(&self, digits: usize) -> String {
        let negative = self.integer.is_negative();
        let magnitude = self.integer.magnitude();
        if magnitude.is_zero() {
            return "0".to_owned();
        }
        // value = whole x 10^-places, exactly: a power of two below one is a power of five over a power of ten
        let (whole, places) = if self.scale >= 0 {
            (magnitude << self.scale as u64, 0)
        } else {
            (magnitude * BigUint::from(5u8).pow(-self.scale as u32), -self.scale)
        };
        let mut text = whole.to_string();
        let mut exponent = text.len() as i64 - 1 - places;
        if text.len() > digits {
            let drop = (text.len() - digits) as u32;
            let ten = BigUint::from(10u8).pow(drop);
            let half: BigUint = &ten >> 1;
            text = ((whole + half) / ten).to_string();
            exponent += (text.len() > digits) as i64;
        }
        let text = text.trim_end_matches('0');
        let sign = if negative { "-" } else { "" };
        let length = text.len() as i64;
        if (0..17).contains(&exponent) {
            let point = (exponent + 1) as usize;
            return match text.get(point..) {
                Some(rest) if !rest.is_empty() => format!("{sign}{}.{rest}", &text[..point]),
                _ => format!("{sign}{text}{}", "0".repeat((exponent + 1 - length) as usize)),
            };
        }
        if (-5..0).contains(&exponent) {
            return format!("{sign}0.{}{text}", "0".repeat((-exponent - 1) as usize));
        }
        let point = if length > 1 { "." } else { "" };
        format!("{sign}{}{point}{}e{exponent}", &text[..1], &text[1..])
    }

    /// How far `self` is from the exact number, in units in the last place that the exact number has in this type;
    /// negative if `self` is the smaller one. Exact to a thousandth.
    ///
    /// # Panics
    ///
    /// If the type is an integer.
    pub fn ulps_from(&self, exact: &Self, dtype: DType) -> f64 {
        let s = shape(dtype).expect("only floating-point types have ulps");
        let top = exact.scale + exact.integer.bits() as i64 - 1;
        let quantum = top.max(s.min_exponent) - (s.precision as i64 - 1);
        let minus = Self { integer: -&exact.integer, scale: exact.scale };
        let difference = self.plus(&minus);
        let thousand: BigInt = &difference.integer * 1000;
        let shift = difference.scale - quantum;
        let thousandths = if shift >= 0 { thousand << shift as u64 } else { thousand >> -shift as u64 };
        thousandths.to_i64().map_or(f64::INFINITY, |thousandths| thousandths as f64 / 1000.0)
    }
}

/// What a pattern means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// A number; `negative` tells -0 from +0.
    Number {
        /// Sign bit.
        negative: bool,
        /// Value.
        value: Exact,
    },
    /// An infinity.
    Infinity {
        /// Sign bit.
        negative: bool,
    },
    /// A NaN.
    Nan {
        /// It raises invalid when used.
        signalling: bool,
        /// Fraction field.
        payload: u64,
    },
}

/// Reads a right-justified lane.
///
/// # Panics
///
/// If the type is an integer.
pub fn read(dtype: DType, lane: u64) -> Meaning {
    let s = shape(dtype).expect("only floating-point lanes have a meaning here");
    let bits = lane >> s.pad;
    let fraction_bits = s.precision - 1;
    let fraction = bits % (1 << fraction_bits);
    let field = (bits >> fraction_bits) % (1 << s.exponent_bits);
    let negative = bits >> (fraction_bits + s.exponent_bits) == 1;
    let top_field = (1 << s.exponent_bits) - 1;
    let top_fraction = (1 << fraction_bits) - 1;
    if field == top_field && s.has_infinity {
        if fraction == 0 {
            return Meaning::Infinity { negative };
        }
        let signalling = fraction < 1 << (fraction_bits - 1);
        return Meaning::Nan { signalling, payload: fraction };
    }
    if field == top_field && fraction == top_fraction {
        return Meaning::Nan { signalling: false, payload: fraction };
    }
    let (significand, exponent) = if field == 0 {
        (fraction, s.min_exponent)
    } else {
        (fraction + (1 << fraction_bits), s.min_exponent + field as i64 - 1)
    };
    let magnitude = BigInt::from(significand);
    Meaning::Number {
        negative,
        value: Exact { integer: if negative { -magnitude } else { magnitude }, scale: exponent - fraction_bits as i64 },
    }
}

/// The default quiet NaN of a type.
///
/// # Panics
///
/// If the type is an integer.
pub fn default_nan(dtype: DType) -> u64 {
    let s = shape(dtype).expect("only floating-point types have NaNs");
    let exponent = ((1u64 << s.exponent_bits) - 1) << (s.precision - 1);
    let fraction = if s.has_infinity { 1 << (s.precision - 2) } else { (1 << (s.precision - 1)) - 1 };
    (exponent + fraction) << s.pad
}

fn signed(s: Shape, negative: bool, magnitude: u64) -> u64 {
    let sign = u64::from(negative) << (s.precision - 1 + s.exponent_bits);
    (sign | magnitude) << s.pad
}

fn infinity(dtype: DType, s: Shape, negative: bool) -> u64 {
    if s.has_infinity {
        signed(s, negative, ((1 << s.exponent_bits) - 1) << (s.precision - 1))
    } else {
        default_nan(dtype)
    }
}

/// `magnitude x 2^scale` in units of `2^quantum`, rounded; and whether something was lost.
pub(super) fn quantise(magnitude: &BigUint, scale: i64, quantum: i64, round: Round, negative: bool) -> (BigUint, bool) {
    if scale >= quantum {
        return (magnitude << (scale - quantum) as u64, false);
    }
    let drop = (quantum - scale) as u64;
    let whole = magnitude >> drop;
    let rest = magnitude - (&whole << drop);
    if rest.is_zero() {
        return (whole, false);
    }
    let half = BigUint::one() << (drop - 1);
    let away = match round {
        Round::NearestEven => match rest.cmp(&half) {
            Ordering::Less => false,
            Ordering::Equal => whole.bit(0),
            Ordering::Greater => true,
        },
        Round::TowardZero => false,
        Round::Up => !negative,
        Round::Down => negative,
    };
    (if away { whole + 1u8 } else { whole }, true)
}

/// Rounds an exact number to a format. A zero takes the sign `negative_zero`.
///
/// # Panics
///
/// If the type is an integer.
pub fn round_to(dtype: DType, round: Round, value: &Exact, negative_zero: bool) -> (u64, Flags) {
    let s = shape(dtype).expect("only floating-point types are rounded to");
    let negative = value.integer.is_negative();
    let magnitude = value.integer.magnitude();
    if magnitude.is_zero() {
        return (signed(s, negative_zero, 0), Flags::NONE);
    }
    let digits = s.precision as i64 - 1;
    let top = value.scale + magnitude.bits() as i64 - 1;

    // As if the exponent were unbounded: is it tiny after rounding?
    let (unbounded, _) = quantise(magnitude, value.scale, top - digits, round, negative);
    let tiny = unbounded.bits() as i64 - 1 + top - digits < s.min_exponent;

    // In the format.
    let quantum = top.max(s.min_exponent) - digits;
    let (significand, inexact) = quantise(magnitude, value.scale, quantum, round, negative);
    let largest = (BigUint::one() << s.precision) - if s.has_infinity { 1u8 } else { 2u8 };
    let last_quantum = s.max_exponent - digits;
    let overflow = quantum > last_quantum || (quantum == last_quantum && significand > largest);
    if overflow {
        let to_infinity = match round {
            Round::NearestEven => true,
            Round::TowardZero => false,
            Round::Up => !negative,
            Round::Down => negative,
        };
        let bits = if to_infinity {
            infinity(dtype, s, negative)
        } else {
            let field = (1u64 << s.exponent_bits) - if s.has_infinity { 2 } else { 1 };
            let fraction = (1u64 << digits) - if s.has_infinity { 1 } else { 2 };
            signed(s, negative, (field << digits) + fraction)
        };
        return (bits, Flags::OVERFLOW | Flags::INEXACT);
    }
    let flags = Flags::NONE.with_if(Flags::INEXACT, inexact).with_if(Flags::UNDERFLOW, inexact && tiny);
    // Counting up from the quantum's first pattern works for denormals, normals and the carry into the next binade.
    let significand = significand.to_u64().expect("no format has more bits");
    let binade = (quantum + digits - s.min_exponent) as u64;
    (signed(s, negative, (binade << digits) + significand), flags)
}

/// A lane of one format in another: the number it is, rounded to the other format.
///
/// A NaN becomes the default one, a signalling one raises invalid; an infinity that the other format does not have
/// becomes its NaN and raises invalid.
///
/// # Panics
///
/// If a type is an integer.
pub fn convert(from: DType, to: DType, round: Round, lane: u64) -> (u64, Flags) {
    let s = shape(to).expect("only floating-point types are converted to");
    match read(from, lane) {
        Meaning::Nan { signalling, .. } => (default_nan(to), Flags::NONE.with_if(Flags::INVALID, signalling)),
        Meaning::Infinity { negative } => {
            (infinity(to, s, negative), Flags::NONE.with_if(Flags::INVALID, !s.has_infinity))
        }
        Meaning::Number { negative, value } => round_to(to, round, &value, negative),
    }
}

/// One operation on right-justified lanes: value and flags, every NaN being the default one.
///
/// # Panics
///
/// If the type is an integer.
pub fn operate(op: FloatOp, dtype: DType, round: Round, a: u64, b: u64) -> (u64, Flags) {
    let s = shape(dtype).expect("only floating-point lanes");
    let invalid = (default_nan(dtype), Flags::INVALID);
    let x = read(dtype, a);
    let mut y = read(dtype, b);
    if let (FloatOp::Sub, Meaning::Number { negative, value }) = (op, &mut y) {
        *negative = !*negative;
        value.integer = -&value.integer;
    }
    if let (FloatOp::Sub, Meaning::Infinity { negative }) = (op, &mut y) {
        *negative = !*negative;
    }
    let quiet = |signalling| (default_nan(dtype), Flags::NONE.with_if(Flags::INVALID, signalling));
    match (op, x, y) {
        (_, Meaning::Nan { signalling: p, .. }, Meaning::Nan { signalling: q, .. }) => quiet(p || q),
        (_, Meaning::Nan { signalling, .. }, _) | (_, _, Meaning::Nan { signalling, .. }) => quiet(signalling),
        (FloatOp::Mul, Meaning::Infinity { negative: p }, Meaning::Infinity { negative: q }) => {
            (infinity(dtype, s, p != q), Flags::NONE)
        }
        (FloatOp::Mul, Meaning::Infinity { negative: p }, Meaning::Number { negative: q, value })
        | (FloatOp::Mul, Meaning::Number { negative: q, value }, Meaning::Infinity { negative: p }) => {
            if value.integer.is_zero() { invalid } else { (infinity(dtype, s, p != q), Flags::NONE) }
        }
        (_, Meaning::Infinity { negative: p }, Meaning::Infinity { negative: q }) if p != q => invalid,
        (_, Meaning::Infinity { negative }, _) | (_, _, Meaning::Infinity { negative }) => {
            (infinity(dtype, s, negative), Flags::NONE)
        }
        (_, Meaning::Number { negative: p, value: x }, Meaning::Number { negative: q, value: y }) => {
            if op == FloatOp::Mul {
                round_to(dtype, round, &x.times(&y), p != q)
            } else {
                // Only a sum of two zeros of one sign keeps it; every other exact zero is +0, or -0 rounding down.
                let negative_zero = if p == q { p } else { round == Round::Down };
                round_to(dtype, round, &x.plus(&y), negative_zero)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::small::{self, Deviation};
    use super::super::soft;
    use super::*;

    const OPS: [FloatOp; 3] = [FloatOp::Add, FloatOp::Sub, FloatOp::Mul];

    /// A linear congruential sequence is enough to pick patterns.
    fn patterns(count: usize, mut state: u64) -> impl Iterator<Item = u64> {
        (0..count).map(move |_| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            state ^ (state >> 29)
        })
    }

    #[test]
    fn agrees_with_softfloat_in_values_and_flags() {
        for dtype in [DType::F16, DType::F32, DType::F64] {
            let mask = u64::MAX >> (64 - dtype.bits());
            let words: Vec<u64> = patterns(4000, 11).map(|w| w & mask).collect();
            for pair in words.windows(2) {
                // Near exponents half of the time, so that sums cancel and products stay in range.
                for b in [pair[1], pair[0] ^ (pair[1] >> (dtype.bits() / 2))] {
                    for op in OPS {
                        for &round in Round::ALL {
                            assert_eq!(
                                operate(op, dtype, round, pair[0], b),
                                soft::operate(op, dtype, round, pair[0], b).unwrap(),
                                "{op:?} {dtype} {round} {:x} {b:x}",
                                pair[0]
                            );
                        }
                    }
                }
            }
        }
    }

    /// The deviations the module page of `oracle` lists are the only ones, and each of them occurs.
    #[test]
    fn apfloat_deviates_only_where_listed() {
        let mut counts = [0u32; Deviation::ALL.len()];
        let mut check = |dtype: DType, a: u64, b: u64| {
            for op in OPS {
                for &round in Round::ALL {
                    match small::deviation(op, dtype, round, (a, b), operate(op, dtype, round, a, b)) {
                        Ok(None) => {}
                        Ok(Some(listed)) => counts[listed as usize] += 1,
                        Err(()) => panic!("{op:?} {dtype} {round} {a:x} {b:x}"),
                    }
                }
            }
        };
        for dtype in [DType::Fp8E4m3, DType::Fp8E5m2] {
            for a in 0..256 {
                for b in 0..256 {
                    check(dtype, a, b);
                }
            }
        }
        for (dtype, width, pad) in [(DType::Bf16, 16, 0), (DType::Tf32, 19, 13)] {
            let words: Vec<u64> = patterns(3000, 5).map(|w| w >> (64 - width)).collect();
            for pair in words.windows(2) {
                check(dtype, pair[0] << pad, pair[1] << pad);
            }
        }
        assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    }

    #[test]
    fn decimals_are_exact() {
        let text = |n: i64, scale, digits| Exact { integer: n.into(), scale }.decimal(digits);
        assert_eq!(text(3, -1, 17), "1.5");
        assert_eq!(text(-1, -3, 17), "-0.125");
        assert_eq!(text(1, 10, 17), "1024");
        assert_eq!(text(0, 5, 17), "0");
        assert_eq!(text(1, -149, 8), "1.4012985e-45");
        assert_eq!(text(1, 100, 5), "1.2677e30");
        assert_eq!(text(0x1f_ffff, -21, 3), "1");
        assert_eq!(text(999_999, 0, 3), "1000000");
    }

    #[test]
    fn errors_are_in_the_exact_number_s_ulps() {
        let number = |n: i64, scale| Exact { integer: n.into(), scale };
        assert!((number(1, 0).ulps_from(&number((1 << 24) + 1, -24), DType::F32) + 0.5).abs() < 1e-9);
        assert!((number(3, -149).ulps_from(&number(1, -149), DType::F32) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_largest_e4m3_number_is_448() {
        let Meaning::Number { value, .. } = read(DType::Fp8E4m3, 0x7e) else {
            panic!("0x7e is a number");
        };
        assert_eq!(value.order(&Exact { integer: 448.into(), scale: 0 }), Ordering::Equal);
        let at = |n: i32| round_to(DType::Fp8E4m3, Round::NearestEven, &Exact { integer: n.into(), scale: 0 }, false);
        assert_eq!(at(464), (0x7e, Flags::INEXACT), "a tie, to even");
        assert_eq!(at(465), (0x7f, Flags::OVERFLOW | Flags::INEXACT));
    }
}
