//! Definitions of routines, triggers and events.

use cohort_catalog::{CatalogChange, Schema};
use cohort_session::StatementContext;
use cohort_types::SqlResult;

use super::work::Changes;

/// Drops the routines and events of a schema. Triggers are dropped with their tables.
pub(super) fn drop_all(
    _ctx: &mut StatementContext<'_>,
    schema: &Schema,
    changes: &mut Changes,
) -> SqlResult<()> {
    for routine in schema.procedures.values().chain(schema.functions.values()) {
        let (schema, name) = (routine.schema.clone(), routine.name.clone());
        changes.catalog.push(CatalogChange::DropRoutine { kind: routine.kind, schema, name });
    }
    for event in schema.events.values() {
        let (schema, name) = (event.schema.clone(), event.name.clone());
        changes.catalog.push(CatalogChange::DropEvent { schema, name });
    }
    Ok(())
}
