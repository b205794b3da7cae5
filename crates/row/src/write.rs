//! [`TableWriter`]: changes single rows, with locks, unique checks, index entries and row images.
//!
//! # Locks
//! A change holds the exclusive lock of the row's clustered key. A writer that adds or removes an entry of a
//! unique index also holds the exclusive lock of that entry's key. So a duplicate check under that lock finds
//! either no entry or one that is stable, and a second insert of the same key waits for the first to end.
//! Before its duplicate check, a new key of any index is registered as an insert-intention point that
//! conflicts with range locks ([`SessionTrx::put_key`]).
//!
//! A conflicting row is locked for its next use: shared to report an error, so that locking readers are not
//! disturbed; exclusive for REPLACE and ON DUPLICATE KEY UPDATE.
//!
//! # Order of steps
//! All locks and checks of a row come before its first write. So a duplicate key leaves nothing to undo, and
//! IGNORE, REPLACE and ON DUPLICATE KEY UPDATE can continue from there. [`Foreign`] describes the additional
//! steps for foreign keys.

use std::sync::Arc;

use cohort_base::Reservation;
use cohort_catalog::{ROWS, RowKey, Table};
use cohort_engine::ReadAt;
use cohort_locks::RowMode;
use cohort_table::{Change, OpenIndex, OpenTable, Presence, RowChange, TouchedRows};
use cohort_trx::{Counted, RowLock, SessionTrx, WaitPolicy, engine_error};
use cohort_types::{Columns, SqlResult, Value};

use crate::cursor::{RowChanges, check_unchanged};
use crate::foreign::Foreign;
use crate::foreign_action::{ChangedRow, Link, Refused};
use crate::foreign_check::NewRow;

/// A row with the same key exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The index with the conflict.
    pub index: usize,
    /// Clustered key of the existing row.
    pub key: Vec<u8>,
}

/// Result of a write: done, or refused with nothing written.
pub(crate) type Written = Result<(), Duplicate>;

/// Writer of rows of one table. Reusable: its buffers serve all rows of a statement.
pub struct TableWriter {
    table: Arc<OpenTable>,
    buffers: Buffers,
    foreign: Option<Box<Foreign>>,
}

/// Lock mode for a row that conflicts with a new row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DuplicateLock {
    /// The conflict is only reported.
    #[default]
    Shared,
    /// The existing row will be changed.
    Exclusive,
}

/// A writer's buffers, separate from its table so that both can be borrowed at once.
#[derive(Default)]
pub(super) struct Buffers {
    /// Clustered key of the row being written.
    key: Vec<u8>,
    bytes: Vec<u8>,
    /// Secondary index entries. Of an insert: one per index. Of an update: the old and the new entry of each
    /// changed index.
    entries: Entries,
    found: Vec<u8>,
    duplicate_lock: DuplicateLock,
    image: Vec<u8>,
    /// Columns in the row images; `None` for all.
    presence: Option<Presence>,
    changed: Vec<usize>,
    /// Changes are not logged to the binary log: rows that follow their parent.
    is_silent: bool,
    /// Touched rows of an online index build that runs concurrently.
    touched: Option<Arc<TouchedRows>>,
}

/// Upper bound of the length of most index keys, in bytes.
const KEY_ROOM: usize = 64;

/// Concatenated keys.
#[derive(Default)]
struct Entries {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The key being built.
    next: Vec<u8>,
}

impl Entries {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Returns the cleared buffer of the next key.
    fn begin(&mut self) -> &mut Vec<u8> {
        self.next.clear();
        self.next.reserve(KEY_ROOM);
        &mut self.next
    }

    /// Appends the key built in `next`.
    fn push(&mut self) {
        if self.ends.capacity() == 0 {
            // Room for a row's entries before and after a change.
            self.ends.reserve(4);
            self.bytes.reserve(4 * self.next.len());
        }
        self.bytes.extend_from_slice(&self.next);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, n: usize) -> &[u8] {
        let start = if n == 0 { 0 } else { self.ends[n - 1] };
        &self.bytes[start..self.ends[n]]
    }
}

impl TableWriter {
    /// Returns the changes that a write may make to other rows of its table through foreign keys.
    #[inline]
    pub fn row_changes(&self) -> RowChanges {
        let has_children = self.foreign.as_ref().is_some_and(|foreign| !foreign.children.is_empty());
        if has_children { RowChanges::Any } else { RowChanges::Current }
    }

