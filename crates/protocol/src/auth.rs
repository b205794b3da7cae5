//! mysql_native_password.
//!
//! The server stores `S = SHA1(SHA1(password))` and sends 20 random bytes `R`. The client sends
//! `SHA1(password) XOR SHA1(R . S)`. The server undoes the XOR and hashes once more; the result must be `S`.
//! For an empty password the client sends nothing.

use std::fmt;

use sha1::{Digest, Sha1};

/// Name of the plugin.
pub const NATIVE_PASSWORD: &str = "mysql_native_password";

/// The random bytes of one handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scramble(pub [u8; 20]);

impl Scramble {
    /// Creates a scramble from random bytes. Replaces 0 and `$`, which end strings in old clients.
    pub fn from_random(mut random: [u8; 20]) -> Scramble {
        for byte in &mut random {
            *byte &= 0x7f;
            if *byte == 0 || *byte == b'$' {
                *byte += 1;
            }
        }
        Scramble(random)
    }
}

impl Scramble {
    /// Returns the response of a client that knows the password.
    pub fn answer(&self, password: &[u8]) -> Vec<u8> {
        if password.is_empty() {
            return Vec::new();
        }
        let once = sha1(&[password]);
        let mask = sha1(&[&self.0, &sha1(&[&once])]);
        once.iter().zip(mask).map(|(byte, m)| byte ^ m).collect()
    }
}

/// A stored password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum NativePassword {
    /// The empty password.
    Empty,
    /// `SHA1(SHA1(password))`.
    Hash([u8; 20]),
}

/// Hides the hash from logs.
impl fmt::Debug for NativePassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NativePassword")
    }
}

impl NativePassword {
    /// Hashes a cleartext password.
    pub fn of(password: &[u8]) -> NativePassword {
        match password {
            [] => NativePassword::Empty,
            some => NativePassword::Hash(sha1(&[&sha1(&[some])])),
        }
    }

    /// Parses the stored form: empty, or `*` and 40 hexadecimal digits.
    pub fn parse(stored: &str) -> Option<NativePassword> {
        if stored.is_empty() {
            return Some(NativePassword::Empty);
        }
        let digits = stored.strip_prefix('*').filter(|d| d.len() == 40 && d.is_ascii())?;
        let mut hash = [0; 20];
        for (n, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).ok()?;
        }
        Some(NativePassword::Hash(hash))
    }

    /// Returns the stored hash; empty for the empty password.
    pub fn bytes(&self) -> &[u8] {
        match self {
            NativePassword::Empty => &[],
            NativePassword::Hash(hash) => hash,
        }
    }

    /// Returns whether the response proves that the client knows the password.
    pub fn accepts(&self, scramble: &Scramble, answer: &[u8]) -> bool {
        match self {
            NativePassword::Empty => answer.is_empty(),
            NativePassword::Hash(stored) => {
                let Ok(answer) = <[u8; 20]>::try_from(answer) else { return false };
                let mask = sha1(&[&scramble.0, stored]);
                let mut once = answer;
                once.iter_mut().zip(mask).for_each(|(byte, m)| *byte ^= m);
                // Compared in constant time, so that timing reveals nothing.
                sha1(&[&once]).iter().zip(stored).fold(0, |diff, (a, b)| diff | (a ^ b)) == 0
            }
        }
    }
}

/// The stored form, which is also the result of PASSWORD().
impl fmt::Display for NativePassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NativePassword::Hash(hash) = self else { return Ok(()) };
        f.write_str("*")?;
        hash.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let mut hasher = Sha1::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_password_opens() {
        let scramble = Scramble::from_random(*b"\0$cdefghijklmnopqrst");
        assert_eq!(&scramble.0[..3], b"\x01%c");
        let answer = |password: &[u8]| scramble.answer(password);
        let stored = NativePassword::of(b"secret");
        assert_eq!(stored.to_string(), "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7");
        assert_eq!(NativePassword::parse(&stored.to_string()), Some(stored));
        assert!(stored.accepts(&scramble, &answer(b"secret")));
        assert!(!stored.accepts(&scramble, &answer(b"Secret")));
        assert!(!stored.accepts(&scramble, b""));
        assert!(!stored.accepts(&scramble, &answer(b"secret")[..19]));
        assert!(NativePassword::Empty.accepts(&scramble, b""));
        assert!(NativePassword::Empty.accepts(&scramble, &answer(b"")));
        assert!(!NativePassword::Empty.accepts(&scramble, &[0; 20]));
        assert_eq!(NativePassword::parse("*14"), None);
        assert_eq!(NativePassword::parse(&format!("*{}", "é".repeat(20))), None);
    }
}
