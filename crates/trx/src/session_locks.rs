//! LOCK TABLES, FLUSH TABLES WITH READ LOCK and BACKUP: locks that belong to the session, not to its
//! transactions.
//!
//! # Modes
//! | statement | table | global lock |
//! |---|---|---|
//! | LOCK TABLES .. READ | `SharedNoWrite` | |
//! | LOCK TABLES .. WRITE | `Exclusive` | `SharedWrite` |
//! | FLUSH TABLES WITH READ LOCK | | `SharedNoWrite` |
//! | BACKUP STAGE BLOCK_COMMIT | | `SharedNoWrite` |
//! | BACKUP LOCK | `SharedRead` | |
//!
//! BACKUP STAGE START also takes the right to make a backup ([`MetadataKey::Backup`]), which one session has
//! at a time. BLOCK_DDL takes [`MetadataKey::Definitions`] as `SharedNoWrite`; DDL statements and LOCK TABLES
//! .. WRITE hold it as `SharedWrite`.
//!
//! Every commit holds `SharedWrite` on the global lock from its start until it is published, and so does a
//! DDL statement. Other writing statements take and release that lock once, before they begin. So under FLUSH
//! TABLES WITH READ LOCK no transaction commits and no write begins, while open transactions stay open. A
//! session that requests FLUSH TABLES WITH READ LOCK waits for commits only, and a commit waits for no row.
//! Under BLOCK_COMMIT, writes begin and wait when they commit, so a write does not take the global lock while
//! a backup holds it ([`BackupGate`]).
//!
//! # A session with locked tables
//! Its transactions do not lock names that the session holds: they would queue after requests that wait for
//! the session. Other tables are refused. Before the locks are released, or used by a DDL statement, the
//! session's own last transaction is published, because a session that locks a name exclusively relies on
//! that.
//!
//! A table is locked under an *alias*, by default its own name, and can be used under that alias only. The
//! lock of its name is the strongest lock of its aliases. A statement may use each alias once: `INSERT INTO t
//! SELECT * FROM t` needs a second lock. A table that is dropped, or renamed by ALTER TABLE, is no longer
//! locked.
//!
//! The tables that triggers and functions of views use are locked with theirs, under the aliases of their
//! texts. The outermost statement checks all that its programs use; inside of these, any locked alias of a
//! table will do.
//!
//! A statement that is refused because of its tables has not waited for any lock: it does not request the
//! global lock, the definitions or the schemas. Tables that it may write were locked together with these
//! names; any other commit requests the global lock at commit time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cohort_locks::{KillFlag, LockOwner, MetadataKey, MetadataMode, Part, WaitLimit, WritePermit};
use cohort_sql::ast::BackupStage;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::commit::ReadOnly;
use crate::errors::{lock_error, rmfail};
use crate::held_locks::{AliasLock, LockedTables, SessionLocks, TableId, TableLock, mode_of, writes};
use crate::session_trx::SessionTrx;

/// Number of deadlocks after which a session that locks tables gives up; until then it retries.
const DEADLOCK_ATTEMPTS: u32 = 100;

/// Holder of the lock that a statement uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// The session already holds it.
    Session,
    /// The transaction must take it.
    Transaction,
}

impl SessionTrx {
    /// Returns which owner holds, or must take, a lock of a statement. Errors 1099 and 1100 for tables that
    /// LOCK TABLES did not lock, or not in that mode; 1223 for writes under the session's own FLUSH TABLES
    /// WITH READ LOCK.
    pub(super) fn holder_of(&self, name: &MetadataKey, mode: MetadataMode) -> SqlResult<Holder> {
        let alias = if let MetadataKey::Table(_, table) = name { &**table } else { "" };
        self.holder_under_alias(name, alias, mode)
    }

    /// Returns whether LOCK TABLES has locked a name.
    pub(super) fn session_holds(&self, name: &MetadataKey) -> bool {
        let Some(locks) = &self.session_locks else { return false };
        match name {
            MetadataKey::Global
            | MetadataKey::Definitions
            | MetadataKey::Backup
            | MetadataKey::Accounts
            | MetadataKey::Program(..)
            | MetadataKey::User(_) => false,
            MetadataKey::Schema(schema) => locks.uses(schema),
            MetadataKey::Table(schema, table) => {
                locks.tables.contains_key(&(schema.to_string(), table.to_string()))
            }
        }
    }

