//! What the commit path counts, for SHOW STATUS.

use std::sync::atomic::{AtomicU64, Ordering};

/// Times in a histogram of powers of two of microseconds.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; 24],
    total_us: AtomicU64,
    max_us: AtomicU64,
}

impl Histogram {
    /// Adds a measurement.
    pub fn record_ns(&self, ns: u64) {
        let us = ns / 1000;
        let bucket = (64 - us.leading_zeros() as usize).min(self.buckets.len() - 1);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.total_us.fetch_add(us, Ordering::Relaxed);
        self.max_us.fetch_max(us, Ordering::Relaxed);
    }

    /// Number of measurements below `2^n` microseconds, for n = 0, 1, ...; the last also counts all above.
    pub fn buckets(&self) -> Vec<u64> {
        self.buckets.iter().map(|b| b.load(Ordering::Relaxed)).collect()
    }

    /// Sum of all measurements.
    pub fn total_us(&self) -> u64 {
        self.total_us.load(Ordering::Relaxed)
    }

    /// The largest measurement.
    pub fn max_us(&self) -> u64 {
        self.max_us.load(Ordering::Relaxed)
    }
}

/// Counters of the commit path since the server's start.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Transactions published.
    pub commits: AtomicU64,
    /// Of those, with events in the binlog.
    pub binlog_commits: AtomicU64,
    /// Flush groups.
    pub groups: AtomicU64,
    /// Size of the largest group.
    pub group_size_max: AtomicU64,
    /// Bytes written to the binlog.
    pub binlog_bytes: AtomicU64,
    /// Flush time per group.
    pub flush: Histogram,
    /// Checkpoints completed.
    pub checkpoints: AtomicU64,
    /// Checkpoints that failed and will be tried again.
    pub checkpoint_failures: AtomicU64,
}
