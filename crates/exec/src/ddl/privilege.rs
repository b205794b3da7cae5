//! May the session do that?
//!
//! Privileges are kept per account, for everything and per schema (whose name may be a pattern with `%` and
//! `_`).

use cohort_catalog::{Account, Catalog, Table, TableName};
use cohort_sql::ast::{Show, Statement};
use cohort_types::{Collation, ErrorCode, SqlError, SqlResult};

use crate::session_state::SessionState;

/// The account that let the session in, as it is now.
pub(super) fn account_of(session: &SessionState) -> Option<Account> {
    let (user, host) = &session.info.account;
    let catalog = session.db.catalog();
    catalog.accounts.iter().find(|a| a.user == *user && a.host == *host).cloned()
}

fn grants(list: &[String], privilege: &str) -> bool {
    let all = privilege != "GRANT OPTION" && list.iter().any(|p| p == "ALL PRIVILEGES");
    all || list.iter().any(|p| p == privilege)
}

fn matches(pattern: &str, schema: &str) -> bool {
    pattern == schema || Collation::UTF8MB4_BIN.like(schema.as_bytes(), pattern.as_bytes(), Some('\\'))
}

/// Whether an account has a privilege everywhere, or in the schema.
pub(super) fn has(account: &Account, privilege: &str, schema: Option<&str>) -> bool {
    let in_schema = |(pattern, list): (&String, &Vec<String>)| {
        schema.is_some_and(|schema| matches(pattern, schema)) && grants(list, privilege)
    };
    grants(&account.privileges, privilege) || account.schema_privileges.iter().any(in_schema)
}

/// Whether the session may know that a schema exists.
pub(crate) fn has_schema_privilege(session: &SessionState, schema: &str) -> bool {
    if schema.eq_ignore_ascii_case("information_schema") {
        return true;
    }
    let Some(account) = account_of(session) else { return false };
    !account.privileges.is_empty() && account.privileges.iter().any(|p| p != "USAGE")
        || account.schema_privileges.keys().any(|pattern| matches(pattern, schema))
}

/// Checks one privilege; `table` for what happens to a table. Errors 1142, 1044, 1227.
pub(crate) fn check_privilege(
    session: &SessionState,
    privilege: &str,
    schema: Option<&str>,
    table: Option<&str>,
) -> SqlResult<()> {
    if schema.is_some_and(|s| s.eq_ignore_ascii_case("information_schema")) {
        return Ok(());
    }
    if account_of(session).is_some_and(|account| has(&account, privilege, schema)) {
        return Ok(());
    }
    let (user, host) = &session.info.account;
    Err(match (schema, table) {
        (Some(schema), Some(table)) => SqlError::table_access_denied(privilege, user, host, schema, table),
        (Some(schema), None) => SqlError::database_access_denied(user, host, schema),
        _ => SqlError::privilege_needed(privilege),
    })
}

/// Checks what a query or data change does to a table: `SELECT`, `INSERT`, `UPDATE`, `DELETE`; error 1142.
/// Every statement comes here: an account that may do all is remembered.
pub(crate) fn check_access(
    session: &SessionState,
    catalog: &Catalog,
    privilege: &str,
    table: &Table,
) -> SqlResult<()> {
    if session.all_privileges_at.get() == catalog.version {
        return Ok(());
    }
    let (user, host) = &session.info.account;
    let account = catalog.accounts.iter().find(|a| a.user == *user && a.host == *host);
    let TableName { schema, table } = &table.name;
    match account {
        Some(account) if account.privileges.iter().any(|p| p == "ALL PRIVILEGES") => {
            session.all_privileges_at.set(catalog.version);
            Ok(())
        }
        Some(account) if has(account, privilege, Some(schema)) => Ok(()),
        _ => Err(SqlError::table_access_denied(privilege, user, host, schema, table)),
    }
}

/// Checks a statement that is neither a query nor a data change.
pub(crate) fn check_statement(session: &SessionState, statement: &Statement) -> SqlResult<()> {
    let current = session.current_schema.as_deref();
    let global = |privilege| check_privilege(session, privilege, None, None);
    let schema = |privilege, name: &str| check_privilege(session, privilege, Some(name), None);
    let table = |privilege, name: &cohort_sql::ast::ObjectName| {
        // Without a current database the statement says so itself.
        match name.db.as_deref().or(current) {
            Some(db) => check_privilege(session, privilege, Some(db), Some(&name.name)),
            None => Ok(()),
        }
    };
    match statement {
        Statement::CreateDatabase(create) => schema("CREATE", &create.name),
        Statement::AlterDatabase(alter) => {
            alter.name.as_deref().or(current).map_or(Ok(()), |n| schema("ALTER", n))
        }
        Statement::DropDatabase(drop) => schema("DROP", &drop.name),
        Statement::CreateTable(create) => {
            create.like.iter().try_for_each(|other| table("SELECT", other))?;
            table("CREATE", &create.name)
        }
        Statement::AlterTable(alter) => table("ALTER", &alter.table),
        Statement::DropTable(drop) => drop.names.iter().try_for_each(|name| table("DROP", name)),
        Statement::RenameTable(rename) => rename.renames.iter().try_for_each(|(from, to)| {
            table("ALTER", from)?;
            table("DROP", from)?;
            table("CREATE", to)?;
            table("INSERT", to)
        }),
        Statement::Truncate(name) => table("DROP", name),
        Statement::CreateIndex(create) => table("INDEX", &create.table),
        Statement::DropIndex(drop) => table("INDEX", &drop.table),
        Statement::CreateUser(_) | Statement::AlterUser(_) | Statement::RenameUser(_) => {
            global("CREATE USER")
        }
        Statement::DropUser { .. } => global("CREATE USER"),
        Statement::Flush(_) | Statement::ResetMaster => global("RELOAD"),
        Statement::PurgeBinaryLogs(_) => global("BINLOG ADMIN"),
        Statement::Shutdown => global("SHUTDOWN"),
        Statement::Binlog(_) => global("BINLOG REPLAY"),
        Statement::Show(show) => match &**show {
            Show::BinaryLogs | Show::MasterStatus => global("BINLOG MONITOR"),
            Show::BinlogEvents { .. } => global("BINLOG MONITOR"),
            Show::SlaveStatus { .. } => global("SLAVE MONITOR"),
            Show::SlaveHosts => global("REPLICATION MASTER ADMIN"),
            Show::Engine { .. } => global("PROCESS"),
            Show::Columns { table: name, .. } | Show::Index { table: name, .. } | Show::CreateTable(name) => {
                table("SELECT", name)
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The error of an account that is not there.
pub(super) fn no_such_account() -> SqlError {
    SqlError::new(ErrorCode::PasswordNoMatch, "Can't find any matching row in the user table")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_privileges_may_be_patterns() {
        let account = Account {
            user: "u".to_owned(),
            host: "%".to_owned(),
            plugin: "mysql_native_password".to_owned(),
            auth: Vec::new(),
            privileges: Vec::new(),
            schema_privileges: [("app\\_%".to_owned(), vec!["SELECT".to_owned()])].into(),
        };
        assert!(has(&account, "SELECT", Some("app_one")));
        assert!(!has(&account, "SELECT", Some("appone")));
        assert!(!has(&account, "INSERT", Some("app_one")));
        assert!(!has(&account, "SELECT", None));
        let root = Account { privileges: vec!["ALL PRIVILEGES".to_owned()], ..account };
        assert!(has(&root, "DROP", Some("x")) && !has(&root, "GRANT OPTION", None));
    }
}
