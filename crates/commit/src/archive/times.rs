//! Times of the log: the leader logs one at the head of a flush group.

use std::sync::atomic::{AtomicU64, Ordering};

/// Minimum distance of two TIME records.
const TIME_STEP_US: u64 = 10_000;

/// Times of TIME records; used by the leader.
pub struct GroupTimes {
    /// The newest one, in microseconds since 1970.
    last_us: AtomicU64,
}

impl GroupTimes {
    /// Makes times that are not before those of an earlier start.
    pub fn after(last_us: u64) -> GroupTimes {
        GroupTimes { last_us: AtomicU64::new(last_us) }
    }

    /// Returns the time to log now, if the newest one is old enough. Never goes back: while a clock that was
    /// set back has not reached the newest time again, there is none.
    pub fn due(&self, now_us: u64) -> Option<u64> {
        let last_us = self.last_us.load(Ordering::Relaxed);
        if now_us < last_us.saturating_add(TIME_STEP_US) {
            return None;
        }
        self.last_us.store(now_us, Ordering::Relaxed);
        Some(now_us)
    }
}

#[cfg(test)]
mod tests {
    use super::GroupTimes;

    #[test]
    fn times_never_go_back_and_keep_their_distance() {
        let times = GroupTimes::after(1000);
        let cases = [
            (500, None),
            (10_999, None),
            (11_000, Some(11_000)),
            (11_000, None),
            (20_999, None),
            (5, None),
            (9_000_000, Some(9_000_000)),
            (8_999_999, None),
            (9_010_000, Some(9_010_000)),
        ];
        cases.iter().for_each(|(now_us, due)| assert_eq!(times.due(*now_us), *due, "{now_us}"));
    }
}
