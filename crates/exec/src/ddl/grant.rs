//! GRANT, REVOKE, and the lines of SHOW GRANTS.

use cohort_catalog::{Account, CatalogChange};
use cohort_sql::ast::{Account as Name, Grant, GrantLevel, Privilege, Revoke};
use cohort_sql::print::quoted_name;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use super::DdlOutcome;
use super::account::{authenticate, check_options, empty, find, hash_text, resolve};
use super::privilege::{account_of, check_privilege, has, no_such_account};
use super::work::{Changes, LogText, catalog, commit, not_supported};
use crate::session_state::SessionState;
use crate::statement::StatementContext;

const ALL: &str = "ALL PRIVILEGES";
const OPTION: &str = "GRANT OPTION";

/// Privileges that exist for schemas, in the order of SHOW GRANTS.
const SCHEMA: [&str; 20] = [
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "DROP",
    "REFERENCES",
    "INDEX",
    "ALTER",
    "CREATE TEMPORARY TABLES",
    "LOCK TABLES",
    "EXECUTE",
    "CREATE VIEW",
    "SHOW VIEW",
    "CREATE ROUTINE",
    "ALTER ROUTINE",
    "EVENT",
    "TRIGGER",
    "DELETE HISTORY",
    OPTION,
];

/// Privileges that exist for everything only.
const GLOBAL: [&str; 21] = [
    "RELOAD",
    "SHUTDOWN",
    "PROCESS",
    "FILE",
    "SHOW DATABASES",
    "SUPER",
    "REPLICATION SLAVE",
    "BINLOG MONITOR",
    "CREATE USER",
    "CREATE TABLESPACE",
    "SET USER",
    "FEDERATED ADMIN",
    "CONNECTION ADMIN",
    "READ_ONLY ADMIN",
    "REPLICATION SLAVE ADMIN",
    "REPLICATION MASTER ADMIN",
    "BINLOG ADMIN",
    "BINLOG REPLAY",
    "SLAVE MONITOR",
    "PROXY",
    "USAGE",
];

/// What a GRANT is on.
enum Place {
    Everything,
    Schema(String),
}

fn place(session: &SessionState, level: &GrantLevel) -> SqlResult<Place> {
    match level {
        GrantLevel::Global => Ok(Place::Everything),
        GrantLevel::Database(name) => {
            let current = session.current_schema.as_deref();
            let name = name.as_deref().or(current).ok_or_else(SqlError::no_database_selected)?;
            Ok(Place::Schema(name.to_owned()))
        }
        GrantLevel::Table(_) => Err(not_supported("privileges on tables")),
        GrantLevel::Routine { .. } => Err(not_supported("privileges on routines")),
        GrantLevel::Role => Err(not_supported("roles")),
        GrantLevel::Proxy(_) => Err(not_supported("GRANT PROXY")),
    }
}

