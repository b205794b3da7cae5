//! Accounts of the catalog.

use std::sync::Arc;

use cohort_catalog::Catalog;
use cohort_protocol::{NATIVE_PASSWORD, NativePassword};
use parking_lot::RwLock;

use crate::accounts::{Account, Accounts};

/// Looks accounts up in the catalog as it is at that moment.
pub struct CatalogAccounts(pub Arc<RwLock<Arc<Catalog>>>);

impl Accounts for CatalogAccounts {
    fn find(&self, user: &str, host: &str, address: Option<&str>) -> Option<Account> {
        let catalog = self.0.read().clone();
        let fitting = catalog.accounts.iter().filter(|account| {
            let named = account.user == user || account.user.is_empty();
            let is_from = |host: &str| host_matches(&account.host, host);
            named && account.plugin == NATIVE_PASSWORD && (is_from(host) || address.is_some_and(is_from))
        });
        // The most specific host first, then a named user before the anonymous one.
        let best = fitting.max_by_key(|account| (specificity(&account.host), !account.user.is_empty()))?;
        let password = match best.auth.as_slice() {
            [] => NativePassword::Empty,
            hash => NativePassword::Hash(hash.try_into().ok()?),
        };
        let is_super = best
            .privileges
            .iter()
            .any(|p| p.starts_with("ALL PRIVILEGES") || p == "SUPER" || p == "CONNECTION ADMIN");
        Some(Account { user: best.user.clone(), host: best.host.clone(), password, is_super })
    }
}

/// Characters before the first wildcard; a literal host beats every pattern.
fn specificity(pattern: &str) -> usize {
    pattern.find(['%', '_']).unwrap_or(usize::MAX)
}

/// LIKE without escapes, any case.
fn host_matches(pattern: &str, host: &str) -> bool {
    fn matches(pattern: &[u8], host: &[u8]) -> bool {
        match pattern {
            [] => host.is_empty(),
            [b'%', rest @ ..] => (0..=host.len()).any(|skip| matches(rest, &host[skip..])),
            [b'_', rest @ ..] => !host.is_empty() && matches(rest, &host[1..]),
            [c, rest @ ..] => {
                host.first().is_some_and(|h| h.eq_ignore_ascii_case(c)) && matches(rest, &host[1..])
            }
        }
    }
    // Hosts are addresses or `localhost`; a pattern of many `%` would be slow on longer ones.
    pattern.matches('%').count() <= 8 && matches(pattern.as_bytes(), host.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_match_as_patterns_and_the_most_specific_wins() {
        assert!(host_matches("%", "10.1.2.3") && host_matches("10.1.%", "10.1.2.3"));
        assert!(host_matches("LOCALHOST", "localhost") && host_matches("10.1.2._", "10.1.2.3"));
        assert!(!host_matches("10.2.%", "10.1.2.3") && !host_matches("localhost", "10.1.2.3"));
        assert!(specificity("10.1.2.3") > specificity("10.1.%") && specificity("10.%") > specificity("%"));
    }
}
