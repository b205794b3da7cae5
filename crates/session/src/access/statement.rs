//! The privilege check before a statement runs. The match lists every statement, so a new one does not
//! compile until its privileges are decided. The other properties are in the table of statements.

use cohort_catalog::PUBLIC;
use cohort_sql::ast::{
    Account, AlterAction, AlterTable, Backup, BackupServer, BackupTarget, CheckedKind, CloneServer,
    CreateMode, CreateTable, DropTable, Flush, FlushLock, FlushTarget, ForeignKey, HandlerAction,
    MaintenanceKind, ObjectName, Program, Revoke, RoutineKind, Show, Statement, TableMaintenance,
};
use cohort_types::{Privilege as P, Privileges, SqlError, SqlResult};

use crate::access::check::{
    check_any_on_table, check_any_on_whole, check_global, check_routine, check_schema, check_table,
    is_information_schema, may_enter, may_list,
};
use crate::session_state::SessionState;
use crate::statements::{Exception, StatementTraits, Writes, changed_names};

/// The schema of the account tables. A session that may write there may change accounts.
const ACCOUNTS: &str = "mysql";

/// Returns the set of two privileges, of which either is enough.
const fn or(a: P, b: P) -> Privileges {
    Privileges::of(&[a, b])
}

/// Checks the privileges a statement needs before it runs: errors 1227, 1044, 1142. Queries and row changes
/// are checked where their names are resolved.
pub fn check_statement(session: &SessionState, statement: &Statement) -> SqlResult<()> {
    let check = StatementCheck { session };
    match statement {
        Statement::Query(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Do(_)
        | Statement::QueryIntoFile(_)
        | Statement::LoadData(_)
        | Statement::Explain { .. } => Ok(()),
        // The statements that they run are checked here as well.
        Statement::SetStatement { .. }
        | Statement::WithLockWait { .. }
        | Statement::Prepare { .. }
        | Statement::Execute { .. }
        | Statement::ExecuteImmediate { .. } => Ok(()),
        // Checked later: each assignment, the schema, the target session.
        Statement::Set(_) | Statement::Use(_) | Statement::Kill(_) | Statement::GetDiagnostics(_) => Ok(()),
        Statement::Program(program) => check.program(program),
        Statement::Begin(_)
        | Statement::Commit(_)
        | Statement::Rollback(_)
        | Statement::Savepoint(_)
        | Statement::RollbackTo(_)
        | Statement::ReleaseSavepoint(_)
        | Statement::UnlockTables
        | Statement::Xa(_)
        | Statement::Deallocate(_)
        | Statement::Help(_) => Ok(()),
        Statement::LockTables(tables) => tables.iter().try_for_each(|table| check.lock(&table.table)),

        Statement::Handler(handler) => match handler.action {
            HandlerAction::Open { .. } => check.table(P::Select, &handler.name),
            HandlerAction::Read(_) | HandlerAction::Close => Ok(()),
        },
        Statement::CreateDatabase(create) => check.schema(creation(create.mode), &create.name),
        Statement::AlterDatabase(alter) => {
            let name = alter.name.as_deref().or(session.current_schema.as_deref());
            name.map_or(Ok(()), |name| check.schema(P::Alter, name))
        }
        Statement::DropDatabase(drop) => check.schema(P::Drop, &drop.name),
        Statement::CreateTable(create) => check.create_table(create),
        Statement::AlterTable(alter) => check.alter_table(alter),
        Statement::AlterSequence(alter) => check.table(P::Alter, &alter.name),
        Statement::DropTable(drop) if drop.temporary => Ok(()),
        Statement::DropTable(drop) if drop.view => {
            drop.names.iter().try_for_each(|name| check.shared(P::Drop, name))
        }
        Statement::DropTable(drop) => {
            let mut shared = drop.names.iter().filter(|name| !drops_own(session, drop, name));
            shared.try_for_each(|name| check.shared(P::Drop, name))
        }
        Statement::CreateView(create) => match (create.alter, create.mode) {
            (false, CreateMode::Create | CreateMode::IfNotExists) => {
                check.shared(P::CreateView, &create.name)
            }
            (true, _) | (_, CreateMode::OrReplace) => check.shared(or(P::CreateView, P::Drop), &create.name),
        },
        Statement::RenameTable(rename) => {
            let own = own_renames(session, &rename.renames);
            let shared = rename.renames.iter().zip(own).filter(|(_, own)| !own);
            shared.map(|(pair, _)| pair).try_for_each(|(from, to)| check.rename_shared(from, to))
        }
        Statement::Truncate(name) => check.table(P::Drop, name),
        Statement::CreateIndex(create) => check.table(P::Index, &create.table),
        Statement::DropIndex(drop) => check.table(P::Index, &drop.table),

        Statement::Show(show) => check.show(show),
        Statement::Describe { table, .. } => check.described(table),

        Statement::Flush(flush) => check.flush(flush),
        Statement::ResetMaster { .. } | Statement::ResetSlave { .. } => check_global(session, P::Reload),
        Statement::PurgeBinaryLogs(_) => check_global(session, or(P::Super, P::BinlogAdmin)),
        Statement::Binlog(_) => check_global(session, or(P::Super, P::BinlogReplay)),
        Statement::TableMaintenance(maintenance) => check.maintenance(maintenance),
        Statement::Backup(backup) => check.backup(backup),
        Statement::Clone(CloneServer::Local { .. }) => check_global(session, P::BackupAdmin),
        Statement::Clone(CloneServer::Instance(_)) => check_global(session, P::CloneAdmin),
        Statement::Plugin(plugin) => {
            let table = ObjectName { db: Some("mysql".to_owned()), name: "plugin".to_owned() };
            check.table(if plugin.installs { P::Insert } else { P::Delete }, &table)
        }
        Statement::Shutdown => check_global(session, P::Shutdown),
        Statement::ChangeMaster(_) | Statement::StartSlave(_) | Statement::StopSlave(_) => {
            check_global(session, or(P::Super, P::ReplicationSlaveAdmin))
        }

        Statement::CreateRole(create) => match create.mode {
            CreateMode::Create | CreateMode::IfNotExists => check.accounts(P::Insert.into()),
            CreateMode::OrReplace => check.accounts(or(P::Insert, P::Delete)),
        },
        Statement::DropRole(_) => check.accounts(P::Delete.into()),
        Statement::CreateUser(create) => match create.mode {
            CreateMode::Create | CreateMode::IfNotExists => check.accounts(P::Insert.into()),
            CreateMode::OrReplace => check.accounts(or(P::Insert, P::Delete)),
        },
        Statement::AlterUser(_) | Statement::RenameUser(_) => check.accounts(P::Update.into()),
        Statement::DropUser { .. } => check.accounts(P::Delete.into()),
        Statement::Revoke(Revoke { level, .. }) if level.is_everywhere() => check.accounts(P::Update.into()),
        // An account can grant only what it has. The check depends on the privileges named.
        Statement::Grant(_) | Statement::Revoke(_) => Ok(()),
    }
}

fn creation(mode: CreateMode) -> Privileges {
    match mode {
        CreateMode::Create | CreateMode::IfNotExists => P::Create.into(),
        CreateMode::OrReplace => or(P::Create, P::Drop),
    }
}

struct StatementCheck<'s> {
    session: &'s SessionState,
}

