//! LOCK TABLES, FLUSH TABLES WITH READ LOCK and BACKUP: locks that belong to the session, beside those of its
//! transactions.
//!
//! # Modes
//! | statement | on the table's name | on the server |
//! |---|---|---|
//! | LOCK TABLES .. READ | `SharedNoWrite` | |
//! | LOCK TABLES .. WRITE | `Exclusive` | `SharedWrite` |
//! | FLUSH TABLES WITH READ LOCK | | `SharedNoWrite` |
//! | BACKUP STAGE BLOCK_COMMIT | | `SharedNoWrite` |
//! | BACKUP LOCK | `SharedRead` | |
//!
//! BACKUP STAGE START also takes the right to make a backup, which one session has at a time, and BLOCK_DDL
//! the definitions (`SharedNoWrite`), on which DDL statements and LOCK TABLES .. WRITE hold `SharedWrite`.
//!
//! Every commit holds `SharedWrite` on the server from its start until it is published, and so does a DDL
//! statement; a statement that writes only passes that lock before it begins. So under FLUSH TABLES WITH READ
//! LOCK nothing commits and no write begins, while open transactions stay open; and a session that waits for
//! that lock waits for commits alone, which wait for no row. Under BLOCK_COMMIT writes begin and wait for
//! their commit, so a write does not pass the lock while it is a backup's ([`BackupGate`]).
//!
//! # A session that has locked tables
//! Its transactions do not lock names that the session holds (they would wait behind those who wait for the
//! session); other tables are refused to it. Before its locks go, or a DDL statement uses them, its own last
//! transaction is published: a session that gets a name exclusively relies on that.
//!
//! A table is locked under an *alias*, its own name if none is given, and usable under no other; the lock of
//! its name is the strongest of its aliases'. A statement may use an alias once: `INSERT INTO t SELECT * FROM
//! t` needs a second lock. A table that is dropped, or renamed by ALTER TABLE, is locked no more.
//!
//! A statement that is refused for its tables waits for nothing before: the server's name, the definitions'
//! and the schemas' are not asked for. What it may write was locked together with them; what it commits
//! otherwise asks for the server's name when it does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cohort_locks::{KillFlag, LockOwner, MetadataMode, NameKey, Part, WaitLimit, WritePermit};
use cohort_sql::ast::BackupStage;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::commit::ReadOnly;
use crate::errors::{lock_error, rmfail};
use crate::held_locks::{AliasLock, LockedTables, SessionLocks, TableId, TableLock, writes};
use crate::session_trx::SessionTrx;

/// A session that locks tables begins again after so many deadlocks; then it gives up.
const DEADLOCK_ATTEMPTS: u32 = 100;

/// Whose lock a statement of the session uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// The session has it.
    Session,
    /// The transaction has to take it.
    Transaction,
}

impl SessionTrx {
    /// The owner that is to hold a lock of a statement. Errors 1099 and 1100 for tables that LOCK TABLES did
    /// not lock, or not for that; 1223 for writes under the session's own FLUSH TABLES WITH READ LOCK.
    pub(super) fn holder_of(&self, name: &NameKey, mode: MetadataMode) -> SqlResult<Holder> {
        let alias = if let NameKey::Table(_, table) = name { &**table } else { "" };
        self.holder_under_alias(name, alias, mode)
    }

    /// Whether LOCK TABLES has locked a name.
    pub(super) fn session_holds(&self, name: &NameKey) -> bool {
        let Some(locks) = &self.session_locks else { return false };
        match name {
            NameKey::Global
            | NameKey::Definitions
            | NameKey::Backup
            | NameKey::Accounts
            | NameKey::User(_) => false,
            NameKey::Schema(schema) => locks.uses(schema),
            NameKey::Table(schema, table) => {
                locks.tables.contains_key(&(schema.to_string(), table.to_string()))
            }
        }
    }

