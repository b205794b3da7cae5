//! Locks of a session that do not belong to its transactions: LOCK TABLES, FLUSH TABLES WITH READ LOCK,
//! BACKUP.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use cohort_locks::{LockOwner, MetadataKey, MetadataMode};
use cohort_sql::ast::BackupStage;

/// Lock type of LOCK TABLES.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableLock {
    /// All sessions may read, none may write.
    Read,
    /// Only the owning session may use the table.
    Write,
}

/// A table of LOCK TABLES: schema and name.
pub type TableId = (String, String);

/// Lock of a table under one of its aliases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AliasLock {
    /// The lock that the session uses.
    pub lock: TableLock,
    /// The lock that other sessions meet. `None` if only triggers and functions use the table: row locks
    /// suffice for these.
    pub against_others: Option<TableLock>,
    /// Locked because a view, a trigger or a function of a view uses it, possibly several times. A table that
    /// the statement names itself may be used once per statement.
    pub is_of_view: bool,
}

/// Tables of LOCK TABLES, each with its aliases.
pub type LockedTables = BTreeMap<TableId, BTreeMap<String, AliasLock>>;

/// Returns the metadata lock of a table.
pub(crate) fn mode_of(aliases: &BTreeMap<String, AliasLock>) -> MetadataMode {
    let lock = aliases.values().map(|alias| alias.lock).max();
    let against_others = aliases.values().filter_map(|alias| alias.against_others).max();
    match (against_others, lock) {
        (Some(TableLock::Write), _) | (Some(TableLock::Read), Some(TableLock::Write)) => {
            MetadataMode::Exclusive
        }
        (Some(TableLock::Read), _) => MetadataMode::SharedNoWrite,
        (None, Some(TableLock::Write)) => MetadataMode::SharedWrite,
        (None, _) => MetadataMode::SharedRead,
    }
}

/// Locks held by a session.
pub(crate) struct SessionLocks {
    pub(crate) owner: LockOwner,
    /// LOCK TABLES is in force, possibly for temporary tables only.
    pub(crate) is_locking: bool,
    /// Tables of LOCK TABLES.
    pub(crate) tables: LockedTables,
    /// The routines that triggers and views of these tables call.
    pub(crate) routines: Vec<MetadataKey>,
    /// True under FLUSH TABLES WITH READ LOCK.
    pub(crate) is_global: bool,
    /// Current stage of the session's backup.
    pub(crate) stage: Option<BackupStage>,
    /// Table of BACKUP LOCK.
    pub(crate) backup_table: Option<MetadataKey>,
    /// State of the session's XA transaction, which forbids tables.
    pub(crate) branch: Option<&'static str>,
}

/// True while a backup at BLOCK_COMMIT holds the global lock, which then delays only commits. Set by the
/// backup's session while it holds the lock; read by writes when the lock is held.
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
            routines: Vec::new(),
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

    /// Returns whether the schema's name is locked.
    pub(crate) fn uses(&self, schema: &str) -> bool {
        self.tables.keys().any(|(of, _)| of == schema)
    }
}

pub(crate) fn writes(tables: &LockedTables) -> bool {
    tables.values().flat_map(BTreeMap::values).any(|alias| alias.lock == TableLock::Write)
}
