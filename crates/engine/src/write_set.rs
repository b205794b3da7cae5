//! Write sets: a transaction's private writes in key order, merged into its reads. Engines that do not update
//! in place share this module.
//!
//! The keys of all indexes are stored in one map as *full keys*: the index id, big-endian, then the key. The
//! map's order is therefore (index, key), and a full key is the key that a log-structured engine stores.
//!
//! # Large sets
//! Once the set holds [`MAP_ONLY_MAX`] writes, writes in ascending order are appended to the *run* of their
//! index ([`crate::run`]), which uses little more memory than their bytes. Every other write goes into the
//! map. An entry of the map overrides an entry of a run with the same key.
//!
//! # Savepoints
//! Once a savepoint was taken in a non-empty set, each write records an undo entry (the key and its previous
//! state in the set). Consecutive appends share one undo entry. A savepoint of the empty set needs no undo:
//! rolling back to it empties the set. A transaction of one statement therefore records nothing.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::{Bound, ControlFlow};

use cohort_base::IndexId;

use crate::run::{Run, Write};
use crate::traits::{Batch, Direction, EachWrite, EngineError, KeyRange, Savepoint};

/// A value, or `None` if the key is deleted.
type Slot = Option<Box<[u8]>>;

/// Initial capacity of a full key, enough for most keys.
const FULL_KEY_BYTES: usize = 64;
/// Number of map entries from which on ascending writes go into runs.
const MAP_ONLY_MAX: usize = 64;
/// Memory of a map entry in addition to its bytes: its two boxes in a partly filled node, and their
/// allocations.
const ENTRY_BYTES: usize = 96;
/// Memory of a write in a run in addition to its bytes.
const RUN_ENTRY_BYTES: usize = 12;
/// Memory of an undo entry, including its key.
const UNDO_BYTES: usize = 128;
/// A merged scan stops once it has appended this many bytes.
const SCANNED_BYTES_MAX: usize = 4 << 20;
/// Maximum number of deletions that a merged scan skips before it stops.
const PASSED_MAX: usize = 1 << 16;

/// Uncommitted writes of one transaction.
#[derive(Debug, Default)]
pub struct WriteSet {
    slots: BTreeMap<Box<[u8]>, Slot>,
    /// By index.
    runs: BTreeMap<IndexBytes, Run>,
    undo: Vec<Undo>,
    undo_recording: bool,
    /// Number of undo entries older than the newest savepoint. Appends must not extend these.
    undo_sealed: usize,
    /// Bytes of the keys and values in the map and the runs.
    bytes: usize,
}

type IndexBytes = [u8; INDEX_ID_BYTES];

/// Reverts writes.
#[derive(Debug)]
enum Undo {
    /// A write into the map: the key and its previous state in the map.
    Map(Box<[u8]>, Option<Slot>),
    /// The given number of appends to a run.
    Appended(IndexBytes, usize),
}

fn index_of(full_key: &[u8]) -> IndexBytes {
    *full_key.first_chunk().expect("a full key starts with its index")
}

/// Writes the index id followed by the key to `out`.
pub fn full_key(index: IndexId, key: &[u8], out: &mut Vec<u8>) {
    out.clear();
    // A buffer allocated for the first key then has capacity for most of the following ones.
    out.reserve((INDEX_ID_BYTES + key.len()).max(FULL_KEY_BYTES));
    out.extend_from_slice(&index.0.to_be_bytes());
    out.extend_from_slice(key);
}

