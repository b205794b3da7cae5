//! Running transactions and lock waits: information_schema.INNODB_TRX, INNODB_LOCKS, INNODB_LOCK_WAITS, the
//! transactions and the last deadlock in SHOW ENGINE .. STATUS, and the states of blocked connections in the
//! process list.
//!
//! The columns are those of MariaDB 10.11. Columns without a meaning here are 0 or NULL: pages and records.
//! The lock table knows the key of a row only of a lock that is waited for. Range locks do not conflict with
//! each other, so they are shown as shared gap locks, and inserts into a range as exclusive gap locks.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use cohort_base::{ConnectionId, IndexId, TrxId};
use cohort_locks::{LockWait, MetadataKey, ProgramKind, RangeWish, RowMode, WaitedFor};
use cohort_session::access::check_global;
use cohort_session::{Database, Process, StatementContext, WantedNames};
use cohort_trx::{AccessMode, Isolation, TrxSnapshot};
use cohort_types::{KeyPart, Privilege, SqlResult, TimeZone, Value};

use super::cells::{integer, text};
use super::schema_table::SchemaTable;

type Rows = SqlResult<Vec<Vec<Value>>>;

const QUERY_CHARS_MAX: usize = 1024;

/// A running transaction and its connection.
struct Running {
    process: Arc<Process>,
    trx: TrxSnapshot,
}

fn running(db: &Database) -> Vec<Running> {
    let all = db.processes.all().into_iter();
    all.filter_map(|process| process.trx_stats().snapshot().map(|trx| Running { process, trx })).collect()
}

fn waits_by_trx(db: &Database) -> HashMap<TrxId, LockWait> {
    db.locks.waits().into_iter().map(|wait| (wait.trx, wait)).collect()
}

/// A wait for a row lock or a range lock.
pub(super) struct EngineWait {
    pub wait: LockWait,
    pub index: IndexId,
    /// The locked position within the index, as part of lock ids.
    place: String,
    pub mode: &'static str,
    /// The mode of a blocker if the lock table does not report it.
    pub blocker_mode: &'static str,
}

/// Returns the connections that have a transaction.
pub(super) fn connections(db: &Database) -> HashMap<TrxId, ConnectionId> {
    running(db).into_iter().map(|running| (running.trx.trx, running.process.id())).collect()
}

impl EngineWait {
    fn of(wait: LockWait) -> Option<EngineWait> {
        let (index, place, mode, blocker_mode) = match &wait.lock {
            WaitedFor::Row { index, hash, mode, .. } => {
                (*index, format!("{hash:016x}"), mode_text(*mode), "X")
            }
            WaitedFor::Range { index, wish: RangeWish::Put } => {
                (*index, "range".to_owned(), "X,GAP", "S,GAP")
            }
            WaitedFor::Range { index, wish: RangeWish::Pass } => {
                (*index, "range".to_owned(), "S,GAP", "X,GAP")
            }
            WaitedFor::Name(_) => return None,
        };
        Some(EngineWait { wait, index, place, mode, blocker_mode })
    }

    /// Returns the key of the row, if it is a row.
    pub(super) fn data(&self, db: &Database) -> Option<String> {
        let WaitedFor::Row { index, key, .. } = &self.wait.lock else { return None };
        Some(key_text(db, *index, key))
    }

    pub(super) fn lock_id(&self, trx: TrxId) -> String {
        format!("{}:{}:{}", trx.0, self.index.0, self.place)
    }
}

pub(super) fn engine_waits(db: &Database) -> impl Iterator<Item = EngineWait> {
    db.locks.waits().into_iter().filter_map(EngineWait::of)
}

pub(super) fn mode_text(mode: RowMode) -> &'static str {
    match mode {
        RowMode::Shared => "S",
        RowMode::Exclusive => "X",
    }
}

fn isolation_text(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadUncommitted => "READ UNCOMMITTED",
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    }
}

/// Returns the text of the running statement, with passwords masked.
fn query_text(process: &Process) -> Option<String> {
    let text = process.snapshot(&|_| None).info?;
    Some(text.chars().take(QUERY_CHARS_MAX).collect())
}

