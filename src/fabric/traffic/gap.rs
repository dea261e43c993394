//! Geometric gaps: the time to the next event that happens in each cycle with probability p, in one draw instead of one
//! a cycle, exactly and with integers only.
//!
//! With q = 1 - p, the gap G (cycles before the event) has P(G < k) = 1 - q^k. [`Gaps`] tabulates that function for k =
//! 1 to 64 in 64-bit fixed point, so a uniform 64-bit number looked up in the table is a gap below 64, or says that the
//! gap is not below 64. A geometric distribution has no memory: the number of whole blocks of 64 cycles that pass is
//! geometric again, with parameter 1 - q^64, and independent of the place within the last block. So the next level of
//! tables counts blocks of 64, the next one blocks of 4096, and a gap of a million cycles costs a handful of draws.
//!
//! Every entry is the true probability to within 2^-64, the same error that rounding p itself to 64 bits makes; powers
//! of q are multiplied out with 127 bits. No logarithm is taken, so every machine draws the same (K-DET-1). A draw
//! depends on the source's own stream only, and not on the cycle in which it is made.

use watershed_kernel::Rng;

/// Cycles, or blocks, a table covers.
const SPAN: usize = 64;
/// Levels: 64^10 cycles are 2^60.
const LEVELS: usize = 10;
/// One, as a probability in fixed point.
const ONE: u128 = 1 << 127;

/// The distribution of a gap; shared by all sources with the same probability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gaps {
    /// `tables[l][k]`: P(fewer than k + 1 blocks of 64^l cycles pass) times 2^64, cut off.
    tables: Vec<[u64; SPAN]>,
    /// The probability in one cycle, times 2^64.
    threshold: u64,
}

impl Gaps {
    /// Gaps between events that happen with probability `threshold / 2^64` in a cycle (see [`Rng::threshold`]);
    /// `u64::MAX` means every cycle.
    pub fn new(threshold: u64) -> Gaps {
        let mut tables = Vec::new();
        let mut q = ONE - (u128::from(threshold) << 63);
        while threshold > 0 && threshold < u64::MAX && tables.len() < LEVELS {
            let mut table = [0; SPAN];
            let mut power = ONE;
            for entry in &mut table {
                power = product(power, q);
                *entry = u64::try_from((ONE - power) >> 63).unwrap_or(u64::MAX);
            }
            tables.push(table);
            q = power;
            // A block that never passes without it needs no count of such blocks.
            if table[SPAN - 1] == u64::MAX {
                break;
            }
        }
        Gaps { tables, threshold }
    }

    /// Whether it never happens.
    pub fn is_never(&self) -> bool {
        self.threshold == 0
    }

    /// Draws a gap; `u64::MAX` if it never happens.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let Some(table) = self.tables.first() else {
            return if self.is_never() { u64::MAX } else { 0 };
        };
        let drawn = rng.bits();
        if drawn < table[SPAN - 1] { rank(table, drawn) } else { self.far(rng) }
    }

    /// A gap that is known to be at least one table long.
    #[cold]
    fn far(&self, rng: &mut Rng) -> u64 {
        // Up, until the number of blocks is found; then down, the place within the block at each level.
        let mut level = 1;
        let mut gap = 0;
        while let Some(table) = self.tables.get(level) {
            let drawn = rng.bits();
            if drawn < table[SPAN - 1] {
                gap = rank(table, drawn);
                break;
            }
            level += 1;
        }
        while level > 0 {
            level -= 1;
            let table = &self.tables[level];
            // It is known that one block of this level's 64 passed: gap counts the others.
            gap = (gap + 1).saturating_mul(SPAN as u64).saturating_add(rank(table, rng.below(table[SPAN - 1])));
        }
        gap
    }
}

/// How many entries a number has passed.
#[inline]
fn rank(table: &[u64; SPAN], drawn: u64) -> u64 {
    let mut at = 0;
    for half in [32, 16, 8, 4, 2, 1] {
        // The table's last entry is beyond the number, so the answer is 0 to 63.
        at += if table[at + half - 1] <= drawn { half } else { 0 };
    }
    at as u64
}

/// The product of two numbers in 127-bit fixed point, cut off.
fn product(a: u128, b: u128) -> u128 {
    if a == ONE {
        return b;
    }
    if b == ONE {
        return a;
    }
    let (a1, a0) = (a >> 64, a & u128::from(u64::MAX));
    let (b1, b0) = (b >> 64, b & u128::from(u64::MAX));
    let low = |number: u128| number & u128::from(u64::MAX);
    let upper = |number: u128| number >> 64;
    let middle = upper(a0 * b0) + low(a1 * b0) + low(a0 * b1);
    let high = a1 * b1 + upper(a1 * b0) + upper(a0 * b1) + upper(middle);
    high << 1 | low(middle) >> 63
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_geometric_distribution() {
        for probability in [0.9, 0.25, 0.05, 0.004] {
            let gaps = Gaps::new(Rng::threshold(probability));
            let mut rng = Rng::new(5, 1);
            let draws = 200_000;
            // Below each of these bounds, as often as 1 - q^k says, within five standard deviations.
            let bounds = [1, 2, 5, 20, 63, 64, 65, 200, 1000];
            let mut below = [0u32; 9];
            for _ in 0..draws {
                let gap = gaps.draw(&mut rng);
                for (bound, below) in bounds.iter().zip(&mut below) {
                    *below += u32::from(gap < *bound);
                }
            }
            for (bound, below) in bounds.iter().zip(below) {
                let expected = 1.0 - (1.0 - probability).powi(*bound as i32);
                let sigma = (expected * (1.0 - expected) / f64::from(draws)).sqrt();
                let found = f64::from(below) / f64::from(draws);
                assert!(
                    (found - expected).abs() <= 5.0 * sigma + 1e-12,
                    "p {probability}, below {bound}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn far_gaps_take_few_draws_and_have_the_right_mean() {
        for power in [12, 20, 31] {
            let probability = 0.5f64.powi(power);
            let gaps = Gaps::new(Rng::threshold(probability));
            let mut rng = Rng::new(9, 2);
            let draws = 20_000u64;
            let sum: u128 = (0..draws).map(|_| u128::from(gaps.draw(&mut rng))).sum();
            let mean = sum as f64 / draws as f64 * probability;
            // The mean of a geometric gap is q / p, its deviation nearly the same: 5 / sqrt(20,000) is 3.5 %.
            assert!((mean - 1.0).abs() < 0.036, "2^-{power}: {mean}");
        }
    }

    #[test]
    fn the_table_is_the_power_to_the_last_bit() {
        // q = 3/4 has exact powers: 64-bit entries of 1 - q^k, computed another way.
        let gaps = Gaps::new(Rng::threshold(0.25));
        for k in 1..=30usize {
            let exact = (1u128 << 64) - (3u128.pow(k as u32) << 64 >> (2 * k)).min(1 << 64);
            let entry = u128::from(gaps.tables[0][k - 1]);
            assert!(exact.abs_diff(entry) <= 1, "k {k}: {exact} {entry}");
        }
    }

    #[test]
    fn certainty_and_impossibility_need_no_draw() {
        let mut rng = Rng::new(1, 1);
        let before = rng.clone().bits();
        assert_eq!(Gaps::new(u64::MAX).draw(&mut rng), 0);
        assert_eq!(Gaps::new(0).draw(&mut rng), u64::MAX);
        assert_eq!(rng.bits(), before);
        assert!(Gaps::new(0).is_never());
        // The smallest probability there is: gaps beyond any run, and no overflow.
        assert!(Gaps::new(1).draw(&mut rng) > 1 << 40);
    }
}
