//! The state that all sessions share. A server is a value, so a source and its replica can run in one test
//! process.

use std::any::Any;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use cohort_base::{Budget, CommitSeq, ConnectionId};
use cohort_catalog::{CatalogVersions, TableName};
use cohort_commit::Coordinator;
use cohort_config::{Globals, Status, VarId, VarValue};
use cohort_engine::Engine;
use cohort_locks::LockTable;
use cohort_observe::{Events, RoutineLines, Statements};
use cohort_trx::{BinlogCache, TrxEnv, TrxEnvParts, adopt};
use cohort_types::{ErrorCode, SqlError, SqlResult};
use cohort_vfs::{SharedClock, SharedFile, SharedFs, SharedRng, anonymous_temp_file};
use parking_lot::{Mutex, RwLock};

use crate::account_usage::AccountUsages;
use crate::audit::Audit;
use crate::clone_status::CloneStatus;
use crate::event_kind::EventKind;
use crate::event_runs::EventRuns;
use crate::functions::StatementFunctions;
use crate::ids::Ids;
use crate::process_list::ProcessList;
use crate::replication::ReplicaControl;
use crate::row_hooks::RowHooks;
use crate::samples::IndexSamples;
use crate::sequence::Sequences;
use crate::server_files::ServerFiles;
use crate::statement_log::{LogFiles, LogRows, StatementLog};
use crate::user_lock_holders::UserLockHolders;
use crate::virtual_table::{Replaceable, VirtualTable, VirtualTables};
use crate::word_check::WordList;

/// A connected replica, as it registered itself.
#[derive(Clone, Debug, Default)]
pub struct ReplicaRow {
    pub server_id: u32,
    /// `report_host`
    pub host: String,
    /// `report_port`
    pub port: u16,
}

/// A line of the error log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorLogRow {
    pub wall_us: u64,
    /// `Note`, `Warning` or `Error`.
    pub level: &'static str,
    pub text: String,
}

/// Information and actions that only the server can provide.
pub trait ServerCallbacks: Send + Sync {
    /// Returns a variable whose value is computed when it is read (`gtid_binlog_pos`), or `None` if the
    /// stored value counts.
    fn variable(&self, id: VarId) -> Option<VarValue>;

    /// Applies a change of a global variable. Returns warnings for the client. An error fails the statement,
    /// but the variable keeps the new value.
    fn global_changed(&self, id: VarId) -> SqlResult<Vec<SqlError>>;

    /// Checks that a global variable may be set now.
    fn check_settable(&self, id: VarId) -> SqlResult<()> {
        let _ = id;
        Ok(())
    }

    /// Returns the number of files and sockets that the server has open.
    fn open_files(&self) -> u64 {
        0
    }

    /// Returns the newest lines of the error log, oldest first.
    fn error_log(&self) -> Vec<ErrorLogRow> {
        Vec::new()
    }

    /// Returns the connected replicas, for SHOW SLAVE HOSTS.
    fn replicas(&self) -> Vec<ReplicaRow> {
        Vec::new()
    }

    /// Returns whether a transaction's reply is delayed because replicas have not acknowledged it
    /// (semi-synchronous replication).
    fn is_waiting_for_replicas(&self, seq: CommitSeq) -> bool {
        let _ = seq;
        false
    }

    /// Ends the wait for replicas of a client whose reply is held until `seq`, after a KILL. `own` is the
    /// client's newest commit that was waiting when the KILL arrived. Calls `before_reply` before the reply
    /// is released, if other clients keep waiting.
    fn stop_waiting_for_replicas(
        &self,
        seq: CommitSeq,
        own: Option<CommitSeq>,
        client: ConnectionId,
        before_reply: &dyn Fn(),
    ) {
        let _ = (seq, own, client, before_reply);
    }

    /// Reloads the certificates, for FLUSH SSL. On an error the previous ones stay in use.
    fn reload_tls(&self) -> SqlResult<()> {
        Ok(())
    }

    /// Requests a shutdown of the server after the reply to this statement.
    fn request_stop(&self);

    /// Returns why the program could not start again with its options, if that is so.
    fn restart_obstacle(&self) -> Option<String> {
        None
    }

    /// Requests a shutdown after the reply to this statement, and a new start of the same program.
    fn request_restart(&self) {
        self.request_stop();
    }
}

/// The caches of the crate that runs statements, shared by all sessions, such as plans. Opaque to other
/// crates.
pub trait StatementCaches: Any + Send + Sync {
    /// Adjusts to a new limit for all session memory. Returns the caches' share of it.
    fn limit(&self, bytes: u64) -> u64;
}

