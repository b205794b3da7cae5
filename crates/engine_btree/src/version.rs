//! Versions: who wrote an entry, and what it held before.
//!
//! # Concepts
//! - **Transaction record** ([`TrxRecord`]): made when a transaction is installed (`install.rs`). It holds
//!   the state and the undo of its writes. Committing is one store into the state.
//! - **Version reference** ([`VersionRef`]): stands in an entry and names the transaction that wrote it and
//!   the place of the predecessor in that transaction's undo.
//! - **Rollback segment**: numbers transactions without a hole and keeps their records until purge has passed
//!   them. There are several, so that installing transactions do not queue for one lock.
//! - **Watermark** of a segment: everybody sees what transactions below it wrote, so their records are gone
//!   and a reference to them means "visible". Numbers are never used again.
//! - **Ordered mark** of a segment: whatever a transaction below it wrote, and an entry refers to, was
//!   ordered, at the mark's CommitSeq or before. So who sees that sees it without a look at the record.
//!   Sweeping raises it, behind a view that holds back the watermark. An aborted or undecided transaction
//!   stops it.
//! - **Living version**: one that a chain leads to (`chain.rs`). A record without one is dropped once it was
//!   swept, if a view that is held keeps purge from passing it.
//!
//! # States of a transaction record and who makes each move
//! ```text
//! installed --commit_ordered--> committed(seq) --purge, once all views are at seq--> below the watermark
//!           |                         \----------sweep, once no version lives-------> dropped
//!           \--dropped----------> aborted ------purge, once its entries are restored--> below the watermark
//! ```
//!
//! # Invariants
//! - A reader resolves a reference while it holds the latch of the entry's page. Purge restores an aborted
//!   entry under the same latch before the record goes, so a reference to an aborted transaction is never
//!   below the watermark.
//! - An aborted version has no successor: a writer that installs over one takes it out first.
//! - A version that some view needs is newer than that view, and purge does not pass it.
//! - The versions of one entry were committed in the order of their chain. So a view that does not see one
//!   sees none that is newer.
//!
//! # Memory
//! Undo beyond the bound goes into the undo file (`spill.rs`): the filled chunks of a transaction that is
//! being installed, by its session, and whole records that wait for old views, by purge. What no view needs
//! is freed before that (`sweep.rs`). The transaction records and the links between versions (`chain.rs`)
//! stay in memory beside the bound: behind a view that is held those of the first and the last transaction
//! that wrote a row, whatever number of transactions wrote it. Of all others 64 take a word (`segment.rs`).

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

/// Rollback segments that a number can name.
pub const SEGMENTS_MAX: usize = 128;
const SEGMENT_SHIFT: u32 = 56;
const PLACE_MASK: u64 = (1 << SEGMENT_SHIFT) - 1;
/// Records that are looked up while their segment's lock is held.
const FOUND_AT_ONCE_MAX: usize = 16;
/// Records are gathered for one extent of the undo file up to this size.
const SPILL_BYTES: usize = 1 << 20;

/// A transaction's number: the segment in the top byte, below it the place in the segment's order.
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

/// Stands in an entry: who wrote it, and where its predecessor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRef {
    pub trx: TrxNo,
    pub undo: u32,
}

/// What a reader sees of an entry.
#[derive(Debug)]
pub enum Shown {
    /// The entry as it stands.
    Entry,
    /// What it was before.
    Older(Undo),
}

/// A value as an entry or an undo record holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    pub is_overflow: bool,
    pub bytes: Box<[u8]>,
}

/// What an entry was before a write.
#[derive(Clone, Debug)]
pub struct Undo {
    /// None: it was deleted, or not there.
    pub value: Option<Value>,
    /// Whether there was an entry, if only one with a delete mark.
    pub existed: bool,
    /// Who wrote that; none: everybody sees it.
    pub version: Option<VersionRef>,
}

/// Where a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrxState {
    Installed,
    Committed(CommitSeq),
    Aborted,
}

