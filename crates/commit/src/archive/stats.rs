//! Counters of the archive of the log, and the end of its thread.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Time that the stop of the server waits for the thread.
const END_PATIENCE: Duration = Duration::from_secs(25);

/// Counters of the archive, for SHOW STATUS, and its end.
#[derive(Debug, Default)]
pub struct ArchiveStats {
    /// LSN up to which the repository has the log, in this run of the server.
    pub acknowledged: AtomicU64,
    /// Moment since which something waits for the repository, by the monotonic clock; 0 if nothing does.
    pub waits_since_ns: AtomicU64,
    pub failures: AtomicU64,
    pub gaps: AtomicU64,
    pub bytes: AtomicU64,
    pub is_sending: AtomicBool,
    /// A thread runs the archive.
    is_running: Mutex<bool>,
    has_ended: Condvar,
}

impl ArchiveStats {
    /// Records that a thread runs the archive. The stop of the server waits for its end.
    pub fn begin(&self) {
        *self.is_running.lock() = true;
    }

    /// Records the end of that thread.
    pub fn end(&self) {
        *self.is_running.lock() = false;
        self.has_ended.notify_all();
    }

    /// Waits for the end of that thread, but not for ever.
    pub(crate) fn wait_for_end(&self) {
        let mut is_running = self.is_running.lock();
        let deadline = Instant::now() + END_PATIENCE;
        while *is_running && !self.has_ended.wait_until(&mut is_running, deadline).timed_out() {}
    }
}
