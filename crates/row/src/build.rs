//! Bulk load of indexes that no statement can see yet: a new index of a table, or a copy of a table.
//!
//! Both are built from a read view, so that writers can continue; [`catch_up`](super::catch_up) applies their
//! changes afterwards. A copy that cannot be caught up reads the newest committed rows instead. Its caller
//! blocks writers with a metadata lock and has waited until the last of them is published.
//!
//! Entries are sorted in memory in runs of bounded size. Each run goes to the engine's bulk load. Rows that
//! arrive in the order of the new key need no sorting and form a single run of any length.
//!
//! KILL and `max_statement_time` stop the build between two batches and during the load of a run. Sorting one
//! run takes about a second.
//!
//! # On failure
//! Loaded runs stay in an index that no table names. The caller must have the engine drop it.

use std::collections::HashSet;
use std::sync::Arc;

use cohort_catalog::{ROWS, RowKey, Table};
use cohort_engine::{Batch, BulkLoad, Direction, EngineError, KeyRange, LoadRedo, ReadAt, ScanRequest};
use cohort_table::OpenTable;
use cohort_trx::{SessionTrx, engine_error};
use cohort_types::{Columns, SqlError, SqlResult, Value};

/// Callback that receives the number of processed rows from time to time, for SHOW PROCESSLIST.
pub type Progress<'p> = dyn FnMut(u64) + 'p;

/// A conversion of a row of the old table to a row of the new one. `None` leaves the row out.
pub type Convert<'c> = dyn FnMut(&[Value]) -> SqlResult<Option<Vec<Value>>> + 'c;

/// Treatment of a row whose unique key an earlier row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// Fails with error 1062.
    Refuse,
    /// Leaves the row out and counts it.
    Drop,
}

const SCAN_ENTRIES: usize = 1024;
const RUN_BYTES: usize = 128 << 20;
const PROGRESS_ROWS: u64 = 10_000;

/// Fills index `index` of `table` (a version that has it) from the rows of the clustered index. Returns error
/// 1062 if the index is unique and two rows collide.
pub fn build_index(
    trx: &mut SessionTrx,
    table: &Arc<Table>,
    index: usize,
    at: ReadAt<'_>,
    progress: &mut Progress<'_>,
) -> SqlResult<()> {
    let open = trx.open_table(table)?;
    let mut runs = Runs::new(&open, index, at);
    let mut scan = RowScan::new(&open, at);
    let mut rows = 0_u64;
    while scan.fill(trx)? {
        for (key, bytes) in scan.batch.iter() {
            open.decode(bytes, &Columns::All, &mut scan.row)?;
            let mut goes_on = |_| trx.check_interrupt();
            for entry in open.entry_keys(index, &scan.row, key, &mut goes_on)? {
                runs.add(trx, entry, open.index_value(index, key).to_vec())?;
            }
            rows += 1;
            if rows.is_multiple_of(PROGRESS_ROWS) {
                progress(rows);
            }
        }
    }
    runs.finish(trx)
}

