//! Conversion of character sets from and to the UTF-8 in memory.

use super::Charset;
use super::charset::Coding;
use super::fold::{decode, encode, latin1_of, of_latin1};

impl Charset {
    /// Appends UTF-8 text in this character set. Characters that the set lacks become `?`. Returns their
    /// number.
    pub fn encode(self, text: &[u8], out: &mut Vec<u8>) -> usize {
        if self.takes_whole(text) {
            out.extend_from_slice(text);
            return 0;
        }
        let mut lacking = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let (c, len) = decode(rest);
            rest = &rest[len..];
            if !self.put(c, out) {
                self.put(b'?'.into(), out);
                lacking += 1;
            }
        }
        lacking
    }

    /// Returns whether the text has the same bytes in memory and in this set.
    fn takes_whole(self, text: &[u8]) -> bool {
        match self.coding() {
            Coding::Utf8 { longest: 4 } | Coding::Binary => true,
            Coding::Utf16 { .. } | Coding::Utf32 => text.is_empty(),
            // swe7 has other letters in place of some ASCII characters.
            Coding::Bytes(_) => text.is_empty(),
            // The backslash of sjis is another character.
            Coding::Wide(_) => text.is_ascii() && !text.contains(&b'\\'),
            Coding::Utf8 { .. } | Coding::Ascii | Coding::Latin1 => text.is_ascii(),
        }
    }

    /// Appends one character. Returns false if this set lacks it.
    fn put(self, c: u32, out: &mut Vec<u8>) -> bool {
        match self.coding() {
            Coding::Binary => encode(c, out),
            Coding::Utf8 { longest } => {
                if longest < 4 && c > 0xffff {
                    return false;
                }
                encode(c, out);
            }
            Coding::Ascii if c < 0x80 => out.push(c as u8),
            Coding::Ascii => return false,
            Coding::Latin1 => match latin1_of(c) {
                Some(byte) => out.push(byte),
                None => return false,
            },
            Coding::Bytes(set) => match set.byte(c) {
                Some(byte) => out.push(byte),
                None => return false,
            },
            Coding::Wide(set) => return set.encode(c, out),
            Coding::Utf16 { pairs, little } => {
                let put = |unit: u16, out: &mut Vec<u8>| {
                    out.extend_from_slice(&if little { unit.to_le_bytes() } else { unit.to_be_bytes() });
                };
                match u16::try_from(c) {
                    Ok(0xd800..0xe000) if pairs => return false,
                    Ok(unit) => put(unit, out),
                    Err(_) if !pairs => return false,
                    Err(_) => {
                        let rest = c - 0x1_0000;
                        put(0xd800 | (rest >> 10) as u16, out);
                        put(0xdc00 | (rest & 0x3ff) as u16, out);
                    }
                }
            }
            Coding::Utf32 => out.extend_from_slice(&c.to_be_bytes()),
        }
        true
    }

    /// Checks that this set has every character of UTF-8 text. `Err(n)` is the offset of the first character
    /// that it lacks.
    pub fn check(self, text: &[u8]) -> Result<(), usize> {
        if self.takes_whole(text) {
            return Ok(());
        }
        let (mut at, mut unused) = (0, Vec::new());
        while at < text.len() {
            let (c, len) = decode(&text[at..]);
            unused.clear();
            if !self.put(c, &mut unused) {
                return Err(at);
            }
            at += len;
        }
        Ok(())
    }

    /// Returns the length of the longest prefix of UTF-8 text, in whole characters, that takes at most
    /// `bytes` bytes in this set.
    pub fn fitting(self, text: &[u8], bytes: usize) -> usize {
        if text.len().saturating_mul(self.mbmaxlen() as usize) <= bytes {
            return text.len();
        }
        if self == Charset::Binary {
            return bytes.min(text.len());
        }
        let (mut at, mut taken) = (0, Vec::new());
        let mut used = 0;
        while at < text.len() {
            let (c, len) = decode(&text[at..]);
            taken.clear();
            if !self.put(c, &mut taken) {
                self.put(b'?'.into(), &mut taken);
            }
            used += taken.len();
            if used > bytes {
                return at;
            }
            at += len;
        }
        at
    }

    /// Appends bytes of this character set as UTF-8 (binary: unchanged). `Err(n)` means that byte n does not
    /// start a character; the text before it was appended.
    pub fn decode(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), usize> {
        let good = match self.coding() {
            Coding::Binary => bytes.len(),
            Coding::Latin1 => {
                decode_latin1(bytes, out);
                return Ok(());
            }
            Coding::Ascii => bytes.iter().position(|b| !b.is_ascii()).unwrap_or(bytes.len()),
            Coding::Utf8 { longest: 4 } => valid_len(bytes),
            Coding::Utf8 { .. } => {
                let valid = valid_len(bytes);
                bytes[..valid].iter().position(|&b| b >= 0xf0).unwrap_or(valid)
            }
            Coding::Bytes(_) | Coding::Wide(_) | Coding::Utf16 { .. } | Coding::Utf32 => {
                return self.decode_each(bytes, out);
            }
        };
        out.extend_from_slice(&bytes[..good]);
        if good == bytes.len() { Ok(()) } else { Err(good) }
    }

    fn decode_each(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), usize> {
        let mut at = 0;
        while at < bytes.len() {
            let (c, len) = self.first(&bytes[at..]).ok_or(at)?;
            encode(c, out);
            at += len;
        }
        Ok(())
    }

    /// Returns the first character of non-empty bytes and its length.
    pub(super) fn first(self, bytes: &[u8]) -> Option<(u32, usize)> {
        match self.coding() {
            Coding::Bytes(set) => set.character(bytes[0]).map(|c| (c, 1)),
            Coding::Wide(set) => set.decode(bytes),
            Coding::Utf16 { pairs, little } => {
                let unit = |at: usize| {
                    let two = [*bytes.get(at)?, *bytes.get(at + 1)?];
                    Some(u32::from(if little { u16::from_le_bytes(two) } else { u16::from_be_bytes(two) }))
                };
                match unit(0)? {
                    high @ 0xd800..0xdc00 if pairs => match unit(2)? {
                        low @ 0xdc00..0xe000 => Some((0x1_0000 + ((high & 0x3ff) << 10 | low & 0x3ff), 4)),
                        _ => None,
                    },
                    0xd800..0xe000 if pairs => None,
                    c => Some((c, 2)),
                }
            }
            Coding::Utf32 => {
                let c = u32::from_be_bytes(*bytes.first_chunk()?);
                (c <= char::MAX.into()).then_some((c, 4))
            }
            Coding::Utf8 { .. } | Coding::Binary | Coding::Ascii | Coding::Latin1 => {
                unreachable!("these are decoded as a whole")
            }
        }
    }
}