    /// Like [`SessionTrx::holder_of`], for a table that the statement refers to by an alias.
    pub(super) fn holder_under_alias(
        &self,
        name: &MetadataKey,
        alias: &str,
        mode: MetadataMode,
    ) -> SqlResult<Holder> {
        let Some(locks) = &self.session_locks else { return Ok(Holder::Transaction) };
        match name {
            MetadataKey::Table(..) | MetadataKey::Schema(_) if locks.branch.is_some() => {
                Err(rmfail(locks.branch.unwrap_or_default()))
            }
            MetadataKey::Global if locks.is_global => Err(conflicting_read_lock()),
            MetadataKey::Global | MetadataKey::Definitions if locks.stage.is_some() => {
                Err(SqlError::backup_active())
            }
            MetadataKey::Global | MetadataKey::Definitions if locks.backup_table.is_some() => {
                Err(conflicting_read_lock())
            }
            // The transaction must not request locks that the session holds: it would queue after requests
            // that wait for the session. Under LOCK TABLES the statement's tables are checked before any
            // wait. Tables that it may write were locked by the session together with these names; other
            // statements are refused, or request the lock when they commit.
            MetadataKey::Global | MetadataKey::Definitions if locks.is_locking => Ok(Holder::Session),
            MetadataKey::Schema(schema)
                if mode == MetadataMode::SharedRead
                    && (locks.uses(schema) || (locks.is_locking && !self.is_inside())) =>
            {
                Ok(Holder::Session)
            }
            MetadataKey::Accounts if locks.is_locking => Err(not_locked("global_priv")),
            MetadataKey::Schema(_) if locks.is_locking && mode == MetadataMode::Exclusive => {
                Err(active_locks())
            }
            MetadataKey::Table(schema, table) if locks.is_locking => {
                let aliases = locks.tables.get(&(schema.to_string(), table.to_string()));
                if self.is_inside() {
                    // The aliases were checked when the outermost statement began.
                    let held = aliases.and_then(|aliases| match aliases.get(alias) {
                        Some(held) => Some(held.lock),
                        None => aliases.values().map(|held| held.lock).max(),
                    });
                    return match held {
                        None => Err(not_locked(alias)),
                        Some(TableLock::Read) if mode != MetadataMode::SharedRead => {
                            Err(SqlError::table_locked_for_read(alias))
                        }
                        Some(_) => Ok(Holder::Session),
                    };
                }
                match aliases.and_then(|aliases| aliases.get(alias)) {
                    None => Err(not_locked(alias)),
                    Some(held) if held.lock == TableLock::Read && mode != MetadataMode::SharedRead => {
                        Err(SqlError::table_locked_for_read(alias))
                    }
                    // A table that only triggers and functions use.
                    Some(held) if mode >= MetadataMode::SharedUpgradable && held.against_others.is_none() => {
                        Err(SqlError::table_locked_for_read(alias))
                    }
                    Some(_) => {
                        if mode == MetadataMode::Exclusive {
                            self.publish_own()?;
                        }
                        Ok(Holder::Session)
                    }
                }
            }
            _ => Ok(Holder::Transaction),
        }
    }

