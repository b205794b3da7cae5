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
//!
//! # States of a transaction record and who makes each move
//! ```text
//! installed --commit_ordered--> committed(seq) --purge, once all views are at seq--> below the watermark
//!           \--dropped----------> aborted ------purge, once its entries are restored--/
//! ```
//!
//! # Invariants
//! - A reader resolves a reference while it holds the latch of the entry's page. Purge restores an aborted
//!   entry under the same latch before the record goes, so a reference to an aborted transaction is never
//!   below the watermark.
//! - An aborted version has no successor: who installs over one takes it out first.
//! - A version that some view needs is newer than that view, and purge does not pass it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use cohort_base::{CommitSeq, IndexId};
use parking_lot::{Mutex, RwLock};

use crate::space::Extent;
use crate::undo::{Before, Cursor, UndoLog};

/// Rollback segments that a number can name.
pub const SEGMENTS_MAX: usize = 128;
const SEGMENT_SHIFT: u32 = 56;

/// A transaction's number: the segment in the top byte, below it the place in the segment's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrxNo(pub u64);

/// Stands in an entry: who wrote it, and where its predecessor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRef {
    pub trx: TrxNo,
    pub undo: u32,
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
    /// Written by the installing session, taken by purge afterwards.
    leftovers: Mutex<Leftovers>,
}

/// Long values that purge frees.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// Those that were written; free after an abort.
    pub new_values: Vec<(IndexId, Extent)>,
    /// Those that were replaced; free after a commit.
    pub old_values: Vec<(IndexId, Extent)>,
}

impl TrxRecord {
    /// Its number.
    pub fn number(&self) -> TrxNo {
        self.number
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

    /// Keeps what an entry was; at return the reference to it may stand in the entry. None: there is no room
    /// for more.
    pub fn push_undo(&self, before: &Before<'_>) -> Option<VersionRef> {
        if before.is_deletion {
            self.has_deletions.store(true, Ordering::Relaxed);
        }
        let undo = self.undo.write().push(before)?;
        Some(VersionRef { trx: self.number, undo })
    }

    /// What stood there before the write that `place` belongs to.
    pub fn undo(&self, place: u32) -> Undo {
        self.undo.read().at(place).to_undo()
    }

    /// Whether a write of it is a deletion.
    pub fn has_deletions(&self) -> bool {
        self.has_deletions.load(Ordering::Relaxed)
    }

    /// Writes the key of the write behind the cursor to `key`. Returns its key space and whether it is a
    /// deletion.
    pub fn next_write(&self, cursor: &mut Cursor, key: &mut Vec<u8>) -> Option<(IndexId, bool)> {
        let undo = self.undo.read();
        let before = undo.next(cursor)?;
        key.clear();
        key.extend_from_slice(before.key);
        Some((before.index, before.is_deletion))
    }

    /// Long values, for who installs and for purge.
    pub fn leftovers(&self) -> &Mutex<Leftovers> {
        &self.leftovers
    }
}

#[derive(Debug, Default)]
struct Segment {
    /// Number within the segment of the first record: the watermark.
    base: u64,
    records: VecDeque<Arc<TrxRecord>>,
}

/// Which versions a reader sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Horizon {
    /// All that is ordered.
    Latest,
    /// All up to this one.
    At(CommitSeq),
}

/// All transaction records of an engine.
#[derive(Debug)]
pub struct Versions {
    segments: Box<[RwLock<Segment>]>,
    /// The segments' watermarks, to be looked at without their locks. They may lag behind.
    watermarks: Box<[AtomicU64]>,
    /// Segments that new transactions use: `innodb_rollback_segments`.
    in_use: AtomicUsize,
    next: AtomicUsize,
}

impl Versions {
    /// With so many rollback segments in use, from 1 to [`SEGMENTS_MAX`].
    pub fn new(segments: usize) -> Versions {
        Versions {
            segments: (0..SEGMENTS_MAX).map(|_| RwLock::default()).collect(),
            watermarks: (0..SEGMENTS_MAX).map(|_| AtomicU64::new(0)).collect(),
            in_use: AtomicUsize::new(segments.clamp(1, SEGMENTS_MAX)),
            next: AtomicUsize::new(0),
        }
    }

    /// `innodb_rollback_segments`: new transactions use so many. Purge empties the others.
    pub fn use_segments(&self, segments: usize) {
        self.in_use.store(segments.clamp(1, SEGMENTS_MAX), Ordering::Relaxed);
    }

