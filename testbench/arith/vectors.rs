//! Operands: corner patterns in the manner of TestFloat, and seeded random ones.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use watershed::arith::{DType, Mode, NanPolicy, Round, SignalPolicy};

/// Formats that SoftFloat has, value and flags.
pub const SOFTFLOAT: [DType; 3] = [DType::F16, DType::F32, DType::F64];

/// Every floating-point type.
pub fn float_types() -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(|dtype| dtype.is_float())
}

/// The seed of a random test: `WATERSHED_SEED`, or the one given.
pub fn seed(default: u64) -> u64 {
    std::env::var("WATERSHED_SEED").map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("WATERSHED_SEED must be a decimal number, not `{text}`"))
    })
}

/// A generator with that seed.
pub struct Random(Pcg64Mcg);

impl Random {
    /// Seeded.
    pub fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }

    /// A pair of lanes. A quarter each: unrelated; of near exponents; nearly equal in magnitude; with few bits set.
    pub fn pair(&mut self, dtype: DType) -> (u64, u64) {
        let mask = dtype.lane_mask();
        let a = self.word() & mask;
        let b = self.word() & mask;
        let Some(format) = dtype.format() else {
            return (a, b);
        };
        let low = format.fraction_bits + format.pad_bits;
        let fraction_mask = (1 << low) - 1;
        match self.below(4) {
            0 => (a, b),
            1 => {
                let exponent = (a >> low).wrapping_add(self.below(2 * low as u64 + 7)).wrapping_sub(low as u64 + 3);
                (a, ((exponent << low) | (b & fraction_mask)) & mask)
            }
            2 => {
                let near = (a ^ (1 << (dtype.bits() - 1))).wrapping_add(self.below(5)).wrapping_sub(2);
                (a, near & mask)
            }
            _ => {
                let sparse = self.word() & self.word() & self.word() & self.word();
                (a & !fraction_mask | sparse & fraction_mask, b & !fraction_mask | !sparse & fraction_mask & b)
            }
        }
    }

    /// A mode with any rounding, flushing and NaN policy.
    pub fn mode(&mut self) -> Mode {
        Mode {
            round: Round::ALL[self.below(4) as usize],
            flush_to_zero: self.below(2) == 1,
            nan: NanPolicy::ALL[self.below(2) as usize],
            signal: SignalPolicy::ALL[self.below(2) as usize],
        }
    }

    /// A lane that is special one time in four: zero, infinity, NaN, denormal.
    pub fn lane(&mut self, dtype: DType) -> u64 {
        if dtype.is_float() && self.below(4) == 0 {
            let corners = corners(dtype);
            corners[self.below(corners.len() as u64) as usize]
        } else {
            self.word() & dtype.lane_mask()
        }
    }

    /// A word of such lanes.
    pub fn lanes(&mut self, dtype: DType) -> u64 {
        (0..dtype.lanes()).fold(0, |word, k| word | self.lane(dtype) << (k * dtype.bits()))
    }
}

/// All special exponents with all special fractions, both signs.
///
/// Exponents: zero and denormal, the smallest, around one, around the distance of a significand from one and from
/// the ends, the largest, and that of infinity and NaN. Fractions: nothing, the ends, single bits, runs.
pub fn corners(dtype: DType) -> Vec<u64> {
    let format = dtype.format().expect("a floating-point type");
    let top = format.exponent_mask();
    let bias = format.bias() as u64;
    let p = format.precision() as u64;
    let mut exponents = vec![0, 1, 2, bias - 1, bias, bias + 1, top - 2, top - 1, top];
    exponents.extend([
        bias.saturating_sub(p),
        bias.saturating_sub(p + 1),
        (bias / 2).max(1),
        bias + p,
        (p + 1).min(top),
        (p + 2).min(top),
        (bias + bias / 2).min(top),
    ]);
    exponents.retain(|&e| e <= top);
    exponents.sort_unstable();
    exponents.dedup();
    let ones = format.fraction_mask();
    let quiet = format.quiet_bit();
    let mut fractions = vec![0, 1, 2, 3, quiet, quiet - 1, quiet | 1, ones, ones - 1, ones & !quiet, ones / 3];
    fractions.retain(|&f| f <= ones);
    fractions.sort_unstable();
    fractions.dedup();
    let mut lanes = Vec::new();
    for sign in [false, true] {
        for exponent in &exponents {
            for fraction in &fractions {
                lanes.push(format.join(sign, exponent << format.fraction_bits | fraction));
            }
        }
    }
    lanes
}
