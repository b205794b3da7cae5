//! The tables of `userstat` in information_schema: USER_STATISTICS, CLIENT_STATISTICS, TABLE_STATISTICS and
//! INDEX_STATISTICS. They have rows of the time while `userstat` is on.
//!
//! # Differences to MariaDB
//! Not counted, and 0: CPU_TIME, bytes received, sent and written to the binary log, denied and lost
//! connections, ACCESS_DENIED, EMPTY_QUERIES, connections over TLS, statements that were ended by
//! max_statement_time. COMMIT_TRANSACTIONS and ROLLBACK_TRANSACTIONS count the statements. A table that ALTER
//! TABLE copies begins at 0.

use std::collections::BTreeMap;

use cohort_config::Counter;
use cohort_observe::{Measure, Totals};
use cohort_session::access::sees_table;
use cohort_session::{EventKind, StatementContext, WantedNames};
use cohort_types::{Privilege, SqlResult, Value};

use super::cells::{integer, number, text};
use super::schema_table::SchemaTable;

type Rows = SqlResult<Vec<Vec<Value>>>;

/// Statements that count as UPDATE_COMMANDS, and those among them that change rows.
const INSERTS: [Counter; 5] = [
    Counter::ComInsert,
    Counter::ComInsertSelect,
    Counter::ComReplace,
    Counter::ComReplaceSelect,
    Counter::ComLoad,
];
const UPDATES: [Counter; 2] = [Counter::ComUpdate, Counter::ComUpdateMulti];
const DELETES: [Counter; 2] = [Counter::ComDelete, Counter::ComDeleteMulti];

/// Sums of an account or a host.
#[derive(Default)]
struct OfClient {
    logins: u64,
    current: u64,
    connected_us: u64,
    kinds: BTreeMap<usize, Totals>,
}

impl OfClient {
    fn of_kinds(&self, kinds: &[Counter], measure: Measure) -> u64 {
        let kinds = kinds.iter().filter_map(|kind| self.kinds.get(&EventKind::of(*kind).index()));
        kinds.map(|totals| totals.sums.get(measure)).sum()
    }

    fn sum(&self, measure: Measure) -> u64 {
        self.kinds.values().map(|totals| totals.sums.get(measure)).sum()
    }
}

/// Returns the sums by a part of the accounts: their user or their host.
fn clients(ctx: &StatementContext<'_>, part: fn(&(String, String)) -> &String) -> BTreeMap<String, OfClient> {
    let processes = &ctx.db.processes;
    let now_us = ctx.db.clock.wall_us();
    let mut clients: BTreeMap<String, OfClient> = BTreeMap::new();
    for (account, sums) in processes.account_sums() {
        let client = clients.entry(part(&account).clone()).or_default();
        for (kind, totals) in sums.list() {
            client.kinds.entry(kind).or_default().merge(&totals);
        }
    }
    for (account, logins) in processes.logins() {
        if let Some(client) = clients.get_mut(part(&account)) {
            client.logins += logins.since_reset();
        }
    }
    for process in processes.all() {
        let identity = process.identity();
        let account = (identity.user.clone(), identity.host_name().to_owned());
        if let Some(client) = clients.get_mut(part(&account)) {
            client.current += 1;
            client.connected_us += now_us.saturating_sub(process.connected_us());
        }
    }
    clients
}

/// Returns the rows of USER_STATISTICS.
pub(super) fn users(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    Ok(client_rows(out, ctx, "USER", |account| &account.0))
}

/// Returns the rows of CLIENT_STATISTICS.
pub(super) fn hosts(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    Ok(client_rows(out, ctx, "CLIENT", |account| &account.1))
}

/// Returns the rows of one of these tables. Without PROCESS there are none.
fn client_rows(
    out: &SchemaTable,
    ctx: &StatementContext<'_>,
    name: &'static str,
    part: fn(&(String, String)) -> &String,
) -> Vec<Vec<Value>> {
    if !ctx.session.access().everywhere().has(Privilege::Process) {
        return Vec::new();
    }
    let row = |(client, sums): (String, OfClient)| {
        let (calls, changed) = (Measure::Calls, Measure::RowsAffected);
        let updates = [INSERTS.as_slice(), &UPDATES, &DELETES].concat();
        let selects = sums.of_kinds(&[Counter::ComSelect], calls);
        let updating = sums.of_kinds(&updates, calls);
        let mut row = out.zeros();
        for (column, value) in [
            ("TOTAL_CONNECTIONS", sums.logins),
            ("CONCURRENT_CONNECTIONS", sums.current),
            ("CONNECTED_TIME", sums.connected_us / 1_000_000),
            ("ROWS_READ", sums.sum(Measure::RowsExamined)),
            ("ROWS_SENT", sums.sum(Measure::RowsSent)),
            ("ROWS_INSERTED", sums.of_kinds(&INSERTS, changed)),
            ("ROWS_UPDATED", sums.of_kinds(&UPDATES, changed)),
            ("ROWS_DELETED", sums.of_kinds(&DELETES, changed)),
            ("SELECT_COMMANDS", selects),
            ("UPDATE_COMMANDS", updating),
            ("OTHER_COMMANDS", sums.sum(calls).saturating_sub(selects + updating)),
            ("COMMIT_TRANSACTIONS", sums.of_kinds(&[Counter::ComCommit], calls)),
            ("ROLLBACK_TRANSACTIONS", sums.of_kinds(&[Counter::ComRollback], calls)),
        ] {
            row[out.place(column)] = integer(value);
        }
        row[out.place(name)] = text(client);
        row[out.place("BUSY_TIME")] = Value::Double(sums.sum(Measure::Latency) as f64 / 1e9);
        row
    };
    clients(ctx, part).into_iter().map(row).collect()
}

