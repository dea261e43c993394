//! Asking memory ahead of time for what will be looked at.
//!
//! The registers of a few thousand switches are in no near cache when their turn in a cycle comes, and each of them leads to the
//! next: the node to its queues, a queue to its flit, the flit to an output. Who knows whose turn is next asks for them a few
//! turns before, and waits for none. This is the only `unsafe` of the crate.

/// Asks for the line of the cache that `place` begins in, and does not wait for it. It changes nothing but time; where a machine
/// has no such instruction it does nothing.
#[inline(always)]
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub fn ask<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint that reads nothing into the program and faults nowhere, and the place is a valid one.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
