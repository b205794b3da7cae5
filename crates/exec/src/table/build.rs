//! Filling key spaces that nobody sees yet: a new index of an existing table, a copy of a table.
//!
//! Both read the newest committed rows; the caller keeps writers out by a metadata lock, and has waited until the last
//! of them is published. Entries are sorted in memory in runs, merged, and given to the engine's bulk load in order.

use std::sync::Arc;

use cohort_catalog::{IndexKind, Table};
use cohort_engine::{Batch, Direction, KeyRange, ReadAt};
use cohort_types::{SqlResult, Value, successor};

use crate::table::{Columns, OpenTable};
use crate::trx::{SessionTrx, engine_error};

/// Told now and then how many rows are done, for SHOW PROCESSLIST.
pub type Progress<'p> = dyn FnMut(u64) + 'p;

const SCAN_ENTRIES: usize = 1024;

/// Fills index `index` of `table` (a version that has it) from the rows of the clustered index. Error 1062 if it is
/// unique and two rows collide; nothing stays then.
pub fn build_index(
    trx: &mut SessionTrx,
    table: &Arc<Table>,
    index: usize,
    progress: &mut Progress<'_>,
) -> SqlResult<()> {
    let open = trx.open_table(table)?;
    let mut entries = Vec::new();
    let mut rows = 0_u64;
    scan_rows(trx, &open, &mut |key, row| {
        let mut entry = Vec::new();
        open.index_key(index, row, key, &mut entry)?;
        entries.push((entry, open.index_value(index, key).to_vec()));
        rows += 1;
        if rows % 10_000 == 0 {
            progress(rows);
        }
        Ok(())
    })?;
    entries.sort_unstable();
    if open.indexes[index].kind == IndexKind::Unique {
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(collision(trx, &open, index, &pair[1].1)?);
        }
    }
    load(trx, &open, index, &entries)
}

/// Copies all rows of `from` into `to`, a table whose key spaces are empty; `convert` makes the new row of an old one.
pub fn copy_rows(
    trx: &mut SessionTrx,
    from: &Arc<Table>,
    to: &Arc<Table>,
    convert: &mut dyn FnMut(&[Value]) -> SqlResult<Vec<Value>>,
    progress: &mut Progress<'_>,
) -> SqlResult<()> {
    let (source, target) = (trx.open_table(from)?, trx.open_table(to)?);
    let mut entries = Vec::new();
    let mut rows = 0_u64;
    scan_rows(trx, &source, &mut |key, row| {
        let row = convert(row)?;
        let mut new_key = Vec::new();
        match (target.indexes[0].kind, source.indexes[0].kind) {
            (IndexKind::Primary, _) => target.primary_key(&row, &mut new_key)?,
            (_, IndexKind::HiddenRowId) => new_key.extend_from_slice(key),
            (_, _) => new_key.extend_from_slice(&(rows + 1).to_be_bytes()),
        }
        let mut bytes = Vec::new();
        target.layout.encode(&row, &mut bytes).map_err(|e| target.row_error(e))?;
        entries.push((new_key, bytes));
        rows += 1;
        if rows % 10_000 == 0 {
            progress(rows);
        }
        Ok(())
    })?;
    entries.sort_unstable();
    if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let mut row = Vec::new();
        target.decode(&pair[1].1, &Columns::All, &mut Vec::new(), &mut row)?;
        return Err(target.duplicate_error(0, &row));
    }
    load(trx, &target, 0, &entries)?;
    (1..target.indexes.len()).try_for_each(|index| build_index(trx, to, index, progress))
}

/// Calls `each` with clustered key and values of every row.
fn scan_rows(
    trx: &mut SessionTrx,
    table: &OpenTable,
    each: &mut dyn FnMut(&[u8], &[Value]) -> SqlResult<()>,
) -> SqlResult<()> {
    let (mut range, mut batch) = (KeyRange::default(), Batch::default());
    let (mut row, mut some) = (Vec::new(), Vec::new());
    loop {
        trx.check_killed()?;
        batch.clear();
        let limit = table.entries_in(1 << 20).clamp(1, SCAN_ENTRIES);
        let engine = trx.engine(table.engine);
        let more = engine
            .scan(ReadAt::Latest, table.indexes[0].id, &range, Direction::Forward, limit, &mut batch)
            .map_err(engine_error)?;
        table.note_entries(batch.size_bytes(), batch.len());
        for (key, value) in batch.iter() {
            table.decode(value, &Columns::All, &mut some, &mut row)?;
            each(key, &row)?;
        }
        if !more || batch.is_empty() {
            return Ok(());
        }
        range.start = Some(successor(batch.get(batch.len() - 1).0));
    }
}

fn load(
    trx: &mut SessionTrx,
    table: &OpenTable,
    index: usize,
    entries: &[(Vec<u8>, Vec<u8>)],
) -> SqlResult<()> {
    let engine = &trx.db.engines[table.engine.0];
    let mut load = engine.bulk_load(table.indexes[index].id).map_err(engine_error)?;
    for (key, value) in entries {
        load.add(key, value).map_err(engine_error)?;
    }
    load.finish().map_err(engine_error)
}

/// Error 1062 for the row of a clustered key.
fn collision(
    trx: &mut SessionTrx,
    table: &OpenTable,
    index: usize,
    clustered_key: &[u8],
) -> SqlResult<cohort_types::SqlError> {
    let (mut bytes, mut row) = (Vec::new(), Vec::new());
    let engine = trx.engine(table.engine);
    engine.get(ReadAt::Latest, table.indexes[0].id, clustered_key, &mut bytes).map_err(engine_error)?;
    table.decode(&bytes, &Columns::All, &mut Vec::new(), &mut row)?;
    Ok(table.duplicate_error(index, &row))
}
