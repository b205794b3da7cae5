//! FLUSH PRIVILEGES after a dump has replaced tables of the schema `mysql` ([decision 35]).
//!
//! The stored tables hold the accounts of the dump. They take effect in one commit, which also drops these
//! tables: no client ever finds a part of them, and a crash leaves the old accounts or the new ones.
//!
//! [decision 35]: ../../../docs/decisions/0035-dumps-replace-account-tables.md

use std::collections::BTreeMap;

use cohort_catalog::{Account, AccountName, CatalogChange, TableName};
use cohort_locks::{MetadataMode, ProgramKind};
use cohort_session::StatementContext;
use cohort_types::SqlResult;

use super::account_changes::AccountChanges;
use super::drop_table::lock_all;
use super::foreign;
use super::program::{lock_kind, lock_program};
use super::work::{LogText, commit};

/// Locks the stored tables for FLUSH PRIVILEGES: waits for clients that still fill them.
pub fn lock_replaced(ctx: &mut StatementContext<'_>, replaced: &[TableName]) -> SqlResult<()> {
    lock_all(ctx, replaced.iter())
}

/// Replaces all accounts, if the stored tables define any, creates routines and events, and drops the stored
/// tables. The caller has locked them. The statement is logged, because replicas have the tables, too.
pub fn take_over(
    ctx: &mut StatementContext<'_>,
    accounts: Option<BTreeMap<AccountName, Account>>,
    programs: Vec<CatalogChange>,
    replaced: &[TableName],
) -> SqlResult<()> {
    for program in &programs {
        let (kind, schema, name) = match program {
            CatalogChange::PutRoutine(it) => (lock_kind(it.kind), &it.schema, &it.name),
            CatalogChange::PutEvent(it) => (ProgramKind::Event, &it.schema, &it.name),
            _ => continue,
        };
        lock_program(ctx, kind, schema, name, MetadataMode::Exclusive)?;
    }
    let mut pending = AccountChanges::open_replaced(ctx)?;
    let catalog = std::sync::Arc::clone(&pending.catalog);
    if let Some(accounts) = accounts {
        catalog
            .accounts
            .keys()
            .filter(|name| !accounts.contains_key(*name))
            .for_each(|name| pending.remove(name.clone()));
        for (name, account) in accounts {
            if catalog.accounts.get(&name).is_none_or(|old| **old != account) {
                pending.put(account);
            }
        }
    }
    let mut changes = pending.close();
    changes.catalog.extend(programs);
    for name in replaced {
        if let Some(table) = catalog.table(&name.schema, &name.table) {
            foreign::check_droppable(ctx, table, &|_| false)?;
            changes.drop_table(ctx, table)?;
        }
    }
    commit(ctx, changes, LogText::AsWritten)
}
