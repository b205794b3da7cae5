//! [`TableCursor`]: iterates over the rows of one table.
//!
//! # Concepts
//! - **Spans**: the parts of one index that the cursor reads, in order. A *point* is a whole key of the
//!   clustered index or of a unique index. A *range* is read in batches of entries.
//! - **Candidate**: an entry of the batch, or a point. It leads to a clustered row, which the caller's filter
//!   accepts or rejects.
//! - **Read mode**: a snapshot, or the newest rows under row locks (shared or exclusive). A SEQUENCE object
//!   is always read from a snapshot.
//! - For a FULLTEXT index, a [`PostingScan`] replaces the spans and returns points of the clustered index.
//!
//! # Snapshot reads
//! The engine's snapshot returns the entries and the rows. An entry of a secondary index leads to the
//! clustered row, which exists in the same snapshot by construction. The cursor does not read the row if all
//! wanted columns can be decoded from the entry ([`Covering`]).
//!
//! If the caller accepts any order ([`TableCursor::in_any_order`]) and the batch is large, the cursor visits
//! its entries roughly in clustered key order. Successive rows are then often on the same page.
//!
//! # Locking reads
//! ## A candidate of a range
//! Batches of the newest entries are read without locks. For each candidate the cursor locks the clustered
//! row, reads it again under the lock, and compares it with the entry that led to it. If the row is gone, or
//! has moved within the scanned index, the cursor skips the candidate. What it does next depends on the lock:
//! - This transaction did not hold the lock before: another transaction changed the row. The batch is read
//!   again from this entry on, because the row may have moved to a later place, and a key of a unique index
//!   may now lead to another row. A cursor that locks ranges does not do this here: it notices new entries
//!   when it locks the next part of the range (below).
//! - This transaction already held the lock: it moved or deleted the row itself, and must not change it
//!   twice. The batch is not read again.
//!
//! There are two exceptions:
//! - If the caller changes only the current row, and not its clustered key ([`RowChanges::Current`]), a
//!   clustered scan still locks the row, but takes it from the batch without reading it again, as long as the
//!   engines have applied nothing since the batch was read ([`AppliedMark`]).
//! - UPDATE under READ COMMITTED ([`WaitPolicy::IfItMatches`]) first evaluates the newest committed version
//!   of a row that another transaction has locked. It waits for the lock only if this version matches.
//!
//! ## A point
//! For a point of the clustered index, the cursor locks the key first and then reads the row once. For a
//! point of a unique index it first reads the entry, which contains the clustered key. If another transaction
//! has removed the entry by the time that the row is locked, the cursor looks it up again. If there is no
//! entry, a cursor that locks ranges locks the absent key in the unique index; other cursors lock nothing.
//!
//! ## Locks that remain
//! | | READ COMMITTED and READ UNCOMMITTED | REPEATABLE READ and SERIALIZABLE |
//! |---|---|---|
//! | a row that the filter rejects | unlocked, unless it was locked before | stays locked, like InnoDB's record locks |
//! | a clustered key without a row | unlocked, unless it was locked before | stays locked, so that no other transaction inserts it |
//! | the range that was read | not locked, unless [`TableCursor::lock_ranges`] asks for it | locked, entry by entry ([`RangeScan`]) |
//!
//! Before a scan locks the next part of a range, it waits for other transactions' uncommitted entries in that
//! part. If there was such an entry when the batch was read, or there has been one since, the scan then reads
//! the batch again. With SKIP LOCKED it does not wait. Temporary tables have no range locks.
//!
//! With `innodb_snapshot_isolation`, a locking read fails with error 1020 at the first row it locks that has
//! changed since the transaction's view, even if the filter would reject this row.

mod gather;
mod stored;

use std::sync::Arc;

use cohort_catalog::{ROWS, Table};
use cohort_commit::AppliedMark;
use cohort_engine::{Batch, Direction, KeyRange, ReadAt, ReadView, ScanRequest, SearchHint};
use cohort_locks::{RangeScan, RowMode, Step, StepTo, Towards, Uncommitted};
use cohort_optimize::{Columns, ReadMode};
use cohort_table::{OpenTable, definition_changed};
use cohort_trx::{Counted, RowLock, SessionTrx, WaitPolicy, engine_error};
use cohort_types::{SqlError, SqlResult, Value, successor};

