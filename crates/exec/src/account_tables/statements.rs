//! Translates a changed row of an account table into account statements.

use cohort_catalog::{Account, AccountName, Catalog, Lifetime, PUBLIC, TableName, TlsRequirement};
use cohort_info::privilege_of_column;
use cohort_sql::print::{quoted_name, quoted_text};
use cohort_types::{Privilege, Privileges, SqlError, SqlResult};

use super::{AccountTable, Row};

/// Returns the statements that remove a row.
pub(super) fn removal(catalog: &Catalog, table: AccountTable, row: &Row) -> Vec<String> {
    let name = row.account();
    let Some(account) = catalog.accounts.get(&name) else { return Vec::new() };
    let who = written(&name);
    match table {
        AccountTable::GlobalPriv | AccountTable::User if account.is_role => vec![format!("DROP ROLE {who}")],
        AccountTable::GlobalPriv | AccountTable::User => vec![format!("DROP USER {who}")],
        AccountTable::Db => {
            let schema = row.text("Db");
            let held = account.grants.schemas.get(&schema).copied().unwrap_or_default();
            revoked(held, &on_schema(&schema), &who)
        }
        AccountTable::TablesPriv | AccountTable::ColumnsPriv => {
            let name = TableName { schema: row.text("Db"), table: row.text("Table_name") };
            let Some(grant) = account.grants.tables.get(&name) else { return Vec::new() };
            let on = format!("{}.{}", quoted_name(&name.schema), quoted_name(&name.table));
            if table == AccountTable::TablesPriv {
                return revoked(grant.table, &on, &who);
            }
            let column = row.text("Column_name");
            let held = grant.columns.get(&column).copied().unwrap_or_default();
            let of_column = |privilege: Privilege| format!("{} ({})", privilege.name(), quoted_name(&column));
            let list: Vec<String> = held.iter().map(of_column).collect();
            let text = format!("REVOKE {} ON {on} FROM {who}", list.join(", "));
            if list.is_empty() { Vec::new() } else { vec![text] }
        }
        AccountTable::RolesMapping => vec![format!("REVOKE {} FROM {who}", quoted_name(&row.text("Role")))],
        AccountTable::ProxiesPriv => {
            let proxied = (row.text("Proxied_user"), row.text("Proxied_host"));
            vec![format!("REVOKE PROXY ON {} FROM {who}", at(&proxied))]
        }
    }
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

/// Returns the statements for a new or changed row of `db`.
pub(super) fn new_schema_row(catalog: &Catalog, old: Option<&Row>, new: &Row) -> SqlResult<Vec<String>> {
    let place = |row: &Row| (row.account(), row.text("Db"));
    let held = |(name, schema): &(AccountName, String)| {
        catalog.accounts.get(name).and_then(|account| account.grants.schemas.get(schema)).copied()
    };
    let ((name, schema), mut list) = (place(new), Vec::new());
    let mut before = held(&(name.clone(), schema.clone())).unwrap_or_default();
    match old {
        None if !before.is_empty() => {
            return Err(duplicate(&format!("{}-{schema}-{}", name.1, name.0)));
        }
        Some(old) if place(old) != place(new) => {
            list.extend(removal(catalog, AccountTable::Db, old));
            before = Privileges::NONE;
        }
        _ => {}
    }
    let is_yes = |column: &&&str| new.text(column).eq_ignore_ascii_case("Y");
    let named = new.names.iter().filter(is_yes).filter_map(|column| privilege_of_column(column));
    let wanted = named.fold(Privileges::NONE, Privileges::with);
    list.extend(changed(before, wanted, &on_schema(&schema), &written(&name)));
    Ok(list)
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
