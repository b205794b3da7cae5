//! Rows of `performance_schema`. Tables without a function here are empty: nothing is measured for them.

mod accounts;
mod clones;
mod error_log;
mod events;
mod files;
mod locks;
mod memory;
mod setup;
mod statements;
mod threads;

use cohort_config::Scope;
use cohort_session::{StatementContext, VirtualColumn};
use cohort_types::Value;

use super::cells::number;
use super::status::{Of, server_status};
use super::{rows_server, usage, words};

/// Returns the rows of a table.
pub(super) fn rows(table: &str, columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    match table {
        "events_statements_summary_by_digest" => statements::by_digest(columns, ctx),
        "events_statements_summary_global_by_event_name" => statements::by_event_name(columns, ctx),
        "events_statements_summary_by_account_by_event_name"
        | "events_statements_summary_by_host_by_event_name"
        | "events_statements_summary_by_thread_by_event_name"
        | "events_statements_summary_by_user_by_event_name" => statements::by_owner(columns, ctx),
        "events_statements_current" => events::current(columns, ctx),
        "events_statements_history" => events::history(columns, ctx),
        "events_statements_history_long" => events::history_long(columns, ctx),
        "events_statements_histogram_by_digest" => events::histogram_by_digest(columns, ctx),
        "events_statements_histogram_global" => events::histogram_global(columns, ctx),
        "metadata_locks" => locks::metadata(columns, ctx),
        "error_log" => error_log::rows(columns, ctx),
        "file_instances" => files::instances(ctx),
        "file_summary_by_instance" => files::by_instance(columns, ctx),
        "file_summary_by_event_name" => files::by_event_name(columns, ctx),
        "clone_status" => clones::status(ctx),
        "clone_progress" => clones::progress(ctx),
        "data_locks" => locks::data(columns, ctx),
        "data_lock_waits" => locks::data_waits(columns, ctx),
        "table_io_waits_summary_by_table" | "table_io_waits_summary_by_index_usage" => {
            usage::table_io(columns, ctx)
        }
        "memory_summary_global_by_event_name" => memory::global(columns, ctx),
        "memory_summary_by_account_by_event_name"
        | "memory_summary_by_host_by_event_name"
        | "memory_summary_by_thread_by_event_name"
        | "memory_summary_by_user_by_event_name" => memory::by_owner(columns, ctx),
        "user_variables_by_thread" => words::by_thread(ctx),
        "global_variables" => variables(ctx, Scope::Global, &[]),
        "session_variables" => variables(ctx, Scope::Session, &[]),
        "variables_by_thread" => variables(ctx, Scope::Session, &[number(ctx.process.id().0)]),
        "status_by_thread" => status_by_thread(ctx),
        "accounts" | "hosts" | "users" => accounts::rows(columns, ctx),
        "session_connect_attrs" => accounts::attributes(ctx, false),
        "session_account_connect_attrs" => accounts::attributes(ctx, true),
        "global_status" => status(ctx, Of::Server),
        "session_status" => status(ctx, Of::Session),
        "threads" => threads::rows(columns, ctx),
        "setup_actors" => setup::actors(columns),
        "setup_consumers" => setup::consumers(columns, ctx),
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

/// Returns the names and values of all variables, each after the cells of `first`.
fn variables(ctx: &StatementContext<'_>, scope: Scope, first: &[Value]) -> Vec<Vec<Value>> {
    let rows = rows_server::variables(ctx, scope).into_iter();
    rows.map(|(name, value)| [first, &[Value::text(name), Value::text(value)]].concat()).collect()
}

/// Returns the rows of `status_by_thread`: the counters that exist for each connection.
fn status_by_thread(ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for process in ctx.db.processes.all() {
        let row = |(name, value): (&str, u64)| {
            vec![number(process.id().0), Value::text(name), Value::text(value.to_string())]
        };
        rows.extend(process.counts().list().map(row));
    }
    rows
}

/// Returns the value of an ENUM column.
fn member(column: &VirtualColumn, word: &str) -> Value {
    let place = column.ty.members.iter().position(|member| member == word);
    place.and_then(|place| column.ty.enum_value(place as u16 + 1)).unwrap_or(Value::Null)
}
