//! Roles and the roles granted to them.

use std::sync::Arc;

use crate::account::Account;
use crate::model::Catalog;

/// Returns a role and all roles granted to it, directly or indirectly, each once.
pub fn roles_of(catalog: &Catalog, role: Option<&str>) -> Vec<Arc<Account>> {
    let mut found: Vec<Arc<Account>> = Vec::new();
    let mut open: Vec<&str> = role.into_iter().collect();
    while let Some(name) = open.pop() {
        if found.iter().any(|known| known.name.0 == name) {
            continue;
        }
        let Some(role) = catalog.accounts.get(&(name.to_owned(), String::new())) else { continue };
        found.push(Arc::clone(role));
        open.extend(role.roles.keys().rev().map(String::as_str));
    }
    found
}
