//! A self-signed certificate, generated for the life of the process.
//!
//! No authority has signed it, so it proves nothing by itself. A client that knows the account's password can
//! verify it nevertheless: after the login the server sends a digest of password, scramble and certificate,
//! which a man in the middle cannot compute. MariaDB's clients do this since 11.4.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::TlsError;
use crate::unusable;

/// Subject of the certificate; not a host name.
const COMMON_NAME: &str = "Cohort Server";

/// Generates a key and its certificate, which is always valid: it ends with the process, and clocks differ.
pub(crate) fn certificate() -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), TlsError> {
    let key = KeyPair::generate().map_err(unusable)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, COMMON_NAME);
    let certificate = params.self_signed(&key).map_err(unusable)?;
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    Ok((certificate.der().clone(), PrivateKeyDer::from(key)))
}
