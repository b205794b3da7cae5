//! Character sets from and to the UTF-8 in memory.

use super::Charset;
use super::fold::{decode, encode, latin1_of, of_latin1};

impl Charset {
    /// Appends UTF-8 text in this character set; characters that it lacks become `?`. Their number is
    /// returned.
    pub fn encode(self, text: &[u8], out: &mut Vec<u8>) -> usize {
        if self == Charset::Utf8mb4 || self == Charset::Binary || text.is_ascii() {
            out.extend_from_slice(text);
            return 0;
        }
        let mut lacking = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let (c, len) = decode(rest);
            let (character, tail) = rest.split_at(len);
            rest = tail;
            let byte = match self {
                Charset::Latin1 => latin1_of(c),
                _ => u8::try_from(c).ok().filter(u8::is_ascii),
            };
            match (self, byte) {
                (Charset::Utf8mb3, _) if len <= 3 => out.extend_from_slice(character),
                (Charset::Latin1 | Charset::Ascii, Some(byte)) => out.push(byte),
                _ => {
                    out.push(b'?');
                    lacking += 1;
                }
            }
        }
        lacking
    }

    /// Whether every character of UTF-8 text exists here; `Err(n)`: the one at byte n does not.
    pub fn check(self, text: &[u8]) -> Result<(), usize> {
        if self == Charset::Utf8mb4 || self == Charset::Binary || text.is_ascii() {
            return Ok(());
        }
        let mut at = 0;
        while at < text.len() {
            let (c, len) = decode(&text[at..]);
            let exists = match self {
                Charset::Utf8mb3 => c <= 0xffff,
                Charset::Latin1 => latin1_of(c).is_some(),
                _ => c < 0x80,
            };
            if !exists {
                return Err(at);
            }
            at += len;
        }
        Ok(())
    }

    /// Appends bytes of this character set as UTF-8 (binary: as they are). `Err(n)`: byte n starts no
    /// character; what stands before it was appended.
    pub fn decode(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), usize> {
        let good = match self {
            Charset::Binary => bytes.len(),
            Charset::Latin1 => {
                decode_latin1(bytes, out);
                return Ok(());
            }
            Charset::Ascii => bytes.iter().position(|b| !b.is_ascii()).unwrap_or(bytes.len()),
            Charset::Utf8mb4 => valid_len(bytes),
            Charset::Utf8mb3 => {
                let valid = valid_len(bytes);
                bytes[..valid].iter().position(|&b| b >= 0xf0).unwrap_or(valid)
            }
        };
        out.extend_from_slice(&bytes[..good]);
        if good == bytes.len() { Ok(()) } else { Err(good) }
    }
}

fn valid_len(bytes: &[u8]) -> usize {
    std::str::from_utf8(bytes).map_or_else(|e| e.valid_up_to(), str::len)
}

fn decode_latin1(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.is_ascii() {
        out.extend_from_slice(bytes);
        return;
    }
    bytes.iter().for_each(|&b| encode(of_latin1(b), out));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latin1_byte_goes_both_ways() {
        let bytes: Vec<u8> = (0..=255).collect();
        let (mut utf8, mut back) = (Vec::new(), Vec::new());
        assert_eq!(Charset::Latin1.decode(&bytes, &mut utf8), Ok(()));
        assert_eq!(Charset::Latin1.encode(&utf8, &mut back), 0);
        assert_eq!(back, bytes);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let mut out = Vec::new();
        assert_eq!(Charset::Latin1.encode("a€Ж".as_bytes(), &mut out), 1);
        assert_eq!(out, b"a\x80?");
        out.clear();
        assert_eq!(Charset::Utf8mb3.encode("é😀".as_bytes(), &mut out), 1);
        assert_eq!(out, "é?".as_bytes());
        assert_eq!(Charset::Utf8mb3.decode("é😀".as_bytes(), &mut out), Err(2));
        assert_eq!(Charset::Ascii.decode(b"ab\x80", &mut out), Err(2));
        assert_eq!(Charset::Utf8mb4.decode(b"ab\xff", &mut out), Err(2));
        assert_eq!(Charset::Ascii.check("abé".as_bytes()), Err(2));
        assert_eq!(Charset::Latin1.check("abé".as_bytes()), Ok(()));
    }
}
