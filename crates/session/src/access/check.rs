//! Privilege checks on one object, with MariaDB's errors.

use std::sync::Arc;

use cohort_catalog::{AccountName, Routine, TableName, View};
use cohort_types::{Privilege, Privileges, RoutineKind, SqlError, SqlResult};

use crate::access::Access;
use crate::process_list::ProcessIdentity;
use crate::session_state::SessionState;

impl SessionState {
    /// Returns the current privileges of the session's account.
    #[inline]
    pub fn access(&self) -> Arc<Access> {
        let version = self.db.catalog_version();
        let mut kept = self.identity.access.borrow_mut();
        match &*kept {
            Some(access) if access.version == version => Arc::clone(access),
            _ => {
                let catalog = self.db.catalog();
                let access = match self.identity.is_applier || self.identity.acts_for_server {
                    true => Access::of_server(&catalog),
                    false => Access::of(&catalog, &self.info.account, self.identity.role.as_deref()),
                };
                Arc::clone(kept.insert(Arc::new(access)))
            }
        }
    }

    /// Returns whether a connection belongs to the session's user. The user name alone is not enough, because
    /// an anonymous account accepts any name.
    pub fn is_own(&self, other: &ProcessIdentity) -> bool {
        (&other.user, other.account.as_ref()) == (&self.info.user, Some(&self.info.account.0))
    }

    /// Returns whether the definer of a view is the session's account or its active role.
    pub fn is_definer(&self, definer: &AccountName) -> bool {
        *definer == self.info.account
            || (definer.1.is_empty() && self.identity.role.as_ref() == Some(&definer.0))
    }

    pub fn database_access_denied(&self, schema: &str) -> SqlError {
        let (user, host) = &self.info.account;
        SqlError::database_access_denied(user, host, schema)
    }

    /// Returns the user and host to name in errors about tables and columns: the account's user and the
    /// client's host.
    pub fn denied_logins(&self) -> (&str, &str) {
        (&self.info.account.0, &self.info.host)
    }

    pub fn table_access_denied(&self, command: &str, schema: &str, table: &str) -> SqlError {
        let (user, host) = self.denied_logins();
        SqlError::table_access_denied(command, user, host, schema, table)
    }
}

/// Returns whether this is information_schema, which all accounts can read and none can change.
pub(crate) fn is_information_schema(schema: &str) -> bool {
    schema.eq_ignore_ascii_case("information_schema")
}

/// Requires one of these privileges globally: error 1227.
pub fn check_global(session: &SessionState, any: impl Into<Privileges>) -> SqlResult<()> {
    let any = any.into();
    if session.access().everywhere().meets(any) {
        return Ok(());
    }
    Err(SqlError::privilege_needed(&any.to_string()))
}

/// Requires all of these privileges on a schema: error 1044.
pub fn check_schema(session: &SessionState, all: impl Into<Privileges>, schema: &str) -> SqlResult<()> {
    let all = all.into();
    let is_allowed = match is_information_schema(schema) {
        true => Privileges::from(Privilege::Select).covers(all),
        false => session.access().on_schema(schema).covers(all),
    };
    if is_allowed { Ok(()) } else { Err(session.database_access_denied(schema)) }
}

/// Requires all of these privileges on every schema that a name in GRANT covers: error 1044.
pub fn check_schemas(session: &SessionState, all: Privileges, named: &str) -> SqlResult<()> {
    let is_allowed = session.access().on_schemas(named).covers(all);
    if is_allowed { Ok(()) } else { Err(session.database_access_denied(named)) }
}

/// The tables of the schema `mysql` that define the accounts and their privileges.
pub const ACCOUNT_TABLES: [&str; 8] = [
    "columns_priv",
    "db",
    "global_priv",
    "procs_priv",
    "proxies_priv",
    "roles_mapping",
    "tables_priv",
    "user",
];

/// The tables whose rows FLUSH PRIVILEGES makes stored programs, with any definer.
const PROGRAM_TABLES: [&str; 2] = ["event", "proc"];

/// Returns whether these privileges allow changing a stored table from which FLUSH PRIVILEGES takes accounts
/// or programs.
pub(crate) fn changes_accounts(all: Privileges, schema: &str, table: &str) -> bool {
    let reading = Privileges::of(&[Privilege::Select, Privilege::ShowView, Privilege::LockTables]);
    let decides = ACCOUNT_TABLES.contains(&table) || PROGRAM_TABLES.contains(&table);
    schema == "mysql" && decides && !all.without(reading).is_empty()
}

