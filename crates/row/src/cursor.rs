//! [`TableCursor`]: the rows of one table, one after the other.
//!
//! # Snapshot reads
//! Entries come in batches from the engine's snapshot. An entry of a secondary index leads to the clustered
//! row in the same snapshot, which is there by construction. Where the caller wants many rows and no order
//! ([`TableCursor::in_any_order`]), the entries of a batch are taken in the order of their rows: neighbours
//! lie in one page, and pages that were read a moment ago are near.
//!
//! # Locking reads
//! Batches of the newest entries are only *candidates*. For each the clustered row is locked, read again
//! under the lock, and compared with the entry it was found by: a row that meanwhile moved elsewhere in the
//! scanned index is passed over, and the batch is read again from its entry on: the row may have moved there,
//! and a key of a unique index may have come to another row. A row whose lock was held before has been moved
//! by this transaction, which must not change it twice: then the batch stays. Then the caller's filter
//! decides; a row that does not match is unlocked again under READ COMMITTED (and stays locked otherwise, as
//! InnoDB's record locks).
//!
//! Under REPEATABLE READ and SERIALIZABLE the scan also locks the range that it has passed, entry by entry
//! ([`RangeScan`]); what somebody else has put there and not committed is waited for, and the batch is read
//! again.
//!
//! A clustered scan whose caller changes nothing but the row it is at takes the row from the batch when
//! nothing has become visible since the batch was read ([`AppliedMark`]).
//!
//! A point access by the whole clustered key locks first and reads once. The key stays locked when there is
//! no row: nobody inserts it before this transaction ends. A point of a unique index that has no entry is
//! locked in the same way, at the levels that lock ranges.
//!
//! UPDATE under READ COMMITTED looks at the newest version of a row that somebody else has locked, and waits
//! for it only if that matches.
//!
//! When all columns wanted lie in the entry itself (in a form that gives the value back), the row is not read
//! ([`Covering`]).

mod gather;
mod stored;

use std::sync::Arc;

use cohort_catalog::{IndexKind, Table};
use cohort_commit::AppliedMark;
use cohort_engine::{Batch, Direction, KeyRange, Near, ReadAt, ReadView};
use cohort_locks::{RangeScan, RowMode, Step, StepTo, Towards, Uncommitted};
use cohort_optimize::{Columns, ReadMode};
use cohort_table::{OpenTable, definition_changed};
use cohort_trx::{Counted, RowLock, SessionTrx, WaitPolicy, engine_error};
use cohort_types::{ErrorCode, SqlError, SqlResult, Value, successor};

use crate::access::{KeySpan, KeySpans};
use crate::covering::Covering;
use crate::word_scan::WordScan;

pub(crate) use gather::Into;
pub use stored::{Stored, StoredBatch};

/// How a cursor reads.
#[derive(Clone, Debug)]
pub struct CursorOptions {
    pub mode: ReadMode,
    pub columns: Columns,
    pub changes: RowChanges,
    /// Rows that the caller will hardly go beyond (LIMIT), to keep batches small.
    pub rows_expected: Option<u64>,
}

/// What the transaction itself may do to the table between two rows of a locking scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowChanges {
    /// Anything: each row is read again under its lock.
    #[default]
    Any,
    /// At most it changes the row yielded last, in its place in the clustered index.
    Current,
}

/// The whole condition on a row, checked again under the lock.
pub type RowFilter<'f> = dyn FnMut(&[Value]) -> SqlResult<bool> + 'f;

/// Accepts every row.
#[inline]
pub fn every_row(_: &[Value]) -> SqlResult<bool> {
    Ok(true)
}

/// Takes off a range what a scan has passed, up to `key`.
fn cut_behind(range: &mut KeyRange, key: &[u8], reverse: bool) {
    match reverse {
        false => range.start = Some(successor(key)),
        true => range.end = Some(key.to_vec()),
    }
}

const BATCH_BYTES: usize = 1 << 20;
/// Room made before a batch is read; a larger one grows.
const BATCH_BYTES_FIRST: usize = 32 << 10;
const BATCH_ENTRIES_FIRST: usize = 128;
const BATCH_ENTRIES_MAX: usize = 4096;
/// Entries of a batch that are put in the order of their rows, where any order will do.
const ORDERED_ENTRIES_MIN: usize = 256;

