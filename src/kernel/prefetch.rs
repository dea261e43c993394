//! Prefetching: loads that start before their data is needed.
//!
//! The registers of a few thousand switches do not fit the first caches, and each access leads to the next: a node to
//! its queues, a queue to its flit, a flit to its output. The loop over awake nodes knows which nodes come next, and
//! prefetches their registers a few nodes ahead. This is the only `unsafe` code of the crate.

/// Prefetches the cache line that `place` begins in, without waiting for it. It changes only the speed; on machines
/// without such an instruction it does nothing.
#[inline(always)]
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint that reads nothing into the program and faults nowhere, and the place is a valid one.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
