//! The proof that a certificate which nobody has signed is the server's.
//!
//! Client and server share what the server stores of the password. Behind the login the server sends a digest
//! of that, of the scramble that the client was greeted with, and of the certificate's fingerprint. Somebody
//! between the two has shown the client another certificate and does not know what is stored, so he cannot
//! send that. MariaDB's clients ask for it since 11.4, unless they were told which authority to trust.

use sha2::{Digest, Sha256};

use crate::Scramble;

/// Says that a proof follows.
const MARK: char = '\x01';

/// What the OK packet of a login says in place of a text for people. `stored` is what the server stores of
/// the password, as bytes.
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
