//! Lookup of accounts in the catalog.

use std::cmp::Reverse;
use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock};

use cohort_catalog::{AuthMethod, Catalog, CatalogVersions};
use cohort_commit::Coordinator;
use cohort_config::{Globals, VarId};
use cohort_exec::AccountUsages;
use cohort_protocol::{ED25519, Ed25519Key, NATIVE_PASSWORD, NativePassword};
use cohort_types::Privilege;

use crate::accounts::{Account, Accounts, DECOY_HASH, Found, Method};

/// Looks up accounts in the published catalog: a change that a crash could undo neither admits nor excludes a
/// user.
pub struct CatalogAccounts {
    pub catalog: Arc<CatalogVersions>,
    pub commit: Arc<Coordinator>,
    pub usages: Arc<AccountUsages>,
    pub globals: Arc<Globals>,
}

const SOCKET: &str = "unix_socket";

/// Returns the method for authentication, or `None` if no client can authenticate by it.
fn method(method: &AuthMethod) -> Option<Method> {
    match method.plugin.as_str() {
        NATIVE_PASSWORD => NativePassword::parse(&method.text).map(Method::Password),
        ED25519 => Ed25519Key::parse(&method.text).map(Method::Ed25519),
        SOCKET => Some(Method::SystemUser),
        _ => None,
    }
}

impl Accounts for CatalogAccounts {
    fn find(&self, user: &str, host: &str, address: Option<&str>) -> Found {
        let catalog = self.catalog.published(|| self.commit.read_view().seq());
        let fitting = catalog.accounts.values().filter(|account| {
            let named = account.name.0 == user || account.name.0.is_empty();
            let is_from = |host: &str| host_matches(&account.name.1, host);
            named && !account.is_role && (is_from(host) || address.is_some_and(is_from))
        });
        let best = fitting.max_by(|a, b| precedence(&a.name).cmp(&precedence(&b.name)));
        // Always computed, so that timing does not reveal which accounts exist.
        let decoy = std::hint::black_box(decoy(&catalog, user));
        let account = self.for_login(best.map(|best| &**best).or(decoy).unwrap_or(&DECOY));
        match best {
            Some(_) => Found::Account(account),
            None => Found::Decoy(Account {
                user: String::new(),
                host: String::new(),
                is_super: false,
                is_blocked: false,
                ..account
            }),
        }
    }

    fn note_password(&self, account: &Account, is_right: bool) {
        self.usages.note_password(&(account.user.clone(), account.host.clone()), is_right);
    }
}

/// An account with an unknown password.
static DECOY: LazyLock<cohort_catalog::Account> = LazyLock::new(|| {
    let mut account = cohort_catalog::Account::new((String::new(), String::new()));
    account.methods = vec![AuthMethod::password(DECOY_HASH.to_owned())];
    account
});

/// Returns the account whose methods are used for a user name without an account: the one with the highest
/// hash of both names (rendezvous hashing). If another account is created or dropped, the result changes for
/// few names only.
fn decoy<'c>(catalog: &'c Catalog, user: &str) -> Option<&'c cohort_catalog::Account> {
    let users = catalog.accounts.values().filter(|account| !account.is_role);
    let fit = |account: &&Arc<cohort_catalog::Account>| {
        let mut hash = FNV_OFFSET;
        for part in [user, &account.name.0, &account.name.1] {
            hash = part.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
            hash = (hash ^ 0xff).wrapping_mul(FNV_PRIME);
        }
        // Mixes the last bytes into all bits.
        (hash ^ hash >> 29).wrapping_mul(FNV_PRIME).rotate_left(31)
    };
    users.max_by_key(fit).map(|account| &**account)
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

impl CatalogAccounts {
    fn for_login(&self, best: &cohort_catalog::Account) -> Account {
        let is_super = best.may(Privilege::Super) || best.may(Privilege::ConnectionAdmin);
        let errors_max = self.globals.uint(VarId::MaxPasswordErrors);
        let is_blocked = !is_super && self.usages.is_blocked(&best.name, errors_max);
        let (user, host) = best.name.clone();
        let methods = best.methods.iter().filter_map(method).collect();
        Account { user, host, methods, rules: best.rules.clone(), is_super, is_blocked }
    }
}

/// Returns the sort key of the accounts that match a client. As in MariaDB, the greatest is used: the host
/// decides first, then a named user precedes the anonymous one. Among equals, the host that sorts last wins,
/// which prefers `localhost` to addresses.
fn precedence(name: &(String, String)) -> (Specificity, bool, &str) {
    let (user, host) = name;
    (Specificity::of(host), !user.is_empty(), host)
}

/// Specificity of a host pattern. Variants and fields are ordered from the widest to the narrowest; `Reverse`
/// marks counts of which fewer is more specific.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Specificity {
    /// A pattern with `%`.
    AnyLength {
        /// Length of the shortest matching host.
        length: usize,
        /// Number of runs of `%`.
        gaps: Reverse<usize>,
        /// Number of `_`.
        blanks: Reverse<usize>,
        first_wildcard: Reverse<usize>,
    },
    /// A pattern with `_` only.
    OneLength { blanks: Reverse<usize>, first_wildcard: Reverse<usize> },
    /// No wildcards. A network counts like a host, whatever its size.
    Literal,
}

impl Specificity {
    fn of(pattern: &str) -> Specificity {
        let Some(first) = pattern.find(['%', '_']) else { return Specificity::Literal };
        let first_wildcard = Reverse(first);
        let blanks = pattern.matches('_').count();
        let percents = pattern.matches('%').count();
        if percents == 0 {
            return Specificity::OneLength { blanks: Reverse(blanks), first_wildcard };
        }
        // A `%` that does not follow another one begins a run.
        let gaps = percents - pattern.as_bytes().windows(2).filter(|pair| *pair == b"%%").count();
        let length = pattern.len() - percents;
        Specificity::AnyLength { length, gaps: Reverse(gaps), blanks: Reverse(blanks), first_wildcard }
    }
}