    /// A record for a transaction that is about to be installed.
    pub fn begin(&self) -> Arc<TrxRecord> {
        let at = self.next.fetch_add(1, Ordering::Relaxed) % self.in_use.load(Ordering::Relaxed);
        let mut segment = self.segments[at].write();
        let place = segment.base + segment.records.len() as u64;
        let record = Arc::new(TrxRecord {
            number: TrxNo(((at as u64) << SEGMENT_SHIFT) | place),
            state: AtomicU64::new(INSTALLED),
            undo: RwLock::default(),
            has_deletions: AtomicBool::new(false),
            leftovers: Mutex::default(),
        });
        segment.records.push_back(record.clone());
        record
    }

    /// The record; none: everybody sees what this transaction wrote.
    pub fn find(&self, trx: TrxNo) -> Option<Arc<TrxRecord>> {
        let (at, place) = ((trx.0 >> SEGMENT_SHIFT) as usize, trx.0 & ((1 << SEGMENT_SHIFT) - 1));
        if place < self.watermarks[at].load(Ordering::Acquire) {
            return None;
        }
        let segment = self.segments[at].read();
        let place = place.checked_sub(segment.base)?;
        let record = segment.records.get(place as usize);
        Some(record.expect("references name transactions that exist or existed").clone())
    }

    /// Whether the horizon takes in what this transaction wrote.
    fn sees(horizon: Horizon, record: &TrxRecord) -> bool {
        match (record.state(), horizon) {
            (TrxState::Committed(_), Horizon::Latest) => true,
            (TrxState::Committed(seq), Horizon::At(view)) => seq <= view,
            (TrxState::Installed | TrxState::Aborted, _) => false,
        }
    }

    /// What an entry that refers to `version` shows at the horizon. `Ok(())`: the entry itself. The caller
    /// holds the latch of the entry's page.
    pub fn resolve(&self, horizon: Horizon, version: Option<VersionRef>) -> Result<(), Undo> {
        let Some(mut at) = version else { return Ok(()) };
        let Some(mut record) = self.find(at.trx) else { return Ok(()) };
        if Versions::sees(horizon, &record) {
            return Ok(());
        }
        loop {
            let undo = record.undo.read();
            let before = undo.at(at.undo);
            match before.version.and_then(|older| Some((older, self.find(older.trx)?))) {
                Some((older, of_older)) if !Versions::sees(horizon, &of_older) => {
                    drop(undo);
                    (at, record) = (older, of_older);
                }
                _ => return Err(before.to_undo()),
            }
        }
    }

    /// Whether every view from `oldest` on sees what the version's transaction wrote.
    pub fn is_passed(&self, oldest: CommitSeq, version: Option<VersionRef>) -> bool {
        let record = version.and_then(|version| self.find(version.trx));
        record.is_none_or(|record| Versions::sees(Horizon::At(oldest), &record))
    }

    /// The oldest records of each segment that every view from `oldest` on has passed. They stay until
    /// [`Versions::forget`].
    pub fn purgeable(&self, oldest: CommitSeq, max: usize) -> Vec<Arc<TrxRecord>> {
        let is_done = |record: &&Arc<TrxRecord>| match record.state() {
            TrxState::Installed => false,
            TrxState::Aborted => true,
            TrxState::Committed(seq) => seq <= oldest,
        };
        let mut found = Vec::new();
        for segment in &self.segments {
            let segment = segment.read();
            found.extend(segment.records.iter().take_while(is_done).take(max).cloned());
        }
        found
    }

    /// Raises watermarks over records whose leftovers are gone: each is the first of its segment by then.
    pub fn forget(&self, records: &[Arc<TrxRecord>]) {
        for record in records {
            let at = (record.number.0 >> SEGMENT_SHIFT) as usize;
            let mut segment = self.segments[at].write();
            let first = segment.records.pop_front().expect("it is still there");
            assert_eq!(first.number, record.number, "records go in the order of their numbers");
            segment.base += 1;
            self.watermarks[at].store(segment.base, Ordering::Release);
        }
    }

    /// Transactions that purge has not passed: `Innodb_history_list_length`.
    pub fn history_len(&self) -> usize {
        self.segments.iter().map(|segment| segment.read().records.len()).sum()
    }

    /// Bytes of memory that undo takes.
    pub fn undo_bytes(&self) -> usize {
        let of_segment = |segment: &RwLock<Segment>| {
            segment.read().records.iter().map(|record| record.undo.read().bytes()).sum::<usize>()
        };
        self.segments.iter().map(of_segment).sum()
    }

    /// Rollback segments that new transactions use.
    pub fn segments_in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }
}
