//! State and undo of one transaction. `version.rs` describes its states.

use cohort_base::{CommitSeq, IndexId};
use cohort_engine::EngineError;

use crate::page::PageId;
use crate::space::Extent;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, RwLock};
use crate::undo::{Cursor, End, Link, UndoLog};
use crate::version_ref::{TrxNo, Undo, VersionRef};

/// State of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrxState {
    Installed,
    Committed(CommitSeq),
    Aborted,
}

/// Work of purge for one write.
#[derive(Debug)]
pub enum Cleanup {
    Nothing,
    /// The write is a deletion: purge removes the entry.
    Remove,
    /// The transaction was aborted: purge restores this content.
    Restore(Undo),
}

const INSTALLED: u64 = 0;

const ABORTED: u64 = u64::MAX;

/// State and undo of one transaction.
#[derive(Debug)]
pub struct TrxRecord {
    pub number: TrxNo,
    state: AtomicU64,
    /// Grows while the transaction is installed.
    pub undo: RwLock<UndoLog>,
    pub has_deletions: AtomicBool,
    /// Written by purge: no work is left for this record except to wait until none of its versions is live.
    is_pruned: AtomicBool,
    /// Written by the installing session, later taken by purge.
    pending_frees: Mutex<Option<Box<PendingFrees>>>,
}

/// An overflow value of a tree. If the tree was reloaded meanwhile, its successor may have another value at
/// the same place, so the index does not identify the owner. The root does: no two trees ever have the same
/// root.
#[derive(Clone, Copy, Debug)]
pub struct OverflowValue {
    pub index: IndexId,
    pub root: PageId,
    pub extent: Extent,
}

/// Overflow values that purge will free.
#[derive(Debug, Default)]
struct PendingFrees {
    /// Values that the transaction wrote. Freed after an abort.
    new_values: Vec<OverflowValue>,
    /// Values that the transaction replaced. Freed after a commit.
    old_values: Vec<OverflowValue>,
}

impl TrxRecord {
    /// Creates the record of a transaction that has written nothing.
    pub fn new(number: TrxNo) -> TrxRecord {
        TrxRecord {
            number,
            state: AtomicU64::new(INSTALLED),
            undo: RwLock::default(),
            has_deletions: AtomicBool::new(false),
            is_pruned: AtomicBool::new(false),
            pending_frees: Mutex::default(),
        }
    }

    /// Returns the transaction's number.
    pub fn number(&self) -> TrxNo {
        self.number
    }

    /// Returns the position in the segment's order.
    pub fn place(&self) -> u64 {
        self.number.place()
    }

    pub fn segment(&self) -> usize {
        self.number.segment()
    }

    /// Returns the transaction's state.
    pub fn state(&self) -> TrxState {
        match self.state.load(Ordering::Acquire) {
            INSTALLED => TrxState::Installed,
            ABORTED => TrxState::Aborted,
            seq => TrxState::Committed(CommitSeq(seq)),
        }
    }

    /// Makes all versions visible to `Latest` reads and to views from `seq` on. The caller holds the order
    /// stage.
    pub fn commit(&self, seq: CommitSeq) {
        debug_assert!(seq.0 != INSTALLED && seq.0 != ABORTED, "a CommitSeq that means another state");
        let before = self.state.swap(seq.0, Ordering::AcqRel);
        assert_eq!(before, INSTALLED, "a transaction commits once, and not after it was dropped");
    }

    /// Makes all readers skip the transaction's versions. Purge restores the previous content.
    pub fn abort(&self) {
        let before = self.state.swap(ABORTED, Ordering::AcqRel);
        assert_eq!(before, INSTALLED, "only what is not ordered is dropped (I6)");
    }

    /// Returns the content before the write at `place`.
    pub fn undo(&self, place: u32) -> Result<Undo, EngineError> {
        self.undo.read().undo_at(place)
    }

    /// Returns the link of the write at `place`: where the chain continues below it.
    pub fn link(&self, place: u32) -> Option<Link> {
        self.undo.read().link_at(place)
    }

    /// Returns the resolved links that skip no version, with the positions of their writes.
    pub fn whole_links(&self) -> Vec<(u32, Link)> {
        self.undo.read().whole_links()
    }

    /// Appends the targets of the unresolved links to `to`.
    pub fn list_unresolved(&self, to: &mut Vec<VersionRef>) {
        to.extend(self.undo.read().unsettled());
    }

