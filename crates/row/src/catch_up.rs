//! [`CatchUp`]: brings indexes, or the copy of a table, that were made at a view up to what writers have
//! changed since. A copy is all indexes of another table, whose rows are made from those of this one.
//!
//! # Rounds
//! A round takes the rows out that writers have touched, reads each under its lock, and writes what the
//! difference makes of the new indexes' entries: first all that go, then all that come. A row whose lock is
//! taken comes again in the next round. Rounds beside the writers leave the last one little to do, which runs
//! when the table's name is held exclusively: then no row is locked, and none comes again.
//!
//! The entries are writes of the DDL statement's own transaction. They commit with the description that names
//! the indexes, and go with it.
//!
//! # Rows of a copy
//! Two rows of the source may seem to become one row of the copy, with the same entries in all of its
//! indexes: the first has given its key up, but was locked when it was looked at. So an entry of the copy
//! belongs to the row that has put the copy's own: if that one's place is taken, nothing of the row is put,
//! and if it changes, all entries of the row go and come again.
//!
//! # Unique keys
//! Beside writers two rows may seem to have one key: one gave it up, and its lock was taken when the other
//! was looked at. So a key that is taken is no error before the last round; the row comes again.

use std::collections::HashMap;
use std::sync::Arc;

use cohort_catalog::{IndexKind, Table};
use cohort_engine::{ReadAt, ReadView};
use cohort_locks::RowMode;
use cohort_table::{OpenTable, TouchedRows};
use cohort_trx::{RowLock, SessionTrx, WaitPolicy, engine_error};
use cohort_types::{Columns, SqlError, SqlResult, Value};

use super::build::Convert;

/// Rows between two looks at KILL.
const LOOK_EVERY: usize = 256;
/// Bytes that a row takes here beside its keys.
const ROW_BYTES: usize = 96;

/// A key and what it leads to.
type Entry = (Vec<u8>, Vec<u8>);

/// Entries of one row, by new index.
type Entries = Vec<Option<Entry>>;

/// A build that writers did not wait for.
pub struct CatchUp<'t> {
    /// The version that writers write.
    source: Arc<OpenTable>,
    /// The version that has the new indexes.
    table: Arc<OpenTable>,
    /// How rows of the copy are made; always the same of the same row. None: nothing is copied.
    convert: Option<&'t mut Convert<'t>>,
    fresh: &'t [usize],
    /// What the indexes were built from.
    view: &'t ReadView,
    touched: &'t TouchedRows,
    /// What the new indexes hold of the rows that were looked at.
    held: HashMap<Vec<u8>, Entries, ahash::RandomState>,
    bytes: u64,
    bytes_max: u64,
}

/// An entry to come: place in `fresh`, entry, clustered key of the row that writers write.
type Coming = (usize, Entry, Vec<u8>);

/// What was made.
pub struct Built<'t> {
    /// The table that writers write.
    pub source: &'t Arc<Table>,
    /// The table that has the new indexes.
    pub table: &'t Arc<Table>,
    /// Which of its indexes are new.
    pub fresh: &'t [usize],
    /// What they were made from.
    pub view: &'t ReadView,
}

