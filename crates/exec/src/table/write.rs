//! [`TableWriter`]: changes of single rows, with their locks, unique checks, index entries and row images.
//!
//! # Locks
//! A change holds the exclusive lock of the row's clustered key. Whoever adds or removes an entry of a unique
//! index also holds the exclusive lock of that entry's key: so a duplicate check under that lock sees either
//! no entry or one that is not about to change, and a second insert of the same key waits for the first to
//! end.
//!
//! # Order of steps
//! All locks and checks of a row come before its first write. So a duplicate key leaves nothing to undo, and
//! IGNORE, REPLACE and ON DUPLICATE KEY UPDATE go on from there.

use std::sync::Arc;

use cohort_catalog::{IndexKind, Table};
use cohort_engine::ReadAt;
use cohort_locks::RowMode;
use cohort_types::{SqlResult, Value};

use crate::handler_counts::Handler;
use crate::table::image::Change;
use crate::table::presence::Presence;
use crate::table::{Columns, OpenTable};
use crate::trx::{SessionTrx, WaitPolicy, engine_error};

/// A row with the same key exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Duplicate {
    /// Which index refuses.
    pub(crate) index: usize,
    /// Clustered key of the row that is there.
    pub(crate) key: Vec<u8>,
}

/// The answer of a write: done, or refused with nothing written.
pub(crate) type Written = Result<(), Duplicate>;

/// Changes rows of one table. Reusable: its memory serves all rows of a statement.
pub(crate) struct TableWriter {
    table: Arc<OpenTable>,
    buffers: Buffers,
}

/// A writer's memory, apart from its table so that both can be used at once.
#[derive(Default)]
struct Buffers {
    /// Clustered key of the row being written.
    key: Vec<u8>,
    bytes: Vec<u8>,
    entry: Vec<u8>,
    entry_before: Vec<u8>,
    found: Vec<u8>,
    image: Vec<u8>,
    /// Which columns the row images hold; None for all.
    presence: Option<Presence>,
    changed: Vec<usize>,
}

impl TableWriter {
    /// For a table whose name the statement has locked.
    pub(crate) fn open(trx: &mut SessionTrx, table: &Arc<Table>) -> SqlResult<TableWriter> {
        trx.check_writable()?;
        Ok(TableWriter { table: trx.open_table(table)?, buffers: Buffers::default() })
    }

    pub(crate) fn table(&self) -> &Arc<OpenTable> {
        &self.table
    }

    /// Has row images hold only what `binlog_row_image` asks for. `written` are the columns that the
    /// statement gives values.
    pub(crate) fn narrow_images(&mut self, trx: &SessionTrx, written: impl Iterator<Item = usize>) {
        let image = trx.settings.binlog.row_image;
        self.buffers.presence = Presence::of(image, self.table.table(), written);
    }

    /// Adds a row.
    pub(crate) fn insert(&mut self, trx: &mut SessionTrx, row: &[Value]) -> SqlResult<Written> {
        self.buffers.insert(&self.table, trx, row)
    }

    /// Changes the row of clustered key `key`, which the caller has locked, from `before` to `after`. Rows
    /// that do not differ are not to be given here.
    pub(crate) fn update(
        &mut self,
        trx: &mut SessionTrx,
        key: &[u8],
        before: &[Value],
        after: &[Value],
    ) -> SqlResult<Written> {
        self.buffers.update(&self.table, trx, key, before, after)
    }

    /// Removes the row of clustered key `key`, which the caller has locked.
    pub(crate) fn delete(&mut self, trx: &mut SessionTrx, key: &[u8], row: &[Value]) -> SqlResult<()> {
        self.buffers.delete(&self.table, trx, key, row)
    }

    /// Locks and reads the row of a clustered key, for REPLACE and ON DUPLICATE KEY UPDATE; false if it is
    /// gone.
    pub(crate) fn fetch(
        &mut self,
        trx: &mut SessionTrx,
        key: &[u8],
        row: &mut Vec<Value>,
    ) -> SqlResult<bool> {
        let clustered = self.table.indexes[0].id;
        trx.handlers.count(Handler::ReadKey);
        trx.lock_row(clustered, key, RowMode::Exclusive, WaitPolicy::Wait)?;
        let found = &mut self.buffers.found;
        let engine = trx.engine(self.table.engine);
        if !engine.get(ReadAt::Latest, clustered, key, found).map_err(engine_error)? {
            return Ok(false);
        }
        self.table.decode(found, &Columns::All, row)?;
        Ok(true)
    }
}

impl Buffers {
    fn insert(&mut self, table: &Arc<OpenTable>, trx: &mut SessionTrx, row: &[Value]) -> SqlResult<Written> {
        trx.handlers.count(Handler::Write);
        if let Some(duplicate) = self.claim_new_key(table, trx, row)? {
            return Ok(Err(duplicate));
        }
        for index in 1..table.indexes.len() {
            if let Some(duplicate) = self.claim_entry(table, trx, index, row)? {
                return Ok(Err(duplicate));
            }
        }
        self.encode_row(table, row)?;
        let engine = trx.engine(table.engine);
        engine.put(table.indexes[0].id, &self.key, &self.bytes).map_err(engine_error)?;
        for (index, open) in table.indexes.iter().enumerate().skip(1) {
            table.index_key(index, row, &self.key, &mut self.entry)?;
            let value = table.index_value(index, &self.key);
            engine.put(open.id, &self.entry, value).map_err(engine_error)?;
        }
        table.log(trx, Change::Insert(row), &mut self.image, self.presence.as_mut())?;
        trx.note_changed_row();
        trx.charge_writes()?;
        if let Some((column, _)) = table.auto_column {
            trx.pass_auto_increment(table, &row[column])?;
        }
        Ok(Ok(()))
    }