    /// LOCK TABLES: replaces the tables and routines locked before. The session has no transaction.
    pub fn lock_tables(&mut self, tables: LockedTables, routines: Vec<MetadataKey>) -> SqlResult<()> {
        self.unlock_tables()?;
        let writes = writes(&tables);
        if let Some(locks) = &self.session_locks {
            match &**locks {
                SessionLocks { stage: Some(_), .. } => return Err(SqlError::backup_active()),
                SessionLocks { backup_table: Some(_), .. } => return Err(active_locks()),
                SessionLocks { is_global: true, .. } if writes => return Err(conflicting_read_lock()),
                _ => {}
            }
        }
        let mut names = Vec::new();
        if writes {
            names.push((MetadataKey::Definitions, MetadataMode::SharedWrite));
            names.push((MetadataKey::Global, MetadataMode::SharedWrite));
        }
        names.extend(routines.iter().map(|routine| (routine.clone(), MetadataMode::SharedRead)));
        for ((schema, table), aliases) in &tables {
            names.push((MetadataKey::Schema(schema.as_str().into()), MetadataMode::SharedRead));
            let table = MetadataKey::Table(schema.as_str().into(), table.as_str().into());
            names.push((table, mode_of(aliases)));
        }
        self.lock_all_for_session(&names)?;
        let locks = self.own_locks();
        (locks.tables, locks.routines) = (tables, routines);
        locks.is_locking = true;
        Ok(())
    }

    /// Takes all of these locks or none. A deadlock with transactions that use the same tables in another
    /// order is not an error of the client: the session releases what it has acquired and retries.
    fn lock_all_for_session(&mut self, names: &[(MetadataKey, MetadataMode)]) -> SqlResult<()> {
        for attempt in 1.. {
            let taken = names.iter().try_for_each(|(name, mode)| self.lock_for_session(name, *mode));
            let Err(error) = taken else { break };
            names.iter().for_each(|(name, _)| self.unlock_for_session(name));
            if error.code != ErrorCode::LockDeadlock || attempt == DEADLOCK_ATTEMPTS {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the session's locks, creating an empty set if there is none.
    fn own_locks(&mut self) -> &mut SessionLocks {
        if self.session_locks.is_none() {
            self.session_locks = Some(Box::new(SessionLocks::new(self.new_owner(Part::Lasting))));
        }
        self.session_locks.as_mut().expect("made above")
    }

    fn unlock_for_session(&mut self, name: &MetadataKey) {
        let Some(locks) = &mut self.session_locks else { return };
        if *name != MetadataKey::Global || !locks.is_global {
            self.env.locks.unlock_name(&mut locks.owner, name);
        }
        if locks.is_empty() {
            self.session_locks = None;
        }
    }

    /// Implements FLUSH TABLES WITH READ LOCK.
    pub fn lock_globally(&mut self) -> SqlResult<()> {
        if self.has_locked_tables() {
            return Err(active_locks());
        }
        if self.backup_stage().is_some() {
            return Err(SqlError::backup_active());
        }
        self.lock_all_for_session(&[(MetadataKey::Global, MetadataMode::SharedNoWrite)])?;
        self.session_locks.as_mut().expect("locked above").is_global = true;
        Ok(())
    }

    /// Returns whether LOCK TABLES is in force.
    pub fn has_locked_tables(&self) -> bool {
        self.session_locks.as_ref().is_some_and(|locks| locks.is_locking)
    }

    /// Returns the tables of LOCK TABLES.
    pub fn locked_tables(&self) -> impl Iterator<Item = &TableId> {
        self.session_locks.iter().flat_map(|locks| locks.tables.keys())
    }

    /// Returns the tables of LOCK TABLES with the strongest lock of each.
    pub fn locked_tables_with_locks(&self) -> impl Iterator<Item = (&TableId, TableLock)> {
        let tables = self.session_locks.iter().flat_map(|locks| &locks.tables);
        let strongest =
            |aliases: &BTreeMap<String, AliasLock>| aliases.values().map(|alias| alias.lock).max();
        tables.map(move |(name, aliases)| (name, strongest(aliases).unwrap_or(TableLock::Read)))
    }

    /// Returns error 1100 if a statement uses a table under one alias more often than LOCK TABLES locked it.
    pub fn check_uses<'u>(&self, uses: impl Iterator<Item = (TableId, &'u str)>) -> SqlResult<()> {
        let Some(locks) = self.session_locks.as_ref().filter(|locks| locks.is_locking) else { return Ok(()) };
        let mut used = BTreeSet::new();
        for (table, alias) in uses {
            let held = locks.tables.get(&table).and_then(|aliases| aliases.get(alias));
            if held.is_some_and(|held| !held.is_of_view) && !used.insert((table, alias)) {
                return Err(not_locked(alias));
            }
        }
        Ok(())
    }

    /// Returns error 1100 for the first of these tables that LOCK TABLES has not locked.
    pub fn check_locked<'n>(&self, mut tables: impl Iterator<Item = &'n TableId>) -> SqlResult<()> {
        let Some(locks) = self.session_locks.as_ref().filter(|locks| locks.is_locking) else { return Ok(()) };
        match tables.find(|table| !locks.tables.contains_key(*table)) {
            Some((_, name)) => Err(not_locked(name)),
            None => Ok(()),
        }
    }

