//! All that sessions share. A server is a value: source and replica can live in one test process.

use std::sync::{Arc, OnceLock};

use cohort_base::{Budget, CommitSeq, ConnectionId, ParticipantId};
use cohort_binlog::{CacheOptions, TrxCache};
use cohort_catalog::{Catalog, CatalogVersions};
use cohort_commit::{CommitRequest, Coordinator};
use cohort_config::{Globals, Status, VarId, VarValue};
use cohort_engine::{Engine, Redo};
use cohort_locks::LockTable;
use cohort_sql::PlanCache;
use cohort_types::{ErrorCode, SqlError, SqlResult};
use cohort_vfs::{SharedClock, SharedFs, SharedRng};
use parking_lot::{Mutex, RwLock};

use crate::account_usage::AccountUsages;
use crate::audit::Audit;
use crate::binlog_filter::BinlogFilter;
use crate::ddl::{Ids, WordList};
use crate::dispatch::CachedPlan;
use crate::files::ServerFiles;
use crate::plan::IndexSamples;
use crate::prepared_texts::PreparedTexts;
use crate::process_list::ProcessList;
use crate::replication::ReplicaControl;
use crate::sequence::Sequences;
use crate::statement_log::{LogFiles, LogRows, StatementLog};
use crate::table::TableRegistry;
use crate::trx::{BackupGate, BinlogCache, TrxIds, adopt, commit_error};
use crate::user_locks::UserLockHolders;
use crate::virtual_table::VirtualTables;

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

/// The shared half of the server below the connections.
pub struct Database {
    /// The commit path.
    pub commit: Arc<Coordinator>,
    /// The engines, the default one first.
    pub engines: Vec<Arc<dyn Engine>>,
    /// Row and metadata locks of every engine: one wait-for graph.
    pub locks: Arc<LockTable>,
    /// Written at the order stage by the catalog participant, read by every statement: what is published.
    pub catalog: Arc<CatalogVersions>,
    /// Of temporary files.
    pub fs: SharedFs,
    /// The time.
    pub clock: SharedClock,
    /// Random numbers.
    pub rng: SharedRng,
    /// Values of global variables.
    pub globals: Arc<Globals>,
    /// Counters of SHOW STATUS.
    pub status: Arc<Status>,
    /// What accounts are bound to.
    pub account_usages: Arc<AccountUsages>,
    /// The connections, for SHOW PROCESSLIST and KILL.
    pub processes: ProcessList,
    /// Tables that statements have used: codecs and counters.
    pub tables: TableRegistry,
    /// The next transaction's number.
    pub trx_ids: TrxIds,
    /// Numbers of new tables and key spaces.
    pub ids: Ids,
    /// Binlog events of running transactions.
    pub binlog_cache: BinlogCache,
    /// information_schema.
    pub virtual_tables: VirtualTables,
    /// What the planner has seen of indexes.
    pub(crate) index_samples: IndexSamples,
    /// Plans of statements by digest.
    pub plans: Arc<PlanCache<CachedPlan>>,
    /// What sessions have prepared.
    pub(crate) prepared_texts: Arc<PreparedTexts>,
    /// Which databases' changes are logged.
    pub binlog_filter: BinlogFilter,
    /// Who did what.
    pub audit: Arc<Audit>,
    /// `mysql.general_log` and `mysql.slow_log`.
    pub log_rows: LogRows,
    /// Who holds which lock of GET_LOCK.
    pub user_locks: UserLockHolders,
    /// When the last deadlock was, and who was in it.
    pub(crate) last_deadlock: Mutex<Option<(u64, String)>>,
    /// Numbers of sequences that are reserved.
    pub(crate) sequences: Sequences,
    /// Set by the session that makes a backup.
    pub(crate) backup: BackupGate,
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

/// Plans that are kept.
const PLANS_MAX: usize = 4096;
/// What they take at most, and which part of the memory of all sessions.
const PLANS_BYTES_MAX: u64 = 64 << 20;
const PLANS_SHARE: u64 = 16;

impl Database {
    /// A database of parts that are ready for use.
    pub fn new(parts: DatabaseParts) -> Arc<Database> {
        let processes = ProcessList::default();
        let prepared_texts = PreparedTexts::new(Arc::clone(processes.memory()));
        let db = Arc::new(Database {
            binlog_filter: BinlogFilter::of(&parts.globals),
            commit: parts.commit,
            engines: parts.engines,
            locks: parts.locks,
            catalog: parts.catalog,
            fs: parts.fs,
            clock: parts.clock,
            rng: parts.rng,
            globals: parts.globals,
            status: parts.status,
            processes,
            tables: TableRegistry::default(),
            trx_ids: TrxIds::default(),
            ids: Ids::default(),
            binlog_cache: parts.binlog_cache,
            virtual_tables: parts.virtual_tables,
            index_samples: IndexSamples::default(),
            plans: Arc::new(PlanCache::new(PLANS_MAX, PLANS_BYTES_MAX)),
            prepared_texts,
            audit: Arc::default(),
            log_rows: LogRows::default(),
            user_locks: UserLockHolders::default(),
            account_usages: Arc::default(),
            last_deadlock: Mutex::default(),
            sequences: Sequences::default(),
            backup: BackupGate::default(),
            words: OnceLock::new(),
            log_files: RwLock::new(None),
            replica: RwLock::new(None),
            facts: RwLock::new(None),
            files: RwLock::new(None),
        });
        adopt(&db);
        db
    }

