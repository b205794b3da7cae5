//! [`TrxEnv`]: resources shared by the transactions of all sessions.

use std::sync::{Arc, OnceLock};

use cohort_base::{Budget, ParticipantId, TrxIds};
use cohort_binlog::{CacheOptions, SpillDir, TrxCache};
use cohort_catalog::{Catalog, CatalogVersions, Table};
use cohort_commit::{CommitRequest, Coordinator};
use cohort_config::{Globals, VarId};
use cohort_engine::{Engine, Redo};
use cohort_locks::{KillFlag, LockOwner, LockTable, WaitLimit, WritePermit};
use cohort_table::{EngineNo, OpenTable, TableRegistry, TemporaryParts, TemporaryTables};
use cohort_types::SqlResult;
use cohort_vfs::{SharedClock, SharedFs};

use crate::binlog_filter::BinlogFilter;
use crate::errors::{commit_error, lock_error, read_only};
use crate::held_locks::BackupGate;
use crate::writer::Writer;

/// Configuration of the transactions' binlog caches.
#[derive(Clone, Default)]
pub struct BinlogCache {
    /// Size limits.
    pub options: CacheOptions,
    /// Directory for large caches; without it they stay in memory.
    pub spill: Option<Arc<SpillDir>>,
}

/// Observer of deadlocks.
pub trait DeadlockObserver: Send + Sync {
    /// Called by the victim's session for each deadlock, while its statement still runs.
    fn note_deadlock(&self);
}

/// Components that the server creates.
pub struct TrxEnvParts {
    pub commit: Arc<Coordinator>,
    /// The default engine first.
    pub engines: Vec<Arc<dyn Engine>>,
    pub locks: Arc<LockTable>,
    pub catalog: Arc<CatalogVersions>,
    /// File system for temporary files.
    pub fs: SharedFs,
    pub clock: SharedClock,
    pub globals: Arc<Globals>,
    pub binlog_cache: BinlogCache,
    /// Memory budget of all sessions.
    pub memory: Arc<Budget>,
}

/// The components of the server that transactions use.
pub struct TrxEnv {
    /// The commit path.
    pub commit: Arc<Coordinator>,
    /// The engines, the default one first.
    pub engines: Vec<Arc<dyn Engine>>,
    /// Row and metadata locks of all engines, with one wait-for graph.
    pub locks: Arc<LockTable>,
    /// Written at the order stage by the catalog participant; every statement reads the published version.
    pub catalog: Arc<CatalogVersions>,
    /// File system for temporary files.
    pub fs: SharedFs,
    /// Clock.
    pub clock: SharedClock,
    /// Values of global variables.
    pub globals: Arc<Globals>,
    /// Tables that statements have used, with their codecs and counters.
    pub tables: TableRegistry,
    /// Generator of transaction ids.
    pub trx_ids: Arc<TrxIds>,
    /// Filter of the databases whose changes are logged.
    pub binlog_filter: BinlogFilter,
    /// Configuration of binlog caches.
    binlog_cache: BinlogCache,
    /// Memory budget of all sessions.
    pub(crate) memory: Arc<Budget>,
    /// Set by the session that makes a backup.
    pub(crate) backup: BackupGate,
    witness: OnceLock<Box<dyn DeadlockObserver>>,
}

impl TrxEnv {
    /// Returns the engine of this name, case-insensitively.
    pub fn engine_named(&self, name: &str) -> Option<&Arc<dyn Engine>> {
        self.engines.iter().find(|engine| engine.name().eq_ignore_ascii_case(name))
    }

    /// Creates the environment from its components.
    pub fn new(parts: TrxEnvParts) -> Arc<TrxEnv> {
        Arc::new(TrxEnv {
            binlog_filter: BinlogFilter::of(&parts.globals),
            commit: parts.commit,
            engines: parts.engines,
            locks: parts.locks,
            catalog: parts.catalog,
            fs: parts.fs,
            clock: parts.clock,
            globals: parts.globals,
            tables: TableRegistry::default(),
            trx_ids: Arc::default(),
            binlog_cache: parts.binlog_cache,
            memory: parts.memory,
            backup: BackupGate::default(),
            witness: OnceLock::new(),
        })
    }

    /// Sets the observer of deadlocks, once.
    pub fn set_deadlock_observer(&self, witness: Box<dyn DeadlockObserver>) {
        let _ = self.witness.set(witness);
    }

