//! Formatting of names and statements for the audit log.

use cohort_sql::{ParseMode, secret_literals};

/// Replaces a password, including its quotes.
const MASK: &[u8] = b"*****";

/// Appends a name. Control characters, which could break the line, become `?`: a name may come from a client
/// that is not authenticated yet.
pub(super) fn put_name(line: &mut Vec<u8>, name: &str) {
    line.extend(name.bytes().map(|byte| if byte.is_ascii_control() { b'?' } else { byte }));
}

/// Appends a statement, escaped and with its passwords masked, in at most `bytes_max` bytes.
pub(super) fn put_statement(line: &mut Vec<u8>, text: &[u8], bytes_max: usize, mode: ParseMode) {
    let text = &text[..text.len().min(bytes_max)];
    let secrets = secret_literals(text, Some(mode));
    let mut secrets = secrets.into_iter().peekable();
    let (begin, mut at) = (line.len(), 0);
    while at < text.len() {
        let room = bytes_max.saturating_sub(line.len() - begin);
        if let Some((_, end)) = secrets.next_if(|(start, _)| *start == at) {
            if room < MASK.len() {
                break;
            }
            line.extend_from_slice(MASK);
            at = end;
            continue;
        }
        // Copies a run of bytes that need no escape.
        let until = secrets.peek().map_or(text.len(), |(start, _)| *start);
        let plain = text[at..until].iter().position(|byte| ESCAPES[usize::from(*byte)] != 0);
        let plain = plain.unwrap_or(until - at);
        line.extend_from_slice(&text[at..at + plain.min(room)]);
        at += plain;
        if plain >= room {
            break;
        }
        if at < until {
            if room - plain < 2 {
                break;
            }
            line.extend_from_slice(&[b'\\', ESCAPES[usize::from(text[at])]]);
            at += 1;
        }
    }
}

/// The character that follows the backslash for each byte; 0 if the byte needs no escape.
const ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    let pairs = [
        (b'\'', b'\''),
        (b'\\', b'\\'),
        (b'\n', b'n'),
        (b'\r', b'r'),
        (b'\t', b't'),
        (0, b'0'),
        (8, b'b'),
        (12, b'f'),
    ];
    let mut n = 0;
    while n < pairs.len() {
        escapes[pairs[n].0 as usize] = pairs[n].1;
        n += 1;
    }
    escapes
};

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, bytes_max: usize) -> String {
        let mut line = Vec::new();
        put_statement(&mut line, text.as_bytes(), bytes_max, ParseMode::default());
        String::from_utf8_lossy(&line).into_owned()
    }

    #[test]
    fn a_statement_is_one_line_without_passwords() {
        for (text, expected) in [
            ("select 'it\\'s'", "select \\'it\\\\\\'s\\'"),
            ("select 'a\nb\tc\rd\u{8}\u{c}\0'", "select \\'a\\nb\\tc\\rd\\b\\f\\0\\'"),
            ("create user u identified by 's'", "create user u identified by *****"),
            ("alter user u \\ identified by 's'", "alter user u \\\\ identified by *****"),
            ("set password for u := 's'", "set password for u := *****"),
        ] {
            assert_eq!(shown(text, usize::MAX), expected);
        }
    }

    #[test]
    fn the_limit_counts_what_is_written_and_cuts_no_pair() {
        assert_eq!(shown("select 'abcdefghijklmnop'", 20), "select \\'abcdefghijk");
        assert_eq!(shown("select ''''''''''''''''''", 20), "select \\'\\'\\'\\'\\'\\'");
        // A password that the limit cuts before its closing quote is masked, too.
        assert_eq!(shown("set password = 'secret'", 18), "set password = ");
        assert_eq!(shown("set password = 'secret'", 20), "set password = *****");
        assert_eq!(shown("set password = 'secret'", 22), "set password = *****");
    }

    #[test]
    fn a_name_stays_on_its_line() {
        let mut line = Vec::new();
        put_name(&mut line, "a\nb");
        assert_eq!(line, b"a?b");
    }
}
