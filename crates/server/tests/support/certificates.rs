//! Certificate authorities, and server and client certificates, created for a test.

#![allow(dead_code)] // each test file uses only a part

use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName, DnType, IsCa,
    Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};
use tempfile::TempDir;

/// A directory of PEM files.
pub struct Certificates {
    folder: TempDir,
}

/// The validity of a certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    Now,
    /// Expired.
    Once,
}

impl Certificates {
    /// Creates `ca.pem`; `server.pem` for localhost and `client.pem`, with their keys; `other-ca.pem`, and
    /// `stranger.pem` signed by it; `expired.pem`; `revoked.pem`, and `crl.pem`, which revokes it;
    /// `elsewhere.pem`, for another host.
    pub fn new() -> Certificates {
        let certificates = Certificates { folder: tempfile::tempdir().expect("a folder") };
        let ca = certificates.authority("ca");
        certificates.issue(&ca, "server", &[("O", "Cohort"), ("CN", "localhost")], 1, Holds::Now);
        certificates.issue(&ca, "client", &[("C", "DE"), ("O", "Cohort"), ("CN", "client")], 2, Holds::Now);
        certificates.issue(&ca, "expired", &[("CN", "client")], 3, Holds::Once);
        certificates.issue(&ca, "revoked", &[("CN", "revoked")], 4, Holds::Now);
        certificates.revoke(&ca, 4);
        certificates.issue_to(&["elsewhere"], &ca, "elsewhere", &[("CN", "elsewhere")], 6, Holds::Now);
        let other = certificates.authority("other-ca");
        certificates.issue(&other, "stranger", &[("CN", "client")], 5, Holds::Now);
        certificates
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns `--option=path of the file`.
    pub fn option(&self, option: &str, name: &str) -> String {
        format!("--{option}={}", self.path(name).display())
    }

    /// Returns the options for a server that offers TLS and accepts client certificates.
    pub fn server_options(&self) -> [String; 3] {
        [
            self.option("ssl-ca", "ca.pem"),
            self.option("ssl-cert", "server.pem"),
            self.option("ssl-key", "server.key"),
        ]
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    fn authority(&self, name: &str) -> Issuer<'static, KeyPair> {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name = distinguished(&[("O", "Cohort"), ("CN", name)]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        self.write(&format!("{name}.pem"), &params.self_signed(&key).expect("signed").pem());
        Issuer::new(params, key)
    }

    /// Issues a certificate for localhost and 127.0.0.1: `name.pem` and `name.key`.
    pub fn issue(
        &self,
        authority: &Issuer<'_, KeyPair>,
        name: &str,
        subject: &[(&str, &str)],
        serial: u64,
        holds: Holds,
    ) {
        self.issue_to(&["localhost", "127.0.0.1"], authority, name, subject, serial, holds);
    }

    fn issue_to(
        &self,
        hosts: &[&str],
        authority: &Issuer<'_, KeyPair>,
        name: &str,
        subject: &[(&str, &str)],
        serial: u64,
        holds: Holds,
    ) {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).expect("names");
        params.distinguished_name = distinguished(subject);
        params.serial_number = Some(SerialNumber::from(serial));
        params.use_authority_key_identifier_extension = true;
        if holds == Holds::Once {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        }
        let key = KeyPair::generate().expect("a key");
        self.write(&format!("{name}.key"), &key.serialize_pem());
        self.write(&format!("{name}.pem"), &params.signed_by(&key, authority).expect("signed").pem());
    }

    fn revoke(&self, authority: &Issuer<'_, KeyPair>, serial: u64) {
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2001, 1, 1),
            next_update: date_time_ymd(2099, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from(serial),
                revocation_time: date_time_ymd(2002, 1, 1),
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        self.write("crl.pem", &list.signed_by(authority).expect("signed").pem().expect("text"));
    }

    /// Replaces the server's certificate by one signed by a new `other-ca.pem`.
    #[allow(dead_code)] // unused in some tests
    pub fn replace_server(&self) {
        let other = self.authority("other-ca");
        self.issue(&other, "server", &[("CN", "localhost")], 9, Holds::Now);
    }
}

fn distinguished(parts: &[(&str, &str)]) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    for (kind, value) in parts {
        let kind = match *kind {
            "C" => DnType::CountryName,
            "O" => DnType::OrganizationName,
            _ => DnType::CommonName,
        };
        name.push(kind, *value);
    }
    name
}