/// Copies all rows of `from` into `to`, with all indexes. The indexes of `to` must be empty. Returns the
/// number of rows that were left out as duplicates.
pub fn copy_rows(
    trx: &mut SessionTrx,
    (from, at): (&Arc<Table>, ReadAt<'_>),
    to: &Arc<Table>,
    convert: &mut Convert<'_>,
    duplicates: Duplicates,
    progress: &mut Progress<'_>,
) -> SqlResult<u64> {
    let (source, target) = (trx.open_table(from)?, trx.open_table(to)?);
    let mut runs = match duplicates {
        Duplicates::Refuse => vec![Runs::new(&target, ROWS, ReadAt::Latest)],
        Duplicates::Drop => (0..target.indexes.len())
            .filter(|n| *n == ROWS || target.indexes[*n].kind.is_unique())
            .map(|n| Runs::of_distinct(&target, n))
            .collect(),
    };
    let mut scan = RowScan::new(&source, at);
    let (mut rows, mut dropped) = (0_u64, 0);
    while scan.fill(trx)? {
        for (key, bytes) in scan.batch.iter() {
            source.decode(bytes, &Columns::All, &mut scan.row)?;
            let Some(row) = convert(&scan.row)? else { continue };
            rows += 1;
            let mut new_key = Vec::new();
            match (target.rows.key, source.rows.key) {
                (RowKey::Primary, _) => target.primary_key(&row, &mut new_key)?,
                (_, RowKey::HiddenRowId) => new_key.extend_from_slice(key),
                (_, _) => new_key.extend_from_slice(&rows.to_be_bytes()),
            }
            let mut bytes = Vec::new();
            target.layout.encode(&row, &mut bytes).map_err(|e| target.row_error(e))?;
            match duplicates {
                Duplicates::Refuse => runs[0].add(trx, new_key, bytes)?,
                Duplicates::Drop => {
                    dropped += u64::from(!add_distinct(&mut runs, trx, &row, new_key, bytes)?);
                }
            }
            if rows.is_multiple_of(PROGRESS_ROWS) {
                progress(rows);
            }
        }
    }
    let loaded: Vec<usize> = runs.iter().map(|runs| runs.index).collect();
    runs.into_iter().try_for_each(|runs| runs.finish(trx))?;
    (0..target.indexes.len())
        .filter(|index| !loaded.contains(index))
        .try_for_each(|index| build_index(trx, to, index, ReadAt::Latest, progress))?;
    Ok(dropped)
}

/// Adds a row to the clustered index and the unique indexes, unless one of them already contains its key. All
/// of these indexes load their runs together, so a key is either in the current run or in one that can be
/// read.
fn add_distinct(
    runs: &mut [Runs<'_>],
    trx: &mut SessionTrx,
    row: &[Value],
    clustered: Vec<u8>,
    bytes: Vec<u8>,
) -> SqlResult<bool> {
    let mut entries = Vec::with_capacity(runs.len());
    for run in runs.iter() {
        let (table, index) = (run.table, run.index);
        entries.push(match index {
            ROWS => (clustered.clone(), Vec::new()),
            _ => {
                let mut key = Vec::new();
                table.index_key(index, row, &clustered, &mut key)?;
                (key, table.index_value(index, &clustered).to_vec())
            }
        });
    }
    entries[0].1 = bytes;
    for (run, (key, _)) in runs.iter().zip(&entries) {
        if run.keys.contains(key) || run.loaded > 0 && run.is_loaded(trx, key)? {
            return Ok(false);
        }
    }
    for (run, (key, value)) in runs.iter_mut().zip(entries) {
        run.keys.insert(key.clone());
        run.gather(key, value);
    }
    if runs.iter().map(|run| run.bytes).sum::<usize>() >= RUN_BYTES {
        runs.iter_mut().try_for_each(|run| run.load_run(trx))?;
    }
    Ok(true)
}

/// A batched scan of all rows of a table.
struct RowScan<'t> {
    table: &'t OpenTable,
    at: ReadAt<'t>,
    /// Unread rest.
    range: Option<KeyRange>,
    batch: Batch,
    row: Vec<Value>,
}

impl<'t> RowScan<'t> {
    fn new(table: &'t OpenTable, at: ReadAt<'t>) -> RowScan<'t> {
        RowScan { table, at, range: Some(KeyRange::default()), batch: Batch::default(), row: Vec::new() }
    }

    /// Reads the next batch. Returns false at the end.
    fn fill(&mut self, trx: &mut SessionTrx) -> SqlResult<bool> {
        self.batch.clear();
        while self.batch.is_empty() {
            trx.check_interrupt()?;
            let Some(mut range) = self.range.take() else { return Ok(false) };
            let limit = self.table.entries_in(1 << 20).clamp(1, SCAN_ENTRIES);
            let (engine, clustered) = (trx.engine(self.table.engine), self.table.rows.id);
            let more = engine
                .scan(&ScanRequest::forward(self.at, clustered, &range, limit), &mut self.batch)
                .map_err(engine_error)?;
            if more {
                self.batch.cut(&mut range, Direction::Forward);
                self.range = Some(range);
            }
        }
        self.table.note_entries(self.batch.size_bytes(), self.batch.len());
        Ok(true)
    }
}

/// The loader of one index: collects entries into sorted runs.
struct Runs<'t> {
    table: &'t OpenTable,
    index: usize,
    /// The state that source rows are read from: a view, or the newest rows.
    at: ReadAt<'t>,
    /// The open load, as long as all entries have arrived in order.
    open: Option<Box<dyn BulkLoad>>,
    last_key: Vec<u8>,
    /// Entries of the current run, once an entry has arrived out of order.
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
    is_sorting: bool,
    loaded: usize,
    /// Keys of the current run, if rows with duplicate keys are left out.
    keys: HashSet<Vec<u8>>,
    /// Redo of the entries, if the log is archived.
    redo: Option<LoadRedo>,
}

