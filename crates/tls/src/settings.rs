//! TLS settings in OpenSSL's terms.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::{CipherSuite, SupportedCipherSuite, SupportedProtocolVersion, version};

use crate::TlsError;

/// TLS settings as in MariaDB. Empty strings count as not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// File of the authorities that must have issued the peer's certificate.
    pub ca: String,
    /// Directory of authority files.
    pub capath: String,
    /// File of the own certificate, with the chain to its authority.
    pub cert: String,
    /// File of the certificate's key.
    pub key: String,
    /// File of revocation lists.
    pub crl: String,
    /// Directory of revocation lists.
    pub crlpath: String,
    /// Names of cipher suites, separated by colons.
    pub cipher: String,
    /// TLSv1.2, TLSv1.3, separated by commas. Older versions are ignored because they are not supported.
    pub versions: String,
}

impl TlsSettings {
    /// Returns the versions that are both requested and supported.
    pub(crate) fn protocols(&self) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
        let wanted = |name: &str| {
            let mut words = self.versions.split(',').map(str::trim);
            self.versions.is_empty() || words.any(|word| word.eq_ignore_ascii_case(name))
        };
        let known = [("TLSv1.2", &version::TLS12), ("TLSv1.3", &version::TLS13)];
        let left: Vec<_> =
            known.into_iter().filter(|(name, _)| wanted(name)).map(|(_, version)| version).collect();
        if left.is_empty() { Err(TlsError::NothingLeft("TLS version")) } else { Ok(left) }
    }

    /// Returns a cryptography provider with the requested cipher suites. As with OpenSSL, a list that names
    /// only suites of one TLS version does not restrict those of the other.
    pub(crate) fn provider(&self) -> Result<Arc<CryptoProvider>, TlsError> {
        let mut provider = ring::default_provider();
        let words: Vec<&str> = self.cipher.split([':', ',', ' ']).filter(|word| !word.is_empty()).collect();
        if words.iter().all(|word| ["DEFAULT", "ALL", "HIGH"].contains(word)) {
            return Ok(Arc::new(provider));
        }
        let is_named = |suite: &SupportedCipherSuite| words.contains(&cipher_name(suite.suite()));
        let named: Vec<SupportedCipherSuite> =
            provider.cipher_suites.iter().filter(|suite| is_named(suite)).copied().collect();
        if named.is_empty() {
            return Err(TlsError::NothingLeft("cipher suite"));
        }
        let is_other_version = |suite: &SupportedCipherSuite| {
            !named.iter().any(|named| named.version().version == suite.version().version)
        };
        provider.cipher_suites.retain(|suite| is_named(suite) || is_other_version(suite));
        Ok(Arc::new(provider))
    }
}

/// Returns OpenSSL's name of a cipher suite.
pub(crate) fn cipher_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-ECDSA-CHACHA20-POLY1305",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => "ECDHE-RSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => "ECDHE-RSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-RSA-CHACHA20-POLY1305",
        _ => "",
    }
}

/// Returns the names of the suites, separated by colons.
pub(crate) fn names_of(suites: &[SupportedCipherSuite]) -> String {
    suites.iter().map(|suite| cipher_name(suite.suite())).collect::<Vec<_>>().join(":")
}

/// Returns the names of all supported cipher suites.
pub fn all_cipher_names() -> String {
    names_of(&ring::default_provider().cipher_suites)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_has_a_name_that_selects_it() {
        for suite in ring::default_provider().cipher_suites {
            let name = cipher_name(suite.suite());
            assert!(!name.is_empty(), "{suite:?}");
            let only = TlsSettings { cipher: name.to_owned(), ..TlsSettings::default() };
            let left = only.provider().expect("one is left").cipher_suites.clone();
            let same_version = left.iter().filter(|it| it.version().version == suite.version().version);
            assert_eq!(same_version.count(), 1, "{name}");
            assert!(left.len() > 1, "the other version's are as they were");
        }
        let none = TlsSettings { cipher: "RC4-MD5:NULL-SHA".to_owned(), ..TlsSettings::default() };
        assert_eq!(none.provider().err(), Some(TlsError::NothingLeft("cipher suite")));
    }

    #[test]
    fn old_versions_are_passed_over_and_nothing_left_is_an_error() {
        let of = |versions: &str| TlsSettings { versions: versions.to_owned(), ..TlsSettings::default() };
        assert_eq!(of("TLSv1.1,TLSv1.2,TLSv1.3").protocols().map(|all| all.len()), Ok(2));
        assert_eq!(of("TLSv1.3").protocols().map(|all| all.len()), Ok(1));
        assert_eq!(of("TLSv1.0,TLSv1.1").protocols(), Err(TlsError::NothingLeft("TLS version")));
    }
}
