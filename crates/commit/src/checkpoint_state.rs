//! State of the checkpointer.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex, MutexGuard};

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
