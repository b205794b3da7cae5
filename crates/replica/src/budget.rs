//! [`QueueBudget`]: a memory limit for the groups queued for appliers, over all sources and domains.
//!
//! The limit is `slave_parallel_max_queued` bytes for each of `slave_parallel_threads`, as in MariaDB, whose
//! workers serve all sources. A source with nothing queued may always queue one group, so one source never
//! blocks another.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of queued events.
#[derive(Debug, Default)]
pub struct QueueBudget {
    used: AtomicUsize,
}

impl QueueBudget {
    /// Takes `bytes` if the total stays within `limit`. `is_first`: the source has nothing queued, so it
    /// always gets them. Returns whether they were taken.
    pub fn take(&self, bytes: usize, limit: usize, is_first: bool) -> bool {
        let fits = |used: usize| is_first || used.saturating_add(bytes) <= limit;
        let take = |used: usize| fits(used).then(|| used.saturating_add(bytes));
        self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok()
    }

    /// Returns bytes to the budget.
    pub fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Returns the bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_waiters_share_one_limit_and_none_starves() {
        let budget = QueueBudget::default();
        assert!(budget.take(60, 100, true) && budget.take(40, 100, false));
        assert!(!budget.take(1, 100, false));
        assert!(budget.take(500, 100, true), "another source begins");
        budget.give(500);
        budget.give(60);
        assert_eq!(budget.used(), 40);
        assert!(budget.take(60, 100, false));
    }
}