/// What purge does about a write.
#[derive(Debug)]
pub enum Cleanup {
    Nothing,
    /// The write is a deletion: its entry goes.
    Remove,
    /// The transaction was aborted: this comes back.
    Restore(Undo),
}

const INSTALLED: u64 = 0;
const ABORTED: u64 = u64::MAX;

/// One transaction's state and undo.
#[derive(Debug)]
pub struct TrxRecord {
    number: TrxNo,
    state: AtomicU64,
    /// Grows while the transaction is installed.
    undo: RwLock<UndoLog>,
    has_deletions: AtomicBool,
    /// Written by purge: there is nothing left to do about it but to wait until no version lives.
    is_swept: AtomicBool,
    /// Written by the installing session, taken by purge afterwards.
    leftovers: Mutex<Option<Box<Leftovers>>>,
}

/// A long value of a tree. When the tree was loaded anew meanwhile, its successor may have another value in
/// the same place, so the index does not tell whose it is: the root does, which no other tree ever has.
#[derive(Clone, Copy, Debug)]
pub struct LongValue {
    pub index: IndexId,
    pub root: PageId,
    pub extent: Extent,
}

/// Long values that purge frees.
#[derive(Debug, Default)]
struct Leftovers {
    /// Those that were written; free after an abort.
    new_values: Vec<LongValue>,
    /// Those that were replaced; free after a commit.
    old_values: Vec<LongValue>,
}

impl TrxRecord {
    /// Of a transaction that has written nothing.
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

    /// Its number.
    pub fn number(&self) -> TrxNo {
        self.number
    }

    /// Its place in its segment's order.
    pub fn place(&self) -> u64 {
        self.number.place()
    }

    fn segment(&self) -> usize {
        self.number.segment()
    }

    /// Where it stands.
    pub fn state(&self) -> TrxState {
        match self.state.load(Ordering::Acquire) {
            INSTALLED => TrxState::Installed,
            ABORTED => TrxState::Aborted,
            seq => TrxState::Committed(CommitSeq(seq)),
        }
    }

    /// Makes all its versions visible to `Latest` reads and to views from `seq` on. The order stage is held.
    pub fn commit(&self, seq: CommitSeq) {
        let before = self.state.swap(seq.0, Ordering::AcqRel);
        assert_eq!(before, INSTALLED, "a transaction commits once, and not after it was dropped");
    }

    /// Lets everybody pass over its versions. Purge restores what was there.
    pub fn abort(&self) {
        let before = self.state.swap(ABORTED, Ordering::AcqRel);
        assert_eq!(before, INSTALLED, "only what is not ordered is dropped (I6)");
    }

    /// What stood there before the write that `place` belongs to.
    pub fn undo(&self, place: u32) -> Result<Undo, EngineError> {
        self.undo.read().undo_at(place)
    }

    /// Where the chain goes on below the write that `place` belongs to.
    pub fn link(&self, place: u32) -> Option<Link> {
        self.undo.read().link_at(place)
    }

    /// The settled links of writes whose chains go past nothing, with the writes' places.
    pub fn whole_links(&self) -> Vec<(u32, Link)> {
        self.undo.read().whole_links()
    }

    /// Adds where its links lead that are not settled.
    pub fn list_unsettled(&self, to: &mut Vec<VersionRef>) {
        to.extend(self.undo.read().unsettled());
    }

    /// Keeps what was found of the versions that [`TrxRecord::list_unsettled`] added, and takes no more.
    pub fn settle(&self, found: &mut impl Iterator<Item = (CommitSeq, End)>) {
        self.undo.write().settle(found);
    }

    /// Lets that chain go on further down.
    pub fn shorten(&self, place: u32, below: VersionRef, end: End) {
        self.undo.write().shorten(place, below, end);
    }

    /// How a chain ends that goes on below that write.
    pub fn end_below(&self, place: u32) -> End {
        self.undo.read().end_below(place)
    }

    /// No chain leads to that write's version any more. Purge tells it, once of each.
    pub fn end_version(&self, place: u32) {
        self.undo.write().end_version(place);
    }