    fn update(
        &mut self,
        table: &Arc<OpenTable>,
        trx: &mut SessionTrx,
        key: &[u8],
        before: &[Value],
        after: &[Value],
    ) -> SqlResult<Written> {
        trx.handlers.count(Handler::Update);
        self.changed.clear();
        self.changed.extend((0..before.len()).filter(|&n| before[n] != after[n]));
        self.key.clear();
        self.key.extend_from_slice(key);
        if table.indexes[0].kind == IndexKind::Primary && table.index_has_any(0, &self.changed) {
            table.primary_key(after, &mut self.key)?;
        }
        let moved = self.key != key;
        if moved && let Some(duplicate) = self.claim_key(table, trx)? {
            return Ok(Err(duplicate));
        }
        for index in 1..table.indexes.len() {
            let touched = moved || table.index_has_any(index, &self.changed);
            if touched
                && table.indexes[index].kind == IndexKind::Unique
                && let Some(duplicate) = self.exchange_claims(table, trx, index, key, before, after)?
            {
                return Ok(Err(duplicate));
            }
        }
        self.encode_row(table, after)?;
        let engine = trx.engine(table.engine);
        if moved {
            engine.delete(table.indexes[0].id, key).map_err(engine_error)?;
        }
        engine.put(table.indexes[0].id, &self.key, &self.bytes).map_err(engine_error)?;
        for (index, open) in table.indexes.iter().enumerate().skip(1) {
            if !moved && !table.index_has_any(index, &self.changed) {
                continue;
            }
            table.index_key(index, before, key, &mut self.entry_before)?;
            table.index_key(index, after, &self.key, &mut self.entry)?;
            let same_key = self.entry == self.entry_before;
            if !same_key {
                engine.delete(open.id, &self.entry_before).map_err(engine_error)?;
            }
            if !same_key || moved {
                let value = table.index_value(index, &self.key);
                engine.put(open.id, &self.entry, value).map_err(engine_error)?;
            }
        }
        table.log(trx, Change::Update { before, after }, &mut self.image, self.presence.as_mut())?;
        trx.note_changed_row();
        trx.charge_writes()?;
        self.update_counter(table, trx, before, after)?;
        Ok(Ok(()))
    }

    fn delete(
        &mut self,
        table: &Arc<OpenTable>,
        trx: &mut SessionTrx,
        key: &[u8],
        row: &[Value],
    ) -> SqlResult<()> {
        trx.handlers.count(Handler::Delete);
        for (index, open) in table.indexes.iter().enumerate().skip(1) {
            table.index_key(index, row, key, &mut self.entry)?;
            if open.kind == IndexKind::Unique && !open.has_null(row) {
                trx.lock_row(open.id, &self.entry, RowMode::Exclusive, WaitPolicy::Wait)?;
            }
            trx.engine(table.engine).delete(open.id, &self.entry).map_err(engine_error)?;
        }
        trx.engine(table.engine).delete(table.indexes[0].id, key).map_err(engine_error)?;
        table.log(trx, Change::Delete(row), &mut self.image, self.presence.as_mut())?;
        trx.note_changed_row();
        trx.charge_writes()?;
        match table.auto_column {
            Some((column, _)) => trx.drop_auto_increment(table, &row[column]),
            None => Ok(()),
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
        // which must not cost a row; the lock is for those who read the new row after its early release, too
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
        let clustered = table.indexes[0].id;
        trx.lock_row(clustered, &self.key, RowMode::Exclusive, WaitPolicy::Wait)?;
        let engine = trx.engine(table.engine);
        let taken =
            engine.get(ReadAt::Latest, clustered, &self.key, &mut self.found).map_err(engine_error)?;
        Ok(taken.then(|| Duplicate { index: 0, key: self.key.clone() }))
    }

    /// Locks the row's entry in a unique index and looks whether it is taken. Other indexes need neither.
    fn claim_entry(
        &mut self,
        table: &OpenTable,
        trx: &mut SessionTrx,
        index: usize,
        row: &[Value],
    ) -> SqlResult<Option<Duplicate>> {
        let open = &table.indexes[index];
        if open.kind != IndexKind::Unique || open.has_null(row) {
            return Ok(None);
        }
        table.index_key(index, row, &self.key, &mut self.entry)?;
        trx.lock_row(open.id, &self.entry, RowMode::Exclusive, WaitPolicy::Wait)?;
        let engine = trx.engine(table.engine);
        let taken =
            engine.get(ReadAt::Latest, open.id, &self.entry, &mut self.found).map_err(engine_error)?;
        Ok(taken.then(|| Duplicate { index, key: self.found.clone() }))
    }

    /// Locks the old and the new entry of an updated row in a unique index and looks whether the new one is
    /// taken.
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
        table.index_key(index, before, key, &mut self.entry_before)?;
        if !open.has_null(before) {
            trx.lock_row(open.id, &self.entry_before, RowMode::Exclusive, WaitPolicy::Wait)?;
        }
        table.index_key(index, after, &self.key, &mut self.entry)?;
        if self.entry == self.entry_before {
            return Ok(None);
        }
        self.claim_entry(table, trx, index, after)
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
