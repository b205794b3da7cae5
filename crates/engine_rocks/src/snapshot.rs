//! RocksDB snapshots that own their database, with prepared read options.

use std::any::Any;
use std::sync::Arc;

use cohort_engine::EngineSnapshot;
use rocksdb::{DB, ReadOptions, SnapshotWithThreadMode};

/// The state of the database at one sequence number. The field order matters: the snapshot is dropped before
/// its database.
pub struct RocksSnapshot {
    options: ReadOptions,
    inner: SnapshotWithThreadMode<'static, DB>,
    _db: Arc<DB>,
}

impl RocksSnapshot {
    /// Pins the current state.
    pub fn new(db: &Arc<DB>) -> RocksSnapshot {
        // SAFETY: the snapshot borrows the DB inside the Arc, whose address does not change and which `_db`
        // keeps alive until after `inner` is dropped (declaration order). The 'static lifetime never leaves
        // this struct.
        let inner = unsafe {
            std::mem::transmute::<SnapshotWithThreadMode<'_, DB>, SnapshotWithThreadMode<'static, DB>>(
                db.snapshot(),
            )
        };
        let mut options = ReadOptions::default();
        options.set_snapshot(&inner);
        RocksSnapshot { options, inner, _db: db.clone() }
    }

    /// Returns options for point reads at this snapshot.
    pub fn options(&self) -> &ReadOptions {
        &self.options
    }

    /// Makes a scan's own options read at this snapshot.
    pub fn apply(&self, options: &mut ReadOptions) {
        options.set_snapshot(&self.inner);
    }
}

impl EngineSnapshot for RocksSnapshot {
    fn as_any(&self) -> &dyn Any {
        self
    }
}
