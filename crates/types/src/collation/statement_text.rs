//! Statement text in character sets whose characters may end in an ASCII byte.
//!
//! In gbk, sjis, cp932 and big5 the second byte of a character may be a backslash or a backquote. Clients
//! escape literals by characters and by bytes: a client leaves `bf 5c`, a character of gbk, unchanged, and
//! writes `5c bf 5c 27` for `bf 27`, which is not a character. If the server split the bytes into characters
//! differently than the client, a quote inside the literal could end it. This module splits them as MariaDB's
//! lexer does: a backslash is followed by one byte, whatever comes next. A two-byte character that is a
//! backslash, such as `81 5f` in sjis, is escaped.

use super::Charset;
use super::fold;

/// The text cannot be represented for a UTF-8 lexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsafeText;

impl Charset {
    /// Returns whether a character may end in an ASCII byte.
    pub fn has_ascii_trails(self) -> bool {
        matches!(self, Charset::Gbk | Charset::Sjis | Charset::Cp932 | Charset::Big5)
    }

    /// Returns whether some ASCII bytes are other characters, or some ASCII characters have other bytes,
    /// while no character ends in an ASCII byte. A lexer must work on the original bytes of such a set.
    pub fn has_other_signs(self) -> bool {
        matches!(self, Charset::Ujis | Charset::Armscii8 | Charset::Swe7)
    }

    /// Returns the first character of bytes in a set with tables, and its length, or `None` if the bytes are
    /// invalid.
    pub fn first_character(self, bytes: &[u8]) -> Option<(u32, usize)> {
        self.first(bytes)
    }

    /// Returns whether two bytes are in the ranges of a two-byte character, assigned or not.
    fn is_pair(self, lead: u8, trail: u8) -> bool {
        match self {
            Charset::Gbk => matches!((lead, trail), (0x81..=0xfe, 0x40..=0x7e | 0x80..=0xfe)),
            Charset::Sjis | Charset::Cp932 => {
                matches!((lead, trail), (0x81..=0x9f | 0xe0..=0xfc, 0x40..=0x7e | 0x80..=0xfc))
            }
            Charset::Big5 => matches!((lead, trail), (0xa1..=0xf9, 0x40..=0x7e | 0xa1..=0xfe)),
            _ => false,
        }
    }

    /// Converts a statement in a set with ASCII trail bytes to UTF-8. Text that is invalid in the set keeps
    /// its bytes, escaped so that literals contain the same bytes. Returns an error if that is impossible.
    pub fn decode_statement(self, text: &[u8], backslash_escapes: bool) -> Result<Vec<u8>, UnsafeText> {
        let mut out = Vec::with_capacity(text.len() + text.len() / 2);
        if self.decode_text(text, backslash_escapes, &mut out) {
            return Ok(out);
        }
        out.clear();
        self.keep_bytes(text, backslash_escapes, &mut out).map(|()| out)
    }

    /// Converts the text. Returns false if some of it is invalid.
    fn decode_text(self, text: &[u8], backslash_escapes: bool, out: &mut Vec<u8>) -> bool {
        let (mut rest, mut is_escaped) = (text, false);
        while let Some(&byte) = rest.first() {
            if byte.is_ascii() {
                out.push(byte);
                rest = &rest[1..];
                is_escaped = byte == b'\\';
                match rest {
                    [next, ..] if byte == b'\\' && backslash_escapes && next.is_ascii() => {
                        out.push(*next);
                        rest = &rest[1..];
                        is_escaped = false;
                    }
                    // Not a character: the second backslash escapes the next byte.
                    [lead, b'\\', ..] if byte == b'\\' && backslash_escapes && self.is_pair(*lead, b'\\') => {
                        return false;
                    }
                    _ => {}
                }
                continue;
            }
            let Some((c, len)) = self.first(rest) else { return false };
            if c == u32::from(b'\\') && backslash_escapes && !is_escaped {
                out.push(b'\\');
            }
            fold::encode(c, out);
            (rest, is_escaped) = (&rest[len..], false);
        }
        true
    }