impl StatementCheck<'_> {
    fn schema(&self, all: impl Into<Privileges>, name: &str) -> SqlResult<()> {
        check_schema(self.session, all, name)
    }

    /// Returns the schema of a name. Without a current database, the statement itself reports the error.
    fn schema_of<'n>(&'n self, name: &'n ObjectName) -> Option<&'n str> {
        name.db.as_deref().or(self.session.current_schema.as_deref())
    }

    fn table(&self, all: impl Into<Privileges>, name: &ObjectName) -> SqlResult<()> {
        if is_temporary(self.session, name) {
            return Ok(());
        }
        self.shared(all, name)
    }

    /// Checks the table that all sessions see under the name, even if a temporary table hides it.
    fn shared(&self, all: impl Into<Privileges>, name: &ObjectName) -> SqlResult<()> {
        self.schema_of(name).map_or(Ok(()), |schema| check_table(self.session, all, schema, &name.name))
    }

    fn any_on_table(&self, command: &str, name: &ObjectName) -> SqlResult<()> {
        if is_temporary(self.session, name) {
            return Ok(());
        }
        let check = |schema| check_any_on_table(self.session, command, schema, &name.name);
        self.schema_of(name).map_or(Ok(()), check)
    }

    /// Checks for SELECT, or any grant on the table itself or one of its columns.
    fn described(&self, name: &ObjectName) -> SqlResult<()> {
        let has_grant = |schema| self.session.access().granted_on_table(schema, &name.name).is_some();
        if self.schema_of(name).is_some_and(has_grant) {
            return Ok(());
        }
        self.table(P::Select, name)
    }

    fn lock(&self, name: &ObjectName) -> SqlResult<()> {
        self.schema_of(name).map_or(Ok(()), |schema| self.schema(P::LockTables, schema))?;
        self.table(P::Select, name)
    }

    /// Checks for CREATE USER, or the privilege to write the account table in this way.
    fn accounts(&self, writes: Privileges) -> SqlResult<()> {
        if self.session.access().on_schema(ACCOUNTS).covers(writes) {
            return Ok(());
        }
        check_global(self.session, P::CreateUser)
    }

    fn create_table(&self, create: &CreateTable) -> SqlResult<()> {
        if create.temporary {
            let schema = self.schema_of(&create.name);
            schema.map_or(Ok(()), |schema| self.schema(P::CreateTemporaryTables, schema))?;
        } else {
            let mut wanted = creation(create.mode);
            if create.query.is_some() {
                wanted = wanted.with(P::Insert);
            }
            let check = |schema| check_table(self.session, wanted, schema, &create.name.name);
            self.schema_of(&create.name).map_or(Ok(()), check)?;
        }
        create.foreign_keys.iter().try_for_each(|key| self.references(key, &create.name))?;
        create.like.iter().try_for_each(|other| self.table(P::Select, other))
    }

    /// Checks that a foreign key may refer to a table: the account must be able to read or change rows of the
    /// whole table. Column privileges are not enough, because a key reveals and locks all rows. Without a
    /// schema, the name is in the schema of the referring table.
    fn references(&self, key: &ForeignKey, child: &ObjectName) -> SqlResult<()> {
        let of = &key.references;
        let Some(schema) = of.db.as_deref().or_else(|| self.schema_of(child)) else { return Ok(()) };
        let any = or(P::Select, P::Insert).with(P::Update).with(P::Delete).with(P::References);
        match self.session.access().on_table(schema, &of.name).meets(any) {
            true => Ok(()),
            false => Err(self.session.table_access_denied("REFERENCES", schema, &of.name)),
        }
    }

    fn alter_table(&self, alter: &AlterTable) -> SqlResult<()> {
        for action in &alter.actions {
            if let AlterAction::AddForeignKey(key) = action {
                self.references(key, &alter.table)?;
            }
        }
        let renamed = alter.actions.iter().rev().find_map(|action| match action {
            AlterAction::RenameTable(to) => Some(to),
            _ => None,
        });
        match renamed {
            Some(to) => self.rename(&alter.table, to),
            None => self.table(P::Alter, &alter.table),
        }
    }

    fn rename(&self, from: &ObjectName, to: &ObjectName) -> SqlResult<()> {
        if is_temporary(self.session, from) {
            return Ok(());
        }
        self.rename_shared(from, to)
    }

    fn rename_shared(&self, from: &ObjectName, to: &ObjectName) -> SqlResult<()> {
        self.shared(or(P::Alter, P::Drop), from)?;
        self.shared(or(P::Create, P::Insert), to)
    }

    fn flush(&self, flush: &Flush) -> SqlResult<()> {
        check_global(self.session, P::Reload)?;
        for target in &flush.targets {
            if let FlushTarget::Tables { names, lock: FlushLock::WithReadLock | FlushLock::ForExport } =
                target
            {
                names.iter().try_for_each(|name| self.lock(name))?;
            }
        }
        Ok(())
    }

    fn maintenance(&self, maintenance: &TableMaintenance) -> SqlResult<()> {
        maintenance.names.iter().try_for_each(|name| match maintenance.kind {
            MaintenanceKind::Check => self.any_on_table("CHECK TABLE", name),
            MaintenanceKind::Checksum => self.table(P::Select, name),
            MaintenanceKind::Analyze | MaintenanceKind::Optimize | MaintenanceKind::Repair => {
                self.table(or(P::Select, P::Insert), name)
            }
        })
    }

    fn backup(&self, backup: &Backup) -> SqlResult<()> {
        match backup {
            Backup::Stage(_) => check_global(self.session, P::Reload),
            Backup::Server(BackupServer { target: BackupTarget::Directory(_), .. }) => {
                check_global(self.session, P::Reload).and_then(|()| check_global(self.session, P::File))
            }
            Backup::Server(_) | Backup::Proven(_) => {
                match self.session.access().everywhere().has(P::BackupAdmin) {
                    // Donors of clones have a privilege of their own.
                    true => Ok(()),
                    false => check_global(self.session, P::Reload)
                        .and_then(|()| check_global(self.session, P::Select)),
                }
            }
            Backup::Lock(name) => match self.schema_of(name) {
                Some(schema) if self.session.access().on_schema(schema).has(P::LockTables) => Ok(()),
                _ => check_global(self.session, or(P::Reload, P::LockTables)),
            },
            // Depends on the locked table.
            Backup::Unlock => Ok(()),
        }
    }

    /// Checks a definition of a stored program: errors 1044, 1142, 1370.
    fn program(&self, program: &Program) -> SqlResult<()> {
        let in_schema = |privilege: P, name: &ObjectName| match self.schema_of(name) {
            Some(schema) => self.schema(privilege, schema),
            None => Ok(()),
        };
        match program {
            Program::CreateRoutine(create) => {
                in_schema(P::CreateRoutine, &create.name)?;
                match create.mode {
                    CreateMode::OrReplace => self.routine(create.kind, &create.name),
                    CreateMode::Create | CreateMode::IfNotExists => Ok(()),
                }
            }
            Program::AlterRoutine { kind, name, .. } | Program::DropRoutine { kind, name, .. } => {
                self.routine(*kind, name)
            }
            Program::CreateTrigger(create) => {
                let schema = create.table.db.as_deref().or_else(|| self.schema_of(&create.name));
                let is_own = |schema| self.session.temporary.find(schema, &create.table.name).is_some();
                match schema {
                    Some(schema) if !is_own(schema) => {
                        check_table(self.session, P::Trigger, schema, &create.table.name)
                    }
                    _ => Ok(()),
                }
            }
            Program::Check { kind: CheckedKind::Routine(kind), name } => self.routine(*kind, name),
            Program::DropTrigger { name, .. } | Program::Check { kind: CheckedKind::Trigger, name } => {
                let Some(schema) = self.schema_of(name) else { return Ok(()) };
                let catalog = self.session.db.catalog();
                let trigger = catalog.schemas.get(schema).and_then(|schema| schema.trigger(&name.name));
                trigger.map_or(Ok(()), |(table, _)| {
                    check_table(self.session, P::Trigger, schema, &table.name.table)
                })
            }
            Program::CreateEvent(create) => {
                in_schema(P::Event, &create.name).map_err(|error| self.after_definer(&create.definer, error))
            }
            Program::AlterEvent(alter) => {
                in_schema(P::Event, &alter.name)
                    .map_err(|error| self.after_definer(&alter.definer, error))?;
                alter.rename_to.as_ref().map_or(Ok(()), |to| in_schema(P::Event, to))
            }
            Program::DropEvent { name, .. } => in_schema(P::Event, name),
            Program::Call { .. } | Program::Compound(_) | Program::Signal(_) | Program::Resignal(_) => Ok(()),
        }
    }

    /// Returns the error of an account that lacks EVENT. As in MariaDB, the definer of an event is checked
    /// first: error 1227 if it is another account.
    fn after_definer(&self, definer: &Option<Account>, denied: SqlError) -> SqlError {
        let named = match definer {
            None | Some(Account::CurrentUser | Account::CurrentRole) => return denied,
            Some(Account::NameAlone(user)) => (user.clone(), "%".to_owned()),
            Some(Account::Named { user, host }) => (user.clone(), host.clone()),
        };
        let wanted = Privileges::of(&[P::Super, P::SetUser]);
        match self.session.is_definer(&named) {
            true => denied,
            false => check_global(self.session, wanted).err().unwrap_or(denied),
        }
    }

    /// Requires ALTER ROUTINE on a routine: error 1370.
    fn routine(&self, kind: RoutineKind, name: &ObjectName) -> SqlResult<()> {
        let Some(schema) = self.schema_of(name) else { return Ok(()) };
        check_routine(self.session, P::AlterRoutine, kind, schema, &name.name)
    }

    fn show(&self, show: &Show) -> SqlResult<()> {
        let current = self.session.current_schema.as_deref();
        let session = self.session;
        match show {
            Show::Databases { .. }
            | Show::OpenTables { .. }
            | Show::Variables { .. }
            | Show::Status { .. }
            | Show::ProcessList { .. }
            | Show::Engines
            | Show::Warnings { .. }
            | Show::Errors { .. }
            | Show::CountWarnings
            | Show::CountErrors
            | Show::CharacterSet { .. }
            | Show::Collation { .. }
            | Show::Privileges
            | Show::Plugins { .. }
            | Show::Usage { .. }
            | Show::ProcedureStatus { .. }
            | Show::FunctionStatus { .. }
            | Show::PackageStatus { .. }
            | Show::CreateOther { .. }
            | Show::Profile { .. }
            | Show::Profiles => Ok(()),
            Show::Tables { db, .. } | Show::TableStatus { db, .. } | Show::Triggers { db, .. } => {
                db.as_deref().or(current).map_or(Ok(()), |schema| may_list(session, schema))
            }
            Show::Events { db, .. } => match db.as_deref().or(current) {
                Some(schema) if !is_information_schema(schema) => self.schema(P::Event, schema),
                _ => Ok(()),
            },
            Show::Columns { table, .. } | Show::Index { table, .. } => self.described(table),
            // The output shows every column.
            Show::CreateTable(name) | Show::CreateView(name) | Show::CreateSequence(name) => {
                let Some(schema) = self.schema_of(name) else { return Ok(()) };
                if !matches!(show, Show::CreateView(_)) && is_temporary(session, name) {
                    return Ok(());
                }
                if session.db.catalog().view(schema, &name.name).is_some() {
                    return self.shared(or(P::Select, P::ShowView), name);
                }
                if matches!(show, Show::CreateView(_)) {
                    return self.shared(P::Select, name);
                }
                check_any_on_whole(session, "SHOW", schema, &name.name)
            }
            // In contrast to other errors about databases, this one contains the client's host.
            Show::CreateDatabase { name, .. } => may_enter(session, name).map_err(|_| {
                let (user, host) = session.denied_logins();
                SqlError::database_access_denied(user, host, name)
            }),
            Show::Grants(account) | Show::CreateUser(account) => self.show_account(account.as_ref()),
            Show::Engine { .. } => check_global(session, P::Process),
            Show::BinaryLogs | Show::MasterStatus => check_global(session, or(P::Super, P::BinlogMonitor)),
            Show::BinlogEvents { .. } => check_global(session, P::BinlogMonitor),
            Show::SlaveStatus { .. } => check_global(session, or(P::Super, P::SlaveMonitor)),
            Show::RelaylogEvents { .. } => check_global(session, P::SlaveMonitor),
            // Every session may show its own account; this is checked when the connection is found.
            Show::Explain { .. } => Ok(()),
            Show::SlaveHosts => check_global(session, P::ReplicationMasterAdmin),
        }
    }

    /// Allows the session's own account and its active role. Others require SELECT on the account table.
    fn show_account(&self, account: Option<&Account>) -> SqlResult<()> {
        let own = &self.session.info.account;
        match account {
            None | Some(Account::CurrentUser | Account::CurrentRole) => Ok(()),
            Some(Account::Named { user, host }) if (user, host) == (&own.0, &own.1) => Ok(()),
            Some(Account::NameAlone(name)) if name == &own.0 && own.1 == "%" => Ok(()),
            Some(Account::NameAlone(role)) if self.session.identity.role.as_ref() == Some(role) => Ok(()),
            Some(Account::NameAlone(role)) if role.eq_ignore_ascii_case(PUBLIC) => Ok(()),
            Some(Account::Named { .. } | Account::NameAlone(_)) => self.schema(P::Select, ACCOUNTS),
        }
    }
}