/// Returns the rows of TABLE_STATISTICS.
pub(super) fn tables(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let access = ctx.session.access();
    let mut rows = Vec::new();
    for (table, usage) in ctx.db.tables.usages() {
        let used = usage.values();
        let (read, changed) = (used.read, used.changed());
        if read + changed == 0 || !sees_table(&access, &table.name.schema, &table.name.table) {
            continue;
        }
        rows.push(out.row([
            ("TABLE_SCHEMA", text(&table.name.schema)),
            ("TABLE_NAME", text(&table.name.table)),
            ("ROWS_READ", integer(read)),
            ("ROWS_CHANGED", integer(changed)),
            ("ROWS_CHANGED_X_INDEXES", integer(used.index_changes)),
        ]));
    }
    Ok(rows)
}

/// Returns the rows of INDEX_STATISTICS.
pub(super) fn indexes(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let access = ctx.session.access();
    let mut rows = Vec::new();
    for (table, usage) in ctx.db.tables.usages() {
        if !sees_table(&access, &table.name.schema, &table.name.table) {
            continue;
        }
        for (index, read) in usage.values().indexes.into_iter().filter(|(_, read)| *read > 0) {
            rows.push(out.row([
                ("TABLE_SCHEMA", text(&table.name.schema)),
                ("TABLE_NAME", text(&table.name.table)),
                ("INDEX_NAME", text(index)),
                ("ROWS_READ", integer(read)),
            ]));
        }
    }
    Ok(rows)
}

/// Runs FLUSH .. STATISTICS: sets the counters of a table to 0.
pub(super) fn flush(ctx: &StatementContext<'_>, table: &str) {
    match table {
        "USER_STATISTICS" | "CLIENT_STATISTICS" => ctx.db.processes.reset_sums(),
        "TABLE_STATISTICS" => ctx.db.tables.usages().iter().for_each(|(_, usage)| usage.reset_table()),
        "INDEX_STATISTICS" => ctx.db.tables.usages().iter().for_each(|(_, usage)| usage.reset_indexes()),
        _ => {}
    }
}

/// Returns `performance_schema.table_io_waits_summary_by_table`, or `_by_index_usage` if it has the column
/// INDEX_NAME. Accesses are counted and not timed. Rows that are inserted, updated and deleted are not
/// counted by index.
pub(super) fn table_io(
    columns: &[cohort_session::VirtualColumn],
    ctx: &StatementContext<'_>,
) -> Vec<Vec<Value>> {
    if !ctx.db.globals.flag(cohort_config::VarId::Userstat) {
        return Vec::new();
    }
    let by_index = columns.iter().any(|column| column.name == "INDEX_NAME");
    let mut rows = Vec::new();
    for (table, usage) in ctx.db.tables.usages() {
        let used = usage.values();
        let mut add = |index: Option<&str>, fetched: u64, changes: [u64; 3]| {
            let [inserted, updated, deleted] = changes;
            let written = inserted + updated + deleted;
            let cell = |column: &cohort_session::VirtualColumn| match column.name {
                "OBJECT_TYPE" => text("TABLE"),
                "OBJECT_SCHEMA" => text(&table.name.schema),
                "OBJECT_NAME" => text(&table.name.table),
                "INDEX_NAME" => index.map_or(Value::Null, text),
                "COUNT_STAR" => number(fetched + written),
                "COUNT_READ" | "COUNT_FETCH" => number(fetched),
                "COUNT_WRITE" => number(written),
                "COUNT_INSERT" => number(inserted),
                "COUNT_UPDATE" => number(updated),
                "COUNT_DELETE" => number(deleted),
                _ => number(0u64),
            };
            rows.push(columns.iter().map(cell).collect());
        };
        let changes = [used.inserted, used.updated, used.deleted];
        if !by_index {
            add(None, used.read, changes);
            continue;
        }
        for (index, read) in &used.indexes {
            add(Some(index), *read, [0; 3]);
        }
        add(None, used.scanned, changes);
    }
    rows
}
