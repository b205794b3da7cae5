//! Which files somebody still reads: purge leaves them (I7).
//!
//! A reader pins its first file before it opens it, and moves on when it is done with it: so a file that is
//! being read is never purged.

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
    files: BTreeMap<u64, Place>,
}

#[derive(Debug)]
struct Place {
    file: u32,
    who: String,
}

impl Pins {
    /// Keeps this file and all behind it until the pin is moved or dropped. `who` is how the error log calls
    /// the reader.
    pub fn pin(&self, file: u32, who: impl Into<String>) -> Pin {
        let mut held = self.shared.lock();
        let id = held.next;
        held.next += 1;
        held.files.insert(id, Place { file, who: who.into() });
        Pin { pins: self.clone(), id }
    }

    /// The oldest file that somebody needs.
    pub fn oldest(&self) -> Option<u32> {
        self.shared.lock().files.values().map(|place| place.file).min()
    }

    /// Who needs the oldest file.
    pub fn oldest_reader(&self) -> Option<(u32, String)> {
        let held = self.shared.lock();
        held.files.values().min_by_key(|place| place.file).map(|place| (place.file, place.who.clone()))
    }

    /// How many read.
    pub fn count(&self) -> usize {
        self.shared.lock().files.len()
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
        if let Some(place) = self.pins.shared.lock().files.get_mut(&self.id) {
            place.file = file;
        }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.pins.shared.lock().files.remove(&self.id);
    }
}
