//! Row versions: the transaction that wrote an entry, and the entry's previous content.
//!
//! # Concepts
//! - **Transaction record** ([`TrxRecord`]): the state and the undo of a transaction that has installed
//!   writes (`install.rs`). [`TrxRecord::commit`] makes all its versions visible with one store into the
//!   state.
//! - **Version reference** ([`VersionRef`]): stored in an entry. It names the transaction that wrote the
//!   entry, and the position in that transaction's undo of the content that the write replaced.
//! - **Chain** (`chain.rs`): the versions of one entry, newest first. A version is *live* while its entry's
//!   chain leads to it.
//! - **Rollback segment** (`segment.rs`): numbers transactions without gaps and holds their records. There
//!   are several, so that installing transactions do not contend for one lock.
//! - **Purge** passes a record (removes it) once no reader needs it: the transaction was committed and every
//!   open view sees it, or it was aborted and its entries are restored. Purge skips undecided transactions
//!   and stops at the first committed one that some view does not see.
//! - **Sweeping** (`sweep.rs`) takes over while an old view stops purge. It examines the later transactions,
//!   frees undo that no view needs, and drops records that have no live version.
//! - **Purge low-water mark** (`watermarks`) of a segment: the number of the first record that remains.
//!   Records below it were passed or dropped, and numbers are never reused. So an entry that refers to a
//!   number below the mark was written by a transaction that every view sees.
//! - **Commit low-water mark** (`ordered`) of a segment: a number and a CommitSeq. Every record below the
//!   number that still exists was committed at this CommitSeq or earlier. A reader whose view includes the
//!   CommitSeq therefore sees these writes, and need not look up their records. Sweeping raises this mark
//!   while the purge mark stands still. It stops at the first record that is undecided, aborted, or committed
//!   later than the CommitSeq.
//!
//! # States of a transaction record
//! ```text
//!            commit(seq), from the engine's `commit_ordered`
//! installed ------------------------------------> committed(seq)
//!     |                                              |    \-- sweeping, once no version is live --> dropped
//!     |                                              \-- purge, once all views see `seq` --> passed
//!     \-- abort(), when the installation is dropped --> aborted
//!                                                    \-- purge, once its entries are restored --> passed
//! ```
//! The record is removed from its segment in the states *passed* and *dropped*. The segment remembers the
//! difference until its purge mark is above the number.
//!
//! # Invariants
//! - A reader resolves a reference while it holds the latch of the entry's page. Purge restores an aborted
//!   entry under the same latch, and passes the record afterwards. So no entry refers to an aborted
//!   transaction that was passed.
//! - An aborted version has no successor: a writer that finds one in the entry replaces it, and stores the
//!   version before it as the predecessor of the new one.
//! - The content that a view needs is in the undo of the write that replaced it. The view does not see that
//!   write, so purge does not pass its record. Sweeping does not drop the record, because the version is
//!   live.
//! - Along a chain, from the oldest version to the newest, CommitSeqs never decrease. Only the newest version
//!   can be undecided or aborted. So a view that does not see a version sees none of the newer ones.
//!
//! # Memory
//! Undo beyond the limit is spilled to the undo file (`spill.rs`). The session that installs a transaction
//! spills the transaction's filled chunks. Purge spills the records that wait for old views. Sweeping frees
//! undo that no view needs, without a limit being reached.
//!
//! Transaction records and the links between versions (`chain.rs`) stay in memory and do not count towards
//! the limit. While one view is held open, the records that remain are those of the first and the last
//! transaction that wrote each row since. The transactions between them need one word for each 64 of them
//! (`segment.rs`).

use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId};
use cohort_engine::EngineError;

use crate::page::PageId;
use crate::segment::{Found, Segment};
use crate::space::Extent;
use crate::spill::UndoFile;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, RwLock};
use crate::undo::{Before, Cursor, End, Grows, Link, UndoLog};
use crate::views::Views;

/// Maximum number of rollback segments, limited by the bits of a transaction number.
pub const SEGMENTS_MAX: usize = 128;
const SEGMENT_SHIFT: u32 = 56;
const PLACE_MASK: u64 = (1 << SEGMENT_SHIFT) - 1;
/// Maximum number of records that are looked up under one lock of their segment.
const FOUND_AT_ONCE_MAX: usize = 16;
/// Records are gathered up to this size for one extent of the undo file.
const SPILL_BYTES: usize = 1 << 20;

