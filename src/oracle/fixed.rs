//! What a deterministic sum of doubles must be, by the definition: exact numbers, quantised to the unit that the largest exponent
//! and the number of contributions give, added, and rounded once.
//!
//! Shares no code with [`arith::fixed`](watershed_arith::fixed); both follow the table there.

use num_bigint::{BigInt, Sign};
use num_traits::{ToPrimitive, Zero};

use watershed_arith::{DType, Flags, Round};

use super::exact::{Exact, Meaning, default_nan, quantise, read, round_to};

/// What the maximum is taken of: the exponent of a double, with the bias of the format.
pub fn exponent(double: u64) -> i64 {
    match read(DType::F64, double) {
        Meaning::Nan { .. } | Meaning::Infinity { .. } => 2047,
        Meaning::Number { value, .. } => {
            // Below two to this power, and not below half of it.
            let power = value.scale + value.integer.magnitude().bits() as i64;
            if value.integer.is_zero() { 1 } else { (power + 1022).max(1) }
        }
    }
}

/// The power of two that an integer of the sum counts.
fn unit(largest: i64, contributions: u64) -> i64 {
    let mut log = 0;
    while 1u64 << log < contributions {
        log += 1;
    }
    largest - 1022 - (62 - log)
}

/// A double as an integer, and whether it was rounded; with a largest exponent of 2047, what it is counted as.
///
/// # Panics
/// If the integer has more than 63 bits: its exponent is above the largest one.
pub fn contribution(double: u64, largest: i64, contributions: u64) -> (i64, bool) {
    match read(DType::F64, double) {
        Meaning::Nan { .. } => (1 << 42, false),
        Meaning::Infinity { negative } => (if negative { 1 << 21 } else { 1 }, false),
        Meaning::Number { .. } if largest == 2047 => (0, false),
        Meaning::Number { negative, value } => {
            let quantum = unit(largest, contributions);
            let (whole, lost) = quantise(value.integer.magnitude(), value.scale, quantum, Round::NearestEven, negative);
            let sign = if negative { Sign::Minus } else { Sign::Plus };
            let whole = BigInt::from_biguint(sign, whole);
            (whole.to_i64().expect("no exponent is above the largest one"), lost)
        }
    }
}

/// The double that a sum of integers stands for.
pub fn value(sum: i64, largest: i64, contributions: u64) -> (u64, Flags) {
    if largest < 2047 {
        let exact = Exact { integer: BigInt::from(sum), scale: unit(largest, contributions) };
        return round_to(DType::F64, Round::NearestEven, &exact, false);
    }
    let [plus, minus, nans] = [0, 21, 42].map(|at| sum >> at & 0x1f_ffff);
    if nans > 0 || plus > 0 && minus > 0 {
        return (default_nan(DType::F64), Flags::NONE.with_if(Flags::INVALID, nans == 0));
    }
    (if minus > 0 { f64::NEG_INFINITY } else { f64::INFINITY }.to_bits(), Flags::NONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_arith::fixed;

    fn word(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        *state ^ *state >> 29
    }

    /// Any bits, bits of near exponents, ties.
    #[test]
    fn datapath_and_definition_agree() {
        let mut state = 7;
        for k in 0..200_000u32 {
            let mut double = word(&mut state);
            if k % 3 > 0 {
                double = double & !(0x7ff << 52) | (1000 + (double >> 52) % 70) << 52;
            }
            if k % 3 == 2 {
                double &= u64::MAX << (k % 52);
            }
            if k % 97 == 0 {
                double &= !(0x7ff << 52);
            }
            assert_eq!(fixed::exponent(double) as i64, exponent(double), "{double:016x}");
            let contributions = 1 + word(&mut state) % (1 << (k % 25));
            let bits = fixed::fraction_bits(contributions);
            let largest = fixed::exponent(double) + word(&mut state) % 70;
            let largest = if fixed::exponent(double) == 2047 { 2047 } else { largest.min(2046) };
            let expected = contribution(double, largest as i64, contributions);
            let got =
                if largest == 2047 { (fixed::special(double), false) } else { fixed::to_fixed(double, largest, bits) };
            assert_eq!(got, expected, "{double:016x} {largest} {contributions}");
            assert!(got.0.unsigned_abs() <= 1 << bits || largest == 2047);
            let sum = word(&mut state) as i64 >> (k % 64);
            let largest = if k % 5 == 0 { 1 + largest % 80 } else { largest.min(2046) };
            let expected = value(sum, largest as i64, contributions);
            assert_eq!(fixed::from_fixed(sum, largest, bits), expected, "{sum} {largest} {contributions}");
        }
    }
}
