//! Granted privileges, as listed by SHOW GRANTS and information_schema.

use std::sync::Arc;

use cohort_catalog::{Account, AccountName, AdminOption, PUBLIC, RoutineName, TableGrant, TableName};
use cohort_session::SessionState;
use cohort_session::access::roles_of;
use cohort_sql::ast::Account as Name;
use cohort_sql::print::quoted_name;
use cohort_types::{Privilege, Privileges, SqlError, SqlResult};

use super::account::{identified_by, resolve};
use super::account_changes::shown;
use super::account_rules::{GrantOption, require_and_limits};
use super::grantee::nonexisting;

const ALL: &str = "ALL PRIVILEGES";

/// Returns the lines of SHOW GRANTS; error 1141. The caller has checked that the session may see them.
pub fn grant_lines(session: &SessionState, name: Option<&Name>) -> SqlResult<(String, Vec<String>)> {
    let catalog = session.db.catalog();
    let own = || session.info.account.clone();
    let role_name = |role: &str| (role.to_owned(), String::new());
    let is_role = |role: &str| catalog.accounts.contains_key(&role_name(role));
    let is_own = name.is_none();
    let name = match name {
        None => own(),
        Some(Name::CurrentRole) => match &session.identity.role {
            Some(role) => role_name(role),
            None => return Err(nonexisting(&own())),
        },
        Some(Name::NameAlone(alone)) if alone.eq_ignore_ascii_case(PUBLIC) => role_name(PUBLIC),
        Some(Name::NameAlone(alone)) if alone.eq_ignore_ascii_case("NONE") => {
            return Err(SqlError::invalid_role(alone));
        }
        Some(Name::NameAlone(alone)) if is_role(alone) => role_name(alone),
        Some(name) => resolve(session, name),
    };
    let account = match catalog.accounts.get(&name) {
        Some(account) => Arc::clone(account),
        None if name == role_name(PUBLIC) => Arc::new(Account::public()),
        None => return Err(nonexisting(&name)),
    };
    let account = &account;
    let mut lines = account_lines(account);
    for (proxied, option) in &account.proxies {
        let option = if *option == AdminOption::With { " WITH GRANT OPTION" } else { "" };
        lines.push(format!("GRANT PROXY ON {} TO {}{option}", account_name(proxied), written(&name)));
    }
    // For a role, include the roles granted to it; for the own account, the active role.
    let roles = match () {
        () if account.is_role => roles_of(&catalog, Some(&name.0)).into_iter().skip(1).collect(),
        () if name == session.info.account => roles_of(&catalog, session.identity.role.as_deref()),
        () => Vec::new(),
    };
    roles.iter().for_each(|role| lines.extend(account_lines(role)));
    if !account.default_role.is_empty() {
        lines.push(format!("SET DEFAULT ROLE {} FOR {}", quoted_name(&account.default_role), written(&name)));
    }
    if is_own {
        let of_all = roles_of(&catalog, Some(PUBLIC));
        of_all.iter().for_each(|role| lines.extend(account_lines(role)));
    }
    let (user, host) = &name;
    let title = if account.is_role { user.clone() } else { format!("{user}@{host}") };
    Ok((format!("Grants for {title}"), lines))
}

/// Formats "`user`@`host`".
fn account_name((user, host): &AccountName) -> String {
    format!("{}@{}", quoted_name(user), quoted_name(host))
}

/// Formats "`user`@`host`" or "`role`".
fn written((user, host): &AccountName) -> String {
    match host.is_empty() {
        true if user == PUBLIC => PUBLIC.to_owned(),
        true => quoted_name(user),
        false => account_name(&(user.clone(), host.clone())),
    }
}

