//! The B+tree engine in information_schema, under InnoDB's names: its buffer pool, counters, tables and
//! indexes. All tables share one file, so a table's part of it is shown as a separate "tablespace" with the
//! table's number.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use cohort_base::Reservation;
use cohort_catalog::{Index, ROWS, Table};
use cohort_session::{StatementContext, WantedNames};
use cohort_sql::print::quoted_name;
use cohort_types::{SqlError, SqlResult, Value, row_memory_bytes};

use super::cells::{integer, number, text};
use super::schema_table::SchemaTable;
use super::status::{Of, POOL_PAGE_BYTES as PAGE_BYTES, server_status};

type Rows = SqlResult<Vec<Vec<Value>>>;

/// Internal columns of a row in InnoDB, included in N_COLS.
const SYSTEM_COLUMNS: usize = 3;
/// The value of FLAG for the row format Dynamic.
const DYNAMIC: u64 = 33;

fn counters(ctx: &StatementContext<'_>) -> BTreeMap<String, u64> {
    let all = server_status(ctx, Of::Server).into_iter();
    all.filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect()
}

pub(super) fn buffer_pool_stats(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let counters = counters(ctx);
    let counter = |name: &str| counters.get(&format!("Innodb_{name}")).copied().unwrap_or(0);
    let (pages, held) = (counter("buffer_pool_pages_total"), counter("buffer_pool_pages_data"));
    let (gets, reads) = (counter("buffer_pool_read_requests"), counter("buffer_pool_reads"));
    let hits = (gets.saturating_sub(reads) * 1000).checked_div(gets).unwrap_or(0);
    let mut row = out.zeros();
    for (name, value) in [
        ("POOL_SIZE", pages),
        ("FREE_BUFFERS", counter("buffer_pool_pages_free")),
        ("DATABASE_PAGES", held),
        ("MODIFIED_DATABASE_PAGES", counter("buffer_pool_pages_dirty")),
        ("NUMBER_PAGES_READ", reads),
        ("NUMBER_PAGES_GET", gets),
        ("HIT_RATE", hits),
        ("NUMBER_PAGES_READ_AHEAD", counter("buffer_pool_read_ahead")),
    ] {
        row[out.place(name)] = number(value);
    }
    Ok(vec![row])
}