    /// The binlog cache of a new session.
    pub(crate) fn new_binlog_cache(&self) -> TrxCache {
        let options = CacheOptions {
            memory_bytes_max: self.globals.uint(VarId::BinlogCacheSize) as usize,
            bytes_max: self.globals.uint(VarId::MaxBinlogCacheSize),
            row_event_bytes_max: self.globals.uint(VarId::BinlogRowEventMaxSize) as usize,
            ..self.binlog_cache.options
        };
        TrxCache::new(options, self.binlog_cache.spill.clone())
    }

    /// Bytes from which statements and rows are compressed in the binlog; None: they are not.
    pub(crate) fn compression(&self) -> Option<usize> {
        let is_on = self.globals.flag(VarId::LogBinCompress);
        is_on.then(|| self.globals.uint(VarId::LogBinCompressMinLen) as usize)
    }

    /// Version of [`Database::catalog`].
    pub(crate) fn catalog_version(&self) -> u64 {
        self.read_catalog(|catalog| catalog.version)
    }

    /// A look at [`Database::catalog`] that keeps nothing, and asks for no other one.
    pub(crate) fn read_catalog<R>(&self, look: impl FnOnce(&Arc<Catalog>) -> R) -> R {
        self.catalog.read(|| self.commit.read_view().seq(), look)
    }

    /// Makes redo of a participant that is no engine durable, by a transaction of its own. Waits for the
    /// flush.
    pub fn commit_redo(&self, participant: ParticipantId, redo: Redo) -> SqlResult<()> {
        let locks = self.locks.owner(self.trx_ids.next());
        let request = CommitRequest { redo: vec![(participant, redo)], binlog: None, locks, client: None };
        let prepared = self.commit.prepare(request).map_err(|(error, _)| commit_error(error))?;
        let seq = self.commit.order(prepared);
        self.commit.wait_acknowledged(seq).map_err(commit_error)
    }

    /// FLUSH of a statement log.
    pub(crate) fn reopen_log(&self, log: StatementLog) {
        if let Some(files) = self.log_files.read().as_ref() {
            files.reopen(log);
        }
    }

    /// FLUSH ERROR LOGS.
    pub(crate) fn reopen_error_log(&self) -> SqlResult<()> {
        let files = self.log_files.read();
        let reopened = files.as_ref().map_or(Ok(()), |files| files.reopen_errors());
        reopened.map_err(|e| {
            SqlError::new(ErrorCode::UnknownError, format!("Can't open the error log anew: {e}"))
        })
    }

    /// A deadlock was met: tells SHOW ENGINE .. STATUS of it while its statements still run.
    pub(crate) fn note_deadlock(&self) {
        *self.last_deadlock.lock() =
            crate::show::deadlock_text(self).map(|text| (self.clock.wall_us(), text));
    }

    /// What bounds the memory of sessions.
    pub fn memory_limits(&self) -> MemoryLimits {
        MemoryLimits { sessions: Arc::clone(self.processes.memory()), plans: Arc::clone(&self.plans) }
    }

    /// The catalog as it is published: no crash takes back what it says (I5).
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.published(|| self.commit.read_view().seq())
    }
}

/// `sessions_memory_max`: what all sessions, and the plans that they share, may keep in memory.
#[derive(Clone)]
pub struct MemoryLimits {
    sessions: Arc<Budget>,
    plans: Arc<PlanCache<CachedPlan>>,
}

impl MemoryLimits {
    /// From now on so many bytes.
    pub fn set(&self, bytes: u64) {
        let of_plans = (bytes / PLANS_SHARE).min(PLANS_BYTES_MAX);
        self.plans.set_bytes_max(of_plans);
        self.sessions.set_limit(bytes - of_plans);
    }
}
