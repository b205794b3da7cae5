//! Fast path for the statements of every transaction: BEGIN, COMMIT, ROLLBACK and the XA statements. They are
//! parsed without a list of tokens.
//!
//! A text that does not have the usual form is left to the grammar, which also reports its errors.

use crate::ast::{Begin, Completion, Statement, Xa, XaId};

/// Maximum length of a gtrid and of a bqual.
const XA_PART_BYTES_MAX: usize = 64;
/// Maximum number of digits that always fits a format id.
const FORMAT_DIGITS_MAX: usize = 9;

/// Returns the statement if it has one of the usual forms.
pub(super) fn statement(sql: &[u8]) -> Option<Statement> {
    let mut text = Text(sql);
    let word = text.word()?;
    let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
    let statement = match *word.first()? | 0x20 {
        b'x' if is(b"XA") => Statement::Xa(text.xa()?),
        b'b' if is(b"BEGIN") => Statement::Begin(Begin::default()),
        b'c' if is(b"COMMIT") => Statement::Commit(Completion::default()),
        b'r' if is(b"ROLLBACK") => Statement::Rollback(Completion::default()),
        _ => return None,
    };
    text.0.is_empty().then_some(statement)
}

/// The rest of the text. Each step also consumes the spaces after it.
struct Text<'t>(&'t [u8]);

impl<'t> Text<'t> {
    /// Consumes a word of letters. Returns `None` if there is none.
    fn word(&mut self) -> Option<&'t [u8]> {
        let bytes = self.0.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        // Any other character after it would make it another word, or a string with a prefix.
        let is_whole = self.0.get(bytes).is_none_or(|byte| *byte == b' ');
        (bytes > 0 && is_whole).then(|| self.take(bytes))
    }

    fn take(&mut self, bytes: usize) -> &'t [u8] {
        let (taken, rest) = self.0.split_at(bytes);
        let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
        self.0 = &rest[spaces..];
        taken
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.0.first() == Some(&byte);
        if is_next {
            self.take(1);
        }
        is_next
    }

    fn xa(&mut self) -> Option<Xa> {
        let verb = self.word()?;
        let is = |name: &[u8]| verb.eq_ignore_ascii_case(name);
        let xid = self.xid()?;
        Some(match *verb.first()? | 0x20 {
            b's' if is(b"START") => Xa::Start { xid, join: false, resume: false },
            b'b' if is(b"BEGIN") => Xa::Start { xid, join: false, resume: false },
            b'e' if is(b"END") => Xa::End { xid, suspend: false },
            b'p' if is(b"PREPARE") => Xa::Prepare(xid),
            b'c' if is(b"COMMIT") => Xa::Commit { xid, one_phase: self.one_phase()? },
            b'r' if is(b"ROLLBACK") => Xa::Rollback(xid),
            _ => return None,
        })
    }

    /// Consumes `ONE PHASE`, or nothing.
    fn one_phase(&mut self) -> Option<bool> {
        if self.0.is_empty() {
            return Some(false);
        }
        let is_one = self.word()?.eq_ignore_ascii_case(b"ONE");
        (is_one && self.word()?.eq_ignore_ascii_case(b"PHASE")).then_some(true)
    }

    fn xid(&mut self) -> Option<XaId> {
        let mut xid = XaId { gtrid: self.part()?, bqual: Vec::new(), format_id: 1 };
        if self.eat(b',') {
            xid.bqual = self.part()?;
            if self.eat(b',') {
                xid.format_id = self.format()?;
            }
        }
        Some(xid)
    }

    /// Consumes a plain string, or one in hexadecimal digits as the binary log contains it.
    fn part(&mut self) -> Option<Vec<u8>> {
        let is_hex = self.0.first()? | 0x20 == b'x';
        let body = self.0.get(usize::from(is_hex)..)?.strip_prefix(b"'")?;
        let end = body.iter().position(|byte| matches!(byte, b'\'' | b'\\'))?;
        let (bytes, next) = (&body[..end], body.get(end + 1));
        if body[end] != b'\'' || next.is_some_and(|byte| !matches!(byte, b' ' | b',')) {
            return None;
        }
        let part = if is_hex { from_hex(bytes)? } else { bytes.to_vec() };
        self.take(usize::from(is_hex) + 1 + end + 1);
        (part.len() <= XA_PART_BYTES_MAX).then_some(part)
    }

    fn format(&mut self) -> Option<u32> {
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_alone = self.0.get(digits).is_none_or(|byte| *byte == b' ');
        if digits == 0 || digits > FORMAT_DIGITS_MAX || !is_alone {
            return None;
        }
        let number = self.take(digits);
        Some(number.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
    }
}