pub(super) fn transactions(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    check_global(ctx.session, Privilege::Process)?;
    let waits = waits_by_trx(ctx.db);
    let zone = &ctx.session.settings.env.time_zone;
    let time = |us: u64| {
        let mut local = zone.to_local(us as i64);
        local.micros = 0;
        Value::DateTime(local)
    };
    let now_us = ctx.db.clock.wall_us();
    let row = |running: Running| {
        let Running { process, trx } = running;
        let wait = waits.get(&trx.trx);
        let lock = wait.and_then(|wait| EngineWait::of(wait.clone())).map(|wait| wait.lock_id(trx.trx));
        let since = wait.map(|wait| now_us.saturating_sub(wait.waited.as_micros() as u64));
        out.row([
            ("trx_id", Value::UInt(trx.trx.0)),
            ("trx_state", text(if lock.is_some() { "LOCK WAIT" } else { "RUNNING" })),
            ("trx_started", time(trx.began_us)),
            ("trx_requested_lock_id", lock.clone().map_or(Value::Null, text)),
            ("trx_wait_started", lock.and(since).map_or(Value::Null, time)),
            ("trx_weight", Value::UInt(trx.rows_locked + trx.rows_changed)),
            ("trx_mysql_thread_id", Value::UInt(process.id().0)),
            ("trx_query", query_text(&process).map_or(Value::Null, text)),
            ("trx_operation_state", text("")),
            ("trx_tables_in_use", Value::UInt(0)),
            ("trx_tables_locked", Value::UInt(0)),
            ("trx_lock_structs", Value::UInt(trx.rows_locked)),
            ("trx_lock_memory_bytes", Value::UInt(0)),
            ("trx_rows_locked", Value::UInt(trx.rows_locked)),
            ("trx_rows_modified", Value::UInt(trx.rows_changed)),
            ("trx_concurrency_tickets", Value::UInt(0)),
            ("trx_isolation_level", text(isolation_text(trx.isolation))),
            ("trx_unique_checks", integer(1)),
            ("trx_foreign_key_checks", integer(1)),
            ("trx_is_read_only", integer(i64::from(trx.access_mode == AccessMode::ReadOnly))),
            ("trx_autocommit_non_locking", integer(0)),
        ])
    };
    let mut rows: Vec<Vec<Value>> = running(ctx.db).into_iter().map(row).collect();
    let prepared = ctx.trx.show_branches().into_iter();
    rows.extend(prepared.filter_map(|branch| {
        let (trx, rows_locked) = branch.locks?;
        Some(out.row([
            ("trx_id", Value::UInt(trx.0)),
            ("trx_state", text("RUNNING")),
            ("trx_started", time(branch.body.head().since_us)),
            ("trx_weight", Value::UInt(rows_locked + branch.body.writes())),
            // The id of the connection, if any, is known only to the connection itself.
            ("trx_mysql_thread_id", Value::UInt(0)),
            ("trx_operation_state", text("")),
            ("trx_tables_in_use", Value::UInt(0)),
            ("trx_tables_locked", Value::UInt(0)),
            ("trx_lock_structs", Value::UInt(rows_locked)),
            ("trx_lock_memory_bytes", Value::UInt(0)),
            ("trx_rows_locked", Value::UInt(rows_locked)),
            ("trx_rows_modified", Value::UInt(branch.body.writes())),
            ("trx_concurrency_tickets", Value::UInt(0)),
            ("trx_isolation_level", text(isolation_text(Isolation::RepeatableRead))),
            ("trx_unique_checks", integer(1)),
            ("trx_foreign_key_checks", integer(1)),
            ("trx_is_read_only", integer(0)),
            ("trx_autocommit_non_locking", integer(0)),
        ]))
    }));
    Ok(rows)
}

/// Returns the schema, table and name of an index.
pub(super) fn named_parts(db: &Database, index: IndexId) -> (String, String, String) {
    let catalog = db.catalog();
    let tables = catalog.schemas.values().flat_map(|schema| schema.tables.values());
    let found = tables.filter_map(|t| t.indexes.iter().find(|i| i.id == index).map(|i| (t, i))).next();
    found.map_or_else(Default::default, |(table, index)| {
        let name = if index.name.is_empty() { "GEN_CLUST_INDEX" } else { &index.name };
        (table.name.schema.clone(), table.name.table.clone(), name.to_owned())
    })
}

