//! The public types.

use std::sync::Arc;
use std::time::Duration;

use cohort_base::{CommitSeq, IndexId, TrxId};

/// Modes of a row lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowMode {
    /// Compatible with other shared locks.
    Shared,
    /// Alone.
    Exclusive,
}

/// Modes of a metadata lock on a table or schema name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetadataMode {
    /// A statement that reads the table; on a schema: a statement that uses anything in it.
    SharedRead,
    /// A statement that writes the table.
    SharedWrite,
    /// A DDL statement that goes on to [`MetadataMode::Exclusive`]: others read and write, but no second one.
    SharedUpgradable,
    /// Others read, nobody writes (`LOCK TABLES ... READ`, the copy phase of ALTER TABLE).
    SharedNoWrite,
    /// Alone.
    Exclusive,
}

/// What a metadata lock is on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NameKey {
    /// The whole server: `FLUSH TABLES WITH READ LOCK` takes `SharedNoWrite`, every write `SharedWrite`.
    Global,
    /// A schema.
    Schema(Arc<str>),
    /// A table or view of a schema.
    Table(Arc<str>, Arc<str>),
}

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitLimit {
    /// Not at all: answer [`LockError::NoWait`].
    NoWait,
    /// At most this long, then [`LockError::Timeout`].
    For(Duration),
}

/// Why a lock was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockError {
    /// Roll the transaction back: it was chosen as the victim of a deadlock (error 1213).
    Deadlock,
    /// Roll the statement back: the wait limit passed (error 1205).
    Timeout,
    /// Roll back what the kill says: statement or connection.
    Killed(KillLevel),
    /// Somebody else holds it and waiting was not wanted.
    NoWait,
}

/// A lock was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The transaction that released this row early and is not known hardened yet (I5, I8).
    pub predecessor: Option<CommitSeq>,
}

/// What KILL ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KillLevel {
    /// `KILL QUERY`: the running statement.
    Query,
    /// `KILL`: the connection.
    Connection,
}

/// Set by KILL, looked at by the statement; wakes it if it waits for a lock. Cloning shares it.
#[derive(Clone, Default)]
pub struct KillFlag {}

impl KillFlag {
    /// Kills; wakes the waiter. A higher level replaces a lower one.
    pub fn kill(&self, _level: KillLevel) {
        todo!()
    }

    /// What was killed.
    pub fn killed(&self) -> Option<KillLevel> {
        todo!()
    }

    /// Forgets a `KILL QUERY`, at the start of the next statement.
    pub fn clear_query(&self) {
        todo!()
    }
}

/// Told before and after a thread sleeps, so that a worker pool can put another in its place.
pub trait Blocking: Send + Sync {
    /// The calling thread is going to sleep.
    fn begin(&self);
    /// It is awake again.
    fn end(&self);
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockStats {
    /// Row locks that had to wait.
    pub row_waits: u64,
    /// Row locks waiting now.
    pub row_waits_current: u64,
    /// Time spent in waits for row locks.
    pub row_wait_us_total: u64,
    /// The longest wait for a row lock.
    pub row_wait_us_max: u64,
    /// Deadlocks found.
    pub deadlocks: u64,
    /// Waits that ended by timeout.
    pub timeouts: u64,
}

/// A transaction as the lock table knows it, and all it holds. Releases everything when dropped.
pub struct LockOwner {}

impl LockOwner {
    /// The transaction.
    pub fn trx(&self) -> TrxId {
        todo!()
    }

    /// The newest predecessor of all row locks taken (I8); `CommitSeq(0)` if none.
    pub fn depends_on(&self) -> CommitSeq {
        todo!()
    }

    /// Number of row locks held.
    pub fn row_locks(&self) -> usize {
        todo!()
    }

    /// Adds to the weight that decides which transaction of a deadlock is rolled back: rows changed.
    pub fn add_weight(&mut self, _rows: u64) {
        todo!()
    }
}

/// All locks of a server.
pub struct LockTable {}

impl LockTable {
    /// An empty table. `seed` keys the hash of row keys; `blocking` is told about sleeping threads.
    pub fn new(_seed: u64, _blocking: Option<Arc<dyn Blocking>>) -> Arc<LockTable> {
        todo!()
    }

    /// A new transaction.
    pub fn owner(self: &Arc<Self>, _trx: TrxId) -> LockOwner {
        todo!()
    }

    /// Locks a row, or strengthens the lock on it. Two keys of one index may, rarely, share a lock (64-bit hash).
    pub fn lock_row(
        &self,
        _owner: &mut LockOwner,
        _index: IndexId,
        _key: &[u8],
        _mode: RowMode,
        _wait: WaitLimit,
        _kill: &KillFlag,
    ) -> Result<Granted, LockError> {
        todo!()
    }

    /// Gives a row lock back that turned out not to be needed (READ COMMITTED, row does not match).
    pub fn unlock_row(&self, _owner: &mut LockOwner, _index: IndexId, _key: &[u8]) {
        todo!()
    }

    /// At order: all row locks go now; each row remembers `seq` until [`LockTable::set_hardened`] has passed it.
    /// Metadata locks stay.
    pub fn release_early(&self, _owner: &mut LockOwner, _seq: CommitSeq) {
        todo!()
    }

    /// At rollback, or at publish: all row and metadata locks go.
    pub fn release_all(&self, _owner: &mut LockOwner) {
        todo!()
    }

    /// Everything up to `seq` is hardened.
    pub fn set_hardened(&self, _seq: CommitSeq) {
        todo!()
    }

    /// Whether somebody waits for a lock that this transaction holds.
    pub fn waits_for(&self, _owner: &LockOwner) -> bool {
        todo!()
    }

    /// Takes a metadata lock, or strengthens the one held.
    pub fn lock_name(
        &self,
        _owner: &mut LockOwner,
        _name: &NameKey,
        _mode: MetadataMode,
        _wait: WaitLimit,
        _kill: &KillFlag,
    ) -> Result<(), LockError> {
        todo!()
    }

    /// Weakens a metadata lock held (ALTER TABLE after its exclusive phase).
    pub fn downgrade_name(&self, _owner: &mut LockOwner, _name: &NameKey, _mode: MetadataMode) {
        todo!()
    }

    /// Gives one metadata lock back.
    pub fn unlock_name(&self, _owner: &mut LockOwner, _name: &NameKey) {
        todo!()
    }

    /// Gives all metadata locks back, not the row locks.
    pub fn unlock_names(&self, _owner: &mut LockOwner) {
        todo!()
    }

    /// Counters.
    pub fn stats(&self) -> LockStats {
        todo!()
    }
}
