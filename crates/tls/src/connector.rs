//! TLS context of the client, for a replica.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use crate::unusable;
use crate::verifier::ServerCheck;
use crate::{TlsError, TlsSettings, TlsStream, material};

/// Context for connecting to servers.
pub struct Connector {
    config: Arc<ClientConfig>,
}

impl Connector {
    /// Reads the files that the settings name. With authorities, one of them must have issued the server's
    /// certificate; with `checks_name` the certificate must also be for the name that was connected to.
    /// Without authorities any certificate is accepted: the caller may request a proof after the login.
    pub fn new(settings: &TlsSettings, checks_name: bool) -> Result<Connector, TlsError> {
        let provider = settings.provider()?;
        let authorities = material::authorities(&settings.ca, &settings.capath)?;
        let revoked = material::revoked(&settings.crl, &settings.crlpath)?;
        let check = ServerCheck::new(authorities, revoked, checks_name, Arc::clone(&provider))?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&settings.protocols()?)
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(check));
        let config = match (settings.cert.as_str(), settings.key.as_str()) {
            ("", "") => builder.with_no_client_auth(),
            // As in MariaDB, each stands for both if only one is set: a file may contain certificate and key.
            (cert, key) => {
                let (cert, key) = (or(cert, key), or(key, cert));
                builder
                    .with_client_auth_cert(material::chain(cert)?, material::key(key)?)
                    .map_err(unusable)?
            }
        };
        Ok(Connector { config: Arc::new(config) })
    }

    /// Connects to a server by the name or address that it was reached by. `early` are the bytes that the
    /// server has sent after its greeting.
    pub fn connect(&self, host: &str, early: Vec<u8>) -> Result<TlsStream, TlsError> {
        let name = ServerName::try_from(host.to_owned()).map_err(unusable)?;
        let session = ClientConnection::new(Arc::clone(&self.config), name).map_err(unusable)?;
        Ok(TlsStream::new(session.into(), None, early))
    }
}

fn or<'a>(first: &'a str, second: &'a str) -> &'a str {
    if first.is_empty() { second } else { first }
}