use crate::access::{KeySpan, KeySpans};
use crate::covering::Covering;
use crate::row_keys::RowKeys;

pub(crate) use gather::Into;
pub use stored::{Stored, StoredBatch};

/// Read options of a cursor.
#[derive(Clone, Debug)]
pub struct CursorOptions {
    pub mode: ReadMode,
    pub columns: Columns,
    pub changes: RowChanges,
    /// Number of rows the caller is likely to read (LIMIT). Keeps batches small.
    pub rows_expected: Option<u64>,
}

/// Changes that the transaction itself may make to the table between two rows of a locking scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowChanges {
    /// Any change: the cursor reads each row again under its lock.
    #[default]
    Any,
    /// At most a change of the current row that leaves its clustered key as it is.
    Current,
}

/// The whole condition on a row, evaluated again under the lock.
pub type RowFilter<'f> = dyn FnMut(&[Value]) -> SqlResult<bool> + 'f;

/// Accepts every row.
#[inline]
pub fn every_row(_: &[Value]) -> SqlResult<bool> {
    Ok(true)
}

/// Removes from `range` the part that a scan has already read, up to `key`.
fn cut_after(range: &mut KeyRange, key: &[u8], reverse: bool) {
    match reverse {
        false => range.start = Some(successor(key)),
        true => range.end = Some(key.to_vec()),
    }
}

const BATCH_BYTES: usize = 1 << 20;
/// Initial capacity of the batch buffer; larger batches grow it.
const BATCH_BYTES_FIRST: usize = 32 << 10;
const BATCH_ENTRIES_FIRST: usize = 128;
const BATCH_ENTRIES_MAX: usize = 4096;
/// Minimum number of entries for which a batch is sorted by row, if the caller accepts any order.
const ORDERED_ENTRIES_MIN: usize = 256;

/// An open scan. It borrows nothing: each call gets the transaction.
pub struct TableCursor {
    table: Arc<OpenTable>,
    options: CursorOptions,
    view: Option<ReadView>,
    spans: KeySpans,
    span_next: usize,
    /// Unread rest of the current span.
    range: Option<KeyRange>,
    batch: Batch,
    batch_at: usize,
    /// Visiting order of the batch's entries. If empty, they are visited in index order.
    batch_order: Vec<(u64, u32)>,
    in_any_order: bool,
    batch_entries: usize,
    /// Applied mark from before the batch was read, if its rows need no second read under their locks. Valid
    /// while the engines' mark is unchanged.
    batch_mark: Option<AppliedMark>,
    /// Status counters: of the next search in the span (`look`, if it counts separately), and of each step
    /// after it (`step`).
    look: Option<Counted>,
    step: Counted,
    /// Clustered key of the row returned last (locking reads), or of the point being read.
    key: Vec<u8>,
    /// Row bytes, if they are not in the batch.
    value: Vec<u8>,
    index_key: Vec<u8>,
    covering: Option<Covering>,
    passing: Option<Passing>,
    /// In a locking scan, the range that the batch was read from; the batch is its first part.
    batch_range: KeyRange,
    /// Search hints: the last position read in the index, and in the clustered index.
    hint: SearchHint,
    near_row: SearchHint,
    /// A search that replaces the spans: it returns keys of rows.
    row_keys: Option<RowKeys>,
}

/// Range-lock state of a cursor that locks ranges.
struct Passing {
    scan: RangeScan,
    /// The batch is the last one of its span, and the end of the span is not locked yet.
    ends_span: bool,
}

/// Location of the next candidate.
#[derive(Clone, Copy)]
enum Candidate {
    /// Entry `batch_at - 1` of the batch.
    Entry,
    /// A point whose key is in `index_key`.
    Point,
}

