//! The row of one key in a snapshot: what a cursor would find, without one.

use cohort_engine::ReadAt;
use cohort_table::{OpenTable, definition_changed};
use cohort_trx::{Counted, SessionTrx, engine_error};
use cohort_types::SqlResult;

/// Reads the row of a clustered key as it is stored into `value`; false if there is none.
pub fn read_point(
    trx: &mut SessionTrx,
    table: &OpenTable,
    key: &[u8],
    value: &mut Vec<u8>,
) -> SqlResult<bool> {
    let view = trx.read_view()?;
    let clustered = &table.indexes[0];
    // A view that is older than the key space would find it empty.
    if trx.has_view_before(clustered.since) {
        return Err(definition_changed());
    }
    trx.counts().count(Counted::ReadKey);
    let engine = trx.engine(table.engine);
    engine.get(ReadAt::View(&view), clustered.id, key, value).map_err(engine_error)
}