    /// Unlocks tables that no longer exist by the name that LOCK TABLES has locked, after a DDL statement is
    /// published. As in MariaDB, LOCK TABLES ends when the last table was dropped, but not when it was
    /// renamed.
    pub fn forget_gone_tables(&mut self, is_there: impl Fn(&TableId) -> bool, drops: bool) -> SqlResult<()> {
        let Some(locks) = self.session_locks.as_mut().filter(|locks| locks.is_locking) else { return Ok(()) };
        let had_any = !locks.tables.is_empty();
        let gone: Vec<TableId> = locks.tables.keys().filter(|table| !is_there(table)).cloned().collect();
        for table in gone {
            locks.tables.remove(&table);
            let (schema, name) = table;
            let key = MetadataKey::Table(schema.as_str().into(), name.into());
            self.env.locks.unlock_name(&mut locks.owner, &key);
            if !locks.uses(&schema) {
                self.env.locks.unlock_name(&mut locks.owner, &MetadataKey::Schema(schema.into()));
            }
        }
        if drops && had_any && locks.tables.is_empty() { self.unlock_tables() } else { Ok(()) }
    }

    /// Refuses tables to the session's statements, because its XA transaction is in this state. `None` allows
    /// them again.
    pub(super) fn refuse_tables(&mut self, state: Option<&'static str>) {
        if state.is_some() && self.session_locks.is_none() {
            self.session_locks = self.spare_session_locks.take().map(|mut spare| {
                spare.owner.join(&self.party, Part::Lasting);
                spare
            });
            self.own_locks();
        }
        let Some(locks) = &mut self.session_locks else { return };
        locks.branch = state;
        if locks.is_empty() {
            // Every XA transaction comes here. An owner that has locked nothing is reused by the next one.
            let has_locked = |owner: &LockOwner| !owner.is_as_new() || owner.names_held() > 0;
            self.spare_session_locks = self.session_locks.take().filter(|it| !has_locked(&it.owner));
            if let Some(spare) = &mut self.spare_session_locks {
                spare.owner.leave();
            }
        }
    }

    /// Releases the locks of LOCK TABLES.
    pub fn unlock_tables(&mut self) -> SqlResult<()> {
        if !self.has_locked_tables() {
            return Ok(());
        }
        self.publish_own()?;
        let Some(locks) = &mut self.session_locks else { return Ok(()) };
        let tables = std::mem::take(&mut locks.tables);
        let routines = std::mem::take(&mut locks.routines);
        locks.is_locking = false;
        if locks.is_empty() {
            self.session_locks = None;
            return Ok(());
        }
        if writes(&tables) {
            self.env.locks.unlock_name(&mut locks.owner, &MetadataKey::Definitions);
        }
        routines.iter().for_each(|routine| self.env.locks.unlock_name(&mut locks.owner, routine));
        for (schema, table) in tables.into_keys() {
            let (schema, table): (Arc<str>, Arc<str>) = (schema.into(), table.into());
            self.env.locks.unlock_name(&mut locks.owner, &MetadataKey::Table(schema.clone(), table));
            self.env.locks.unlock_name(&mut locks.owner, &MetadataKey::Schema(schema));
        }
        Ok(())
    }

    /// UNLOCK TABLES: releases all session locks except those of its backup.
    pub fn unlock_all(&mut self) -> SqlResult<()> {
        self.unlock_tables()?;
        self.publish_own()?;
        let Some(locks) = &mut self.session_locks else { return Ok(()) };
        if std::mem::take(&mut locks.is_global) {
            self.env.locks.unlock_name(&mut locks.owner, &MetadataKey::Global);
        }
        if locks.is_empty() {
            self.session_locks = None;
        }
        Ok(())
    }

