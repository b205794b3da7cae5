//! An in-memory server for tests: reference engine, catalog and commit path on one disk, without threads; and
//! golden SQL scripts that run on it.
//!
//! # Scripts
//! ```text
//! # comment
//! > SELECT 1;
//! 1
//! 1
//! b> BEGIN;
//! OK
//! ```
//! A line `name> statement` runs a statement in the session of that name (`> ` is the first one). The lines
//! up to the next statement, comment or empty line are the expected result. `UPDATE_GOLDEN=1` rewrites the
//! results.
#![allow(dead_code)] // each test binary uses its part

pub mod random;
pub mod shut;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::{ConnectionId, ParticipantId, ServerId};
use cohort_binlog::BinlogName;
use cohort_binlog::event::{Checksum, Event};
use cohort_catalog::{CATALOG, CatalogStore};
use cohort_commit::{BinlogSettings, Coordinator, CoordinatorOptions, GroupCommitOptions};
use cohort_config::{Globals, Status, VarId, VarValue};
use cohort_engine::{Engine, Participant, ReferenceEngine};
use cohort_exec::{BinlogCache, ConnectionInfo, Database, DatabaseParts, ProcessIdentity, Session};
use cohort_locks::LockTable;
use cohort_log::{LogOptions, Preallocation};
use cohort_protocol::{ColumnMeta, OkInfo, ResultHead, ResultSink, StatusFlags};
use cohort_types::{Collation, SqlError, Value};
use cohort_vfs::{MemFs, SharedFs, World};

const DATADIR: &str = "/data";
/// Sets the time of all statements to 2024-01-01 00:00:00 UTC.
pub const NOW: &str = "SET timestamp = 1704067200";

/// A running server.
pub struct Server {
    pub db: Arc<Database>,
    next_id: u64,
}

/// Returns an empty disk.
pub fn disk() -> SharedFs {
    Arc::new(MemFs::new())
}

impl Server {
    /// Recovers a server from the disk.
    pub fn open(disk: &SharedFs) -> Result<Server, String> {
        Server::open_with(disk, BinlogCache::default())
    }

    /// Variant with limits of the sessions' binary log caches.
    pub fn open_with(disk: &SharedFs, binlog_cache: BinlogCache) -> Result<Server, String> {
        Server::open_concurrently(disk, binlog_cache, Vec::new())
    }

    /// Variant with further participants of commits.
    pub fn open_concurrently(
        disk: &SharedFs,
        binlog_cache: BinlogCache,
        others: Vec<Arc<dyn Participant>>,
    ) -> Result<Server, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let datadir = PathBuf::from(DATADIR);
        disk.create_dir_all(&datadir).map_err(|e| text(&e))?;
        let catalog = CatalogStore::open(CATALOG, disk.clone(), &datadir).map_err(|e| text(&e))?;
        let engine = ReferenceEngine::open(ParticipantId(1), disk.clone(), datadir.join("engine"))
            .map_err(|e| text(&e))?;
        let (catalog, engine) = (Arc::new(catalog), Arc::new(engine));
        let versions = catalog.versions();
        let locks = LockTable::new(1, cohort_locks::this_thread);
        let world = World::sim(disk.clone(), 1);
        let (clock, rng) = (world.clock.clone(), world.rng.clone());
        let mut participants = vec![catalog as Arc<dyn Participant>, engine.clone() as Arc<dyn Participant>];
        participants.extend(others);
        let engines = vec![engine as Arc<dyn Engine>];
        let commit = Coordinator::open(world, options(datadir), participants, engines.clone(), locks.clone())
            .map_err(|e| text(&e))?;
        let globals = Arc::new(Globals::new());
        globals.put(VarId::LogBin, &VarValue::text("ON"));
        let db = cohort_exec::database(DatabaseParts {
            commit,
            engines,
            locks,
            catalog: versions,
            fs: cohort_vfs::RealFs::shared(),
            clock,
            rng,
            globals,
            status: Arc::new(Status::default()),
            binlog_cache,
            virtual_tables: cohort_exec::information_schema(),
        });
        cohort_exec::drop_orphans(&db).map_err(|e| text(&e))?;
        Ok(Server { db, next_id: 1 })
    }

    /// Connects as root, with current database `test`.
    pub fn connect(&mut self) -> Client {
        self.connect_as("root", "localhost")
    }

    /// Connects as an account. Only root's current database is `test`.
    pub fn connect_as(&mut self, user: &str, host: &str) -> Client {
        cohort_exec::run_programs(&self.db);
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        let schema = (user == "root").then(|| "test".to_owned());
        let identity = ProcessIdentity {
            user: user.to_owned(),
            account: Some(user.to_owned()),
            host: host.to_owned(),
            schema: schema.clone(),
        };
        let process = self.db.processes.register(id, identity, self.db.clock.wall_us());
        let info = ConnectionInfo {
            id,
            user: user.to_owned(),
            host: host.to_owned(),
            account: (user.to_owned(), host.to_owned()),
            schema,
            collation: Collation::UTF8MB4_GENERAL_CI,
            multi_statements: true,
            found_rows: false,
            encryption: None,
            is_local: true,
        };
        let session = Session::new(self.db.clone(), info, process).expect("the database test is there");
        let mut client = Client { session };
        client.run(NOW);
        client
    }

    /// Returns the texts of all events with their GTIDs, as SHOW BINLOG EVENTS prints them.
    pub fn binlog(&self) -> Vec<String> {
        let fs_and_paths = self.db.commit.with_binlog_files(|files| {
            files.numbers().iter().map(|&n| files.name().path(n)).collect::<Vec<_>>()
        });
        fs_and_paths
            .expect("the binlog is on")
            .expect("it can be read")
            .iter()
            .map(|p| p.display().to_string())
            .collect()
    }
}