/// Requires all of these privileges on a table: error 1142 names the missing ones. A privilege granted on
/// some column is enough, because columns are checked separately. An account that changes a stored table of
/// accounts decides about all privileges, so it must hold all of them.
pub fn check_table(
    session: &SessionState,
    all: impl Into<Privileges>,
    schema: &str,
    table: &str,
) -> SqlResult<()> {
    let all = all.into();
    if is_information_schema(schema) {
        return check_schema(session, all, schema);
    }
    check_table_as(&session.access(), session.denied_logins(), all, schema, table)
}

/// Does the check of [`check_table`] with given privileges.
pub(crate) fn check_table_as(
    access: &Access,
    who: (&str, &str),
    all: Privileges,
    schema: &str,
    table: &str,
) -> SqlResult<()> {
    check_grants_as(access, who, all, schema, table)?;
    match changes_accounts(all, schema, table) && !access.everywhere().covers(Privileges::EVERY) {
        true => Err(SqlError::table_access_denied(&all.to_string(), who.0, who.1, schema, table)),
        false => Ok(()),
    }
}

/// Requires these privileges on a table of accounts, for changes that run as account statements: error 1142.
/// These statements check the other privileges.
pub fn check_grants(session: &SessionState, all: Privilege, schema: &str, table: &str) -> SqlResult<()> {
    check_grants_as(&session.access(), session.denied_logins(), all.into(), schema, table)
}

fn check_grants_as(
    access: &Access,
    (user, host): (&str, &str),
    all: Privileges,
    schema: &str,
    table: &str,
) -> SqlResult<()> {
    let missing = all.without(access.on_table(schema, table));
    let columns = access.granted_on_table(schema, table).map_or(Privileges::NONE, |g| g.on_any_column());
    if is_information_schema(schema) || missing.is_empty() || columns.covers(missing) {
        return Ok(());
    }
    Err(SqlError::table_access_denied(&missing.to_string(), user, host, schema, table))
}

/// Requires a privilege on a routine: error 1370.
pub fn check_routine(
    session: &SessionState,
    privilege: Privilege,
    kind: RoutineKind,
    schema: &str,
    name: &str,
) -> SqlResult<()> {
    if session.access().on_routine(kind, schema, name).has(privilege) {
        return Ok(());
    }
    let (user, host) = &session.info.account;
    let command = privilege.name().to_lowercase();
    Err(SqlError::routine_access_denied(&command, user, host, schema, name))
}

/// Requires EXECUTE on a routine: error 1370. It is checked at every call.
pub fn may_execute(session: &SessionState, routine: &Routine) -> SqlResult<()> {
    check_routine(session, Privilege::Execute, routine.kind, &routine.schema, &routine.name)
}

/// Returns the privileges that an account has on a routine, without a role. Those of this session's account
/// include its active role.
pub fn on_routine_of(
    session: &SessionState,
    account: &AccountName,
    kind: RoutineKind,
    schema: &str,
    name: &str,
) -> Privileges {
    match *account == session.info.account && !session.identity.is_applier {
        true => session.access().on_routine(kind, schema, name),
        false => Access::of(&session.db.catalog(), account, None).on_routine(kind, schema, name),
    }
}

/// Returns whether the session may see the body of a routine: its definer, and accounts that may read
/// `mysql.proc`.
pub fn sees_body(session: &SessionState, routine: &Routine) -> bool {
    session.access().on_table("mysql", "proc").has(Privilege::Select) || session.is_definer(&routine.definer)
}

/// Returns whether the session may know that a routine exists.
pub fn sees_routine(session: &SessionState, routine: &Routine) -> bool {
    let any = Privileges::of(&[Privilege::Execute, Privilege::AlterRoutine, Privilege::CreateRoutine]);
    sees_body(session, routine)
        || session.access().on_schema(&routine.schema).meets(any)
        || session.access().on_routine(routine.kind, &routine.schema, &routine.name).meets(any)
}

