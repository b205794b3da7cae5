//! A server without sockets for the golden scripts: reference engine, real locks and commit path, in memory.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, ParticipantId, ServerId, TableId};
use cohort_binlog::BinlogName;
use cohort_binlog::event::Checksum;
use cohort_catalog::{
    Account, Catalog, CatalogVersions, Column, DefaultValue, Index, IndexColumn, IndexKind, OnUpdate, Schema,
    Table, TableName,
};
use cohort_commit::{BinlogSettings, Coordinator, CoordinatorOptions, GroupCommitOptions};
use cohort_engine::{Engine, Participant, ReferenceEngine};
use cohort_exec::{ConnectionInfo, Database, DatabaseParts, ProcessIdentity, Session, VirtualTables};
use cohort_locks::LockTable;
use cohort_log::{LogOptions, Preallocation};
use cohort_protocol::{ColumnMeta, OkInfo, ResultHead, ResultSink, StatusFlags};
use cohort_sql::ast::{self, ColumnDefault, DeclaredKind, KeyKind, Statement};
use cohort_types::{Collation, ColumnType, SqlError, TypeKind, Value};
use cohort_vfs::{MemFs, RealClock, SharedClock, SharedFs, World};

/// Returns a server with an empty database `d` and a fixed clock.
#[allow(dead_code, reason = "not every test needs it")]
pub fn database() -> Arc<Database> {
    database_of(None, VirtualTables::default())
}

/// Returns a server with the real clock and an information_schema.
#[allow(dead_code, reason = "not every test needs it")]
pub fn database_in_real_time() -> Arc<Database> {
    database_of(Some(RealClock::shared()), cohort_exec::information_schema())
}

fn database_of(clock: Option<SharedClock>, virtual_tables: VirtualTables) -> Arc<Database> {
    let disk: SharedFs = Arc::new(MemFs::new());
    let datadir = PathBuf::from("/data");
    disk.create_dir_all(&datadir).expect("in memory");
    let engine =
        ReferenceEngine::open(ParticipantId(1), disk.clone(), datadir.join("engine")).expect("opens");
    let engine = Arc::new(engine);
    let locks = LockTable::new(1, cohort_locks::this_thread);
    let log = LogOptions {
        segment_bytes: 16 << 20,
        segments_ahead: 1,
        preallocation: Preallocation::Inline,
        ..LogOptions::default()
    };
    let binlog = BinlogSettings {
        name: BinlogName::new(Path::new("/data"), "binlog"),
        file_bytes_max: 1 << 30,
        server_id: ServerId(1),
        server_version: "10.11.99-MariaDB-cohort-log".to_owned(),
        checksum: Checksum::Crc32,
        is_verifying_all: false,
    };
    let options = CoordinatorOptions {
        datadir,
        log,
        binlog: Some(binlog),
        group_commit: GroupCommitOptions::default(),
        is_early_release: true,
        layout: cohort_commit::LogLayout::Shared,
        unreleased: cohort_commit::Unreleased::Keep,
        checkpoint_bytes: u64::MAX,
        checkpoint_bytes_max: u64::MAX,
        free_bytes_min: 0,
        has_threads: false,
        archive: None,
        on_stop: Arc::new(|error| panic!("the log failed: {error}")),
        failpoint: None,
    };
    let world = World::sim(disk, 1);
    let (clock, rng) = (clock.unwrap_or_else(|| world.clock.clone()), world.rng.clone());
    let engines = vec![engine.clone() as Arc<dyn Engine>];
    let commit = Coordinator::open(
        world,
        options,
        vec![engine as Arc<dyn Participant>],
        engines.clone(),
        locks.clone(),
    )
    .expect("opens");
    let mut catalog =
        Catalog { version: 1, next_table: TableId(100), next_index: IndexId(100), ..Catalog::default() };
    let root = Account::local_root();
    catalog.accounts.insert(root.name.clone(), Arc::new(root));
    let schema = Schema::new("d", Collation::UTF8MB4_GENERAL_CI, "");
    catalog.schemas.insert("d".to_owned(), Arc::new(schema));
    cohort_exec::database(DatabaseParts {
        commit,
        engines,
        locks,
        catalog: Arc::new(CatalogVersions::new(catalog)),
        fs: cohort_vfs::RealFs::shared(),
        clock,
        rng,
        globals: Arc::default(),
        status: Arc::default(),
        binlog_cache: Default::default(),
        virtual_tables,
    })
}

