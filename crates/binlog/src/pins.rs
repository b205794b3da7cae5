//! Which files somebody still reads: purge leaves them (I7).

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The readers of a binlog's files. Shared by the files and all who hold a [`Pin`].
#[derive(Clone, Debug, Default)]
pub struct Pins {
    shared: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    /// The file that each reader needs, with all behind it.
    files: BTreeMap<u64, u32>,
}

impl Pins {
    /// Keeps this file and all behind it until the pin is moved or dropped.
    pub fn pin(&self, file: u32) -> Pin {
        let mut held = self.shared.lock();
        let id = held.next;
        held.next += 1;
        held.files.insert(id, file);
        Pin { pins: self.clone(), id }
    }

    /// The oldest file that somebody needs.
    pub fn oldest(&self) -> Option<u32> {
        self.shared.lock().files.values().min().copied()
    }
}

/// A reader's hold on a file and all behind it.
#[derive(Debug)]
pub struct Pin {
    pins: Pins,
    id: u64,
}

impl Pin {
    /// The reader needs only this file and those behind it now.
    pub fn advance(&self, file: u32) {
        self.pins.shared.lock().files.insert(self.id, file);
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.pins.shared.lock().files.remove(&self.id);
    }
}