fn names(privileges: &[Privilege], place: &Place) -> SqlResult<Vec<String>> {
    let mut names = Vec::new();
    for Privilege { name, columns } in privileges {
        if !columns.is_empty() {
            return Err(not_supported("privileges on columns"));
        }
        let name = match name.as_str() {
            "ALL" => ALL,
            "REPLICATION CLIENT" => "BINLOG MONITOR",
            "REPLICA MONITOR" => "SLAVE MONITOR",
            "REPLICATION REPLICA" => "REPLICATION SLAVE",
            other => other,
        };
        let known = name == ALL || SCHEMA.contains(&name) || GLOBAL.contains(&name);
        if !known {
            return Err(SqlError::wrong_usage("GRANT", name));
        }
        if matches!(place, Place::Schema(_)) && GLOBAL.contains(&name) && name != "USAGE" {
            return Err(SqlError::wrong_usage("DB GRANT", "GLOBAL PRIVILEGES"));
        }
        if name != "USAGE" && !names.iter().any(|n| n == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Nobody gives what he does not have.
fn check_giver(session: &SessionState, place: &Place, names: &[String]) -> SqlResult<()> {
    let schema = match place {
        Place::Everything => None,
        Place::Schema(name) => Some(name.as_str()),
    };
    let account = account_of(session).ok_or_else(no_such_account)?;
    let gives = |name: &String| has(&account, name, schema);
    if has(&account, OPTION, schema) && names.iter().all(gives) {
        return Ok(());
    }
    let (user, host) = &session.info.account;
    Err(match schema {
        Some(schema) => SqlError::database_access_denied(user, host, schema),
        None => SqlError::access_denied(user, host, if account.auth.is_empty() { "NO" } else { "YES" }),
    })
}

fn list<'a>(account: &'a mut Account, place: &Place) -> &'a mut Vec<String> {
    match place {
        Place::Everything => &mut account.privileges,
        Place::Schema(name) => account.schema_privileges.entry(name.clone()).or_default(),
    }
}

pub(super) fn grant(ctx: &mut StatementContext<'_>, grant: &Grant) -> SqlResult<DdlOutcome> {
    check_options(&grant.options)?;
    let place = place(ctx.session, &grant.level)?;
    let mut given = names(&grant.privileges, &place)?;
    if grant.grant_option {
        given.push(OPTION.to_owned());
    }
    check_giver(ctx.session, &place, &given)?;
    let catalog = catalog(ctx);
    let mut changes = Changes::default();
    for user in &grant.users {
        let name = resolve(ctx.session, &user.account);
        let known = find(&catalog, &name).cloned();
        let mut account = match (known, &user.authentication) {
            (Some(account), _) => account,
            (None, Some(_)) => {
                check_privilege(ctx.session, "CREATE USER", None, None)?;
                empty(&name)
            }
            (None, None) => return Err(no_such_account()),
        };
        if let Some(how) = &user.authentication {
            authenticate(&mut account, how)?;
        }
        let held = list(&mut account, &place);
        if given.iter().any(|p| p == ALL) {
            held.retain(|p| p == OPTION);
        }
        for privilege in &given {
            let has_all = held.iter().any(|p| p == ALL) && privilege != OPTION;
            if !has_all && !held.contains(privilege) {
                held.push(privilege.clone());
            }
        }
        account.schema_privileges.retain(|_, held| !held.is_empty());
        changes.catalog.push(CatalogChange::PutAccount(account));
    }
    commit(ctx, changes, LogText::AboutUsers)?;
    Ok(DdlOutcome::default())
}

pub(super) fn revoke(ctx: &mut StatementContext<'_>, revoke: &Revoke) -> SqlResult<DdlOutcome> {
    let place = place(ctx.session, &revoke.level)?;
    let taken = names(&revoke.privileges, &place)?;
    check_giver(ctx.session, &place, &taken)?;
    let takes_everything = revoke.level == GrantLevel::Global
        && taken.iter().any(|p| p == ALL)
        && taken.iter().any(|p| p == OPTION);
    let catalog = catalog(ctx);
    let mut changes = Changes::default();
    for name in &revoke.accounts {
        let name = resolve(ctx.session, name);
        let mut account = find(&catalog, &name).cloned().ok_or_else(|| nonexisting(&name))?;
        if let Place::Schema(schema) = &place
            && !account.schema_privileges.contains_key(schema)
        {
            return Err(nonexisting(&name));
        }
        take(list(&mut account, &place), &taken, &place);
        if takes_everything {
            account.schema_privileges.clear();
        }
        account.schema_privileges.retain(|_, held| !held.is_empty());
        changes.catalog.push(CatalogChange::PutAccount(account));
    }
    commit(ctx, changes, LogText::AboutUsers)?;
    Ok(DdlOutcome::default())
}

fn nonexisting((user, host): &(String, String)) -> SqlError {
    let text = format!("There is no such grant defined for user '{user}' on host '{host}'");
    SqlError::new(ErrorCode::NonexistingGrant, text)
}

fn take(held: &mut Vec<String>, taken: &[String], place: &Place) {
    if taken.iter().any(|p| p == ALL) {
        held.retain(|p| p == OPTION && !taken.contains(p));
        return;
    }
    // All but some has to be spelled out.
    if held.iter().any(|p| p == ALL) && taken.iter().any(|p| p != OPTION) {
        let option = held.iter().any(|p| p == OPTION);
        let global =
            GLOBAL.iter().filter(|p| matches!(place, Place::Everything) && !["USAGE", "PROXY"].contains(p));
        *held = SCHEMA.iter().filter(|p| **p != OPTION).chain(global).map(|p| (*p).to_owned()).collect();
        if option {
            held.push(OPTION.to_owned());
        }
    }
    held.retain(|p| !taken.contains(p));
}

/// The lines of SHOW GRANTS; error 1141. Others' grants need SELECT on the schema `mysql`.
pub(crate) fn grant_lines(session: &SessionState, name: Option<&Name>) -> SqlResult<(String, Vec<String>)> {
    let own = session.info.account.clone();
    let name = name.map_or_else(|| own.clone(), |name| resolve(session, name));
    if name != own {
        check_privilege(session, "SELECT", Some("mysql"), None)?;
    }
    let catalog = session.db.catalog();
    let account = find(&catalog, &name).ok_or_else(|| nonexisting(&name))?;
    let to = format!("{}@{}", quoted_name(&account.user), quoted_name(&account.host));
    let password = match hash_text(account) {
        hash if hash.is_empty() => String::new(),
        hash => format!(" IDENTIFIED BY PASSWORD '{hash}'"),
    };
    let mut lines = vec![line(&account.privileges, "*.*", &to, &password)];
    for (schema, held) in &account.schema_privileges {
        lines.push(line(held, &format!("{}.*", quoted_name(schema)), &to, ""));
    }
    Ok((format!("Grants for {}@{}", account.user, account.host), lines))
}

fn line(held: &[String], on: &str, to: &str, password: &str) -> String {
    let order = SCHEMA.iter().chain(&GLOBAL);
    let mut names: Vec<&str> =
        order.copied().filter(|p| *p != OPTION && held.iter().any(|h| h == p)).collect();
    if held.iter().any(|p| p == ALL) {
        names = vec![ALL];
    }
    if names.is_empty() {
        names.push("USAGE");
    }
    let option = if held.iter().any(|p| p == OPTION) { " WITH GRANT OPTION" } else { "" };
    format!("GRANT {} ON {on} TO {to}{password}{option}", names.join(", "))
}

/// One privilege of an account, as information_schema lists it.
pub(crate) struct Granted {
    /// `'user'@'host'`.
    pub(crate) grantee: String,
    /// None for everything.
    pub(crate) schema: Option<String>,
    pub(crate) privilege: &'static str,
    /// YES or NO.
    pub(crate) is_grantable: &'static str,
}

/// All privileges that the session may know of: those of all accounts for who may read the schema `mysql`.
pub(crate) fn grant_list(session: &SessionState) -> Vec<Granted> {
    let own = &session.info.account;
    let sees_all = check_privilege(session, "SELECT", Some("mysql"), None).is_ok();
    let mut all = Vec::new();
    for account in &session.db.catalog().accounts {
        if !sees_all && (&account.user, &account.host) != (&own.0, &own.1) {
            continue;
        }
        let grantee = format!("'{}'@'{}'", account.user, account.host);
        let schemas = account.schema_privileges.iter().map(|(name, held)| (Some(name), held));
        for (schema, held) in std::iter::once((None, &account.privileges)).chain(schemas) {
            let is_grantable = if held.iter().any(|p| p == OPTION) { "YES" } else { "NO" };
            let global = GLOBAL.iter().filter(|p| schema.is_none() && !["USAGE", "PROXY"].contains(p));
            let all_held = held.iter().any(|p| p == ALL);
            let has = |p: &&&'static str| **p != OPTION && (all_held || held.iter().any(|h| h == **p));
            let mut names: Vec<&'static str> = SCHEMA.iter().chain(global).filter(has).copied().collect();
            if names.is_empty() {
                names.push("USAGE");
            }
            all.extend(names.into_iter().map(|privilege| Granted {
                grantee: grantee.clone(),
                schema: schema.cloned(),
                privilege,
                is_grantable,
            }));
        }
    }
    all
}
