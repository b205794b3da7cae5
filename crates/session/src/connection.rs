//! [`ConnectionInfo`]: who is connected, and how.

use std::sync::Arc;

use cohort_base::ConnectionId;
use cohort_types::Collation;

/// Who connected, as the handshake found out.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    pub id: ConnectionId,
    /// As the client gave it.
    pub user: String,
    /// Where the client is: `localhost` or an address.
    pub host: String,
    /// `user` and `host` of the account that let him in.
    pub account: (String, String),
    pub schema: Option<String>,
    /// What the client asked for as its character set.
    pub collation: Collation,
    /// CLIENT_MULTI_STATEMENTS.
    pub multi_statements: bool,
    /// CLIENT_FOUND_ROWS: UPDATE counts found rows.
    pub found_rows: bool,
    /// None: the connection is not encrypted.
    pub encryption: Option<EncryptedSession>,
    /// It came over the Unix socket.
    pub is_local: bool,
}

/// What SHOW STATUS tells of a connection with TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptedSession {
    /// `TLSv1.3`
    pub version: &'static str,
    /// OpenSSL's name of the cipher suite.
    pub cipher: &'static str,
    /// Names of all that the server would have taken, with colons between them.
    pub ciphers: Arc<str>,
    /// When the server's certificate holds, as OpenSSL prints it.
    pub not_before: Arc<str>,
    pub not_after: Arc<str>,
}
