//! Translates a changed row of an account table into account statements.

use std::collections::{BTreeMap, BTreeSet};

use cohort_catalog::{
    Account, AccountName, AdminOption, Catalog, Lifetime, PUBLIC, RoutineName, TableGrant, TlsRequirement,
};
use cohort_sql::print::{quoted_name, quoted_text};
use cohort_types::{Privilege, Privileges, SqlError, SqlResult};

use super::grants::{GrantRows, drop_empty};
use super::tables::Row;

/// Returns the statement that removes the account of a row of `global_priv` or `user`.
pub(super) fn removal(catalog: &Catalog, row: &Row) -> Vec<String> {
    let name = row.account();
    let who = written(&name);
    match catalog.accounts.get(&name) {
        Some(account) if account.is_role => vec![format!("DROP ROLE {who}")],
        Some(_) => vec![format!("DROP USER {who}")],
        None => Vec::new(),
    }
}

/// Returns the statement that removes the program of a row of `proc` or `event`.
pub(super) fn program_removal(row: &Row) -> Vec<String> {
    let kind = match row.text("type") {
        event if event.is_empty() => "EVENT".to_owned(),
        kind => kind,
    };
    vec![format!("DROP {kind} {}.{}", quoted_name(&row.text("db")), quoted_name(&row.text("name")))]
}

/// Returns the statement for a row of `user` whose name changes.
pub(super) fn renaming(old: Option<&Row>, new: &Row) -> Vec<String> {
    let old = old.map(Row::account).filter(|name| *name != new.account());
    old.map(|name| format!("RENAME USER {} TO {}", at(&name), at(&new.account()))).into_iter().collect()
}

/// Returns the statements for a new or changed row of `global_priv`.
pub(super) fn new_account_row(
    catalog: &Catalog,
    old: Option<&Row>,
    wanted: &Account,
) -> SqlResult<Vec<String>> {
    let who = written(&wanted.name);
    let mut list = Vec::new();
    let renamed = old.map(Row::account).filter(|name| *name != wanted.name);
    if let Some(name) = &renamed {
        list.push(format!("RENAME USER {} TO {who}", at(name)));
    }
    let before = match old {
        Some(row) => catalog.accounts.get(&row.account()).map(|account| Account::clone(account)),
        None if catalog.accounts.contains_key(&wanted.name) => {
            return Err(duplicate(&format!("{}-{}", wanted.name.1, wanted.name.0)));
        }
        None => Some(Account { is_role: wanted.is_role, ..Account::new(wanted.name.clone()) }),
    };
    let Some(before) = before else { return Ok(list) };
    if before.is_role != wanted.is_role || (before.is_role && renamed.is_some()) {
        return Err(SqlError::not_supported("making roles of users, and other names of roles"));
    }
    if wanted.is_role && old.is_none() {
        list.push(format!("CREATE ROLE {who}"));
    }
    if !wanted.is_role {
        // One atomic statement: a new account must never exist without its password and its limits.
        let clauses = alteration(&before, wanted);
        match old {
            None => list.push(format!("CREATE USER {who}{clauses}")),
            Some(_) if !clauses.is_empty() => list.push(format!("ALTER USER {who}{clauses}")),
            Some(_) => {}
        }
        if before.default_role != wanted.default_role {
            let role = match wanted.default_role.as_str() {
                "" => "NONE".to_owned(),
                role => quoted_name(role),
            };
            list.push(format!("SET DEFAULT ROLE {role} FOR {who}"));
        }
    }
    list.extend(changed(before.grants.everything, wanted.grants.everything, "*.*", &who));
    Ok(list)
}

