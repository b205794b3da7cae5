//! Row, range and metadata locks of the session's transaction, and the client errors of their refusals.

use std::sync::Arc;
use std::time::Duration;

use cohort_base::IndexId;
use cohort_catalog::Table;
use cohort_engine::KeyRange;
use cohort_locks::{
    LockError, LockSpan, MetadataKey, MetadataMode, RangeScan, RowMode, Step, StepTo, WaitLimit,
};
use cohort_types::{SqlError, SqlResult};

use crate::active::Active;
use crate::errors::lock_error;
use crate::session_locks::Holder;
use crate::session_trx::SessionTrx;

pub use cohort_locks::WaitPolicy;

/// Result of [`SessionTrx::lock_row`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowLock {
    /// Locked now and not before, so it may be released again.
    New,
    /// Locked before.
    Held,
    /// SKIP LOCKED, and another transaction holds it.
    Skipped,
}

/// Limit of a lock wait, with the error for its timeout.
pub(super) struct LockWait {
    pub(super) limit: WaitLimit,
    on_timeout: fn() -> SqlError,
}

impl LockWait {
    /// Returns the client's error for a lock that was not granted.
    pub(super) fn refusal(&self, error: LockError) -> SqlError {
        if error == LockError::Timeout { (self.on_timeout)() } else { lock_error(error) }
    }
}

/// Rollback cost of a DDL statement. In a deadlock a transaction is rolled back rather than a DDL statement,
/// regardless of its changes, as in MariaDB.
const DDL_WEIGHT: u64 = 1 << 40;

/// Minimum time that an applier waits for a name before it checks for a prepared branch that holds the name.
const STEP_MIN: Duration = Duration::from_secs(1);

/// Number of row locks between two charges of their memory.
const LOCKS_UNCHARGED: usize = 256;

impl SessionTrx {
    /// Locks the row with this key in `index`.
    pub fn lock_row(
        &mut self,
        index: IndexId,
        key: &[u8],
        mode: RowMode,
        policy: WaitPolicy,
    ) -> SqlResult<RowLock> {
        if index.is_temporary() {
            return Ok(RowLock::Held);
        }
        let wait = self.row_wait(policy);
        let (env, active, kill) = self.parts();
        let before = active.locks.row_locks();
        let granted = env.locks.lock_row(&mut active.locks, index, key, mode, wait.limit, kill);
        if let (Ok(_), Some(xa)) = (&granted, &mut self.xa) {
            xa.note_row(index, key, mode);
        }
        let Some(active) = &mut self.active else { unreachable!("begun above") };
        match granted {
            Ok(_) if active.locks.row_locks() > before => {
                let held = active.locks.row_locks();
                if before.is_multiple_of(LOCKS_UNCHARGED) {
                    active.charge()?;
                    self.xa.as_mut().map_or(Ok(()), |xa| xa.charge())?;
                }
                self.trx_stats.locked(held);
                Ok(RowLock::New)
            }
            Ok(_) => Ok(RowLock::Held),
            Err(LockError::NoWait) if policy == WaitPolicy::SkipLocked => Ok(RowLock::Skipped),
            Err(error) => Err(self.refused(&wait, error)),
        }
    }

    fn refused(&self, wait: &LockWait, error: LockError) -> SqlError {
        if error == LockError::Deadlock {
            self.env.note_deadlock();
        }
        wait.refusal(error)
    }

    fn row_wait(&self, policy: WaitPolicy) -> LockWait {
        match policy {
            WaitPolicy::Wait | WaitPolicy::IfItMatches => self.wait(self.settings.row_lock_wait),
            WaitPolicy::WaitFor(seconds) => self.wait(Duration::from_secs(seconds.into())),
            WaitPolicy::NoWait | WaitPolicy::SkipLocked => {
                LockWait { limit: WaitLimit::NoWait, on_timeout: || lock_error(LockError::NoWait) }
            }
        }
    }

    /// Returns whether locking reads and writes of the running transaction lock the ranges that they scan.
    #[inline]
    pub fn locks_ranges(&mut self) -> bool {
        self.active_mut().isolation.keeps_view()
    }

