//! A certificate for the servers of one run, made by `openssl`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub struct Certificate {
    cert: PathBuf,
    key: PathBuf,
}

impl Certificate {
    /// A self-signed one, with an elliptic key as certificate authorities give them out today.
    pub fn make(dir: &Path) -> Result<Certificate, String> {
        let certificate = Certificate { cert: dir.join("cert.pem"), key: dir.join("key.pem") };
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        openssl.args(["-days", "2", "-subj", "/CN=localhost"]);
        openssl.arg("-keyout").arg(&certificate.key).arg("-out").arg(&certificate.cert);
        let made = openssl.stdin(Stdio::null()).output().map_err(|error| format!("openssl: {error}"))?;
        match made.status.success() {
            true => Ok(certificate),
            false => Err(format!("openssl: {}", String::from_utf8_lossy(&made.stderr).trim())),
        }
    }

    /// What a server is told of it.
    pub fn options(&self) -> [String; 2] {
        [format!("--ssl-cert={}", self.cert.display()), format!("--ssl-key={}", self.key.display())]
    }
}
