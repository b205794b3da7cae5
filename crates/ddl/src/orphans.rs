//! Orphaned indexes: index trees that no table refers to.

use std::collections::HashSet;

use cohort_base::IndexId;
use cohort_engine::EngineError;
use cohort_session::Database;

/// The first index id of user tables. Smaller ids belong to the server.
const FIRST_TABLE_INDEX: IndexId = IndexId(16);

/// Frees index trees left by a crash: loaded for a DDL statement that did not commit, or of a dropped table.
/// Called once when the server starts, before the first session. Returns the number of trees freed.
pub fn drop_orphans(db: &Database) -> Result<usize, EngineError> {
    let catalog = db.catalog();
    let tables = catalog.schemas.values().flat_map(|schema| schema.tables.values());
    let known: HashSet<IndexId> = tables.flat_map(|table| table.trees()).collect();
    let mut dropped = 0;
    for engine in &db.engines {
        let mut orphans = engine.indexes()?;
        orphans.retain(|id| *id >= FIRST_TABLE_INDEX && !known.contains(id));
        if !orphans.is_empty() {
            engine.drop_indexes(&orphans)?;
            orphans.iter().for_each(|orphan| db.ids.pass(*orphan));
            dropped += orphans.len();
        }
    }
    Ok(dropped)
}
