//! Jobs of several scenarios side by side: the families and software on the same collective.
//!
//! | file | holds |
//! |---|---|
//! | [`engines`] | one job on every engine and every network, as a study |
//! | [`job`] | the jobs of scenarios, whether they are the same, and their variants |
//! | [`measure`] | the runs of one of them |
//! | [`page`] | both as one HTML page |
//! | [`study`] | a study file: the same contestants at several vector lengths and in several systems |
//! | [`table`] | text and CSV |
//!
//! Nothing is assumed of any family: whether it waits for a dead participant for ever, or whether its bits depend on
//! the order of arrival, is measured by its runs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

pub mod engines;
pub mod job;
pub mod measure;
pub mod page;
pub mod study;
pub mod table;

pub use job::{Contestant, Setting, differences, jobs, jobs_with, shorten};
pub use measure::{ContestantError, Entry};

/// Version of the shape of a comparison as JSON.
pub const SCHEMA_VERSION: u32 = 1;

/// How participants are disturbed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Disturbance {
    /// One comes so late, in ns; 0: nobody does.
    pub late_ns: f64,
    /// One is dead.
    pub dead: bool,
    /// Runs with other orders of arrival.
    pub orders: u32,
    /// In these participants come up to so late, in ns.
    pub spread_ns: f64,
    /// Seed of who comes when.
    pub seed: u64,
}

impl Default for Disturbance {
    fn default() -> Self {
        Self { late_ns: 1000.0, dead: true, orders: 3, spread_ns: 1000.0, seed: 1 }
    }
}

/// Contestants side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Version of this shape.
    pub schema_version: u32,
    /// What the jobs differ in; empty if they are the same.
    pub differences: Vec<String>,
    /// How participants were disturbed.
    pub disturb: Disturbance,
    /// One each, in the order they were named.
    pub entries: Vec<Entry>,
}

impl Comparison {
    /// Whether every undisturbed run ended with all checks passed.
    pub fn passed(&self) -> bool {
        self.entries.iter().all(|entry| entry.run.outcome == "finished" && entry.run.failed.is_empty())
    }
}

/// Runs all contestants, `jobs` at a time; what comes out does not depend on how many.
///
/// # Errors
/// The first one that cannot be run, in their order.
pub fn compare(
    contestants: &[Contestant],
    disturb: &Disturbance,
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Comparison, ContestantError> {
    let each: Vec<(Contestant, Disturbance)> = contestants.iter().map(|one| (one.clone(), disturb.clone())).collect();
    let entries = all(&each, jobs, stop, progress)?;
    Ok(Comparison {
        schema_version: SCHEMA_VERSION,
        differences: differences(contestants),
        disturb: disturb.clone(),
        entries,
    })
}

/// Measures contestants on several threads; results in their order.
fn all(
    contestants: &[(Contestant, Disturbance)],
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Entry>, ContestantError> {
    let measure = |(contestant, disturb): &(Contestant, Disturbance)| measure::measure(contestant, disturb, stop);
    parallel_map(contestants, jobs, progress, measure).into_iter().collect()
}

/// Does something with each of a list on several threads; results in the order of the list.
pub(crate) fn parallel_map<T: Sync, R: Send>(
    list: &[T],
    jobs: usize,
    progress: &(dyn Fn(usize, usize) + Sync),
    work: impl Fn(&T) -> Result<R, ContestantError> + Sync,
) -> Vec<Result<R, ContestantError>> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Mutex<Vec<Option<Result<R, ContestantError>>>> = Mutex::new(list.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, list.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = list.get(at) else { return };
                    let result = work(item);
                    if let Ok(mut results) = results.lock() {
                        results[at] = Some(result);
                    }
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, list.len());
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_default();
    results.into_iter().map(|result| result.unwrap_or(Err(ContestantError::Interrupted))).collect()
}