    /// Notifies the observer of a deadlock.
    pub fn note_deadlock(&self) {
        if let Some(witness) = self.witness.get() {
            witness.note_deadlock();
        }
    }

    /// Returns an empty set of a session's temporary tables. Their memory is charged to `memory`.
    pub fn temporary_tables(&self, memory: Arc<Budget>) -> Arc<TemporaryTables> {
        let parts = TemporaryParts {
            fs: Arc::clone(&self.fs),
            globals: Arc::clone(&self.globals),
            trx_ids: Arc::clone(&self.trx_ids),
            store: self.temporary_store(),
        };
        TemporaryTables::new(parts, memory)
    }

    /// Returns the slot of the sessions' stores of temporary tables, after the engines.
    pub(crate) fn temporary_store(&self) -> EngineNo {
        EngineNo(self.engines.len())
    }

    /// Returns the codecs and counters of a table of the catalog.
    #[inline]
    pub fn open_table(&self, table: &Arc<Table>) -> SqlResult<Arc<OpenTable>> {
        self.tables.open(table, &self.engines, &self.catalog, || self.commit.read_view().seq())
    }

    /// Returns the binlog cache of a new session.
    pub fn new_binlog_cache(&self) -> TrxCache {
        let options = CacheOptions {
            memory_bytes_max: self.globals.uint(VarId::BinlogCacheSize) as usize,
            bytes_max: self.globals.uint(VarId::MaxBinlogCacheSize),
            row_event_bytes_max: self.globals.uint(VarId::BinlogRowEventMaxSize) as usize,
            ..self.binlog_cache.options
        };
        TrxCache::new(options, self.binlog_cache.spill.clone())
    }

    /// Returns the minimum size of statements and rows that are compressed in the binlog, `None` if
    /// compression is off.
    #[inline]
    pub fn compression(&self) -> Option<usize> {
        let is_on = self.globals.flag(VarId::LogBinCompress);
        is_on.then(|| self.globals.uint(VarId::LogBinCompressMinLen) as usize)
    }

    /// Returns the version of [`TrxEnv::catalog`].
    #[inline]
    pub fn catalog_version(&self) -> u64 {
        self.read_catalog(|catalog| catalog.version)
    }

    /// Reads [`TrxEnv::catalog`] without cloning it. `look` must not read the catalog again.
    #[inline]
    pub fn read_catalog<R>(&self, look: impl FnOnce(&Arc<Catalog>) -> R) -> R {
        self.catalog.read(|| self.commit.read_view().seq(), look)
    }

    /// Takes the global lock for a commit of the writer with these locks, and checks `read_only` under it.
    /// SET GLOBAL read_only holds the same lock against all commits, so no commit that it forbids can follow
    /// its reply (error 1290).
    pub fn permit_commit(
        &self,
        locks: &mut LockOwner,
        writer: &Writer,
        wait: WaitLimit,
        kill: &KillFlag,
    ) -> SqlResult<WritePermit> {
        let permit = self.locks.permit_write(locks, wait, kill).map_err(lock_error)?;
        self.check_read_only(writer)?;
        Ok(permit)
    }

    /// Returns error 1290 under `read_only`, unless the writer is exempt.
    pub fn check_read_only(&self, writer: &Writer) -> SqlResult<()> {
        if !self.globals.flag(VarId::ReadOnly) || writer.passes_read_only(&self.catalog()) {
            return Ok(());
        }
        Err(read_only())
    }

    /// Makes redo of a participant that is not an engine durable, by a transaction of its own. Waits for the
    /// flush.
    pub fn commit_redo(&self, participant: ParticipantId, redo: Redo) -> SqlResult<()> {
        let locks = self.locks.owner(self.trx_ids.next());
        let permit = WritePermit::unlogged();
        let request =
            CommitRequest { redo: vec![(participant, redo)], binlog: None, locks, permit, client: None };
        let prepared = self.commit.prepare(request).map_err(|(error, _)| commit_error(error))?;
        let seq = self.commit.order(prepared);
        self.commit.wait_acknowledged(seq).map_err(commit_error)
    }

    /// Returns the published catalog, which a crash cannot take back (I5).
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.published(|| self.commit.read_view().seq())
    }
}