/// A transaction number: the segment in the top byte, the position in the segment's order in the other bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrxNo(pub u64);

impl TrxNo {
    fn segment(self) -> usize {
        (self.0 >> SEGMENT_SHIFT) as usize
    }

    fn place(self) -> u64 {
        self.0 & PLACE_MASK
    }
}

/// A reference in an entry to the transaction that wrote it and to the predecessor in that transaction's
/// undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRef {
    pub trx: TrxNo,
    pub undo: u32,
}

/// The version of an entry that a reader sees.
#[derive(Debug)]
pub enum Shown {
    /// The current content of the entry.
    Entry,
    /// An earlier content.
    Older(Undo),
}

/// A value in the format of entries and undo records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    pub is_overflow: bool,
    pub bytes: Box<[u8]>,
}

/// The content of an entry before a write.
#[derive(Clone, Debug)]
pub struct Undo {
    /// `None` if the entry was deleted or did not exist.
    pub value: Option<Value>,
    /// An entry existed, possibly with a delete mark.
    pub existed: bool,
    /// The writer of that content. `None` if all views see it.
    pub version: Option<VersionRef>,
}

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
    number: TrxNo,
    state: AtomicU64,
    /// Grows while the transaction is installed.
    undo: RwLock<UndoLog>,
    has_deletions: AtomicBool,
    /// Written by purge: no work is left for this record except to wait until none of its versions is live.
    is_swept: AtomicBool,
    /// Written by the installing session, later taken by purge.
    leftovers: Mutex<Option<Box<PendingFrees>>>,
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
            is_swept: AtomicBool::new(false),
            leftovers: Mutex::default(),
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

    fn segment(&self) -> usize {
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
    pub fn list_unsettled(&self, to: &mut Vec<VersionRef>) {
        to.extend(self.undo.read().unsettled());
    }

    /// Resolves the links that [`TrxRecord::list_unsettled`] listed. Takes one element of `found` for each of
    /// them and no more.
    pub fn settle(&self, found: &mut impl Iterator<Item = (CommitSeq, End)>) {
        self.undo.write().settle(found);
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

    /// Returns whether sweeping has finished with this record.
    pub fn is_swept(&self) -> bool {
        self.is_swept.load(Ordering::Relaxed)
    }

    /// Records that sweeping has finished with this record.
    pub fn set_swept(&self) {
        self.is_swept.store(true, Ordering::Relaxed);
    }

    /// Returns whether the record was swept and none of its versions is live.
    pub fn is_droppable(&self) -> bool {
        self.is_swept() && self.undo.read().live() == 0
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
        self.leftovers.lock().get_or_insert_default().new_values.push(value);
    }

    /// Adds an overflow value that the transaction replaced. It is freed after the commit.
    pub fn add_old_value(&self, value: OverflowValue) {
        self.leftovers.lock().get_or_insert_default().old_values.push(value);
    }

    /// Takes the overflow values that the transaction wrote.
    pub fn take_new_values(&self) -> Vec<OverflowValue> {
        self.leftovers.lock().as_mut().map(|found| std::mem::take(&mut found.new_values)).unwrap_or_default()
    }

    /// Takes the overflow values that the transaction replaced.
    pub fn take_old_values(&self) -> Vec<OverflowValue> {
        self.leftovers.lock().as_mut().map(|found| std::mem::take(&mut found.old_values)).unwrap_or_default()
    }
}

/// The versions that a reader sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// Sees all transactions up to this one.
    upto: CommitSeq,
    /// Sees the writes of this transaction, too: the reader's own.
    own: TrxNo,
}

/// A number that no transaction has.
const NO_TRX: TrxNo = TrxNo(u64::MAX);

impl Horizon {
    /// Sees all ordered transactions.
    pub const LATEST: Horizon = Horizon { upto: CommitSeq(u64::MAX), own: NO_TRX };

    /// Returns the horizon of a view.
    pub fn at(view: CommitSeq) -> Horizon {
        Horizon { upto: view, own: NO_TRX }
    }

