//! `performance_schema.metadata_locks`, and MySQL's `data_locks` and `data_lock_waits`.
//!
//! `metadata_locks` lists every lock of a name that a session holds or waits for, also of sessions that have
//! never waited. `data_locks` shows what INNODB_LOCKS does: locks of rows and ranges that a transaction waits
//! for, and the locks that block them.

use std::collections::{BTreeMap, HashMap};

use cohort_base::{ConnectionId, TrxId};
use cohort_locks::{MetadataKey, MetadataMode, Part, ProgramKind, SessionName};
use cohort_session::{StatementContext, VirtualColumn};
use cohort_types::Value;

use crate::cells::{number, text};
use crate::transactions::{EngineWait, connections, engine_waits, mode_text, named_parts};

/// Returns MariaDB's words for a lock: type, schema and name of the object, and the mode.
fn described(name: &SessionName) -> (&'static str, Option<&str>, Option<&str>, &'static str) {
    use MetadataMode as M;
    let mode = match name.mode {
        M::SharedRead => "SHARED_READ",
        M::SharedWrite => "SHARED_WRITE",
        M::SharedUpgradable => "SHARED_UPGRADABLE",
        M::SharedNoWrite => "SHARED_NO_WRITE",
        M::Exclusive => "EXCLUSIVE",
    };
    match &name.key {
        MetadataKey::Table(schema, table) => ("TABLE", Some(schema), Some(table), mode),
        MetadataKey::Schema(schema) => {
            let mode = if name.mode == M::Exclusive { mode } else { "INTENTION_EXCLUSIVE" };
            ("SCHEMA", Some(schema), None, mode)
        }
        MetadataKey::Global => (
            "BACKUP",
            None,
            None,
            if name.mode == M::SharedNoWrite { "BACKUP_FTWRL2" } else { "BACKUP_TRANS_DML" },
        ),
        MetadataKey::Definitions => (
            "BACKUP",
            None,
            None,
            if name.mode == M::SharedNoWrite { "BACKUP_BLOCK_DDL" } else { "BACKUP_DDL" },
        ),
        MetadataKey::Backup => ("BACKUP", None, None, "BACKUP_START"),
        MetadataKey::Accounts => ("TABLE", Some("mysql"), Some("global_priv"), mode),
        MetadataKey::Program(kind, schema, program) => {
            let object = match kind {
                ProgramKind::Procedure => "PROCEDURE",
                ProgramKind::Function => "FUNCTION",
                ProgramKind::Trigger => "TRIGGER",
                ProgramKind::Event => "EVENT",
            };
            (object, Some(schema), Some(program), mode)
        }
        MetadataKey::User(lock) => ("USER LEVEL LOCK", None, Some(lock), mode),
    }
}

/// Returns the rows of `metadata_locks`.
pub(super) fn metadata(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for process in ctx.db.processes.all() {
        for name in process.locked_names() {
            let (object, schema, table, mode) = described(&name);
            let cell = |column: &VirtualColumn| match column.name {
                "OBJECT_TYPE" => text(object),
                "OBJECT_SCHEMA" => schema.map_or(Value::Null, text),
                "OBJECT_NAME" => table.map_or(Value::Null, text),
                "OBJECT_INSTANCE_BEGIN" => number(0u64),
                "LOCK_TYPE" => text(mode),
                "LOCK_DURATION" => {
                    text(if name.part == Part::Transaction { "TRANSACTION" } else { "EXPLICIT" })
                }
                "LOCK_STATUS" => text(if name.is_granted { "GRANTED" } else { "PENDING" }),
                "OWNER_THREAD_ID" => number(process.id().0),
                _ => Value::Null,
            };
            rows.push(columns.iter().map(cell).collect());
        }
    }
    rows
}

const ENGINE: &str = "INNODB";

fn thread(threads: &HashMap<TrxId, ConnectionId>, trx: TrxId) -> Value {
    threads.get(&trx).map_or(Value::Null, |id| number(id.0))
}

/// Returns the rows of `data_locks`.
pub(super) fn data(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let threads = connections(ctx.db);
    let mut rows: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for waiting in engine_waits(ctx.db) {
        let (schema, table, index) = named_parts(ctx.db, waiting.index);
        let EngineWait { wait, mode, blocker_mode, .. } = &waiting;
        let blockers = wait.blockers.iter();
        let blockers = blockers.map(|(trx, held)| (*trx, held.map_or(*blocker_mode, mode_text), "GRANTED"));
        for (trx, mode, status) in blockers.chain([(wait.trx, *mode, "WAITING")]) {
            let id = waiting.lock_id(trx);
            let cell = |column: &VirtualColumn| match column.name {
                "ENGINE" => text(ENGINE),
                "ENGINE_LOCK_ID" => text(&id),
                "ENGINE_TRANSACTION_ID" => number(trx.0),
                "THREAD_ID" => thread(&threads, trx),
                "OBJECT_SCHEMA" => text(&schema),
                "OBJECT_NAME" => text(&table),
                "INDEX_NAME" => text(&index),
                "OBJECT_INSTANCE_BEGIN" => number(0u64),
                "LOCK_TYPE" => text("RECORD"),
                "LOCK_MODE" => text(mode),
                "LOCK_STATUS" => text(status),
                "LOCK_DATA" => waiting.data(ctx.db).map_or(Value::Null, text),
                _ => Value::Null,
            };
            let row = || columns.iter().map(cell).collect();
            // A transaction that waits may block others by its request.
            match status {
                "WAITING" => _ = rows.insert(id.clone(), row()),
                _ => _ = rows.entry(id.clone()).or_insert_with(row),
            }
        }
    }
    rows.into_values().collect()
}

/// Returns the rows of `data_lock_waits`.
pub(super) fn data_waits(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let threads = connections(ctx.db);
    let mut rows = Vec::new();
    for waiting in engine_waits(ctx.db) {
        let requesting = waiting.wait.trx;
        for (blocking, _) in &waiting.wait.blockers {
            let cell = |column: &VirtualColumn| match column.name {
                "ENGINE" => text(ENGINE),
                "REQUESTING_ENGINE_LOCK_ID" => text(waiting.lock_id(requesting)),
                "REQUESTING_ENGINE_TRANSACTION_ID" => number(requesting.0),
                "REQUESTING_THREAD_ID" => thread(&threads, requesting),
                "BLOCKING_ENGINE_LOCK_ID" => text(waiting.lock_id(*blocking)),
                "BLOCKING_ENGINE_TRANSACTION_ID" => number(blocking.0),
                "BLOCKING_THREAD_ID" => thread(&threads, *blocking),
                "REQUESTING_OBJECT_INSTANCE_BEGIN" | "BLOCKING_OBJECT_INSTANCE_BEGIN" => number(0u64),
                _ => Value::Null,
            };
            rows.push(columns.iter().map(cell).collect());
        }
    }
    rows
}
