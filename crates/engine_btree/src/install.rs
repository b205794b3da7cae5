//! Installation: writes a transaction's changes into the leaves, and removes them again.
//!
//! # Steps of one write
//! 1. Latch the leaf that covers the key exclusively. Split it first if it lacks space.
//! 2. If the entry's newest version belongs to an aborted transaction, or to an earlier part of the same
//!    transaction (`trx.rs`), use the version before it as the current one.
//! 3. Write an overflow value to an extent.
//! 4. Add the current version to the transaction's undo, and its overflow value to the values to free after
//!    the commit.
//! 5. Write the new version with a reference to the undo, and list the page as changed.
//!
//! The versions are invisible until the transaction's record is committed. Callers hold the locks of all keys
//! from before the installation until the transaction is ordered or aborted. So no two undecided transactions
//! install over each other. A write that meets another transaction's undecided version is rejected: if that
//! transaction aborted, both versions would become live (`skipped`).
//!
//! # A key that a transaction writes in several parts
//! The version of the earlier part *ends* (`chain.rs`): it is no longer reachable, and only its own
//! transaction has seen it. Its undo record stays and has the same content as that of the later
//! version. When the transaction is aborted, the first of the two undo records that purge processes restores
//! the content from before both. For the second one the entry no longer belongs to the transaction, so purge
//! skips it. An overflow value of the earlier part is freed after an abort like any value that was written,
//! and after a commit like any value that was replaced.
//!
//! # On failure
//! The installation ends if a page cannot be read, a value cannot be written, or an unexpected version is
//! found. The caller aborts the record, and purge removes what was installed.

use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId};
use cohort_engine::{EngineError, INDEX_ID_BYTES};

use crate::frame::{Exclusive, Frame};
use crate::inner::Inner;
use crate::merge::is_small;
use crate::page::{Entry, INLINE_BYTES_MAX, Page, check_key};
use crate::space::Extent;
use crate::sync::Ordering;
use crate::tree::Tree;
use crate::trx_record::{OverflowValue, TrxRecord, TrxState};
use crate::undo::{Before, Link, UNDO_BYTES_MAX};
use crate::value;
use crate::version::Horizon;
use crate::version_ref::{Undo, Value, VersionRef};

/// Number of writes between two checks of the undo's memory.
const LOOK_EVERY: u32 = 32;

/// The leaf of the last key, kept for the next key.
#[derive(Default)]
pub struct Place {
    pub tree: Option<std::sync::Arc<Tree>>,
    pub leaf: Option<Exclusive>,
}

impl Place {
    /// Moves to a key's tree and its leaf, which is then latched.
    pub fn go_to(&mut self, inner: &Inner, index: IndexId, key: &[u8]) -> Result<(), EngineError> {
        if self.tree.as_ref().is_none_or(|tree| tree.index != index) {
            self.leaf = None;
            self.tree = Some(inner.tree_or_new(index));
        }
        if self.leaf.as_ref().is_some_and(|leaf| leaf.page().covers(key)) {
            return Ok(());
        }
        // Release the old leaf first: a thread never holds two leaves here.
        self.leaf = None;
        let tree = self.tree.as_ref().expect("set above");
        let leaf = tree.leaf_exclusive(&inner.context, key)?;
        debug_assert!(leaf.page().covers(key), "a write goes to a leaf where no reader looks for it");
        debug_assert_eq!(leaf.page().level(), 0, "a write goes to an inner node");
        self.leaf = Some(leaf);
        Ok(())
    }

    /// Releases the leaf and splits it.
    pub fn split(&mut self, inner: &Inner, key: &[u8], needed: usize) -> Result<(), EngineError> {
        self.leaf = None;
        inner.context.pool.evict_some();
        self.tree.as_ref().expect("a place that was gone to").split(&inner.context, key, needed)
    }
}

/// A write in the format of an entry.
#[derive(Clone, Copy)]
struct Write<'w> {
    index: IndexId,
    key: &'w [u8],
    /// `None` for a deletion.
    value: Option<&'w [u8]>,
    is_overflow: bool,
}

