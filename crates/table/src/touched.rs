//! [`TouchedRows`]: the rows that writers touch while an index is built online.
//!
//! # Rules
//! - The list is attached to the table under the exclusive metadata lock: every transaction that writes the
//!   table later finds it, and none that wrote before is still running.
//! - A writer adds a row's clustered key under the row's lock, before it writes the row. The build takes a
//!   key out and then acquires that lock. So it either sees what the writer left, or the key is added again.
//! - A write that is undone leaves its key in the list: the row is examined in vain.
//! - If the list exceeds `bytes_max`, further keys are dropped and the build fails; writers are not affected.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};

/// Memory of a key in addition to its bytes.
const ENTRY_BYTES: u64 = 48;

/// The place where writers of a table check for an online index build.
#[derive(Debug, Default)]
pub struct TouchedCell {
    /// Almost always false, so that statements share no lock.
    is_set: AtomicBool,
    rows: RwLock<Option<Arc<TouchedRows>>>,
}

impl TouchedCell {
    /// Returns the list, if one is set. The metadata lock orders `set` and `get`.
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

/// Distinct clustered keys.
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
    /// Creates a list with a memory limit.
    pub fn new(bytes_max: u64) -> TouchedRows {
        TouchedRows { keys: Mutex::default(), bytes_max }
    }

    /// Records that a row is about to change.
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

    /// Takes all keys. Returns `None` if the limit was exceeded.
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
    fn an_overflow_of_the_list_is_reported() {
        let touched = TouchedRows::new(3 * (ENTRY_BYTES + 1));
        (0..3_u8).for_each(|n| touched.add(&[n]));
        assert_eq!(touched.take().map(|keys| keys.len()), Some(3));
        (0..4_u8).for_each(|n| touched.add(&[n]));
        assert_eq!(touched.take(), None);
        touched.add(b"x");
        assert_eq!(touched.take(), None, "what is missing does not come back");
    }
}
