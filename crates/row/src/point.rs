//! Snapshot read of one row by its key, without a cursor.

use cohort_catalog::ROWS;
use cohort_engine::ReadAt;
use cohort_table::{OpenTable, definition_changed};
use cohort_trx::{Counted, SessionTrx, engine_error};
use cohort_types::SqlResult;

/// Reads the stored row of a clustered key into `value`. Returns false if it does not exist.
pub fn read_point(
    trx: &mut SessionTrx,
    table: &OpenTable,
    key: &[u8],
    value: &mut Vec<u8>,
) -> SqlResult<bool> {
    let view = trx.read_view()?;
    let clustered = table.rows;
    // A view older than the index would find it empty.
    if trx.has_view_before(clustered.since) {
        return Err(definition_changed());
    }
    trx.counts().count(Counted::ReadKey);
    let engine = trx.engine(table.engine);
    let found = engine.get(ReadAt::View(&view), clustered.id, key, value).map_err(engine_error)?;
    match found {
        true => trx.count_read(table, Some(ROWS), 1),
        false => trx.counts().count_empty(),
    }
    Ok(found)
}