/// Returns a session of root in `d`.
pub fn session(db: &Arc<Database>, id: u64) -> Session {
    let info = ConnectionInfo {
        id: cohort_base::ConnectionId(id),
        user: "root".to_owned(),
        host: "localhost".to_owned(),
        account: ("root".to_owned(), "localhost".to_owned()),
        schema: Some("d".to_owned()),
        collation: Collation::UTF8MB4_GENERAL_CI,
        multi_statements: false,
        found_rows: false,
        encryption: None,
        is_local: true,
    };
    let process = db.processes.register(info.id, ProcessIdentity::default(), 0);
    Session::new(db.clone(), info, process).expect("d is there")
}

/// A sink that prints results like the batch client.
#[derive(Default)]
pub struct TextSink {
    pub text: String,
    decimals: Vec<u8>,
    /// Column names until the first row: the batch client prints nothing for an empty result.
    header: Option<String>,
    pub error: Option<SqlError>,
}

impl ResultSink for TextSink {
    fn start(&mut self, columns: &[ColumnMeta], _: ResultHead) {
        self.decimals = columns.iter().map(|c| c.decimals).collect();
        let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        self.header = Some(names.join("\t"));
    }

    fn row(&mut self, values: &[Value]) {
        assert_eq!(values.len(), self.decimals.len(), "one value per column");
        if let Some(header) = self.header.take() {
            let _ = writeln!(self.text, "{header}");
        }
        let mut line = Vec::new();
        for (n, (value, decimals)) in values.iter().zip(&self.decimals).enumerate() {
            if n > 0 {
                line.push(b'\t');
            }
            match value {
                Value::Null => line.extend_from_slice(b"NULL"),
                value => value.write_text(*decimals, &mut line),
            }
        }
        let _ = writeln!(self.text, "{}", String::from_utf8_lossy(&line));
    }

    fn finish(&mut self, _: StatusFlags, _: u16) {}

