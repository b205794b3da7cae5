//! MySQL's `performance_schema.error_log`: the newest lines of the error log, which the server keeps in
//! memory.

use cohort_session::{StatementContext, VirtualColumn};
use cohort_types::Value;

use super::member;
use crate::cells::{number, text};

/// Returns the rows of `error_log`.
pub(super) fn rows(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let callbacks = ctx.db.callbacks.read();
    let lines = callbacks.as_ref().map_or_else(Vec::new, |callbacks| callbacks.error_log());
    let row = |line: cohort_session::ErrorLogRow| {
        vec![
            Value::Timestamp(line.wall_us as i64),
            number(0),
            member(&columns[2], line.level),
            Value::Null,
            text("Server"),
            text(line.text),
        ]
    };
    lines.into_iter().map(row).collect()
}