    /// Whether sweeping has done all it can.
    pub fn is_swept(&self) -> bool {
        self.is_swept.load(Ordering::Relaxed)
    }

    /// Sweeping has done all it can.
    pub fn set_swept(&self) {
        self.is_swept.store(true, Ordering::Relaxed);
    }

    /// Whether it was swept, and nobody refers to it.
    pub fn is_droppable(&self) -> bool {
        self.is_swept() && self.undo.read().living() == 0
    }

    /// Versions that chains lead to.
    #[cfg(test)]
    pub fn living(&self) -> u64 {
        self.undo.read().living()
    }

    /// Whether that write replaced a value; none: not without a look at the undo file.
    pub fn has_value(&self, place: u32) -> Option<bool> {
        self.undo.read().has_value(place)
    }

    /// Whether one of the values that it replaced is needed, by when they were written.
    pub fn is_value_needed(&self, is_needed: &dyn Fn(CommitSeq) -> bool) -> bool {
        self.undo.read().is_any_needed(is_needed)
    }

    /// Whether some of its undo is in the undo file.
    pub fn has_spilled(&self) -> bool {
        self.undo.read().has_spilled()
    }

    /// Bytes of memory that its undo takes.
    pub fn undo_bytes(&self) -> usize {
        self.undo.read().memory_bytes()
    }

    /// Whether a write of it is a deletion.
    pub fn has_deletions(&self) -> bool {
        self.has_deletions.load(Ordering::Relaxed)
    }

    /// Writes the key of the write behind the cursor to `key`. Returns its key space and what is to be done
    /// about it once every view has passed.
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

    /// It wrote a long value, which is free after an abort.
    pub fn add_new_value(&self, value: LongValue) {
        self.leftovers.lock().get_or_insert_default().new_values.push(value);
    }

    /// It replaced a long value, which is free after its commit.
    pub fn add_old_value(&self, value: LongValue) {
        self.leftovers.lock().get_or_insert_default().old_values.push(value);
    }

    /// The long values that it wrote, once.
    pub fn take_new_values(&self) -> Vec<LongValue> {
        self.leftovers.lock().as_mut().map(|found| std::mem::take(&mut found.new_values)).unwrap_or_default()
    }

    /// The long values that it replaced, once.
    pub fn take_old_values(&self) -> Vec<LongValue> {
        self.leftovers.lock().as_mut().map(|found| std::mem::take(&mut found.old_values)).unwrap_or_default()
    }
}

/// Which versions a reader sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// All up to this one.
    upto: CommitSeq,
    /// And those of the transaction that reads.
    own: TrxNo,
}

/// No transaction has this number.
const NOBODY: TrxNo = TrxNo(u64::MAX);

impl Horizon {
    /// All that is ordered.
    pub const LATEST: Horizon = Horizon { upto: CommitSeq(u64::MAX), own: NOBODY };

    /// All up to this one.
    pub fn at(view: CommitSeq) -> Horizon {
        Horizon { upto: view, own: NOBODY }
    }

    /// The same for a transaction that has writes in place.
    pub fn with_own(self, own: TrxNo) -> Horizon {
        Horizon { own, ..self }
    }

    /// Whether it takes in all that is ordered.
    pub fn is_latest(self) -> bool {
        self.upto == Horizon::LATEST.upto
    }

    /// Whether it takes in what was ordered at `seq`.
    #[inline]
    pub fn sees(self, seq: CommitSeq) -> bool {
        seq <= self.upto
    }

    /// Whether it takes in what this transaction wrote.
    pub fn sees_record(self, record: &TrxRecord) -> bool {
        match record.state() {
            TrxState::Committed(seq) => self.sees(seq),
            TrxState::Installed => record.number == self.own,
            TrxState::Aborted => false,
        }
    }
}

/// What a chain leads to.
pub enum Below {
    There(Arc<TrxRecord>),
    /// The record was passed or dropped.
    Gone,
    /// The record was dropped: the chain leads elsewhere by now.
    Dropped,
}

/// How far a segment's transactions are known to be ordered.
#[derive(Debug)]
struct OrderedMark {
    place: AtomicU64,
    /// Written before the place, so that whoever reads that first finds no older one here.
    seq: AtomicU64,
}