    /// Returns this horizon for a transaction that has installed writes, which it also sees.
    pub fn with_own(self, own: TrxNo) -> Horizon {
        Horizon { own, ..self }
    }

    /// Returns whether the horizon includes all ordered transactions.
    pub fn is_latest(self) -> bool {
        self.upto == Horizon::LATEST.upto
    }

    /// Returns whether the horizon includes transactions that were ordered at `seq`.
    #[inline]
    pub fn sees(self, seq: CommitSeq) -> bool {
        seq <= self.upto
    }

    /// Returns whether the horizon includes the writes of this transaction.
    pub fn sees_record(self, record: &TrxRecord) -> bool {
        match record.state() {
            TrxState::Committed(seq) => self.sees(seq),
            TrxState::Installed => record.number == self.own,
            TrxState::Aborted => false,
        }
    }
}

/// Result of following a link of a chain.
pub enum Below {
    There(Arc<TrxRecord>),
    /// Purge has passed the record, or the record was dropped some time ago.
    Gone,
    /// The record was dropped. The chain has been changed meanwhile and no longer leads to it.
    Dropped,
}

/// The commit low-water mark of a segment.
#[derive(Debug)]
struct OrderedMark {
    place: AtomicU64,
    /// Written before `place`, so that a reader that reads `place` first never gets an older `seq`.
    seq: AtomicU64,
}

impl OrderedMark {
    fn new() -> OrderedMark {
        OrderedMark { place: AtomicU64::new(0), seq: AtomicU64::new(0) }
    }

    /// Returns whether the mark proves that the horizon includes the writes of the transaction at `place`.
    fn is_seen(&self, horizon: Horizon, place: u64) -> bool {
        place < self.place.load(Ordering::Acquire)
            && horizon.sees(CommitSeq(self.seq.load(Ordering::Acquire)))
    }

    fn raise(&self, place: u64, seq: CommitSeq) {
        self.seq.fetch_max(seq.0, Ordering::AcqRel);
        self.place.fetch_max(place, Ordering::AcqRel);
    }
}

/// All transaction records of an engine.
#[derive(Debug)]
pub struct Versions {
    segments: Box<[RwLock<Segment>]>,
    /// Copies of the segments' watermarks for lock-free reads. They may lag.
    watermarks: Box<[AtomicU64]>,
    /// The segments' commit low-water marks.
    ordered: Box<[OrderedMark]>,
    /// Number of segments that new transactions use: `innodb_rollback_segments`.
    in_use: AtomicUsize,
    next: AtomicUsize,
    /// Memory that undo uses, and its limit.
    undo_bytes: AtomicUsize,
    undo_bytes_max: usize,
    file: Arc<UndoFile>,
    pub views: Arc<Views>,
    /// Number of transactions that had to wait for the lock of their segment.
    segment_waits: AtomicU64,
}

impl Versions {
    /// Creates an empty registry. `segments` is the number of rollback segments in use, from 1 to
    /// [`SEGMENTS_MAX`]. `undo_bytes_max` is the memory limit of undo.
    pub fn new(segments: usize, undo_bytes_max: usize, file: Arc<UndoFile>, views: Arc<Views>) -> Versions {
        Versions {
            segments: (0..SEGMENTS_MAX).map(|_| RwLock::default()).collect(),
            watermarks: (0..SEGMENTS_MAX).map(|_| AtomicU64::new(0)).collect(),
            ordered: (0..SEGMENTS_MAX).map(|_| OrderedMark::new()).collect(),
            in_use: AtomicUsize::new(segments.clamp(1, SEGMENTS_MAX)),
            next: AtomicUsize::new(0),
            undo_bytes: AtomicUsize::new(0),
            undo_bytes_max,
            file,
            views,
            segment_waits: AtomicU64::new(0),
        }
    }

    /// Applies `innodb_rollback_segments`: the number of segments for new transactions. Purge empties the
    /// others.
    pub fn use_segments(&self, segments: usize) {
        self.in_use.store(segments.clamp(1, SEGMENTS_MAX), Ordering::Relaxed);
    }

