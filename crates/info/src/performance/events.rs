//! `performance_schema.events_statements_current`, `_history` and `_history_long`, and the histograms of
//! MySQL 8.
//!
//! Only statements of clients are listed, not those of their programs. Times are picoseconds since the
//! server's clock began.

use std::sync::Arc;

use cohort_observe::{Consumer, Latencies, Measure, Measured, Running, StatementEvent};
use cohort_session::{Process, StatementContext, VirtualColumn, event_name};
use cohort_types::Value;

use super::statements::{PICOSECONDS, measure_of, top_level};
use crate::cells::{number, text};
use crate::statements::digest_text;

fn time(ns: u64) -> Value {
    number(ns.saturating_mul(PICOSECONDS))
}

/// Returns the value of a column of the numbers of a statement: the column of the sums, without `SUM_`.
fn measured(column: &str, measured: &Measured) -> Value {
    let measure = measure_of(&format!("SUM_{column}"));
    measure.map_or(Value::Null, |measure| number(measured.get(measure)))
}

fn ended(columns: &[VirtualColumn], event: &StatementEvent) -> Vec<Value> {
    let latency_ns = event.measured.get(Measure::Latency);
    let error = event.error.as_ref();
    let cell = |column: &VirtualColumn| match column.name {
        "THREAD_ID" => number(event.thread),
        "EVENT_ID" | "END_EVENT_ID" => number(event.number),
        "EVENT_NAME" => text(event_name(event.kind)),
        "SOURCE" => text(""),
        "TIMER_START" => time(event.began_ns),
        "TIMER_END" => time(event.began_ns + latency_ns),
        "TIMER_WAIT" => time(latency_ns),
        "LOCK_TIME" => time(event.measured.get(Measure::LockWait)),
        "SQL_TEXT" => text(event.text.as_str()),
        "DIGEST" => event.digest.as_ref().map_or(Value::Null, |(hash, _)| digest_text(*hash)),
        "DIGEST_TEXT" => event.digest.as_ref().map_or(Value::Null, |(_, digest)| text(&**digest)),
        "CURRENT_SCHEMA" => event.schema.as_deref().map_or(Value::Null, text),
        "MYSQL_ERRNO" => Value::Int(error.map_or(0, |(number, ..)| (*number).into())),
        "RETURNED_SQLSTATE" => error.map_or(Value::Null, |(_, state, _)| text(state.as_str())),
        "MESSAGE_TEXT" => error.map_or(Value::Null, |(_, _, message)| text(message.as_str())),
        column => measured(column, &event.measured),
    };
    columns.iter().map(cell).collect()
}

fn running(columns: &[VirtualColumn], process: &Process, running: Running, now_ns: u64) -> Vec<Value> {
    let shown = process.snapshot(&|_| None);
    let mut so_far = Measured::default();
    so_far.add(Measure::RowsExamined, process.counts().reads().saturating_sub(running.rows_read));
    let waited_ns = process.kill_flag().waited_ns().saturating_sub(running.lock_wait_ns);
    let cell = |column: &VirtualColumn| match column.name {
        "THREAD_ID" => number(process.id().0),
        "EVENT_ID" => number(running.number),
        "EVENT_NAME" => text("statement/abstract/Query"),
        "SOURCE" => text(""),
        "TIMER_START" => time(running.began_ns),
        "TIMER_END" => time(now_ns),
        "TIMER_WAIT" => time(now_ns.saturating_sub(running.began_ns)),
        "LOCK_TIME" => time(waited_ns),
        "SQL_TEXT" => shown.info.as_deref().map_or(Value::Null, text),
        "CURRENT_SCHEMA" => shown.identity.schema.as_deref().map_or(Value::Null, text),
        "MYSQL_ERRNO" => Value::Int(0),
        column => measured(column, &so_far),
    };
    columns.iter().map(cell).collect()
}

/// Returns the rows of `events_statements_current`: the running statement of each session, or its last one.
pub(super) fn current(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    if !ctx.db.events.has(Consumer::Current) {
        return Vec::new();
    }
    let now_ns = ctx.db.clock.monotonic_ns();
    let row = |process: Arc<Process>| match process.events().list() {
        (Some(now), _) => Some(running(columns, &process, now, now_ns)),
        (None, events) => events.last().map(|event| ended(columns, event)),
    };
    ctx.db.processes.all().into_iter().filter_map(row).collect()
}

/// Returns the rows of `events_statements_history`.
pub(super) fn history(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    if !ctx.db.events.has(Consumer::History) {
        return Vec::new();
    }
    let processes = ctx.db.processes.all();
    let events = processes.iter().flat_map(|process| process.events().list().1);
    events.map(|event| ended(columns, &event)).collect()
}

/// Returns the rows of `events_statements_history_long`.
pub(super) fn history_long(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    ctx.db.events.long().iter().map(|event| ended(columns, event)).collect()
}

/// Returns the rows of a histogram. Buckets without statements are left out.
fn buckets(columns: &[VirtualColumn], first: &[(&str, Value)], latencies: &Latencies) -> Vec<Vec<Value>> {
    let (all, mut seen) = (latencies.count(), 0);
    let mut rows = Vec::new();
    for bucket in latencies.filled() {
        seen += bucket.count;
        let cell = |column: &VirtualColumn| match column.name {
            "BUCKET_NUMBER" => number(bucket.number as u64),
            "BUCKET_TIMER_LOW" => time(bucket.from_us.saturating_mul(1000)),
            "BUCKET_TIMER_HIGH" => time(bucket.to_us.saturating_mul(1000)),
            "COUNT_BUCKET" => number(bucket.count),
            "COUNT_BUCKET_AND_LOWER" => number(seen),
            "BUCKET_QUANTILE" => Value::Double((seen as f64 / all as f64 * 1e6).round() / 1e6),
            name => first.iter().find(|(known, _)| *known == name).map_or(Value::Null, |cell| cell.1.clone()),
        };
        rows.push(columns.iter().map(cell).collect());
    }
    rows
}

/// Returns the rows of `events_statements_histogram_by_digest`.
pub(super) fn histogram_by_digest(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for row in top_level(ctx) {
        let Some(key) = &row.key else { continue };
        let schema = key.schema.as_deref().map_or(Value::Null, text);
        let first = [("SCHEMA_NAME", schema), ("DIGEST", digest_text(key.digest))];
        rows.extend(buckets(columns, &first, &row.totals.latencies));
    }
    rows
}

/// Returns the rows of `events_statements_histogram_global`.
pub(super) fn histogram_global(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let mut all = cohort_observe::Totals::default();
    top_level(ctx).for_each(|row| _ = all.merge(&row.totals));
    buckets(columns, &[], &all.latencies)
}
