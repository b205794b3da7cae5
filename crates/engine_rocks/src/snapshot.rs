//! RocksDB snapshots that own their database, with the read options that use them ready made.

use std::any::Any;
use std::sync::Arc;

use cohort_engine::EngineSnapshot;
use rocksdb::{DB, ReadOptions, SnapshotWithThreadMode};

/// The state of the database at one sequence number. Fields drop in this order: the snapshot before its
/// database.
pub struct RocksSnapshot {
    options: ReadOptions,
    inner: SnapshotWithThreadMode<'static, DB>,
    _db: Arc<DB>,
}

impl RocksSnapshot {
    /// Pins the present state.
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

    /// For point reads at this snapshot.
    pub fn options(&self) -> &ReadOptions {
        &self.options
    }

    /// Lets a scan's own options read at this snapshot.
    pub fn apply(&self, options: &mut ReadOptions) {
        options.set_snapshot(&self.inner);
    }
}

impl EngineSnapshot for RocksSnapshot {
    fn as_any(&self) -> &dyn Any {
        self
    }
}