    /// Creates the record of a transaction that is about to be installed.
    pub fn begin(&self) -> Arc<TrxRecord> {
        let at = self.next.fetch_add(1, Ordering::Relaxed) % self.in_use.load(Ordering::Relaxed);
        let segment = &self.segments[at];
        let mut segment = segment.try_write().unwrap_or_else(|| {
            self.segment_waits.fetch_add(1, Ordering::Relaxed);
            segment.write()
        });
        let place = segment.end();
        let record = Arc::new(TrxRecord::new(TrxNo(((at as u64) << SEGMENT_SHIFT) | place)));
        segment.push(record.clone());
        record
    }

    /// Returns whether the transaction is below the watermark, so that all views see its writes.
    #[inline]
    pub fn is_seen_by_all(&self, trx: TrxNo) -> bool {
        let (at, place) = (trx.segment(), trx.place());
        place < self.watermarks[at].load(Ordering::Acquire)
    }

    /// Returns whether the horizon is known to include this transaction's writes. A version of the
    /// transaction must be reachable, which the latch of the entry's page guarantees.
    #[inline]
    pub fn is_seen(&self, horizon: Horizon, trx: TrxNo) -> bool {
        let (at, place) = (trx.segment(), trx.place());
        self.is_seen_by_all(trx) || trx == horizon.own || self.ordered[at].is_seen(horizon, place)
    }

    /// Returns the transaction's record, or `None` if all views see the transaction's writes. A version of
    /// the transaction must be reachable: the latch of the entry's page guarantees it, or purge is the
    /// caller.
    pub fn find(&self, trx: TrxNo) -> Option<Arc<TrxRecord>> {
        self.look_up(trx, Arc::clone)
    }

    /// Returns the records of several live versions, each as [`Versions::find`] does. Only purge calls it.
    /// The records were last used long ago and are scattered in memory, so the code lets their cache misses
    /// overlap: it only reads records before it increments the first reference count.
    pub fn find_all(&self, versions: &[VersionRef]) -> Vec<Option<Arc<TrxRecord>>> {
        let segment_of = |n: &usize| versions[*n].trx.segment();
        let is_there = |n: &usize| !self.is_seen_by_all(versions[*n].trx);
        let mut order: Vec<usize> = (0..versions.len()).filter(is_there).collect();
        order.sort_by_key(segment_of);
        let mut found = vec![None; versions.len()];
        for run in order.chunk_by(|a, b| segment_of(a) == segment_of(b)) {
            for few in run.chunks(FOUND_AT_ONCE_MAX) {
                let segment = self.segments[segment_of(&few[0])].read();
                let look = |n: &usize| record_in(&segment, versions[*n].trx);
                let is_undecided = |record: &Arc<TrxRecord>| record.state() == TrxState::Installed;
                let undecided = few.iter().filter_map(look).filter(|record| is_undecided(record)).count();
                assert_eq!(undecided, 0, "what is written over was ordered");
                few.iter().for_each(|n| found[*n] = look(n).cloned());
            }
        }
        found
    }

    fn look_up<R>(&self, trx: TrxNo, look: impl FnOnce(&Arc<TrxRecord>) -> R) -> Option<R> {
        if self.is_seen_by_all(trx) {
            return None;
        }
        record_in(&self.segments[trx.segment()].read(), trx).map(look)
    }

    /// Looks up the record that a link leads to.
    pub fn find_below(&self, trx: TrxNo) -> Below {
        let (at, place) = (trx.segment(), trx.place());
        match self.segments[at].read().find(place) {
            Found::There(record) => Below::There(record.clone()),
            Found::Passed => Below::Gone,
            Found::Dropped => Below::Dropped,
        }
    }

    /// Returns whether the transaction is neither ordered nor aborted.
    pub fn is_undecided(&self, trx: TrxNo) -> bool {
        matches!(self.find_below(trx), Below::There(record) if record.state() == TrxState::Installed)
    }

    /// Returns the transaction's record if the horizon does not include its writes.
    pub fn unseen(&self, horizon: Horizon, trx: TrxNo) -> Option<Arc<TrxRecord>> {
        if self.is_seen(horizon, trx) {
            return None;
        }
        self.look_up(trx, |record| (!horizon.sees_record(record)).then(|| record.clone())).flatten()
    }

