//! [`CatchUp`]: applies the changes that writers made during an online build of indexes or of a table copy. A
//! table copy is built as the set of all indexes of a new table, with rows converted from those of the
//! source.
//!
//! # Rounds
//! A round takes the list of touched rows. It reads each row under its lock, compares the row's entries with
//! those in the new indexes, and writes the difference: first all deletes, then all inserts. A row whose lock
//! is taken is requeued for the next round. Rounds that run concurrently with writers leave little for the
//! last one. The last round runs under the exclusive metadata lock of the table. It locks no rows and
//! requeues none.
//!
//! The entries are written by the DDL statement's own transaction. They commit or roll back with the table
//! description that names the new indexes.
//!
//! # Rows of a copy
//! Two rows of the source may appear to map to one row of the copy, with the same entries in all of its
//! indexes: the first gave up its key, but was locked when the round reached it. So the entries of a copied
//! row belong to the source row that wrote its clustered entry. If the clustered key is taken, no entry of
//! the row is written. If the clustered entry changes, all entries of the row are removed and written again.
//!
//! # Unique keys
//! While writers run, two rows may appear to have the same key: one gave it up, but was locked when the round
//! reached the other. So a taken key is an error only in the last round; before that the row is requeued.

use std::collections::HashMap;
use std::sync::Arc;

use cohort_catalog::{ROWS, RowKey, Table};
use cohort_engine::{ReadAt, ReadView};
use cohort_locks::RowMode;
use cohort_table::{OpenTable, TouchedRows};
use cohort_trx::{RowLock, SessionTrx, WaitPolicy, engine_error};
use cohort_types::{Columns, SqlError, SqlResult, Value};

use super::build::Convert;

/// Number of rows between two checks for KILL.
const LOOK_EVERY: usize = 256;
/// Memory per tracked row in addition to its keys, in bytes.
const ROW_BYTES: usize = 96;

/// Key and value of an index entry.
type Entry = (Vec<u8>, Vec<u8>);

/// Entries of one row, by new index.
type Entries = Vec<Option<Entry>>;

/// Catch-up state of an online build.
pub struct CatchUp<'t> {
    /// The table version that writers use.
    source: Arc<OpenTable>,
    /// The table version with the new indexes.
    table: Arc<OpenTable>,
    /// Converts a source row to a row of the copy. Deterministic. `None` if no table is copied.
    convert: Option<&'t mut Convert<'t>>,
    fresh: &'t [usize],
    /// The view that the indexes were built from.
    view: &'t ReadView,
    touched: &'t TouchedRows,
    /// Entries in the new indexes, for rows that were processed before.
    held: HashMap<Vec<u8>, Entries, ahash::RandomState>,
    bytes: u64,
    bytes_max: u64,
}

/// A pending insert: position in `fresh`, entry, clustered key of the source row.
type Coming = (usize, Entry, Vec<u8>);

/// The result of an online build, before catch-up.
pub struct Built<'t> {
    /// The table that writers use.
    pub source: &'t Arc<Table>,
    /// The table with the new indexes.
    pub table: &'t Arc<Table>,
    /// Positions of its new indexes.
    pub fresh: &'t [usize],
    /// The view that they were built from.
    pub view: &'t ReadView,
}

impl<'t> CatchUp<'t> {
    /// Creates the state before the first round. With `convert`, the new indexes are those of a copy.
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

    /// Processes the rows touched since the last round and returns their number. `alone`: no writer is active
    /// any more.
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

    /// Deletes entries that the row no longer has, and collects its new ones in `coming`.
    fn look_at(
        &mut self,
        trx: &mut SessionTrx,
        key: &[u8],
        alone: bool,
        coming: &mut Vec<Coming>,
    ) -> SqlResult<()> {
        let clustered = self.source.rows.id;
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

    /// Writes an entry. Returns false if its key is taken; then the row is requeued.
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
        if kind.is_unique() {
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

    /// Returns the row's entries in the new indexes; all are `None` if the row does not exist.
    fn entries_of(&mut self, trx: &mut SessionTrx, key: &[u8], at: ReadAt<'_>) -> SqlResult<Entries> {
        let Some(row) = self.row(trx, key, at)? else { return Ok(vec![None; self.fresh.len()]) };
        let table = &self.table;
        let mut new_key = key.to_vec();
        if self.convert.is_some() && table.rows.key == RowKey::Primary {
            new_key.clear();
            table.primary_key(&row, &mut new_key)?;
        }
        let entry = |index: &usize| {
            let (mut entry, mut value) = (Vec::new(), Vec::new());
            if *index == ROWS {
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

    /// Reads the source row and converts it for the new indexes.
    fn row(&mut self, trx: &mut SessionTrx, key: &[u8], at: ReadAt<'_>) -> SqlResult<Option<Vec<Value>>> {
        let (mut bytes, mut row) = (Vec::new(), Vec::new());
        let engine = trx.engine(self.source.engine);
        if !engine.get(at, self.source.rows.id, key, &mut bytes).map_err(engine_error)? {
            return Ok(None);
        }
        // The table version with the new index may also have other columns.
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

    /// Returns error 1799 (online log too big).
    fn too_much(&self) -> SqlError {
        let index = self.fresh.first().map_or("", |index| &*self.table.table().indexes[*index].name);
        SqlError::online_log_too_big(index)
    }

    /// Returns error 1062 (duplicate key).
    fn collision(&mut self, trx: &mut SessionTrx, index: usize, key: &[u8]) -> SqlResult<SqlError> {
        let row = self.row(trx, key, ReadAt::Latest)?.unwrap_or_default();
        Ok(self.table.duplicate_error(index, &row, &trx.settings.time_zone))
    }
}