impl<'t> CatchUp<'t> {
    /// Nothing was looked at yet. With `convert` the new indexes are those of a copy.
    pub fn new(
        trx: &SessionTrx,
        built: &Built<'t>,
        convert: Option<&'t mut Convert<'t>>,
        touched: &'t TouchedRows,
        bytes_max: u64,
    ) -> SqlResult<CatchUp<'t>> {
        let Built { source, table, fresh, view } = *built;
        let (source, table) = (trx.open_table(source)?, trx.open_table(table)?);
        let held = HashMap::default();
        Ok(CatchUp { source, table, convert, fresh, view, touched, held, bytes: 0, bytes_max })
    }

    /// Goes through the rows touched since the last round; answers how many. `alone`: nobody writes any more.
    pub fn round(&mut self, trx: &mut SessionTrx, alone: bool) -> SqlResult<usize> {
        let mut keys = self.touched.take().ok_or_else(|| self.too_much())?;
        keys.sort_unstable();
        let mut coming = Vec::new();
        for (n, key) in keys.iter().enumerate() {
            if n.is_multiple_of(LOOK_EVERY) {
                trx.check_interrupt()?;
            }
            self.look_at(trx, key, alone, &mut coming)?;
        }
        let mut refused = None;
        for (place, entry, key) in coming {
            if refused.as_ref() == Some(&key) {
                continue;
            }
            let is_of_copy = self.convert.is_some() && self.fresh[place] == 0;
            if !self.put(trx, place, entry, &key, alone)? && is_of_copy {
                refused = Some(key);
            }
        }
        Ok(keys.len())
    }

    /// Removes the entries that a row no longer has, and notes those that it has got.
    fn look_at(
        &mut self,
        trx: &mut SessionTrx,
        key: &[u8],
        alone: bool,
        coming: &mut Vec<Coming>,
    ) -> SqlResult<()> {
        let clustered = self.source.indexes[0].id;
        let lock = match alone {
            true => RowLock::Held,
            false => trx.lock_row(clustered, key, RowMode::Shared, WaitPolicy::SkipLocked)?,
        };
        if lock == RowLock::Skipped {
            self.touched.add(key);
            return Ok(());
        }
        let now = self.entries_of(trx, key, ReadAt::Latest);
        trx.unlock_new(clustered, key, lock);
        let now = now?;
        if !self.held.contains_key(key) {
            let then = self.entries_of(trx, key, ReadAt::View(self.view))?;
            let entries: usize = then.iter().flatten().map(|(entry, value)| entry.len() + value.len()).sum();
            self.charge(key.len() + entries + ROW_BYTES)?;
            self.held.insert(key.to_vec(), then);
        }
        let held = self.held.get_mut(key).expect("it was put there");
        let is_other_row = self.convert.is_some() && held.first() != now.first();
        for (place, (held, now)) in held.iter_mut().zip(now).enumerate() {
            if *held == now && !is_other_row {
                continue;
            }
            if let Some((gone, _)) = held.take() {
                let index = self.table.indexes[self.fresh[place]].id;
                trx.engine(self.table.engine).delete(index, &gone).map_err(engine_error)?;
            }
            coming.extend(now.map(|entry| (place, entry, key.to_vec())));
        }
        trx.charge_writes()
    }

    /// False: its key is taken, and the row comes again.
    fn put(
        &mut self,
        trx: &mut SessionTrx,
        place: usize,
        (entry, value): Entry,
        key: &[u8],
        alone: bool,
    ) -> SqlResult<bool> {
        let index = self.fresh[place];
        let (id, kind) = (self.table.indexes[index].id, self.table.indexes[index].kind);
        let engine = trx.engine(self.table.engine);
        if matches!(kind, IndexKind::Unique | IndexKind::Primary) {
            let is_taken = engine.get(ReadAt::Latest, id, &entry, &mut Vec::new()).map_err(engine_error)?;
            if is_taken && alone {
                return Err(self.collision(trx, index, key)?);
            }
            if is_taken {
                self.touched.add(key);
                return Ok(false);
            }
        }
        engine.put(id, &entry, &value).map_err(engine_error)?;
        self.charge(entry.len() + value.len())?;
        let held = self.held.get_mut(key).expect("it was looked at");
        held[place] = Some((entry, value));
        trx.charge_writes()?;
        Ok(true)
    }

    /// The entries of a row in the new indexes; none if there is no row.
    fn entries_of(&mut self, trx: &mut SessionTrx, key: &[u8], at: ReadAt<'_>) -> SqlResult<Entries> {
        let Some(row) = self.row(trx, key, at)? else { return Ok(vec![None; self.fresh.len()]) };
        let table = &self.table;
        let mut new_key = key.to_vec();
        if self.convert.is_some() && table.indexes[0].kind == IndexKind::Primary {
            new_key.clear();
            table.primary_key(&row, &mut new_key)?;
        }
        let entry = |index: &usize| {
            let (mut entry, mut value) = (Vec::new(), Vec::new());
            if *index == 0 {
                entry.extend_from_slice(&new_key);
                table.layout.encode(&row, &mut value).map_err(|e| table.row_error(e))?;
            } else {
                table.index_key(*index, &row, &new_key, &mut entry)?;
                value.extend_from_slice(table.index_value(*index, &new_key));
            }
            Ok(Some((entry, value)))
        };
        self.fresh.iter().map(entry).collect()
    }

    /// The row that writers write, as the new indexes have it.
    fn row(&mut self, trx: &mut SessionTrx, key: &[u8], at: ReadAt<'_>) -> SqlResult<Option<Vec<Value>>> {
        let (mut bytes, mut row) = (Vec::new(), Vec::new());
        let engine = trx.engine(self.source.engine);
        if !engine.get(at, self.source.indexes[0].id, key, &mut bytes).map_err(engine_error)? {
            return Ok(None);
        }
        // An index is added to a version of the table that may have other columns as well.
        let stored = if self.convert.is_some() { &self.source } else { &self.table };
        stored.decode(&bytes, &Columns::All, &mut row)?;
        Ok(Some(match &mut self.convert {
            Some(convert) => match convert(&row)? {
                Some(row) => row,
                None => return Ok(None),
            },
            None => row,
        }))
    }

    fn charge(&mut self, bytes: usize) -> SqlResult<()> {
        self.bytes += bytes as u64;
        if self.bytes > self.bytes_max { Err(self.too_much()) } else { Ok(()) }
    }

    /// Error 1799.
    fn too_much(&self) -> SqlError {
        let index = self.fresh.first().map_or("", |index| &*self.table.table().indexes[*index].name);
        SqlError::online_log_too_big(index)
    }

    /// Error 1062.
    fn collision(&mut self, trx: &mut SessionTrx, index: usize, key: &[u8]) -> SqlResult<SqlError> {
        let row = self.row(trx, key, ReadAt::Latest)?.unwrap_or_default();
        Ok(self.table.duplicate_error(index, &row, &trx.settings.time_zone))
    }
}
