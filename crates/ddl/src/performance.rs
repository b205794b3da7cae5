//! TRUNCATE of tables of `performance_schema`: resets what they sum up.
//!
//! MariaDB's rules: a table of what exists now cannot be truncated (error 1683). Sums by account and by
//! connection are reset together, and with the statistics of `userstat`.

use cohort_session::StatementContext;
use cohort_types::{SqlError, SqlResult};

use super::DdlOutcome;

const SCHEMA: &str = "performance_schema";

/// Tables of what exists now, and of settings.
const FIXED: [&str; 24] = [
    "clone_progress",
    "clone_status",
    "cond_instances",
    "data_lock_waits",
    "data_locks",
    "error_log",
    "file_instances",
    "global_variables",
    "metadata_locks",
    "mutex_instances",
    "performance_timers",
    "rwlock_instances",
    "session_account_connect_attrs",
    "session_connect_attrs",
    "session_status",
    "session_variables",
    "setup_consumers",
    "setup_instruments",
    "setup_timers",
    "socket_instances",
    "table_handles",
    "threads",
    "user_variables_by_thread",
    "variables_by_thread",
];

pub(super) fn truncate_statistics(ctx: &StatementContext<'_>, table: &str) -> SqlResult<DdlOutcome> {
    let db = ctx.db;
    let name = table.to_ascii_lowercase();
    if db.virtual_table(SCHEMA, &name).is_none() {
        return Err(SqlError::no_such_table(SCHEMA, table));
    }
    if FIXED.contains(&&*name) || name.starts_with("replication_") {
        return Err(SqlError::wrong_performance_schema_usage());
    }
    match &*name {
        "events_statements_summary_by_digest"
        | "events_statements_summary_global_by_event_name"
        | "events_statements_histogram_by_digest"
        | "events_statements_histogram_global" => db.statements.reset(),
        "events_statements_summary_by_account_by_event_name"
        | "events_statements_summary_by_host_by_event_name"
        | "events_statements_summary_by_thread_by_event_name"
        | "events_statements_summary_by_user_by_event_name" => db.processes.reset_sums(),
        "accounts" | "hosts" | "users" => db.processes.forget_logins(),
        "events_statements_current" | "events_statements_history" => {
            db.processes.all().iter().for_each(|process| process.events().clear());
        }
        "events_statements_history_long" => db.events.clear_long(),
        "file_summary_by_event_name" | "file_summary_by_instance" => db.fs.reset_io(),
        "table_io_waits_summary_by_table" | "table_io_waits_summary_by_index_usage" => {
            for (_, usage) in db.tables.usages() {
                usage.reset_table();
                usage.reset_indexes();
            }
        }
        // All statements are counted, so the row that says so cannot be removed.
        "setup_actors" | "setup_objects" => {
            return Err(SqlError::not_supported(&format!("TRUNCATE of {SCHEMA}.{name}")));
        }
        // Tables without rows, and those that show counters of which FLUSH STATUS is the reset.
        _ => {}
    }
    Ok(DdlOutcome::default())
}