    /// Returns the current stage of the session's backup.
    pub fn backup_stage(&self) -> Option<BackupStage> {
        self.session_locks.as_ref().and_then(|locks| locks.stage)
    }

    /// BACKUP STAGE. Error 4146 before START, 4147 if the backup has already passed this stage.
    pub fn enter_backup_stage(&mut self, stage: BackupStage) -> SqlResult<()> {
        let now = match (self.backup_stage(), &self.session_locks) {
            (Some(now), _) => Some(now),
            (None, _) if stage != BackupStage::Start => return Err(SqlError::backup_not_running()),
            (None, Some(locks)) if !locks.tables.is_empty() => return Err(active_locks()),
            (None, Some(_)) => return Err(conflicting_read_lock()),
            (None, None) => None,
        };
        if let Some(now) = now.filter(|now| *now >= stage) {
            return Err(SqlError::backup_wrong_stage(stage.name(), now.name()));
        }
        let mut names = Vec::new();
        if stage == BackupStage::Start {
            names.push((MetadataKey::Backup, MetadataMode::Exclusive));
        }
        if stage != BackupStage::End {
            if stage >= BackupStage::BlockDdl && now < Some(BackupStage::BlockDdl) {
                names.push((MetadataKey::Definitions, MetadataMode::SharedNoWrite));
            }
            if stage == BackupStage::BlockCommit {
                // Set first: a write that sees the lock must know that a backup holds it.
                self.env.backup.blocks_commits.store(true, Ordering::SeqCst);
                names.push((MetadataKey::Global, MetadataMode::SharedNoWrite));
            }
        }
        if let Err(error) = self.lock_all_for_session(&names) {
            if stage == BackupStage::BlockCommit {
                self.env.backup.blocks_commits.store(false, Ordering::SeqCst);
            }
            return Err(error);
        }
        let Some(locks) = &mut self.session_locks else { return Ok(()) };
        locks.stage = Some(stage);
        if stage == BackupStage::End {
            self.end_backup();
        }
        Ok(())
    }

    /// Releases the locks of the session's backup.
    fn end_backup(&mut self) {
        let Some(locks) = &mut self.session_locks else { return };
        if locks.stage.take().is_some_and(|stage| stage >= BackupStage::BlockCommit) {
            self.env.backup.blocks_commits.store(false, Ordering::SeqCst);
        }
        for name in [MetadataKey::Global, MetadataKey::Definitions, MetadataKey::Backup] {
            self.env.locks.unlock_name(&mut locks.owner, &name);
        }
        if locks.is_empty() {
            self.session_locks = None;
        }
    }

    /// BACKUP LOCK: prevents changes of the table's definition. Replaces an earlier BACKUP LOCK.
    pub fn lock_for_backup(&mut self, table: MetadataKey) -> SqlResult<()> {
        if self.has_locked_tables() {
            return Err(active_locks());
        }
        self.unlock_for_backup();
        self.lock_all_for_session(&[(table.clone(), MetadataMode::SharedRead)])?;
        self.session_locks.as_mut().expect("locked above").backup_table = Some(table);
        Ok(())
    }

    /// Returns the schema of the table that BACKUP LOCK has locked.
    pub fn backup_schema(&self) -> Option<Arc<str>> {
        match self.session_locks.as_ref()?.backup_table.as_ref()? {
            MetadataKey::Table(schema, _) => Some(Arc::clone(schema)),
            _ => None,
        }
    }

    /// Implements BACKUP UNLOCK.
    pub fn unlock_for_backup(&mut self) {
        let Some(locks) = &mut self.session_locks else { return };
        if let Some(table) = locks.backup_table.take() {
            self.env.locks.unlock_name(&mut locks.owner, &table);
        }
        if locks.is_empty() {
            self.session_locks = None;
        }
    }

