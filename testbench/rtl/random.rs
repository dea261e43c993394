//! Seeded operands: unrelated ones, near ones, special ones.

use watershed::arith::{DType, Mode, NanPolicy, Round, SignalPolicy};
use watershed::kernel::Rng;

/// The seed of a random test: `WATERSHED_SEED`, or the one given.
pub fn seed(default: u64) -> u64 {
    std::env::var("WATERSHED_SEED").map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("WATERSHED_SEED must be a decimal number, not `{text}`"))
    })
}

/// Any mode.
pub fn mode(rng: &mut Rng) -> Mode {
    Mode {
        round: Round::ALL[rng.below(4) as usize],
        flush_to_zero: rng.below(2) == 1,
        nan: NanPolicy::ALL[rng.below(2) as usize],
        signal: SignalPolicy::ALL[rng.below(2) as usize],
    }
}

/// A lane from the corners of its format: zeros, ends of the exponents, NaNs, infinities, with fractions of few bits.
fn corner(rng: &mut Rng, dtype: DType) -> u64 {
    let Some(format) = dtype.format() else {
        let mask = dtype.lane_mask();
        let ends = [0, 1, mask, mask >> 1, (mask >> 1) + 1, mask - 1];
        return ends[rng.below(6) as usize];
    };
    let (top, ones) = (format.exponent_mask(), format.fraction_mask());
    let exponents = [0, 1, 2, top / 2, top / 2 + 1, top - 1, top, top];
    let fractions = [0, 1, ones, ones - 1, format.quiet_bit(), format.quiet_bit() - 1, rng.bits() & ones];
    let exponent = exponents[rng.below(8) as usize];
    let fraction = fractions[rng.below(7) as usize];
    format.join(rng.below(2) == 1, exponent << format.fraction_bits | fraction)
}

/// A pair of lanes: unrelated; of near exponents; nearly equal in magnitude; one or both special.
pub fn pair(rng: &mut Rng, dtype: DType) -> (u64, u64) {
    let mask = dtype.lane_mask();
    let (a, b) = (rng.bits() & mask, rng.bits() & mask);
    let low = dtype.format().map_or(dtype.bits() / 2, |format| format.fraction_bits + format.pad_bits);
    match rng.below(6) {
        0 => (a, b),
        1 => {
            let near = (a >> low).wrapping_add(rng.below(2 * u64::from(low) + 7)).wrapping_sub(u64::from(low) + 3);
            (a, (near << low | b & ((1 << low) - 1)) & mask)
        }
        2 => (a, (a ^ 1 << (dtype.bits() - 1)).wrapping_add(rng.below(5)).wrapping_sub(2) & mask),
        3 => (corner(rng, dtype), b),
        4 => (a, corner(rng, dtype)),
        _ => (corner(rng, dtype), corner(rng, dtype)),
    }
}

/// A pair of words of such lanes.
pub fn words(rng: &mut Rng, dtype: DType) -> (u64, u64) {
    (0..dtype.lanes()).fold((0, 0), |(a, b), k| {
        let (x, y) = pair(rng, dtype);
        (a | x << (k * dtype.bits()), b | y << (k * dtype.bits()))
    })
}
