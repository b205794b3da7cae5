//! [`Writer`]: the account in whose name a session commits, for `read_only`.

use std::sync::Arc;

use cohort_catalog::{AccountName, Catalog, PUBLIC, roles_of};
use cohort_types::Privilege;

/// The account in whose name commits are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Writer {
    /// None yet: nothing exempts it.
    #[default]
    Unknown,
    /// The server itself, which applies a source's changes.
    Server,
    /// An account, and the role that is in force.
    Account(Arc<(AccountName, Option<String>)>),
}

impl Writer {
    /// Whether `read_only` lets it write: the account, its role or PUBLIC has READ ONLY ADMIN.
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