impl TableCursor {
    /// Opens a scan of `spans`, which [`crate::resolve()`] computed.
    pub fn open(
        trx: &mut SessionTrx,
        table: &Arc<Table>,
        spans: KeySpans,
        mut options: CursorOptions,
    ) -> SqlResult<TableCursor> {
        let table = trx.open_table(table)?;
        if table.table().is_sequence() {
            // Never lock the sequence row here: that would block NEXTVAL in all sessions, including this one.
            options.mode = ReadMode::Snapshot;
        }
        let view = match options.mode {
            ReadMode::Snapshot => Some(trx.read_view()?),
            _ => None,
        };
        // A view older than the index would find it empty. Locking reads are refused, too: a transaction that
        // relies on what it has read must not change rows that its view cannot see.
        let since = table.rows.since.max(table.indexes[spans.index].since);
        if trx.has_view_before(since) {
            return Err(definition_changed());
        }
        let mut cursor = TableCursor::open_newest(trx, &table, spans, options)?;
        cursor.view = view;
        if cursor.view.is_some() {
            cursor.covering = Covering::of(&cursor.table, cursor.spans.index, &cursor.options.columns);
        }
        Ok(cursor)
    }

    /// Opens a scan of the newest rows, regardless of the transaction's view.
    pub(super) fn open_newest(
        trx: &mut SessionTrx,
        table: &Arc<OpenTable>,
        spans: KeySpans,
        options: CursorOptions,
    ) -> SqlResult<TableCursor> {
        let mut cursor = TableCursor {
            table: Arc::clone(table),
            options,
            view: None,
            spans,
            span_next: 0,
            range: None,
            batch: Batch::default(),
            batch_at: 0,
            batch_order: Vec::new(),
            in_any_order: false,
            batch_entries: 0,
            batch_mark: None,
            look: None,
            step: Counted::ReadNext,
            key: Vec::new(),
            value: Vec::new(),
            index_key: Vec::new(),
            covering: None,
            passing: None,
            batch_range: KeyRange::default(),
            hint: SearchHint::default(),
            near_row: SearchHint::default(),
            row_keys: None,
        };
        cursor.row_keys = RowKeys::of(&cursor.table, &mut cursor.spans);
        if let Some(wait) = cursor.options.mode.locks()
            && !cursor.table.is_temporary()
            && trx.locks_ranges()
        {
            cursor.passing = Some(cursor.new_passing(wait));
        }
        cursor.batch_entries = cursor.first_batch_entries();
        Ok(cursor)
    }

    /// Locks the ranges the scan reads, at every isolation level. A caller that needs all rows that refer to
    /// another row must not miss rows that move to a place the scan has already left.
    pub(super) fn lock_ranges(mut self) -> TableCursor {
        if let Some(wait) = self.options.mode.locks()
            && !self.table.is_temporary()
            && self.passing.is_none()
        {
            self.passing = Some(self.new_passing(wait));
        }
        self
    }

    /// Allows the cursor to return rows in any order.
    pub fn in_any_order(mut self) -> TableCursor {
        self.in_any_order = true;
        self
    }

    /// Returns the read mode.
    pub(super) fn mode(&self) -> ReadMode {
        self.options.mode
    }

    /// Restarts the cursor on other spans of the same index, for the inner table of a join.
    #[inline]
    pub fn reopen(&mut self, spans: KeySpans) {
        let index = std::mem::replace(&mut self.spans, spans).index;
        self.row_keys = RowKeys::of(&self.table, &mut self.spans);
        debug_assert_eq!(self.spans.index, index, "places kept in an index are of that index");
        self.span_next = 0;
        self.range = None;
        self.look = None;
        self.batch.clear();
        self.batch_at = 0;
        self.batch_entries = self.first_batch_entries();
        if let Some(passing) = &mut self.passing {
            passing.ends_span = false;
        }
    }