/// Maximum length of a value in the text of a key.
const VALUE_CHARS_MAX: usize = 64;

/// Returns the key of a row as MySQL's LOCK_DATA shows it: its values, separated by commas. A key that does
/// not contain its values, such as a text in a collation, is shown in hexadecimal digits.
pub(super) fn key_text(db: &Database, index: IndexId, key: &[u8]) -> String {
    let hex = || key.iter().fold(String::from("0x"), |text, byte| text + &format!("{byte:02X}"));
    decoded(db, index, key).unwrap_or_else(hex)
}

fn decoded(db: &Database, id: IndexId, key: &[u8]) -> Option<String> {
    let catalog = db.catalog();
    let mut tables = catalog.schemas.values().flat_map(|schema| schema.tables.values());
    let has = |table: &&Arc<cohort_catalog::Table>| table.indexes.iter().any(|index| index.id == id);
    let table = tables.find(has)?;
    let index = table.indexes.iter().find(|index| index.id == id)?;
    let mut rest = key;
    let mut values = Vec::new();
    for part in &index.columns {
        let column = &table.columns[part.column];
        let part = KeyPart { ty: column.ty.clone(), prefix: part.prefix, nullable: column.nullable };
        if part.prefix.is_some() || !part.is_reversible() || rest.is_empty() {
            return None;
        }
        let value = part.decode(&mut rest).ok()?;
        let text: String = value.to_text().chars().take(VALUE_CHARS_MAX).collect();
        values.push(match value {
            Value::Null => "NULL".to_owned(),
            Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Double(_) | Value::Float(_) => text,
            _ => format!("'{}'", text.replace(|c: char| c.is_control(), "?")),
        });
    }
    (!values.is_empty()).then(|| values.join(", "))
}

/// Returns the table and the name of an index: `` `d`.`t` `` and the index's name.
fn named(db: &Database, index: IndexId) -> (String, String) {
    let (schema, table, index) = named_parts(db, index);
    (format!("`{schema}`.`{table}`"), index)
}

/// Returns the locks being waited for, and the locks that block them. As in MariaDB, other locks are not
/// shown.
pub(super) fn locks(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    check_global(ctx.session, Privilege::Process)?;
    let mut seen: HashMap<String, Vec<Value>> = HashMap::new();
    for waiting in engine_waits(ctx.db) {
        let (table, index_name) = named(ctx.db, waiting.index);
        let blockers = waiting.wait.blockers.iter();
        let blockers = blockers.map(|(trx, mode)| (*trx, mode.map_or(waiting.blocker_mode, mode_text)));
        for (trx, mode) in blockers.chain([(waiting.wait.trx, waiting.mode)]) {
            let id = waiting.lock_id(trx);
            let row = || {
                out.row([
                    ("lock_id", text(&id)),
                    ("lock_trx_id", Value::UInt(trx.0)),
                    ("lock_mode", text(mode)),
                    ("lock_type", text("RECORD")),
                    ("lock_table", text(&table)),
                    ("lock_index", text(&index_name)),
                    ("lock_space", Value::UInt(u64::from(waiting.index.0))),
                    ("lock_data", waiting.data(ctx.db).map_or(Value::Null, text)),
                ])
            };
            seen.entry(id.clone()).or_insert_with(row);
        }
    }
    Ok(seen.into_values().collect())
}

pub(super) fn lock_waits(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    check_global(ctx.session, Privilege::Process)?;
    let mut rows = Vec::new();
    for waiting in engine_waits(ctx.db) {
        let requesting = waiting.wait.trx;
        for (blocker, _) in &waiting.wait.blockers {
            rows.push(out.row([
                ("requesting_trx_id", Value::UInt(requesting.0)),
                ("requested_lock_id", text(waiting.lock_id(requesting))),
                ("blocking_trx_id", Value::UInt(blocker.0)),
                ("blocking_lock_id", text(waiting.lock_id(*blocker))),
            ]));
        }
    }
    Ok(rows)
}

