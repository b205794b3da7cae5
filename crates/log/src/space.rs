//! Accounting of log space.
//!
//! `promised` is the LSN that the log reaches if every reservation is used in full. A reservation moves it
//! forward, which succeeds as long as it stays within `ready_end` (the end of the last ready segment) and the
//! cap. So an append never finds its segment missing (I6).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};

/// Accounting of a log's space.
pub(crate) struct Space {
    /// Written by reservations, and when they are returned.
    pub promised: AtomicU64,
    /// Written under `making`.
    pub ready_end: AtomicU64,
    /// Start of the part that must be kept. Written by checkpoints.
    pub retained: AtomicU64,
    /// LSN from which the log is kept for the archive; `u64::MAX` if it is not. Written under `control`.
    pub archived: AtomicU64,
    /// LSNs from which the log is kept for readers, by the number of the pin.
    pub pins: Mutex<Pins>,
    /// Released segments still under their old names.
    pub making: Mutex<Vec<u64>>,
    pub worker: Mutex<WorkerState>,
    /// Notifies the background thread: there is work, or it has to stop.
    pub work: Condvar,
    /// Notifies threads in `reserve`: a segment is ready, or could not be created.
    pub made: Condvar,
    /// The background thread was notified and has not checked yet.
    pub is_notified: AtomicBool,
    pub created: AtomicU64,
    pub recycled: AtomicU64,
    pub waits: AtomicU64,
}

/// The pins of a log.
#[derive(Default)]
pub(crate) struct Pins {
    pub from: BTreeMap<u64, u64>,
    pub next: u64,
}

#[derive(Default)]
pub(crate) struct WorkerState {
    pub kicked: bool,
    pub stop: bool,
    /// The largest end that a caller has waited for.
    pub waited_for: u64,
    /// Number of failed attempts, normally for lack of disk space.
    pub full_count: u64,
}

impl Space {
    pub fn new(end: u64, ready_end: u64, retained: u64, archived: Option<u64>, released: Vec<u64>) -> Space {
        Space {
            promised: AtomicU64::new(end),
            ready_end: AtomicU64::new(ready_end),
            retained: AtomicU64::new(retained),
            archived: AtomicU64::new(archived.unwrap_or(u64::MAX)),
            pins: Mutex::default(),
            making: Mutex::new(released),
            worker: Mutex::default(),
            work: Condvar::new(),
            made: Condvar::new(),
            is_notified: AtomicBool::new(false),
            created: AtomicU64::new(0),
            recycled: AtomicU64::new(0),
            waits: AtomicU64::new(0),
        }
    }

    /// Returns the start of the part that recovery, the archive or a pin needs.
    pub fn kept(&self) -> u64 {
        let pins = self.pins.lock();
        let retained = self.retained.load(Ordering::Acquire).min(self.archived.load(Ordering::Acquire));
        pins.from.values().copied().min().map_or(retained, |pinned| pinned.min(retained))
    }

    /// Returns the bytes that only pins need.
    pub fn pinned_bytes(&self) -> u64 {
        let retained = self.retained.load(Ordering::Acquire).min(self.archived.load(Ordering::Acquire));
        retained - self.kept().min(retained)
    }

    /// Returns the LSN from which the archive needs the log.
    pub fn archived(&self) -> Option<u64> {
        Some(self.archived.load(Ordering::Acquire)).filter(|lsn| *lsn < u64::MAX)
    }

    pub fn give_back(&self, bytes: u64) {
        self.promised.fetch_sub(bytes, Ordering::AcqRel);
    }

    pub fn is_ready(&self, end: u64) -> bool {
        end <= self.ready_end.load(Ordering::Acquire)
    }

    /// Returns whether the background thread has to preallocate a segment.
    pub fn has_work(&self, wanted_end: u64) -> bool {
        let worker = self.worker.lock();
        !worker.stop && !self.is_ready(wanted_end.max(worker.waited_for))
    }

    /// Ends the background thread, and the waits for it.
    pub fn stop(&self) {
        self.worker.lock().stop = true;
        self.work.notify_all();
        self.made.notify_all();
    }

    pub fn kick(&self) {
        if !self.is_notified.swap(true, Ordering::AcqRel) {
            self.worker.lock().kicked = true;
            self.work.notify_one();
        }
    }
}
