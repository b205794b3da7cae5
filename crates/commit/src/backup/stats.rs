//! Counters of backups.

use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

/// Counters of backups, for SHOW STATUS.
#[derive(Debug, Default)]
pub struct BackupStats {
    /// Held by the running backup.
    pub running: Mutex<()>,
    pub completed: AtomicU64,
    pub failed: AtomicU64,
    /// Moment of the cut of the newest backup of this data directory, in microseconds since 1970; 0 if there
    /// is none.
    pub newest_us: AtomicU64,
    /// Moment of the cut of the newest backup that was proven.
    pub proven_us: AtomicU64,
    /// Held while the list of the data directory's backups changes.
    pub list: Mutex<()>,
    /// Bytes that the running backup will have, as far as it is known at its begin; 0 without one.
    pub expected: AtomicU64,
}