    /// The same for a table that the statement calls by an alias.
    pub(super) fn holder_under_alias(
        &self,
        name: &NameKey,
        alias: &str,
        mode: MetadataMode,
    ) -> SqlResult<Holder> {
        let Some(locks) = &self.session_locks else { return Ok(Holder::Transaction) };
        match name {
            NameKey::Table(..) | NameKey::Schema(_) if locks.branch.is_some() => {
                Err(rmfail(locks.branch.unwrap_or_default()))
            }
            NameKey::Global if locks.is_global => Err(conflicting_read_lock()),
            NameKey::Global | NameKey::Definitions if locks.stage.is_some() => Err(SqlError::backup_active()),
            NameKey::Global | NameKey::Definitions if locks.backup_table.is_some() => {
                Err(conflicting_read_lock())
            }
            // What the session has, its transaction must not ask for: it would wait behind those who wait for
            // the session.
            // Under LOCK TABLES nothing is waited for before the statement's tables are looked at: what it
            // may write the session has locked with these names; the rest is refused, or asks when it
            // commits.
            NameKey::Global | NameKey::Definitions if locks.is_locking => Ok(Holder::Session),
            NameKey::Schema(schema)
                if mode == MetadataMode::SharedRead && (locks.is_locking || locks.uses(schema)) =>
            {
                Ok(Holder::Session)
            }
            NameKey::Accounts if locks.is_locking => Err(not_locked("global_priv")),
            NameKey::Schema(_) if locks.is_locking && mode == MetadataMode::Exclusive => Err(active_locks()),
            NameKey::Table(schema, table) if locks.is_locking => {
                let aliases = locks.tables.get(&(schema.to_string(), table.to_string()));
                match aliases.and_then(|aliases| aliases.get(alias)) {
                    None => Err(not_locked(alias)),
                    Some(held) if held.lock == TableLock::Read && mode != MetadataMode::SharedRead => {
                        Err(SqlError::new(
                            ErrorCode::TableNotLockedForWrite,
                            format!("Table '{alias}' was locked with a READ lock and can't be updated"),
                        ))
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

    /// LOCK TABLES: in place of what LOCK TABLES locked before. The session has no transaction.
    pub fn lock_tables(&mut self, tables: LockedTables) -> SqlResult<()> {
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
            names.push((NameKey::Definitions, MetadataMode::SharedWrite));
            names.push((NameKey::Global, MetadataMode::SharedWrite));
        }
        for ((schema, table), aliases) in &tables {
            names.push((NameKey::Schema(schema.as_str().into()), MetadataMode::SharedRead));
            let mode = match aliases.values().map(|alias| alias.lock).max() {
                Some(TableLock::Write) => MetadataMode::Exclusive,
                _ => MetadataMode::SharedNoWrite,
            };
            names.push((NameKey::Table(schema.as_str().into(), table.as_str().into()), mode));
        }
        self.lock_all_for_session(&names)?;
        let locks = self.own_locks();
        locks.tables = tables;
        locks.is_locking = true;
        Ok(())
    }

    /// Takes all, or none. A deadlock with transactions that go through the same tables in another order is
    /// nobody's fault: the session gives back what it has so far and begins again.
    fn lock_all_for_session(&mut self, names: &[(NameKey, MetadataMode)]) -> SqlResult<()> {
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

    /// Locks of the session; none yet if it is new.
    fn own_locks(&mut self) -> &mut SessionLocks {
        if self.session_locks.is_none() {
            self.session_locks = Some(Box::new(SessionLocks::new(self.new_owner(Part::Lasting))));
        }
        self.session_locks.as_mut().expect("made above")
    }

    fn unlock_for_session(&mut self, name: &NameKey) {
        let Some(locks) = &mut self.session_locks else { return };
        if *name != NameKey::Global || !locks.is_global {
            self.env.locks.unlock_name(&mut locks.owner, name);
        }
        if locks.is_empty() {
            self.session_locks = None;
        }
    }

    /// FLUSH TABLES WITH READ LOCK.
    pub fn lock_globally(&mut self) -> SqlResult<()> {
        if self.has_locked_tables() {
            return Err(active_locks());
        }
        if self.backup_stage().is_some() {
            return Err(SqlError::backup_active());
        }
        self.lock_all_for_session(&[(NameKey::Global, MetadataMode::SharedNoWrite)])?;
        self.session_locks.as_mut().expect("locked above").is_global = true;
        Ok(())
    }

    /// Whether LOCK TABLES is in force.
    pub fn has_locked_tables(&self) -> bool {
        self.session_locks.as_ref().is_some_and(|locks| locks.is_locking)
    }

    /// The tables of LOCK TABLES.
    pub fn locked_tables(&self) -> impl Iterator<Item = &TableId> {
        self.session_locks.iter().flat_map(|locks| locks.tables.keys())
    }

    /// The same with the strongest lock of each.
    pub fn locked_tables_with_locks(&self) -> impl Iterator<Item = (&TableId, TableLock)> {
        let tables = self.session_locks.iter().flat_map(|locks| &locks.tables);
        let strongest =
            |aliases: &BTreeMap<String, AliasLock>| aliases.values().map(|alias| alias.lock).max();
        tables.map(move |(name, aliases)| (name, strongest(aliases).unwrap_or(TableLock::Read)))
    }

    /// Error 1100 when a statement uses a table under one alias more often than LOCK TABLES has locked it.
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

    /// Error 1100 for the first of these tables that LOCK TABLES has not locked.
    pub fn check_locked<'n>(&self, mut tables: impl Iterator<Item = &'n TableId>) -> SqlResult<()> {
        let Some(locks) = self.session_locks.as_ref().filter(|locks| locks.is_locking) else { return Ok(()) };
        match tables.find(|table| !locks.tables.contains_key(*table)) {
            Some((_, name)) => Err(not_locked(name)),
            None => Ok(()),
        }
    }

    /// A DDL statement is published: what LOCK TABLES has locked and is gone by this name is locked no more.
    /// As in MariaDB LOCK TABLES is over when the last table was dropped, not when it was renamed.
    pub fn forget_gone_tables(&mut self, is_there: impl Fn(&TableId) -> bool, drops: bool) -> SqlResult<()> {
        let Some(locks) = self.session_locks.as_mut().filter(|locks| locks.is_locking) else { return Ok(()) };
        let had_any = !locks.tables.is_empty();
        let gone: Vec<TableId> = locks.tables.keys().filter(|table| !is_there(table)).cloned().collect();
        for table in gone {
            locks.tables.remove(&table);
            let (schema, name) = table;
            let key = NameKey::Table(schema.as_str().into(), name.into());
            self.env.locks.unlock_name(&mut locks.owner, &key);
            if !locks.uses(&schema) {
                self.env.locks.unlock_name(&mut locks.owner, &NameKey::Schema(schema.into()));
            }
        }
        if drops && had_any && locks.tables.is_empty() { self.unlock_tables() } else { Ok(()) }
    }

    /// From now on the session's statements may use no tables: its XA transaction is in this state. None:
    /// they may again.
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
            // Every XA transaction comes here; what has locked nothing serves the next one, too.
            let has_locked = |owner: &LockOwner| !owner.is_as_new() || owner.names_held() > 0;
            self.spare_session_locks = self.session_locks.take().filter(|it| !has_locked(&it.owner));
            if let Some(spare) = &mut self.spare_session_locks {
                spare.owner.leave();
            }
        }
    }

    /// Gives back what LOCK TABLES locked.
    pub fn unlock_tables(&mut self) -> SqlResult<()> {
        if !self.has_locked_tables() {
            return Ok(());
        }
        self.publish_own()?;
        let Some(locks) = &mut self.session_locks else { return Ok(()) };
        let tables = std::mem::take(&mut locks.tables);
        locks.is_locking = false;
        if locks.is_empty() {
            self.session_locks = None;
            return Ok(());
        }
        if writes(&tables) {
            self.env.locks.unlock_name(&mut locks.owner, &NameKey::Definitions);
        }
        for (schema, table) in tables.into_keys() {
            let (schema, table): (Arc<str>, Arc<str>) = (schema.into(), table.into());
            self.env.locks.unlock_name(&mut locks.owner, &NameKey::Table(schema.clone(), table));
            self.env.locks.unlock_name(&mut locks.owner, &NameKey::Schema(schema));
        }
        Ok(())
    }

    /// UNLOCK TABLES: all that the session holds, but for its backup's.
    pub fn unlock_all(&mut self) -> SqlResult<()> {
        self.unlock_tables()?;
        self.publish_own()?;
        let Some(locks) = &mut self.session_locks else { return Ok(()) };
        if std::mem::take(&mut locks.is_global) {
            self.env.locks.unlock_name(&mut locks.owner, &NameKey::Global);
        }
        if locks.is_empty() {
            self.session_locks = None;
        }
        Ok(())
    }

    /// How far the session's backup has come.
    pub fn backup_stage(&self) -> Option<BackupStage> {
        self.session_locks.as_ref().and_then(|locks| locks.stage)
    }

    /// BACKUP STAGE. Errors 4146 before START, 4147 when the backup has come further already.
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
            names.push((NameKey::Backup, MetadataMode::Exclusive));
        }
        if stage != BackupStage::End {
            if stage >= BackupStage::BlockDdl && now < Some(BackupStage::BlockDdl) {
                names.push((NameKey::Definitions, MetadataMode::SharedNoWrite));
            }
            if stage == BackupStage::BlockCommit {
                // Said first: a write that sees the lock must know whose it is.
                self.env.backup.blocks_commits.store(true, Ordering::SeqCst);
                names.push((NameKey::Global, MetadataMode::SharedNoWrite));
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

    /// Gives back what the session's backup holds.
    fn end_backup(&mut self) {
        let Some(locks) = &mut self.session_locks else { return };
        if locks.stage.take().is_some_and(|stage| stage >= BackupStage::BlockCommit) {
            self.env.backup.blocks_commits.store(false, Ordering::SeqCst);
        }
        for name in [NameKey::Global, NameKey::Definitions, NameKey::Backup] {
            self.env.locks.unlock_name(&mut locks.owner, &name);
        }
        if locks.is_empty() {
            self.session_locks = None;
        }
    }

    /// BACKUP LOCK: nobody changes the table's definition; in place of the one before.
    pub fn lock_for_backup(&mut self, table: NameKey) -> SqlResult<()> {
        if self.has_locked_tables() {
            return Err(active_locks());
        }
        self.unlock_for_backup();
        self.lock_all_for_session(&[(table.clone(), MetadataMode::SharedRead)])?;
        self.session_locks.as_mut().expect("locked above").backup_table = Some(table);
        Ok(())
    }

    /// The schema of the table that BACKUP LOCK has locked.
    pub fn backup_schema(&self) -> Option<Arc<str>> {
        match self.session_locks.as_ref()?.backup_table.as_ref()? {
            NameKey::Table(schema, _) => Some(Arc::clone(schema)),
            _ => None,
        }
    }

    /// BACKUP UNLOCK.
    pub fn unlock_for_backup(&mut self) {
        let Some(locks) = &mut self.session_locks else { return };
        if let Some(table) = locks.backup_table.take() {
            self.env.locks.unlock_name(&mut locks.owner, &table);
        }
        if locks.is_empty() {
            self.session_locks = None;
        }
    }

    /// Gives back everything.
    pub(crate) fn release_session_locks(&mut self) {
        // Without the server's log there is nothing to wait for.
        let _ = self.publish_own();
        self.end_backup();
        self.session_locks = None;
    }

    /// Before a statement that writes and commits later: under a backup that blocks commits it begins.
    pub fn pass_global_lock_to_write(&mut self) -> SqlResult<()> {
        if self.session_locks.is_none() && !self.env.locks.is_global_guarded() {
            return Ok(());
        }
        let is_backup = self.env.backup.blocks_commits.load(Ordering::SeqCst);
        if is_backup && self.session_locks.is_none() { Ok(()) } else { self.pass_global_lock() }
    }

    /// Before a statement that writes: it waits while somebody has FLUSH TABLES WITH READ LOCK, or waits for
    /// it.
    pub(crate) fn pass_global_lock(&mut self) -> SqlResult<()> {
        if self.session_locks.is_none() && !self.env.locks.is_global_guarded() {
            return Ok(());
        }
        if self.holder_of(&NameKey::Global, MetadataMode::SharedWrite)? == Holder::Session {
            return Ok(());
        }
        self.lock_name(&NameKey::Global, MetadataMode::SharedWrite)?;
        let (env, active, _) = self.parts();
        env.locks.unlock_name(&mut active.locks, &NameKey::Global);
        Ok(())
    }

    /// Before a commit: nothing commits while another session has FLUSH TABLES WITH READ LOCK, nor after its
    /// SET GLOBAL read_only.
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

    /// Keeps all other sessions from committing, until [`SessionTrx::let_others_commit`]: SET GLOBAL
    /// read_only. Waits for the commits that are on their way.
    pub fn keep_others_from_committing(&mut self) -> SqlResult<()> {
        self.lock_all_for_session(&[(NameKey::Global, MetadataMode::SharedNoWrite)])
    }

    /// Ends that, unless the session has FLUSH TABLES WITH READ LOCK.
    pub fn let_others_commit(&mut self) {
        self.unlock_for_session(&NameKey::Global);
    }

    fn lock_for_session(&mut self, name: &NameKey, mode: MetadataMode) -> SqlResult<()> {
        // The transaction that this statement has committed holds its names until it is published.
        self.await_own()?;
        self.own_locks();
        let SessionTrx { env, session_locks, kill, settings, .. } = self;
        let Some(locks) = session_locks else { unreachable!("made above") };
        let wait = WaitLimit::For(settings.metadata_lock_wait);
        let taken = env.locks.lock_name(&mut locks.owner, name, mode, wait, kill).map_err(lock_error);
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
        // A killed session, too, keeps its names until then.
        self.await_published(self.last_ordered(), &KillFlag::default())
    }
}

impl Drop for SessionTrx {
    fn drop(&mut self) {
        // A server that stops publishes nothing any more; its locks matter to nobody.
        self.release_session_locks();
    }
}

fn conflicting_read_lock() -> SqlError {
    let text = "Can't execute the query because you have a conflicting read lock";
    SqlError::new(ErrorCode::CantUpdateWithReadlock, text)
}

/// Error 1100.
fn not_locked(alias: &str) -> SqlError {
    let text = format!("Table '{alias}' was not locked with LOCK TABLES");
    SqlError::new(ErrorCode::TableNotLocked, text)
}

/// Error 1192.
pub fn active_locks() -> SqlError {
    let text =
        "Can't execute the given command because you have active locked tables or an active transaction";
    SqlError::new(ErrorCode::LockOrActiveTransaction, text)
}
