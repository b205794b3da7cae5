//! A server without SQL, for tests of rows and transactions: reference engine, real locks and commit path,
//! all in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::{Budget, CommitSeq, IndexId, ParticipantId, ServerId, TableId};
use cohort_binlog::BinlogName;
use cohort_binlog::event::Checksum;
use cohort_catalog::{
    Account, Catalog, CatalogVersions, Column, DefaultValue, Index, IndexColumn, IndexKind, OnUpdate, Schema,
    Table, TableName,
};
use cohort_commit::{BinlogSettings, Coordinator, CoordinatorOptions, GroupCommitOptions, LogLayout};
use cohort_engine::{Engine, Participant, ReferenceEngine};
use cohort_locks::{KillFlag, LockTable};
use cohort_log::{LogOptions, Preallocation};
use cohort_optimize::ReadMode;
use cohort_trx::{SessionTrx, TrxEnv, TrxEnvParts};
use cohort_types::{Collation, ColumnType, Columns, KeyPart, SqlResult, TypeKind, Value};
use cohort_vfs::{MemFs, SharedFs, World};

use crate::access::{KeySpan, KeySpans};
use crate::cursor::{CursorOptions, RowChanges, TableCursor, every_row};
use crate::write::TableWriter;

/// Opens the server on a disk.
pub(crate) fn database(disk: &SharedFs) -> Arc<TrxEnv> {
    let datadir = PathBuf::from("/data");
    disk.create_dir_all(&datadir).expect("in memory");
    let engine =
        ReferenceEngine::open(ParticipantId(1), disk.clone(), datadir.join("engine")).expect("opens");
    let engine = Arc::new(engine);
    let locks = LockTable::new(1, cohort_locks::this_thread);
    let options = CoordinatorOptions {
        datadir: datadir.clone(),
        layout: LogLayout::Shared,
        log: LogOptions {
            segment_bytes: 1 << 20,
            segments_ahead: 1,
            preallocation: Preallocation::Inline,
            ..LogOptions::default()
        },
        binlog: Some(BinlogSettings {
            name: BinlogName::new(Path::new("/data"), "binlog"),
            file_bytes_max: 1 << 20,
            server_id: ServerId(1),
            server_version: "10.11.99-MariaDB-cohort-log".to_owned(),
            checksum: Checksum::Crc32,
            is_verifying_all: true,
        }),
        group_commit: GroupCommitOptions::default(),
        is_early_release: true,
        unreleased: cohort_commit::Unreleased::Keep,
        checkpoint_bytes: u64::MAX,
        checkpoint_bytes_max: u64::MAX,
        free_bytes_min: 0,
        has_threads: false,
        archive: None,
        on_stop: Arc::new(|error| panic!("the log failed: {error}")),
        failpoint: None,
    };
    let world = World::sim(disk.clone(), 1);
    let participants = vec![engine.clone() as Arc<dyn Participant>];
    let engines = vec![engine as Arc<dyn Engine>];
    let clock = world.clock.clone();
    let commit =
        Coordinator::open(world, options, participants, engines.clone(), locks.clone()).expect("opens");
    TrxEnv::new(TrxEnvParts {
        commit,
        engines,
        locks,
        catalog: Arc::new(CatalogVersions::new(catalog())),
        fs: cohort_vfs::RealFs::shared(),
        clock,
        globals: Arc::default(),
        binlog_cache: Default::default(),
        memory: Budget::of_server(),
    })
}

fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    let table = table();
    let schema = Schema {
        tables: [table, people(), bare()].map(|t| (t.name.table.clone(), t)).into(),
        ..Schema::new("d", Collation::UTF8MB4_GENERAL_CI, "")
    };
    catalog.schemas.insert("d".to_owned(), Arc::new(schema));
    let root = Account::local_root();
    catalog.accounts.insert(root.name.clone(), Arc::new(root));
    catalog
}

/// Returns an empty disk.
pub(crate) fn disk() -> SharedFs {
    Arc::new(MemFs::new())
}