/// Parses `address/mask`, both as dotted IPv4 numbers. As in MariaDB, a zero mask is not a network.
fn network(pattern: &str) -> Option<(u32, u32)> {
    let (address, mask) = pattern.split_once('/')?;
    let bits = |text: &str| text.parse::<Ipv4Addr>().ok().map(u32::from);
    Some((bits(address)?, bits(mask).filter(|mask| *mask != 0)?))
}

/// Matches a host: LIKE without escapes and ignoring case, or an address in a network.
fn host_matches(pattern: &str, host: &str) -> bool {
    if let Some((network, mask)) = network(pattern) {
        return host.parse::<Ipv4Addr>().is_ok_and(|address| u32::from(address) & mask == network);
    }
    let (pattern, host) = (pattern.as_bytes(), host.as_bytes());
    let (mut p, mut h) = (0, 0);
    // Position after the last `%`, and the end of its current match. Only the last `%` ever needs to
    // backtrack.
    let mut last: Option<(usize, usize)> = None;
    while h < host.len() {
        match pattern.get(p) {
            Some(b'%') => {
                p += 1;
                last = Some((p, h));
            }
            Some(c) if *c == b'_' || c.eq_ignore_ascii_case(&host[h]) => (p, h) = (p + 1, h + 1),
            _ => {
                let Some((after_any, reach)) = last else { return false };
                (p, h) = (after_any, reach + 1);
                last = Some((after_any, reach + 1));
            }
        }
    }
    pattern[p..].iter().all(|c| *c == b'%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_match_as_patterns_and_the_most_specific_wins() {
        assert!(host_matches("%", "10.1.2.3") && host_matches("10.1.%", "10.1.2.3"));
        assert!(host_matches("LOCALHOST", "localhost") && host_matches("10.1.2._", "10.1.2.3"));
        assert!(!host_matches("10.2.%", "10.1.2.3") && !host_matches("localhost", "10.1.2.3"));
        let many = "%:".repeat(20) + "%x";
        assert!(
            !host_matches(&many, &"a:".repeat(20)) && host_matches(&many, &format!("{}x", "a:".repeat(20)))
        );
        assert!(host_matches("%%", "") && host_matches("1%1%", "1.1") && !host_matches("1%2", "1.21"));
        assert!(host_matches("10.1.0.0/255.255.0.0", "10.1.2.3"));
        assert!(!host_matches("10.1.0.0/255.255.0.0", "10.2.2.3"));
        assert!(
            !host_matches("10.1.0.0/255.255.0.0", "localhost") && !host_matches("10.1.0.0/16", "10.1.0.0")
        );
        assert!(!host_matches("0.0.0.0/0.0.0.0", "10.1.2.3"));
    }

    /// The order in which MariaDB 10.11 chose for user `ho` from 127.0.0.1. Each account was tested against
    /// each other one.
    const ORDER: &[(&str, &str)] = &[
        ("ho", "localhost"),
        ("ho", "127.0.0.1/255.255.255.255"),
        ("ho", "127.0.0.1"),
        ("ho", "127.0.0.0/255.255.255.0"),
        ("ho", "127.0.0.0/255.0.0.0"),
        ("", "localhost"),
        ("", "127.0.0.1/255.255.255.255"),
        ("", "127.0.0.1"),
        ("", "127.0.0.0/255.255.255.0"),
        ("", "127.0.0.0/255.0.0.0"),
        ("ho", "_ocalhost"),
        ("", "_ocalhost"),
        ("ho", "127._.0.1"),
        ("", "127._.0.1"),
        ("ho", "localhos_"),
        ("ho", "127.0.0._"),
        ("", "localhos_"),
        ("", "127.0.0._"),
        ("ho", "1__.0.0.1"),
        ("", "1__.0.0.1"),
        ("ho", "local_o_t"),
        ("", "local_o_t"),
        ("ho", "%localhost"),
        ("", "%localhost"),
        ("ho", "localh%st"),
        ("", "localh%st"),
        ("ho", "127.0.0.%"),
        ("", "127.0.0.%"),
        ("ho", "l_calhos%"),
        ("", "l_calhos%"),
        ("ho", "127.0._.%"),
        ("", "127.0._.%"),
        ("ho", "%.0.0.1"),
        ("", "%.0.0.1"),
        ("ho", "local%t"),
        ("", "local%t"),
        ("ho", "local%%"),
        ("ho", "local%"),
        ("", "local%%"),
        ("", "local%"),
        ("ho", "lo%a%l%t"),
        ("", "lo%a%l%t"),
        ("ho", "127.%"),
        ("", "127.%"),
        ("ho", "l%t"),
        ("", "l%t"),
        ("ho", "1%"),
        ("", "1%"),
        ("ho", "_%"),
        ("ho", "%_"),
        ("", "_%"),
        ("", "%_"),
        ("ho", "%%"),
        ("ho", "%"),
        ("", "%%"),
        ("", "%"),
    ];

    #[test]
    fn accounts_come_in_mariadbs_order() {
        let names: Vec<(String, String)> =
            ORDER.iter().map(|(user, host)| ((*user).to_owned(), (*host).to_owned())).collect();
        for pair in names.windows(2) {
            assert!(precedence(&pair[0]) > precedence(&pair[1]), "{pair:?}");
        }
    }
}