/// Returns the SQL texts of the QUERY events on a disk, oldest first.
pub fn logged_queries(server: &Server, disk: &SharedFs) -> Vec<String> {
    let mut found = Vec::new();
    for path in server.binlog() {
        let mut reader =
            cohort_binlog::EventReader::open(disk, Path::new(&path)).expect("a binlog file opens");
        while let Some(raw) = reader.next_event().expect("it is sound") {
            if let Ok(Event::Query(query)) = reader.decode(&raw) {
                found.push(String::from_utf8_lossy(&query.sql).into_owned());
            }
        }
    }
    found
}

fn options(datadir: PathBuf) -> CoordinatorOptions {
    CoordinatorOptions {
        datadir,
        log: LogOptions {
            segment_bytes: 256 << 10,
            segments_ahead: 1,
            preallocation: Preallocation::Inline,
            ..LogOptions::default()
        },
        binlog: Some(BinlogSettings {
            name: BinlogName::new(Path::new(DATADIR), "binlog"),
            file_bytes_max: 1 << 20,
            server_id: ServerId(1),
            server_version: "10.11.99-MariaDB-cohort-log".to_owned(),
            checksum: Checksum::Crc32,
            is_verifying_all: true,
        }),
        group_commit: GroupCommitOptions::default(),
        is_early_release: true,
        layout: cohort_commit::LogLayout::Shared,
        unreleased: cohort_commit::Unreleased::Keep,
        checkpoint_bytes: u64::MAX,
        checkpoint_bytes_max: u64::MAX,
        free_bytes_min: 0,
        has_threads: false,
        archive: None,
        on_stop: Arc::new(|_| ()),
        failpoint: None,
    }
}

/// A connection.
pub struct Client {
    pub session: Session,
}

impl Client {
    /// Runs a statement and returns its result in the scripts' format.
    pub fn run(&mut self, sql: &str) -> String {
        self.run_bytes(sql.as_bytes())
    }

    /// Variant for a statement that is not in UTF-8.
    #[allow(dead_code)] // not used by every test
    pub fn run_bytes(&mut self, sql: &[u8]) -> String {
        self.answer(|session, sink| session.query(sql, sink))
    }

    /// Runs a prepared statement through the binary protocol's calls.
    pub fn execute(&mut self, id: u32, params: &[Value]) -> String {
        self.answer(|session, sink| session.execute(id, params, sink))
    }

