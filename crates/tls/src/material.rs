//! Reads certificates, keys and revocation lists from PEM files.

use std::path::Path;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

use crate::TlsError;

/// Maximum size of a file.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of files read from a directory.
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

/// Reads all items of one kind in a file. Returns an error if there are none.
fn all_of<T: PemObject>(name: &str, kind: &str) -> Result<Vec<T>, TlsError> {
    let bytes = read(name)?;
    let found: Result<Vec<T>, pem::Error> = T::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| failed(name, error))?;
    if found.is_empty() { Err(failed(name, format_args!("there is no {kind} in it"))) } else { Ok(found) }
}

/// Reads all items of one kind in the files of a directory; other items are skipped.
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

/// Reads the items of a file, of a directory, or of both, as far as they are set.
fn gathered<T: PemObject>(file: &str, directory: &str, kind: &str) -> Result<Vec<T>, TlsError> {
    let mut found = if file.is_empty() { Vec::new() } else { all_of(file, kind)? };
    if !directory.is_empty() {
        found.extend(all_in(directory)?);
    }
    Ok(found)
}

/// Reads a certificate with the chain to its authority.
pub(crate) fn chain(file: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    all_of(file, "certificate")
}

/// Reads the first private key of a file.
pub(crate) fn key(file: &str) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = read(file)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => failed(file, "there is no private key in it that is not encrypted"),
        other => failed(file, other),
    })
}

/// Reads the certificates of authorities.
pub(crate) fn authorities(file: &str, directory: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    gathered(file, directory, "certificate")
}

/// Reads revocation lists.
pub(crate) fn revoked(
    file: &str,
    directory: &str,
) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    gathered(file, directory, "revocation list")
}
