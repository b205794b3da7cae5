//! Values in the texts of errors, as MariaDB 10.11 shows them.

use cohort_base::whole_chars;

/// Formats a value for an error text. Bytes that are not text, and control characters, become `\xHH`;
/// characters outside the Basic Multilingual Plane become `?`.
pub fn printable(value: &[u8]) -> String {
    let mut text = String::with_capacity(value.len());
    for chunk in value.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_ascii_control() {
                text.push_str(&format!("\\x{:02X}", c as u32));
            } else if c > '\u{ffff}' {
                // Messages are utf8mb3.
                text.push('?');
            } else {
                text.push(c);
            }
        }
        chunk.invalid().iter().for_each(|b| text.push_str(&format!("\\x{b:02X}")));
    }
    text
}

/// Cuts a text to at most `bytes` bytes; a cut text ends in three dots.
pub fn clip(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_string();
    }
    format!("{}...", whole_chars(text, bytes.saturating_sub(3)))
}

/// Formats a value with the length limit of most messages.
pub(crate) fn clipped(value: &[u8]) -> String {
    printable_clipped(value, 128)
}

/// Formats a value for an error text, cut to `bytes` bytes.
pub(crate) fn printable_clipped(value: &[u8], bytes: usize) -> String {
    // At most four bytes of the value become one of the text.
    let read = value.len().min(4 * (bytes + 1));
    clip(&printable(&value[..read]), bytes)
}

#[cfg(test)]
mod tests {
    use crate::SqlError;

    #[test]
    fn long_and_odd_values_are_shown_as_mariadb_shows_them() {
        let long = format!("{}{}", "ä".repeat(120), "b".repeat(100));
        let text = SqlError::truncated_incorrect("INTEGER", long.as_bytes()).message;
        assert_eq!(text, format!("Truncated incorrect INTEGER value: '{}...'", "ä".repeat(62)));
        let text = SqlError::truncated_incorrect("DOUBLE", b"a\n\0\xff").message;
        assert_eq!(text, r"Truncated incorrect DOUBLE value: 'a\x0A\x00\xFF'");
    }
}
