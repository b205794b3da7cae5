//! Identity and properties of a connection ([`ConnectionInfo`]).

use std::sync::Arc;

use cohort_base::ConnectionId;
use cohort_types::Collation;

/// The connection's identity and properties, as established by the handshake.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    pub id: ConnectionId,
    /// The user name that the client gave.
    pub user: String,
    /// The client's host: `localhost` or an address.
    pub host: String,
    /// `user` and `host` of the account that the client logged in as.
    pub account: (String, String),
    pub schema: Option<String>,
    /// The character set that the client asked for.
    pub collation: Collation,
    /// CLIENT_MULTI_STATEMENTS.
    pub multi_statements: bool,
    /// CLIENT_FOUND_ROWS: UPDATE counts found rows.
    pub found_rows: bool,
    /// `None` if the connection is not encrypted.
    pub encryption: Option<EncryptedSession>,
    /// The connection uses the Unix socket.
    pub is_local: bool,
}

/// The TLS properties that SHOW STATUS shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptedSession {
    /// `TLSv1.3`
    pub version: &'static str,
    /// OpenSSL's name of the cipher suite.
    pub cipher: &'static str,
    /// The names of all cipher suites that the server accepts, separated by colons.
    pub ciphers: Arc<str>,
    /// The validity of the server's certificate, in OpenSSL's format.
    pub not_before: Arc<str>,
    pub not_after: Arc<str>,
}
