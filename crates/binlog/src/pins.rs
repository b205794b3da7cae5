//! Which files somebody still reads: purge leaves them (I7).
//!
//! A reader pins its first file before it opens it, and moves on when it is done with it: so a file that is
//! being read is never purged. While the pins are closed nobody can become a reader: the files are removed as
//! a whole.

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
    is_closed: bool,
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
    /// the reader. None while the pins are closed.
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

    /// Nobody becomes a reader until the result is dropped. An error names the reader of the oldest file:
    /// there are readers.
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

    /// The oldest file that somebody needs.
    pub fn oldest(&self) -> Option<u32> {
        self.shared.lock().files.values().map(|place| place.file).min()
    }

    /// The reader that needs the oldest file.
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

/// Nobody reads while this is there.
#[derive(Debug)]
pub struct ClosedPins(Pins);

impl Drop for ClosedPins {
    fn drop(&mut self) {
        self.0.shared.lock().is_closed = false;
    }
}
