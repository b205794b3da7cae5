//! Hooks of row changes ([`RowHook`]).

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_types::{SqlResult, Value};

use crate::statement::StatementContext;

/// Code that runs before and after each change of a row. An INSERT has no old row, a DELETE no new one.
///
/// Hooks may run statements. They must not change the table whose row is being changed.
pub trait RowHook: Send + Sync {
    /// Runs when the values were assigned and converted, before any constraint is checked, NOT NULL included.
    /// It may change the new row: it stores values of the columns' types, or NULL.
    fn before(
        &self,
        ctx: &mut StatementContext<'_>,
        old: Option<&[Value]>,
        new: Option<&mut [Value]>,
    ) -> SqlResult<()>;

    /// Returns whether [`RowHook::before`] looks at inserted rows. It may set columns that have no default.
    fn precedes_inserts(&self) -> bool {
        false
    }

    /// Returns whether the hook looks at deleted rows.
    fn sees_deletes(&self) -> bool {
        true
    }

    /// Runs after the row was written, and after an UPDATE that changes nothing. It sees the stored values.
    fn after(
        &self,
        ctx: &mut StatementContext<'_>,
        old: Option<&[Value]>,
        new: Option<&[Value]>,
    ) -> SqlResult<()>;
}

/// The hooks of all tables, in the order in which they run. Asked when a change is planned.
pub trait RowHooks: Send + Sync {
    /// Returns the hooks of a table.
    fn of(&self, table: &Arc<Table>) -> Vec<Arc<dyn RowHook>>;
}