/// Returns which pairs of RENAME TABLE refer to temporary tables of the session: the first pair for each
/// name. A later pair with the same name refers to the table that all sessions see.
pub fn own_renames(session: &SessionState, pairs: &[(ObjectName, ObjectName)]) -> Vec<bool> {
    let mut taken = std::collections::BTreeSet::new();
    let mut is_own = |name: &ObjectName| {
        let schema = name.db.as_deref().or(session.current_schema.as_deref());
        let found = schema.and_then(|schema| session.temporary.find(schema, &name.name));
        found.is_some_and(|table| taken.insert(table.name.clone()))
    };
    pairs.iter().map(|(from, _)| is_own(from)).collect()
}

/// Returns whether the name is one of the session's temporary tables. The session may do anything with those.
fn is_temporary(session: &SessionState, name: &ObjectName) -> bool {
    if session.temporary.is_empty() {
        return false;
    }
    let schema = name.db.as_deref().or(session.current_schema.as_deref());
    schema.is_some_and(|schema| session.temporary.find(schema, &name.name).is_some())
}

/// Returns whether a name in DROP TABLE or DROP SEQUENCE means one of the session's temporary tables. DROP
/// SEQUENCE skips temporary tables that are not sequences.
pub fn drops_own(session: &SessionState, drop: &DropTable, name: &ObjectName) -> bool {
    let schema = name.db.as_deref().or(session.current_schema.as_deref());
    let found = schema.and_then(|schema| session.temporary.find(schema, &name.name));
    found.is_some_and(|table| !drop.view && (!drop.sequence || table.is_sequence()))
}

/// Returns whether a statement other than a row change, which has these traits, affects only temporary tables
/// of the session. Neither `read_only` nor a read-only transaction refuses such a statement.
pub fn is_about_temporary(session: &SessionState, statement: &Statement, traits: &StatementTraits) -> bool {
    if traits.has(Exception::Temporary) {
        return true;
    }
    if session.temporary.is_empty() || !traits.has(Exception::MaybeTemporary) {
        return false;
    }
    match statement {
        Statement::DropTable(drop) => drop.names.iter().all(|name| drops_own(session, drop, name)),
        Statement::RenameTable(rename) => own_renames(session, &rename.renames).into_iter().all(|own| own),
        other => changed_names(other).tables.into_iter().all(|name| is_temporary(session, name)),
    }
}

/// Returns whether a read-only transaction, or a session with read-only transactions, refuses the statement,
/// which has these traits: error 1792. Row changes are checked with their tables.
pub fn refused_in_read_only_transaction(
    session: &SessionState,
    statement: &Statement,
    traits: &StatementTraits,
) -> bool {
    // Statements about other temporary tables commit before they begin.
    traits.writes == Writes::Objects
        && (traits.has(Exception::Temporary) || !is_about_temporary(session, statement, traits))
}
