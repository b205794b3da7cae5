//! [`TrxEnv`]: what the transactions of all sessions share.

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

/// How transactions keep their binlog events until they commit.
#[derive(Clone, Default)]
pub struct BinlogCache {
    /// Sizes.
    pub options: CacheOptions,
    /// Where large ones go; without it they stay in memory.
    pub spill: Option<Arc<SpillDir>>,
}

/// Who is told of deadlocks.
pub trait DeadlockWitness: Send + Sync {
    /// One was met; its statements still run. Called by the victim's session.
    fn note_deadlock(&self);
}

/// The parts that the server makes.
pub struct TrxEnvParts {
    pub commit: Arc<Coordinator>,
    /// The default one first.
    pub engines: Vec<Arc<dyn Engine>>,
    pub locks: Arc<LockTable>,
    pub catalog: Arc<CatalogVersions>,
    /// Of temporary files.
    pub fs: SharedFs,
    pub clock: SharedClock,
    pub globals: Arc<Globals>,
    pub binlog_cache: BinlogCache,
    /// What bounds the memory of sessions.
    pub memory: Arc<Budget>,
}

/// The server below the sessions' transactions.
pub struct TrxEnv {
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
    /// Values of global variables.
    pub globals: Arc<Globals>,
    /// Tables that statements have used: codecs and counters.
    pub tables: TableRegistry,
    /// The next transaction's number.
    pub trx_ids: Arc<TrxIds>,
    /// Which databases' changes are logged.
    pub binlog_filter: BinlogFilter,
    /// Binlog events of running transactions.
    binlog_cache: BinlogCache,
    /// What bounds the memory of sessions.
    pub(crate) memory: Arc<Budget>,
    /// Set by the session that makes a backup.
    pub(crate) backup: BackupGate,
    witness: OnceLock<Box<dyn DeadlockWitness>>,
}

impl TrxEnv {
    /// The engine of this name, in any case.
    pub fn engine_named(&self, name: &str) -> Option<&Arc<dyn Engine>> {
        self.engines.iter().find(|engine| engine.name().eq_ignore_ascii_case(name))
    }

    /// Of parts that are ready for use.
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

    /// Has deadlocks told to somebody; once.
    pub fn tell_deadlocks(&self, witness: Box<dyn DeadlockWitness>) {
        let _ = self.witness.set(witness);
    }

    /// Notifies the witness of a deadlock.
    pub fn note_deadlock(&self) {
        if let Some(witness) = self.witness.get() {
            witness.note_deadlock();
        }
    }

    /// A session's temporary tables: none yet. What they take is charged to `memory`.
    pub fn temporary_tables(&self, memory: Arc<Budget>) -> Arc<TemporaryTables> {
        let parts = TemporaryParts {
            fs: Arc::clone(&self.fs),
            globals: Arc::clone(&self.globals),
            trx_ids: Arc::clone(&self.trx_ids),
            store: self.temporary_store(),
        };
        TemporaryTables::new(parts, memory)
    }

    /// The place of the sessions' stores of temporary tables, behind the engines.
    pub(crate) fn temporary_store(&self) -> EngineNo {
        EngineNo(self.engines.len())
    }

    /// The codecs and counters of a table of the catalog.
    #[inline]
    pub fn open_table(&self, table: &Arc<Table>) -> SqlResult<Arc<OpenTable>> {
        self.tables.open(table, &self.engines, &self.catalog, || self.commit.read_view().seq())
    }

    /// The binlog cache of a new session.
    pub fn new_binlog_cache(&self) -> TrxCache {
        let options = CacheOptions {
            memory_bytes_max: self.globals.uint(VarId::BinlogCacheSize) as usize,
            bytes_max: self.globals.uint(VarId::MaxBinlogCacheSize),
            row_event_bytes_max: self.globals.uint(VarId::BinlogRowEventMaxSize) as usize,
            ..self.binlog_cache.options
        };
        TrxCache::new(options, self.binlog_cache.spill.clone())
    }

    /// Bytes from which statements and rows are compressed in the binlog; None: they are not.
    #[inline]
    pub fn compression(&self) -> Option<usize> {
        let is_on = self.globals.flag(VarId::LogBinCompress);
        is_on.then(|| self.globals.uint(VarId::LogBinCompressMinLen) as usize)
    }

    /// Version of [`TrxEnv::catalog`].
    #[inline]
    pub fn catalog_version(&self) -> u64 {
        self.read_catalog(|catalog| catalog.version)
    }

    /// A look at [`TrxEnv::catalog`] that keeps nothing, and asks for no other one.
    #[inline]
    pub fn read_catalog<R>(&self, look: impl FnOnce(&Arc<Catalog>) -> R) -> R {
        self.catalog.read(|| self.commit.read_view().seq(), look)
    }

    /// Takes the server's lock for a commit of the writer with these locks. Under it `read_only` counts: SET
    /// GLOBAL read_only holds the same lock against all commits, so none that it does not allow comes after
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

    /// Error 1290 under `read_only`, unless the writer is exempt.
    pub fn check_read_only(&self, writer: &Writer) -> SqlResult<()> {
        if !self.globals.flag(VarId::ReadOnly) || writer.passes_read_only(&self.catalog()) {
            return Ok(());
        }
        Err(read_only())
    }

    /// Makes redo of a participant that is no engine durable, by a transaction of its own. Waits for the
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

    /// The catalog as it is published: no crash takes back what it says (I5).
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.published(|| self.commit.read_view().seq())
    }
}