    /// Opens a writer. The statement has locked the table's name.
    pub fn open(trx: &mut SessionTrx, table: &Arc<Table>) -> SqlResult<TableWriter> {
        trx.check_writable(table)?;
        let table = trx.open_table(table)?;
        let foreign = Foreign::open(trx, &table)?;
        let buffers = Buffers { touched: table.touched(), ..Buffers::default() };
        Ok(TableWriter { table, buffers, foreign })
    }

    /// Opens a writer for rows that follow a change of their parents.
    pub(super) fn following(trx: &mut SessionTrx, table: &Arc<Table>) -> SqlResult<TableWriter> {
        let table = trx.open_table(table)?;
        let foreign = Foreign::open(trx, &table)?;
        let buffers = Buffers { is_silent: true, touched: table.touched(), ..Buffers::default() };
        Ok(TableWriter { table, buffers, foreign })
    }

    #[inline]
    pub fn table(&self) -> &Arc<OpenTable> {
        &self.table
    }

    /// Limits row images to what `binlog_row_image` requires. `written` are the columns that the statement
    /// assigns.
    pub fn narrow_images(&mut self, trx: &SessionTrx, written: impl Iterator<Item = usize>) {
        let image = trx.settings.binlog.row_image;
        self.buffers.presence = Presence::of(image, self.table.table(), written);
    }

    /// Sets the lock mode for conflicting rows.
    pub fn lock_duplicates(&mut self, lock: DuplicateLock) {
        self.buffers.duplicate_lock = lock;
    }

    /// Inserts a row.
    pub fn insert(&mut self, trx: &mut SessionTrx, row: &[Value]) -> SqlResult<Written> {
        let Some(foreign) = &mut self.foreign else { return self.buffers.insert(&self.table, trx, row) };
        let new = NewRow { before: None, after: row, follows: None };
        let mut check = |trx: &mut SessionTrx, index| foreign.check(trx, &self.table, new, Some(index));
        if let Some(duplicate) = self.buffers.claim_insert(&self.table, trx, row, &mut check)? {
            return Ok(Err(duplicate));
        }
        self.buffers.write_insert(&self.table, trx, row)?;
        Ok(Ok(()))
    }

    /// Changes the row with clustered key `key`, which the caller has locked, from `before` to `after`. The
    /// two must differ.
    pub fn update(
        &mut self,
        trx: &mut SessionTrx,
        key: &[u8],
        before: &[Value],
        after: &[Value],
    ) -> SqlResult<Written> {
        if self.foreign.is_none() {
            return self.buffers.update(&self.table, trx, key, before, after);
        }
        let row = ChangedRow { key, before, after: Some(after), follows: None };
        self.change(trx, row, None).map_err(|why| why.error(&self.table, row, trx))
    }

    /// Deletes the row with clustered key `key`, which the caller has locked.
    pub fn delete(&mut self, trx: &mut SessionTrx, key: &[u8], row: &[Value]) -> SqlResult<()> {
        if self.foreign.is_none() {
            return self.buffers.delete(&self.table, trx, key, row);
        }
        let row = ChangedRow { key, before: row, after: None, follows: None };
        let outcome = self.change(trx, row, None).map_err(|why| why.error(&self.table, row, trx))?;
        debug_assert!(outcome.is_ok(), "a deleted row duplicates no key");
        Ok(())
    }

    /// Updates or deletes a row as part of a chain. `above` is the change that it follows.
    pub(super) fn change(
        &mut self,
        trx: &mut SessionTrx,
        row: ChangedRow<'_>,
        above: Option<&Link<'_>>,
    ) -> Result<Written, Refused> {
        match (&mut self.foreign, row.after) {
            (Some(foreign), _) => foreign.change(trx, &self.table, &mut self.buffers, row, above),
            (None, Some(after)) => Ok(self.buffers.update(&self.table, trx, row.key, row.before, after)?),
            (None, None) => Ok(Ok(self.buffers.delete(&self.table, trx, row.key, row.before)?)),
        }
    }

