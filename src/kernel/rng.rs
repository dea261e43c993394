//! Seeded random numbers. Only integer methods are used, so every machine draws the same (K-DET-1).

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;
use watershed_state::{Loader, Mismatch, Saved, Saver};

/// A stream of random numbers that depends on a seed and a stream number and on nothing else.
#[derive(Clone, Debug)]
pub struct Rng(Pcg64Mcg);

impl Saved for Rng {
    fn put(&self, to: &mut Saver) {
        // Only serde sees the generator's one register.
        let register = postcard::to_stdvec(&self.0).expect("128 bits can be written into memory");
        to.bytes(&register);
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        u128::take(from).map(|register| Rng(Pcg64Mcg::new(register)))
    }
}

impl Rng {
    /// The stream `stream` of the run with this seed. Every block that draws has a stream of its own, so that the
    /// order in which blocks are evaluated cannot change what they draw.
    pub fn new(seed: u64, stream: u64) -> Rng {
        // Two rounds of a 64-bit finaliser each, so that neighbouring seeds and streams share nothing.
        let hi = mix(seed ^ 0x9e37_79b9_7f4a_7c15);
        let lo = mix(hi ^ mix(stream.wrapping_add(0xd1b5_4a32_d192_ed03)));
        Rng(Pcg64Mcg::new(u128::from(hi) << 64 | u128::from(lo)))
    }

    /// 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number below `bound` (which must not be 0), without bias.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // Widening multiplication with rejection of the short interval.
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            // The interval is shorter than the bound, so most draws need no division.
            if product as u64 >= bound || product as u64 >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// `true` with probability `threshold / 2^64` (see [`Rng::threshold`]).
    #[inline]
    pub fn chance(&mut self, threshold: u64) -> bool {
        self.bits() < threshold
    }

    /// The threshold of [`Rng::chance`] for a probability between 0 and 1 (1 is as good as always).
    pub fn threshold(probability: f64) -> u64 {
        // A multiplication by a power of two is exact, so this is the same on every machine.
        (probability.clamp(0.0, 1.0) * 18_446_744_073_709_551_616.0) as u64
    }

    /// Shuffles a slice uniformly.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

/// A bijective scrambling of 64 bits (two xor-shifts and two odd multiplications).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_stream_draw_the_same() {
        let draw = |seed, stream| (0..4).map(|_| Rng::new(seed, stream).bits()).collect::<Vec<_>>();
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn a_stream_goes_on_where_it_was_saved() {
        let mut rng = Rng::new(5, 9);
        for _ in 0..10 {
            rng.bits();
            let mut saver = Saver::default();
            saver.value(&rng);
            let mut again: Rng = Loader::new(&saver.into_bytes()).value().unwrap();
            let mut ahead = rng.clone();
            assert!((0..4).all(|_| again.bits() == ahead.bits()));
        }
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut rng = Rng::new(7, 0);
        let mut seen = [0u32; 6];
        for _ in 0..6000 {
            seen[rng.below(6) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }

    #[test]
    fn chance_follows_its_probability() {
        let mut rng = Rng::new(3, 1);
        let threshold = Rng::threshold(0.95);
        let hits = (0..100_000).filter(|_| rng.chance(threshold)).count();
        assert!((94_700..95_300).contains(&hits), "{hits}");
        assert!(!rng.chance(Rng::threshold(0.0)));
        assert!((0..1000).all(|_| rng.chance(Rng::threshold(1.0))));
    }
}
