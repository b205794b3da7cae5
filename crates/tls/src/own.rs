//! A certificate of the server's own making, for as long as the process runs.
//!
//! Nobody has signed it, so it proves nothing by itself. A client that knows the account's password can check
//! it all the same: behind the login the server sends a digest of password, scramble and certificate, which
//! nobody between the two can make. MariaDB's clients do so since 11.4.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::TlsError;
use crate::acceptor::unusable;

/// Who it is made out to: no host's name.
const COMMON_NAME: &str = "Cohort Server";

/// A new key and its certificate. It holds at any time: it ends with the process, and clocks differ.
pub(crate) fn certificate() -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), TlsError> {
    let key = KeyPair::generate().map_err(unusable)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, COMMON_NAME);
    let certificate = params.self_signed(&key).map_err(unusable)?;
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    Ok((certificate.der().clone(), PrivateKeyDer::from(key)))
}
