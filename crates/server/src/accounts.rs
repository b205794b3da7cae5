//! Who may log in.

use cohort_protocol::NativePassword;

/// An account as login needs it.
#[derive(Clone, Debug)]
pub struct Account {
    pub user: String,
    /// A pattern: `%`, `localhost`, `10.0.%`.
    pub host: String,
    pub password: NativePassword,
    /// An administrator: may use the connection that is kept beyond max_connections, has no limit of
    /// connections and does not run init_connect.
    pub is_super: bool,
}

/// The accounts; the catalog implements it.
pub trait Accounts: Send + Sync {
    /// The account for a user name from a host, the most specific host first. `host` is `localhost` for the
    /// Unix socket and loopback addresses; `address` is that of a client over TCP, loopback too. An account
    /// matches if either does.
    fn find(&self, user: &str, host: &str, address: Option<&str>) -> Option<Account>;
}

/// The one account of a new data directory: root without password, for local connections.
pub struct BootstrapAccounts;

impl Accounts for BootstrapAccounts {
    fn find(&self, user: &str, host: &str, _: Option<&str>) -> Option<Account> {
        (user == "root" && host == "localhost").then(|| Account {
            user: "root".to_owned(),
            host: "localhost".to_owned(),
            password: NativePassword::Empty,
            is_super: true,
        })
    }
}
