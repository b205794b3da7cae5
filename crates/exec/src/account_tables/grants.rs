//! The rows of the privilege tables as parts of an account: `db`, `tables_priv`, `columns_priv`,
//! `procs_priv`, `proxies_priv`, `roles_mapping`.

use cohort_catalog::{Account, AccountName, AdminOption, RoutineName, TableName};
use cohort_info::{privilege_of_column, privileges_of_words};
use cohort_types::{Privileges, RoutineKind};

use super::tables::{AccountTable, Row};

/// The meaning of the rows of a privilege table.
pub(super) struct GrantRows {
    pub(super) table: AccountTable,
    /// Returns whether the account has a row with the key of this one.
    pub(super) has: fn(&Account, &Row) -> bool,
    /// Adds a row to the account, in place of one with its key.
    pub(super) put: fn(&mut Account, &Row),
    /// Removes the row with the key of this one.
    pub(super) remove: fn(&mut Account, &Row),
}

impl GrantRows {
    /// Returns the meaning of a table's rows, `None` for the tables of accounts themselves.
    pub(super) fn of(table: AccountTable) -> Option<&'static GrantRows> {
        GRANTS.iter().find(|rows| rows.table == table)
    }
}

pub(super) static GRANTS: [GrantRows; 6] = [
    GrantRows {
        table: AccountTable::Db,
        has: |account, row| account.grants.schemas.contains_key(&row.text("Db")),
        put: |account, row| {
            let is_yes = |column: &&&str| row.text(column).eq_ignore_ascii_case("Y");
            let named = row.names.iter().filter(is_yes).filter_map(|column| privilege_of_column(column));
            account.grants.schemas.insert(row.text("Db"), named.fold(Privileges::NONE, Privileges::with));
        },
        remove: |account, row| {
            account.grants.schemas.remove(&row.text("Db"));
        },
    },
    GrantRows {
        table: AccountTable::TablesPriv,
        has: |account, row| account.grants.tables.contains_key(&table_of(row)),
        put: |account, row| {
            let grant = account.grants.tables.entry(table_of(row)).or_default();
            grant.table = privileges_of_words(&row.text("Table_priv"));
        },
        remove: |account, row| {
            account.grants.tables.entry(table_of(row)).or_default().table = Privileges::NONE;
        },
    },
    GrantRows {
        table: AccountTable::ColumnsPriv,
        has: |account, row| {
            let grant = account.grants.tables.get(&table_of(row));
            grant.is_some_and(|grant| grant.columns.contains_key(&row.text("Column_name")))
        },
        put: |account, row| {
            let grant = account.grants.tables.entry(table_of(row)).or_default();
            grant.columns.insert(row.text("Column_name"), privileges_of_words(&row.text("Column_priv")));
        },
        remove: |account, row| {
            account.grants.tables.entry(table_of(row)).or_default().columns.remove(&row.text("Column_name"));
        },
    },
    GrantRows {
        table: AccountTable::ProcsPriv,
        has: |account, row| {
            routine_of(row).is_some_and(|routine| account.grants.routines.contains_key(&routine))
        },
        put: |account, row| {
            if let Some(routine) = routine_of(row) {
                account.grants.routines.insert(routine, privileges_of_words(&row.text("Proc_priv")));
            }
        },
        remove: |account, row| {
            routine_of(row).map(|routine| account.grants.routines.remove(&routine));
        },
    },
    GrantRows {
        table: AccountTable::ProxiesPriv,
        has: |account, row| account.proxies.contains_key(&proxied(row)),
        put: |account, row| {
            account.proxies.insert(proxied(row), admin_option(&row.text("With_grant"), "1"));
        },
        remove: |account, row| {
            account.proxies.remove(&proxied(row));
        },
    },
    GrantRows {
        table: AccountTable::RolesMapping,
        has: |account, row| account.roles.contains_key(&row.text("Role")),
        put: |account, row| {
            account.roles.insert(row.text("Role"), admin_option(&row.text("Admin_option"), "Y"));
        },
        remove: |account, row| {
            account.roles.remove(&row.text("Role"));
        },
    },
];

/// Removes entries that grant nothing.
pub(super) fn drop_empty(account: &mut Account) {
    let grants = &mut account.grants;
    grants.schemas.retain(|_, held| !held.is_empty());
    grants.tables.values_mut().for_each(|grant| grant.columns.retain(|_, held| !held.is_empty()));
    grants.tables.retain(|_, grant| !grant.is_empty());
    grants.routines.retain(|_, held| !held.is_empty());
}

fn table_of(row: &Row) -> TableName {
    TableName { schema: row.text("Db"), table: row.text("Table_name") }
}

fn routine_of(row: &Row) -> Option<RoutineName> {
    let kinds = [RoutineKind::Procedure, RoutineKind::Function];
    let kind = kinds.into_iter().find(|kind| kind.name() == row.text("Routine_type"))?;
    Some(RoutineName::new(kind, &row.text("Db"), &row.text("Routine_name")))
}

/// Returns the account that may be impersonated. Without a user name the host has no meaning.
fn proxied(row: &Row) -> AccountName {
    match row.text("Proxied_user") {
        user if user.is_empty() => (user, "%".to_owned()),
        user => (user, row.text("Proxied_host")),
    }
}

fn admin_option(text: &str, yes: &str) -> AdminOption {
    if text == yes { AdminOption::With } else { AdminOption::Without }
}
