//! [`CatchUp`]: brings indexes that were built at a view up to what writers have changed since.
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

/// Rows between two looks at KILL.
const LOOK_EVERY: usize = 256;
/// Bytes that a row takes here beside its keys.
const ROW_BYTES: u64 = 96;

/// Entries of one row, by new index.
type Entries = Vec<Option<Vec<u8>>>;

/// An index build that writers did not wait for.
pub struct CatchUp<'t> {
    /// The version that has the new indexes.
    table: Arc<OpenTable>,
    fresh: &'t [usize],
    /// What the indexes were built from.
    view: &'t ReadView,
    touched: &'t TouchedRows,
    /// What the new indexes hold of the rows that were looked at.
    held: HashMap<Vec<u8>, Entries, ahash::RandomState>,
    bytes: u64,
    bytes_max: u64,
}

/// An entry to come: place in `fresh`, entry, clustered key.
type Coming = (usize, Vec<u8>, Vec<u8>);

impl<'t> CatchUp<'t> {
    /// `table` has the new indexes `fresh`, built from what `view` shows.
    pub fn new(
        trx: &SessionTrx,
        table: &Arc<Table>,
        fresh: &'t [usize],
        view: &'t ReadView,
        touched: &'t TouchedRows,
        bytes_max: u64,
    ) -> SqlResult<CatchUp<'t>> {
        let table = trx.open_table(table)?;
        Ok(CatchUp { table, fresh, view, touched, held: HashMap::default(), bytes: 0, bytes_max })
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
        for (place, entry, key) in coming {
            self.put(trx, place, entry, key, alone)?;
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
        let clustered = self.table.indexes[0].id;
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
            self.charge(key, &then)?;
            self.held.insert(key.to_vec(), then);
        }
        let held = self.held.get_mut(key).expect("it was put there");
        for (place, (held, now)) in held.iter_mut().zip(now).enumerate() {
            if *held == now {
                continue;
            }
            if let Some(gone) = held.take() {
                let index = self.table.indexes[self.fresh[place]].id;
                trx.engine(self.table.engine).delete(index, &gone).map_err(engine_error)?;
            }
            coming.extend(now.map(|entry| (place, entry, key.to_vec())));
        }
        trx.charge_writes()
    }

    fn put(
        &mut self,
        trx: &mut SessionTrx,
        place: usize,
        entry: Vec<u8>,
        key: Vec<u8>,
        alone: bool,
    ) -> SqlResult<()> {
        let index = self.fresh[place];
        let (id, kind) = (self.table.indexes[index].id, self.table.indexes[index].kind);
        let engine = trx.engine(self.table.engine);
        if kind == IndexKind::Unique {
            let is_taken = engine.get(ReadAt::Latest, id, &entry, &mut Vec::new()).map_err(engine_error)?;
            if is_taken && alone {
                return Err(self.collision(trx, index, &key)?);
            }
            if is_taken {
                self.touched.add(&key);
                return Ok(());
            }
        }
        engine.put(id, &entry, self.table.index_value(index, &key)).map_err(engine_error)?;
        self.charge(&entry, &[])?;
        let held = self.held.get_mut(&key).expect("it was looked at");
        held[place] = Some(entry);
        trx.charge_writes()
    }

    /// The entries of a row in the new indexes; none if there is no row.
    fn entries_of(&self, trx: &mut SessionTrx, key: &[u8], at: ReadAt<'_>) -> SqlResult<Entries> {
        let Some(row) = self.row(trx, key, at)? else { return Ok(vec![None; self.fresh.len()]) };
        let entry = |index: &usize| {
            let mut entry = Vec::new();
            self.table.index_key(*index, &row, key, &mut entry).map(|()| Some(entry))
        };
        self.fresh.iter().map(entry).collect()
    }

    fn row(&self, trx: &mut SessionTrx, key: &[u8], at: ReadAt<'_>) -> SqlResult<Option<Vec<Value>>> {
        let (mut bytes, mut row) = (Vec::new(), Vec::new());
        let engine = trx.engine(self.table.engine);
        if !engine.get(at, self.table.indexes[0].id, key, &mut bytes).map_err(engine_error)? {
            return Ok(None);
        }
        self.table.decode(&bytes, &Columns::All, &mut row)?;
        Ok(Some(row))
    }

    fn charge(&mut self, key: &[u8], entries: &[Option<Vec<u8>>]) -> SqlResult<()> {
        let entries: usize = entries.iter().flatten().map(Vec::len).sum();
        self.bytes += (key.len() + entries) as u64 + ROW_BYTES;
        if self.bytes > self.bytes_max { Err(self.too_much()) } else { Ok(()) }
    }

    /// Error 1799.
    fn too_much(&self) -> SqlError {
        let index = self.fresh.first().map_or("", |index| &*self.table.table().indexes[*index].name);
        SqlError::online_log_too_big(index)
    }

    /// Error 1062.
    fn collision(&self, trx: &mut SessionTrx, index: usize, key: &[u8]) -> SqlResult<SqlError> {
        let row = self.row(trx, key, ReadAt::Latest)?.unwrap_or_default();
        Ok(self.table.duplicate_error(index, &row, &trx.settings.time_zone))
    }
}
