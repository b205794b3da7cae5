//! `performance_schema.setup_*` and `performance_timers`: the measurements that exist. Only consumers of
//! statements can be switched.

use cohort_config::VarId;
use cohort_observe::Consumer;
use cohort_session::{EventKind, StatementContext, VirtualColumn, event_name};
use cohort_types::Value;

use super::member;
use crate::cells::text;

/// The consumers of MariaDB, and whether they are on, as in MariaDB by default. The tables of those that are
/// off are empty.
const CONSUMERS: [(&str, bool); 15] = [
    ("events_stages_current", false),
    ("events_stages_history", false),
    ("events_stages_history_long", false),
    ("events_statements_current", false),
    ("events_statements_history", false),
    ("events_statements_history_long", false),
    ("events_transactions_current", false),
    ("events_transactions_history", false),
    ("events_transactions_history_long", false),
    ("events_waits_current", false),
    ("events_waits_history", false),
    ("events_waits_history_long", false),
    ("global_instrumentation", true),
    ("thread_instrumentation", true),
    ("statements_digest", true),
];

/// Returns the rows of `setup_consumers`.
pub(super) fn consumers(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let row = |(name, is_on): (&str, bool)| {
        let is_on = match name {
            "statements_digest" => is_on && ctx.db.globals.flag(VarId::PerformanceSchema),
            "events_statements_current" => ctx.db.events.has(Consumer::Current),
            "events_statements_history" => ctx.db.events.has(Consumer::History),
            "events_statements_history_long" => ctx.db.events.has(Consumer::HistoryLong),
            _ => is_on,
        };
        vec![text(name), member(&columns[1], if is_on { "YES" } else { "NO" })]
    };
    CONSUMERS.into_iter().map(row).collect()
}

/// Returns the row of `setup_actors`: statements of all accounts are counted.
pub(super) fn actors(columns: &[VirtualColumn]) -> Vec<Vec<Value>> {
    let all = || text("%");
    vec![vec![all(), all(), all(), member(&columns[3], "YES"), member(&columns[4], "YES")]]
}

/// Returns the rows of `setup_instruments`: kinds of statements and of files.
pub(super) fn instruments(columns: &[VirtualColumn]) -> Vec<Vec<Value>> {
    let mut names: Vec<String> = EventKind::all().map(event_name).collect();
    names.extend(super::files::EVENTS.map(str::to_owned));
    names.sort();
    let row = |name: String| vec![text(name), member(&columns[1], "YES"), member(&columns[2], "YES")];
    names.into_iter().map(row).collect()
}

/// Returns the row of `setup_timers`.
pub(super) fn timers(columns: &[VirtualColumn]) -> Vec<Vec<Value>> {
    vec![vec![text("statement"), member(&columns[1], "NANOSECOND")]]
}

/// Returns the row of `performance_timers`.
pub(super) fn performance_timers(columns: &[VirtualColumn]) -> Vec<Vec<Value>> {
    vec![vec![member(&columns[0], "NANOSECOND"), Value::Int(1_000_000_000), Value::Int(1), Value::Null]]
}
