//! TLS context of the server.

use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig};

use crate::settings::names_of;
use crate::{TlsError, TlsSettings, material, own, unusable, x509};

/// Context for accepting connections: certificate, key, authorities of clients. Immutable; when files change,
/// a new one replaces it.
pub struct Acceptor {
    pub(crate) config: Arc<ServerConfig>,
    certificate: ServerCertificate,
    ciphers: String,
    checks_clients: bool,
    /// DER of the self-signed certificate, if the server generated one.
    own: Option<Arc<[u8]>>,
}

/// Validity of the server's certificate, in OpenSSL's format: `Nov 23 01:18:03 2026 GMT`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerCertificate {
    pub not_before: String,
    pub not_after: String,
}

impl Acceptor {
    /// Reads the files that the settings name. If they name no certificate, key or authorities, generates a
    /// self-signed certificate. Without authorities, client certificates are not requested. With authorities
    /// a client may present a certificate, which they must have issued and not revoked.
    pub fn new(settings: &TlsSettings) -> Result<Acceptor, TlsError> {
        let named = [&settings.cert, &settings.key, &settings.ca, &settings.capath];
        let is_own = named.iter().all(|name| name.is_empty());
        if !is_own && (settings.cert.is_empty() || settings.key.is_empty()) {
            return Err(TlsError::NotSet);
        }
        let provider = settings.provider()?;
        let (chain, key) = match is_own {
            true => own::certificate().map(|(certificate, key)| (vec![certificate], key))?,
            false => (material::chain(&settings.cert)?, material::key(&settings.key)?),
        };
        let own = is_own.then(|| Arc::from(chain[0].as_ref()));
        let fields = x509::fields(&chain[0]).ok_or_else(|| TlsError::File {
            name: settings.cert.clone(),
            why: "its first certificate cannot be read".to_owned(),
        })?;
        let key = provider.key_provider.load_private_key(key).map_err(unusable)?;
        // rustls compares the key only with version 3 certificates, so it is compared here.
        if key.public_key().is_some_and(|public_key| !fields.is_of(&public_key)) {
            return Err(TlsError::File {
                name: settings.key.clone(),
                why: format!("the private key does not belong to the certificate of '{}'", settings.cert),
            });
        }
        let certified = CertifiedKey::new(chain, key);
        let versions = settings.protocols()?;
        let ciphers = names_of(&provider.cipher_suites);
        let authorities = material::authorities(&settings.ca, &settings.capath)?;
        let checks_clients = !authorities.is_empty();
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(unusable)?;
        let builder = match checks_clients {
            false => builder.with_no_client_auth(),
            true => {
                let mut roots = RootCertStore::empty();
                for authority in authorities {
                    roots.add(authority).map_err(unusable)?;
                }
                let revoked = material::revoked(&settings.crl, &settings.crlpath)?;
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .with_crls(revoked)
                    .allow_unauthenticated()
                    .build();
                builder.with_client_cert_verifier(verifier.map_err(|e| TlsError::Unusable(e.to_string()))?)
            }
        };
        let config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        let certificate = ServerCertificate { not_before: fields.not_before, not_after: fields.not_after };
        Ok(Acceptor { config: Arc::new(config), certificate, ciphers, checks_clients, own })
    }

    /// Returns the validity of the server's certificate.
    pub fn certificate(&self) -> &ServerCertificate {
        &self.certificate
    }

    /// Returns the certificate if the server generated it.
    pub fn own_certificate(&self) -> Option<&Arc<[u8]>> {
        self.own.as_ref()
    }

    /// Returns the names of its cipher suites, separated by colons.
    pub fn ciphers(&self) -> &str {
        &self.ciphers
    }

    /// Returns whether clients may present certificates.
    pub fn checks_clients(&self) -> bool {
        self.checks_clients
    }
}
