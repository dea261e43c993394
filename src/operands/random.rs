//! Seeded random numbers, the same on every machine: a named generator and integer methods only.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Layout;
use crate::number;

/// Distributions of random data, all made with integers so that every machine draws the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Sum of twelve uniform numbers less six: mean 0, variance 1. Integers: the same times 1000, unsigned without its sign.
    Normal,
    /// Evenly from -1 up to, not including, 1. Integers: evenly over all values.
    Uniform,
    /// Whole numbers from -100 to 100, from 0 to 200 for unsigned types: sums are exact.
    Integers,
    /// Random sign and significand, exponents from -60 to 60 (fewer in small types): the order of additions matters.
    /// Integers: every bit length is as likely.
    Mixed,
    /// Any bit pattern: NaN, infinities and denormals included.
    Bits,
}

/// What a stream is for; streams of different purposes are independent of each other.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    Data = 1,
    Delays = 2,
}

/// A stream of random numbers that depends on the scenario's seed, the collective and the participant, and on nothing else:
/// adding a collective at the end changes no other's data.
#[derive(Debug, Clone)]
pub struct Stream(Pcg64);

impl Stream {
    fn new(seed: u64, purpose: Purpose, collective: usize, participant: usize) -> Self {
        let mut mixer = Mixer(seed);
        mixer.absorb(purpose as u64);
        mixer.absorb(collective as u64);
        mixer.absorb(participant as u64);
        let state = mixer.word();
        let stream = mixer.word();
        Self(Pcg64::new(state, stream))
    }

    /// The stream of the data that one participant contributes.
    pub fn data(seed: u64, collective: usize, participant: usize) -> Self {
        Self::new(seed, Purpose::Data, collective, participant)
    }