/// Returns the length of the prefix that is valid text in memory: UTF-8 that may contain unpaired surrogates.
fn valid_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let Err(error) = std::str::from_utf8(&bytes[at..]) else { return bytes.len() };
        at += error.valid_up_to();
        match bytes[at..] {
            [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => at += 3,
            _ => return at,
        }
    }
}

/// Returns whether the bytes are valid text in memory.
pub fn is_text(bytes: &[u8]) -> bool {
    // Most text is ASCII, for which the check is faster.
    is_ascii(bytes) || valid_len(bytes) == bytes.len()
}

/// Returns whether all bytes are ASCII. The standard library's function is optimized for long texts.
fn is_ascii(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().fold(0, |seen, word| seen | u64::from_ne_bytes(*word));
    let rest = rest.iter().fold(0, |seen, byte| seen | byte);
    words & 0x8080_8080_8080_8080 == 0 && rest < 0x80
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
    fn every_set_holds_what_it_encodes() {
        let text = "aZ é€Жж中あ가😀".as_bytes();
        for charset in Charset::ALL {
            let (mut coded, mut back, mut again) = (Vec::new(), Vec::new(), Vec::new());
            let lacking = charset.encode(text, &mut coded);
            assert_eq!(charset.decode(&coded, &mut back), Ok(()), "{}", charset.name());
            assert_eq!(charset.encode(&back, &mut again), 0, "{}", charset.name());
            assert_eq!(coded, again, "{}", charset.name());
            assert_eq!(charset.check(text).is_err(), lacking > 0, "{}", charset.name());
            assert_eq!(charset.fitting(text, coded.len()), text.len(), "{}", charset.name());
            assert!(charset.fitting(text, coded.len() - 1) < text.len(), "{}", charset.name());
        }
    }

    #[test]
    fn units_of_two_and_four_bytes() {
        let coded = |charset: Charset, text: &str| {
            let mut out = Vec::new();
            charset.encode(text.as_bytes(), &mut out);
            out
        };
        assert_eq!(coded(Charset::Utf16, "a😀"), [0, 0x61, 0xd8, 0x3d, 0xde, 0]);
        assert_eq!(coded(Charset::Utf16le, "a"), [0x61, 0]);
        assert_eq!(coded(Charset::Ucs2, "a😀"), [0, 0x61, 0, 0x3f]);
        assert_eq!(coded(Charset::Utf32, "😀"), [0, 1, 0xf6, 0]);
        let mut out = Vec::new();
        assert_eq!(Charset::Utf16.decode(&[0, 0x61, 0xd8, 0x3d, 0, 0x61], &mut out), Err(2));
        assert_eq!(Charset::Ucs2.decode(&[0], &mut out), Err(0));
        out.clear();
        assert_eq!(Charset::Ucs2.decode(&[0xd8, 0x3d, 0, 0x61], &mut out), Ok(()));
        assert!(is_text(&out) && !is_text(&out[..2]));
        let mut back = Vec::new();
        assert_eq!(Charset::Utf32.encode(&out, &mut back), 0);
        assert_eq!(back, [0, 0, 0xd8, 0x3d, 0, 0, 0, 0x61]);
        assert_eq!(Charset::Utf16.encode(&out, &mut back), 1, "half a pair is no character there");
        assert_eq!(Charset::Cp1251.decode(&[0xc6, 0x98], &mut out), Err(1));
    }

    #[test]
    fn unrepresentable_characters_are_reported() {
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
