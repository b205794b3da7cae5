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

use cohort_base::CommitSeq;
use cohort_engine::EngineError;

use crate::segment::{Found, Segment};
use crate::spill::UndoFile;
use crate::sync::{AtomicU64, AtomicUsize, Ordering, RwLock};
use crate::trx_record::{TrxRecord, TrxState};
use crate::undo::{Before, Grows};
use crate::version_ref::{PLACE_MASK, SEGMENT_SHIFT, SEGMENTS_MAX, TrxNo, Undo, VersionRef};
use crate::views::Views;

/// Maximum number of records that are looked up under one lock of their segment.
const FOUND_AT_ONCE_MAX: usize = 16;
/// Records are gathered up to this size for one extent of the undo file.
const SPILL_BYTES: usize = 1 << 20;

/// The version of an entry that a reader sees.
#[derive(Debug)]
pub enum Shown {
    /// The current content of the entry.
    Entry,
    /// An earlier content.
    Older(Undo),
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
        debug_assert!(place <= PLACE_MASK, "a transaction number reaches into the bits of its segment");
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
        debug_assert_eq!(record.state(), TrxState::Installed, "a decided transaction writes");
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

    fn give_back(&self, bytes: usize) {
        let before = self.undo_bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "undo frees more memory than it used: spilling would never end");
    }

    fn spill_chunks(&self, record: &TrxRecord, grows: Grows) -> Result<(), EngineError> {
        loop {
            let extent = match record.undo.read().to_spill(grows) {
                Some(chunk) => self.file.write(chunk)?,
                None => return Ok(()),
            };
            let freed = record.undo.write().spilled(&extent, 0);
            self.give_back(freed);
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
            self.give_back(freed);
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
            debug_assert!(
                run.iter().all(|record| is_over(record.state(), until)),
                "a transaction that some later view does not see was swept"
            );
            let mut segment = self.segments[at].write();
            segment.advance(|it| &mut it.swept, last, waits);
            self.ordered[at].raise(segment.advance_ordered(until), until);
        }
    }

    /// Frees a record's undo, which no view needs, except for the links.
    pub fn free_values(&self, record: &TrxRecord) {
        let freed = record.undo.write().free();
        self.give_back(freed);
    }

    /// Drops swept records that have no live version and whose overflow values are freed. Some of them may
    /// already have been dropped.
    pub fn drop_swept(&self, records: &mut [Arc<TrxRecord>]) {
        debug_assert!(
            records.iter().all(|record| record.is_droppable()),
            "a record is dropped whose versions a chain leads to"
        );
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
            debug_assert!(
                run.iter().all(|record| record.state() != TrxState::Installed),
                "purge passes an undecided transaction: all views would see it"
            );
            let left: usize = run.iter().map(|record| record.undo.write().leave()).sum();
            self.give_back(left);
            let at = run[0].segment();
            let mut segment = self.segments[at].write();
            segment.pass(run.iter().map(|record| record.place()));
            let before = self.watermarks[at].swap(segment.base(), Ordering::AcqRel);
            debug_assert!(
                before <= segment.base(),
                "a watermark falls: passed transactions would be looked up"
            );
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
