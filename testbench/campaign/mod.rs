//! Many seeds of one test, over all processors: what a seed gives does not depend on the others, and comes back in their order.

pub mod links;

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The seeds that `WATERSHED_CAMPAIGN=FIRST..END` asks for, or the usual ones.
pub fn asked(usual: Range<u64>) -> Range<u64> {
    let Ok(given) = std::env::var("WATERSHED_CAMPAIGN") else { return usual };
    let ends = given.split_once("..").and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?));
    ends.unwrap_or_else(|| panic!("WATERSHED_CAMPAIGN=FIRST..END, not {given:?}"))
}

/// What every seed gives. A seed that panics is no reason for the others not to run.
///
/// # Panics
/// In the end, if there is a seed that is wrong, with all of them and what the first one says.
pub fn over<R: Send>(seeds: impl IntoIterator<Item = u64>, one: impl Fn(u64) -> Result<R, String> + Sync) -> Vec<R> {
    let seeds: Vec<u64> = seeds.into_iter().collect();
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Vec::new());
    let work = || {
        while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let came = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| one(seed)));
            let came = came.unwrap_or_else(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                Err(text.unwrap_or_else(|| format!("seed {seed} panics")))
            });
            // Said at once: whoever looks into it need not wait for the other seeds.
            if let Err(what) = &came {
                println!("seed {seed} is wrong: {}", what.lines().next().unwrap_or_default());
            }
            let mut all = all.lock().expect("nobody panics with it");
            all.push((seed, came));
            if all.len().is_multiple_of(500) {
                let wrong = all.iter().filter(|(_, came)| came.is_err()).count();
                println!("{} of {} seeds, {wrong} wrong", all.len(), seeds.len());
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut all = all.into_inner().expect("nobody panics with it");
    all.sort_by_key(|&(seed, _)| seed);
    let wrong: Vec<_> = all.iter().filter_map(|(seed, came)| came.as_ref().err().map(|what| (seed, what))).collect();
    if let Some((seed, what)) = wrong.first() {
        let seeds: Vec<u64> = wrong.iter().map(|&(&seed, _)| seed).collect();
        panic!("{} seeds are wrong: {seeds:?}\nseed {seed}: {what}", wrong.len());
    }
    all.into_iter().filter_map(|(_, came)| came.ok()).collect()
}