/// Returns a session's transaction with binary logging.
pub(crate) fn session(db: &Arc<TrxEnv>) -> SessionTrx {
    session_with(db, KillFlag::default())
}

/// Returns a session's transaction that `kill` can stop.
pub(crate) fn session_with(db: &Arc<TrxEnv>, kill: KillFlag) -> SessionTrx {
    let mut trx = SessionTrx::new(db.clone(), kill, Arc::default());
    trx.settings.binlog.on = true;
    trx.settings.row_lock_wait = std::time::Duration::from_millis(200);
    trx
}

fn column(name: &str, ty: ColumnType) -> Column {
    Column {
        auto_increment: name == "id",
        ..Column::plain(name.to_owned(), ty, name != "id", DefaultValue::Value(Value::Null))
    }
}

fn index(id: u32, name: &str, kind: IndexKind, columns: &[usize]) -> Index {
    let columns =
        columns.iter().map(|&column| IndexColumn { column, prefix: None, descending: false }).collect();
    Index {
        id: IndexId(id),
        name: name.to_owned(),
        kind,
        columns,
        comment: String::new(),
        ignored: false,
        using: None,
        generated: false,
        since: CommitSeq(0),
    }
}

/// `CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, k INT, u INT UNIQUE, KEY (k))`.
pub(crate) fn table() -> Arc<Table> {
    let int = || ColumnType::int(TypeKind::Int, None, false);
    let columns = vec![column("id", int()), column("k", int()), column("u", int())];
    let indexes = vec![
        index(16, "PRIMARY", IndexKind::Primary, &[0]),
        index(17, "k", IndexKind::Secondary, &[1]),
        index(18, "u", IndexKind::Unique, &[2]),
    ];
    made(1, "t", columns, indexes)
}

fn made(id: u64, name: &str, columns: Vec<Column>, indexes: Vec<Index>) -> Arc<Table> {
    Arc::new(Table {
        id: TableId(id),
        name: TableName { schema: "d".to_owned(), table: name.to_owned() },
        engine: "REFERENCE".to_owned(),
        columns,
        indexes,
        collation: Collation::UTF8MB4_GENERAL_CI,
        comment: String::new(),
        auto_increment_start: 0,
        options: Vec::new(),
        created_at: 0,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        storage: Vec::new(),
        triggers: Vec::new(),
    })
}

/// `CREATE TABLE people (name VARCHAR(10) PRIMARY KEY, age TINYINT NOT NULL, note VARCHAR(5) DEFAULT 'x',
/// seen TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP, kind ENUM('a','b') NOT NULL)`.
fn people() -> Arc<Table> {
    let text = |length| ColumnType::string(TypeKind::VarChar, length, Collation::UTF8MB4_GENERAL_CI);
    let members = vec!["a".to_owned(), "b".to_owned()];
    let mut columns = vec![
        column("name", text(10)),
        column("age", ColumnType::int(TypeKind::TinyInt, None, false)),
        column("note", text(5)),
        column("seen", ColumnType::temporal(TypeKind::Timestamp, 0)),
        column("kind", ColumnType::members(TypeKind::Enum, members, Collation::UTF8MB4_GENERAL_CI)),
    ];
    for n in [0, 1, 4] {
        columns[n].nullable = false;
        columns[n].default = DefaultValue::None;
    }
    columns[2].default = DefaultValue::Value(Value::text("x"));
    columns[3].on_update = OnUpdate::CurrentTimestamp;
    let indexes = vec![index(20, "PRIMARY", IndexKind::Primary, &[0])];
    made(2, "people", columns, indexes)
}

/// `CREATE TABLE bare (a INT)`.
fn bare() -> Arc<Table> {
    let columns = vec![column("a", ColumnType::int(TypeKind::Int, None, false))];
    made(3, "bare", columns, vec![index(22, "GEN_CLUST_INDEX", IndexKind::HiddenRowId, &[])])
}

/// Returns a row of [`table`]; 0 means NULL in `u`.
pub(crate) fn row(id: i64, k: i64, u: i64) -> Vec<Value> {
    vec![Value::Int(id), Value::Int(k), if u == 0 { Value::Null } else { Value::Int(u) }]
}