    /// Writes `row` under this key, existing or not, and logs it as an insert: for the single row of a
    /// sequence.
    pub fn replace(&mut self, trx: &mut SessionTrx, key: &[u8], row: &[Value]) -> SqlResult<()> {
        let space = self.table.rows.id;
        trx.lock_row(space, key, RowMode::Exclusive, WaitPolicy::Wait)?;
        self.buffers.encode_row(&self.table, row)?;
        trx.engine(self.table.engine).put(space, key, &self.buffers.bytes).map_err(engine_error)?;
        let Buffers { image, presence, .. } = &mut self.buffers;
        trx.log_change(&self.table, Change::Insert(row), image, presence.as_mut())?;
        trx.note_changed_row(&self.table, RowChange::Insert);
        Ok(())
    }

    /// Locks and reads the row of a clustered key, for REPLACE and ON DUPLICATE KEY UPDATE. Returns false if
    /// the row no longer exists.
    pub fn fetch(&mut self, trx: &mut SessionTrx, key: &[u8], row: &mut Vec<Value>) -> SqlResult<bool> {
        let clustered = self.table.rows.id;
        trx.counts().count(Counted::ReadKey);
        trx.lock_row(clustered, key, RowMode::Exclusive, WaitPolicy::Wait)?;
        let found = &mut self.buffers.found;
        let engine = trx.engine(self.table.engine);
        if !engine.get(ReadAt::Latest, clustered, key, found).map_err(engine_error)? {
            return Ok(false);
        }
        self.table.decode(found, &Columns::All, row)?;
        if let Some(view) = trx.view_to_keep() {
            check_unchanged(&self.table, trx, &view, key)?;
        }
        Ok(true)
    }
}

/// Entries written between two checks for KILL and for the size of the transaction.
const ENTRIES_UNASKED: usize = 1 << 12;

/// Writes the changes of indexes with any number of entries per row. Their entries are never locked.
fn write_multiple(
    table: &OpenTable,
    trx: &mut SessionTrx,
    before: Option<(&[u8], &[Value])>,
    after: Option<(&[u8], &[Value])>,
    changes: impl Fn(usize) -> bool,
) -> SqlResult<()> {
    for index in table.multiple_entry_indexes().filter(|index| changes(*index)) {
        let id = table.indexes[index].id;
        // The words of a long text take many times the bytes of the text.
        let mut memory = (trx.reservation(), trx.reservation());
        let keys = |row: Option<(&[u8], &[Value])>, memory: &mut Reservation| match row {
            None => Ok(Vec::new()),
            Some((key, row)) => table.sorted_keys(index, row, key, &mut |bytes| {
                trx.check_interrupt()?;
                Ok(memory.resize(bytes as u64)?)
            }),
        };
        let (old, new) = (keys(before, &mut memory.0)?, keys(after, &mut memory.1)?);
        let gone = old.iter().filter(|key| new.binary_search(key).is_err()).map(|key| (key, false));
        let come = new.iter().filter(|key| old.binary_search(key).is_err()).map(|key| (key, true));
        for (n, (key, is_there)) in gone.chain(come).enumerate() {
            if n % ENTRIES_UNASKED == ENTRIES_UNASKED - 1 {
                trx.check_interrupt()?;
                trx.charge_writes()?;
            }
            let engine = trx.engine(table.engine);
            match is_there {
                true => engine.put(id, key, &[]),
                false => engine.delete(id, key),
            }
            .map_err(engine_error)?;
        }
    }
    Ok(())
}

impl Buffers {
    fn insert(&mut self, table: &Arc<OpenTable>, trx: &mut SessionTrx, row: &[Value]) -> SqlResult<Written> {
        match self.claim_insert(table, trx, row, &mut |_, _| Ok(()))? {
            Some(duplicate) => Ok(Err(duplicate)),
            None => self.write_insert(table, trx, row).map(Ok),
        }
    }

    /// Locks the keys of a new row and checks for duplicates. Calls `before` ahead of each index.
    #[inline]
    fn claim_insert(
        &mut self,
        table: &Arc<OpenTable>,
        trx: &mut SessionTrx,
        row: &[Value],
        before: &mut impl FnMut(&mut SessionTrx, usize) -> SqlResult<()>,
    ) -> SqlResult<Option<Duplicate>> {
        trx.counts().count(Counted::Write);
        before(trx, ROWS)?;
        if let Some(duplicate) = self.claim_new_key(table, trx, row)? {
            return Ok(Some(duplicate));
        }
        self.entries.clear();
        for (index, _) in table.single_entry_indexes() {
            before(trx, index)?;
            if let Some(duplicate) = self.claim_entry(table, trx, index, row)? {
                return Ok(Some(duplicate));
            }
        }
        Ok(None)
    }

