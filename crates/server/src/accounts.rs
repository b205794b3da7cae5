//! Who may log in.

use std::sync::LazyLock;

use cohort_catalog::AccountRules;
use cohort_protocol::{Ed25519Key, NativePassword};

/// An account as login needs it.
#[derive(Clone, Debug)]
pub struct Account {
    pub user: String,
    /// A pattern: `%`, `localhost`, `10.0.%`, `10.0.0.0/255.255.0.0`.
    pub host: String,
    /// Any of these will do.
    pub methods: Vec<Method>,
    pub rules: AccountRules,
    /// An administrator: may use the connection that is kept beyond max_connections, has no limit of
    /// connections and does not run init_connect.
    pub is_super: bool,
    /// Too many wrong passwords were tried.
    pub is_blocked: bool,
}

/// How an account proves itself.
#[derive(Clone, Debug)]
pub enum Method {
    Password(NativePassword),
    /// The client signs with the key that belongs to this one.
    Ed25519(Ed25519Key),
    /// The process at the other end of the Unix socket runs as the system's user of the account's name.
    SystemUser,
}

impl Account {
    /// One that nothing is asked of but a method.
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

/// Of a password that nobody knows.
pub(crate) const NOBODYS_HASH: &str = "*0123456789ABCDEF0123456789ABCDEF01234567";

static NOBODY: LazyLock<Account> = LazyLock::new(|| {
    let password = NativePassword::parse(NOBODYS_HASH).expect("a hash");
    Account::new("", "", Method::Password(password))
});

/// Stands in for an account that is not there, so that its answer is judged as any other: how long a refusal
/// takes must not tell who is there. It has the empty host, as no user has.
pub(crate) fn nobody() -> Account {
    NOBODY.clone()
}

/// The accounts; the catalog implements it.
pub trait Accounts: Send + Sync {
    /// The account for a user name from a host, the most specific host first. `host` is `localhost` for the
    /// Unix socket and loopback addresses; `address` is that of a client over TCP, loopback too. An account
    /// matches if either does.
    fn find(&self, user: &str, host: &str, address: Option<&str>) -> Option<Account>;

    /// Somebody has shown a right or a wrong password.
    fn note_password(&self, account: &Account, is_right: bool) {
        let _ = (account, is_right);
    }
}

/// The one account of a new data directory: root without password, for local connections.
pub struct BootstrapAccounts;

impl Accounts for BootstrapAccounts {
    fn find(&self, user: &str, host: &str, _: Option<&str>) -> Option<Account> {
        let method = Method::Password(NativePassword::Empty);
        (user == "root" && host == "localhost")
            .then(|| Account { is_super: true, ..Account::new("root", "localhost", method) })
    }
}
