//! What a session has locked beside its transactions: LOCK TABLES, FLUSH TABLES WITH READ LOCK, BACKUP.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use cohort_locks::{LockOwner, NameKey};
use cohort_sql::ast::BackupStage;

/// How LOCK TABLES locks a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableLock {
    /// Everybody reads, nobody writes.
    Read,
    /// Nobody else does anything.
    Write,
}

/// A table of LOCK TABLES: schema and name.
pub type TableId = (String, String);

/// A table under one of its aliases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AliasLock {
    pub lock: TableLock,
    /// A view reads it, perhaps several times. One that the statement names itself is there for one use of it
    /// in each statement.
    pub is_of_view: bool,
}

/// What LOCK TABLES locks: each table's aliases.
pub type LockedTables = BTreeMap<TableId, BTreeMap<String, AliasLock>>;

/// What a session holds.
pub(crate) struct SessionLocks {
    pub(crate) owner: LockOwner,
    /// LOCK TABLES is in force, maybe for temporary tables alone.
    pub(crate) is_locking: bool,
    /// Of LOCK TABLES.
    pub(crate) tables: LockedTables,
    /// FLUSH TABLES WITH READ LOCK.
    pub(crate) is_global: bool,
    /// How far the session's backup has come.
    pub(crate) stage: Option<BackupStage>,
    /// Of BACKUP LOCK.
    pub(crate) backup_table: Option<NameKey>,
    /// The session's XA transaction is in this state: it uses no tables.
    pub(crate) branch: Option<&'static str>,
}

/// Whether the server's name is locked by a backup at BLOCK_COMMIT, which only commits wait for. Set by its
/// session while it holds the lock; read by writes when somebody holds it.
#[derive(Default)]
pub(crate) struct BackupGate {
    pub(crate) blocks_commits: AtomicBool,
}

impl SessionLocks {
    pub(crate) fn new(owner: LockOwner) -> SessionLocks {
        let tables = BTreeMap::new();
        SessionLocks {
            owner,
            is_locking: false,
            tables,
            is_global: false,
            stage: None,
            backup_table: None,
            branch: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        let has_backup = self.stage.is_some() || self.backup_table.is_some();
        !self.is_locking && self.tables.is_empty() && !self.is_global && !has_backup && self.branch.is_none()
    }

    /// Whether the schema's name is held.
    pub(crate) fn uses(&self, schema: &str) -> bool {
        self.tables.keys().any(|(of, _)| of == schema)
    }
}

pub(crate) fn writes(tables: &LockedTables) -> bool {
    tables.values().flat_map(BTreeMap::values).any(|alias| alias.lock == TableLock::Write)
}