    fn answer(&mut self, run: impl FnOnce(&mut Session, &mut Answer)) -> String {
        let mut sink = Answer::default();
        run(&mut self.session, &mut sink);
        let db = self.session.database().clone();
        let hold = self.session.hold_until();
        if db.commit.wait_acknowledged(hold).is_err() {
            sink.text.push_str("ERROR: the server has stopped\n");
        }
        db.commit.tick();
        self.session.settle();
        self.session.write_held_entries();
        if sink.warnings > 0 {
            let mut list = Answer { is_list: true, ..Answer::default() };
            self.session.query(b"SHOW WARNINGS", &mut list);
            sink.text.push_str(&list.text);
        }
        sink.text
    }

    /// Runs a statement that must succeed.
    pub fn ok(&mut self, sql: &str) {
        let answer = self.run(sql);
        assert!(!answer.starts_with("ERROR"), "{sql}: {answer}");
    }
}

#[derive(Default)]
struct Answer {
    text: String,
    decimals: Vec<u8>,
    warnings: u16,
    /// Show rows only, each after a dash.
    is_list: bool,
}

impl ResultSink for Answer {
    fn start(&mut self, columns: &[ColumnMeta], _: ResultHead) {
        self.decimals = columns.iter().map(|c| c.decimals).collect();
        if !self.is_list {
            let names: Vec<&str> = columns.iter().map(|c| &*c.name).collect();
            let _ = writeln!(self.text, "{}", names.join(" | "));
        }
    }

    fn row(&mut self, values: &[Value]) {
        let mut cells = Vec::new();
        for (value, decimals) in values.iter().zip(&self.decimals) {
            let mut cell = Vec::new();
            match value {
                Value::Null => cell.extend_from_slice(b"NULL"),
                value => value.write_text(*decimals, &mut cell),
            }
            cells.push(String::from_utf8_lossy(&cell).replace('\n', "\n  "));
        }
        let dash = if self.is_list { "- " } else { "" };
        let _ = writeln!(self.text, "{dash}{}", cells.join(" | "));
    }

    fn finish(&mut self, _: StatusFlags, warnings: u16) {
        self.warnings = warnings;
    }

    fn ok(&mut self, ok: &OkInfo<'_>) {
        self.warnings = ok.warnings;
        let _ = write!(self.text, "OK");
        if ok.affected_rows > 0 {
            let _ = write!(self.text, " {}", ok.affected_rows);
        }
        if ok.last_insert_id > 0 {
            let _ = write!(self.text, " id {}", ok.last_insert_id);
        }
        if !ok.info.is_empty() {
            let _ = write!(self.text, " ({})", ok.info);
        }
        self.text.push('\n');
    }

    fn error(&mut self, error: &SqlError) {
        let _ = writeln!(self.text, "{error}");
    }

    fn is_dead(&self) -> bool {
        false
    }
}

/// Runs a script on a new server. Compares its results, or rewrites them.
pub fn run_script(path: &Path) {
    let script = std::fs::read_to_string(path).expect("a script is readable");
    let mut server = Server::open(&disk()).expect("an empty disk opens");
    let mut clients: BTreeMap<String, Client> = BTreeMap::new();
    let mut out = String::new();
    let mut is_answer = false;
    for line in script.lines() {
        let statement = line
            .split_once("> ")
            .filter(|(name, _)| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()));
        match statement {
            Some((name, sql)) => {
                let _ = writeln!(out, "{line}");
                let client = clients.entry(name.to_owned()).or_insert_with(|| server.connect());
                out.push_str(&client.run(sql));
                is_answer = true;
            }
            None if line.is_empty() || line.starts_with('#') => {
                let _ = writeln!(out, "{line}");
                is_answer = false;
            }
            None => assert!(is_answer, "{}: `{line}` answers nothing", path.display()),
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &out).expect("a script is writable");
        return;
    }
    for (n, (is, should)) in out.lines().zip(script.lines()).enumerate() {
        assert_eq!(is, should, "{} line {}", path.display(), n + 1);
    }
    assert_eq!(out.lines().count(), script.lines().count(), "{}", path.display());
}