    /// Writes the row whose keys were claimed.
    #[inline]
    fn write_insert(&mut self, table: &Arc<OpenTable>, trx: &mut SessionTrx, row: &[Value]) -> SqlResult<()> {
        self.encode_row(table, row)?;
        self.touch(&self.key);
        let engine = trx.engine(table.engine);
        engine.put(table.rows.id, &self.key, &self.bytes).map_err(engine_error)?;
        for (index, open) in table.single_entry_indexes() {
            let value = table.index_value(index, &self.key);
            engine.put(open.id, self.entries.get(index - 1), value).map_err(engine_error)?;
        }
        write_multiple(table, trx, None, Some((&self.key, row)), |_| true)?;
        self.log(table, trx, Change::Insert(row))?;
        trx.note_changed_row(table, RowChange::Insert);
        trx.charge_writes()?;
        if let Some((column, _)) = table.auto_column {
            trx.pass_auto_increment(table, &row[column])?;
        }
        Ok(())
    }

    fn update(
        &mut self,
        table: &Arc<OpenTable>,
        trx: &mut SessionTrx,
        key: &[u8],
        before: &[Value],
        after: &[Value],
    ) -> SqlResult<Written> {
        match self.claim_update(table, trx, key, before, after)? {
            Some(duplicate) => Ok(Err(duplicate)),
            None => self.write_update(table, trx, key, before, after).map(Ok),
        }
    }

    /// Writes the change of a row whose new keys, if any, were claimed.
    pub(super) fn write(
        &mut self,
        table: &Arc<OpenTable>,
        trx: &mut SessionTrx,
        row: ChangedRow<'_>,
    ) -> SqlResult<()> {
        match row.after {
            Some(after) => self.write_update(table, trx, row.key, row.before, after),
            None => self.delete(table, trx, row.key, row.before),
        }
    }

    /// Writes a change without logging it. It is logged later, because binlog events cannot be removed within
    /// a statement.
    pub(super) fn write_unlogged(
        &mut self,
        table: &Arc<OpenTable>,
        trx: &mut SessionTrx,
        row: ChangedRow<'_>,
    ) -> SqlResult<()> {
        let is_silent = std::mem::replace(&mut self.is_silent, true);
        let outcome = self.write(table, trx, row);
        self.is_silent = is_silent;
        outcome
    }

    /// Logs a change that was written without logging.
    pub(super) fn log_change(
        &mut self,
        table: &OpenTable,
        trx: &mut SessionTrx,
        row: ChangedRow<'_>,
    ) -> SqlResult<()> {
        let change = match row.after {
            Some(after) => Change::Update { before: row.before, after },
            None => Change::Delete(row.before),
        };
        self.log(table, trx, change)
    }

    /// Locks the new keys of a row and checks for duplicates.
    #[inline]
    pub(super) fn claim_update(
        &mut self,
        table: &Arc<OpenTable>,
        trx: &mut SessionTrx,
        key: &[u8],
        before: &[Value],
        after: &[Value],
    ) -> SqlResult<Option<Duplicate>> {
        trx.counts().count(Counted::Update);
        self.changed.clear();
        self.changed.extend((0..before.len()).filter(|&n| before[n] != after[n]));
        self.key.clear();
        self.key.extend_from_slice(key);
        if table.rows.key == RowKey::Primary && table.index_has_any(ROWS, &self.changed) {
            table.primary_key(after, &mut self.key)?;
        }
        let moved = self.key != key;
        if moved && let Some(duplicate) = self.claim_key(table, trx)? {
            return Ok(Some(duplicate));
        }
        self.entries.clear();
        for (index, _) in table.single_entry_indexes() {
            if (moved || table.index_has_any(index, &self.changed))
                && let Some(duplicate) = self.exchange_claims(table, trx, index, key, before, after)?
            {
                return Ok(Some(duplicate));
            }
        }
        Ok(None)
    }