/// Returns the process-list states of connections that wait for a lock, by transaction.
pub(super) fn blocked_states(db: &Database) -> HashMap<TrxId, &'static str> {
    let state = |wait: LockWait| {
        let text = match wait.lock {
            WaitedFor::Row { .. } | WaitedFor::Range { .. } => "Waiting for row lock",
            WaitedFor::Name(MetadataKey::Table(..)) => "Waiting for table metadata lock",
            WaitedFor::Name(MetadataKey::Schema(_)) => "Waiting for schema metadata lock",
            WaitedFor::Name(MetadataKey::Program(kind, ..)) => match kind {
                ProgramKind::Procedure => "Waiting for stored procedure metadata lock",
                ProgramKind::Function => "Waiting for stored function metadata lock",
                ProgramKind::Trigger => "Waiting for trigger metadata lock",
                ProgramKind::Event => "Waiting for event metadata lock",
            },
            WaitedFor::Name(MetadataKey::User(_)) => "User lock",
            WaitedFor::Name(
                MetadataKey::Global | MetadataKey::Definitions | MetadataKey::Backup | MetadataKey::Accounts,
            ) => "Waiting for backup lock",
        };
        (wait.trx, text)
    };
    db.locks.waits().into_iter().map(state).collect()
}

/// Formats the last deadlock for SHOW ENGINE .. STATUS. Called when the deadlock happens, while the
/// statements still exist.
pub fn deadlock_text(db: &Database) -> Option<String> {
    let deadlock = db.locks.last_deadlock()?;
    let processes: HashMap<TrxId, Arc<Process>> =
        running(db).into_iter().map(|running| (running.trx.trx, running.process)).collect();
    let mut out = String::new();
    for (n, member) in deadlock.members.iter().enumerate() {
        let thread = processes.get(&member.trx).map_or(0, |process| process.id().0);
        let victim = if member.trx == deadlock.victim { ", rolled back" } else { "" };
        let _ = writeln!(out, "({}) transaction {}, thread {thread}{victim}", n + 1, member.trx.0);
        if let Some(query) = processes.get(&member.trx).and_then(|process| query_text(process)) {
            let _ = writeln!(out, "{query}");
        }
        match &member.lock {
            Some(WaitedFor::Row { index, key, mode, .. }) => {
                let row = key_text(db, *index, key);
                let (table, index) = named(db, *index);
                let mode = mode_text(*mode);
                let _ = writeln!(out, "waits for lock {mode} on row {row} of index {index} of {table}");
            }
            Some(WaitedFor::Range { index, wish }) => {
                let (table, index) = named(db, *index);
                let what = match wish {
                    RangeWish::Put => "to insert into a locked range",
                    RangeWish::Pass => "to lock a range with a row that is being inserted",
                };
                let _ = writeln!(out, "waits {what} of index {index} of {table}");
            }
            Some(WaitedFor::Name(name)) => drop(writeln!(out, "waits for the name {name:?}")),
            None => {}
        }
    }
    Some(out)
}

/// Appends a `---TRANSACTION ..` section for each running transaction.
pub(super) fn transactions_text(db: &Database, out: &mut String) {
    let waits = waits_by_trx(db);
    let now_us = db.clock.wall_us();
    for Running { process, trx } in running(db) {
        let seconds = now_us.saturating_sub(trx.began_us) / 1_000_000;
        let _ = writeln!(out, "---TRANSACTION {}, ACTIVE {seconds} sec", trx.trx.0);
        if let Some(wait) = waits.get(&trx.trx) {
            let blockers: Vec<String> = wait.blockers.iter().map(|(trx, _)| trx.0.to_string()).collect();
            let ms = wait.waited.as_millis();
            let _ = writeln!(out, "LOCK WAIT for {ms} ms, blocked by {}", blockers.join(", "));
        }
        let _ = writeln!(out, "{} row lock(s), {} row(s) changed", trx.rows_locked, trx.rows_changed);
        let query = query_text(&process).unwrap_or_default();
        let _ = writeln!(out, "MariaDB thread id {} {query}", process.id().0);
    }
}