    /// Writes the next row that passes the filter to `row`, one value per column of the table. Returns false
    /// at the end.
    pub fn next(
        &mut self,
        trx: &mut SessionTrx,
        filter: &mut RowFilter<'_>,
        row: &mut Vec<Value>,
    ) -> SqlResult<bool> {
        while let Some(candidate) = self.candidate(trx)? {
            let is_entry = matches!(candidate, Candidate::Entry);
            let found = match self.options.mode {
                ReadMode::Snapshot => self.read_snapshot(trx, candidate, row)? && filter(row)?,
                ReadMode::LockShare(wait) => {
                    self.read_locked(trx, candidate, RowMode::Shared, wait, filter, row)?
                }
                ReadMode::LockExclusive(wait) => {
                    self.read_locked(trx, candidate, RowMode::Exclusive, wait, filter, row)?
                }
            };
            if is_entry || found {
                self.count_read(trx, 1);
            }
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Counts rows read by the index, or by the scan of the whole table.
    #[inline]
    fn count_read(&self, trx: &SessionTrx, rows: u64) {
        let is_scan = self.step == Counted::ReadRndNext;
        trx.count_read(&self.table, (!is_scan).then_some(self.spans.index), rows);
    }

    /// Returns the clustered key of the row returned last. Locking reads only.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the key of the index entry that led to the row returned last. Range scans only.
    #[inline]
    pub fn entry_key(&self) -> &[u8] {
        self.batch.get(self.current()).0
    }

    /// Returns the batch index of the entry that was taken last.
    fn current(&self) -> usize {
        let n = self.batch_at - 1;
        self.batch_order.get(n).map_or(n, |(_, entry)| *entry as usize)
    }

    /// Returns the open table with its codecs.
    pub fn open_table(&self) -> &OpenTable {
        &self.table
    }

    /// Returns true if rows are available in whole batches ([`TableCursor::take_batch`]): range scans of a
    /// snapshot, on the clustered index or on a covering index.
    pub(super) fn reads_batches(&self) -> bool {
        let is_range = |span: &KeySpan| matches!(span, KeySpan::Range(_));
        let has_all = self.spans.index == ROWS || self.covering.is_some();
        self.view.is_some() && self.row_keys.is_none() && has_all && self.spans.spans.iter().all(is_range)
    }

    /// Returns the decoder of index entries, or `None` if entries are whole rows.
    pub(super) fn covering(&self) -> Option<&Covering> {
        self.covering.as_ref()
    }

    /// Returns the position of the scanned index.
    pub(super) fn index(&self) -> usize {
        self.spans.index
    }

    /// Consumes the remaining entries of the batch and returns their range. Reads the next batch if none
    /// remain. Returns `None` at the end. Requires [`TableCursor::reads_batches`].
    pub(super) fn take_batch(&mut self, trx: &mut SessionTrx) -> SqlResult<Option<std::ops::Range<usize>>> {
        if self.candidate(trx)?.is_none() {
            return Ok(None);
        }
        let first = self.batch_at - 1;
        let more = self.batch.len() - self.batch_at;
        trx.counts().count_many(self.step, more as u64);
        self.count_read(trx, more as u64 + 1);
        self.batch_at = self.batch.len();
        Ok(Some(first..self.batch.len()))
    }

    /// Returns key and value of an entry of the batch.
    #[inline]
    pub(super) fn entry(&self, n: usize) -> (&[u8], &[u8]) {
        self.batch.get(n)
    }

    /// Returns the row bytes of an entry of the clustered index.
    #[inline]
    pub(super) fn value(&self, n: usize) -> &[u8] {
        self.batch.get(n).1
    }

    /// Decodes the wanted columns of an entry into a row of the whole table.
    pub(super) fn decode_entry(&self, n: usize, columns: &Columns, row: &mut Vec<Value>) -> SqlResult<()> {
        let (key, value) = self.batch.get(n);
        match &self.covering {
            Some(covering) => covering.decode(&self.table, self.spans.index, key, value, row),
            None => self.table.decode(value, columns, row),
        }
    }

    fn first_batch_entries(&self) -> usize {
        let expected = self.options.rows_expected.map_or(BATCH_ENTRIES_FIRST, |rows| {
            usize::try_from(rows).unwrap_or(BATCH_ENTRIES_MAX).saturating_add(1)
        });
        expected.clamp(1, self.table.entries_in(BATCH_BYTES).clamp(1, BATCH_ENTRIES_MAX))
    }

    fn candidate(&mut self, trx: &mut SessionTrx) -> SqlResult<Option<Candidate>> {
        loop {
            if self.batch_at < self.batch.len() {
                if self.passing.is_some() && !self.pass_entry(trx)? {
                    continue;
                }
                self.batch_at += 1;
                if let Some(look) = self.look.replace(self.step) {
                    trx.counts().count(look);
                }
                return Ok(Some(Candidate::Entry));
            }
            if let Some(range) = self.range.take() {
                self.fill(trx, range)?;
                continue;
            }
            if self.passing.as_ref().is_some_and(|passing| passing.ends_span) && !self.pass_end(trx)? {
                continue;
            }
            // The search that finds the end of a span.
            if let Some(look) = self.look.take() {
                trx.counts().count(look);
                trx.counts().count_empty();
            }
            if let Some(keys) = &mut self.row_keys {
                let found = keys.next(&self.table, trx, self.view.as_ref(), &mut self.index_key)?;
                trx.counts().count(Counted::ReadKey);
                if !found {
                    trx.counts().count_empty();
                }
                return Ok(found.then_some(Candidate::Point));
            }
            let Some(span) = self.spans.spans.get_mut(self.span_next) else { return Ok(None) };
            self.span_next += 1;
            match span {
                KeySpan::Point(key) => {
                    trx.counts().count(Counted::ReadKey);
                    self.index_key.clear();
                    self.index_key.extend_from_slice(key);
                    return Ok(Some(Candidate::Point));
                }
                KeySpan::Range(range) => {
                    let range = std::mem::take(range);
                    self.begin_range(trx, &range);
                    self.range = Some(range);
                }
            }
        }
    }

    fn new_passing(&self, wait: WaitPolicy) -> Passing {
        let towards = if self.spans.reverse { Towards::Down } else { Towards::Up };
        let uncommitted = match wait {
            WaitPolicy::SkipLocked => Uncommitted::Skip,
            WaitPolicy::Wait | WaitPolicy::WaitFor(_) | WaitPolicy::NoWait | WaitPolicy::IfItMatches => {
                Uncommitted::Block
            }
        };
        let scan = RangeScan::new(self.table.indexes[self.spans.index].id, towards, uncommitted);
        Passing { scan, ends_span: false }
    }

    /// Locks the range up to the next entry of the batch. Returns false if new entries may have appeared in
    /// that range; then the batch is read again.
    fn pass_entry(&mut self, trx: &mut SessionTrx) -> SqlResult<bool> {
        let key = self.batch.get(self.batch_at).0;
        let step = Self::pass(&self.passing, self.options.mode, trx, StepTo::Entry(key))?;
        Ok(self.is_passed(step))
    }

    /// Locks the range up to the end of the span. Returns false as in [`TableCursor::pass_entry`].
    fn pass_end(&mut self, trx: &mut SessionTrx) -> SqlResult<bool> {
        let step = Self::pass(&self.passing, self.options.mode, trx, StepTo::End)?;
        if let Some(passing) = &mut self.passing {
            passing.ends_span = false;
        }
        Ok(self.is_passed(step))
    }

    fn pass(
        passing: &Option<Passing>,
        mode: ReadMode,
        trx: &mut SessionTrx,
        to: StepTo<'_>,
    ) -> SqlResult<Step> {
        let (Some(passing), Some(wait)) = (passing, mode.locks()) else { return Ok(Step::Passed) };
        trx.advance(&passing.scan, to, wait)
    }

    fn is_passed(&mut self, step: Step) -> bool {
        let Some(passing) = self.passing.as_mut().filter(|_| step == Step::Again) else { return true };
        passing.ends_span = false;
        self.read_again();
        false
    }

    /// Discards the unread part of the batch, so that it is read again.
    fn read_again(&mut self) {
        let mut range = std::mem::take(&mut self.batch_range);
        if self.batch_at > 0 {
            cut_after(&mut range, self.batch.get(self.batch_at - 1).0, self.spans.reverse);
        }
        self.batch.clear();
        self.batch_at = 0;
        self.range = Some(range);
    }

    /// Handles a candidate whose row has moved or is gone, because another transaction changed it. Its entry
    /// is read again as well: in a unique index it may lead to another row now.
    fn row_has_moved(&mut self, entry: Option<usize>) {
        if entry.is_some() && self.passing.is_none() {
            self.batch_at -= 1;
            self.read_again();
        }
    }

    /// Counts the start of a range, and sets the counters for the searches in it.
    fn begin_range(&mut self, trx: &SessionTrx, range: &KeyRange) {
        let is_whole = range.start.is_none() && range.end.is_none();
        if is_whole && self.spans.index == ROWS && !self.spans.reverse {
            (self.look, self.step) = (Some(Counted::ReadRndNext), Counted::ReadRndNext);
            return;
        }
        let (end, step) = match self.spans.reverse {
            false => (Counted::ReadFirst, Counted::ReadNext),
            true => (Counted::ReadLast, Counted::ReadPrev),
        };
        trx.counts().count(if is_whole { end } else { Counted::ReadKey });
        self.step = step;
    }

    /// Reads the next batch of `range` and keeps the rest of the range.
    fn fill(&mut self, trx: &mut SessionTrx, mut range: KeyRange) -> SqlResult<()> {
        trx.check_killed()?;
        if let Some(passing) = &mut self.passing {
            trx.watch(&passing.scan, &range)?;
        }
        if self.view.is_none() {
            self.batch_range.clone_from(&range);
        }
        let direction = if self.spans.reverse { Direction::Backward } else { Direction::Forward };
        let index = self.table.indexes[self.spans.index].id;
        self.batch.clear();
        self.batch_at = 0;
        let entries = self.batch_entries.min(BATCH_ENTRIES_FIRST);
        self.batch.reserve(entries, (entries * self.table.entry_bytes()).min(BATCH_BYTES_FIRST));
        let at = match &self.view {
            Some(view) => ReadAt::View(view),
            None => ReadAt::Latest,
        };
        let is_kept = self.options.changes == RowChanges::Current && self.spans.index == ROWS;
        self.batch_mark = is_kept.then(|| trx.env().commit.applied_mark());
        let more = loop {
            let engine = trx.engine(self.table.engine);
            let more = engine
                .scan_with_hint(
                    &ScanRequest { at, index, range: &range, direction, limit: self.batch_entries },
                    &mut self.batch,
                    &mut self.hint,
                )
                .map_err(engine_error)?;
            if !more || !self.batch.is_empty() {
                break more;
            }
            trx.check_killed()?;
            self.batch.cut(&mut range, direction);
        };
        if self.view.is_none() && !self.table.is_temporary() {
            trx.note_search();
        }
        self.table.note_entries(self.batch.size_bytes(), self.batch.len());
        self.order_batch()?;
        let room = self.table.entries_in(BATCH_BYTES).clamp(1, BATCH_ENTRIES_MAX);
        self.batch_entries = (self.batch_entries * 4).min(room);
        if more {
            self.batch.cut(&mut range, direction);
            self.range = Some(range);
        }
        if let Some(passing) = &mut self.passing {
            passing.ends_span = !more;
        }
        Ok(())
    }

    /// Sorts the batch's entries by the rows they lead to, if that pays.
    fn order_batch(&mut self) -> SqlResult<()> {
        self.batch_order.clear();
        let reads_rows = self.leads_to_rows() && self.view.is_some();
        if !self.in_any_order || !reads_rows || self.batch.len() < ORDERED_ENTRIES_MIN {
            return Ok(());
        }
        order_by_rows(&self.table, self.spans.index, &self.batch, &mut self.batch_order)
    }

    fn read_snapshot(
        &mut self,
        trx: &mut SessionTrx,
        candidate: Candidate,
        row: &mut Vec<Value>,
    ) -> SqlResult<bool> {
        let is_clustered = self.spans.index == ROWS;
        if let (Candidate::Entry, true) = (&candidate, is_clustered) {
            let (_, value) = self.batch.get(self.batch_at - 1);
            self.table.decode(value, &self.options.columns, row)?;
            return Ok(true);
        }
        if let (Candidate::Entry, Some(covering)) = (&candidate, &self.covering) {
            let (key, value) = self.batch.get(self.batch_at - 1);
            covering.decode(&self.table, self.spans.index, key, value, row)?;
            return Ok(true);
        }
        // Moved out during the read, to avoid an atomic reference count.
        let view = self.view.take().expect("snapshot reads have a view");
        let is_point = matches!(candidate, Candidate::Point);
        let found = self.read_row(trx, ReadAt::View(&view), candidate);
        self.view = Some(view);
        if !found? {
            if is_point {
                trx.counts().count_empty();
            }
            return Ok(false);
        }
        self.table.decode(&self.value, &self.options.columns, row)?;
        Ok(true)
    }

    /// Reads the candidate's row into `value`.
    fn read_row(&mut self, trx: &mut SessionTrx, at: ReadAt<'_>, candidate: Candidate) -> SqlResult<bool> {
        if !self.find_clustered_key(trx, at, candidate)? {
            return Ok(false);
        }
        let clustered = self.table.rows.id;
        let engine = trx.engine(self.table.engine);
        let found = engine.get_with_hint(at, clustered, &self.key, &mut self.value, &mut self.near_row);
        found.map_err(engine_error)
    }

    /// Writes the candidate's clustered key to `key`. Returns false if a point of a unique index has no
    /// entry.
    fn find_clustered_key(
        &mut self,
        trx: &mut SessionTrx,
        at: ReadAt<'_>,
        candidate: Candidate,
    ) -> SqlResult<bool> {
        let index = self.spans.index;
        match candidate {
            Candidate::Entry => {
                let (key, value) = self.batch.get(self.current());
                let clustered = self.table.clustered_key_of(index, key, value)?;
                self.key.clear();
                self.key.extend_from_slice(clustered);
                Ok(true)
            }
            Candidate::Point if index == ROWS => {
                std::mem::swap(&mut self.key, &mut self.index_key);
                Ok(true)
            }
            Candidate::Point => {
                debug_assert!(self.table.indexes[index].kind.is_unique());
                let engine = trx.engine(self.table.engine);
                let id = self.table.indexes[index].id;
                let found = engine
                    .get_with_hint(at, id, &self.index_key, &mut self.key, &mut self.hint)
                    .map_err(engine_error)?;
                if self.view.is_none() && matches!(at, ReadAt::Latest) {
                    trx.note_search();
                }
                Ok(found)
            }
        }
    }

    fn read_locked(
        &mut self,
        trx: &mut SessionTrx,
        candidate: Candidate,
        mode: RowMode,
        wait: WaitPolicy,
        filter: &mut RowFilter<'_>,
        row: &mut Vec<Value>,
    ) -> SqlResult<bool> {
        let entry = matches!(candidate, Candidate::Entry).then_some(self.batch_at.wrapping_sub(1));
        let is_unique_point = entry.is_none() && self.spans.index != ROWS;
        loop {
            if !self.find_clustered_key(trx, ReadAt::Latest, candidate)? {
                match self.passing.is_some() && self.lock_absent(trx, mode, wait)? {
                    true => continue,
                    false => {
                        if entry.is_none() {
                            trx.counts().count_empty();
                        }
                        return Ok(false);
                    }
                }
            }
            let Some(lock) = self.lock_candidate(trx, entry, mode, wait, filter, row)? else {
                return Ok(false);
            };
            let clustered = self.table.rows.id;
            let is_there = self.read_newest(trx, entry, row)?;
            if let Some(view) = trx.view_to_keep() {
                check_unchanged(&self.table, trx, &view, &self.key)?;
            }
            if !is_there && is_unique_point {
                // Another transaction removed the entry. The key now leads to another row or to none; some
                // isolation levels lock its absence.
                trx.unlock_unmatched(clustered, &self.key, lock);
                trx.check_killed()?;
                continue;
            }
            let matches = is_there && filter(row)?;
            if !matches {
                trx.unlock_unmatched(clustered, &self.key, lock);
            }
            if !is_there && lock == RowLock::New {
                self.row_has_moved(entry);
            }
            if !is_there && entry.is_none() {
                trx.counts().count_empty();
            }
            return Ok(matches);
        }
    }

    /// Locks the candidate's row. Returns `None` if it is skipped: by SKIP LOCKED, or because a locked row
    /// does not match and needs no wait.
    fn lock_candidate(
        &mut self,
        trx: &mut SessionTrx,
        entry: Option<usize>,
        mode: RowMode,
        wait: WaitPolicy,
        filter: &mut RowFilter<'_>,
        row: &mut Vec<Value>,
    ) -> SqlResult<Option<RowLock>> {
        let clustered = self.table.rows.id;
        let looks_first = wait == WaitPolicy::IfItMatches && entry.is_some() && self.passing.is_none();
        let lock = match looks_first {
            true => trx.lock_row(clustered, &self.key, mode, WaitPolicy::SkipLocked)?,
            false => trx.lock_row(clustered, &self.key, mode, wait)?,
        };
        if lock != RowLock::Skipped {
            return Ok(Some(lock));
        }
        if !looks_first {
            return Ok(None);
        }
        if !self.read_newest(trx, entry, row)? {
            self.row_has_moved(entry);
            return Ok(None);
        }
        if !filter(row)? {
            return Ok(None);
        }
        trx.lock_row(clustered, &self.key, mode, WaitPolicy::Wait).map(Some)
    }

    /// Reads the newest version of the row with clustered key `key`. Takes it from the batch if the batch is
    /// still current (a caller without the row's lock reads it again under the lock). Returns false if the
    /// row does not exist or has moved.
    fn read_newest(
        &mut self,
        trx: &mut SessionTrx,
        entry: Option<usize>,
        row: &mut Vec<Value>,
    ) -> SqlResult<bool> {
        if let (Some(n), Some(mark)) = (entry, self.batch_mark)
            && trx.env().commit.applied_mark() == mark
        {
            self.table.decode(self.batch.get(n).1, &Columns::All, row)?;
            return Ok(true);
        }
        let clustered = self.table.rows.id;
        let engine = trx.engine(self.table.engine);
        let is_there =
            engine.get(ReadAt::Latest, clustered, &self.key, &mut self.value).map_err(engine_error)?;
        if !is_there {
            return Ok(false);
        }
        self.table.decode(&self.value, &Columns::All, row)?;
        self.still_at(entry, row)
    }

    /// Locks the key in `index_key`, which has no entry in its unique index, to keep it absent. Returns true
    /// if an entry has appeared meanwhile.
    fn lock_absent(&mut self, trx: &mut SessionTrx, mode: RowMode, wait: WaitPolicy) -> SqlResult<bool> {
        let id = self.table.indexes[self.spans.index].id;
        let lock = trx.lock_row(id, &self.index_key, mode, wait)?;
        if lock == RowLock::Skipped || !self.find_clustered_key(trx, ReadAt::Latest, Candidate::Point)? {
            return Ok(false);
        }
        // The row exists now, so its own lock replaces this one.
        trx.unlock_new(id, &self.index_key, lock);
        Ok(true)
    }

    /// Returns true if the row, read again under its lock, still has the index entry that led to it.
    fn still_at(&mut self, entry: Option<usize>, row: &[Value]) -> SqlResult<bool> {
        if self.spans.index == ROWS {
            return Ok(true);
        }
        let found_by = match entry {
            Some(n) => self.batch.get(n).0,
            None => &self.index_key,
        };
        let mut now = std::mem::take(&mut self.value);
        self.table.index_key(self.spans.index, row, &self.key, &mut now)?;
        let same = now == found_by;
        self.value = now;
        Ok(same)
    }
}

/// Appends the numbers of index entries, sorted by the rows they lead to. The order is approximate: it
/// compares the first 8 bytes of the rows' keys.
pub(crate) fn order_by_rows(
    table: &OpenTable,
    index: usize,
    entries: &Batch,
    order: &mut Vec<(u64, u32)>,
) -> SqlResult<()> {
    for (n, (key, value)) in entries.iter().enumerate() {
        let row_key = table.clustered_key_of(index, key, value)?;
        let mut front = [0; 8];
        let len = row_key.len().min(front.len());
        front[..len].copy_from_slice(&row_key[..len]);
        order.push((u64::from_be_bytes(front), n as u32));
    }
    order.sort_unstable();
    Ok(())
}

/// Returns error 1020 if the newest version of a locked row differs from the version in the view.
pub(crate) fn check_unchanged(
    table: &OpenTable,
    trx: &mut SessionTrx,
    view: &ReadView,
    key: &[u8],
) -> SqlResult<()> {
    let clustered = table.rows.id;
    let engine = trx.engine(table.engine);
    let (mut then, mut now) = (Vec::new(), Vec::new());
    let was = engine.get(ReadAt::View(view), clustered, key, &mut then).map_err(engine_error)?;
    let is = engine.get(ReadAt::Latest, clustered, key, &mut now).map_err(engine_error)?;
    match (was, &then) == (is, &now) {
        true => Ok(()),
        false => Err(SqlError::record_changed(&table.table.name.table)),
    }
}
