//! Strings and numbers of JSON as MariaDB writes them in plans and traces.

use std::fmt::Write;

/// Appends a string.
pub fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => _ = write!(out, "\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Appends a list of strings on one line.
pub fn write_texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>, out: &mut String) {
    out.push('[');
    for (n, text) in texts.into_iter().enumerate() {
        out.push_str(if n == 0 { "" } else { ", " });
        write_text(text.as_ref(), out);
    }
    out.push(']');
}

/// Returns a number like MariaDB's plans.
pub fn real_text(number: f64) -> String {
    const PLACES: usize = 11;
    let whole = format!("{number:.0}");
    let text = format!("{number:.*}", PLACES.saturating_sub(whole.len() + 1));
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_eleven_places() {
        let texts = [0.0, 100.0, 93.333_333_333_3, 18.0 / 19.0, 0.129_959_124, 123_456_789.25, 1e13];
        let expected =
            ["0", "100", "93.33333333", "0.947368421", "0.129959124", "123456789.2", "10000000000000"];
        assert_eq!(texts.map(real_text), expected);
    }
}
