//! Use of the processors: prefetches of memory that will be read soon, and pauses of background work.

use std::time::Duration;

/// Ratio of pause to work: throttled work takes at most a ninth of a thread's time.
const REST_FACTOR: u32 = 8;

/// Returns how long a thread pauses, at most `max`, after it has `worked` on a background task. The pause
/// leaves processors, disk and caches to foreground work.
pub fn throttle_pause(worked: Duration, max: Duration) -> Duration {
    (worked * REST_FACTOR).min(max)
}

/// Prefetches the cache line at `at` of `bytes`. Only a hint: it never waits, and does nothing if `at` is out
/// of bounds.
#[inline]
pub fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = bytes.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch changes nothing but the caches, and every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at);
}
