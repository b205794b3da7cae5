//! `information_schema.COHORT_STATEMENTS`: the statistics of statements, a row for each digest, schema and
//! level. Statements without a digest have a row for each kind. Evicted statements share a row of each kind,
//! whose LEVEL is OTHERS.

use cohort_observe::{Measure, StatementRow};
use cohort_session::access::check_global;
use cohort_session::{StatementContext, WantedNames, event_name};
use cohort_types::{Privilege, SqlResult, Value};

use super::cells::{number, text};
use super::schema_table::SchemaTable;

/// Columns of sums.
const SUMS: [(&str, Measure); 19] = [
    ("CALLS", Measure::Calls),
    ("ERRORS", Measure::Errors),
    ("WARNINGS", Measure::Warnings),
    ("ROWS_SENT", Measure::RowsSent),
    ("ROWS_EXAMINED", Measure::RowsExamined),
    ("ROWS_AFFECTED", Measure::RowsAffected),
    ("PLAN_CACHE_HITS", Measure::PlanCacheHits),
    ("CREATED_TMP_TABLES", Measure::TmpTables),
    ("CREATED_TMP_DISK_TABLES", Measure::TmpDiskTables),
    ("SELECT_FULL_JOIN", Measure::FullJoin),
    ("SELECT_FULL_RANGE_JOIN", Measure::FullRangeJoin),
    ("SELECT_RANGE", Measure::Range),
    ("SELECT_SCAN", Measure::Scan),
    ("SORT_MERGE_PASSES", Measure::SortMergePasses),
    ("SORT_RANGE", Measure::SortRange),
    ("SORT_ROWS", Measure::SortRows),
    ("SORT_SCAN", Measure::SortScan),
    ("NO_INDEX_USED", Measure::NoIndexUsed),
    ("NO_GOOD_INDEX_USED", Measure::NoGoodIndexUsed),
];

/// Returns the hash of a digest as 32 hexadecimal digits.
pub(super) fn digest_text(digest: u128) -> Value {
    Value::text(format!("{digest:032x}"))
}

pub(super) fn rows(
    out: &SchemaTable,
    _: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Vec<Vec<Value>>> {
    check_global(ctx.session, Privilege::Process)?;
    Ok(ctx.db.statements.rows().iter().map(|row| row_of(out, row)).collect())
}

fn row_of(out: &SchemaTable, row: &StatementRow) -> Vec<Value> {
    let us = |ns: u64| number(ns / 1000);
    let (sums, totals) = (&row.totals.sums, &row.totals);
    let percentile = |p: f64| number(totals.latencies.percentile(p).min(totals.max_ns / 1000));
    let level = match &row.key {
        _ if row.is_others => "OTHERS",
        Some(key) if key.is_nested => "NESTED",
        _ => "TOP",
    };
    let schema = row.key.as_ref().and_then(|key| key.schema.as_deref());
    let (sample, has_sample) = (&row.sample, !row.sample.text.is_empty());
    let if_sampled = |value: Value| if has_sample { value } else { Value::Null };
    let mut cells = out.row([
        ("SCHEMA_NAME", schema.map_or(Value::Null, text)),
        ("DIGEST", row.key.as_ref().map_or(Value::Null, |key| digest_text(key.digest))),
        ("DIGEST_TEXT", row.key.as_ref().map_or(Value::Null, |_| text(&*row.text))),
        ("EVENT_NAME", text(event_name(row.kind))),
        ("LEVEL", text(level)),
        ("SUM_US", us(sums.get(Measure::Latency))),
        ("MIN_US", us(totals.min_ns)),
        ("MAX_US", us(totals.max_ns)),
        ("P50_US", percentile(0.5)),
        ("P95_US", percentile(0.95)),
        ("P99_US", percentile(0.99)),
        ("P999_US", percentile(0.999)),
        ("LOCK_WAIT_US", us(sums.get(Measure::LockWait))),
        ("COMMIT_WAIT_US", us(sums.get(Measure::CommitWait))),
        ("FIRST_SEEN", if row.first_us == 0 { Value::Null } else { Value::Timestamp(row.first_us as i64) }),
        ("LAST_SEEN", Value::Timestamp(totals.last_us as i64)),
        ("SAMPLE_TEXT", if_sampled(text(sample.text.as_str()))),
        ("SAMPLE_SEEN", if_sampled(Value::Timestamp(sample.seen_us as i64))),
        ("SAMPLE_US", if_sampled(us(sample.latency_ns))),
        ("SAMPLE_PLAN", if sample.plan.is_empty() { Value::Null } else { text(sample.plan.as_str()) }),
    ]);
    for (column, measure) in SUMS {
        cells[out.place(column)] = number(sums.get(measure));
    }
    cells
}
