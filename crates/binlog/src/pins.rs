//! Pins protect binlog files that are being read from purge (I7).
//!
//! A reader pins its first file before opening it, and advances the pin when it has finished a file. So purge
//! never removes a file that is being read. While the pins are closed, new readers are refused, because all
//! files are about to be removed.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Registry of the readers of a binlog's files. Shared by the files and all [`Pin`]s.
#[derive(Clone, Debug, Default)]
pub struct Pins {
    shared: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    is_closed: bool,
    /// The oldest file that each reader needs; the reader also needs all later files.
    files: BTreeMap<u64, Place>,
}

#[derive(Debug)]
struct Place {
    file: u32,
    who: String,
}

impl Pins {
    /// Keeps this file and all later ones until the pin is advanced or dropped. `who` is the reader's name in
    /// the error log. Returns `None` while the pins are closed.
    pub fn pin(&self, file: u32, who: impl Into<String>) -> Option<Pin> {
        let mut held = self.shared.lock();
        if held.is_closed {
            return None;
        }
        let id = held.next;
        held.next += 1;
        held.files.insert(id, Place { file, who: who.into() });
        Some(Pin { pins: self.clone(), id })
    }

    /// Refuses new readers until the returned value is dropped. If there are readers, returns the name of the
    /// one that needs the oldest file as the error.
    pub fn close(&self) -> Result<ClosedPins, String> {
        let mut held = self.shared.lock();
        match held.files.values().min_by_key(|place| place.file) {
            Some(reader) => Err(reader.who.clone()),
            None => {
                held.is_closed = true;
                Ok(ClosedPins(self.clone()))
            }
        }
    }

    /// Returns the oldest file that a reader needs.
    pub fn oldest(&self) -> Option<u32> {
        self.shared.lock().files.values().map(|place| place.file).min()
    }

    /// Returns the oldest needed file and the name of its reader.
    pub fn oldest_reader(&self) -> Option<(u32, String)> {
        let held = self.shared.lock();
        held.files.values().min_by_key(|place| place.file).map(|place| (place.file, place.who.clone()))
    }

    /// Returns the number of readers.
    pub fn count(&self) -> usize {
        self.shared.lock().files.len()
    }
}

/// A reader's pin on a file and all later ones.
#[derive(Debug)]
pub struct Pin {
    pins: Pins,
    id: u64,
}

impl Pin {
    /// Releases the files before `file`.
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

/// Refuses new readers while it exists.
#[derive(Debug)]
pub struct ClosedPins(Pins);

impl Drop for ClosedPins {
    fn drop(&mut self) {
        self.0.shared.lock().is_closed = false;
    }
}