/// The parts of a database, which the server creates.
pub struct DatabaseParts {
    pub commit: Arc<Coordinator>,
    /// The storage engines; the first is the default.
    pub engines: Vec<Arc<dyn Engine>>,
    pub locks: Arc<LockTable>,
    pub catalog: Arc<CatalogVersions>,
    /// The file system for temporary files.
    pub fs: SharedFs,
    pub clock: SharedClock,
    pub rng: SharedRng,
    pub globals: Arc<Globals>,
    pub status: Arc<Status>,
    pub binlog_cache: BinlogCache,
    pub virtual_tables: VirtualTables,
}

/// The shared part of the server below the connections. The parts that transactions share are reached through
/// it: `db.commit`, `db.locks`.
pub struct Database {
    /// The part that transactions share.
    pub env: Arc<TrxEnv>,
    /// The random number generator.
    pub rng: SharedRng,
    /// The counters of SHOW STATUS.
    pub status: Arc<Status>,
    /// The use of accounts' resource limits.
    pub account_usages: Arc<AccountUsages>,
    /// The connections, for SHOW PROCESSLIST and KILL.
    pub processes: ProcessList,
    /// The statistics of statements by digest.
    pub statements: Statements,
    /// Statements one by one, if they are kept.
    pub events: Events,
    /// Executions and time of the lines of stored programs, if they are counted.
    pub routine_lines: Arc<RoutineLines>,
    /// The generators of table and index ids.
    pub ids: Ids,
    /// The tables of information_schema.
    pub virtual_tables: VirtualTables,
    /// The planner's samples of indexes.
    pub(crate) index_samples: IndexSamples,
    /// The caches of the crate that runs statements.
    pub caches: Arc<dyn StatementCaches>,
    /// The audit log.
    pub audit: Arc<Audit>,
    /// The rows of `mysql.general_log` and `mysql.slow_log`.
    pub log_rows: LogRows,
    /// The holders of user locks (GET_LOCK).
    pub user_locks: UserLockHolders,
    /// The time and the report of the last deadlock.
    pub last_deadlock: Mutex<Option<(u64, String)>>,
    /// The next result of UUID_SHORT.
    pub(crate) next_short_uuid: AtomicU64,
    /// The reserved numbers of sequences.
    pub sequences: Sequences,
    /// The dictionary for checking new passwords; set at most once, by the server.
    pub words: OnceLock<WordList>,
    /// The functions that run statements; set at most once, before the first statement.
    pub functions: OnceLock<Arc<dyn StatementFunctions>>,
    /// The hooks of row changes; set at most once, before the first statement.
    pub row_hooks: OnceLock<Arc<dyn RowHooks>>,
    /// The last clone.
    pub clones: CloneStatus,
    /// The times of the last runs of events.
    pub event_runs: EventRuns,
    /// `event_scheduler` at the start of the server; set once, for the value ORIGINAL.
    pub event_scheduler_at_start: OnceLock<VarValue>,
    /// The files of the statement logs; set once by the server.
    pub log_files: RwLock<Option<Arc<dyn LogFiles>>>,
    /// The replica side; set once by the server.
    pub replica: RwLock<Option<Arc<dyn ReplicaControl>>>,
    /// The host's files, for statements that name files; set once by the server.
    pub files: RwLock<Option<Arc<dyn ServerFiles>>>,
    /// Callbacks into the server; set once by the server.
    pub callbacks: RwLock<Option<Arc<dyn ServerCallbacks>>>,
}

impl Deref for Database {
    type Target = TrxEnv;

    #[inline]
    fn deref(&self) -> &TrxEnv {
        &self.env
    }
}

impl Database {
    /// Creates a database from parts that are ready for use. `keep` creates the statement caches, which are
    /// charged to the memory of all sessions. Prepared XA branches that recovery has found get their locks
    /// back.
    pub fn new(
        parts: DatabaseParts,
        keep: impl FnOnce(&Arc<Budget>) -> Arc<dyn StatementCaches>,
    ) -> Arc<Database> {
        let processes = ProcessList::default();
        let env = TrxEnv::new(TrxEnvParts {
            commit: parts.commit,
            engines: parts.engines,
            locks: parts.locks,
            catalog: parts.catalog,
            fs: parts.fs,
            clock: parts.clock,
            globals: parts.globals,
            binlog_cache: parts.binlog_cache,
            memory: Arc::clone(processes.memory()),
        });
        let caches = keep(processes.memory());
        let first_short_uuid = first_short_uuid(&env);
        let statements = statements(&env);
        let db = Arc::new(Database {
            env,
            rng: parts.rng,
            status: parts.status,
            processes,
            statements,
            events: Events::default(),
            ids: Ids::default(),
            virtual_tables: parts.virtual_tables,
            index_samples: IndexSamples::default(),
            caches,
            audit: Arc::default(),
            log_rows: LogRows::default(),
            user_locks: UserLockHolders::default(),
            account_usages: Arc::default(),
            last_deadlock: Mutex::default(),
            next_short_uuid: AtomicU64::new(first_short_uuid),
            sequences: Sequences::default(),
            words: OnceLock::new(),
            functions: OnceLock::new(),
            row_hooks: OnceLock::new(),
            routine_lines: Arc::default(),
            clones: CloneStatus::default(),
            event_runs: EventRuns::default(),
            event_scheduler_at_start: OnceLock::new(),
            log_files: RwLock::new(None),
            replica: RwLock::new(None),
            callbacks: RwLock::new(None),
            files: RwLock::new(None),
        });
        adopt(&db.env);
        db
    }

