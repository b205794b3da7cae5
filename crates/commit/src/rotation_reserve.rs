//! The rotation reserve: log space for a change of the binlog file. It is reserved in advance, because the
//! leader must not wait (I6).
//!
//! # Concepts
//! - A file change needs more bytes the more pairs of domain and server there are, because the new file
//!   begins with all of them. The leader records the needed size after each group. Each session that prepares
//!   a transaction makes sure that this size, and a little more, is reserved.
//! - If the reservation is missing or too small, the file is not changed after this group but after a later
//!   one.
//!
//! # Lock order
//! The mutex is held briefly, never while waiting for a segment.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cohort_binlog::{Stream, StreamOut};
use cohort_log::{Log, LogReservation};
use parking_lot::Mutex;

use crate::record;

/// Bytes reserved beyond the need, for pairs that are added by the next group.
const SLACK_BYTES: u64 = 16 << 10;

/// The reservation, and the size that it needs.
pub struct RotationReserve {
    reservation: Mutex<Option<LogReservation>>,
    /// Written by the leader, and while the order stage is held.
    needed_bytes: AtomicU64,
    /// A thread is reserving; others need not.
    is_filling: AtomicBool,
}

impl RotationReserve {
    /// Makes an empty reservation that needs this size.
    pub fn new(needed_bytes: u64) -> RotationReserve {
        RotationReserve {
            reservation: Mutex::new(None),
            needed_bytes: AtomicU64::new(needed_bytes),
            is_filling: AtomicBool::new(false),
        }
    }

    /// Returns the number of bytes to reserve for a file change that comes soon.
    pub fn wanted_bytes(&self) -> u64 {
        self.needed_bytes.load(Ordering::Relaxed) + SLACK_BYTES
    }

    /// Records the number of bytes that a file change needs from now on.
    pub fn note_need(&self, bytes: u64) {
        self.needed_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Reserves the needed size, if it is not reserved yet and the log has the space. May wait for a segment.
    pub fn fill(&self, log: &Log) {
        let needed = self.needed_bytes.load(Ordering::Relaxed);
        if self.has(needed) || self.is_filling.swap(true, Ordering::Acquire) {
            return;
        }
        if let Ok(reservation) = log.reserve(self.wanted_bytes()) {
            *self.reservation.lock() = Some(reservation);
        }
        self.is_filling.store(false, Ordering::Release);
    }

    /// Begins a new file of the binlog if the current one is full, and logs its bytes. Returns them. Returns
    /// `None` if the file is not full, or too little is reserved.
    pub fn rotate(&self, log: &Log, stream: &mut Stream, now_s: &dyn Fn() -> u32) -> Option<StreamOut> {
        let needed_bytes = stream.rotation_bytes_max();
        self.note_need(needed_bytes);
        if !stream.wants_rotation() {
            return None;
        }
        let reservation = self.take(needed_bytes)?;
        let mut out = StreamOut::default();
        stream.rotate(&mut out, now_s());
        record::append_binlog_record(log, reservation, &out);
        Some(out)
    }

    fn has(&self, bytes: u64) -> bool {
        self.reservation.lock().as_ref().is_some_and(|reservation| reservation.fits(bytes))
    }

    /// Takes the reservation if it has at least this size. Never waits.
    pub fn take(&self, bytes: u64) -> Option<LogReservation> {
        let mut reservation = self.reservation.lock();
        if reservation.as_ref().is_some_and(|reservation| reservation.fits(bytes)) {
            reservation.take()
        } else {
            None
        }
    }
}
