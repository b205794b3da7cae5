//! Accounts and their authentication methods, as login needs them.

use cohort_catalog::AccountRules;
use cohort_protocol::{Challenge, Ed25519Key, NativePassword};

/// An account, for login.
#[derive(Clone, Debug)]
pub struct Account {
    pub user: String,
    /// Host pattern: `%`, `localhost`, `10.0.%`, `10.0.0.0/255.255.0.0`.
    pub host: String,
    /// Authentication methods. One of them is enough.
    pub methods: Vec<Method>,
    pub rules: AccountRules,
    /// An administrator: may use the connection reserved in excess of max_connections, has no connection
    /// limit, and does not run init_connect.
    pub is_super: bool,
    /// Too many wrong passwords were tried.
    pub is_blocked: bool,
}

/// An authentication method of an account.
#[derive(Clone, Debug)]
pub enum Method {
    Password(NativePassword),
    /// The client signs with the private key of this public key.
    Ed25519(Ed25519Key),
    /// The process at the other end of the Unix socket runs as the operating system's user with the account's
    /// name.
    SystemUser,
}

impl Method {
    /// Returns whether the response authenticates the client. `is_system_user` checks that the client process
    /// runs as the operating system's user of that name.
    pub(crate) fn is_proven(
        &self,
        challenge: &Challenge,
        answer: &[u8],
        is_system_user: impl Fn() -> bool,
    ) -> bool {
        match (self, challenge) {
            (Method::Password(password), Challenge::Native(scramble)) => password.accepts(scramble, answer),
            (Method::Ed25519(key), Challenge::Ed25519(nonce)) => key.accepts(nonce, answer),
            (Method::SystemUser, _) => is_system_user(),
            _ => false,
        }
    }

    /// Returns the stored form of the password, or nothing if the method has none.
    pub(crate) fn stored(&self) -> &[u8] {
        match self {
            Method::Password(password) => password.bytes(),
            Method::Ed25519(key) => key.bytes(),
            Method::SystemUser => &[],
        }
    }
}

impl Account {
    /// Creates an account with one method and no further rules.
    pub fn new(user: &str, host: &str, method: Method) -> Account {
        Account {
            user: user.to_owned(),
            host: host.to_owned(),
            methods: vec![method],
            rules: AccountRules { password_changed_at: u64::MAX, ..AccountRules::default() },
            is_super: false,
            is_blocked: false,
        }
    }
}

/// Hash of an unknown password.
pub(crate) const DECOY_HASH: &str = "*0123456789ABCDEF0123456789ABCDEF01234567";

/// Returns the decoy that is used if there is no account to imitate.
fn decoy() -> Account {
    let password = NativePassword::parse(DECOY_HASH).expect("a hash");
    Account::new("", "", Method::Password(password))
}

/// Result of the lookup of an account.
pub enum Found {
    Account(Account),
    /// There is no such account. The decoy imitates the methods of another account, always the same one for a
    /// user name, so that the handshake does not reveal which accounts exist. It has no name.
    Decoy(Account),
}

/// Lookup of accounts, implemented by the catalog.
pub trait Accounts: Send + Sync {
    /// Returns the account for a user name and host; the most specific host wins. `host` is `localhost` for
    /// the Unix socket and loopback addresses. `address` is the address of a TCP client, including loopback.
    /// An account matches if either matches.
    fn find(&self, user: &str, host: &str, address: Option<&str>) -> Found;

    /// Records the use of a right or wrong password.
    fn note_password(&self, account: &Account, is_right: bool) {
        let _ = (account, is_right);
    }
}

/// The only account of a new data directory: root without a password, for local connections.
pub struct BootstrapAccounts;

impl Accounts for BootstrapAccounts {
    fn find(&self, user: &str, host: &str, _: Option<&str>) -> Found {
        match (user, host) {
            ("root", "localhost") => {
                let method = Method::Password(NativePassword::Empty);
                Found::Account(Account { is_super: true, ..Account::new("root", "localhost", method) })
            }
            _ => Found::Decoy(decoy()),
        }
    }
}
