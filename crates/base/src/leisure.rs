//! Throttling of background work.

use std::time::Duration;

/// Ratio of pause to work: throttled work takes at most a ninth of a thread's time.
const REST_FACTOR: u32 = 8;

/// Returns how long a thread pauses, at most `max`, after it has `worked` on a background task. The pause
/// leaves processors, disk and caches to foreground work.
pub fn throttle_pause(worked: Duration, max: Duration) -> Duration {
    (worked * REST_FACTOR).min(max)
}