impl<'t> Runs<'t> {
    fn new(table: &'t OpenTable, index: usize, at: ReadAt<'t>) -> Runs<'t> {
        Runs {
            table,
            index,
            at,
            open: None,
            last_key: Vec::new(),
            entries: Vec::new(),
            bytes: 0,
            is_sorting: false,
            loaded: 0,
            keys: HashSet::new(),
            redo: None,
        }
    }

    /// Creates a loader for an index whose entries are checked for duplicates before they are added.
    fn of_distinct(table: &'t OpenTable, index: usize) -> Runs<'t> {
        Runs { is_sorting: true, ..Runs::new(table, index, ReadAt::Latest) }
    }

    fn add(&mut self, trx: &mut SessionTrx, key: Vec<u8>, value: Vec<u8>) -> SqlResult<()> {
        if !self.is_sorting {
            let is_first = self.open.is_none();
            if !is_first && key == self.last_key {
                return Err(self.collision(trx, &value)?);
            }
            if is_first || key > self.last_key {
                self.put(trx, &key, &value)?;
                self.last_key = key;
                return Ok(());
            }
            self.close()?;
            self.is_sorting = true;
        }
        self.gather(key, value);
        if self.bytes >= RUN_BYTES { self.load_run(trx) } else { Ok(()) }
    }

    fn gather(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.bytes += key.len() + value.len() + 2 * size_of::<Vec<u8>>();
        self.entries.push((key, value));
    }

    fn finish(mut self, trx: &mut SessionTrx) -> SqlResult<()> {
        self.load_run(trx)?;
        self.close()?;
        let (Some(redo), Some(engine)) = (self.redo.take(), trx.env().engines.get(self.table.engine.0))
        else {
            return Ok(());
        };
        let id = engine.id();
        let redo = redo.finish(&*trx.env().commit).map_err(|error| engine_error(EngineError::Io(error)))?;
        trx.attach_load(id, redo);
        Ok(())
    }

    /// Adds an entry to the load, and to the redo of the load if the log is archived.
    fn put(&mut self, trx: &SessionTrx, key: &[u8], value: &[u8]) -> SqlResult<()> {
        self.load(trx)?.add(key, value).map_err(engine_error)?;
        let Some(redo) = &mut self.redo else { return Ok(()) };
        let engine = trx.env().engines.get(self.table.engine.0).expect("only loads of engines have redo");
        let index = self.table.indexes[self.index].id;
        let added = redo.add(&**engine, &*trx.env().commit, index, (key, value));
        added.map_err(|error| engine_error(EngineError::Io(error)))
    }

    fn load_run(&mut self, trx: &mut SessionTrx) -> SqlResult<()> {
        let mut entries = std::mem::take(&mut self.entries);
        if entries.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        self.keys.clear();
        trx.check_interrupt()?;
        entries.sort_unstable();
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(self.collision(trx, &pair[1].1)?);
        }
        for (n, (key, value)) in entries.iter().enumerate() {
            if n.is_multiple_of(SCAN_ENTRIES) {
                trx.check_interrupt()?;
            }
            // Earlier runs may already hold the key. Only indexes whose keys can collide are checked.
            if self.loaded > 0 && self.can_collide() && self.is_loaded(trx, key)? {
                return Err(self.collision(trx, value)?);
            }
            self.put(trx, key, value)?;
        }
        self.close()
    }

    fn can_collide(&self) -> bool {
        self.table.indexes[self.index].kind.is_unique()
    }

    fn is_loaded(&self, trx: &mut SessionTrx, key: &[u8]) -> SqlResult<bool> {
        let id = self.table.indexes[self.index].id;
        trx.engine(self.table.engine).get(ReadAt::Latest, id, key, &mut Vec::new()).map_err(engine_error)
    }

    fn load(&mut self, trx: &SessionTrx) -> SqlResult<&mut Box<dyn BulkLoad>> {
        if self.open.is_none() {
            let space = self.table.indexes[self.index].id;
            self.open = Some(match trx.env().engines.get(self.table.engine.0) {
                Some(engine) => {
                    if trx.env().commit.is_archived() {
                        if !engine.logs_loads() {
                            return Err(SqlError::load_not_archived(engine.name()));
                        }
                        self.redo.get_or_insert_default();
                    }
                    engine.bulk_load(space).map_err(engine_error)?
                }
                None => trx.temporary().rows().bulk_load(space),
            });
        }
        Ok(self.open.as_mut().expect("opened above"))
    }

    fn close(&mut self) -> SqlResult<()> {
        let Some(load) = self.open.take() else { return Ok(()) };
        self.loaded += 1;
        load.finish().map_err(engine_error)
    }

    /// Returns error 1062 for the entry with this value (a row, or the clustered key of a row).
    fn collision(&self, trx: &mut SessionTrx, value: &[u8]) -> SqlResult<SqlError> {
        let (mut found, mut row) = (Vec::new(), Vec::new());
        let bytes = if self.index == ROWS {
            value
        } else {
            let engine = trx.engine(self.table.engine);
            let clustered = self.table.rows.id;
            engine.get(self.at, clustered, value, &mut found).map_err(engine_error)?;
            &found
        };
        self.table.decode(bytes, &Columns::All, &mut row)?;
        Ok(self.table.duplicate_error(self.index, &row, &trx.settings.time_zone))
    }
}
