//! Work that nobody waits for.

use std::time::Duration;

/// Rest for each moment of work: such work has a ninth of a thread's time at the most.
const REST_FACTOR: u32 = 8;

/// How long a thread rests, at most `max` at once, after it has `worked` on what nobody waits for. Others
/// want the processors, the disk and the caches that it works with.
pub fn rest_after(worked: Duration, max: Duration) -> Duration {
    (worked * REST_FACTOR).min(max)
}