impl OrderedMark {
    fn new() -> OrderedMark {
        OrderedMark { place: AtomicU64::new(0), seq: AtomicU64::new(0) }
    }

    /// Whether the horizon is known to take in what the transaction with this place wrote.
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
    /// The segments' watermarks, to be looked at without their locks. They may lag behind.
    watermarks: Box<[AtomicU64]>,
    /// The segments' ordered marks.
    ordered: Box<[OrderedMark]>,
    /// Segments that new transactions use: `innodb_rollback_segments`.
    in_use: AtomicUsize,
    next: AtomicUsize,
    /// Memory that undo takes, and may take.
    undo_bytes: AtomicUsize,
    undo_bytes_max: usize,
    file: Arc<UndoFile>,
    pub views: Arc<Views>,
    /// Transactions that found their segment taken.
    segment_waits: AtomicU64,
}

impl Versions {
    /// With so many rollback segments in use, from 1 to [`SEGMENTS_MAX`], and so much undo in memory.
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

    /// `innodb_rollback_segments`: new transactions use so many. Purge empties the others.
    pub fn use_segments(&self, segments: usize) {
        self.in_use.store(segments.clamp(1, SEGMENTS_MAX), Ordering::Relaxed);
    }

    /// A record for a transaction that is about to be installed.
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

    /// Whether everybody is known to see what this transaction wrote.
    #[inline]
    pub fn is_seen_by_all(&self, trx: TrxNo) -> bool {
        let (at, place) = (trx.segment(), trx.place());
        place < self.watermarks[at].load(Ordering::Acquire)
    }

    /// Whether the horizon is known to take in what this transaction wrote. A chain leads to a version of it,
    /// by the latch of the entry's page.
    #[inline]
    pub fn is_seen(&self, horizon: Horizon, trx: TrxNo) -> bool {
        let (at, place) = (trx.segment(), trx.place());
        self.is_seen_by_all(trx) || trx == horizon.own || self.ordered[at].is_seen(horizon, place)
    }

    /// The record; none: everybody sees what this transaction wrote. The caller knows that a chain leads to a
    /// version of it, by the latch of the entry's page, or because it is purge.
    pub fn find(&self, trx: TrxNo) -> Option<Arc<TrxRecord>> {
        self.look_up(trx, Arc::clone)
    }

    /// The records of several versions that chains lead to, as [`Versions::find`] gives them, for purge. They
    /// were used long ago and lie anywhere in memory, so the processor is let wait for many of them at once:
    /// nothing but looking comes before the first reference is counted.
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

    /// The record further down a chain.
    pub fn find_below(&self, trx: TrxNo) -> Below {
        let (at, place) = (trx.segment(), trx.place());
        match self.segments[at].read().find(place) {
            Found::There(record) => Below::There(record.clone()),
            Found::Passed => Below::Gone,
            Found::Dropped => Below::Dropped,
        }
    }

    /// Whether the transaction is neither ordered nor aborted.
    pub fn is_undecided(&self, trx: TrxNo) -> bool {
        matches!(self.find_below(trx), Below::There(record) if record.state() == TrxState::Installed)
    }

    /// The record of a transaction whose writes the horizon does not take in.
    pub fn unseen(&self, horizon: Horizon, trx: TrxNo) -> Option<Arc<TrxRecord>> {
        if self.is_seen(horizon, trx) {
            return None;
        }
        self.look_up(trx, |record| (!horizon.sees_record(record)).then(|| record.clone())).flatten()
    }

    /// Keeps what an entry was; at return the reference to it may stand in the entry. None: there is no room
    /// for more.
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

    /// Most undo in memory of a transaction that is being installed.
    pub fn trx_undo_bytes_max(&self) -> usize {
        self.undo_bytes_max / 2
    }

    /// Moves the filled chunks of a record's undo into the undo file. Only its installer calls this.
    pub fn spill_installing(&self, record: &TrxRecord) -> Result<(), EngineError> {
        self.spill_chunks(record, Grows::Yes)
    }

