//! State of the checkpointer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use cohort_base::CommitSeq;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::backup::stats::BackupStats;

/// The background part of the coordinator.
#[derive(Default)]
pub struct Checkpointer {
    pub is_requested: Mutex<bool>,
    pub wake: Condvar,
    pub is_stopped: AtomicBool,
    /// Reason why writes are refused, if they are.
    pub refusal: Mutex<Option<String>>,
    pub is_refusing: AtomicBool,
    /// Number of the binlog file where recovery would begin; 0 while no checkpoint has synced one.
    pub binlog_from: AtomicU32,
    /// Held by the running checkpoint.
    pub running: Mutex<()>,
    /// Number of threads that wait for `running`.
    pub waiting: AtomicUsize,
    /// Time of the newest checkpoint if it failed, by the monotonic clock, and its error; used only by the
    /// checkpointer's thread.
    pub failed: Mutex<Option<(u64, String)>>,
    /// When the newest checkpoint ended, with or without success, by the monotonic clock.
    pub ended_ns: AtomicU64,
    /// CommitSeq after which a backup needs spilled redo.
    spill_kept: Arc<SpillKept>,
    /// CommitSeq after which the archive needs spilled redo and events.
    archive_kept: SpillKept,
    pub backups: BackupStats,
}

/// CommitSeq after which spilled redo is kept; `u64::MAX` if none is needed.
struct SpillKept(AtomicU64);

impl Default for SpillKept {
    fn default() -> SpillKept {
        SpillKept(AtomicU64::new(u64::MAX))
    }
}

/// A backup's pin of spilled redo.
pub struct SpillPin(Arc<SpillKept>);

impl SpillPin {
    /// Gives up the files of transactions up to this one.
    pub fn advance(&self, copied: CommitSeq) {
        self.0.0.fetch_max(copied.0, Ordering::SeqCst);
    }
}

impl Drop for SpillPin {
    fn drop(&mut self) {
        self.0.0.store(u64::MAX, Ordering::SeqCst);
    }
}

impl Checkpointer {
    /// Returns the first binlog file that recovery would read; 0 while it would read all.
    pub fn binlog_from(&self) -> u32 {
        self.binlog_from.load(Ordering::Relaxed)
    }

    /// Records that recovery would begin in this binlog file.
    pub fn set_binlog_from(&self, file: u32) {
        self.binlog_from.store(file, Ordering::Relaxed);
    }

    /// Keeps the spilled redo of all transactions after this one. One backup at a time calls it.
    pub fn keep_spilled_after(&self, seq: CommitSeq) -> SpillPin {
        self.spill_kept.0.store(seq.0, Ordering::SeqCst);
        SpillPin(Arc::clone(&self.spill_kept))
    }

    /// Keeps the spilled redo and events of all transactions after this one for the archive; of none if it is
    /// `u64::MAX`.
    pub fn keep_for_archive_after(&self, seq: CommitSeq) {
        self.archive_kept.0.store(seq.0, Ordering::SeqCst);
    }

    /// Returns the last transaction whose spilled redo neither a backup nor the archive needs.
    pub fn spill_kept(&self) -> CommitSeq {
        let of_archive = self.archive_kept.0.load(Ordering::SeqCst);
        CommitSeq(self.spill_kept.0.load(Ordering::SeqCst).min(of_archive))
    }

    /// Requests a checkpoint soon.
    pub fn request(&self) {
        *self.is_requested.lock() = true;
        self.wake.notify_one();
    }

    /// Ends the thread after its current round.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.wake.notify_one();
    }

    /// Returns why writes are refused, if they are.
    pub fn refusal(&self) -> Option<String> {
        if !self.is_refusing.load(Ordering::Relaxed) {
            return None;
        }
        self.refusal.lock().clone()
    }

    /// Keeps other checkpoints out while the guard is held. Must be called before the order stage is held.
    pub fn one_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let running = self.running.lock();
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        running
    }
}