    fn ok(&mut self, _: &OkInfo<'_>) {}

    fn error(&mut self, error: &SqlError) {
        let _ = writeln!(self.text, "{error}");
        self.error = Some(error.clone());
    }

    fn is_dead(&self) -> bool {
        false
    }
}

/// Runs one statement and waits until it is durable.
pub fn run(session: &mut Session, sql: &str) -> String {
    if sql.get(..12).is_some_and(|start| start.eq_ignore_ascii_case("create table")) {
        create_table(session.database(), sql);
        return String::new();
    }
    answer(session, sql)
}

/// Variant of [`run`] for a server with a catalog, which creates tables by itself.
pub fn answer(session: &mut Session, sql: &str) -> String {
    let mut sink = TextSink::default();
    session.query(sql.as_bytes(), &mut sink);
    let db = session.database().clone();
    db.commit.wait_acknowledged(session.hold_until()).expect("the log is in memory");
    sink.text
}

/// Creates a table directly in the catalog.
fn create_table(db: &Arc<Database>, sql: &str) {
    let parsed =
        cohort_sql::parse(sql.as_bytes(), &Default::default()).expect("a script's CREATE TABLE parses");
    let Statement::CreateTable(create) = parsed.statement else { panic!("not CREATE TABLE: {sql}") };
    let mut catalog = Catalog::clone(&db.catalog());
    let columns: Vec<Column> = create.columns.iter().map(column).collect();
    let mut indexes: Vec<Index> = create.keys.iter().map(|key| index(key, &columns)).collect();
    indexes.sort_by_key(|i| i.kind != IndexKind::Primary);
    if indexes.first().is_none_or(|i| i.kind != IndexKind::Primary) {
        let kind = IndexKind::HiddenRowId;
        let hidden = Index {
            id: IndexId(0),
            name: String::new(),
            kind,
            columns: Vec::new(),
            comment: String::new(),
            ignored: false,
            using: None,
            generated: false,
            since: CommitSeq(0),
        };
        indexes.insert(0, hidden);
    }
    for index in &mut indexes {
        index.id = catalog.next_index;
        catalog.next_index.0 += 1;
    }
    let mut columns = columns;
    for part in &indexes[0].columns {
        columns[part.column].nullable = false;
    }
    let table = Table {
        id: catalog.next_table,
        name: TableName { schema: "d".to_owned(), table: create.name.name.clone() },
        engine: db.engines[0].name().to_owned(),
        columns,
        indexes,
        collation: Collation::UTF8MB4_GENERAL_CI,
        comment: String::new(),
        auto_increment_start: 1,
        options: Vec::new(),
        created_at: 0,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        storage: Vec::new(),
        triggers: Vec::new(),
    };
    catalog.next_table.0 += 1;
    catalog.version += 1;
    let mut schema = Schema::clone(&catalog.schemas["d"]);
    schema.tables.insert(create.name.name.clone(), Arc::new(table));
    catalog.schemas.insert("d".to_owned(), Arc::new(schema));
    db.catalog.replay(|published| *published = catalog);
}

fn index(key: &ast::KeyDef, columns: &[Column]) -> Index {
    let kind = match key.kind {
        KeyKind::Primary => IndexKind::Primary,
        KeyKind::Unique => IndexKind::Unique,
        KeyKind::FullText => IndexKind::FullText,
        _ => IndexKind::Secondary,
    };
    let place = |name: &str| columns.iter().position(|c| c.name == name).expect("a key names a column");
    let parts = key.parts.iter().map(|p| IndexColumn {
        column: place(&p.column),
        prefix: p.length,
        descending: p.descending,
    });
    let first = key.parts[0].column.clone();
    let name =
        if kind == IndexKind::Primary { "PRIMARY".to_owned() } else { key.name.clone().unwrap_or(first) };
    Index {
        id: IndexId(0),
        name,
        kind,
        columns: parts.collect(),
        comment: String::new(),
        ignored: false,
        using: None,
        generated: false,
        since: CommitSeq(0),
    }
}

fn column(def: &ast::ColumnDef) -> Column {
    let default = match &def.default {
        Some(ColumnDefault::Literal(ast::Expr::Literal(literal))) => {
            DefaultValue::Value(literal.value.clone())
        }
        Some(ColumnDefault::CurrentTimestamp(_)) => DefaultValue::CurrentTimestamp,
        Some(_) => panic!("the scripts have no such DEFAULT"),
        None if def.nullable == Some(false) => DefaultValue::None,
        None => DefaultValue::Value(Value::Null),
    };
    Column {
        name: def.name.clone(),
        ty: column_type(&def.data_type),
        nullable: def.nullable != Some(false),
        default,
        on_update: if def.on_update.is_some() { OnUpdate::CurrentTimestamp } else { OnUpdate::Keep },
        auto_increment: def.auto_increment,
        invisible: def.invisible,
        comment: String::new(),
        value_in_old_rows: Value::Null,
        generated: None,
        check: None,
    }
}

fn column_type(declared: &ast::DataType) -> ColumnType {
    use TypeKind::*;
    let DeclaredKind::Column(kind) = declared.kind else { panic!("not a column type") };
    let length = declared.length.map(|n| n as u32);
    let collation = match &declared.collation {
        Some(name) => Collation::by_name(name).expect("a known collation"),
        None => Collation::UTF8MB4_GENERAL_CI,
    };
    match kind {
        TinyInt | SmallInt | MediumInt | Int | BigInt => ColumnType {
            zerofill: declared.zerofill,
            ..ColumnType::int(kind, length, declared.unsigned || declared.zerofill)
        },
        Decimal => ColumnType::decimal(length.unwrap_or(10) as u8, declared.decimals.unwrap_or(0) as u8),
        Float | Double => ColumnType::real(kind, None),
        Bit => ColumnType::bit(length.unwrap_or(1) as u8),
        Date | Time | DateTime | Timestamp | Year => ColumnType::temporal(kind, length.unwrap_or(0) as u8),
        Enum | Set => ColumnType::members(kind, declared.members.clone(), collation),
        _ => ColumnType::string(kind, length.unwrap_or(1), collation),
    }
}
