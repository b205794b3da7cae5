//! Room in the log for a change of the binlog's file, reserved before it is needed: the leader must not wait
//! (I6).
//!
//! # Concepts
//! - A file change needs more the more pairs of domain and server there are, because the new file begins with
//!   all of them. The leader says after each group how much; whoever prepares a transaction sees to it that
//!   so much is reserved, and a little more.
//! - When the room is missing or too small, the file is not changed behind this group but behind a later one.
//!
//! # Lock order
//! `room` is held for moments only, never while somebody waits for a segment.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cohort_log::{Log, Room};
use parking_lot::Mutex;

/// What is reserved beyond the need: so many pairs may be new in one group.
const SLACK_BYTES: u64 = 16 << 10;

/// The room, and how large it has to be.
pub struct RotationRoom {
    room: Mutex<Option<Room>>,
    /// Written by the leader, and while the order stage is held.
    needed_bytes: AtomicU64,
    /// Somebody reserves: others need not.
    is_filling: AtomicBool,
}

impl RotationRoom {
    /// Nothing is reserved yet.
    pub fn new(needed_bytes: u64) -> RotationRoom {
        RotationRoom {
            room: Mutex::new(None),
            needed_bytes: AtomicU64::new(needed_bytes),
            is_filling: AtomicBool::new(false),
        }
    }

    /// How much to reserve for a file change that comes soon.
    pub fn wanted_bytes(&self) -> u64 {
        self.needed_bytes.load(Ordering::Relaxed) + SLACK_BYTES
    }

    /// A file change needs this much from now on.
    pub fn note_need(&self, bytes: u64) {
        self.needed_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Reserves what is missing, if the log has it. May wait for a segment.
    pub fn fill(&self, log: &Log) {
        let needed = self.needed_bytes.load(Ordering::Relaxed);
        if self.has(needed) || self.is_filling.swap(true, Ordering::Acquire) {
            return;
        }
        if let Ok(room) = log.reserve(self.wanted_bytes()) {
            *self.room.lock() = Some(room);
        }
        self.is_filling.store(false, Ordering::Release);
    }

    fn has(&self, bytes: u64) -> bool {
        self.room.lock().as_ref().is_some_and(|room| room.fits(bytes))
    }

    /// The room, if there is one of this size. Never waits.
    pub fn take(&self, bytes: u64) -> Option<Room> {
        let mut room = self.room.lock();
        if room.as_ref().is_some_and(|room| room.fits(bytes)) { room.take() } else { None }
    }
}