    /// Resolves the links that [`TrxRecord::list_unresolved`] listed. Takes one element of `found` for each
    /// of them and no more.
    pub fn resolve(&self, found: &mut impl Iterator<Item = (CommitSeq, End)>) {
        self.undo.write().resolve(found);
    }

    /// Makes the chain of the write at `place` continue at `below`, skipping the versions between them.
    pub fn shorten(&self, place: u32, below: VersionRef, end: End) {
        self.undo.write().shorten(place, below, end);
    }

    /// Returns how a chain ends whose next version is the write at `place`.
    pub fn end_below(&self, place: u32) -> End {
        self.undo.read().end_below(place)
    }

    /// Records that the version of the write at `place` is no longer reachable. Purge calls it once for each
    /// version.
    pub fn end_version(&self, place: u32) {
        self.undo.write().end_version(place);
    }

    /// Returns whether pruning has finished with this record.
    pub fn is_pruned(&self) -> bool {
        self.is_pruned.load(Ordering::Relaxed)
    }

    /// Records that pruning has finished with this record.
    pub fn set_pruned(&self) {
        self.is_pruned.store(true, Ordering::Relaxed);
    }

    /// Returns whether the record was pruned and none of its versions is live.
    pub fn is_droppable(&self) -> bool {
        self.is_pruned() && self.undo.read().live() == 0
    }

    /// Returns the number of live versions.
    #[cfg(test)]
    pub fn live(&self) -> u64 {
        self.undo.read().live()
    }

    /// Returns whether the write at `place` replaced a value, or `None` if that requires a read of the undo
    /// file.
    pub fn has_value(&self, place: u32) -> Option<bool> {
        self.undo.read().has_value(place)
    }

    /// Returns whether `is_needed` holds for any of the replaced values. `is_needed` receives the CommitSeq
    /// at which the value was written.
    pub fn is_value_needed(&self, is_needed: &dyn Fn(CommitSeq) -> bool) -> bool {
        self.undo.read().is_any_needed(is_needed)
    }

    /// Returns whether part of the undo is in the undo file.
    pub fn has_spilled(&self) -> bool {
        self.undo.read().has_spilled()
    }

    /// Returns the memory that the undo uses.
    pub fn undo_bytes(&self) -> usize {
        self.undo.read().memory_bytes()
    }

    /// Returns whether any of the writes is a deletion.
    pub fn has_deletions(&self) -> bool {
        self.has_deletions.load(Ordering::Relaxed)
    }

    /// Copies the key of the next write to `key` and advances the cursor. Returns the write's index, and the
    /// work that purge has to do for it once every view has passed the transaction.
    pub fn next_write(
        &self,
        cursor: &mut Cursor,
        key: &mut Vec<u8>,
    ) -> Result<Option<(IndexId, Cleanup)>, EngineError> {
        let is_aborted = self.state() == TrxState::Aborted;
        let undo = self.undo.read();
        let Some(before) = undo.next(cursor)? else { return Ok(None) };
        key.clear();
        key.extend_from_slice(before.key);
        let cleanup = match before.is_deletion {
            _ if is_aborted => Cleanup::Restore(before.to_undo()),
            true => Cleanup::Remove,
            false => Cleanup::Nothing,
        };
        Ok(Some((before.index, cleanup)))
    }

    /// Adds an overflow value that the transaction wrote. It is freed after an abort.
    pub fn add_new_value(&self, value: OverflowValue) {
        self.pending_frees.lock().get_or_insert_default().new_values.push(value);
    }

    /// Adds an overflow value that the transaction replaced. It is freed after the commit.
    pub fn add_old_value(&self, value: OverflowValue) {
        self.pending_frees.lock().get_or_insert_default().old_values.push(value);
    }

    /// Takes the overflow values that the transaction wrote.
    pub fn take_new_values(&self) -> Vec<OverflowValue> {
        self.pending_frees
            .lock()
            .as_mut()
            .map(|found| std::mem::take(&mut found.new_values))
            .unwrap_or_default()
    }

    /// Takes the overflow values that the transaction replaced.
    pub fn take_old_values(&self) -> Vec<OverflowValue> {
        self.pending_frees
            .lock()
            .as_mut()
            .map(|found| std::mem::take(&mut found.old_values))
            .unwrap_or_default()
    }
}