fn from_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, odd) = digits.as_chunks::<2>();
    if !odd.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some((digit(*high)? * 16 + digit(*low)?) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParseOptions;
    use crate::parser::parse_by_grammar;

    /// Texts that have the usual form, and texts that resemble them.
    #[test]
    fn a_statement_is_what_the_grammar_says() {
        let quick = [
            "BEGIN",
            "begin",
            "COMMIT",
            "commit ",
            "ROLLBACK",
            "XA START 'a'",
            "xa begin 'a','b'",
            "XA END 'a' , 'b' , 7",
            "XA PREPARE ''",
            "XA  COMMIT  X'61ff',x'',12",
            "XA COMMIT 'a' ONE PHASE",
            "XA COMMIT 'a','b',0 one  phase",
            "XA ROLLBACK 'a b;c -- d'",
            "XA START '0123456789012345678901234567890123456789012345678901234567890123'",
        ];
        let slow = [
            "BEGIN WORK",
            "BEGIN NOT ATOMIC",
            "COMMIT AND CHAIN",
            "ROLLBACK TO a",
            "COMMIT;",
            " COMMIT",
            "COMMIT -- a",
            "XA",
            "XA RECOVER",
            "XA START",
            "XA START'a'",
            "XA START 'a' JOIN",
            "XA START 'a' 'b'",
            "XA START 'a''b'",
            "XA START 'a\\'b'",
            "XA START \"a\"",
            "XA START 'a",
            "XA START 'a',",
            "XA START 'a','b',",
            "XA START 'a','b',x",
            "XA START 'a','b',1x",
            "XA START 'a','b',-1",
            "XA START 'a','b',99999999999",
            "XA START X'6'",
            "XA START X'6g'",
            "XA START 0x61",
            "XA START B'1'",
            "XA START N'a'",
            "XA START a",
            "XA END 'a' SUSPEND",
            "XA COMMIT 'a' ONE",
            "XA COMMIT 'a' ONE PHASE ONE",
            "XA COMMIT 'a' TWO PHASE",
            "XA PREPARE 'a' ONE PHASE",
            "XA JUMP 'a'",
            "BEGINNING",
            "COMMIT1",
            "XA START 'a'/**/",
            "",
            "XA START '01234567890123456789012345678901234567890123456789012345678901234'",
        ];
        let options = ParseOptions::default();
        let of_grammar = |text: &str| parse_by_grammar(text.as_bytes(), &options, &mut |_| Ok(()));
        for text in quick {
            let read = statement(text.as_bytes());
            assert_eq!(read, of_grammar(text).ok().map(|parsed| parsed.statement), "{text}");
            assert!(read.is_some(), "{text}");
        }
        for text in slow {
            assert_eq!(statement(text.as_bytes()), None, "{text}");
        }
    }

    /// The other results, for example whether a plan may be cached, are also equal.
    #[test]
    fn the_quick_path_returns_what_the_grammar_returns() {
        for text in ["BEGIN", "COMMIT", "ROLLBACK", "XA START 'a'", "XA COMMIT 'a','b',3"] {
            let options = ParseOptions::default();
            let read = crate::parse(text.as_bytes(), &options).expect("a statement");
            let of_grammar = parse_by_grammar(text.as_bytes(), &options, &mut |_| Ok(()));
            // Only the memory of the tokens differs: the fast path makes no tokens.
            let of_grammar =
                of_grammar.map(|parsed| crate::Parsed { memory_bytes: read.memory_bytes, ..parsed });
            assert_eq!(Ok(read), of_grammar, "{text}");
        }
    }
}
