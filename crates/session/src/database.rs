//! All that sessions share. A server is a value: source and replica can live in one test process.

use std::any::Any;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use cohort_base::{Budget, CommitSeq, ConnectionId};
use cohort_catalog::CatalogVersions;
use cohort_commit::Coordinator;
use cohort_config::{Globals, Status, VarId, VarValue};
use cohort_engine::Engine;
use cohort_locks::LockTable;
use cohort_trx::{BinlogCache, TrxEnv, TrxEnvParts, adopt};
use cohort_types::{ErrorCode, SqlError, SqlResult};
use cohort_vfs::{SharedClock, SharedFile, SharedFs, SharedRng, unnamed_file};
use parking_lot::{Mutex, RwLock};

use crate::account_usage::AccountUsages;
use crate::audit::Audit;
use crate::ids::Ids;
use crate::process_list::ProcessList;
use crate::replication::ReplicaControl;
use crate::samples::IndexSamples;
use crate::sequence::Sequences;
use crate::server_files::ServerFiles;
use crate::statement_log::{LogFiles, LogRows, StatementLog};
use crate::user_lock_holders::UserLockHolders;
use crate::virtual_table::VirtualTables;
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

/// What only the server around the database knows.
pub trait ServerFacts: Send + Sync {
    /// A variable whose value is computed when it is read (`gtid_binlog_pos`); None: as stored.
    fn variable(&self, id: VarId) -> Option<VarValue>;

    /// A global variable was set: what depends on it follows. Answers what the client is to be warned of. The
    /// error is the statement's; the value stays.
    fn global_changed(&self, id: VarId) -> SqlResult<Vec<SqlError>>;

    /// Whether a global variable may be set now.
    fn check_settable(&self, id: VarId) -> SqlResult<()> {
        let _ = id;
        Ok(())
    }

    /// The replicas that are connected, for SHOW SLAVE HOSTS.
    fn replicas(&self) -> Vec<ReplicaRow> {
        Vec::new()
    }

    /// Whether a transaction's client is told nothing because replicas have not answered (semi-synchronous
    /// commits).
    fn is_waiting_for_replicas(&self, seq: CommitSeq) -> bool {
        let _ = seq;
        false
    }

    /// KILL was used on a client whose reply is held until `seq`: it is to wait for replicas no longer. `own`
    /// is its newest commit that waited when it came. `will_tell` is called before the client is told while
    /// others wait on.
    fn stop_waiting_for_replicas(
        &self,
        seq: CommitSeq,
        own: Option<CommitSeq>,
        client: ConnectionId,
        will_tell: &dyn Fn(),
    ) {
        let _ = (seq, own, client, will_tell);
    }

    /// FLUSH SSL: certificates are read anew. After an error those from before count.
    fn reload_tls(&self) -> SqlResult<()> {
        Ok(())
    }

    /// SHUTDOWN: the server is to stop, after this statement's answer.
    fn request_stop(&self);
}

/// What the crate that runs statements keeps for all sessions, such as plans. Nobody else looks inside.
pub trait KeptForStatements: Any + Send + Sync {
    /// Takes its share of so many bytes from now on; how much that is.
    fn limit(&self, bytes: u64) -> u64;
}

/// The parts of a database that the server makes.
pub struct DatabaseParts {
    pub commit: Arc<Coordinator>,
    /// The default one first.
    pub engines: Vec<Arc<dyn Engine>>,
    pub locks: Arc<LockTable>,
    pub catalog: Arc<CatalogVersions>,
    /// Of temporary files.
    pub fs: SharedFs,
    pub clock: SharedClock,
    pub rng: SharedRng,
    pub globals: Arc<Globals>,
    pub status: Arc<Status>,
    pub binlog_cache: BinlogCache,
    pub virtual_tables: VirtualTables,
}

