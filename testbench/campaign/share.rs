//! How much of a campaign runs: in `make test` one case in several, in `make soak`, which sets `WATERSHED_SOAK`, every one.
#![allow(dead_code, reason = "not every set of tests asks for all of it")]

/// Whether every case runs.
pub fn is_whole() -> bool {
    std::env::var_os("WATERSHED_SOAK").is_some()
}

/// The first of these cases and every `step`-th after it; in `make soak` all.
pub fn one_in<I: IntoIterator>(step: usize, all: I) -> std::iter::StepBy<I::IntoIter> {
    all.into_iter().step_by(if is_whole() { 1 } else { step })
}

/// How many of `all` repetitions run: one in `step`, at least one; in `make soak` all.
pub fn of(step: u64, all: u64) -> u64 {
    if is_whole() { all } else { all.div_ceil(step) }
}
