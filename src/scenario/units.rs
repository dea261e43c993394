//! Exact numbers with units: cycle counts never depend on binary fractions.

use serde::Serialize;

/// Hertz in a megahertz, and the decimals a frequency in MHz may have.
const HERTZ_DECIMALS: u32 = 6;
/// Femtoseconds resolve a latency in ns.
const FEMTO_DECIMALS: u32 = 6;
/// Bits per second resolve a bandwidth in Gb/s.
const BITRATE_DECIMALS: u32 = 9;

/// A number given in ns that is not a whole number of cycles, and what it became.
#[derive(Debug, Clone, PartialEq, Serialize, serde::Deserialize)]
pub struct Rounding {
    /// Path of the key.
    pub key: String,
    /// What the scenario says, in ns.
    pub given_ns: f64,
    /// What is simulated.
    pub cycles: u64,
    /// What is simulated, in ns.
    pub effective_ns: f64,
}

impl std::fmt::Display for Rounding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { key, given_ns, cycles, effective_ns } = self;
        write!(f, "{key} = {given_ns} ns is rounded up to {cycles} cycles = {effective_ns:.3} ns")
    }
}

/// The value of `number` times ten to the power `decimals`, if that is a whole number. The shortest decimal text of the
/// binary number is taken as what was meant: 51.2 is 512 tenths, exactly.
pub fn scaled(number: f64, decimals: u32) -> Option<u128> {
    if !number.is_finite() || !(0.0..=1e18).contains(&number) {
        return None;
    }
    let text = format!("{number}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    if fraction.len() > decimals as usize {
        return None;
    }
    let whole: u128 = whole.parse().ok()?;
    let digits = fraction.len() as u32;
    let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    Some(whole * 10u128.pow(decimals) + fraction * 10u128.pow(decimals - digits))
}

/// Whole hertz of a frequency in MHz.
pub fn hertz(mhz: f64) -> Option<u64> {
    scaled(mhz, HERTZ_DECIMALS).and_then(|hertz| u64::try_from(hertz).ok())
}

/// Whole femtoseconds of a time in ns.
pub fn femtoseconds(ns: f64) -> Option<u128> {
    scaled(ns, FEMTO_DECIMALS)
}

/// Whole bits per second of a bandwidth in Gb/s.
pub fn bits_per_second(gbps: f64) -> Option<u64> {
    scaled(gbps, BITRATE_DECIMALS).and_then(|rate| u64::try_from(rate).ok())
}

/// The fewest whole cycles of a clock that last at least so long, and whether that is longer.
pub fn cycles(femtoseconds: u128, hertz: u64) -> (u64, bool) {
    let product = femtoseconds.saturating_mul(u128::from(hertz));
    let second = 10u128.pow(15);
    let cycles = product.div_ceil(second);
    (u64::try_from(cycles).unwrap_or(u64::MAX), !product.is_multiple_of(second))
}

/// The length of this many cycles in ns, for people.
pub fn nanoseconds(cycles: u64, hertz: u64) -> f64 {
    cycles as f64 * 1e9 / hertz as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_numbers_are_taken_as_written() {
        assert_eq!(scaled(51.2, 9), Some(51_200_000_000));
        assert_eq!(scaled(0.1, 1), Some(1));
        assert_eq!(scaled(0.25, 1), None);
        assert_eq!(scaled(-1.0, 3), None);
        assert_eq!(scaled(f64::NAN, 3), None);
        assert_eq!(scaled(1e30, 3), None);
        assert_eq!(scaled(1e-7, 6), None);
        assert_eq!(hertz(850.0), Some(850_000_000));
    }

    #[test]
    fn times_become_whole_cycles_upwards() {
        let at = |ns: f64, mhz: f64| cycles(femtoseconds(ns).unwrap(), hertz(mhz).unwrap());
        assert_eq!(at(5.0, 1000.0), (5, false));
        assert_eq!(at(5.0, 850.0), (5, true), "4.25 cycles");
        assert_eq!(at(5.1, 1000.0), (6, true));
        assert_eq!(at(0.0, 1000.0), (0, false));
        assert_eq!(at(0.3, 10_000.0), (3, false), "binary fractions would give 3.0000000000000004 here");
    }
}
