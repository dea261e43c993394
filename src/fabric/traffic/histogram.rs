//! A histogram of latencies: exact for short ones, with a bounded relative error for long ones.
//!
//! | latency (cycles) | width of a bucket | error of a percentile |
//! |---|---|---|
//! | below 1024 | 1 | none |
//! | 2^k to 2^(k+1), k >= 10 | 2^(k-9) | below 1/512 = 0.2 % |
//!
//! Count, sum, least and greatest are exact whatever the latency. Buckets are allocated up to the longest latency seen.

/// Latencies below this are counted one by one.
const EXACT: u64 = 1 << 10;
/// Buckets of each further power of two.
const SUB: u64 = 1 << 9;

/// Counts of latencies.
#[derive(Clone, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    least: u64,
    greatest: u64,
}

impl Histogram {
    /// Counts one latency.
    #[inline]
    pub fn add(&mut self, latency: u64) {
        let bucket = bucket(latency);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.least = if self.count == 0 { latency } else { self.least.min(latency) };
        self.count += 1;
        self.sum += u128::from(latency);
        self.greatest = self.greatest.max(latency);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The shortest; 0 if there are none.
    pub fn least(&self) -> u64 {
        self.least
    }

    /// The longest; 0 if there are none.
    pub fn greatest(&self) -> u64 {
        self.greatest
    }

    /// The smallest latency that at least `per_mille` thousandths of all do not exceed: the greatest of its bucket,
    /// which is the latency itself below 1024 cycles. `None` if there are none.
    pub fn percentile(&self, per_mille: u32) -> Option<u64> {
        let rank = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1000).max(1) as u64;
        let mut below = 0;
        let at = self.buckets.iter().position(|count| {
            below += count;
            below >= rank
        })?;
        Some((first(at + 1) - 1).min(self.greatest))
    }

    /// The buckets that are not empty: first latency, last latency, how many.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let filled = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(at, &count)| (first(at), first(at + 1) - 1, count))
    }
}

/// The bucket of a latency.
#[inline]
fn bucket(latency: u64) -> usize {
    if latency < EXACT {
        return latency as usize;
    }
    let power = latency.ilog2();
    (EXACT + u64::from(power - 10) * SUB + ((latency >> (power - 9)) - SUB)) as usize
}

/// The first latency of a bucket.
fn first(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    let (power, sub) = ((bucket - EXACT) / SUB, (bucket - EXACT) % SUB);
    (SUB + sub) << (power + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_kernel::Rng;

    #[test]
    fn buckets_cover_all_latencies_without_gap_or_overlap() {
        for at in 0..20_000 {
            assert_eq!(bucket(first(at)), at);
            assert_eq!(bucket(first(at + 1) - 1), at);
            assert!(first(at) < EXACT || (first(at + 1) - first(at)) * SUB <= first(at));
        }
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_list() {
        let mut rng = Rng::new(11, 0);
        for (count, spread) in [(1u64, 50), (9, 50), (1000, 900), (5000, 1 << 22)] {
            let mut histogram = Histogram::default();
            let mut list: Vec<u64> = (0..count).map(|_| rng.below(spread) * rng.below(spread) / spread).collect();
            for &latency in &list {
                histogram.add(latency);
            }
            list.sort_unstable();
            for per_mille in [1, 500, 900, 990, 999, 1000] {
                let exact = list[((count * u64::from(per_mille)).div_ceil(1000).max(1) - 1) as usize];
                let found = histogram.percentile(per_mille).unwrap();
                if exact < EXACT {
                    assert_eq!(found, exact, "{per_mille} of {count}");
                } else {
                    assert!(found >= exact && (found - exact) * SUB <= exact, "{per_mille}: {found} {exact}");
                }
            }
            assert_eq!((histogram.least(), histogram.greatest()), (list[0], list[list.len() - 1]));
            assert_eq!(histogram.mean(), Some(list.iter().sum::<u64>() as f64 / count as f64));
            assert_eq!(histogram.buckets().map(|(_, _, count)| count).sum::<u64>(), count);
        }
        assert_eq!((Histogram::default().percentile(500), Histogram::default().mean()), (None, None));
    }
}
