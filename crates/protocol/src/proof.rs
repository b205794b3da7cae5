//! Proof that a self-signed certificate belongs to the server.
//!
//! Client and server both know the password hash that the server stores. After the login the server sends a
//! digest of that hash, the scramble of its greeting and the certificate's fingerprint. A man in the middle
//! presents another certificate and does not know the hash, so it cannot compute the digest. MariaDB's
//! clients require the proof since 11.4, unless they have a certificate authority configured.

use sha2::{Digest, Sha256};

use crate::Scramble;

/// Marks a proof in the info text.
const MARK: char = '\x01';

/// Returns the proof, which is sent as the info text of a login's OK packet. `stored` is the stored password
/// hash.
pub fn certificate_proof(stored: &[u8], scramble: &Scramble, certificate: &[u8]) -> String {
    let fingerprint = Sha256::digest(certificate);
    let digest = Sha256::new().chain_update(stored).chain_update(scramble.0).chain_update(fingerprint);
    let digits = digest.finalize().iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    format!("{MARK}{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_depends_on_each_of_its_parts() {
        let proof = |stored: &[u8], scramble: u8, certificate: &[u8]| {
            certificate_proof(stored, &Scramble([scramble; 20]), certificate)
        };
        let one = proof(b"stored", 1, b"certificate");
        assert_eq!(one.len(), 65);
        assert!(one.starts_with('\x01') && one[1..].bytes().all(|b| b"0123456789ABCDEF".contains(&b)));
        for other in [
            proof(b"other", 1, b"certificate"),
            proof(b"stored", 2, b"certificate"),
            proof(b"stored", 1, b""),
        ] {
            assert_ne!(one, other);
        }
    }
}
