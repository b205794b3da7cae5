//! [`KnownStatement`]: a statement whose digest is known, and its row of the statistics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_observe::{StatementKey, StatementRef};
use cohort_session::{Database, EventKind};
use cohort_sql::StatementDigest;

/// Minimum time between two samples of a statement.
const SAMPLE_INTERVAL_US: u64 = 1_000_000;

/// The digest of a statement in a schema, and its row of the statistics. Plans and prepared statements keep
/// it.
pub(crate) struct KnownStatement {
    pub key: StatementKey,
    text: Arc<str>,
    /// Its row, packed; 0 if it has none yet.
    row: AtomicU64,
    /// Latency and time of the last sample.
    pub slowest_ns: AtomicU64,
    pub sampled_us: AtomicU64,
}

impl KnownStatement {
    pub fn new(schema: Option<Arc<str>>, digest: &StatementDigest, is_nested: bool) -> Arc<KnownStatement> {
        Arc::new(KnownStatement {
            key: StatementKey { schema, digest: digest.hash, is_nested },
            text: Arc::clone(&digest.text),
            row: AtomicU64::new(0),
            slowest_ns: AtomicU64::new(0),
            sampled_us: AtomicU64::new(0),
        })
    }

    /// Returns the bytes of the statement, without a schema that it shares.
    pub fn memory_bytes(&self) -> usize {
        size_of::<KnownStatement>() + self.text.len()
    }

    /// Returns hash and text of its digest.
    pub fn digest(&self) -> (u128, Arc<str>) {
        (self.key.digest, Arc::clone(&self.text))
    }

    /// Returns its row, which may have been evicted.
    #[inline]
    pub fn known_row(&self) -> Option<StatementRef> {
        StatementRef::unpacked(self.row.load(Ordering::Relaxed))
    }

    /// Looks its row up.
    pub fn row(&self, db: &Database, kind: EventKind, now_us: u64) -> StatementRef {
        let row = db.statements.intern(&self.key, &self.text, kind.index(), now_us);
        self.row.store(row.packed(), Ordering::Relaxed);
        self.slowest_ns.store(0, Ordering::Relaxed);
        self.sampled_us.store(0, Ordering::Relaxed);
        row
    }

    /// Returns whether a statement that took this long is worth a sample.
    pub fn wants_sample(&self, took_ns: u64, now_us: u64) -> bool {
        let sampled_us = self.sampled_us.load(Ordering::Relaxed);
        sampled_us == 0
            || took_ns > self.slowest_ns.load(Ordering::Relaxed)
                && now_us.saturating_sub(sampled_us) >= SAMPLE_INTERVAL_US
    }
}