impl Write<'_> {
    fn entry(&self, version: VersionRef) -> Entry<'_> {
        Entry {
            is_deleted: self.value.is_none(),
            is_overflow: self.is_overflow,
            version: Some(version),
            value: self.value.unwrap_or(&[]),
        }
    }
}

/// Installation of one transaction, write by write.
pub struct Install<'i> {
    inner: &'i Inner,
    record: &'i TrxRecord,
    place: Place,
    /// Number of writes since the last check of the undo's memory.
    unlooked: u32,
}

impl Install<'_> {
    /// Releases the leaf before a long operation.
    pub fn pause(&mut self) {
        self.place.leaf = None;
    }

    /// Installs a write. Full keys must ascend. After an error the record must be aborted.
    pub fn write(&mut self, full_key: &[u8], value: Option<&[u8]>) -> Result<(), EngineError> {
        let (inner, record) = (self.inner, self.record);
        let (index, key) = split_key(full_key)?;
        self.unlooked += 1;
        if self.unlooked == LOOK_EVERY {
            self.unlooked = 0;
            // Yield: a large transaction would otherwise occupy its processor while small ones wait.
            self.pause();
            std::thread::yield_now();
            if record.undo_bytes() > inner.versions.trx_undo_bytes_max() {
                inner.versions.spill_installing(record)?;
            }
        }
        let kept = match value.filter(|value| value.len() > INLINE_BYTES_MAX) {
            Some(value) => {
                self.pause();
                let (name, extent) = value::write(&inner.store, index, value)?;
                let tree = inner.tree_or_new(index);
                tree.values.lock().insert(extent);
                record.add_new_value(OverflowValue { index, root: tree.root, extent });
                Some(name)
            }
            None => None,
        };
        let value = kept.as_ref().map(|name| name.as_slice()).or(value);
        let write = Write { index, key, value, is_overflow: kept.is_some() };
        while let Some(needed) = inner.install_one(&mut self.place, record, write)? {
            self.place.split(inner, key, needed)?;
        }
        Ok(())
    }
}

impl Inner {
    /// Starts to install the writes of a record.
    pub fn install<'i>(&'i self, record: &'i TrxRecord) -> Install<'i> {
        Install { inner: self, record, place: Place::default(), unlooked: 0 }
    }

    /// Installs one write. Returns `Some(n)` if the leaf needs `n` more bytes and must be split first.
    fn install_one(
        &self,
        place: &mut Place,
        record: &TrxRecord,
        write: Write<'_>,
    ) -> Result<Option<usize>, EngineError> {
        place.go_to(self, write.index, write.key)?;
        let root = place.tree.as_ref().expect("gone to").root;
        let frame = place.leaf.as_mut().expect("gone to");
        let page = frame.page();
        let found = page.find(write.key);
        let undone;
        let mut own = None;
        let present = match found.ok().map(|n| page.entry(n)) {
            None => Present { value: None, is_overflow: false, version: None },
            Some(entry) => match self.skipped(record, &entry)? {
                SkippedVersion::Nothing => Present::of_entry(&entry),
                SkippedVersion::Aborted(writer, place) => {
                    undone = writer.undo(place)?;
                    Present::of_undo(&undone)
                }
                SkippedVersion::Own(place) => {
                    undone = record.undo(place)?;
                    own = Some(OwnBefore {
                        place,
                        is_deleted: entry.is_deleted,
                        value: entry.is_overflow.then(|| value::extent_of(entry.value)),
                    });
                    Present::of_undo(&undone)
                }
            },
        };
        let is_there = own.as_ref().map_or(present.value.is_some(), |own| !own.is_deleted);
        if write.value.is_none() && !is_there {
            return Ok(None);
        }
        // The size of the reference does not depend on its value.
        let room_for = VersionRef { trx: record.number(), undo: 0 };
        let needed = page.entry_bytes(write.key, &write.entry(room_for));
        if !has_room(page, found, needed) {
            return Ok(Some(needed));
        }
        let before = Before {
            index: write.index,
            key: write.key,
            is_deletion: write.value.is_none(),
            existed: found.is_ok(),
            link: present
                .version
                .filter(|version| !self.versions.is_seen_by_all(version.trx))
                .map(Link::over),
            value: present.value,
            is_overflow: present.is_overflow,
        };
        let Some(version) = self.versions.push_undo(record, &before) else {
            return Err(EngineError::TooLarge { bytes_max: UNDO_BYTES_MAX });
        };
        let replaced = match &own {
            Some(own) => own.value,
            None => present.value.filter(|_| present.is_overflow).map(value::extent_of),
        };
        if let Some(extent) = replaced {
            record.add_old_value(OverflowValue { index: write.index, root, extent });
        }
        write_entry(frame, found, write.key, write.entry(version));
        debug_assert!(
            frame.page().find(write.key).is_ok_and(|n| frame.page().entry(n).version == Some(version)),
            "a write is not found, or refers to the undo of another"
        );
        if let Some(own) = own {
            record.end_version(own.place);
        }
        self.context.changes.list(frame);
        if found.is_err() {
            place.tree.as_ref().expect("gone to").entries.fetch_add(1, Ordering::Relaxed);
        }
        Ok(None)
    }

