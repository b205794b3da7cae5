//! Accounts of the catalog.

use std::sync::Arc;

use cohort_catalog::CatalogVersions;
use cohort_commit::Coordinator;
use cohort_protocol::{NATIVE_PASSWORD, NativePassword};
use cohort_types::Privilege;

use crate::accounts::{Account, Accounts};

/// Looks accounts up in the published catalog: a change that a crash can undo neither admits a user nor keeps
/// one out.
pub struct CatalogAccounts {
    pub catalog: Arc<CatalogVersions>,
    pub commit: Arc<Coordinator>,
}

impl Accounts for CatalogAccounts {
    fn find(&self, user: &str, host: &str, address: Option<&str>) -> Option<Account> {
        let catalog = self.catalog.published(|| self.commit.read_view().seq());
        let fitting = catalog.accounts.values().filter(|account| {
            let named = account.name.0 == user || account.name.0.is_empty();
            let is_from = |host: &str| host_matches(&account.name.1, host);
            named && account.plugin == NATIVE_PASSWORD && (is_from(host) || address.is_some_and(is_from))
        });
        // The most specific host first, then a named user before the anonymous one.
        let best =
            fitting.max_by_key(|account| (specificity(&account.name.1), !account.name.0.is_empty()))?;
        let password = match best.auth.as_slice() {
            [] => NativePassword::Empty,
            hash => NativePassword::Hash(hash.try_into().ok()?),
        };
        let is_super = best.may(Privilege::Super) || best.may(Privilege::ConnectionAdmin);
        let (user, host) = best.name.clone();
        Some(Account { user, host, password, is_super })
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