    /// Announces that a row will have this key in an index, and waits while others have locked a range with
    /// it. Call before the key is looked up, and before anything of the row is written. Returns false if the
    /// policy is SKIP LOCKED and others have locked it.
    pub fn put_key(&mut self, index: IndexId, key: &[u8], policy: WaitPolicy) -> SqlResult<bool> {
        if index.is_temporary() {
            return Ok(true);
        }
        let wait = self.row_wait(policy);
        let (env, active, kill) = self.parts();
        match env.locks.put_key(&mut active.locks, index, key, wait.limit, kill) {
            Ok(_) => Ok(true),
            Err(LockError::NoWait) if policy == WaitPolicy::SkipLocked => Ok(false),
            Err(error) => Err(self.refused(&wait, error)),
        }
    }

    /// Announces the part of an index that a scan reads next.
    pub fn watch(&mut self, scan: &RangeScan, range: &KeyRange) -> SqlResult<()> {
        let ahead = LockSpan { start: range.start.clone().unwrap_or_default(), end: range.end.clone() };
        let (env, active, _) = self.parts();
        env.locks.watch(&mut active.locks, scan, ahead);
        active.charge().map(drop)
    }

    /// Locks the part that a scan has read; waits for uncommitted rows that others have inserted there.
    pub fn advance(&mut self, scan: &RangeScan, to: StepTo<'_>, policy: WaitPolicy) -> SqlResult<Step> {
        let wait = self.row_wait(policy);
        let (env, active, kill) = self.parts();
        let step = env.locks.advance(&mut active.locks, scan, to, wait.limit, kill);
        step.map_err(|error| self.refused(&wait, error))
    }

    /// Returns a wait limit: the setting, or the remaining time of the statement if that is shorter.
    pub(super) fn wait(&self, setting: Duration) -> LockWait {
        let left = self.deadline_ns.map(|end| end.saturating_sub(self.env.clock.monotonic_ns()));
        let left = left.map(Duration::from_nanos).filter(|left| *left < setting);
        match left {
            Some(left) => LockWait { limit: WaitLimit::For(left), on_timeout: SqlError::statement_timeout },
            None => {
                LockWait { limit: WaitLimit::For(setting), on_timeout: || lock_error(LockError::Timeout) }
            }
        }
    }

    /// Releases a row lock under READ COMMITTED, where rows that do not match stay unlocked.
    #[inline]
    pub fn unlock_unmatched(&mut self, index: IndexId, key: &[u8], lock: RowLock) {
        if !self.active_mut().isolation.keeps_view() {
            self.unlock_new(index, key, lock);
        }
    }

    /// Releases a row lock that was just taken and protects nothing.
    #[inline]
    pub fn unlock_new(&mut self, index: IndexId, key: &[u8], lock: RowLock) {
        if lock == RowLock::New {
            let (env, active, _) = self.parts();
            env.locks.unlock_row(&mut active.locks, index, key);
            if let Some(xa) = &mut self.xa {
                xa.forget_row(index, key);
            }
        }
    }

    /// Downgrades an exclusive lock that was just taken and protects no change.
    pub fn downgrade_new(&mut self, index: IndexId, key: &[u8], lock: RowLock) {
        if lock == RowLock::New {
            let (env, active, _) = self.parts();
            env.locks.downgrade_row(&mut active.locks, index, key);
            if let Some(xa) = &mut self.xa {
                xa.downgrade_row(index, key);
            }
        }
    }

    /// Locks a name until the transaction ends. Statements lock their tables before they use them.
    pub fn lock_metadata(&mut self, name: &MetadataKey, mode: MetadataMode) -> SqlResult<()> {
        match self.holder_of(name, mode)? {
            Holder::Session => Ok(()),
            Holder::Transaction => self.take_name(name, mode),
        }
    }

    /// Like [`SessionTrx::lock_metadata`], for a name that the statement does not mention: LOCK TABLES need
    /// not have locked it.
    pub fn lock_related(&mut self, name: &MetadataKey, mode: MetadataMode) -> SqlResult<()> {
        match self.session_holds(name) {
            true => Ok(()),
            false => self.take_name(name, mode),
        }
    }