    /// Returns what a write skips in addition to the entry's newest version. Another transaction's undecided
    /// version is rejected: the locks of its writer are gone, and if the writer aborts, the undo of the next
    /// version would contain a value that never existed.
    fn skipped(&self, record: &TrxRecord, entry: &Entry<'_>) -> Result<SkippedVersion, EngineError> {
        let Some(version) = entry.version else { return Ok(SkippedVersion::Nothing) };
        if version.trx == record.number() {
            return Ok(SkippedVersion::Own(version.undo));
        }
        let Some(writer) = self.versions.unseen(Horizon::LATEST, version.trx) else {
            return Ok(SkippedVersion::Nothing);
        };
        if writer.state() == TrxState::Aborted {
            return Ok(SkippedVersion::Aborted(writer, version.undo));
        }
        let what = "a row is written while another transaction's write of it is undecided";
        Err(EngineError::Corrupt(what.to_owned()))
    }

    /// Replaces an aborted transaction's version of a key with the content from before its writes, if the
    /// entry still belongs to it. Returns true if the leaf has become small.
    pub fn restore(
        &self,
        record: &TrxRecord,
        tree: &Tree,
        key: &[u8],
        before: &Undo,
        oldest: CommitSeq,
    ) -> Result<bool, EngineError> {
        loop {
            let mut frame = tree.leaf_exclusive(&self.context, key)?;
            debug_assert_eq!(
                record.state(),
                TrxState::Aborted,
                "writes of an ordered transaction are undone (I6)"
            );
            let Ok(n) = frame.page().find(key) else { return Ok(false) };
            let version = frame.page().entry(n).version;
            if version.is_none_or(|version| version.trx != record.number()) {
                return Ok(false);
            }
            // If the previous content is a deletion that purge passes or has passed, only this call can
            // remove the entry.
            let is_gone = before.value.is_none() && self.versions.is_passed(oldest, before.version);
            let mut is_small = false;
            if before.existed && !is_gone {
                let entry = entry(before.value.as_ref(), before.version);
                let needed = frame.page().entry_bytes(key, &entry);
                if !has_room(frame.page(), Ok(n), needed) {
                    drop(frame);
                    tree.split(&self.context, key, needed)?;
                    continue;
                }
                write_entry(&mut frame, Ok(n), key, entry);
            } else {
                is_small = remove_entry(&mut frame, n);
                tree.entries.fetch_sub(1, Ordering::Relaxed);
            }
            self.context.changes.list(&mut frame);
            return Ok(is_small);
        }
    }

