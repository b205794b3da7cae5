//! Conversion of literal tokens to values, and of quoted names to names.

use cohort_types::{Collation, Decimal, Value};

use crate::lexer::{Kind, Token, find_either};
use crate::{ParseMode, ParseOptions};

/// Returns the value of a literal token, or `None` if it is not a literal or a number out of the range of a
/// double.
#[inline]
pub(crate) fn literal_value(sql: &[u8], token: Token, options: &ParseOptions) -> Option<Value> {
    let bytes = &sql[token.start..token.end];
    Some(match token.kind {
        Kind::Integer => return integer(bytes),
        Kind::Decimal => Value::Decimal(decimal(bytes)),
        Kind::Float => Value::Double(ascii(bytes).parse().ok().filter(|v: &f64| v.is_finite())?),
        Kind::Text => string(text(bytes, options.mode), options.collation, options.mode),
        Kind::NationalText => {
            let text = national(text(&bytes[1..], options.mode));
            string(text, Collation::UTF8MB3_GENERAL_CI, options.mode)
        }
        Kind::Hex => Value::binary(hex(digits(bytes))),
        Kind::Bits => Value::binary(bits(digits(bytes))),
        _ => return None,
    })
}

/// Converts a text to utf8mb3: each byte of a character that the set lacks becomes a question mark.
fn national(mut text: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while let Some(found) = text[at..].iter().position(|byte| *byte >= 0xF0) {
        let end = (at + found + 4).min(text.len());
        text[at + found..end].fill(b'?');
        at = end;
    }
    text
}

pub(crate) fn string(bytes: Vec<u8>, collation: Collation, mode: ParseMode) -> Value {
    if bytes.is_empty() && mode.empty_string_is_null {
        return Value::Null;
    }
    Value::Str(cohort_types::Str { bytes, collation })
}

fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("a number's token is ASCII")
}

/// Parses a number without a point as the first type that holds it: BIGINT, BIGINT UNSIGNED, DECIMAL.
#[inline]
fn integer(bytes: &[u8]) -> Option<Value> {
    let significant = if bytes[0] == b'0' { trim_zeros(bytes) } else { bytes };
    if significant.len() <= 18 {
        let value = significant.iter().fold(0i64, |v, b| v * 10 + i64::from(b - b'0'));
        return Some(Value::Int(value));
    }
    match ascii(significant).parse::<u64>() {
        Ok(value) => Some(i64::try_from(value).map_or(Value::UInt(value), Value::Int)),
        Err(_) => Some(Value::Decimal(decimal(significant))),
    }
}

fn trim_zeros(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.iter().take_while(|&&b| b == b'0').count()..]
}

/// Parses a DECIMAL. A number with too many digits becomes the largest one, as in MariaDB.
fn decimal(bytes: &[u8]) -> Decimal {
    Decimal::parse(bytes).0
}

/// Returns the digits of `0x1f`, `x'1f'`, `0b1` or `b'1'`.
fn digits(bytes: &[u8]) -> &[u8] {
    let bytes = &bytes[2..];
    bytes.strip_suffix(b"'").unwrap_or(bytes)
}

fn nibble(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        _ => byte - b'A' + 10,
    }
}

/// Converts hex digits to bytes. An odd number of digits is padded with a leading zero.
fn hex(digits: &[u8]) -> Vec<u8> {
    let (head, pairs) = digits.split_at(digits.len() % 2);
    let mut out = Vec::with_capacity(digits.len().div_ceil(2));
    out.extend(head.iter().map(|&b| nibble(b)));
    out.extend(pairs.chunks_exact(2).map(|pair| nibble(pair[0]) << 4 | nibble(pair[1])));
    out
}

/// Converts binary digits to bytes, right aligned.
fn bits(digits: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(digits.len().div_ceil(8));
    let (head, rest) = digits.split_at(digits.len() % 8);
    let byte = |group: &[u8]| group.iter().fold(0u8, |v, b| v << 1 | (b - b'0'));
    if !head.is_empty() {
        out.push(byte(head));
    }
    out.extend(rest.chunks_exact(8).map(byte));
    out
}

/// Returns the contents of a string token (with its quotes), with doubled quotes and backslash escapes
/// resolved. `\%` and `\_` are kept, because only LIKE interprets them.
pub(crate) fn text(token: &[u8], mode: ParseMode) -> Vec<u8> {
    let mut out = Vec::with_capacity(token.len() - 2);
    append_text(token, mode, &mut out);
    out
}

/// Appends the result of [`text`] to a buffer.
pub(crate) fn append_text(token: &[u8], mode: ParseMode, out: &mut Vec<u8>) {
    let quote = token[0];
    let body = &token[1..token.len() - 1];
    if find_either(body, quote, b'\\') == body.len() {
        out.extend_from_slice(body);
        return;
    }
    let mut bytes = body.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte == quote {
            bytes.next();
            out.push(quote);
        } else if byte == b'\\' && !mode.no_backslash_escapes {
            match bytes.next() {
                Some(b'0') => out.push(0),
                Some(b'b') => out.push(8),
                Some(b'n') => out.push(b'\n'),
                Some(b'r') => out.push(b'\r'),
                Some(b't') => out.push(b'\t'),
                Some(b'Z') => out.push(26),
                Some(wild @ (b'%' | b'_')) => out.extend([b'\\', wild]),
                Some(other) => out.push(other),
                None => {}
            }
        } else {
            out.push(byte);
        }
    }
}

/// Returns the name of a quoted identifier's token.
pub(crate) fn unquote_name(token: &[u8]) -> String {
    let quote = char::from(token[0]);
    let body = String::from_utf8_lossy(&token[1..token.len() - 1]);
    if body.contains(quote) {
        body.replace(&format!("{quote}{quote}"), &quote.to_string())
    } else {
        body.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::Lexer;

    fn value(sql: &str) -> Option<Value> {
        let token = Lexer::new(sql.as_bytes(), ParseMode::default()).next();
        literal_value(sql.as_bytes(), token, &ParseOptions::default())
    }

    #[test]
    fn numbers_take_the_narrowest_type() {
        assert_eq!(value("0"), Some(Value::Int(0)));
        assert_eq!(value("007"), Some(Value::Int(7)));
        assert_eq!(value("9223372036854775807"), Some(Value::Int(i64::MAX)));
        assert_eq!(value("9223372036854775808"), Some(Value::UInt(1 << 63)));
        assert_eq!(value("18446744073709551615"), Some(Value::UInt(u64::MAX)));
        assert!(matches!(value("18446744073709551616"), Some(Value::Decimal(_))));
        assert!(matches!(value("1.50"), Some(Value::Decimal(_))));
        assert_eq!(value("1e3"), Some(Value::Double(1000.0)));
        assert_eq!(value("1e999"), None);
    }

    #[test]
    fn strings() {
        assert_eq!(value(r"'a\'b\\c\n\%\q'"), Some(Value::text("a'b\\c\n\\%q")));
        assert_eq!(value("'it''s'"), Some(Value::text("it's")));
        assert_eq!(value("0xABC"), Some(Value::binary([0x0a, 0xbc])));
        assert_eq!(value("x'4a4B'"), Some(Value::binary(*b"JK")));
        assert_eq!(value("b'100000001'"), Some(Value::binary([1, 1])));
        assert_eq!(value("x''"), Some(Value::binary([])));
        assert_eq!(unquote_name(b"`a``b`"), "a`b");
    }
}
