//! The pending account changes of a statement.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohort_catalog::{Account, AccountName, Catalog, CatalogChange};
use cohort_locks::{MetadataKey, MetadataMode};
use cohort_session::StatementContext;
use cohort_session::access::ACCOUNT_TABLES;
use cohort_types::{SqlError, SqlResult};

use super::work::Changes;

/// The catalog's accounts with the changes of one statement. Statements about accounts are serialized:
/// opening takes the exclusive lock of all accounts, which is held until the changes are published.
pub(super) struct AccountChanges {
    pub(super) catalog: Arc<Catalog>,
    /// `None` for a dropped account.
    changed: BTreeMap<AccountName, Option<Account>>,
}

impl AccountChanges {
    /// Waits for the lock, then reads the accounts. While tables of accounts are replaced, a change would be
    /// lost with FLUSH PRIVILEGES: error 1105.
    pub(super) fn open(ctx: &mut StatementContext<'_>) -> SqlResult<AccountChanges> {
        let pending = AccountChanges::open_replaced(ctx)?;
        match ACCOUNT_TABLES.iter().find(|name| pending.catalog.table("mysql", name).is_some()) {
            Some(name) => Err(SqlError::accounts_replaced(name)),
            None => Ok(pending),
        }
    }

    /// Does the work of [`AccountChanges::open`], also while tables of accounts are replaced.
    pub(super) fn open_replaced(ctx: &mut StatementContext<'_>) -> SqlResult<AccountChanges> {
        super::work::lock_definitions(ctx)?;
        ctx.trx.lock_metadata(&MetadataKey::Accounts, MetadataMode::Exclusive)?;
        Ok(AccountChanges { catalog: ctx.db.catalog(), changed: BTreeMap::new() })
    }

    /// Returns an account with the changes made so far. PUBLIC always exists.
    pub(super) fn find(&self, name: &AccountName) -> Option<Account> {
        let found = match self.changed.get(name) {
            Some(changed) => changed.clone(),
            None => self.catalog.accounts.get(name).map(|account| Account::clone(account)),
        };
        found.or_else(|| Some(Account::public()).filter(|public| public.name == *name))
    }

    pub(super) fn put(&mut self, account: Account) {
        self.changed.insert(account.name.clone(), Some(account));
    }

    pub(super) fn remove(&mut self, name: AccountName) {
        self.changed.insert(name, None);
    }

    /// Returns the changes.
    pub(super) fn close(self) -> Changes {
        let change = |(name, account): (AccountName, Option<Account>)| match account {
            Some(account) => CatalogChange::PutAccount(account),
            None => CatalogChange::DropAccount(name),
        };
        let mut changes = Changes::default();
        changes.catalog.extend(self.changed.into_iter().map(change));
        changes
    }
}

/// Formats `'user'@'host'`.
pub(super) fn shown((user, host): &AccountName) -> String {
    format!("'{user}'@'{host}'")
}

/// Returns the error for an account that does not exist.
pub(super) fn no_such_account() -> SqlError {
    SqlError::no_matching_user()
}