    /// The same for one that may stay as it is for long, if there is much undo of others, too. Several of
    /// them share what memory there is.
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

    /// Moves undo into the undo file while there is too much in memory, oldest records first. Purge calls it,
    /// and nobody else at the same time.
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

    /// The oldest records of the segment with undo in memory that does not grow any more.
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

    /// Whether every view from `oldest` on sees what the version's transaction wrote.
    pub fn is_passed(&self, oldest: CommitSeq, version: Option<VersionRef>) -> bool {
        let record = version.and_then(|version| self.find(version.trx));
        record.is_none_or(|record| Horizon::at(oldest).sees_record(&record))
    }

    /// The oldest records of each segment that every view from `oldest` on has passed. They stay until
    /// [`Versions::forget`].
    pub fn purgeable(&self, oldest: CommitSeq, max: usize) -> Vec<Arc<TrxRecord>> {
        let mut found = Vec::new();
        for segment in &self.segments {
            found.extend(segment.read().oldest(|state| is_over(state, oldest)).take(max).cloned());
        }
        found
    }

    /// The oldest records of each segment that were not swept and that all views from `until` on see, with
    /// those that were aborted between them.
    pub fn to_sweep(&self, until: CommitSeq, max: usize) -> Vec<Arc<TrxRecord>> {
        let mut found = Vec::new();
        for segment in &self.segments {
            let segment = segment.read();
            let ahead = segment.ahead(&segment.swept, |state| is_over(state, until));
            found.extend(ahead.take(max).cloned());
        }
        found
    }

    /// The records that [`Versions::to_sweep`] gave for `until` are not swept again.
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

    /// Frees what a record's writes replaced, which no view needs, but for the links.
    pub fn free_values(&self, record: &TrxRecord) {
        let freed = record.undo.write().free();
        self.undo_bytes.fetch_sub(freed, Ordering::Relaxed);
    }

    /// Drops swept records without a living version, whose leftovers are gone. Some may have been dropped
    /// before.
    pub fn drop_swept(&self, records: &mut [Arc<TrxRecord>]) {
        records.sort_by_key(|record| record.number);
        for run in records.chunk_by(|a, b| a.segment() == b.segment()) {
            let mut segment = self.segments[run[0].segment()].write();
            // The caller's references are the last ones, and go without the lock.
            run.iter().for_each(|record| drop(segment.drop_one(record.place())));
        }
    }

    /// Passes records whose leftovers are gone, which raises watermarks.
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

    /// Transactions that purge has neither passed nor dropped: `Innodb_history_list_length`.
    pub fn history_len(&self) -> usize {
        self.segments.iter().map(|segment| segment.read().len()).sum()
    }

    /// Bytes of memory that undo takes.
    pub fn undo_bytes(&self) -> usize {
        self.undo_bytes.load(Ordering::Relaxed)
    }

    /// Reads of the undo file, by everybody.
    pub fn spilled_reads(&self) -> u64 {
        self.file.reads()
    }

    /// Bytes of the undo file.
    pub fn spilled_bytes(&self) -> u64 {
        self.file.bytes()
    }

    /// Transactions that waited for their rollback segment.
    pub fn segment_waits(&self) -> u64 {
        self.segment_waits.load(Ordering::Relaxed)
    }

    /// Rollback segments that new transactions use.
    pub fn segments_in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }
}

/// The record of a transaction that a chain leads to a version of; none: everybody has passed it.
fn record_in(segment: &Segment, trx: TrxNo) -> Option<&Arc<TrxRecord>> {
    match segment.find(trx.place()) {
        Found::Passed => None,
        Found::There(record) => Some(record),
        Found::Dropped => panic!("a chain leads to a version of a record that was dropped"),
    }
}

/// Whether the transaction was aborted, or is seen by every view from `seq` on.
fn is_over(state: TrxState, seq: CommitSeq) -> bool {
    match state {
        TrxState::Installed => false,
        TrxState::Aborted => true,
        TrxState::Committed(at) => at <= seq,
    }
}