/// Returns the grants of one account, without those of its roles.
fn account_lines(account: &Account) -> Vec<String> {
    let to = written(&account.name);
    let line = |what: String, on: &str, held: Privileges| {
        let option = if held.has(Privilege::GrantOption) { " WITH GRANT OPTION" } else { "" };
        format!("GRANT {what} ON {on} TO {to}{option}")
    };
    let grants = &account.grants;
    let own = grants.everything.within(Privileges::UNKNOWN_TO_MARIADB);
    let is_all = names(grants.everything, Privileges::EVERY) == ALL;
    let everything = match is_all {
        true => ALL.to_owned(),
        false => names(grants.everything.without(own), Privileges::EVERY),
    };
    let option = match grants.everything.has(Privilege::GrantOption) {
        true => GrantOption::Written,
        false => GrantOption::None,
    };
    let identified = identified_by(account);
    let rules = require_and_limits(&account.rules, option);
    let role = |(role, admin): (&String, &AdminOption)| {
        let option = if *admin == AdminOption::With { " WITH ADMIN OPTION" } else { "" };
        format!("GRANT {} TO {to}{option}", quoted_name(role))
    };
    let mut lines: Vec<String> = account.roles.iter().map(role).collect();
    if !(account.is_public() && grants.everything.is_empty()) {
        lines.push(format!("GRANT {everything} ON *.* TO {to}{identified}{rules}"));
    }
    if !is_all && !own.is_empty() {
        // Statements of a dump, which MariaDB skips.
        lines.push(cohort_sql::only_here(&format!("GRANT {own} ON *.* TO {to}")));
    }
    for (schema, held) in &grants.schemas {
        let on = format!("{}.*", quoted_name(schema));
        lines.push(line(names(*held, Privileges::OF_SCHEMA), &on, *held));
    }
    for (TableName { schema, table }, grant) in &grants.tables {
        let on = format!("{}.{}", quoted_name(schema), quoted_name(table));
        lines.push(line(table_names(grant), &on, grant.table));
    }
    for (RoutineName { kind, schema, name }, held) in &grants.routines {
        let on = format!("{} {}.{}", kind.name(), quoted_name(schema), quoted_name(name));
        // ALL PRIVILEGES is not used for routines.
        lines.push(line(names(*held, Privileges::EVERY), &on, *held));
    }
    lines
}

fn names(held: Privileges, object: Privileges) -> String {
    let option = Privilege::GrantOption.into();
    match held.without(option) {
        held if held.is_empty() => "USAGE".to_owned(),
        held if held.covers(object.without(option)) => ALL.to_owned(),
        held => held.to_string(),
    }
}

/// Formats the privileges on a table and, in parentheses, on columns: `SELECT, INSERT (a, b)`.
fn table_names(grant: &TableGrant) -> String {
    let on_table = names(grant.table, Privileges::OF_TABLE);
    if on_table == ALL || grant.columns.is_empty() {
        return on_table;
    }
    let mut list = Vec::new();
    for privilege in Privileges::OF_TABLE.without(Privilege::GrantOption.into()).iter() {
        if grant.table.has(privilege) {
            list.push(privilege.name().to_owned());
        }
        let columns = grant.columns.iter().filter(|(_, held)| held.has(privilege));
        let columns: Vec<String> = columns.map(|(column, _)| quoted_name(column)).collect();
        if !columns.is_empty() {
            list.push(format!("{} ({})", privilege.name(), columns.join(", ")));
        }
    }
    list.join(", ")
}

/// One privilege of an account, as listed by information_schema.
pub struct Granted {
    /// `'user'@'host'`.
    pub grantee: String,
    pub on: GrantedOn,
    pub privilege: &'static str,
    /// YES or NO.
    pub is_grantable: &'static str,
}

/// The object of a privilege.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantedOn {
    Everything,
    Schema(String),
    Table(TableName),
    Column(TableName, String),
}

/// Returns all privileges that the session may see: those of all accounts if it may read the schema `mysql`,
/// else its own.
pub fn grant_list(session: &SessionState) -> Vec<Granted> {
    let sees_all = session.access().on_schema("mysql").has(Privilege::Select);
    let catalog = session.db.catalog();
    let mut all = Vec::new();
    for account in catalog.accounts.values() {
        if sees_all || account.name == session.info.account {
            list_account(account, &mut all);
        }
    }
    all
}

fn list_account(account: &Account, all: &mut Vec<Granted>) {
    let grantee = shown(&account.name);
    let mut add = |on: &GrantedOn, held: Privileges, option: Privileges| {
        let is_grantable = if option.has(Privilege::GrantOption) { "YES" } else { "NO" };
        let one = |privilege| Granted { grantee: grantee.clone(), on: on.clone(), privilege, is_grantable };
        let shown = held.without(Privilege::GrantOption.into());
        match shown.is_empty() {
            true => all.push(one("USAGE")),
            false => all.extend(shown.iter().map(|privilege| one(privilege.name()))),
        }
    };
    let grants = &account.grants;
    // As in MariaDB, only users are listed here.
    if !account.is_role {
        add(&GrantedOn::Everything, grants.everything, grants.everything);
    }
    for (schema, held) in &grants.schemas {
        add(&GrantedOn::Schema(schema.clone()), *held, *held);
    }
    for (name, grant) in &grants.tables {
        if !grant.table.is_empty() {
            add(&GrantedOn::Table(name.clone()), grant.table, grant.table);
        }
        for (column, held) in &grant.columns {
            add(&GrantedOn::Column(name.clone(), column.clone()), *held, grant.table);
        }
    }
}
