//! [`TableWriter`]: changes of single rows, with their locks, unique checks, index entries and row images.
//!
//! # Locks
//! A change holds the exclusive lock of the row's clustered key. A writer that adds or removes an entry of a
//! unique index also holds the exclusive lock of that entry's key: so a duplicate check under that lock sees
//! either no entry or one that is not about to change, and a second insert of the same key waits for the
//! first to end. A key that comes into any index is put among the keys that ranges are locked against
//! ([`SessionTrx::put_key`]), before its duplicate check.
//!
//! A row that turns out to be in the way is locked as its next use wants it: shared for an error, so that
//! a locking reader is not disturbed, exclusive for REPLACE and ON DUPLICATE KEY UPDATE.
//!
//! # Order of steps
//! All locks and checks of a row come before its first write. So a duplicate key leaves nothing to undo, and
//! IGNORE, REPLACE and ON DUPLICATE KEY UPDATE go on from there. What foreign keys add is in [`Foreign`].

use std::sync::Arc;

use cohort_base::Reservation;
use cohort_catalog::{IndexKind, Table};
use cohort_engine::ReadAt;
use cohort_locks::RowMode;
use cohort_table::{Change, OpenTable, Presence, TouchedRows};
use cohort_trx::{Counted, RowLock, SessionTrx, WaitPolicy, engine_error};
use cohort_types::{Columns, SqlResult, Value};

use crate::cursor::{RowChanges, check_unchanged};
use crate::foreign::Foreign;
use crate::foreign_action::{ChangedRow, Link, Refused};
use crate::foreign_check::NewRow;

/// A row with the same key exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// Which index refuses.
    pub index: usize,
    /// Clustered key of the row that is there.
    pub key: Vec<u8>,
}

/// The answer of a write: done, or refused with nothing written.
pub(crate) type Written = Result<(), Duplicate>;

/// Changes rows of one table. Reusable: its memory serves all rows of a statement.
pub struct TableWriter {
    table: Arc<OpenTable>,
    buffers: Buffers,
    foreign: Option<Box<Foreign>>,
}

/// How a row that is in a new row's way is locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DuplicateLock {
    /// It is told only.
    #[default]
    Shared,
    /// It is going to be changed.
    Exclusive,
}

/// A writer's memory, apart from its table so that both can be used at once.
#[derive(Default)]
pub(super) struct Buffers {
    /// Clustered key of the row being written.
    key: Vec<u8>,
    bytes: Vec<u8>,
    /// Secondary index entries: of an insert one per index, of an update old and new one of each index
    /// touched.
    entries: Entries,
    found: Vec<u8>,
    duplicate_lock: DuplicateLock,
    image: Vec<u8>,
    /// Which columns the row images hold; None for all.
    presence: Option<Presence>,
    changed: Vec<usize>,
    /// The binlog is told nothing: rows that follow their parent.
    is_silent: bool,
    /// An index is built beside this writer.
    touched: Option<Arc<TouchedRows>>,
}

/// Bytes that most index keys take at the most.
const KEY_ROOM: usize = 64;

/// Keys end to end.
#[derive(Default)]
struct Entries {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The one that is being made.
    next: Vec<u8>,
}

impl Entries {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Where the next one is made.
    fn begin(&mut self) -> &mut Vec<u8> {
        self.next.clear();
        self.next.reserve(KEY_ROOM);
        &mut self.next
    }

