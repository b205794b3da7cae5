//! Texts of statements without the passwords in them.

use std::borrow::Cow;

/// The text, with `<secret>` for every string literal if it speaks of passwords: SET PASSWORD, CREATE USER,
/// ALTER USER, GRANT, CHANGE MASTER, and whatever holds such a statement as a string.
pub fn without_secrets(text: &[u8]) -> Cow<'_, [u8]> {
    let speaks_of = |word: &[u8]| text.windows(word.len()).any(|w| w.eq_ignore_ascii_case(word));
    if !speaks_of(b"password") && !speaks_of(b"identified") {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\'' | b'"' => {
                out.push(byte);
                out.extend_from_slice(b"<secret>");
                out.push(byte);
                at = literal_end(text, at);
            }
            b'`' => {
                let end = text[at + 1..].iter().position(|b| *b == b'`').map_or(text.len(), |n| at + n + 2);
                out.extend_from_slice(&text[at..end]);
                at = end;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    Cow::Owned(out)
}

/// Behind the quote that ends the literal that begins at `from`. A quote behind a backslash is taken as part
/// of it: where backslashes escape nothing, more is hidden than needed.
fn literal_end(text: &[u8], from: usize) -> usize {
    let quote = text[from];
    let mut at = from + 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            _ if byte == quote && text.get(at + 1) == Some(&quote) => at += 2,
            _ if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_literal_is_left_in_a_text_about_passwords() {
        let clean =
            |text: &str| String::from_utf8(without_secrets(text.as_bytes()).into_owned()).expect("text");
        assert_eq!(clean("SELECT 'it''s'"), "SELECT 'it''s'");
        assert_eq!(clean("SET PASSWORD = PASSWORD('a\\'b''c')"), "SET PASSWORD = PASSWORD('<secret>')");
        assert_eq!(
            clean("grant all on *.* to `u`@'h' identified by \"x\""),
            "grant all on *.* to `u`@'<secret>' identified by \"<secret>\""
        );
        assert_eq!(
            clean("CHANGE MASTER TO MASTER_PASSWORD='x', MASTER_PORT=1"),
            "CHANGE MASTER TO MASTER_PASSWORD='<secret>', MASTER_PORT=1"
        );
        assert_eq!(clean("PREPARE s FROM 'SET PASSWORD = ''x'''"), "PREPARE s FROM '<secret>'");
        assert_eq!(clean("SET PASSWORD = 'cut"), "SET PASSWORD = '<secret>'");
    }
}
