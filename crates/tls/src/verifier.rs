//! Verification of the server's certificate by a client.
//!
//! Like MariaDB's clients with OpenSSL: the chain is verified if authorities are set, the name if that is
//! requested. In addition to rustls' own verifier, this one accepts a certificate that *is* one of the
//! authorities (self-signed), and the common name of a certificate that has no subject alternative names.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::unusable;
use crate::{TlsError, x509};

#[derive(Debug)]
pub(crate) struct ServerCheck {
    authorities: Vec<CertificateDer<'static>>,
    /// `None` accepts any certificate, or only the authorities themselves if there are any.
    chain: Option<Arc<WebPkiServerVerifier>>,
    checks_name: bool,
    /// Without authorities: the certificate must not have expired.
    checks_times: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCheck {
    pub(crate) fn new(
        authorities: Vec<CertificateDer<'static>>,
        revoked: Vec<CertificateRevocationListDer<'static>>,
        checks_name: bool,
        provider: Arc<CryptoProvider>,
    ) -> Result<ServerCheck, TlsError> {
        let mut roots = RootCertStore::empty();
        // A certificate that is not an authority may still be the server's own.
        roots.add_parsable_certificates(authorities.iter().cloned());
        let chain = match roots.is_empty() {
            true => None,
            false => {
                let builder =
                    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
                Some(builder.with_crls(revoked).build().map_err(unusable)?)
            }
        };
        // Without authorities the certificate is proved after the login. Then only its times are verified.
        let checks_times = checks_name && authorities.is_empty();
        let checks_name = checks_name && !authorities.is_empty();
        Ok(ServerCheck { authorities, chain, checks_name, checks_times, provider })
    }

    /// Verifies the name of a certificate whose chain was verified.
    fn check_name(&self, shown: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), Error> {
        if !self.checks_name {
            return Ok(());
        }
        let wrong = || Error::InvalidCertificate(CertificateError::NotValidForName);
        let Ok(parsed) = rustls::server::ParsedCertificate::try_from(shown) else {
            return self.check_common_name(shown, name).ok_or_else(wrong);
        };
        match rustls::client::verify_server_name(&parsed, name) {
            Ok(()) => Ok(()),
            // The common name counts only if there are no alternative names.
            Err(_) if !lists_names(shown) => self.check_common_name(shown, name).ok_or_else(wrong),
            Err(error) => Err(error),
        }
    }

    fn check_common_name(&self, shown: &CertificateDer<'_>, name: &ServerName<'_>) -> Option<()> {
        let common_name = x509::fields(shown)?.common_name?;
        common_name.eq_ignore_ascii_case(&name.to_str()).then_some(())
    }

    fn check_chain(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<(), Error> {
        if self.authorities.is_empty() {
            return if self.checks_times { check_times(shown, now) } else { Ok(()) };
        }
        if self.authorities.iter().any(|authority| authority == shown) {
            return check_times(shown, now);
        }
        let unknown = || Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let chain = self.chain.as_ref().ok_or_else(unknown)?;
        match chain.verify_server_cert(shown, intermediates, name, ocsp, now) {
            // The name is verified last.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ))
            | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Verifies the validity period of a certificate that is itself an authority.
fn check_times(shown: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let wrong = |error| Err(Error::InvalidCertificate(error));
    let Some(fields) = x509::fields(shown) else { return wrong(CertificateError::BadEncoding) };
    let now = civil(now.as_secs());
    match () {
        () if now < fields.times[0] => wrong(CertificateError::NotValidYet),
        () if now > fields.times[1] => wrong(CertificateError::Expired),
        () => Ok(()),
    }
}

/// Formats seconds since 1970 as `YYYYMMDDhhmmss`. The date is computed like Howard Hinnant's
/// `civil_from_days`.
fn civil(seconds: u64) -> String {
    let (days, second) = ((seconds / 86_400) as i64 + 719_468, seconds % 86_400);
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{:02}", second % 60)
}

/// Returns whether a certificate has subject alternative names: whether their object identifier occurs in it.
fn lists_names(certificate: &CertificateDer<'_>) -> bool {
    const SUBJECT_ALT_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x1d, 0x11];
    certificate.windows(SUBJECT_ALT_NAME.len()).any(|bytes| bytes == SUBJECT_ALT_NAME)
}

impl ServerCertVerifier for ServerCheck {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check_chain(shown, intermediates, name, ocsp, now)?;
        self.check_name(shown, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_dates() {
        assert_eq!(civil(0), "19700101000000");
        assert_eq!(civil(951_868_799), "20000229235959");
        assert_eq!(civil(1_795_396_877), "20261123012117");
    }
}