    /// Writes the row whose new keys were claimed.
    #[inline]
    fn write_update(
        &mut self,
        table: &Arc<OpenTable>,
        trx: &mut SessionTrx,
        key: &[u8],
        before: &[Value],
        after: &[Value],
    ) -> SqlResult<()> {
        let moved = self.key != key;
        self.encode_row(table, after)?;
        self.touch(key);
        if moved {
            self.touch(&self.key);
        }
        let engine = trx.engine(table.engine);
        if moved {
            engine.delete(table.rows.id, key).map_err(engine_error)?;
        }
        engine.put(table.rows.id, &self.key, &self.bytes).map_err(engine_error)?;
        let touched = |(index, _): &(usize, &OpenIndex)| moved || table.index_has_any(*index, &self.changed);
        for (n, (index, open)) in table.single_entry_indexes().filter(touched).enumerate() {
            let id = open.id;
            let (old, new) = (self.entries.get(2 * n), self.entries.get(2 * n + 1));
            if old != new {
                engine.delete(id, old).map_err(engine_error)?;
            }
            if old != new || moved {
                engine.put(id, new, table.index_value(index, &self.key)).map_err(engine_error)?;
            }
        }
        let has_changed = |index| moved || table.index_has_any(index, &self.changed);
        write_multiple(table, trx, Some((key, before)), Some((&self.key, after)), has_changed)?;
        self.log(table, trx, Change::Update { before, after })?;
        trx.note_changed_row(table, RowChange::Update);
        trx.charge_writes()?;
        self.update_counter(table, trx, before, after)
    }

    fn delete(
        &mut self,
        table: &Arc<OpenTable>,
        trx: &mut SessionTrx,
        key: &[u8],
        row: &[Value],
    ) -> SqlResult<()> {
        trx.counts().count(Counted::Delete);
        write_multiple(table, trx, Some((key, row)), None, |_| true)?;
        for (index, open) in table.single_entry_indexes() {
            let entry = &mut self.entries.next;
            table.index_key(index, row, key, entry)?;
            if open.is_unique_for(row) {
                trx.lock_row(open.id, entry, RowMode::Exclusive, WaitPolicy::Wait)?;
            }
            trx.engine(table.engine).delete(open.id, entry).map_err(engine_error)?;
        }
        self.touch(key);
        trx.engine(table.engine).delete(table.rows.id, key).map_err(engine_error)?;
        self.log(table, trx, Change::Delete(row))?;
        trx.note_changed_row(table, RowChange::Delete);
        trx.charge_writes()?;
        match table.auto_column {
            Some((column, _)) => trx.drop_auto_increment(table, &row[column]),
            None => Ok(()),
        }
    }

    /// Notifies a concurrent index build that a row, whose lock is held, is about to change.
    #[inline]
    fn touch(&self, key: &[u8]) {
        if let Some(touched) = &self.touched {
            touched.add(key);
        }
    }

    #[inline]
    fn log(&mut self, table: &OpenTable, trx: &mut SessionTrx, change: Change<'_>) -> SqlResult<()> {
        match self.is_silent {
            false => trx.log_change(table, change, &mut self.image, self.presence.as_mut()),
            true => Ok(()),
        }
    }

    /// Determines and locks the clustered key of a new row.
    fn claim_new_key(
        &mut self,
        table: &OpenTable,
        trx: &mut SessionTrx,
        row: &[Value],
    ) -> SqlResult<Option<Duplicate>> {
        if table.rows.key == RowKey::Primary {
            table.primary_key(row, &mut self.key)?;
            return self.claim_key(table, trx);
        }
        // The counter returns each number once. If a key is taken nevertheless, some counter is wrong, which
        // must not overwrite a row. The lock also covers readers of the new row after an early lock release
        // (I5).
        loop {
            let id = trx.next_row_id(table)?;
            self.key.clear();
            self.key.extend_from_slice(&id.to_be_bytes());
            if self.claim_key(table, trx)?.is_none() {
                return Ok(None);
            }
            trx.check_killed()?;
        }
    }

    /// Locks `key` in the clustered index and checks whether it is taken.
    fn claim_key(&mut self, table: &OpenTable, trx: &mut SessionTrx) -> SqlResult<Option<Duplicate>> {
        let taken = self.claim(table, trx, ROWS)?;
        Ok(taken.then(|| Duplicate { index: ROWS, key: self.key.clone() }))
    }

    /// Registers the row's entry in an index. In a unique index, locks it and checks for a duplicate.
    fn claim_entry(
        &mut self,
        table: &OpenTable,
        trx: &mut SessionTrx,
        index: usize,
        row: &[Value],
    ) -> SqlResult<Option<Duplicate>> {
        table.index_key(index, row, &self.key, self.entries.begin())?;
        self.entries.push();
        self.claim_next(table, trx, index, row)
    }