/// Returns the statements for a row of a privilege table that is added, changed or removed. Error 1062 if
/// another row has its key.
pub(super) fn changed_grants(
    catalog: &Catalog,
    rows: &GrantRows,
    old: Option<&Row>,
    new: Option<&Row>,
) -> SqlResult<Vec<String>> {
    let mut list = Vec::new();
    let names: BTreeSet<AccountName> = old.into_iter().chain(new).map(Row::account).collect();
    for name in names {
        let found = catalog.accounts.get(&name).map(|account| Account::clone(account));
        // GRANT to an account that does not exist returns the error.
        let before = found.unwrap_or_else(|| Account::new(name.clone()));
        let mut after = before.clone();
        if let Some(old) = old.filter(|row| row.account() == name) {
            (rows.remove)(&mut after, old);
            drop_empty(&mut after);
        }
        if let Some(new) = new.filter(|row| row.account() == name) {
            if (rows.has)(&after, new) {
                return Err(duplicate(&format!("{}-{}-{}", name.1, new.text("Db"), name.0)));
            }
            (rows.put)(&mut after, new);
        }
        list.extend(differences(&before, &after));
    }
    Ok(list)
}

/// Returns the statements that change the privileges, proxies and roles of an account.
fn differences(before: &Account, after: &Account) -> Vec<String> {
    let who = written(&after.name);
    let mut list = Vec::new();
    let (old, new) = (&before.grants, &after.grants);
    for schema in keys(&old.schemas, &new.schemas) {
        let (old, new) = (held(&old.schemas, schema), held(&new.schemas, schema));
        list.extend(changed(old, new, &on_schema(schema), &who));
    }
    for table in keys(&old.tables, &new.tables) {
        let on = format!("{}.{}", quoted_name(&table.schema), quoted_name(&table.table));
        let none = TableGrant::default();
        let (old, new) = (old.tables.get(table).unwrap_or(&none), new.tables.get(table).unwrap_or(&none));
        list.extend(changed(old.table, new.table, &on, &who));
        for column in keys(&old.columns, &new.columns) {
            let (old, new) = (held(&old.columns, column), held(&new.columns, column));
            let words = |held: Privileges| {
                let word = |privilege: Privilege| format!("{} ({})", privilege.name(), quoted_name(column));
                held.iter().map(word).collect::<Vec<_>>().join(", ")
            };
            let (taken, given) = (old.without(new), new.without(old));
            if !taken.is_empty() {
                list.push(format!("REVOKE {} ON {on} FROM {who}", words(taken)));
            }
            if !given.is_empty() {
                list.push(format!("GRANT {} ON {on} TO {who}", words(given)));
            }
        }
    }
    for routine in keys(&old.routines, &new.routines) {
        let RoutineName { kind, schema, name } = routine;
        let on = format!("{} {}.{}", kind.name(), quoted_name(schema), quoted_name(name));
        list.extend(changed(held(&old.routines, routine), held(&new.routines, routine), &on, &who));
    }
    options(&mut list, (&before.proxies, &after.proxies), &who, |proxied| {
        (format!("PROXY ON {}", at(proxied)), "GRANT")
    });
    options(&mut list, (&before.roles, &after.roles), &who, |role| (quoted_name(role), "ADMIN"));
    list
}

