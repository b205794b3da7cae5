//! The accounts as a statement finds and leaves them.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohort_catalog::{Account, AccountName, Catalog, CatalogChange};
use cohort_locks::{MetadataMode, NameKey};
use cohort_session::StatementContext;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use super::work::Changes;

/// The accounts of the catalog and what the statement has made of them. Statements about accounts take turns:
/// the book is opened under the lock of all accounts, which is held until the changes are published.
pub(super) struct AccountBook {
    pub(super) catalog: Arc<Catalog>,
    /// None: dropped.
    changed: BTreeMap<AccountName, Option<Account>>,
}

impl AccountBook {
    /// Waits for its turn and looks at the accounts.
    pub(super) fn open(ctx: &mut StatementContext<'_>) -> SqlResult<AccountBook> {
        super::work::lock_definitions(ctx)?;
        ctx.trx.lock_name(&NameKey::Accounts, MetadataMode::Exclusive)?;
        Ok(AccountBook { catalog: ctx.db.catalog(), changed: BTreeMap::new() })
    }

    /// An account as the statement has left it so far. PUBLIC is always there for who looks for it.
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

    /// What the statement changes.
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

/// `'user'@'host'`.
pub(super) fn shown((user, host): &AccountName) -> String {
    format!("'{user}'@'{host}'")
}

/// The error of an account that is not there.
pub(super) fn no_such_account() -> SqlError {
    SqlError::new(ErrorCode::PasswordNoMatch, "Can't find any matching row in the user table")
}
