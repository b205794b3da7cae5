//! Rows of `performance_schema`. Tables without a function here are empty: nothing is measured for them.

mod accounts;
mod setup;
mod statements;
mod threads;

use cohort_config::VarId;
use cohort_session::{StatementContext, VirtualColumn};
use cohort_types::Value;

use super::status::{Of, server_status};

/// Returns the rows of a table.
pub(super) fn rows(table: &str, columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    match table {
        "events_statements_summary_by_digest" => statements::by_digest(columns, ctx),
        "events_statements_summary_global_by_event_name" => statements::by_event_name(columns, ctx),
        "accounts" | "hosts" | "users" => accounts::rows(columns, ctx),
        "session_connect_attrs" => accounts::attributes(ctx, false),
        "session_account_connect_attrs" => accounts::attributes(ctx, true),
        "global_status" => status(ctx, Of::Server),
        "session_status" => status(ctx, Of::Session),
        "threads" => threads::rows(columns, ctx),
        "setup_actors" => setup::actors(columns),
        "setup_consumers" => setup::consumers(columns, ctx.db.globals.flag(VarId::PerformanceSchema)),
        "setup_instruments" => setup::instruments(columns),
        "setup_timers" => setup::timers(columns),
        "performance_timers" => setup::performance_timers(columns),
        name if name.starts_with("replication_") => super::replication_tables::rows(name, columns, ctx),
        _ => Vec::new(),
    }
}

/// Returns the rows of `global_status` and `session_status`.
fn status(ctx: &StatementContext<'_>, of: Of) -> Vec<Vec<Value>> {
    let rows = server_status(ctx, of).into_iter();
    rows.map(|(name, value)| vec![Value::text(name), Value::text(value)]).collect()
}

/// Returns the value of an ENUM column.
fn member(column: &VirtualColumn, word: &str) -> Value {
    let place = column.ty.members.iter().position(|member| member == word);
    place.and_then(|place| column.ty.enum_value(place as u16 + 1)).unwrap_or(Value::Null)
}
