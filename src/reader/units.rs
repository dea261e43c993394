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

/// Units that people write behind a number: the end of keys that are in one of the kind, and how many of those it is.
const WRITTEN: [(&str, &str, f64); 13] = [
    ("ps", "_ns", 1e-3),
    ("ns", "_ns", 1.0),
    ("us", "_ns", 1e3),
    ("ms", "_ns", 1e6),
    ("s", "_ns", 1e9),
    ("hz", "_mhz", 1e-6),
    ("khz", "_mhz", 1e-3),
    ("mhz", "_mhz", 1.0),
    ("ghz", "_mhz", 1e3),
    ("mbps", "_gbps", 1e-3),
    ("gbps", "_gbps", 1.0),
    ("tbps", "_gbps", 1e3),
    ("cycles", "_cycles", 1.0),
];

/// Rates, of which the case of a letter says whether they are of bits or bytes, in Gb/s.
const RATES: [(&str, f64); 17] = [
    ("b/s", 1e-9),
    ("kb/s", 1e-6),
    ("Mb/s", 1e-3),
    ("Gb/s", 1.0),
    ("Tb/s", 1e3),
    ("Mbit/s", 1e-3),
    ("Gbit/s", 1.0),
    ("Tbit/s", 1e3),
    ("B/s", 8e-9),
    ("kB/s", 8e-6),
    ("MB/s", 8e-3),
    ("GB/s", 8.0),
    ("TB/s", 8e3),
    ("MBps", 8e-3),
    ("GBps", 8.0),
    ("TBps", 8e3),
    ("GiB/s", 8.589_934_592),
];

/// All units that people write, in small letters.
pub fn written() -> impl Iterator<Item = &'static str> {
    WRITTEN.iter().map(|(unit, ..)| *unit)
}

/// Whether a word is a unit.
pub fn is_unit(word: &str) -> bool {
    WRITTEN.iter().any(|(unit, ..)| *unit == word.to_ascii_lowercase())
}

/// A number and what follows it.
fn cut(text: &str) -> Option<(f64, &str)> {
    let split = text.find(|letter: char| !matches!(letter, '0'..='9' | '.' | '_'))?;
    let (number, unit) = text.split_at(split);
    Some((number.replace('_', "").parse().ok()?, unit.trim()))
}

/// A number with a unit: the end of keys that are in a unit of the kind, and the number in that one.
pub fn measured(text: &str) -> Option<(&'static str, f64)> {
    let (number, unit) = cut(text)?;
    let folded = unit.to_ascii_lowercase();
    let rate = RATES.iter().find(|(written, _)| *written == unit).map(|(_, factor)| ("_gbps", factor));
    let (end, factor) = rate.or_else(|| {
        let (_, end, factor) = WRITTEN.iter().find(|(written, ..)| *written == folded)?;
        Some((*end, factor))
    })?;
    // A product with a power of ten below one has a last digit too many.
    Some((end, (number * factor * 1e9).round() / 1e9))
}

/// What to write instead of a number with a unit, for the value of a key; `None` if the text is no such number.
pub fn suggest_without_unit(path: &str, text: &str) -> Option<String> {
    let key = path.rsplit('.').next().unwrap_or(path);
    if let Some((end, value)) = measured(text) {
        return Some(if key.ends_with(end) {
            format!("the key says the unit: {text} is {value}")
        } else {
            let (_, unit) = cut(text)?;
            format!("a number has no unit here: the end of a key says its unit, and `{key}` does not say {unit}")
        });
    }
    let (number, unit) = cut(text)?;
    let (_, times) = TIMES.iter().find(|(written, _)| *written == unit)?;
    Some(format!("a number has only digits here: {text} is {}", number * times))
}

/// What to write instead of sizes with a sign between them; `None` if the text is something else.
pub fn as_list(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split(['x', 'X', '*', ',', ' ']).filter(|part| !part.is_empty()).collect();
    let numbers = parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    (numbers && parts.len() > 1).then(|| format!("{text} is [{}]", parts.join(", ")))
}

/// What people write for a thousand and so on.
const TIMES: [(&str, f64); 7] =
    [("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9), ("Ki", 1024.0), ("Mi", 1_048_576.0), ("Gi", 1_073_741_824.0)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_with_a_unit_gets_the_plain_value_as_help() {
        for (path, text, said) in [
            ("link.latency_ns", "25us", Some("25us is 25000")),
            ("link.latency_ns", "0.1 us", Some("0.1 us is 100")),
            ("link.latency_ns", "3ps", Some("3ps is 0.003")),
            ("clock.frequency_mhz", "1.5GHz", Some("1.5GHz is 1500")),
            ("link.latency_cycles", "5cycles", Some("5cycles is 5")),
            ("link.latency_cycles", "5ns", Some("`latency_cycles` does not say ns")),
            ("memory.bandwidth_gbps", "32 GB/s", Some("32 GB/s is 256")),
            ("memory.bandwidth_gbps", "32GBps", Some("32GBps is 256")),
            ("memory.bandwidth_gbps", "32 Gb/s", Some("32 Gb/s is 32")),
            ("memory.bandwidth_gbps", "0.5Tbps", Some("0.5Tbps is 500")),
            ("job.elements", "4k", Some("4k is 4000")),
            ("job.elements", "1.5 Mi", Some("1.5 Mi is 1572864")),
            ("job.elements", "1 z", None),
            ("link.latency_ns", "25 parsecs", None),
            ("link.latency_ns", "us", None),
            ("link.latency_ns", "25", None),
        ] {
            let found = suggest_without_unit(path, text);
            assert_eq!(found.is_some(), said.is_some(), "{path} {text}: {found:?}");
            assert!(found.is_none_or(|found| found.contains(said.unwrap())), "{path} {text}");
        }
    }

    #[test]
    fn sizes_are_said_as_lists() {
        assert_eq!(as_list("8x8").as_deref(), Some("8x8 is [8, 8]"));
        assert_eq!(as_list("4, 4 x 2").as_deref(), Some("4, 4 x 2 is [4, 4, 2]"));
        assert_eq!((as_list("8"), as_list("8xy"), as_list("")), (None, None, None));
    }

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