    /// Adds what was made in `next`.
    fn push(&mut self) {
        if self.ends.capacity() == 0 {
            // A row's entries before a change and behind it.
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
    /// What a change of a row may do to others of its table: foreign keys lead from one row to the next.
    #[inline]
    pub fn row_changes(&self) -> RowChanges {
        let has_children = self.foreign.as_ref().is_some_and(|foreign| !foreign.children.is_empty());
        if has_children { RowChanges::Any } else { RowChanges::Current }
    }

    /// For a table whose name the statement has locked.
    pub fn open(trx: &mut SessionTrx, table: &Arc<Table>) -> SqlResult<TableWriter> {
        trx.check_writable(table)?;
        let table = trx.open_table(table)?;
        let foreign = Foreign::open(trx, &table)?;
        let buffers = Buffers { touched: table.touched(), ..Buffers::default() };
        Ok(TableWriter { table, buffers, foreign })
    }

    /// For rows that follow the change of their parents.
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

    /// Has row images hold only what `binlog_row_image` asks for. `written` are the columns that the
    /// statement gives values.
    pub fn narrow_images(&mut self, trx: &SessionTrx, written: impl Iterator<Item = usize>) {
        let image = trx.settings.binlog.row_image;
        self.buffers.presence = Presence::of(image, self.table.table(), written);
    }

    /// Says how rows that are in the way are to be locked.
    pub fn lock_duplicates(&mut self, lock: DuplicateLock) {
        self.buffers.duplicate_lock = lock;
    }

    /// Adds a row.
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

    /// Changes the row of clustered key `key`, which the caller has locked, from `before` to `after`. Rows
    /// that do not differ are not to be given here.
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

    /// Removes the row of clustered key `key`, which the caller has locked.
    pub fn delete(&mut self, trx: &mut SessionTrx, key: &[u8], row: &[Value]) -> SqlResult<()> {
        if self.foreign.is_none() {
            return self.buffers.delete(&self.table, trx, key, row);
        }
        let row = ChangedRow { key, before: row, after: None, follows: None };
        let outcome = self.change(trx, row, None).map_err(|why| why.error(&self.table, row, trx))?;
        debug_assert!(outcome.is_ok(), "a row that goes has nobody's key");
        Ok(())
    }

    /// Changes or removes a row, `above` all those that it follows.
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

    /// Has the row of this key be as given, and logs it as inserted: the one row of a sequence.
    pub fn replace(&mut self, trx: &mut SessionTrx, key: &[u8], row: &[Value]) -> SqlResult<()> {
        let space = self.table.indexes[0].id;
        trx.lock_row(space, key, RowMode::Exclusive, WaitPolicy::Wait)?;
        self.buffers.encode_row(&self.table, row)?;
        trx.engine(self.table.engine).put(space, key, &self.buffers.bytes).map_err(engine_error)?;
        let Buffers { image, presence, .. } = &mut self.buffers;
        trx.log_change(&self.table, Change::Insert(row), image, presence.as_mut())?;
        trx.note_changed_row();
        Ok(())
    }

    /// Locks and reads the row of a clustered key, for REPLACE and ON DUPLICATE KEY UPDATE; false if it is
    /// gone.
    pub fn fetch(&mut self, trx: &mut SessionTrx, key: &[u8], row: &mut Vec<Value>) -> SqlResult<bool> {
        let clustered = self.table.indexes[0].id;
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

/// Words that are written between two looks at KILL, and at what the transaction keeps.
const WORDS_UNASKED: usize = 1 << 12;

/// Writes what changes in FULLTEXT indexes. Nobody waits for a word: its entries are locked by none.
fn write_words(
    table: &OpenTable,
    trx: &mut SessionTrx,
    before: Option<(&[u8], &[Value])>,
    after: Option<(&[u8], &[Value])>,
    changes: impl Fn(usize) -> bool,
) -> SqlResult<()> {
    for index in (table.ordered..table.indexes.len()).filter(|index| changes(*index)) {
        let id = table.indexes[index].id;
        // The words of a long text take many times its bytes.
        let mut memory = (trx.reservation(), trx.reservation());
        let keys = |row: Option<(&[u8], &[Value])>, memory: &mut Reservation| match row {
            None => Ok(Vec::new()),
            Some((key, row)) => table.word_keys(index, row, key, &mut |bytes| {
                trx.check_interrupt()?;
                Ok(memory.resize(bytes as u64)?)
            }),
        };
        let (old, new) = (keys(before, &mut memory.0)?, keys(after, &mut memory.1)?);
        let gone = old.iter().filter(|key| new.binary_search(key).is_err()).map(|key| (key, false));
        let come = new.iter().filter(|key| old.binary_search(key).is_err()).map(|key| (key, true));
        for (n, (key, is_there)) in gone.chain(come).enumerate() {
            if n % WORDS_UNASKED == WORDS_UNASKED - 1 {
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

    /// Locks the keys of a new row and looks whether they are taken; `before` comes before each index.
    #[inline]
    fn claim_insert(
        &mut self,
        table: &Arc<OpenTable>,
        trx: &mut SessionTrx,
        row: &[Value],
        before: &mut impl FnMut(&mut SessionTrx, usize) -> SqlResult<()>,
    ) -> SqlResult<Option<Duplicate>> {
        trx.counts().count(Counted::Write);
        before(trx, 0)?;
        if let Some(duplicate) = self.claim_new_key(table, trx, row)? {
            return Ok(Some(duplicate));
        }
        self.entries.clear();
        for index in 1..table.ordered {
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
        engine.put(table.indexes[0].id, &self.key, &self.bytes).map_err(engine_error)?;
        for (index, open) in table.indexes[..table.ordered].iter().enumerate().skip(1) {
            let value = table.index_value(index, &self.key);
            engine.put(open.id, self.entries.get(index - 1), value).map_err(engine_error)?;
        }
        write_words(table, trx, None, Some((&self.key, row)), |_| true)?;
        self.log(table, trx, Change::Insert(row))?;
        trx.note_changed_row();
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

    /// Writes the change of a row: its new keys, if it has any, were claimed.
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

    /// The same, and the binlog is told later: what it was told cannot be taken back within a statement.
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

    /// Tells the binlog what was written without it.
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

    /// Locks the keys that a row is going to have and looks whether they are taken.
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
        if table.indexes[0].kind == IndexKind::Primary && table.index_has_any(0, &self.changed) {
            table.primary_key(after, &mut self.key)?;
        }
        let moved = self.key != key;
        if moved && let Some(duplicate) = self.claim_key(table, trx)? {
            return Ok(Some(duplicate));
        }
        self.entries.clear();
        for index in 1..table.ordered {
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
            engine.delete(table.indexes[0].id, key).map_err(engine_error)?;
        }
        engine.put(table.indexes[0].id, &self.key, &self.bytes).map_err(engine_error)?;
        let touched = |index: &usize| moved || table.index_has_any(*index, &self.changed);
        for (n, index) in (1..table.ordered).filter(touched).enumerate() {
            let id = table.indexes[index].id;
            let (old, new) = (self.entries.get(2 * n), self.entries.get(2 * n + 1));
            if old != new {
                engine.delete(id, old).map_err(engine_error)?;
            }
            if old != new || moved {
                engine.put(id, new, table.index_value(index, &self.key)).map_err(engine_error)?;
            }
        }
        let has_changed = |index| moved || table.index_has_any(index, &self.changed);
        write_words(table, trx, Some((key, before)), Some((&self.key, after)), has_changed)?;
        self.log(table, trx, Change::Update { before, after })?;
        trx.note_changed_row();
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
        write_words(table, trx, Some((key, row)), None, |_| true)?;
        for (index, open) in table.indexes[..table.ordered].iter().enumerate().skip(1) {
            let entry = &mut self.entries.next;
            table.index_key(index, row, key, entry)?;
            if open.kind == IndexKind::Unique && !open.has_null(row) {
                trx.lock_row(open.id, entry, RowMode::Exclusive, WaitPolicy::Wait)?;
            }
            trx.engine(table.engine).delete(open.id, entry).map_err(engine_error)?;
        }
        self.touch(key);
        trx.engine(table.engine).delete(table.indexes[0].id, key).map_err(engine_error)?;
        self.log(table, trx, Change::Delete(row))?;
        trx.note_changed_row();
        trx.charge_writes()?;
        match table.auto_column {
            Some((column, _)) => trx.drop_auto_increment(table, &row[column]),
            None => Ok(()),
        }
    }

    /// Tells the build of an index that a row, whose lock is held, is about to change.
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

    /// Finds and locks the clustered key of a new row.
    fn claim_new_key(
        &mut self,
        table: &OpenTable,
        trx: &mut SessionTrx,
        row: &[Value],
    ) -> SqlResult<Option<Duplicate>> {
        if table.indexes[0].kind == IndexKind::Primary {
            table.primary_key(row, &mut self.key)?;
            return self.claim_key(table, trx);
        }
        // The counter gives each number once. A key that is taken all the same is some counter's mistake,
        // which must not cost a row; the lock is for readers of the new row after its early release, too
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

    /// Locks `key` in the clustered index and looks whether it is taken.
    fn claim_key(&mut self, table: &OpenTable, trx: &mut SessionTrx) -> SqlResult<Option<Duplicate>> {
        let taken = self.claim(table, trx, 0)?;
        Ok(taken.then(|| Duplicate { index: 0, key: self.key.clone() }))
    }

    /// Puts the row's entry among those of an index; in a unique one locks it and looks whether it is taken.
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

    /// The same for the entry in `entries.next`.
    fn claim_next(
        &mut self,
        table: &OpenTable,
        trx: &mut SessionTrx,
        index: usize,
        row: &[Value],
    ) -> SqlResult<Option<Duplicate>> {
        let open = &table.indexes[index];
        if open.kind != IndexKind::Unique || open.has_null(row) {
            trx.put_key(open.id, &self.entries.next, WaitPolicy::Wait)?;
            return Ok(None);
        }
        let taken = self.claim(table, trx, index)?;
        Ok(taken.then(|| Duplicate { index, key: self.found.clone() }))
    }

    /// Puts a key of a unique index, which lies in `key` or `entries.next`, among those of new rows, locks it
    /// and looks whether it is taken; then `found` has its value.
    fn claim(&mut self, table: &OpenTable, trx: &mut SessionTrx, index: usize) -> SqlResult<bool> {
        let id = table.indexes[index].id;
        let key = if index == 0 { &self.key } else { &self.entries.next };
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
            // Somebody has a range or the row. If the row is there, it is that which is waited for.
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
        debug_assert!(is_put, "nobody inserts a key that ranges do not see");
        let taken = is_taken(trx)?;
        if taken && self.duplicate_lock == DuplicateLock::Shared {
            trx.weaken_new(id, key, lock);
        }
        Ok(taken)
    }

    /// Notes the old and the new entry of an updated row; in a unique index locks both and looks whether the
    /// new one is taken.
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
        if open.kind == IndexKind::Unique && !open.has_null(before) {
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