    /// The stream of one participant's delay.
    pub fn delays(seed: u64, collective: usize, participant: usize) -> Self {
        Self::new(seed, Purpose::Delays, collective, participant)
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, every one as likely.
    pub fn below(&mut self, bound: u64) -> u64 {
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.word()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// The bits of `count` elements, one after the other.
    // Never inlined: callers are compiled without optimisation, and a row is long.
    #[inline(never)]
    pub fn elements(&mut self, count: u64, distribution: Distribution, layout: Layout) -> Vec<u64> {
        (0..count).map(|_| self.element(distribution, layout)).collect()
    }

    /// The bits of one element.
    pub fn element(&mut self, distribution: Distribution, layout: Layout) -> u64 {
        match (distribution, layout) {
            (Distribution::Uniform, Layout::Float { fraction, .. }) => {
                let steps = 1i128 << fraction;
                let step = i128::from(self.word() >> (63 - fraction)) - steps;
                scaled(step, -i64::from(fraction), layout)
            }
            (Distribution::Uniform | Distribution::Bits, Layout::Integer { .. }) => self.word() & layout.mask(),
            (Distribution::Normal, _) => {
                let sum: u128 = (0..12).map(|_| u128::from(self.word())).sum();
                // Twelve halves of a step make the mean exactly zero.
                let step = sum as i128 + 6 - (6 << 64);
                match layout {
                    Layout::Float { .. } => scaled(step, -64, layout),
                    Layout::Integer { signed: true, .. } => number::from_integer((step * 1000) >> 64, layout),
                    Layout::Integer { signed: false, .. } => number::from_integer((step.abs() * 1000) >> 64, layout),
                }
            }
            (Distribution::Integers, _) => {
                let offset = match layout {
                    Layout::Integer { signed: false, .. } => 0,
                    _ => 100,
                };
                number::from_integer(i128::from(self.below(201)) - offset, layout)
            }
            (Distribution::Mixed, Layout::Float { exponent, fraction, .. }) => {
                let bias = (1u64 << (exponent - 1)) - 1;
                let reach = bias.saturating_sub(3).min(60);
                let power = self.below(2 * reach + 1) as i64 - reach as i64;
                let word = self.word();
                let significand = 1i128 << fraction | i128::from(word) & ((1 << fraction) - 1);
                let signed = if word >> 63 == 1 { -significand } else { significand };
                scaled(signed, power - i64::from(fraction), layout)
            }
            (Distribution::Mixed, Layout::Integer { bits, .. }) => {
                let word = self.word() & layout.mask();
                // Shifting the sign along keeps small negative numbers as likely as small positive ones.
                let shift = self.below(u64::from(bits));
                match layout {
                    Layout::Integer { signed: true, .. } => {
                        let wide = (word << (64 - bits)) as i64 >> (64 - bits);
                        (wide >> shift) as u64 & layout.mask()
                    }
                    _ => word >> shift,
                }
            }
            (Distribution::Bits, Layout::Float { exponent, fraction, pad, .. }) => {
                let word = self.word();
                let field = ((1u64 << exponent) - 1) << fraction;
                // Patterns drawn evenly would hardly ever be special where the exponent is wide.
                let pattern = match self.below(8) {
                    0 => word | field,
                    1 => word & !field,
                    2 if word & 4 == 0 => (word | field) & !((1 << fraction) - 1),
                    2 => word & !field & !((1 << fraction) - 1),
                    _ => word,
                };
                (pattern << pad) & layout.mask()
            }
        }
    }
}

/// `number` times two to the power `scale`; distributions stay far from the largest number of every format.
fn scaled(number: i128, scale: i64, layout: Layout) -> u64 {
    number::round(number < 0, number.unsigned_abs(), scale, layout).unwrap_or(0)
}

/// Spreads a few numbers over the state of a generator (SplitMix64's finaliser).
struct Mixer(u64);

impl Mixer {
    fn absorb(&mut self, number: u64) {
        self.0 = Self::mix(self.0.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ number;
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        Self::mix(self.0)
    }

    fn word(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    fn mix(mut z: u64) -> u64 {
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout;
    use watershed_arith::DType;

    fn draw(distribution: Distribution, dtype: DType, count: usize) -> Vec<u64> {
        let mut stream = Stream::data(1, 0, 0);
        stream.elements(count as u64, distribution, layout(dtype))
    }

    fn floats(distribution: Distribution) -> Vec<f64> {
        draw(distribution, DType::F64, 20_000).into_iter().map(f64::from_bits).collect()
    }

    /// These patterns are part of every golden result: a change here is a change of all of them.
    #[test]
    fn streams_are_pinned() {
        let first = |distribution| draw(distribution, DType::F64, 2);
        let all: Vec<String> = [
            Distribution::Normal,
            Distribution::Uniform,
            Distribution::Integers,
            Distribution::Mixed,
            Distribution::Bits,
        ]
        .into_iter()
        .flat_map(first)
        .map(|bits| format!("{bits:016x}"))
        .collect();
        insta::assert_snapshot!(all.join("\n"), @"
        3ff982382f5d68d6
        bff1ca52281b995a
        3fde1ec1b62f7278
        bfc2977fea44ba10
        4047800000000000
        c02e000000000000
        41b88015bb45f107
        3f515f39eb8b3f8f
        bc3d836c5ee4f0e9
        7ff0000000000000
        ");
    }

    #[test]
    fn streams_differ_by_everything_they_are_made_of() {
        let mut words: Vec<u64> = [
            Stream::data(1, 0, 0),
            Stream::data(2, 0, 0),
            Stream::data(1, 1, 0),
            Stream::data(1, 0, 1),
            Stream::delays(1, 0, 0),
        ]
        .into_iter()
        .map(|mut stream| stream.word())
        .collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 5);
    }

    #[test]
    fn normal_has_mean_zero_and_variance_one() {
        let numbers = floats(Distribution::Normal);
        let count = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / count;
        let variance = numbers.iter().map(|x| x * x).sum::<f64>() / count;
        assert!(mean.abs() < 0.03, "{mean}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
    }

    #[test]
    fn uniform_stays_in_its_range_in_every_type() {
        assert!(floats(Distribution::Uniform).iter().all(|x| (-1.0..1.0).contains(x)));
        assert!(
            draw(Distribution::Uniform, DType::F32, 20_000)
                .iter()
                .all(|bits| (-1.0..1.0).contains(&f32::from_bits(*bits as u32)))
        );
    }

    #[test]
    fn mixed_numbers_depend_on_the_order_of_addition() {
        let numbers = floats(Distribution::Mixed);
        let reordered = numbers
            .chunks_exact(3)
            .filter(|x| ((x[0] + x[1]) + x[2]).to_bits() != (x[0] + (x[1] + x[2])).to_bits())
            .count();
        assert!(reordered > 500, "{reordered}");
        assert!(numbers.iter().all(|x| x.is_normal()));
    }

    #[test]
    fn bits_include_the_special_ones() {
        let numbers = floats(Distribution::Bits);
        assert!(numbers.iter().any(|x| x.is_nan()));
        assert!(numbers.iter().any(|x| x.is_infinite()));
        assert!(numbers.iter().any(|x| x.is_subnormal()));
        assert!(numbers.iter().any(|x| x.to_bits() == 1 << 63));
    }

    #[test]
    fn elements_fit_their_type() {
        for &dtype in DType::ALL {
            for distribution in [
                Distribution::Normal,
                Distribution::Uniform,
                Distribution::Integers,
                Distribution::Mixed,
                Distribution::Bits,
            ] {
                let mask = layout(dtype).mask();
                assert!(
                    draw(distribution, dtype, 1000).iter().all(|bits| bits & !mask == 0),
                    "{dtype:?} {distribution:?}"
                );
            }
        }
    }

    #[test]
    fn below_reaches_every_number() {
        let mut stream = Stream::data(7, 0, 0);
        let mut seen = [0u32; 5];
        for _ in 0..1000 {
            seen[stream.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|count| *count > 150), "{seen:?}");
    }
}