/// Calls `look` with a temporary full key. Short keys are built on the stack.
#[inline]
pub fn with_full_key<R>(index: IndexId, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> R {
    let mut short = [0; FULL_KEY_BYTES];
    let len = INDEX_ID_BYTES + key.len();
    if len <= FULL_KEY_BYTES {
        short[..INDEX_ID_BYTES].copy_from_slice(&index.0.to_be_bytes());
        short[INDEX_ID_BYTES..len].copy_from_slice(key);
        return look(&short[..len]);
    }
    let mut full = Vec::new();
    full_key(index, key, &mut full);
    look(&full)
}

/// Returns the full keys that bound a range of an index: start inclusive, end exclusive.
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
    /// Returns whether the set holds no writes.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.runs.is_empty()
    }

    /// Returns the bytes of all keys and values. A key that is in the map and in a run counts twice.
    pub fn size_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the approximate memory use: keys and values, plus the overhead of maps and allocations.
    pub fn memory_bytes(&self) -> usize {
        let in_runs: usize = self.runs.values().map(Run::len).sum();
        let entries = self.slots.len() * ENTRY_BYTES + in_runs * RUN_ENTRY_BYTES;
        self.bytes + entries + self.undo.len() * UNDO_BYTES
    }

    /// Sets or deletes a full key.
    pub fn write(&mut self, full_key: &[u8], value: Option<&[u8]>) {
        let is_large = self.slots.len() >= MAP_ONLY_MAX || !self.runs.is_empty();
        if is_large && self.append(full_key, value) {
            return;
        }
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
            self.undo.push(Undo::Map(full_key.into(), old));
        }
    }

    /// Appends a write to the run of its index. Returns false if the key is not above all keys of the run, or
    /// if the map has the key.
    fn append(&mut self, full_key: &[u8], value: Option<&[u8]>) -> bool {
        let index = index_of(full_key);
        let is_behind = self.runs.get(&index).is_none_or(|run| run.is_behind(full_key));
        if !is_behind || self.slots.contains_key(full_key) {
            return false;
        }
        self.runs.entry(index).or_default().push(full_key, value);
        self.bytes += full_key.len() + value.map_or(0, <[u8]>::len);
        if self.undo_recording {
            match self.undo.get_mut(self.undo_sealed..).and_then(<[Undo]>::last_mut) {
                Some(Undo::Appended(of, count)) if *of == index => *count += 1,
                _ => self.undo.push(Undo::Appended(index, 1)),
            }
        }
        true
    }

    /// Returns the state of a full key: `None` if the set has no write of it, `Some(None)` if it is deleted,
    /// otherwise its value.
    pub fn get(&self, full_key: &[u8]) -> Option<Option<&[u8]>> {
        match self.slots.get(full_key) {
            Some(slot) => Some(slot.as_deref()),
            None if self.runs.is_empty() => None,
            None => self.runs.get(&index_of(full_key))?.find(full_key),
        }
    }

    /// Returns all writes in full-key order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let map = self.slots.iter().map(|(key, slot)| (&**key, slot.as_deref()));
        Overlaid::new(map, self.runs.values().flat_map(Run::all), |a, b| a < b)
    }

    /// Like [`WriteSet::iter`], with the index split off the key, for [`crate::EngineTrx::each_write`].
    pub fn each(&self, each: &mut EachWrite<'_>) -> ControlFlow<()> {
        self.iter().try_for_each(|(full_key, value)| {
            let index = IndexId(u32::from_be_bytes(index_of(full_key)));
            each(index, &full_key[INDEX_ID_BYTES..], value)
        })
    }

    /// Returns the number of writes. A key that is in the map and in a run counts twice.
    pub fn len(&self) -> usize {
        self.slots.len() + self.runs.values().map(Run::len).sum::<usize>()
    }

    /// Passes all writes to `each` in full-key order and frees them on the way. Stops at the first error. The
    /// set is empty afterwards in both cases.
    pub fn drain<E>(&mut self, each: &mut dyn FnMut(&[u8], Option<&[u8]>) -> Result<(), E>) -> Result<(), E> {
        let WriteSet { slots, runs, .. } = std::mem::take(self);
        let mut slots = slots.into_iter().peekable();
        for chunk in runs.into_values().flat_map(Run::into_chunks) {
            for (key, value) in chunk.iter() {
                while let Some((own, slot)) = slots.next_if(|(own, _)| **own < *key) {
                    each(&own, slot.as_deref())?;
                }
                match slots.next_if(|(own, _)| **own == *key) {
                    Some((own, slot)) => each(&own, slot.as_deref())?,
                    None => each(key, value)?,
                }
            }
        }
        slots.try_for_each(|(own, slot)| each(&own, slot.as_deref()))
    }

    /// Returns a savepoint of the current state.
    pub fn savepoint(&mut self) -> Savepoint {
        if self.is_empty() {
            return Savepoint(0);
        }
        self.undo_recording = true;
        self.undo_sealed = self.undo.len();
        Savepoint(self.undo.len() + 1)
    }

    /// Undoes all writes since the savepoint.
    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        let Some(undo_len) = savepoint.0.checked_sub(1) else {
            *self = WriteSet::default();
            return;
        };
        while self.undo.len() > undo_len {
            match self.undo.pop().expect("longer than undo_len") {
                Undo::Map(key, old) => self.restore(key, old),
                Undo::Appended(index, count) => self.take_back(index, count),
            }
        }
        self.undo_sealed = undo_len;
    }

    fn take_back(&mut self, index: IndexBytes, count: usize) {
        let run = self.runs.get_mut(&index).expect("a run with undo is there");
        for _ in 0..count {
            self.bytes -= run.pop();
        }
        if run.is_empty() {
            self.runs.remove(&index);
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

    /// Returns the writes of a range within one index.
    fn range<'s>(
        &'s self,
        (start, end): (&[u8], &[u8]),
        direction: Direction,
    ) -> Box<dyn Iterator<Item = Write<'s>> + 's> {
        if start >= end {
            return Box::new(std::iter::empty());
        }
        let bounds = (Bound::Included(start), Bound::Excluded(end));
        let map = self.slots.range::<[u8], _>(bounds).map(|(key, slot)| (&**key, slot.as_deref()));
        let run = match self.runs.is_empty() {
            true => None,
            false => self.runs.get(&index_of(start)).map(|run| run.range(start, end)),
        };
        match (run, direction) {
            (None, Direction::Forward) => Box::new(map),
            (None, Direction::Backward) => Box::new(map.rev()),
            (Some(run), Direction::Forward) => Box::new(Overlaid::new(map, run, |a, b| a < b)),
            (Some(run), Direction::Backward) => Box::new(Overlaid::new(map.rev(), run.rev(), |a, b| a > b)),
        }
    }

    /// Appends the entries of `range` that `base` yields, overlaid with this set, to `batch`. Stops after
    /// `limit` entries or [`SCANNED_BYTES_MAX`] bytes. `base` yields full keys of the range in the scan's
    /// direction. Returns true if there may be more. The batch then holds the position, as for
    /// [`crate::EngineTrx::scan`].
    pub fn merge_scan<'a>(
        &self,
        range: (&[u8], &[u8]),
        direction: Direction,
        limit: usize,
        base: &mut dyn BaseScan<'a>,
        batch: &mut Batch,
    ) -> Result<bool, EngineError> {
        let mut own = self.range(range, direction);
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
                (Some((key, value)), theirs)
                    if theirs.is_none_or(|(base_key, _)| !precedes(base_key, key)) =>
                {
                    let replaces = theirs.is_some_and(|(base_key, _)| base_key == key);
                    match value {
                        Some(value) => batch.push(&key[INDEX_ID_BYTES..], value),
                        None => passed += 1,
                    }
                    mine = own.next();
                    if replaces {
                        base.advance();
                    }
                    if passed == PASSED_MAX {
                        let is_forward = direction == Direction::Forward;
                        return stops(&[key, if is_forward { &[0][..] } else { &[] }].concat(), batch);
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

/// Returns whether a scan that stopped at `stop` has passed the key.
fn is_before_stop(key: &[u8], stop: &[u8], direction: Direction) -> bool {
    match direction {
        Direction::Forward => key < stop,
        Direction::Backward => key >= stop,
    }
}

/// Merge of two sources of writes in the same order. For equal keys, `over` takes precedence.
struct Overlaid<A: Iterator, B: Iterator> {
    over: Peekable<A>,
    under: Peekable<B>,
    precedes: fn(&[u8], &[u8]) -> bool,
}

impl<'s, A: Iterator<Item = Write<'s>>, B: Iterator<Item = Write<'s>>> Overlaid<A, B> {
    fn new(over: A, under: B, precedes: fn(&[u8], &[u8]) -> bool) -> Overlaid<A, B> {
        Overlaid { over: over.peekable(), under: under.peekable(), precedes }
    }
}

impl<'s, A: Iterator<Item = Write<'s>>, B: Iterator<Item = Write<'s>>> Iterator for Overlaid<A, B> {
    type Item = Write<'s>;

    fn next(&mut self) -> Option<Write<'s>> {
        let Some(&(over, _)) = self.over.peek() else { return self.under.next() };
        match self.under.peek() {
            Some(&(under, _)) if (self.precedes)(under, over) => self.under.next(),
            Some(&(under, _)) if under == over => {
                self.under.next();
                self.over.next()
            }
            _ => self.over.next(),
        }
    }
}

/// Length of the index id in a full key.
pub const INDEX_ID_BYTES: usize = 4;

/// Cursor over the engine's committed entries of a range, in the scan's direction.
pub trait BaseScan<'a> {
    /// Returns the current entry as full key and value, or `None` at the end of the range.
    fn current(&self) -> Result<Option<(&[u8], &[u8])>, EngineError>;
    /// Moves to the next entry.
    fn advance(&mut self);
    /// Returns the full key at which the scan stopped early ([`Batch::stop_at`]), or `None` at the end of the
    /// range. Called only if there is no current entry.
    fn stopped_at(&self) -> Option<&[u8]> {
        None
    }
}

#[cfg(test)]
mod tests;