/// Requires a privilege on a column: error 1143.
pub fn check_column(
    session: &SessionState,
    privilege: Privilege,
    table: &TableName,
    column: &str,
) -> SqlResult<()> {
    if session.access().on_column(table, column).has(privilege) {
        return Ok(());
    }
    let (user, host) = session.denied_logins();
    Err(SqlError::column_access_denied(privilege.name(), user, host, column, &table.table))
}

/// Requires SELECT on a table and on each of these columns, as `*` does: errors 1142, 1143.
pub fn check_all_of<'c>(
    session: &SessionState,
    table: &TableName,
    columns: impl IntoIterator<Item = &'c str>,
) -> SqlResult<()> {
    if session.access().on_table(&table.schema, &table.table).has(Privilege::Select) {
        return Ok(());
    }
    check_table(session, Privilege::Select, &table.schema, &table.table)?;
    columns.into_iter().try_for_each(|column| check_column(session, Privilege::Select, table, column))
}

/// Requires any privilege on a table as a whole: error 1142, which names the command.
pub(crate) fn check_any_on_whole(
    session: &SessionState,
    command: &str,
    schema: &str,
    table: &str,
) -> SqlResult<()> {
    let is_allowed =
        is_information_schema(schema) || session.access().on_table(schema, table).meets(Privileges::OF_TABLE);
    if is_allowed { Ok(()) } else { Err(session.table_access_denied(command, schema, table)) }
}

/// Requires any privilege on a table or one of its columns: error 1142, which names the command.
pub(crate) fn check_any_on_table(
    session: &SessionState,
    command: &str,
    schema: &str,
    table: &str,
) -> SqlResult<()> {
    let access = session.access();
    let is_allowed = is_information_schema(schema)
        || sees_table(&access, schema, table)
        || access.on_table(schema, table).has(Privilege::GrantOption);
    if is_allowed { Ok(()) } else { Err(session.table_access_denied(command, schema, table)) }
}

/// Returns whether the account may know that a table exists; decides what SHOW TABLES lists.
pub fn sees_table(access: &Access, schema: &str, table: &str) -> bool {
    let counts = Privileges::OF_TABLE.without(Privilege::GrantOption.into());
    let columns = access.granted_on_table(schema, table).map_or(Privileges::NONE, |g| g.on_any_column());
    access.on_table(schema, table).and(columns).meets(counts)
}

/// Returns whether the account may know that a schema exists; decides what SHOW DATABASES lists.
pub fn sees_schema(access: &Access, schema: &str) -> bool {
    access.everywhere().has(Privilege::ShowDatabases) || may_be_in(access, schema)
}

fn may_be_in(access: &Access, schema: &str) -> bool {
    is_information_schema(schema)
        || access.on_schema(schema).meets(Privileges::OF_SCHEMA)
        || access.has_table_in(schema)
        || access.has_routine_in(schema)
}

/// Checks that a schema may become the current database: error 1044.
pub fn may_enter(session: &SessionState, schema: &str) -> SqlResult<()> {
    let is_allowed = may_be_in(&session.access(), schema);
    if is_allowed { Ok(()) } else { Err(session.database_access_denied(schema)) }
}

/// Checks that the tables of a schema may be listed: error 1044. The list contains those that the account may
/// see.
pub(crate) fn may_list(session: &SessionState, schema: &str) -> SqlResult<()> {
    let access = session.access();
    let is_allowed = is_information_schema(schema)
        || !access.everywhere().is_empty()
        || !access.granted_on_schema(schema).without(Privilege::GrantOption.into()).is_empty()
        || access.has_table_in(schema);
    if is_allowed { Ok(()) } else { Err(session.database_access_denied(schema)) }
}

/// Checks that EXPLAIN may show how a view is read: error 1345.
pub fn check_view_shown(session: &SessionState, view: &View) -> SqlResult<()> {
    let may = |privilege: Privilege, schema: &str, table: &str| {
        check_table(session, privilege, schema, table).is_ok()
    };
    let tables = cohort_plan::named_tables(view)?;
    let is_open = may(Privilege::ShowView, &view.name.schema, &view.name.table)
        && tables.iter().filter(|(schema, ..)| !schema.is_empty()).all(|(schema, table, _)| {
            session.db.virtual_tables.has_schema(schema) || may(Privilege::Select, schema, table)
        });
    match is_open {
        true => Ok(()),
        false => Err(SqlError::view_not_explainable()),
    }
}
