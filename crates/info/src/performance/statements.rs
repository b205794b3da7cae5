//! `performance_schema.events_statements_summary_*`: sums over the statistics of statements.
//!
//! As in MariaDB, only statements of clients have rows by digest; statements of programs are part of the
//! statement that has run the program. Times are picoseconds.

use std::collections::BTreeMap;

use cohort_observe::{Measure, StatementRow, Totals};
use cohort_session::{EventKind, StatementContext, VirtualColumn, event_name};
use cohort_types::Value;

use crate::cells::{number, text};
use crate::statements::digest_text;

pub(super) const PICOSECONDS: u64 = 1000;

/// Returns the sums of a row under MariaDB's names of columns, or `None` for another column.
fn sum_of(column: &str, totals: &Totals) -> Option<Value> {
    use Measure as M;
    let sums = &totals.sums;
    let time = |ns: u64| number(ns.saturating_mul(PICOSECONDS));
    match column {
        "SUM_TIMER_WAIT" => return Some(time(sums.get(M::Latency))),
        "MIN_TIMER_WAIT" => return Some(time(totals.min_ns)),
        "AVG_TIMER_WAIT" => {
            return Some(time(sums.get(M::Latency).checked_div(sums.get(M::Calls)).unwrap_or(0)));
        }
        "MAX_TIMER_WAIT" => return Some(time(totals.max_ns)),
        "SUM_LOCK_TIME" => return Some(time(sums.get(M::LockWait))),
        _ => {}
    }
    measure_of(column).map(|measure| number(sums.get(measure)))
}

/// Returns the measure whose sum a column shows.
pub(super) fn measure_of(column: &str) -> Option<Measure> {
    use Measure as M;
    Some(match column {
        "COUNT_STAR" => M::Calls,
        "SUM_ERRORS" => M::Errors,
        "SUM_WARNINGS" => M::Warnings,
        "SUM_ROWS_AFFECTED" => M::RowsAffected,
        "SUM_ROWS_SENT" => M::RowsSent,
        "SUM_ROWS_EXAMINED" => M::RowsExamined,
        "SUM_CREATED_TMP_DISK_TABLES" => M::TmpDiskTables,
        "SUM_CREATED_TMP_TABLES" => M::TmpTables,
        "SUM_SELECT_FULL_JOIN" => M::FullJoin,
        "SUM_SELECT_FULL_RANGE_JOIN" => M::FullRangeJoin,
        "SUM_SELECT_RANGE" => M::Range,
        "SUM_SELECT_RANGE_CHECK" => M::RangeCheck,
        "SUM_SELECT_SCAN" => M::Scan,
        "SUM_SORT_MERGE_PASSES" => M::SortMergePasses,
        "SUM_SORT_RANGE" => M::SortRange,
        "SUM_SORT_ROWS" => M::SortRows,
        "SUM_SORT_SCAN" => M::SortScan,
        "SUM_NO_INDEX_USED" => M::NoIndexUsed,
        "SUM_NO_GOOD_INDEX_USED" => M::NoGoodIndexUsed,
        _ => return None,
    })
}

/// Returns the statements that are not part of others.
pub(super) fn top_level(ctx: &StatementContext<'_>) -> impl Iterator<Item = StatementRow> {
    let rows = ctx.db.statements.rows().into_iter();
    rows.filter(|row| row.key.as_ref().is_none_or(|key| !key.is_nested))
}

/// Returns the rows of `events_statements_summary_by_digest`. Evicted statements are one row.
pub(super) fn by_digest(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let (mut rows, mut others) = (Vec::new(), None);
    for row in top_level(ctx) {
        if row.is_others {
            let (totals, first_us): &mut (Totals, u64) =
                others.get_or_insert_with(|| (Totals::default(), row.totals.last_us));
            totals.merge(&row.totals);
            *first_us = row.totals.last_us.min(*first_us);
            continue;
        }
        let Some(key) = &row.key else { continue };
        let cell = |column: &VirtualColumn| match column.name {
            "SCHEMA_NAME" => key.schema.as_deref().map_or(Value::Null, text),
            "DIGEST" => digest_text(key.digest),
            "DIGEST_TEXT" => text(&*row.text),
            name => sum_of(name, &row.totals).unwrap_or_else(|| seen(name, row.first_us, row.totals.last_us)),
        };
        rows.push(columns.iter().map(cell).collect());
    }
    if let Some((totals, first_us)) = others {
        let cell = |column: &VirtualColumn| match column.name {
            "SCHEMA_NAME" | "DIGEST" | "DIGEST_TEXT" => Value::Null,
            name => sum_of(name, &totals).unwrap_or_else(|| seen(name, first_us, totals.last_us)),
        };
        rows.push(columns.iter().map(cell).collect());
    }
    rows
}

/// Returns the rows of the sums by account, host, user or thread. Statements are counted while `userstat` is
/// on. Kinds that have not run have no rows.
pub(super) fn by_owner(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let has = |name: &str| columns.iter().any(|column| column.name == name);
    let [has_thread, has_user, has_host] = ["THREAD_ID", "USER", "HOST"].map(has);
    let mut sums: BTreeMap<(u64, String, String, usize), Totals> = BTreeMap::new();
    let mut add = |owner: (u64, &str, &str), kinds: Vec<(usize, Totals)>| {
        for (kind, totals) in kinds {
            let key = (owner.0, owner.1.to_owned(), owner.2.to_owned(), kind);
            sums.entry(key).or_default().merge(&totals);
        }
    };
    if has_thread {
        for process in ctx.db.processes.all() {
            add((process.id().0, "", ""), process.statement_sums());
        }
    } else {
        for ((user, host), kinds) in ctx.db.processes.account_sums() {
            let (user, host) = (if has_user { &*user } else { "" }, if has_host { &*host } else { "" });
            add((0, user, host), kinds.list());
        }
    }
    let row = |((thread, user, host, kind), totals): ((u64, String, String, usize), Totals)| {
        let cell = |column: &VirtualColumn| match column.name {
            "THREAD_ID" => number(thread),
            "USER" => text(user.as_str()),
            "HOST" => text(host.as_str()),
            "EVENT_NAME" => text(event_name(kind)),
            column => sum_of(column, &totals).unwrap_or(Value::Null),
        };
        columns.iter().map(cell).collect()
    };
    sums.into_iter().map(row).collect()
}

fn seen(column: &str, first_us: u64, last_us: u64) -> Value {
    Value::Timestamp(if column == "FIRST_SEEN" { first_us } else { last_us } as i64)
}

/// Returns the rows of `events_statements_summary_global_by_event_name`: one for each kind of statement, even
/// if none of the kind has run.
pub(super) fn by_event_name(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let mut names: BTreeMap<String, Totals> = BTreeMap::new();
    for kind in EventKind::all() {
        names.insert(event_name(kind), Totals::default());
    }
    for row in top_level(ctx) {
        names.entry(event_name(row.kind)).or_default().merge(&row.totals);
    }
    let row = |(name, totals): (String, Totals)| {
        let cell = |column: &VirtualColumn| match column.name {
            "EVENT_NAME" => text(name.as_str()),
            column => sum_of(column, &totals).unwrap_or(Value::Null),
        };
        columns.iter().map(cell).collect()
    };
    names.into_iter().map(row).collect()
}
