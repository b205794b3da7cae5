//! `performance_schema.threads`: a row for each connection and each thread of the server that runs
//! statements. THREAD_ID is the id of the connection.

use cohort_session::{Command, StatementContext, VirtualColumn};
use cohort_types::Value;

use super::member;
use crate::cells::{number, text};

pub(super) fn rows(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let now_us = ctx.db.clock.wall_us();
    let row = |process: std::sync::Arc<cohort_session::Process>| {
        let shown = process.snapshot(&|_| None);
        let identity = &shown.identity;
        let is_client = identity.account.is_some();
        let name = match shown.command {
            Command::Daemon => "thread/sql/event_scheduler",
            Command::SlaveIo => "thread/sql/slave_io",
            Command::SlaveSql | Command::SlaveWorker => "thread/sql/slave_sql",
            _ => "thread/sql/one_connection",
        };
        let of_client = |value: &str| if is_client { text(value) } else { Value::Null };
        let cell = |column: &VirtualColumn| match column.name {
            "THREAD_ID" | "PROCESSLIST_ID" => number(shown.id.0),
            "NAME" => text(name),
            "TYPE" => text(if is_client { "FOREGROUND" } else { "BACKGROUND" }),
            "PROCESSLIST_USER" => of_client(&identity.user),
            "PROCESSLIST_HOST" => of_client(identity.host_name()),
            "PROCESSLIST_DB" => identity.schema.as_deref().map_or(Value::Null, text),
            "PROCESSLIST_COMMAND" => text(shown.command.name()),
            "PROCESSLIST_TIME" => Value::Int((now_us.saturating_sub(shown.since_us) / 1_000_000) as i64),
            "PROCESSLIST_STATE" if !shown.state.is_empty() => text(shown.state),
            "PROCESSLIST_INFO" => shown.info.as_deref().map_or(Value::Null, text),
            "INSTRUMENTED" | "HISTORY" => member(column, "YES"),
            _ => Value::Null,
        };
        columns.iter().map(cell).collect()
    };
    ctx.db.processes.all().into_iter().map(row).collect()
}
