//! Statement text in character sets that differ from ASCII.
//!
//! In swe7 some ASCII bytes are letters: `\` is `Ö`. In ujis and armscii8 some non-ASCII codes are ASCII
//! characters: `a1 c0` is a backslash, `ff` an apostrophe. MariaDB's lexer works on bytes, and clients escape
//! bytes. This module therefore finds the literals in the original bytes, and then converts them to UTF-8
//! with such characters escaped. Between literals only an ASCII byte counts as an ASCII character.

use cohort_types::Charset;

use crate::ParseMode;
use crate::lexer::{Kind, Lexer};

/// Converts a statement in such a set to UTF-8. Returns `None` if it is invalid in the set.
pub fn decode_literals(sql: &[u8], charset: Charset, mode: ParseMode) -> Option<Vec<u8>> {
    let (mut lexer, mut out, mut at) = (Lexer::new(sql, mode), Vec::with_capacity(2 * sql.len()), 0);
    loop {
        let token = lexer.next();
        let quote = match token.kind {
            Kind::Text => token.start,
            Kind::NationalText => token.start + 1,
            Kind::End | Kind::Invalid => break,
            _ => continue,
        };
        decode_signs(&sql[at..quote], charset, &mut out)?;
        let mut literal = Literal { charset, mode, quote: sql[quote], out: &mut out };
        literal.decode(&sql[quote..token.end])?;
        at = token.end;
    }
    decode_signs(&sql[at..], charset, &mut out)?;
    Some(out)
}

fn put(c: u32, out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(char::from_u32(c)?.encode_utf8(&mut [0; 4]).as_bytes());
    Some(())
}

/// Converts the text between literals.
fn decode_signs(mut rest: &[u8], charset: Charset, out: &mut Vec<u8>) -> Option<()> {
    while let Some(&byte) = rest.first() {
        let (c, len) = if byte.is_ascii() { (byte.into(), 1) } else { charset.first_character(rest)? };
        match byte.is_ascii() || c >= 0x80 {
            true => put(c, out)?,
            false => out.extend_from_slice(&rest[..len]),
        }
        rest = &rest[len..];
    }
    Some(())
}

/// Output of a literal.
struct Literal<'o> {
    charset: Charset,
    mode: ParseMode,
    quote: u8,
    out: &'o mut Vec<u8>,
}

impl Literal<'_> {
    /// Converts the token of a literal, including its quotes.
    fn decode(&mut self, token: &[u8]) -> Option<()> {
        let mut rest = &token[1..token.len() - 1];
        self.out.push(self.quote);
        while let Some(&byte) = rest.first() {
            if byte == self.quote {
                rest = &rest[2..];
                self.put(byte.into())?;
                continue;
            }
            if byte == b'\\' && !self.mode.no_backslash_escapes {
                rest = &rest[1..];
                let (c, len) = self.charset.first_character(rest)?;
                match c == u32::from(rest[0]) {
                    true => self.out.extend_from_slice(&[b'\\', rest[0]]),
                    false => self.put(c)?,
                }
                rest = &rest[len..];
                continue;
            }
            let (c, len) = self.charset.first_character(rest)?;
            self.put(c)?;
            rest = &rest[len..];
        }
        self.out.push(self.quote);
        Some(())
    }

    /// Appends a character of the literal's value, escaped if necessary.
    fn put(&mut self, c: u32) -> Option<()> {
        if c == u32::from(self.quote) || (c == u32::from(b'\\') && !self.mode.no_backslash_escapes) {
            self.out.push(c as u8);
        }
        put(c, self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(charset: Charset, sql: &[u8]) -> String {
        let text = decode_literals(sql, charset, ParseMode::default()).expect("text");
        String::from_utf8(text).expect("UTF-8")
    }

    #[test]
    fn a_character_that_is_a_sign_stays_in_its_literal() {
        assert_eq!(decoded(Charset::Ujis, b"'\xa1\xc0\\' \xa4\xa2' a"), r"'\\\' あ' a");
        assert_eq!(decoded(Charset::Ujis, b"'\\\xa1\xc0' \"\\\xa4\xa2\""), r#"'\\' "あ""#);
        assert_eq!(decoded(Charset::Armscii8, b"'\xff', \"\xff\xb2''\""), "'''', \"'Ա''\"");
        assert_eq!(decoded(Charset::Swe7, br"'\'[]' `@` N'\\{\n'''"), r"'\'ÄÅ' `@` N'Öä\n'''");
        let mode = ParseMode { no_backslash_escapes: true, ..ParseMode::default() };
        let text = |charset, sql| decode_literals(sql, charset, mode);
        assert_eq!(text(Charset::Swe7, br"'\' '\\'"), Some("'Ö' 'ÖÖ'".into()));
        assert_eq!(text(Charset::Ujis, b"'\xa1\xc0' 1"), Some(br"'\' 1".into()));
        assert_eq!(text(Charset::Armscii8, b"'\xff' 1"), Some(b"'''' 1".into()));
    }

    #[test]
    fn signs_between_literals_are_those_of_ascii() {
        assert_eq!(
            decode_literals(b"a\xff b", Charset::Armscii8, ParseMode::default()),
            Some(b"a\xff b".to_vec())
        );
        assert_eq!(
            decoded(Charset::Swe7, b"/* ' */ @a, '@' -- '\n, '@' # '@"),
            "/* ' */ @a, 'É' -- '\n, 'É' # '@"
        );
        assert_eq!(decoded(Charset::Ujis, b"\xa4\xa2 `\xa1\xa1`"), "あ `\u{3000}`");
        assert_eq!(decode_literals(b"'\xa4'", Charset::Ujis, ParseMode::default()), None);
    }

    /// Values stay in their literal for all bytes, with and without a client that knows the character set.
    #[test]
    fn no_value_leaves_its_literal() {
        let bytes = [b'\\', b'\'', b'a', 0xa1, 0xc0, 0xff, 0x8f, b'[', b'"'];
        for charset in [Charset::Ujis, Charset::Armscii8, Charset::Swe7] {
            for n in 0..bytes.len().pow(4) {
                let value = [n % 9, n / 9 % 9, n / 81 % 9, n / 729].map(|at| bytes[at]);
                let escape =
                    |byte| if matches!(byte, b'\\' | b'\'') { vec![b'\\', byte] } else { vec![byte] };
                let escaped = value.into_iter().flat_map(escape).collect::<Vec<_>>();
                let statement = [b"'", &*escaped, b"' tail"].concat();
                let Some(text) = decode_literals(&statement, charset, ParseMode::default()) else { continue };
                let token = Lexer::new(&text, ParseMode::default()).next();
                assert_eq!(
                    (token.kind, &text[token.end..]),
                    (Kind::Text, &b" tail"[..]),
                    "{charset:?} {value:x?}"
                );
                let mut utf8 = Vec::new();
                if charset.decode(&value, &mut utf8).is_ok() {
                    let held = crate::literal::text(&text[..token.end], ParseMode::default());
                    assert_eq!(held, utf8, "{charset:?} {value:x?}");
                }
            }
        }
    }
}