/// Runs a statement: begin, work, end.
pub(crate) fn statement<T>(
    trx: &mut SessionTrx,
    work: impl FnOnce(&mut SessionTrx) -> SqlResult<T>,
) -> SqlResult<T> {
    trx.statement_begin(1_700_000_000);
    let outcome = work(trx);
    trx.statement_end(outcome)
}

/// Inserts one row. A duplicate is error 1062.
pub(crate) fn insert(trx: &mut SessionTrx, values: &[Value]) -> SqlResult<()> {
    statement(trx, |trx| put(trx, values))
}

/// Inserts one row within a statement.
pub(crate) fn put(trx: &mut SessionTrx, values: &[Value]) -> SqlResult<()> {
    let mut writer = TableWriter::open(trx, &table_of(trx))?;
    match writer.insert(trx, values)? {
        Ok(()) => Ok(()),
        Err(duplicate) => {
            Err(writer.table().duplicate_error(duplicate.index, values, &trx.settings.time_zone))
        }
    }
}

/// Updates (to `Some`) or deletes the rows that the filter accepts. Returns their number.
pub(crate) fn change(
    trx: &mut SessionTrx,
    spans: KeySpans,
    filter: impl Fn(&[Value]) -> bool,
    to: impl Fn(&[Value]) -> Option<Vec<Value>>,
) -> SqlResult<u64> {
    statement(trx, |trx| {
        let table = table_of(trx);
        let mut writer = TableWriter::open(trx, &table)?;
        let mode = ReadMode::LockExclusive(Default::default());
        let options =
            CursorOptions { mode, columns: Columns::All, changes: RowChanges::Any, rows_expected: None };
        let mut cursor = TableCursor::open(trx, &table, spans, options)?;
        let (mut before, mut count) = (Vec::new(), 0);
        while cursor.next(trx, &mut |row| Ok(filter(row)), &mut before)? {
            let key = cursor.key().to_vec();
            match to(&before) {
                None => writer.delete(trx, &key, &before)?,
                Some(after) => {
                    if let Err(duplicate) = writer.update(trx, &key, &before, &after)? {
                        return Err(writer.table().duplicate_error(
                            duplicate.index,
                            &after,
                            &trx.settings.time_zone,
                        ));
                    }
                }
            }
            count += 1;
        }
        Ok(count)
    })
}

/// Returns all rows in the order of an index.
pub(crate) fn rows(trx: &mut SessionTrx, index: usize, mode: ReadMode) -> SqlResult<Vec<Vec<Value>>> {
    statement(trx, |trx| read(trx, index, mode))
}

/// Returns all rows within a statement.
pub(crate) fn read(trx: &mut SessionTrx, index: usize, mode: ReadMode) -> SqlResult<Vec<Vec<Value>>> {
    let options =
        CursorOptions { mode, columns: Columns::All, changes: RowChanges::Any, rows_expected: None };
    let mut cursor = TableCursor::open(trx, &table_of(trx), all_of(index), options)?;
    let (mut all, mut row) = (Vec::new(), Vec::new());
    while cursor.next(trx, &mut every_row, &mut row)? {
        all.push(row.clone());
    }
    Ok(all)
}

/// Returns the spans of the whole index.
pub(crate) fn all_of(index: usize) -> KeySpans {
    KeySpans { index, reverse: false, spans: vec![KeySpan::Range(Default::default())] }
}

/// Returns the span of one row by its id.
pub(crate) fn point(id: i64) -> KeySpans {
    let part = KeyPart { ty: ColumnType::int(TypeKind::Int, None, false), prefix: None, nullable: false };
    let mut key = Vec::new();
    part.encode(&Value::Int(id), &mut key).expect("an integer");
    KeySpans { index: 0, reverse: false, spans: vec![KeySpan::Point(key)] }
}

/// Returns the shared description of the table: the registry identifies it by address.
fn table_of(trx: &SessionTrx) -> Arc<Table> {
    trx.env().catalog().table("d", "t").expect("made with the database").clone()
}