/// Adds the statements that change what an account holds with or without an option.
fn options<K: Ord>(
    list: &mut Vec<String>,
    (before, after): (&BTreeMap<K, AdminOption>, &BTreeMap<K, AdminOption>),
    who: &str,
    text: impl Fn(&K) -> (String, &'static str),
) {
    for key in keys(before, after) {
        let (old, new) = (before.get(key), after.get(key));
        let (what, option) = text(key);
        if old.is_some() && old != new {
            list.push(format!("REVOKE {what} FROM {who}"));
        }
        if let Some(new) = new.filter(|_| old != new) {
            let with =
                if *new == AdminOption::With { format!(" WITH {option} OPTION") } else { String::new() };
            list.push(format!("GRANT {what} TO {who}{with}"));
        }
    }
}

/// Returns the keys of both maps in order.
fn keys<'m, K: Ord, V>(one: &'m BTreeMap<K, V>, other: &'m BTreeMap<K, V>) -> BTreeSet<&'m K> {
    one.keys().chain(other.keys()).collect()
}

fn held<K: Ord>(of: &BTreeMap<K, Privileges>, key: &K) -> Privileges {
    of.get(key).copied().unwrap_or_default()
}

/// Returns the CREATE USER or ALTER USER clauses for all differences, each with a leading space.
fn alteration(before: &Account, wanted: &Account) -> String {
    let mut clauses = String::new();
    if before.methods != wanted.methods {
        let method = |method: &cohort_catalog::AuthMethod| match method.text.as_str() {
            "" => quoted_name(&method.plugin),
            text => format!("{} USING {}", quoted_name(&method.plugin), quoted_text(text)),
        };
        let methods: Vec<String> = wanted.methods.iter().map(method).collect();
        clauses += &format!(" IDENTIFIED VIA {}", methods.join(" OR "));
    }
    let (old, new) = (&before.rules, &wanted.rules);
    if old.tls != new.tls {
        clauses += " REQUIRE ";
        clauses += &match &new.tls {
            TlsRequirement::None => "NONE".to_owned(),
            TlsRequirement::Encrypted => "SSL".to_owned(),
            TlsRequirement::Certificate => "X509".to_owned(),
            TlsRequirement::Specified { cipher, issuer, subject } => {
                let part = |(word, text): (&str, &String)| format!("{word} {}", quoted_text(text));
                let parts = [("CIPHER", cipher), ("ISSUER", issuer), ("SUBJECT", subject)];
                let given = parts.into_iter().filter(|(_, text)| !text.is_empty());
                given.map(part).collect::<Vec<_>>().join(" AND ")
            }
        };
    }
    if old.limits != new.limits {
        let it = &new.limits;
        clauses += &format!(
            " WITH MAX_QUERIES_PER_HOUR {} MAX_UPDATES_PER_HOUR {} MAX_CONNECTIONS_PER_HOUR {} MAX_USER_CONNECTIONS \
             {} MAX_STATEMENT_TIME {:.6}",
            it.queries_per_hour,
            it.updates_per_hour,
            it.connections_per_hour,
            it.user_connections,
            it.statement_time_us as f64 / 1e6
        );
    }
    if old.is_locked != new.is_locked {
        clauses += if new.is_locked { " ACCOUNT LOCK" } else { " ACCOUNT UNLOCK" };
    }
    if new.password_changed_at == 0 && old.password_changed_at != 0 {
        clauses += " PASSWORD EXPIRE";
    } else if old.lifetime != new.lifetime {
        clauses += &match new.lifetime {
            Lifetime::Default => " PASSWORD EXPIRE DEFAULT".to_owned(),
            Lifetime::Never => " PASSWORD EXPIRE NEVER".to_owned(),
            Lifetime::Days(days) => format!(" PASSWORD EXPIRE INTERVAL {days} DAY"),
        };
    }
    clauses
}

/// Returns the statements that change one set of privileges into another.
fn changed(before: Privileges, wanted: Privileges, on: &str, who: &str) -> Vec<String> {
    let mut list = revoked(before.without(wanted), on, who);
    let given = wanted.without(before);
    if !given.is_empty() {
        let plain = given.without(Privilege::GrantOption.into());
        let what = if plain.is_empty() { "USAGE".to_owned() } else { plain.to_string() };
        let option = if given.has(Privilege::GrantOption) { " WITH GRANT OPTION" } else { "" };
        list.push(format!("GRANT {what} ON {on} TO {who}{option}"));
    }
    list
}

fn revoked(held: Privileges, on: &str, who: &str) -> Vec<String> {
    if held.is_empty() { Vec::new() } else { vec![format!("REVOKE {held} ON {on} FROM {who}")] }
}

fn on_schema(name: &str) -> String {
    format!("{}.*", quoted_name(name))
}

/// Returns the account name in quotes that every SQL mode parses in the same way.
fn at((user, host): &AccountName) -> String {
    format!("{}@{}", quoted_name(user), quoted_name(host))
}

/// Returns a user with its host, a role without.
fn written(name: &AccountName) -> String {
    match name.1.is_empty() {
        true if name.0 == PUBLIC => PUBLIC.to_owned(),
        true if !name.0.is_empty() => quoted_name(&name.0),
        _ => at(name),
    }
}

fn duplicate(entry: &str) -> SqlError {
    SqlError::dup_entry(entry.as_bytes(), "PRIMARY")
}
