//! TLS: certificate files to contexts, contexts to streams of records. No sockets, no threads.
//!
//! | module | concept |
//! |---|---|
//! | `material` | certificates, keys and revocation lists out of PEM files |
//! | `settings` | [`TlsSettings`]: what `ssl_cert` and the like say; versions and cipher suites by OpenSSL's names |
//! | `acceptor` | [`Acceptor`]: the server's context |
//! | `own` | a certificate of the server's own making |
//! | `connector` | [`Connector`]: the client's context, for a replica |
//! | `verifier` | how a client checks the server's certificate |
//! | `stream` | [`TlsStream`]: one connection's records, over any `Read + Write` that may say WouldBlock |
//! | `x509` | names and times of a certificate, in OpenSSL's forms |
//!
//! The only importer of rustls. Certificate files are read here and nowhere else.

mod acceptor;
mod connector;
mod material;
mod own;
mod settings;
mod stream;
mod verifier;
mod x509;

pub use acceptor::{Acceptor, ServerCertificate};
pub use connector::Connector;
pub use settings::{TlsSettings, all_cipher_names};
pub use stream::{PeerCertificate, Received, TlsStream};

use std::fmt;

/// What the library is called in `version_ssl_library`.
pub const LIBRARY: &str = "rustls 0.23 (ring)";

/// A context cannot be made: what to say to whoever configured it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsError {
    /// A file cannot be read, or holds nothing of what it should.
    File { name: String, why: String },
    /// The certificate and the key do not belong together, or cannot be used.
    Unusable(String),
    /// No known cipher suite, or no known version, is left.
    NothingLeft(&'static str),
    /// No certificate or no key is set.
    NotSet,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::File { name, why } => write!(f, "cannot use the file '{name}': {why}"),
            TlsError::Unusable(why) => write!(f, "{why}"),
            TlsError::NothingLeft(what) => write!(f, "no {what} is left that this server knows"),
            TlsError::NotSet => write!(f, "ssl_cert and ssl_key are not both set"),
        }
    }
}

impl std::error::Error for TlsError {}