/// An open scan. It borrows nothing: the transaction is given to each call.
pub struct TableCursor {
    table: Arc<OpenTable>,
    options: CursorOptions,
    view: Option<ReadView>,
    spans: KeySpans,
    span_next: usize,
    /// What is left of the span being scanned.
    range: Option<KeyRange>,
    batch: Batch,
    batch_at: usize,
    /// The batch's entries in the order in which they are taken; empty: in their own.
    batch_order: Vec<(u64, u32)>,
    in_any_order: bool,
    batch_entries: usize,
    /// Taken before the batch was read, where a row of it need not be read again under its lock as long as
    /// the mark stays.
    batch_mark: Option<AppliedMark>,
    /// What the next look into the span counts as, if it is one of its own, and the looks after it.
    look: Option<Counted>,
    step: Counted,
    /// Clustered key of the row yielded last (locking reads), or of the point that is read.
    key: Vec<u8>,
    /// Row bytes, when they do not lie in the batch.
    value: Vec<u8>,
    index_key: Vec<u8>,
    covering: Option<Covering>,
    passing: Option<Passing>,
    /// What the batch is the first part of, in a locking scan.
    batch_range: KeyRange,
    /// Where the index was read last, and where the rows that its entries lead to.
    near: Near,
    near_row: Near,
    /// Instead of spans: the keys of rows that have words.
    words: Option<WordScan>,
}

/// What a cursor that locks ranges keeps of them.
struct Passing {
    scan: RangeScan,
    /// The batch is the last one of its span, whose end is not locked yet.
    ends_span: bool,
}

/// Where the next candidate lies.
#[derive(Clone, Copy)]
enum Candidate {
    /// `batch_at - 1` of the batch.
    Entry,
    /// A point: the key is in `index_key`.
    Point,
}

