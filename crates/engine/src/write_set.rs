//! A transaction's private writes, in key order, merged into its reads. Engines that do not update in place
//! share it.
//!
//! Keys of all key spaces lie in one map as *full keys*: the index id, big-endian, then the key. So the map's
//! order is (index, key) and a full key is what a log-structured engine stores.
//!
//! # Savepoints
//! An undo entry (key and what the set held for it before) is recorded per write once a savepoint was taken
//! in a non-empty set. A savepoint of the empty set needs none: rolling back to it empties the set. So the
//! usual transaction of one statement records nothing.

use std::collections::BTreeMap;
use std::ops::Bound;

use cohort_base::IndexId;

use crate::traits::{Batch, Direction, EngineError, KeyRange, Savepoint};

/// A value, or the mark that the key is deleted.
type Slot = Option<Box<[u8]>>;

/// What an entry takes besides its bytes: its two boxes in a node that is not full, and their allocations.
const ENTRY_BYTES: usize = 96;
/// The same of an undo entry, with its key.
const UNDO_BYTES: usize = 128;
/// A merged scan ends early when it has appended so many bytes.
const SCANNED_BYTES_MAX: usize = 4 << 20;
/// Deletions that a merged scan passes over before it stops.
const PASSED_MAX: usize = 1 << 16;

/// Uncommitted writes of one transaction.
#[derive(Debug, Default)]
pub struct WriteSet {
    slots: BTreeMap<Box<[u8]>, Slot>,
    undo: Vec<(Box<[u8]>, Option<Slot>)>,
    undo_recording: bool,
    bytes: usize,
}

/// Writes the index id before the key.
pub fn full_key(index: IndexId, key: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.reserve(INDEX_ID_BYTES + key.len());
    out.extend_from_slice(&index.0.to_be_bytes());
    out.extend_from_slice(key);
}

/// The full keys of a range within a key space: start inclusive, end exclusive.
pub fn full_range(index: IndexId, range: &KeyRange) -> (Vec<u8>, Vec<u8>) {
    let (mut start, mut end) = (Vec::new(), Vec::new());
    full_key(index, range.start.as_deref().unwrap_or(&[]), &mut start);
    match &range.end {
        Some(key) => full_key(index, key, &mut end),
        None => full_key(IndexId(index.0 + 1), &[], &mut end),
    }
    (start, end)
}

impl WriteSet {
    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Bytes of all keys and values.
    pub fn size_bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes in memory, roughly: those of keys and values, and what maps and allocations add to an entry.
    pub fn memory_bytes(&self) -> usize {
        self.bytes + self.slots.len() * ENTRY_BYTES + self.undo.len() * UNDO_BYTES
    }

    /// Sets or deletes a full key.
    pub fn write(&mut self, full_key: &[u8], value: Option<&[u8]>) {
        let slot: Slot = value.map(Into::into);
        let value_len = value.map_or(0, <[u8]>::len);
        let old = match self.slots.get_mut(full_key) {
            Some(place) => {
                self.bytes += value_len;
                let old = std::mem::replace(place, slot);
                self.bytes -= old.as_ref().map_or(0, |v| v.len());
                Some(old)
            }
            None => {
                self.bytes += full_key.len() + value_len;
                self.slots.insert(full_key.into(), slot);
                None
            }
        };
        if self.undo_recording {
            self.undo.push((full_key.into(), old));
        }
    }

    /// What the set knows of a full key: nothing, deleted, or its value.
    pub fn get(&self, full_key: &[u8]) -> Option<Option<&[u8]>> {
        self.slots.get(full_key).map(|slot| slot.as_deref())
    }