    fn take_name(&mut self, name: &MetadataKey, mode: MetadataMode) -> SqlResult<()> {
        if matches!(mode, MetadataMode::Exclusive | MetadataMode::SharedNoWrite) {
            // A transaction that this statement has committed holds its names until it is published, and
            // possibly no other thread flushes it.
            self.await_own()?;
        }
        let wait = self.wait(self.settings.metadata_lock_wait);
        let is_applier = self.settings.is_flushed_elsewhere;
        let step = self.settings.row_lock_wait.max(STEP_MIN);
        let (env, active, kill) = self.parts();
        if mode >= MetadataMode::SharedUpgradable {
            active.locks.add_weight(DDL_WEIGHT);
        }
        if !is_applier {
            let locked = env.locks.lock_metadata(&mut active.locks, name, mode, wait.limit, kill);
            return locked.map_err(|error| wait.refusal(error));
        }
        // A prepared branch that holds the name is ended by a later group of the same source, so waiting for
        // it as long as for a statement is pointless.
        let WaitLimit::For(mut left) = wait.limit else { return Err(lock_error(LockError::NoWait)) };
        loop {
            let step = left.min(step);
            let limit = WaitLimit::For(step);
            match env.locks.lock_metadata(&mut active.locks, name, mode, limit, kill) {
                Err(LockError::Timeout) if step < left && !env.commit.xa().holds_name(name) => left -= step,
                other => return other.map_err(|error| wait.refusal(error)),
            }
        }
    }

    /// Returns whether the statement may replace the object of this name: its transaction has locked the name
    /// exclusively, or LOCK TABLES has locked it.
    pub fn has_exclusive_name(&self, name: &MetadataKey) -> bool {
        let is_held = |active: &Active| self.env.locks.has_name(&active.locks, name, MetadataMode::Exclusive);
        self.session_holds(name) || self.active.as_deref().is_some_and(is_held)
    }

    /// Returns the number of names that the transaction has locked.
    pub fn names_held(&self) -> usize {
        self.active.as_ref().map_or(0, |active| active.locks.names_held())
    }

    /// Releases the names locked last, until `held` are left.
    pub fn unlock_names_after(&mut self, held: usize) {
        if let Some(active) = &mut self.active {
            self.env.locks.unlock_names_after(&mut active.locks, held);
        }
    }

    /// Like [`SessionTrx::lock_metadata`], for a table that the statement refers to by an alias (its name if
    /// it has none).
    #[inline]
    pub fn lock_under_alias(
        &mut self,
        table: &MetadataKey,
        alias: &str,
        mode: MetadataMode,
    ) -> SqlResult<()> {
        match self.holder_under_alias(table, alias, mode)? {
            Holder::Session => Ok(()),
            Holder::Transaction => self.lock_metadata(table, mode),
        }
    }

    /// Downgrades an exclusive lock of the transaction on a name. Returns false if the session's LOCK TABLES
    /// holds it.
    pub fn downgrade_metadata(&mut self, name: &MetadataKey, mode: MetadataMode) -> bool {
        let (env, active, _) = self.parts();
        env.locks.downgrade_metadata(&mut active.locks, name, mode)
    }

    /// Locks a table that the statement reads (`SharedRead`) or writes (`SharedWrite`), and the name of its
    /// schema.
    pub fn lock_table(&mut self, table: &Arc<Table>, mode: MetadataMode) -> SqlResult<()> {
        if table.is_temporary() {
            return Ok(());
        }
        let open = self.open_table(table)?;
        if mode != MetadataMode::SharedRead {
            self.pass_global_lock()?;
        }
        self.lock_metadata(&open.schema_key, MetadataMode::SharedRead)?;
        self.lock_metadata(&open.table_key, mode)
    }

    /// Returns an error if the statement was killed or its time is up. Loops that evaluate no expressions
    /// call it periodically.
    #[inline]
    pub fn check_interrupt(&self) -> SqlResult<()> {
        self.check_killed()?;
        match self.deadline_ns {
            Some(end) if self.env.clock.monotonic_ns() > end => Err(SqlError::statement_timeout()),
            _ => Ok(()),
        }
    }

    /// Returns an error if the statement was killed. Long loops call it periodically.
    #[inline]
    pub fn check_killed(&self) -> SqlResult<()> {
        match self.kill.killed() {
            None => Ok(()),
            Some(level) => Err(lock_error(LockError::Killed(level))),
        }
    }
}