impl TableCursor {
    /// Opens a scan of `spans`, which [`crate::ResolveAccess`] made.
    pub fn open(
        trx: &mut SessionTrx,
        table: &Arc<Table>,
        spans: KeySpans,
        mut options: CursorOptions,
    ) -> SqlResult<TableCursor> {
        let table = trx.open_table(table)?;
        if table.table().is_sequence() {
            // A transaction that holds the row would hold up everybody's next number, its own too.
            options.mode = ReadMode::Snapshot;
        }
        let view = match options.mode {
            ReadMode::Snapshot => Some(trx.read_view()?),
            _ => None,
        };
        // A view that is older than the key space would find it empty. Locking reads are refused like the
        // others: a transaction that counts on what it has seen must not change what it cannot see.
        let since = table.indexes[0].since.max(table.indexes[spans.index].since);
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

    /// The same for the newest rows, whatever the transaction's view shows.
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
            near: Near::default(),
            near_row: Near::default(),
            words: None,
        };
        cursor.take_words();
        if let Some(wait) = cursor.options.mode.locks()
            && !cursor.table.is_temporary()
            && trx.locks_ranges()
        {
            cursor.passing = Some(cursor.new_passing(wait));
        }
        cursor.batch_entries = cursor.first_batch_entries();
        Ok(cursor)
    }

    /// Locks the ranges that it passes at every isolation level: a caller that looks for all rows that refer
    /// to another must meet those, too, that are moved behind it.
    pub(super) fn lock_ranges(mut self) -> TableCursor {
        if let Some(wait) = self.options.mode.locks()
            && !self.table.is_temporary()
            && self.passing.is_none()
        {
            self.passing = Some(self.new_passing(wait));
        }
        self
    }

    /// The caller wants no order of rows.
    pub fn in_any_order(mut self) -> TableCursor {
        self.in_any_order = true;
        self
    }

    /// How it reads.
    pub(super) fn mode(&self) -> ReadMode {
        self.options.mode
    }

    /// Starts again with other spans of the same index: the inner table of a join.
    #[inline]
    pub fn reopen(&mut self, spans: KeySpans) {
        let index = std::mem::replace(&mut self.spans, spans).index;
        self.take_words();
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

    /// The next row that passes the filter: `row` gets a value per column of the table. False at the end.
    pub fn next(
        &mut self,
        trx: &mut SessionTrx,
        filter: &mut RowFilter<'_>,
        row: &mut Vec<Value>,
    ) -> SqlResult<bool> {
        while let Some(candidate) = self.candidate(trx)? {
            let found = match self.options.mode {
                ReadMode::Snapshot => self.read_snapshot(trx, candidate, row)? && filter(row)?,
                ReadMode::LockShare(wait) => {
                    self.read_locked(trx, candidate, RowMode::Shared, wait, filter, row)?
                }
                ReadMode::LockExclusive(wait) => {
                    self.read_locked(trx, candidate, RowMode::Exclusive, wait, filter, row)?
                }
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Clustered key of the row yielded last. Locking reads only.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Key of the index entry that led to the row yielded last. Scans of ranges only.
    #[inline]
    pub fn entry_key(&self) -> &[u8] {
        self.batch.get(self.current()).0
    }

    /// The number of the entry of the batch that was taken last.
    fn current(&self) -> usize {
        let n = self.batch_at - 1;
        self.batch_order.get(n).map_or(n, |(_, entry)| *entry as usize)
    }

    /// The table's codecs.
    pub fn open_table(&self) -> &OpenTable {
        &self.table
    }

    /// Whether rows can be had by whole batches ([`TableCursor::take_batch`]): ranges in a snapshot, of the
    /// clustered index or of one whose entries have all that is wanted.
    pub(super) fn reads_batches(&self) -> bool {
        let is_range = |span: &KeySpan| matches!(span, KeySpan::Range(_));
        let has_all = self.spans.index == 0 || self.covering.is_some();
        self.view.is_some() && self.words.is_none() && has_all && self.spans.spans.iter().all(is_range)
    }

    /// How columns are read from entries; None where entries are rows.
    pub(super) fn covering(&self) -> Option<&Covering> {
        self.covering.as_ref()
    }

    /// The index that is read.
    pub(super) fn index(&self) -> usize {
        self.spans.index
    }

    /// Passes all entries that are left in the batch, reading the next one if there are none; None at the
    /// end. [`TableCursor::reads_batches`] has said yes.
    pub(super) fn take_batch(&mut self, trx: &mut SessionTrx) -> SqlResult<Option<std::ops::Range<usize>>> {
        if self.candidate(trx)?.is_none() {
            return Ok(None);
        }
        let first = self.batch_at - 1;
        let more = self.batch.len() - self.batch_at;
        trx.counts().count_many(self.step, more as u64);
        self.batch_at = self.batch.len();
        Ok(Some(first..self.batch.len()))
    }

    /// An entry of the batch.
    #[inline]
    pub(super) fn entry(&self, n: usize) -> (&[u8], &[u8]) {
        self.batch.get(n)
    }

    /// The row bytes of an entry of the clustered index.
    #[inline]
    pub(super) fn value(&self, n: usize) -> &[u8] {
        self.batch.get(n).1
    }

    /// Decodes the columns wanted of an entry into a row of the whole table.
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
            // The look that finds the end of a span.
            if let Some(look) = self.look.take() {
                trx.counts().count(look);
            }
            if let Some(words) = &mut self.words {
                let found = words.next(&self.table, trx, self.view.as_ref(), &mut self.index_key)?;
                trx.counts().count(Counted::ReadKey);
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

    /// Spans of a FULLTEXT index lead to points of the clustered one.
    fn take_words(&mut self) {
        self.words = None;
        let index = self.spans.index;
        if self.table.indexes[index].words.is_none() {
            return;
        }
        let spans = std::mem::take(&mut self.spans.spans).into_iter();
        let ranges = spans.filter_map(|span| match span {
            KeySpan::Range(range) => Some(range),
            KeySpan::Point(_) => None,
        });
        self.words = Some(WordScan::new(index, ranges.collect()));
        self.spans.index = 0;
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

    /// Locks the range up to the next entry of the batch. False: there may be others before it by now, and
    /// the batch is read again.
    fn pass_entry(&mut self, trx: &mut SessionTrx) -> SqlResult<bool> {
        let key = self.batch.get(self.batch_at).0;
        let step = Self::pass(&self.passing, self.options.mode, trx, StepTo::Entry(key))?;
        Ok(self.is_passed(step))
    }

    /// The same up to the end of the span.
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

    /// Has what is left of the batch read once more.
    fn read_again(&mut self) {
        let mut range = std::mem::take(&mut self.batch_range);
        if self.batch_at > 0 {
            cut_behind(&mut range, self.batch.get(self.batch_at - 1).0, self.spans.reverse);
        }
        self.batch.clear();
        self.batch_at = 0;
        self.range = Some(range);
    }

    /// The candidate's row is not where it was found: another transaction has moved it, or taken it out. Its
    /// entry is read again, too: in a unique index it may lead to another row by now.
    fn row_has_moved(&mut self, entry: Option<usize>) {
        if entry.is_some() && self.passing.is_none() {
            self.batch_at -= 1;
            self.read_again();
        }
    }

    /// Counts how a range is entered, and says what the looks into it count as.
    fn begin_range(&mut self, trx: &SessionTrx, range: &KeyRange) {
        let is_whole = range.start.is_none() && range.end.is_none();
        if is_whole && self.spans.index == 0 && !self.spans.reverse {
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

    /// Reads the next batch of `range` and keeps what is left of it.
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
        let is_kept = self.options.changes == RowChanges::Current && self.spans.index == 0;
        self.batch_mark = is_kept.then(|| trx.env().commit.applied_mark());
        let more = loop {
            let engine = trx.engine(self.table.engine);
            let more = engine
                .scan_near(at, index, &range, direction, self.batch_entries, &mut self.batch, &mut self.near)
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

    /// Puts the entries of the batch in the order of the rows that they lead to, where that pays.
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
        let is_clustered = self.spans.index == 0;
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
        // Taken out while it is read by, so that no reference to it is counted.
        let view = self.view.take().expect("snapshot reads have a view");
        let found = self.read_row(trx, ReadAt::View(&view), candidate);
        self.view = Some(view);
        if !found? {
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
        let clustered = self.table.indexes[0].id;
        let engine = trx.engine(self.table.engine);
        let found = engine.get_near(at, clustered, &self.key, &mut self.value, &mut self.near_row);
        found.map_err(engine_error)
    }

    /// Puts the candidate's clustered key into `key`; false if a point of a unique index has no entry.
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
            Candidate::Point if index == 0 => {
                std::mem::swap(&mut self.key, &mut self.index_key);
                Ok(true)
            }
            Candidate::Point => {
                debug_assert_eq!(self.table.indexes[index].kind, IndexKind::Unique);
                let engine = trx.engine(self.table.engine);
                let id = self.table.indexes[index].id;
                let found = engine
                    .get_near(at, id, &self.index_key, &mut self.key, &mut self.near)
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
        let is_unique_point = entry.is_none() && self.spans.index != 0;
        loop {
            if !self.find_clustered_key(trx, ReadAt::Latest, candidate)? {
                match self.passing.is_some() && self.lock_absent(trx, mode, wait)? {
                    true => continue,
                    false => return Ok(false),
                }
            }
            let Some(lock) = self.lock_candidate(trx, entry, mode, wait, filter, row)? else {
                return Ok(false);
            };
            let clustered = self.table.indexes[0].id;
            let is_there = self.read_newest(trx, entry, row)?;
            if let Some(view) = trx.view_to_keep() {
                check_unchanged(&self.table, trx, &view, &self.key)?;
            }
            if !is_there && is_unique_point {
                // Somebody removed the entry. It leads to another row by now, or there is none, which some
                // levels lock.
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
            return Ok(matches);
        }
    }

    /// Locks the candidate's row. None if it is passed over: SKIP LOCKED, or nobody waits for a row that does
    /// not match.
    fn lock_candidate(
        &mut self,
        trx: &mut SessionTrx,
        entry: Option<usize>,
        mode: RowMode,
        wait: WaitPolicy,
        filter: &mut RowFilter<'_>,
        row: &mut Vec<Value>,
    ) -> SqlResult<Option<RowLock>> {
        let clustered = self.table.indexes[0].id;
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

    /// Reads the newest version of the row of clustered key `key`, or takes it from the batch if that is it
    /// (not so for a caller without the row's lock, which learns the truth under it). False if there is none,
    /// or it is no longer where it was found.
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
        let clustered = self.table.indexes[0].id;
        let engine = trx.engine(self.table.engine);
        let is_there =
            engine.get(ReadAt::Latest, clustered, &self.key, &mut self.value).map_err(engine_error)?;
        if !is_there {
            return Ok(false);
        }
        self.table.decode(&self.value, &Columns::All, row)?;
        self.still_at(entry, row)
    }

    /// Locks the key in `index_key`, of which its unique index has no entry, so that it stays so. True if
    /// there is one by now.
    fn lock_absent(&mut self, trx: &mut SessionTrx, mode: RowMode, wait: WaitPolicy) -> SqlResult<bool> {
        let id = self.table.indexes[self.spans.index].id;
        let lock = trx.lock_row(id, &self.index_key, mode, wait)?;
        if lock == RowLock::Skipped || !self.find_clustered_key(trx, ReadAt::Latest, Candidate::Point)? {
            return Ok(false);
        }
        // The row's own lock is the one to hold.
        trx.unlock_new(id, &self.index_key, lock);
        Ok(true)
    }

    /// Whether the row, read again under its lock, still has the index entry by which it was found.
    fn still_at(&mut self, entry: Option<usize>, row: &[Value]) -> SqlResult<bool> {
        if self.spans.index == 0 {
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

/// Numbers entries of an index in the order of the rows that they lead to, or nearly so: behind the first
/// bytes of the rows' keys.
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

/// Error 1020 if the newest version of a row, which is locked, is not the one that the view has.
pub(crate) fn check_unchanged(
    table: &OpenTable,
    trx: &mut SessionTrx,
    view: &ReadView,
    key: &[u8],
) -> SqlResult<()> {
    let clustered = table.indexes[0].id;
    let engine = trx.engine(table.engine);
    let (mut then, mut now) = (Vec::new(), Vec::new());
    let was = engine.get(ReadAt::View(view), clustered, key, &mut then).map_err(engine_error)?;
    let is = engine.get(ReadAt::Latest, clustered, key, &mut now).map_err(engine_error)?;
    match (was, &then) == (is, &now) {
        true => Ok(()),
        false => Err(SqlError::new(
            ErrorCode::CheckRead,
            format!(
                "Record has changed since last read in table '{}'; try restarting transaction",
                table.table.name.table
            ),
        )),
    }
}