    /// All writes in full-key order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.slots.iter().map(|(key, slot)| (&**key, slot.as_deref()))
    }

    /// Number of writes.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// All writes in full-key order, each freed when the next one is taken.
    pub fn drain(&mut self) -> impl Iterator<Item = (Box<[u8]>, Option<Box<[u8]>>)> + use<> {
        std::mem::take(self).slots.into_iter()
    }

    /// The present place.
    pub fn savepoint(&mut self) -> Savepoint {
        if self.slots.is_empty() {
            return Savepoint(0);
        }
        self.undo_recording = true;
        Savepoint(self.undo.len() + 1)
    }

    /// Undoes all writes since the savepoint.
    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        let Some(undo_len) = savepoint.0.checked_sub(1) else {
            *self = WriteSet::default();
            return;
        };
        while self.undo.len() > undo_len {
            let (key, old) = self.undo.pop().expect("longer than undo_len");
            self.restore(key, old);
        }
    }

    fn restore(&mut self, key: Box<[u8]>, old: Option<Slot>) {
        let len = |slot: &Slot| slot.as_ref().map_or(0, |v| v.len());
        let now = self.slots.get_mut(&key).expect("a key with undo is in the set");
        self.bytes -= len(now);
        match old {
            Some(slot) => {
                self.bytes += len(&slot);
                *now = slot;
            }
            None => {
                self.bytes -= key.len();
                self.slots.remove(&key);
            }
        }
    }

    /// Appends up to `limit` entries of `range` to `batch`, and none beyond [`SCANNED_BYTES_MAX`]: what
    /// `base` yields, overlaid with this set. `base` yields full keys of the range in the scan's
    /// direction. True if there may be more: the batch says where, as [`crate::EngineTrx::scan`] does.
    pub fn merge_scan<'a>(
        &self,
        range: (&[u8], &[u8]),
        direction: Direction,
        limit: usize,
        base: &mut dyn BaseScan<'a>,
        batch: &mut Batch,
    ) -> Result<bool, EngineError> {
        let bounds = (Bound::Included(range.0), Bound::Excluded(range.1));
        let mut own: Box<dyn Iterator<Item = (&Box<[u8]>, &Slot)>> = match direction {
            _ if range.0 >= range.1 => Box::new(std::iter::empty()),
            Direction::Forward => Box::new(self.slots.range::<[u8], _>(bounds)),
            Direction::Backward => Box::new(self.slots.range::<[u8], _>(bounds).rev()),
        };
        let precedes = |a: &[u8], b: &[u8]| match direction {
            Direction::Forward => a < b,
            Direction::Backward => a > b,
        };
        batch.begin();
        let before = batch.len();
        let (full, full_bytes) = (before + limit, batch.size_bytes() + SCANNED_BYTES_MAX);
        let stops = |key: &[u8], batch: &mut Batch| {
            if batch.len() == before {
                batch.stop_at(&key[INDEX_ID_BYTES..]);
            }
            Ok(true)
        };
        let mut passed = 0;
        let mut mine = own.next();
        while batch.len() < full && batch.size_bytes() < full_bytes {
            let theirs = base.current()?;
            if theirs.is_none()
                && let Some(stop) = base.stopped_at()
                && mine.is_none_or(|(key, _)| !is_before_stop(key, stop, direction))
            {
                return stops(stop, batch);
            }
            match (mine, theirs) {
                (None, None) => return Ok(false),
                (Some((key, slot)), theirs)
                    if theirs.is_none_or(|(base_key, _)| !precedes(base_key, key)) =>
                {
                    let replaces = theirs.is_some_and(|(base_key, _)| base_key == &**key);
                    match slot {
                        Some(value) => batch.push(&key[INDEX_ID_BYTES..], value),
                        None => passed += 1,
                    }
                    mine = own.next();
                    if replaces {
                        base.advance();
                    }
                    if passed == PASSED_MAX {
                        let behind = direction == Direction::Forward;
                        return stops(&[&**key, if behind { &[0][..] } else { &[] }].concat(), batch);
                    }
                }
                (_, Some((key, value))) => {
                    batch.push(&key[INDEX_ID_BYTES..], value);
                    base.advance();
                }
                (Some(_), None) => unreachable!("taken by the second arm"),
            }
        }
        Ok(mine.is_some() || base.current()?.is_some() || base.stopped_at().is_some())
    }
}

/// Whether a scan that stopped at `stop` has passed the key.
fn is_before_stop(key: &[u8], stop: &[u8], direction: Direction) -> bool {
    match direction {
        Direction::Forward => key < stop,
        Direction::Backward => key >= stop,
    }
}

/// Length of the index id in a full key.
pub const INDEX_ID_BYTES: usize = 4;