    /// Stores the previous content of an entry. At return the entry may refer to it. Returns `None` if the
    /// transaction's undo is full.
    pub fn push_undo(&self, record: &TrxRecord, before: &Before<'_>) -> Option<VersionRef> {
        if before.is_deletion {
            record.has_deletions.store(true, Ordering::Relaxed);
        }
        let (undo, taken) = record.undo.write().push(before)?;
        if taken > 0 {
            self.undo_bytes.fetch_add(taken, Ordering::Relaxed);
        }
        Some(VersionRef { trx: record.number, undo })
    }

    /// Maximum memory of the undo of a transaction that is being installed.
    pub fn trx_undo_bytes_max(&self) -> usize {
        self.undo_bytes_max / 2
    }

    /// Spills the filled chunks of a record's undo to the undo file. Only the installing session calls it.
    pub fn spill_installing(&self, record: &TrxRecord) -> Result<(), EngineError> {
        self.spill_chunks(record, Grows::Yes)
    }

    /// Spills the undo of a large transaction between two parts if all undo together exceeds half of the
    /// limit. Such a transaction may stay undecided for long, and several of them share the memory.
    pub fn spill_part(&self, record: &TrxRecord) -> Result<(), EngineError> {
        match self.undo_bytes() > self.trx_undo_bytes_max() {
            true => self.spill_chunks(record, Grows::Yes),
            false => Ok(()),
        }
    }

    fn spill_chunks(&self, record: &TrxRecord, grows: Grows) -> Result<(), EngineError> {
        loop {
            let extent = match record.undo.read().to_spill(grows) {
                Some(chunk) => self.file.write(chunk)?,
                None => return Ok(()),
            };
            let freed = record.undo.write().spilled(&extent, 0);
            self.undo_bytes.fetch_sub(freed, Ordering::Relaxed);
        }
    }