/// The shared half of the server below the connections. What its transactions share is reached through it:
/// `db.commit`, `db.locks`.
pub struct Database {
    /// What transactions share.
    pub env: Arc<TrxEnv>,
    /// Random numbers.
    pub rng: SharedRng,
    /// Counters of SHOW STATUS.
    pub status: Arc<Status>,
    /// What accounts are bound to.
    pub account_usages: Arc<AccountUsages>,
    /// The connections, for SHOW PROCESSLIST and KILL.
    pub processes: ProcessList,
    /// Numbers of new tables and key spaces.
    pub ids: Ids,
    /// information_schema.
    pub virtual_tables: VirtualTables,
    /// What the planner has seen of indexes.
    pub(crate) index_samples: IndexSamples,
    /// What runs statements keeps here for all sessions.
    pub kept: Arc<dyn KeptForStatements>,
    /// Who did what.
    pub audit: Arc<Audit>,
    /// `mysql.general_log` and `mysql.slow_log`.
    pub log_rows: LogRows,
    /// Who holds which lock of GET_LOCK.
    pub user_locks: UserLockHolders,
    /// When the last deadlock was, and who was in it.
    pub last_deadlock: Mutex<Option<(u64, String)>>,
    /// Next result of UUID_SHORT.
    pub(crate) next_short_uuid: AtomicU64,
    /// Numbers of sequences that are reserved.
    pub sequences: Sequences,
    /// What new passwords must not be; set once by the server, if at all.
    pub words: OnceLock<WordList>,
    /// Set once by the server.
    pub log_files: RwLock<Option<Arc<dyn LogFiles>>>,
    /// The replica side; set once by the server.
    pub replica: RwLock<Option<Arc<dyn ReplicaControl>>>,
    /// The machine's files, for statements that name some; set once by the server.
    pub files: RwLock<Option<Arc<dyn ServerFiles>>>,
    /// Set once by the server.
    pub facts: RwLock<Option<Arc<dyn ServerFacts>>>,
}

impl Deref for Database {
    type Target = TrxEnv;

    #[inline]
    fn deref(&self) -> &TrxEnv {
        &self.env
    }
}

impl Database {
    /// A database of parts that are ready for use. `keep` makes what statements keep, which is charged to the
    /// memory of all sessions. Branches that recovery has found get their locks back.
    pub fn new(
        parts: DatabaseParts,
        keep: impl FnOnce(&Arc<Budget>) -> Arc<dyn KeptForStatements>,
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
        let kept = keep(processes.memory());
        let first_short_uuid = first_short_uuid(&env);
        let db = Arc::new(Database {
            env,
            rng: parts.rng,
            status: parts.status,
            processes,
            ids: Ids::default(),
            virtual_tables: parts.virtual_tables,
            index_samples: IndexSamples::default(),
            kept,
            audit: Arc::default(),
            log_rows: LogRows::default(),
            user_locks: UserLockHolders::default(),
            account_usages: Arc::default(),
            last_deadlock: Mutex::default(),
            next_short_uuid: AtomicU64::new(first_short_uuid),
            sequences: Sequences::default(),
            words: OnceLock::new(),
            log_files: RwLock::new(None),
            replica: RwLock::new(None),
            facts: RwLock::new(None),
            files: RwLock::new(None),
        });
        adopt(&db.env);
        db
    }

    /// FLUSH of a statement log.
    pub fn reopen_log(&self, log: StatementLog) {
        if let Some(files) = self.log_files.read().as_ref() {
            files.reopen(log);
        }
    }

    /// FLUSH ERROR LOGS.
    pub fn reopen_error_log(&self) -> SqlResult<()> {
        let files = self.log_files.read();
        let reopened = files.as_ref().map_or(Ok(()), |files| files.reopen_errors());
        reopened.map_err(|e| {
            SqlError::new(ErrorCode::UnknownError, format!("Can't open the error log anew: {e}"))
        })
    }

    /// A new file in `tmpdir`, which goes when it is dropped; error 1.
    pub fn temporary_file(&self) -> SqlResult<SharedFile> {
        let directory = self.globals.value(VarId::Tmpdir).to_string();
        let directory = Path::new(&directory);
        unnamed_file(&self.fs, directory).map_err(|error| {
            let text = format!("Can't create/write to file in '{}' ({error})", directory.display());
            SqlError::new(ErrorCode::CantCreateFile, text)
        })
    }

    /// What bounds the memory of sessions.
    pub fn memory_limits(&self) -> MemoryLimits {
        MemoryLimits { sessions: Arc::clone(self.processes.memory()), kept: Arc::clone(&self.kept) }
    }
}

/// The number that UUID_SHORT counts from: the low byte of the server's id, then the second of the start. A
/// run that lasts so many seconds has so many times 2^24 numbers.
fn first_short_uuid(env: &TrxEnv) -> u64 {
    let server = env.globals.uint(VarId::ServerId) & 0xff;
    let second = env.clock.wall_us() / 1_000_000;
    (server << 56).wrapping_add(second << 24)
}

/// `sessions_memory_max`: what all sessions, and the plans that they share, may keep in memory.
#[derive(Clone)]
pub struct MemoryLimits {
    sessions: Arc<Budget>,
    kept: Arc<dyn KeptForStatements>,
}

impl MemoryLimits {
    /// From now on so many bytes.
    pub fn set(&self, bytes: u64) {
        let of_kept = self.kept.limit(bytes);
        self.sessions.set_limit(bytes - of_kept);
    }
}
