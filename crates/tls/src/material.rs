//! Certificates, keys and revocation lists out of PEM files.

use std::path::Path;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

use crate::TlsError;

/// Larger files hold no certificates.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// More files of a directory are not read.
const DIRECTORY_FILES_MAX: usize = 10_000;

fn failed(name: &str, why: impl std::fmt::Display) -> TlsError {
    TlsError::File { name: name.to_owned(), why: why.to_string() }
}

fn read(name: &str) -> Result<Vec<u8>, TlsError> {
    let bytes_of = std::fs::metadata(name).map_err(|error| failed(name, error))?.len();
    if bytes_of > FILE_BYTES_MAX {
        return Err(failed(name, "it is too large"));
    }
    std::fs::read(name).map_err(|error| failed(name, error))
}

/// Everything of one kind in a file, at least one.
fn all_of<T: PemObject>(name: &str, kind: &str) -> Result<Vec<T>, TlsError> {
    let bytes = read(name)?;
    let found: Result<Vec<T>, pem::Error> = T::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| failed(name, error))?;
    if found.is_empty() { Err(failed(name, format_args!("there is no {kind} in it"))) } else { Ok(found) }
}

/// The same for all files of a directory; what is none of that kind is passed over.
fn all_in<T: PemObject>(directory: &str) -> Result<Vec<T>, TlsError> {
    let entries = std::fs::read_dir(directory).map_err(|error| failed(directory, error))?;
    let mut found = Vec::new();
    for entry in entries.take(DIRECTORY_FILES_MAX) {
        let path = entry.map_err(|error| failed(directory, error))?.path();
        let is_file = |path: &Path| path.metadata().is_ok_and(|data| data.is_file());
        if let Some(name) = path.to_str().filter(|_| is_file(&path)) {
            let bytes = read(name)?;
            found.extend(T::pem_slice_iter(&bytes).filter_map(Result::ok));
        }
    }
    Ok(found)
}

/// Of a file, a directory, or both, as far as they are named.
fn gathered<T: PemObject>(file: &str, directory: &str, kind: &str) -> Result<Vec<T>, TlsError> {
    let mut found = if file.is_empty() { Vec::new() } else { all_of(file, kind)? };
    if !directory.is_empty() {
        found.extend(all_in(directory)?);
    }
    Ok(found)
}

/// A certificate and those that lead to its authority.
pub(crate) fn chain(file: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    all_of(file, "certificate")
}

/// The first private key of a file.
pub(crate) fn key(file: &str) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = read(file)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => failed(file, "there is no private key in it that is not encrypted"),
        other => failed(file, other),
    })
}

/// Certificates of authorities.
pub(crate) fn authorities(file: &str, directory: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    gathered(file, directory, "certificate")
}

/// Lists of certificates that count no more.
pub(crate) fn revoked(
    file: &str,
    directory: &str,
) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    gathered(file, directory, "revocation list")
}