    /// Spills undo to the undo file until the memory limit is kept, oldest records first. Only purge calls
    /// it, from one thread.
    pub fn spill(&self) -> Result<(), EngineError> {
        while self.undo_bytes() > self.undo_bytes_max {
            let mut has_spilled = false;
            for segment in &self.segments {
                let records = Versions::to_spill(segment);
                has_spilled |= !records.is_empty();
                self.spill_together(&records)?;
                if let Some(last) = records.iter().map(|record| record.place()).max() {
                    let waits =
                        |record: &TrxRecord| record.state() == TrxState::Installed || record.undo_bytes() > 0;
                    segment.write().advance(|it| &mut it.spilled, last, waits);
                }
            }
            if !has_spilled {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the segment's oldest records with undo in memory that no longer grows.
    fn to_spill(segment: &RwLock<Segment>) -> Vec<Arc<TrxRecord>> {
        let segment = segment.read();
        let mut bytes = 0;
        let done = segment.ahead(&segment.spilled, |state| state != TrxState::Installed);
        let few = done.take_while(|record| {
            let is_first = bytes == 0;
            bytes += record.undo_bytes();
            is_first || bytes <= SPILL_BYTES
        });
        few.cloned().collect()
    }

    fn spill_together(&self, records: &[Arc<TrxRecord>]) -> Result<(), EngineError> {
        if let [large] = records {
            return self.spill_chunks(large, Grows::No);
        }
        let (mut bytes, mut starts) = (Vec::new(), Vec::new());
        for record in records {
            let undo = record.undo.read();
            for chunk in undo.all_to_spill() {
                starts.push((record, bytes.len() as u32));
                bytes.extend_from_slice(chunk);
            }
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let extent = self.file.write(&bytes)?;
        for (record, start) in starts {
            let freed = record.undo.write().spilled(&extent, start);
            self.undo_bytes.fetch_sub(freed, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns whether all views from `oldest` on see the version.
    pub fn is_passed(&self, oldest: CommitSeq, version: Option<VersionRef>) -> bool {
        let record = version.and_then(|version| self.find(version.trx));
        record.is_none_or(|record| Horizon::at(oldest).sees_record(&record))
    }

    /// Returns the oldest records of each segment that all views from `oldest` on have passed. The records
    /// stay until [`Versions::forget`].
    pub fn purgeable(&self, oldest: CommitSeq, max: usize) -> Vec<Arc<TrxRecord>> {
        let mut found = Vec::new();
        for segment in &self.segments {
            found.extend(segment.read().oldest(|state| is_over(state, oldest)).take(max).cloned());
        }
        found
    }

    /// Returns the oldest records of each segment that were not swept and that all views from `until` on see.
    /// Includes aborted records among them.
    pub fn to_sweep(&self, until: CommitSeq, max: usize) -> Vec<Arc<TrxRecord>> {
        let mut found = Vec::new();
        for segment in &self.segments {
            let segment = segment.read();
            let ahead = segment.ahead(&segment.swept, |state| is_over(state, until));
            found.extend(ahead.take(max).cloned());
        }
        found
    }

    /// Marks the records as swept, so that [`Versions::to_sweep`] does not return them again. Raises the
    /// commit low-water marks to `until`.
    pub fn swept(&self, records: &[Arc<TrxRecord>], until: CommitSeq) {
        for run in records.chunk_by(|a, b| a.segment() == b.segment()) {
            let last = run.iter().map(|record| record.place()).max().expect("a run has one");
            let waits = |record: &TrxRecord| !record.is_swept() && record.state() != TrxState::Aborted;
            let at = run[0].segment();
            let mut segment = self.segments[at].write();
            segment.advance(|it| &mut it.swept, last, waits);
            self.ordered[at].raise(segment.advance_ordered(until), until);
        }
    }

    /// Frees a record's undo, which no view needs, except for the links.
    pub fn free_values(&self, record: &TrxRecord) {
        let freed = record.undo.write().free();
        self.undo_bytes.fetch_sub(freed, Ordering::Relaxed);
    }

    /// Drops swept records that have no live version and whose overflow values are freed. Some of them may
    /// already have been dropped.
    pub fn drop_swept(&self, records: &mut [Arc<TrxRecord>]) {
        records.sort_by_key(|record| record.number);
        for run in records.chunk_by(|a, b| a.segment() == b.segment()) {
            let mut segment = self.segments[run[0].segment()].write();
            // The caller holds the last references and frees the records without the lock.
            run.iter().for_each(|record| drop(segment.drop_one(record.place())));
        }
    }

    /// Removes records that purge has passed and whose overflow values are freed. Raises the watermarks.
    pub fn forget(&self, records: &[Arc<TrxRecord>]) {
        for run in records.chunk_by(|a, b| a.segment() == b.segment()) {
            let left: usize = run.iter().map(|record| record.undo.write().leave()).sum();
            self.undo_bytes.fetch_sub(left, Ordering::Relaxed);
            let at = run[0].segment();
            let mut segment = self.segments[at].write();
            segment.pass(run.iter().map(|record| record.place()));
            self.watermarks[at].store(segment.base(), Ordering::Release);
        }
    }

    /// Returns the number of transactions that purge has neither passed nor dropped:
    /// `Innodb_history_list_length`.
    pub fn history_len(&self) -> usize {
        self.segments.iter().map(|segment| segment.read().len()).sum()
    }

    /// Returns the memory that undo uses.
    pub fn undo_bytes(&self) -> usize {
        self.undo_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of reads of the undo file.
    pub fn spilled_reads(&self) -> u64 {
        self.file.reads()
    }

    /// Returns the bytes of the undo file, including free blocks.
    pub fn spilled_bytes(&self) -> u64 {
        self.file.bytes()
    }

    /// Returns the number of transactions that waited for their rollback segment.
    pub fn segment_waits(&self) -> u64 {
        self.segment_waits.load(Ordering::Relaxed)
    }

    /// Returns the number of rollback segments that new transactions use.
    pub fn segments_in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }
}

/// Returns the record of a transaction with a live version, or `None` if all views have passed it.
fn record_in(segment: &Segment, trx: TrxNo) -> Option<&Arc<TrxRecord>> {
    match segment.find(trx.place()) {
        Found::Passed => None,
        Found::There(record) => Some(record),
        Found::Dropped => panic!("a chain leads to a version of a record that was dropped"),
    }
}

/// Returns whether the transaction was aborted or is seen by every view from `seq` on.
fn is_over(state: TrxState, seq: CommitSeq) -> bool {
    match state {
        TrxState::Installed => false,
        TrxState::Aborted => true,
        TrxState::Committed(at) => at <= seq,
    }
}
