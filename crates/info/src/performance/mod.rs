//! Rows of `performance_schema`. Tables without a function here are empty: nothing is measured for them.

mod statements;

use cohort_session::{StatementContext, VirtualColumn};
use cohort_types::Value;

/// Returns the rows of a table.
pub(super) fn rows(table: &str, columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    match table {
        "events_statements_summary_by_digest" => statements::by_digest(columns, ctx),
        "events_statements_summary_global_by_event_name" => statements::by_event_name(columns, ctx),
        name if name.starts_with("replication_") => super::replication_tables::rows(name, columns, ctx),
        _ => Vec::new(),
    }
}