    fn keep_bytes(self, text: &[u8], backslash_escapes: bool, out: &mut Vec<u8>) -> Result<(), UnsafeText> {
        let mut rest = text;
        while let Some(&byte) = rest.first() {
            let taken = match rest {
                [b'\\', next, ..] if backslash_escapes => {
                    out.extend_from_slice(&[byte, *next]);
                    2
                }
                // A UTF-8 lexer would treat the second byte as the end of an identifier.
                [lead, b'`', ..] if self.is_pair(*lead, b'`') => return Err(UnsafeText),
                [lead, trail, ..] if self.is_pair(*lead, *trail) => {
                    out.extend_from_slice(&[*lead, *trail]);
                    if *trail == b'\\' && backslash_escapes {
                        out.push(b'\\');
                    }
                    2
                }
                _ => {
                    out.push(byte);
                    1
                }
            };
            rest = &rest[taken..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(charset: Charset, text: &[u8]) -> Result<Vec<u8>, UnsafeText> {
        charset.decode_statement(text, true)
    }

    #[test]
    fn text_is_decoded() {
        assert_eq!(decoded(Charset::Gbk, b"'\xd6\xd0\\'\xbf\\'"), Ok("'中\\'縗'".into()));
        assert_eq!(decoded(Charset::Sjis, b"'\x95\\\x83\\'"), Ok("'表ソ'".into()));
        assert_eq!(decoded(Charset::Gbk, b"'\\\xd6\xd0'"), Ok("'\\中'".into()));
    }

    #[test]
    fn a_byte_after_a_backslash_is_not_part_of_a_character() {
        // mysql_real_escape_string returns this for bf 27: a literal of these two bytes.
        assert_eq!(decoded(Charset::Gbk, b"'\\\xbf\\''"), Ok(b"'\\\xbf\\''".to_vec()));
        // Without backslash escapes the quote ends the literal, as the client expects.
        let text = Charset::Gbk.decode_statement(b"'\\\xbf\\'", false);
        assert_eq!(text, Ok("'\\縗'".into()));
    }

    #[test]
    fn a_backslash_of_two_bytes_escapes_nothing() {
        assert_eq!(decoded(Charset::Sjis, b"'\x81_\\' '"), Ok(br"'\\\' '".to_vec()));
        assert_eq!(decoded(Charset::Sjis, b"'\\\x81_' '"), Ok(br"'\\' '".to_vec()));
        assert_eq!(decoded(Charset::Sjis, b"'\\\\\x81_'"), Ok(br"'\\\\'".to_vec()));
        assert_eq!(Charset::Sjis.decode_statement(b"'\x81_'", false), Ok(br"'\'".to_vec()));
    }

    /// Sets in which ASCII bytes or characters have another meaning are detected as such.
    #[test]
    fn other_sets_leave_ascii_alone() {
        for charset in Charset::ALL.into_iter().filter(|charset| charset.mbminlen() == 1) {
            let mut is_other = false;
            let mut look = |bytes: &[u8]| {
                let mut utf8 = Vec::new();
                let is_ascii = charset.decode(bytes, &mut utf8).is_ok() && utf8.len() == 1 && utf8[0] < 0x80;
                is_other |= is_ascii && utf8 != bytes || bytes[0] < 0x7f && bytes.len() == 1 && utf8 != bytes;
            };
            (0..=255).for_each(|byte| look(&[byte]));
            (0x8000..=0xffff_u16).for_each(|pair| look(&pair.to_be_bytes()));
            (0x8f_8080..=0x8f_ffff_u32).for_each(|three| look(&three.to_be_bytes()[1..]));
            let is_known = charset.has_other_signs() || charset == Charset::Sjis;
            assert_eq!(is_other, is_known, "{charset:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_do_not_move_the_borders_of_others() {
        // ff is not a character. bf 5c is one, and its backslash must not escape the quote after it.
        assert_eq!(decoded(Charset::Gbk, b"'\xff\xbf\\'"), Ok(b"'\xff\xbf\\\\'".to_vec()));
        // fe 5c is an unassigned code.
        assert_eq!(decoded(Charset::Gbk, b"'\xfe\\' '"), Ok(b"'\xfe\\\\' '".to_vec()));
        let text = Charset::Gbk.decode_statement(b"'\xff\xbf\\'", false);
        assert_eq!(text, Ok(b"'\xff\xbf\\'".to_vec()));
        assert_eq!(decoded(Charset::Gbk, b"`\xbf`` '\xff'"), Err(UnsafeText));
    }

    /// Escapes a value as a client does that knows the character set.
    fn escaped(charset: Charset, value: &[u8]) -> Vec<u8> {
        let (mut out, mut rest) = (Vec::new(), value);
        while let Some(&byte) = rest.first() {
            match rest {
                [lead, trail, ..] if charset.is_pair(*lead, *trail) => {
                    out.extend_from_slice(&[*lead, *trail]);
                    rest = &rest[2..];
                    continue;
                }
                // A lead byte without a valid trail byte.
                _ if charset.is_pair(byte, b'@') => out.extend_from_slice(&[b'\\', byte]),
                [b'\\' | b'\'', ..] => out.extend_from_slice(&[b'\\', byte]),
                _ => out.push(byte),
            }
            rest = &rest[1..];
        }
        out
    }

    /// Returns the literal that a UTF-8 lexer reads at the start of the text, and the text after it.
    fn literal(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
        let (mut out, mut rest) = (Vec::new(), text.strip_prefix(b"'")?);
        loop {
            match rest {
                [b'\\', next, ..] => {
                    out.push(*next);
                    rest = &rest[2..];
                }
                [b'\'', ..] => return Some((out, &rest[1..])),
                _ => {
                    out.push(*rest.first()?);
                    rest = &rest[1..];
                }
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn no_value_leaves_its_literal(
            value in proptest::collection::vec(
                proptest::sample::select(&b"\\\\''A_~\x10\x81\x83\x95\xa1\xbf\xd0\xd6\xe0\xfe\xff"[..]),
                0..12,
            ),
        ) {
            for charset in [Charset::Gbk, Charset::Sjis, Charset::Cp932, Charset::Big5] {
                let statement = [b"'", &*escaped(charset, &value), b"' tail"].concat();
                let text = decoded(charset, &statement).expect("no backquotes");
                let (held, rest) = literal(&text).expect("the literal ends");
                let mut utf8 = Vec::new();
                let is_text = charset.decode(&value, &mut utf8).is_ok();
                proptest::prop_assert_eq!(rest, b" tail", "{:?} {:x?}", charset, value);
                proptest::prop_assert!(held == value || (is_text && held == utf8), "{:?} {:x?}", charset, value);
            }
        }
    }
}
