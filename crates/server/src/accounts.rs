//! Who may log in.

use cohort_catalog::AccountRules;
use cohort_protocol::{Challenge, Ed25519Key, NativePassword};

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

impl Method {
    /// Whether the answer opens the account. `is_system_user`: the system says that the client is who he says
    /// he is.
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

    /// What the server stores of the password; nothing where there is none.
    pub(crate) fn stored(&self) -> &[u8] {
        match self {
            Method::Password(password) => password.bytes(),
            Method::Ed25519(key) => key.bytes(),
            Method::SystemUser => &[],
        }
    }
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

/// A decoy where there is no account to take after.
fn nobody() -> Account {
    let password = NativePassword::parse(NOBODYS_HASH).expect("a hash");
    Account::new("", "", Method::Password(password))
}

/// Whose answer is judged.
pub enum Found {
    Account(Account),
    /// There is no such account. This one has the methods of some other, the same for the same name, so that
    /// nothing which is asked of a client tells who is there. It has no name.
    Decoy(Account),
}

/// The accounts; the catalog implements it.
pub trait Accounts: Send + Sync {
    /// The account for a user name from a host, the most specific host first. `host` is `localhost` for the
    /// Unix socket and loopback addresses; `address` is that of a client over TCP, loopback too. An account
    /// matches if either does.
    fn find(&self, user: &str, host: &str, address: Option<&str>) -> Found;

    /// Somebody has shown a right or a wrong password.
    fn note_password(&self, account: &Account, is_right: bool) {
        let _ = (account, is_right);
    }
}

/// The one account of a new data directory: root without password, for local connections.
pub struct BootstrapAccounts;

impl Accounts for BootstrapAccounts {
    fn find(&self, user: &str, host: &str, _: Option<&str>) -> Found {
        match (user, host) {
            ("root", "localhost") => {
                let method = Method::Password(NativePassword::Empty);
                Found::Account(Account { is_super: true, ..Account::new("root", "localhost", method) })
            }
            _ => Found::Decoy(nobody()),
        }
    }
}
