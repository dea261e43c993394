//! The outcome of a job under the same names for every engine (requirement X-JOB-1): what a [`[[job]]`](watershed_reader::jobs) came
//! to, with any engine.
//!
//! | | |
//! |---|---|
//! | times | a job begins with the first contribution and ends when the last participant has the last result |
//! | latency | from the one to the other, of all rounds; null unless every round ended whole |
//! | latency of a round | from its last contribution to its last result; PIUMA's engines and software do a job in one round |
//!
//! What only one engine has stands in its own part of the document, at [`JobResult::details`].

use serde::{Deserialize, Serialize};

use super::armed_result::Outcomes;
use watershed_reader::file::job::Engine;

/// The outcome of one job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// Its name.
    pub name: String,
    /// Who did it.
    pub engine: Engine,
    /// What it does, in the words of `[[job]]`.
    pub kind: String,
    /// The operation, in the words of `[[job]]`; null if nothing is reduced.
    pub op: Option<String>,
    /// Type of an element; null of a barrier.
    pub dtype: Option<String>,
    /// How many took part.
    pub participants: u64,
    /// Elements of all rounds together, with those that fill up a last frame.
    pub elements: u64,
    /// Rounds that it took or was to take, without opening barriers.
    pub rounds: u64,
    /// How they ended, opening barriers included.
    pub outcomes: Outcomes,
    /// Cycle of the first contribution; null if there was none.
    pub start_cycle: Option<u64>,
    /// Cycle in which the last participant had the last result; null if it did not.
    pub end_cycle: Option<u64>,
    /// From start to end; null unless every round ended whole.
    pub latency_cycles: Option<u64>,
    /// The same in ns.
    pub latency_ns: Option<f64>,
    /// Elements over latency.
    pub elements_per_cycle: Option<f64>,
    /// From a round's last contribution to its last result, over whole rounds; null without any.
    pub round_latency_cycles: Option<MinMeanMax>,
    /// Every result has the oracle's bits; null if it was switched off or there is none.
    pub bit_exact: Option<bool>,
    /// Its results as a hash; missing if the document holds all their words, and in documents of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<HashedResults>,
    /// Where the document has what only this engine knows: a path of names and numbers, as sweeps have it.
    pub details: String,
}

/// What a document says of a job's results instead of their words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HashedResults {
    /// Rows of the array: see the [table](watershed_reader::result_detail).
    pub rows: u64,
    /// Elements of the longest row.
    pub elements: u64,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// The first elements of the first row, as many as were asked for, as bit patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<String>,
    /// SHA-256 over all of them: rows one after the other, each element little-endian.
    pub sha256: String,
}

/// How long a job took, from its start to its end; `None` unless every round ended whole.
pub fn latency(start: Option<u64>, end: Option<u64>, outcomes: &Outcomes) -> Option<u64> {
    let end = end.filter(|_| outcomes.all_correct())?;
    Some(end.saturating_sub(start?))
}

/// Least, mean and largest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MinMeanMax {
    /// The least.
    pub min: u64,
    /// Over all of them.
    pub mean: f64,
    /// The largest.
    pub max: u64,
}

impl MinMeanMax {
    /// Of one value.
    pub fn of_one(value: u64) -> Self {
        Self { min: value, mean: value as f64, max: value }
    }

    /// Of all of these; `None` of none.
    pub fn of(values: &[u64]) -> Option<Self> {
        let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
        Some(Self { min: *values.iter().min()?, mean, max: *values.iter().max()? })
    }

    /// Of several, each with the number of its values.
    pub fn over(parts: impl IntoIterator<Item = (Self, u64)>) -> Option<Self> {
        let weighed = |(all, count): (Self, u64), (one, of): (Self, u64)| {
            let values = (count + of).max(1) as f64;
            let mean = (all.mean * count as f64 + one.mean * of as f64) / values;
            (Self { min: all.min.min(one.min), mean, max: all.max.max(one.max) }, count + of)
        };
        parts.into_iter().reduce(weighed).map(|(all, _)| all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_count_as_often_as_there_are_values() {
        let parts = [(MinMeanMax { min: 4, mean: 6.0, max: 8 }, 3), (MinMeanMax { min: 2, mean: 10.0, max: 18 }, 1)];
        assert_eq!(MinMeanMax::over(parts), Some(MinMeanMax { min: 2, mean: 7.0, max: 18 }));
        assert_eq!(MinMeanMax::over([]), None);
        assert_eq!(MinMeanMax::of(&[4, 8, 6]), Some(MinMeanMax { min: 4, mean: 6.0, max: 8 }));
        assert_eq!(MinMeanMax::of(&[]), None);
    }

    #[test]
    fn only_jobs_whose_rounds_are_whole_have_a_latency() {
        let whole = Outcomes { complete: 3, after_retry: 1, ..Outcomes::default() };
        assert_eq!(latency(Some(10), Some(25), &whole), Some(15));
        assert_eq!(latency(None, Some(25), &whole), None);
        for outcomes in
            [Outcomes { silent: 1, ..whole }, Outcomes { incomplete: 1, ..whole }, Outcomes { open: 1, ..whole }]
        {
            assert_eq!(latency(Some(10), Some(25), &outcomes), None);
        }
    }
}
