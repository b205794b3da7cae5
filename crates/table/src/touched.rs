//! [`TouchedRows`]: the rows that writers touch while an index is built beside them.
//!
//! # Rules
//! - It is put to its table while the table's name is held exclusively: every transaction that writes the
//!   table later finds it, and none that wrote before is under way.
//! - A writer adds the clustered key of a row under the row's lock, before it writes the row. So the build,
//!   which takes a key out and then gets that lock, finds what the writer left, or the key comes in again.
//! - A write that is undone leaves its key behind: the row is looked at for nothing.
//! - Keys beyond `bytes_max` are not kept. The build fails then, the writers do not notice.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};

/// Bytes that a key takes beside its own.
const ENTRY_BYTES: u64 = 48;

/// Where the writers of a table look whether an index is built beside them.
#[derive(Debug, Default)]
pub struct TouchedCell {
    /// Almost always false, so that statements share no lock.
    is_set: AtomicBool,
    rows: RwLock<Option<Arc<TouchedRows>>>,
}

impl TouchedCell {
    /// What was set. The lock of the table's name orders both.
    #[inline]
    pub fn get(&self) -> Option<Arc<TouchedRows>> {
        if self.is_set.load(Ordering::Acquire) { self.rows.read().clone() } else { None }
    }

    pub fn set(&self, rows: Option<Arc<TouchedRows>>) {
        let is_set = rows.is_some();
        *self.rows.write() = rows;
        self.is_set.store(is_set, Ordering::Release);
    }
}

/// Clustered keys, each once.
#[derive(Debug)]
pub struct TouchedRows {
    keys: Mutex<Keys>,
    bytes_max: u64,
}

#[derive(Debug, Default)]
struct Keys {
    set: HashSet<Vec<u8>, ahash::RandomState>,
    bytes: u64,
    overflowed: bool,
}

impl TouchedRows {
    /// Keeps keys of so many bytes.
    pub fn new(bytes_max: u64) -> TouchedRows {
        TouchedRows { keys: Mutex::default(), bytes_max }
    }

    /// A row is about to change.
    pub fn add(&self, key: &[u8]) {
        let mut keys = self.keys.lock();
        if keys.overflowed || keys.set.contains(key) {
            return;
        }
        keys.bytes += key.len() as u64 + ENTRY_BYTES;
        if keys.bytes > self.bytes_max {
            *keys = Keys { overflowed: true, ..Keys::default() };
            return;
        }
        keys.set.insert(key.to_vec());
    }

    /// Takes out what has come in; None if there was more than is kept.
    pub fn take(&self) -> Option<Vec<Vec<u8>>> {
        let mut keys = self.keys.lock();
        if keys.overflowed {
            return None;
        }
        keys.bytes = 0;
        Some(std::mem::take(&mut keys.set).into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_out_once_for_all_times_it_came_in() {
        let touched = TouchedRows::new(1000);
        [b"a", b"b", b"a"].iter().for_each(|key| touched.add(*key));
        let mut keys = touched.take().expect("no more than are kept");
        keys.sort();
        assert_eq!(keys, [b"a".to_vec(), b"b".to_vec()]);
        touched.add(b"a");
        assert_eq!(touched.take(), Some(vec![b"a".to_vec()]));
        assert_eq!(touched.take(), Some(Vec::new()));
    }

    #[test]
    fn more_than_is_kept_is_told() {
        let touched = TouchedRows::new(3 * (ENTRY_BYTES + 1));
        (0..3_u8).for_each(|n| touched.add(&[n]));
        assert_eq!(touched.take().map(|keys| keys.len()), Some(3));
        (0..4_u8).for_each(|n| touched.add(&[n]));
        assert_eq!(touched.take(), None);
        touched.add(b"x");
        assert_eq!(touched.take(), None, "what is missing does not come back");
    }
}