/// Returns the rows of INNODB_BUFFER_PAGE; INNODB_BUFFER_PAGE_LRU has the same. Pages have no LSN: a page
/// that changed since it was last written is shown with the LSN of the last checkpoint. There is no LRU list,
/// so the position in it is a running number, and IS_OLD marks pages that may be evicted next.
pub(super) fn buffer_pages(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let Some(engine) = ctx.db.engine_named("InnoDB") else { return Ok(Vec::new()) };
    let mut owners = HashMap::new();
    for table in tables(ctx) {
        let name = text(format!("{}.{}", quoted_name(&table.name.schema), quoted_name(&table.name.table)));
        let of = |index: &Index| (index.id, (table.id.0, name.clone(), index_name(index)));
        owners.extend(table.indexes.iter().map(of));
    }
    let checkpoint = engine.durable_lsn().0.max(1);
    let is_lru = out.shown_as() == "INNODB_BUFFER_PAGE_LRU";
    let mut usual = out.zeros();
    usual[out.place("IO_FIX")] = out.member("IO_FIX", "IO_NONE");
    if !is_lru {
        usual[out.place("PAGE_STATE")] = out.member("PAGE_STATE", "FILE_PAGE");
    }
    let place = out.place(if is_lru { "LRU_POSITION" } else { "BLOCK_ID" });
    let [number_at, type_at, held_at, newest_at, oldest_at, old_at] =
        ["PAGE_NUMBER", "PAGE_TYPE", "FIX_COUNT", "NEWEST_MODIFICATION", "OLDEST_MODIFICATION", "IS_OLD"]
            .map(|name| out.place(name));
    let [space_at, table_at, index_at, entries_at, bytes_at] =
        ["SPACE", "TABLE_NAME", "INDEX_NAME", "NUMBER_RECORDS", "DATA_SIZE"].map(|name| out.place(name));
    let mut memory = Reservation::new(ctx.session.memory.clone());
    let (mut rows, mut outcome) = (Vec::new(), Ok(()));
    engine.pages_in_memory(&mut |page| {
        let mut row = usual.clone();
        row[place] = number(rows.len());
        row[number_at] = number(page.number);
        row[type_at] = text(if page.contents.is_some() { "INDEX" } else { "UNKNOWN" });
        row[held_at] = number(u64::from(page.is_held));
        row[old_at] = integer(i64::from(!page.is_used));
        if page.is_changed {
            (row[newest_at], row[oldest_at]) = (number(checkpoint), number(checkpoint));
        }
        if let Some(contents) = page.contents {
            row[entries_at] = number(contents.entries);
            row[bytes_at] = number(contents.bytes);
            if let Some((space, table, index)) = owners.get(&contents.index) {
                row[space_at] = number(*space);
                (row[table_at], row[index_at]) = (table.clone(), index.clone());
            }
        }
        let held = memory.grow(row_memory_bytes(&row) as u64).map_err(SqlError::from);
        outcome = held.and_then(|()| ctx.check_interrupt());
        rows.push(row);
        if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    outcome.map(|()| rows)
}

const COUNTER: &str = "status_counter";
const VALUE: &str = "value";

/// InnoDB's name of a counter, its subsystem, its type, and the corresponding variable of SHOW STATUS.
#[rustfmt::skip]
const METRICS: &[(&str, &str, &str, &str)] = &[
    ("lock_deadlocks", "lock", VALUE, "Innodb_deadlocks"),
    ("lock_timeouts", "lock", VALUE, LOCK_TIMEOUTS),
    ("lock_row_lock_current_waits", "lock", VALUE, "Innodb_row_lock_current_waits"),
    ("lock_row_lock_time", "lock", COUNTER, "Innodb_row_lock_time"),
    ("lock_row_lock_time_max", "lock", VALUE, "Innodb_row_lock_time_max"),
    ("lock_row_lock_waits", "lock", COUNTER, "Innodb_row_lock_waits"),
    ("lock_row_lock_time_avg", "lock", VALUE, "Innodb_row_lock_time_avg"),
    ("buffer_pool_size", "server", VALUE, "Innodb_buffer_pool_pages_total"),
    ("buffer_pool_reads", "buffer", COUNTER, "Innodb_buffer_pool_reads"),
    ("buffer_pool_read_requests", "buffer", COUNTER, "Innodb_buffer_pool_read_requests"),
    ("buffer_pool_read_ahead", "buffer", COUNTER, "Innodb_buffer_pool_read_ahead"),
    ("buffer_pool_pages_total", "buffer", VALUE, "Innodb_buffer_pool_pages_total"),
    ("buffer_pool_pages_data", "buffer", VALUE, "Innodb_buffer_pool_pages_data"),
    ("buffer_pool_bytes_data", "buffer", VALUE, "Innodb_buffer_pool_bytes_data"),
    ("buffer_pool_pages_dirty", "buffer", VALUE, "Innodb_buffer_pool_pages_dirty"),
    ("buffer_pool_bytes_dirty", "buffer", VALUE, "Innodb_buffer_pool_bytes_dirty"),
    ("buffer_pool_pages_free", "buffer", VALUE, "Innodb_buffer_pool_pages_free"),
    ("buffer_pages_created", "buffer", COUNTER, "Innodb_pages_created"),
    ("buffer_pages_written", "buffer", COUNTER, "Innodb_pages_written"),
    ("buffer_pages_read", "buffer", COUNTER, "Innodb_pages_read"),
    ("buffer_data_reads", "buffer", COUNTER, "Innodb_data_read"),
    ("buffer_data_written", "buffer", COUNTER, "Innodb_data_written"),
    ("buffer_LRU_batch_flush_total_pages", "buffer", COUNTER, "Innodb_buffer_pool_pages_lru_flushed"),
    ("buffer_LRU_batch_evict_total_pages", "buffer", COUNTER, "Innodb_buffer_pool_pages_lru_freed"),
    ("os_data_reads", "os", COUNTER, "Innodb_data_reads"),
    ("os_data_writes", "os", COUNTER, "Innodb_data_writes"),
    ("os_data_fsyncs", "os", COUNTER, "Innodb_data_fsyncs"),
    ("os_pending_reads", "os", "counter", "Innodb_data_pending_reads"),
    ("os_log_bytes_written", "os", COUNTER, "Innodb_os_log_written"),
    ("trx_rseg_history_len", "transaction", VALUE, "Innodb_history_list_length"),
    ("log_waits", "recovery", COUNTER, "Innodb_log_waits"),
    ("log_write_requests", "recovery", COUNTER, "Innodb_log_write_requests"),
    ("log_writes", "recovery", COUNTER, "Innodb_log_writes"),
    ("file_num_open_files", "file_system", VALUE, "Innodb_num_open_files"),
    ("innodb_page_size", "server", VALUE, "Innodb_page_size"),
];

/// Name of the number of lock waits that timed out, which is no variable of SHOW STATUS.
const LOCK_TIMEOUTS: &str = "lock waits that timed out";

pub(super) fn metrics(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let mut counters = counters(ctx);
    counters.insert(LOCK_TIMEOUTS.to_owned(), ctx.db.locks.stats().timeouts);
    let there = METRICS.iter().filter_map(|metric| Some((metric, *counters.get(metric.3)?)));
    let row = |(&(name, subsystem, kind, variable), value): (&(&str, &str, &str, &str), u64)| {
        let comment = match variable {
            LOCK_TIMEOUTS => "Number of lock timeouts".to_owned(),
            variable => format!("{variable} of SHOW STATUS"),
        };
        out.row([
            ("NAME", text(name)),
            ("SUBSYSTEM", text(subsystem)),
            ("COUNT", integer(value)),
            ("COUNT_RESET", integer(value)),
            ("ENABLED", integer(1)),
            ("TYPE", out.member("TYPE", kind)),
            ("COMMENT", text(comment)),
        ])
    };
    Ok(there.map(row).collect())
}

/// Returns the engine's tables, ordered by table id.
fn tables(ctx: &StatementContext<'_>) -> Vec<Arc<Table>> {
    let catalog = ctx.db.catalog();
    let all = catalog.schemas.values().flat_map(|schema| schema.tables.values());
    let mut found: Vec<Arc<Table>> =
        all.filter(|table| table.engine.eq_ignore_ascii_case("InnoDB")).cloned().collect();
    found.sort_by_key(|table| table.id.0);
    found
}

fn name_of(table: &Table) -> Value {
    text(format!("{}/{}", table.name.schema, table.name.table))
}

/// Returns the bytes and entries of an index.
fn size_of(ctx: &StatementContext<'_>, table: &Table, index: &Index) -> (u64, u64) {
    let engine = ctx.db.engine_named(&table.engine);
    engine.map_or((0, 0), |engine| {
        let stats = engine.stats(index.id);
        (stats.bytes, stats.entries)
    })
}

/// Returns a table's row format. InnoDB stores sequences as Redundant, while MariaDB calls their row format
/// Fixed.
fn row_format(table: &Table) -> &'static str {
    if table.is_sequence() { "Redundant" } else { table.row_format() }
}

pub(super) fn sys_tables(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let row = |table: Arc<Table>| {
        out.row([
            ("TABLE_ID", number(table.id.0)),
            ("NAME", name_of(&table)),
            ("FLAG", integer(DYNAMIC)),
            ("N_COLS", number((table.columns.len() + SYSTEM_COLUMNS) as u64)),
            ("SPACE", number(table.id.0)),
            ("ROW_FORMAT", out.member("ROW_FORMAT", row_format(&table))),
            ("ZIP_PAGE_SIZE", number(0_u64)),
            ("SPACE_TYPE", out.member("SPACE_TYPE", "Single")),
        ])
    };
    Ok(tables(ctx).into_iter().map(row).collect())
}

pub(super) fn sys_tablespaces(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let all = tables(ctx);
    let row = |table: &Arc<Table>| {
        let bytes = table.indexes.iter().map(|index| size_of(ctx, table, index).0).sum::<u64>();
        out.row([
            ("SPACE", number(table.id.0)),
            ("NAME", name_of(table)),
            ("FLAG", number(21_u64)),
            ("ROW_FORMAT", text(row_format(table))),
            ("PAGE_SIZE", number(PAGE_BYTES)),
            ("FILENAME", text("./btree.data")),
            ("FS_BLOCK_SIZE", number(4096_u64)),
            ("FILE_SIZE", number(bytes)),
            ("ALLOCATED_SIZE", number(bytes)),
        ])
    };
    Ok(all.iter().map(row).collect())
}

pub(super) fn sys_tablestats(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let all = tables(ctx);
    let row = |table: &Arc<Table>| {
        let pages = |bytes: u64| bytes.div_ceil(PAGE_BYTES);
        let (bytes, rows) = size_of(ctx, table, table.row_index());
        let entries = table.indexes.iter().enumerate().filter(|(n, _)| *n != ROWS);
        let others: u64 = entries.map(|(_, index)| pages(size_of(ctx, table, index).0)).sum();
        let mut row = out.zeros();
        row[out.place("TABLE_ID")] = number(table.id.0);
        row[out.place("NAME")] = name_of(table);
        row[out.place("STATS_INITIALIZED")] = integer(1);
        row[out.place("NUM_ROWS")] = number(rows);
        row[out.place("CLUST_INDEX_SIZE")] = number(pages(bytes));
        row[out.place("OTHER_INDEX_SIZE")] = number(others);
        row
    };
    Ok(all.iter().map(row).collect())
}

fn index_name(index: &Index) -> Value {
    text(if index.kind.is_declared() { &*index.name } else { "GEN_CLUST_INDEX" })
}

pub(super) fn sys_indexes(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let mut rows = Vec::new();
    for table in tables(ctx) {
        for index in &table.indexes {
            rows.push(out.row([
                ("INDEX_ID", number(u64::from(index.id.0))),
                ("NAME", index_name(index)),
                ("TABLE_ID", number(table.id.0)),
                ("TYPE", integer(index.kind.method().innodb_type)),
                ("N_FIELDS", integer(index.columns.len() as u64)),
                ("SPACE", integer(table.id.0)),
                ("MERGE_THRESHOLD", integer(50)),
            ]));
        }
    }
    Ok(rows)
}

pub(super) fn sys_fields(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let mut rows = Vec::new();
    for table in tables(ctx) {
        for index in &table.indexes {
            for (n, part) in index.columns.iter().enumerate() {
                rows.push(out.row([
                    ("INDEX_ID", number(u64::from(index.id.0))),
                    ("NAME", text(&table.columns[part.column].name)),
                    ("POS", number(n as u64)),
                ]));
            }
        }
    }
    Ok(rows)
}
