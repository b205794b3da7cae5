//! MariaDB's ed25519 authentication.
//!
//! The key pair derives from the password: SHA-512 of the password replaces SHA-512 of the random seed in RFC
//! 8032. The server stores the public key as 43 characters of Base64 and sends 32 random bytes; the client
//! returns their signature, 64 bytes. Neither the stored key nor the traffic is sufficient to log in.

use std::fmt;

use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest, Sha512};

/// Name of the server plugin.
pub const ED25519: &str = "ed25519";
/// Name of the client plugin.
pub const CLIENT_ED25519: &str = "client_ed25519";

const KEY_BYTES: usize = 32;
/// Length of a stored key in characters.
const TEXT_BYTES: usize = 43;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The random bytes of one handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce(pub [u8; 32]);

/// A stored public key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ed25519Key([u8; KEY_BYTES]);

fn secret_of(password: &[u8]) -> ExpandedSecretKey {
    ExpandedSecretKey::from_bytes(&Sha512::digest(password).into())
}

impl Nonce {
    /// Returns the response of a client that knows the password.
    pub fn answer(&self, password: &[u8]) -> Vec<u8> {
        let secret = secret_of(password);
        raw_sign::<Sha512>(&secret, &self.0, &VerifyingKey::from(&secret)).to_bytes().to_vec()
    }
}

impl Ed25519Key {
    /// Derives the key from a cleartext password.
    pub fn of(password: &[u8]) -> Ed25519Key {
        Ed25519Key(VerifyingKey::from(&secret_of(password)).to_bytes())
    }

    /// Parses the stored form: 43 characters of Base64.
    pub fn parse(stored: &str) -> Option<Ed25519Key> {
        if stored.len() != TEXT_BYTES {
            return None;
        }
        let (mut key, mut filled, mut bits, mut count) = ([0; KEY_BYTES], 0, 0_u32, 0);
        for byte in stored.bytes() {
            let digit = DIGITS.iter().position(|digit| *digit == byte)? as u32;
            (bits, count) = (bits << 6 | digit, count + 6);
            if count >= 8 {
                count -= 8;
                key[filled] = (bits >> count) as u8;
                filled += 1;
            }
        }
        Some(Ed25519Key(key))
    }

    /// Returns the stored key.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns whether the response proves that the client knows the password. A key that is not a point of
    /// the curve accepts nothing.
    pub fn accepts(&self, nonce: &Nonce, answer: &[u8]) -> bool {
        let (Ok(key), Ok(signature)) = (VerifyingKey::from_bytes(&self.0), Signature::from_slice(answer))
        else {
            return false;
        };
        key.verify_strict(&nonce.0, &signature).is_ok()
    }
}

/// Hides the key from logs.
impl fmt::Debug for Ed25519Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ed25519Key")
    }
}

/// The stored form.
impl fmt::Display for Ed25519Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(TEXT_BYTES);
        for chunk in self.0.chunks(3) {
            let bits =
                chunk.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
            for digit in 0..=chunk.len() {
                text.push(char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize]));
            }
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_password_opens() {
        let stored = Ed25519Key::of(b"secret");
        // The result of MariaDB's `ed25519_password('secret')`.
        assert_eq!(stored.to_string(), "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY");
        assert_eq!(Ed25519Key::parse(&stored.to_string()), Some(stored));
        let nonce = Nonce(*b"0123456789abcdef0123456789abcdef");
        let answer = nonce.answer(b"secret");
        assert!(stored.accepts(&nonce, &answer));
        assert!(!stored.accepts(&nonce, &nonce.answer(b"Secret")));
        assert!(!stored.accepts(&Nonce([1; 32]), &answer));
        for at in 0..answer.len() {
            let mut changed = answer.clone();
            changed[at] ^= 1;
            assert!(!stored.accepts(&nonce, &changed), "{at}");
            assert!(!stored.accepts(&nonce, &answer[..at]));
        }
    }

    #[test]
    fn keys_that_are_none() {
        for text in ["", "x", &"A".repeat(42), &"A".repeat(44), &"-".repeat(43), &"é".repeat(22)] {
            assert_eq!(Ed25519Key::parse(text), None, "{text}");
        }
        // Points of small order: a signature that is valid for any message must be rejected.
        let nonce = Nonce([7; 32]);
        for key in [[0; 32], {
            let mut one = [0; 32];
            one[0] = 1;
            one
        }] {
            assert!(!Ed25519Key(key).accepts(&nonce, &[0; 64]));
        }
    }
}