/// The engine's committed entries of a range, in the scan's direction.
pub trait BaseScan<'a> {
    /// The entry the scan stands at, as full key and value; `None` at the end of the range.
    fn current(&self) -> Result<Option<(&[u8], &[u8])>, EngineError>;
    /// Goes to the next entry.
    fn advance(&mut self);
    /// Without a current entry: the full key at which it stopped, as [`Batch::stop_at`] says; `None` at the
    /// end of the range.
    fn stopped_at(&self) -> Option<&[u8]> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u8) -> Vec<u8> {
        let mut out = Vec::new();
        full_key(IndexId(16), &[n], &mut out);
        out
    }

    #[test]
    fn rollback_restores_values_deletes_and_sizes() {
        let mut set = WriteSet::default();
        let empty = set.savepoint();
        set.write(&key(1), Some(b"one"));
        set.write(&key(2), None);
        let before = set.size_bytes();
        let second = set.savepoint();
        set.write(&key(1), None);
        set.write(&key(2), Some(b"two"));
        let third = set.savepoint();
        set.write(&key(3), Some(b"three"));
        set.write(&key(3), Some(b"3"));
        set.rollback_to(third);
        assert_eq!(set.get(&key(3)), None);
        assert_eq!(set.get(&key(2)), Some(Some(&b"two"[..])));
        set.rollback_to(second);
        assert_eq!(set.get(&key(1)), Some(Some(&b"one"[..])));
        assert_eq!(set.get(&key(2)), Some(None));
        assert_eq!(set.size_bytes(), before);
        set.rollback_to(empty);
        assert!(set.is_empty() && set.size_bytes() == 0);
    }

    /// A base of nothing but entries that the reader does not see: it stops now and then.
    struct Unseen {
        keys: Vec<u8>,
        stop: Option<Vec<u8>>,
    }

    impl BaseScan<'_> for Unseen {
        fn current(&self) -> Result<Option<(&[u8], &[u8])>, EngineError> {
            Ok(None)
        }

        fn advance(&mut self) {}

        fn stopped_at(&self) -> Option<&[u8]> {
            self.stop.as_deref()
        }
    }

    #[test]
    fn a_merged_scan_stops_where_its_base_does() {
        let mut set = WriteSet::default();
        [1, 5, 9].into_iter().for_each(|n| set.write(&key(n), Some(b"own")));
        for direction in [Direction::Forward, Direction::Backward] {
            let mut found = Vec::new();
            let mut range = KeyRange::default();
            let mut stops = match direction {
                Direction::Forward => vec![8, 6, 5, 2],
                Direction::Backward => vec![2, 4, 5, 8],
            };
            loop {
                let mut base = Unseen { keys: stops.clone(), stop: stops.pop().map(key) };
                let (start, end) = full_range(IndexId(16), &range);
                let mut batch = Batch::default();
                let more =
                    set.merge_scan((&start, &end), direction, 1, &mut base, &mut batch).expect("scans");
                found.extend(batch.iter().map(|(key, _)| key[0]));
                if !more {
                    break;
                }
                batch.cut(&mut range, direction);
                assert!(base.keys.len() < 5);
            }
            if direction == Direction::Backward {
                found.reverse();
            }
            assert_eq!(found, [1, 5, 9], "{direction:?}");
        }
    }

    #[test]
    fn a_scan_over_own_deletions_comes_back() {
        let mut set = WriteSet::default();
        let key = |n: u32| {
            let mut out = Vec::new();
            full_key(IndexId(16), &n.to_be_bytes(), &mut out);
            out
        };
        let count = 3 * PASSED_MAX as u32;
        (0..count).for_each(|n| set.write(&key(n), (n == count / 2).then_some(b"left")));
        for direction in [Direction::Forward, Direction::Backward] {
            let (mut range, mut calls, mut found) = (KeyRange::default(), 0, 0);
            loop {
                let mut base = Unseen { keys: Vec::new(), stop: None };
                let (start, end) = full_range(IndexId(16), &range);
                let mut batch = Batch::default();
                let more =
                    set.merge_scan((&start, &end), direction, 9, &mut base, &mut batch).expect("scans");
                (calls, found) = (calls + 1, found + batch.len());
                if !more {
                    break;
                }
                batch.cut(&mut range, direction);
            }
            assert_eq!(found, 1, "{direction:?}");
            assert!((3..8).contains(&calls), "{calls} calls");
        }
    }

    #[test]
    fn a_transaction_of_one_statement_records_no_undo() {
        let mut set = WriteSet::default();
        let start = set.savepoint();
        set.write(&key(1), Some(b"one"));
        assert!(set.undo.is_empty());
        set.rollback_to(start);
        assert!(set.is_empty());
    }
}
