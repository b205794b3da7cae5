//! What accounts hold, as SHOW GRANTS and information_schema list it.

use cohort_catalog::{Account, TableGrant, TableName};
use cohort_sql::ast::Account as Name;
use cohort_sql::print::quoted_name;
use cohort_types::{Privilege, Privileges, SqlResult};

use super::account::{identified_by, resolve};
use super::account_book::shown;
use super::account_rules::{GrantOption, require_and_limits};
use super::grant::nonexisting;
use crate::session_state::SessionState;

const ALL: &str = "ALL PRIVILEGES";

/// The lines of SHOW GRANTS; error 1141. Whether the session may see them has been checked.
pub(crate) fn grant_lines(session: &SessionState, name: Option<&Name>) -> SqlResult<(String, Vec<String>)> {
    let name = name.map_or_else(|| session.info.account.clone(), |name| resolve(session, name));
    let catalog = session.db.catalog();
    let account = catalog.accounts.get(&name).ok_or_else(|| nonexisting(&name))?;
    let (user, host) = &name;
    let to = format!("{}@{}", quoted_name(user), quoted_name(host));
    let line = |what: String, on: &str, held: Privileges| {
        let option = if held.has(Privilege::GrantOption) { " WITH GRANT OPTION" } else { "" };
        format!("GRANT {what} ON {on} TO {to}{option}")
    };
    let grants = &account.grants;
    let everything = names(grants.everything, Privileges::EVERY);
    let option = match grants.everything.has(Privilege::GrantOption) {
        true => GrantOption::Written,
        false => GrantOption::None,
    };
    let identified = identified_by(account);
    let rules = require_and_limits(&account.rules, option);
    let mut lines = vec![format!("GRANT {everything} ON *.* TO {to}{identified}{rules}")];
    for (schema, held) in &grants.schemas {
        let on = format!("{}.*", quoted_name(schema));
        lines.push(line(names(*held, Privileges::OF_SCHEMA), &on, *held));
    }
    for (TableName { schema, table }, grant) in &grants.tables {
        let on = format!("{}.{}", quoted_name(schema), quoted_name(table));
        lines.push(line(table_names(grant), &on, grant.table));
    }
    Ok((format!("Grants for {user}@{host}"), lines))
}

fn names(held: Privileges, object: Privileges) -> String {
    let option = Privilege::GrantOption.into();
    match held.without(option) {
        held if held.is_empty() => "USAGE".to_owned(),
        held if held.covers(object.without(option)) => ALL.to_owned(),
        held => held.to_string(),
    }
}

/// Privileges on the table and, in parentheses, on columns: `SELECT, INSERT (a, b)`.
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

/// One privilege of an account, as information_schema lists it.
pub(crate) struct Granted {
    /// `'user'@'host'`.
    pub(crate) grantee: String,
    pub(crate) on: GrantedOn,
    pub(crate) privilege: &'static str,
    /// YES or NO.
    pub(crate) is_grantable: &'static str,
}

/// What it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GrantedOn {
    Everything,
    Schema(String),
    Table(TableName),
    Column(TableName, String),
}

/// All privileges that the session may know of: those of all accounts for who may read the schema `mysql`.
pub(crate) fn grant_list(session: &SessionState) -> Vec<Granted> {
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
    add(&GrantedOn::Everything, grants.everything, grants.everything);
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