    /// Registers the entry in `entries.next`, like [`Buffers::claim_entry`].
    fn claim_next(
        &mut self,
        table: &OpenTable,
        trx: &mut SessionTrx,
        index: usize,
        row: &[Value],
    ) -> SqlResult<Option<Duplicate>> {
        let open = &table.indexes[index];
        if !open.is_unique_for(row) {
            trx.put_key(open.id, &self.entries.next, WaitPolicy::Wait)?;
            return Ok(None);
        }
        let taken = self.claim(table, trx, index)?;
        Ok(taken.then(|| Duplicate { index, key: self.found.clone() }))
    }

    /// Registers a key of a unique index (in `key` or `entries.next`) as an insert-intention point, locks it,
    /// and checks whether it is taken. If so, `found` holds its value.
    fn claim(&mut self, table: &OpenTable, trx: &mut SessionTrx, index: usize) -> SqlResult<bool> {
        let id = table.indexes[index].id;
        let key = if index == ROWS { &self.key } else { &self.entries.next };
        let mut is_taken = |trx: &mut SessionTrx| {
            let engine = trx.engine(table.engine);
            engine.get(ReadAt::Latest, id, key, &mut self.found).map_err(engine_error)
        };
        let mut is_put = trx.put_key(id, key, WaitPolicy::SkipLocked)?;
        let mut lock = RowLock::Skipped;
        if is_put {
            lock = trx.lock_row(id, key, RowMode::Exclusive, WaitPolicy::SkipLocked)?;
        }
        if lock == RowLock::Skipped {
            // Another transaction holds a range or the row. If the row exists, wait for its lock.
            if is_taken(trx)? {
                let mode = match self.duplicate_lock {
                    DuplicateLock::Shared => RowMode::Shared,
                    DuplicateLock::Exclusive => RowMode::Exclusive,
                };
                let lock = trx.lock_row(id, key, mode, WaitPolicy::Wait)?;
                if is_taken(trx)? {
                    return Ok(true);
                }
                trx.unlock_new(id, key, lock);
            }
            if !is_put {
                is_put = trx.put_key(id, key, WaitPolicy::Wait)?;
            }
            lock = trx.lock_row(id, key, RowMode::Exclusive, WaitPolicy::Wait)?;
        }
        debug_assert!(is_put, "a key is inserted only if locking scans see it");
        let taken = is_taken(trx)?;
        if taken && self.duplicate_lock == DuplicateLock::Shared {
            trx.downgrade_new(id, key, lock);
        }
        Ok(taken)
    }

    /// Records the old and the new entry of an updated row. In a unique index, locks both and checks whether
    /// the new one is taken.
    fn exchange_claims(
        &mut self,
        table: &OpenTable,
        trx: &mut SessionTrx,
        index: usize,
        key: &[u8],
        before: &[Value],
        after: &[Value],
    ) -> SqlResult<Option<Duplicate>> {
        let open = &table.indexes[index];
        table.index_key(index, before, key, self.entries.begin())?;
        self.entries.push();
        if open.is_unique_for(before) {
            trx.lock_row(open.id, &self.entries.next, RowMode::Exclusive, WaitPolicy::Wait)?;
        }
        table.index_key(index, after, &self.key, self.entries.begin())?;
        self.entries.push();
        let n = self.entries.ends.len();
        match self.entries.get(n - 1) == self.entries.get(n - 2) {
            true => Ok(None),
            false => self.claim_next(table, trx, index, after),
        }
    }

    fn encode_row(&mut self, table: &OpenTable, row: &[Value]) -> SqlResult<()> {
        self.bytes.clear();
        table.layout.encode(row, &mut self.bytes).map_err(|e| table.row_error(e))
    }

    fn update_counter(
        &mut self,
        table: &Arc<OpenTable>,
        trx: &mut SessionTrx,
        before: &[Value],
        after: &[Value],
    ) -> SqlResult<()> {
        let Some((column, _)) = table.auto_column.filter(|(column, _)| self.changed.contains(column)) else {
            return Ok(());
        };
        trx.pass_auto_increment(table, &after[column])?;
        trx.drop_auto_increment(table, &before[column])
    }
}