    /// Removes a deleted entry from its leaf if it is still this record's deletion. Returns true if the leaf
    /// has become small.
    pub fn remove_deleted(&self, record: &TrxRecord, tree: &Tree, key: &[u8]) -> Result<bool, EngineError> {
        let mut frame = tree.leaf_exclusive(&self.context, key)?;
        let Ok(n) = frame.page().find(key) else { return Ok(false) };
        let entry = frame.page().entry(n);
        if !entry.is_deleted || entry.version.is_none_or(|version| version.trx != record.number()) {
            return Ok(false);
        }
        Ok(self.remove(&mut frame, tree, n))
    }

    /// Removes an entry from its leaf. Returns true if the leaf has become small.
    pub fn remove(&self, frame: &mut Frame, tree: &Tree, n: usize) -> bool {
        let is_small = remove_entry(frame, n);
        self.context.changes.list(frame);
        tree.entries.fetch_sub(1, Ordering::Relaxed);
        is_small
    }
}

/// Removes an entry. Returns true if the page has just become small enough to be merged into a neighbour.
fn remove_entry(frame: &mut Frame, n: usize) -> bool {
    let was_small = is_small(frame.page());
    frame.page_mut().remove(n);
    frame.page().is_empty() || (!was_small && is_small(frame.page()))
}

/// Splits a full key into index and key.
pub fn split_key(full_key: &[u8]) -> Result<(IndexId, &[u8]), EngineError> {
    let (index, key) =
        full_key.split_first_chunk::<INDEX_ID_BYTES>().expect("a full key starts with its index");
    check_key(key)?;
    Ok((IndexId(u32::from_be_bytes(*index)), key))
}

/// A version that the next write skips.
enum SkippedVersion {
    /// None: the newest version is current.
    Nothing,
    /// The version was aborted. Contains its writer and the position of its undo.
    Aborted(Arc<TrxRecord>, u32),
    /// An earlier part of the same transaction wrote the version. Contains the position of its undo.
    Own(u32),
}

/// State that an earlier part of the transaction left.
struct OwnBefore {
    /// Position of its undo.
    place: u32,
    is_deleted: bool,
    /// Its overflow value.
    value: Option<Extent>,
}

/// The current content of an entry for the next writer.
struct Present<'p> {
    /// `None` if it is deleted or does not exist.
    value: Option<&'p [u8]>,
    is_overflow: bool,
    version: Option<VersionRef>,
}

impl Present<'_> {
    fn of_entry<'p>(entry: &Entry<'p>) -> Present<'p> {
        let value = (!entry.is_deleted).then_some(entry.value);
        Present { value, is_overflow: entry.is_overflow, version: entry.version }
    }

    fn of_undo(undo: &Undo) -> Present<'_> {
        let value = undo.value.as_ref();
        Present {
            value: value.map(|value| &*value.bytes),
            is_overflow: value.is_some_and(|value| value.is_overflow),
            version: undo.version,
        }
    }
}

/// Returns an entry with this value, or a deletion if there is none.
fn entry(value: Option<&Value>, version: Option<VersionRef>) -> Entry<'_> {
    match value {
        Some(value) => {
            Entry { is_deleted: false, is_overflow: value.is_overflow, version, value: &value.bytes }
        }
        None => Entry { is_deleted: true, is_overflow: false, version, value: &[] },
    }
}

/// Returns whether an entry of `needed` bytes fits in place of the one that was found.
pub fn has_room(page: &Page, found: Result<usize, usize>, needed: usize) -> bool {
    let replaced = found.map_or(0, |n| page.entry_bytes_at(n));
    page.free_bytes() + replaced >= needed || page.len() < crate::page::SPLIT_ENTRIES_MIN
}

/// Writes an entry. The page must have room for it.
pub fn write_entry(frame: &mut Frame, found: Result<usize, usize>, key: &[u8], entry: Entry<'_>) {
    let page = frame.page_mut();
    let is_put = match found {
        Ok(n) => page.replace(n, entry),
        Err(n) => page.insert(n, key, entry),
    };
    assert!(is_put, "room was looked for");
}