    /// Finds a virtual table by name, ignoring case. A stored table in the schema `mysql` hides the virtual
    /// table of its name.
    pub fn virtual_table(&self, schema: &str, name: &str) -> Option<&Arc<dyn VirtualTable>> {
        self.virtual_tables.find(schema, name).filter(|found| !self.is_replaced(&***found))
    }

    /// Returns whether a stored table has replaced a virtual table.
    pub fn is_replaced(&self, table: &dyn VirtualTable) -> bool {
        let is_stored = || self.catalog().table(table.schema(), table.name()).is_some();
        table.replaceable() != Replaceable::Never && is_stored()
    }

    /// Returns the names of virtual tables that stored tables have replaced until FLUSH PRIVILEGES.
    pub fn replaced_tables(&self) -> Vec<TableName> {
        let tables = self.virtual_tables.all().iter().filter(|table| {
            table.replaceable() == Replaceable::UntilFlushPrivileges && self.is_replaced(&***table)
        });
        let name = |table: &Arc<dyn VirtualTable>| TableName {
            schema: table.schema().to_owned(),
            table: table.name().to_owned(),
        };
        tables.map(name).collect()
    }

    /// Reopens the file of a statement log, for FLUSH.
    pub fn reopen_log(&self, log: StatementLog) {
        if let Some(files) = self.log_files.read().as_ref() {
            files.reopen(log);
        }
    }

    /// Reopens the error log, for FLUSH ERROR LOGS.
    pub fn reopen_error_log(&self) -> SqlResult<()> {
        let files = self.log_files.read();
        let reopened = files.as_ref().map_or(Ok(()), |files| files.reopen_errors());
        reopened
            .map_err(|e| SqlError::new(ErrorCode::UnknownError, format!("Can't reopen the error log: {e}")))
    }

    /// Creates an anonymous file in `tmpdir`, which is freed when it is dropped; error 1.
    pub fn temporary_file(&self) -> SqlResult<SharedFile> {
        let directory = self.globals.value(VarId::Tmpdir).to_string();
        let directory = Path::new(&directory);
        anonymous_temp_file(&self.fs, directory)
            .map_err(|error| SqlError::cannot_write_file(directory.display(), error))
    }

    /// Returns a handle that sets the memory limit of all sessions.
    pub fn memory_limits(&self) -> MemoryLimits {
        MemoryLimits { sessions: Arc::clone(self.processes.memory()), caches: Arc::clone(&self.caches) }
    }
}

/// Longest example of a statement.
const SAMPLE_BYTES_MAX: usize = 1024;
/// Maximum number of shards of the statistics: more threads than that rarely end statements at the same
/// moment.
const SHARDS_MAX: usize = 32;

/// Creates the statistics of statements.
fn statements(env: &TrxEnv) -> Statements {
    let globals = &env.globals;
    let bytes_max = match globals.flag(VarId::PerformanceSchema) {
        true => globals.uint(VarId::StatementsMemoryMax),
        false => 0,
    };
    let workers = match globals.uint(VarId::ThreadPoolSize) as usize {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get() + 1),
        workers => workers,
    };
    Statements::new(EventKind::COUNT, bytes_max, (2 * workers).min(SHARDS_MAX), SAMPLE_BYTES_MAX)
}

/// Returns the first result of UUID_SHORT: the low byte of the server's id, followed by the second of the
/// server's start. Results stay unique across restarts as long as there are fewer than 2^24 per second of
/// uptime.
fn first_short_uuid(env: &TrxEnv) -> u64 {
    let server = env.globals.uint(VarId::ServerId) & 0xff;
    let second = env.clock.wall_us() / 1_000_000;
    (server << 56).wrapping_add(second << 24)
}

/// `sessions_memory_max`: the limit for the memory of all sessions and of the plans that they share.
#[derive(Clone)]
pub struct MemoryLimits {
    sessions: Arc<Budget>,
    caches: Arc<dyn StatementCaches>,
}

impl MemoryLimits {
    /// Sets the limit.
    pub fn set(&self, bytes: u64) {
        let of_caches = self.caches.limit(bytes);
        self.sessions.set_limit(bytes - of_caches);
    }
}
