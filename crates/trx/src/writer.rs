//! [`Writer`]: the account on whose behalf a session commits, for `read_only`.

use std::sync::Arc;

use cohort_catalog::{AccountName, Catalog, PUBLIC, roles_of};
use cohort_types::Privilege;

/// The account on whose behalf commits are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Writer {
    /// No account yet: not exempt from `read_only`.
    #[default]
    Unknown,
    /// The server itself, when it applies a source's changes.
    Server,
    /// An account with its active role.
    Account(Arc<(AccountName, Option<String>)>),
}

impl Writer {
    /// Returns whether it may write under `read_only`: the account, its role or PUBLIC has READ ONLY ADMIN.
    pub(crate) fn passes_read_only(&self, catalog: &Catalog) -> bool {
        let (name, role) = match self {
            Writer::Unknown => return false,
            Writer::Server => return true,
            Writer::Account(account) => &**account,
        };
        let Some(account) = catalog.accounts.get(name) else { return false };
        let of_role = roles_of(catalog, role.as_deref());
        let of_all = roles_of(catalog, Some(PUBLIC));
        let mut holders = [account].into_iter().chain(&of_role).chain(&of_all);
        holders.any(|holder| holder.grants.everything.has(Privilege::ReadOnlyAdmin))
    }
}