    /// Releases all session locks.
    pub(crate) fn release_session_locks(&mut self) {
        // If the log has stopped, there is nothing to wait for.
        let _ = self.publish_own();
        self.end_backup();
        self.session_locks = None;
    }

    /// Called before a statement that writes and commits later. It may begin under a backup that blocks
    /// commits.
    pub fn pass_global_lock_to_write(&mut self) -> SqlResult<()> {
        if self.session_locks.is_none() && !self.env.locks.is_global_guarded() {
            return Ok(());
        }
        let is_backup = self.env.backup.blocks_commits.load(Ordering::SeqCst);
        if is_backup && self.session_locks.is_none() { Ok(()) } else { self.pass_global_lock() }
    }

    /// Called before a statement that writes. Waits while another session holds or requests FLUSH TABLES WITH
    /// READ LOCK.
    pub(crate) fn pass_global_lock(&mut self) -> SqlResult<()> {
        if self.session_locks.is_none() && !self.env.locks.is_global_guarded() {
            return Ok(());
        }
        if self.holder_of(&MetadataKey::Global, MetadataMode::SharedWrite)? == Holder::Session {
            return Ok(());
        }
        self.lock_metadata(&MetadataKey::Global, MetadataMode::SharedWrite)?;
        let (env, active, _) = self.parts();
        env.locks.unlock_name(&mut active.locks, &MetadataKey::Global);
        Ok(())
    }

    /// Called before a commit. Waits while another session has FLUSH TABLES WITH READ LOCK, and refuses the
    /// commit after its SET GLOBAL read_only.
    pub(super) fn permit_commit(&mut self, read_only: ReadOnly) -> SqlResult<WritePermit> {
        let wait = self.wait(self.settings.metadata_lock_wait);
        let (env, active, kill) = self.parts();
        let permit = env.locks.permit_write(&mut active.locks, wait.limit, kill);
        let permit = permit.map_err(|error| wait.refusal(error))?;
        if read_only == ReadOnly::Binds {
            self.env.check_read_only(&self.writer)?;
        }
        Ok(permit)
    }

    /// Blocks commits of all other sessions until [`SessionTrx::let_others_commit`], for SET GLOBAL
    /// read_only. Waits for the commits in progress.
    pub fn keep_others_from_committing(&mut self) -> SqlResult<()> {
        self.lock_all_for_session(&[(MetadataKey::Global, MetadataMode::SharedNoWrite)])
    }

    /// Allows commits of other sessions again, unless the session has FLUSH TABLES WITH READ LOCK.
    pub fn let_others_commit(&mut self) {
        self.unlock_for_session(&MetadataKey::Global);
    }

    fn lock_for_session(&mut self, name: &MetadataKey, mode: MetadataMode) -> SqlResult<()> {
        // A transaction that this statement has committed holds its names until it is published.
        self.await_own()?;
        self.own_locks();
        let SessionTrx { env, session_locks, kill, settings, .. } = self;
        let Some(locks) = session_locks else { unreachable!("made above") };
        let wait = WaitLimit::For(settings.metadata_lock_wait);
        let taken = env.locks.lock_metadata(&mut locks.owner, name, mode, wait, kill).map_err(lock_error);
        if taken.is_err() && locks.is_empty() {
            *session_locks = None;
        }
        taken
    }

    /// Waits until the session's own last transaction is published.
    fn publish_own(&self) -> SqlResult<()> {
        if self.session_locks.is_none() {
            return Ok(());
        }
        // A killed session also keeps its names until then.
        self.await_published(self.last_ordered(), &KillFlag::default())
    }
}

impl Drop for SessionTrx {
    fn drop(&mut self) {
        // A stopping server publishes nothing any more; its locks do not matter.
        self.release_session_locks();
    }
}

fn conflicting_read_lock() -> SqlError {
    SqlError::conflicting_read_lock()
}

/// Returns error 1100.
fn not_locked(alias: &str) -> SqlError {
    SqlError::table_not_locked(alias)
}

/// Returns error 1192.
pub fn active_locks() -> SqlError {
    SqlError::locked_or_in_transaction()
}
