//! Password redaction: statement text for logs and process lists, without passwords, password hashes and
//! keys.
//!
//! # Concepts
//! - A *secret* is a literal after IDENTIFIED, in SET PASSWORD, after a word such as MASTER_PASSWORD, or
//!   among the arguments of a function such as PASSWORD() or AES_ENCRYPT(). A literal that contains a
//!   statement with such words is a secret, too.
//! - The lexer is the parser's. Here it continues after invalid tokens, because text that cannot be parsed is
//!   also logged, and it reads inside comments.
//! - A text is read in the mode of its session. If the mode is unknown, or if the text may change it, the
//!   text is read in every mode, and a secret in any of them is hidden.
//!
//! # In doubt
//! More is hidden than necessary. If a text that mentions passwords ends within a literal, everything from
//! its first quote on is hidden, because a missing quote swaps the inside and the outside of all literals.
//!
//! # Missing
//! The text does not reveal the purpose of variables and of the values of EXECUTE .. USING, so these are not
//! hidden.

use std::borrow::Cow;

use crate::ParseMode;
use crate::lexer::{Kind, Lexer, Token};
use crate::literal;

/// Replacement for a secret.
const HIDDEN: &[u8] = b"<secret>";

/// Words before a password, with an optional `=`, `:=` or `(` between.
const WORDS: &[&str] =
    &["PASSWORD", "OLD_PASSWORD", "MASTER_PASSWORD", "AUTHENTICATION_STRING", "CONNECTION"];

/// Functions with passwords or keys as arguments.
const FUNCTIONS: &[&str] = &[
    "PASSWORD",
    "OLD_PASSWORD",
    "ENCRYPT",
    "DES_ENCRYPT",
    "DES_DECRYPT",
    "AES_ENCRYPT",
    "AES_DECRYPT",
    "ENCODE",
    "DECODE",
    "KDF",
];

/// Substrings of all these words, in lower case. They make an unreadable text suspect.
const WORDS_ANYWHERE: &[&[u8]] =
    &[b"password", b"identified", b"authentication_string", b"connection", b"crypt", b"code", b"kdf"];

/// Maximum nesting of comments within texts within comments that is searched.
const DEPTH_MAX: usize = 4;

/// Returns the text with each secret replaced by `<secret>` in the literal's quotes. `mode` is `None` if the
/// session of the text is unknown.
pub fn without_secrets(sql: &[u8], mode: Option<ParseMode>) -> Cow<'_, [u8]> {
    let secrets = secret_literals(sql, mode);
    if secrets.is_empty() {
        return Cow::Borrowed(sql);
    }
    let (mut out, mut at) = (Vec::with_capacity(sql.len()), 0);
    for (start, end) in secrets {
        out.extend_from_slice(&sql[at..start]);
        let quote = sql[start..end].iter().find(is_quote);
        out.extend(quote);
        out.extend_from_slice(HIDDEN);
        out.extend(quote);
        at = end;
    }
    out.extend_from_slice(&sql[at..]);
    Cow::Owned(out)
}

/// Returns the error message of a statement. Its quoted part is hidden if the statement has secrets.
pub fn message_without_secrets<'m>(message: &'m str, sql: &[u8], mode: Option<ParseMode>) -> Cow<'m, str> {
    let (Some(first), Some(last)) = (message.find(['\'', '"']), message.rfind(['\'', '"'])) else {
        return Cow::Borrowed(message);
    };
    if !speaks_of_passwords(message.as_bytes()) && secret_literals(sql, mode).is_empty() {
        return Cow::Borrowed(message);
    }
    Cow::Owned(format!("{}'<secret>'{}", &message[..first], &message[last + 1..]))
}

/// Returns the ranges of the secrets in a text, including quotes, in order.
pub fn secret_literals(sql: &[u8], mode: Option<ParseMode>) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for mode in modes(sql, mode) {
        Scan::new(sql, mode, 0).run(&mut found);
    }
    found.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::with_capacity(found.len());
    for (start, end) in found {
        match merged.last_mut() {
            Some(last) if start < last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

/// Returns the modes in which to read a text: the known one, or all that could differ.
fn modes(sql: &[u8], known: Option<ParseMode>) -> Vec<ParseMode> {
    if let Some(mode) = known.filter(|_| !has(sql, b"sql_mode")) {
        return vec![mode];
    }
    let either = |byte: u8| if sql.contains(&byte) { &[false, true][..] } else { &[false] };
    let mut modes = Vec::new();
    for no_backslash_escapes in either(b'\\') {
        for ansi_quotes in either(b'"') {
            modes.push(ParseMode {
                no_backslash_escapes: *no_backslash_escapes,
                ansi_quotes: *ansi_quotes,
                ..ParseMode::default()
            });
        }
    }
    modes
}

/// One scan of a text in one mode.
struct Scan<'t> {
    sql: &'t [u8],
    mode: ParseMode,
    depth: usize,
    lexer: Lexer<'t>,
    statement: Statement<'t>,
    /// Start of the first literal.
    first_quote: Option<usize>,
}

/// State of the current statement.
#[derive(Default)]
struct Statement<'t> {
    first_word: &'t [u8],
    last_word: &'t [u8],
    /// True if IDENTIFIED was read and its clause has not ended.
    is_identified: bool,
    /// True if the next literal is the name of a plugin.
    names_plugin: bool,
    /// True if the statement is SET PASSWORD; `is_new_password` is set after its `=`.
    sets_password: bool,
    is_new_password: bool,
    /// True if the last literal was the path of a password hash, for a function such as JSON_SET().
    follows_path: bool,
    /// True if only operators followed one of [`WORDS`].
    follows_word: bool,
    /// True if one of [`FUNCTIONS`] was the last token.
    is_function: bool,
    parentheses: usize,
    /// The open parenthesis of such a function.
    secret_parenthesis: Option<usize>,
    /// Adjacent literals, and the end of their contents.
    run: Vec<(usize, usize)>,
    run_end: Vec<u8>,
    run_is_secret: bool,
    /// True if the statement is PREPARE or EXECUTE IMMEDIATE. Then all literals and their contents are
    /// collected.
    runs_text: bool,
    literals: Vec<(usize, usize)>,
    text: Vec<u8>,
}

impl<'t> Scan<'t> {
    fn new(sql: &'t [u8], mode: ParseMode, depth: usize) -> Scan<'t> {
        Scan {
            sql,
            mode,
            depth,
            lexer: Lexer::new(sql, mode),
            statement: Statement::default(),
            first_quote: None,
        }
    }

    fn run(mut self, found: &mut Vec<(usize, usize)>) {
        let (sql, from, mut at) = (self.sql, found.len(), 0);
        loop {
            let token = self.lexer.next();
            self.comments(at, token.start, found);
            at = token.end;
            match token.kind {
                Kind::End => break,
                Kind::Invalid if self.rest(token).starts_with(b"/*") => {
                    // An unterminated comment.
                    if WORDS_ANYWHERE.iter().any(|word| has(self.rest(token), word)) {
                        found.push((token.start + 2, sql.len()));
                    }
                    break;
                }
                Kind::Invalid if is_string(self.rest(token)) => {
                    self.literal((token.start, sql.len()), found);
                    let is_about_secrets = found.len() > from || speaks_of_passwords(sql);
                    if let (Some(first), true) = (self.first_quote, is_about_secrets) {
                        found.push((first, sql.len()));
                    }
                    break;
                }
                Kind::Invalid => {
                    // An operator, the quote of a name, or the letter of an invalid x'..' or b'..'.
                    at = (token.start + 1).min(sql.len());
                    self.lexer.resume_at(at);
                }
                Kind::Text | Kind::NationalText | Kind::Hex | Kind::Bits => {
                    self.literal((token.start, token.end), found);
                }
                // A name in double quotes is a literal in other modes, and may have been meant as one.
                Kind::Quoted if sql[token.start] == b'"' => {
                    self.literal((token.start, token.end), found);
                }
                Kind::Semicolon => self.end_statement(found),
                kind => self.passes(kind, &sql[token.start..token.end]),
            }
        }
        self.end_statement(found);
    }

    fn rest(&self, token: Token) -> &'t [u8] {
        &self.sql[token.start.min(self.sql.len())..]
    }

    /// Scans the comments between two tokens as separate texts.
    fn comments(&self, from: usize, to: usize, found: &mut Vec<(usize, usize)>) {
        let mut at = from;
        while at < to {
            let rest = &self.sql[at..to];
            let (mark, end): (usize, &[u8]) = match rest {
                [b'/', b'*', ..] => (2, b"*/"),
                [b'-', b'-', ..] => (2, b"\n"),
                [b'#', ..] => (1, b"\n"),
                _ => {
                    at += 1;
                    continue;
                }
            };
            let body = &rest[mark..];
            let len = find(body, end).unwrap_or(body.len());
            let begin = at + mark;
            if self.depth < DEPTH_MAX {
                let mut inner = Vec::new();
                Scan::new(&body[..len], self.mode, self.depth + 1).run(&mut inner);
                found.extend(inner.into_iter().map(|(start, end)| (begin + start, begin + end)));
            } else if speaks_of_passwords(&body[..len]) {
                found.push((begin, begin + len));
            }
            at = begin + len;
        }
    }

    /// Processes a token that is not a literal.
    fn passes(&mut self, kind: Kind, token: &'t [u8]) {
        self.end_run();
        let it = &mut self.statement;
        let is_function = std::mem::take(&mut it.is_function);
        match kind {
            Kind::Word => it.word(token),
            Kind::LeftParen => {
                it.parentheses += 1;
                if is_function && it.secret_parenthesis.is_none() {
                    it.secret_parenthesis = Some(it.parentheses);
                }
            }
            Kind::RightParen => {
                if it.secret_parenthesis == Some(it.parentheses) {
                    it.secret_parenthesis = None;
                }
                it.parentheses = it.parentheses.saturating_sub(1);
                it.follows_word = false;
            }
            Kind::Equal | Kind::Assign => it.is_new_password |= it.sets_password,
            Kind::Comma => {
                it.follows_word = false;
                if it.parentheses == 0 {
                    (it.is_identified, it.sets_password, it.is_new_password) = (false, false, false);
                }
            }
            _ => it.follows_word = false,
        }
    }

    fn literal(&mut self, (start, end): (usize, usize), found: &mut Vec<(usize, usize)>) {
        self.first_quote.get_or_insert(start);
        let value = value_of(&self.sql[start..end], self.mode);
        let it = &mut self.statement;
        let names_plugin = std::mem::take(&mut it.names_plugin);
        let is_argument = it.secret_parenthesis.is_some();
        let is_secret = (it.is_identified && !names_plugin)
            || it.is_new_password
            || it.follows_word
            || it.follows_path
            || is_argument
            || it.run_is_secret;
        it.follows_word = false;
        it.follows_path = !it.follows_path && has(&value, b"authentication_string");
        it.is_function = false;
        // A word may span two adjacent literals.
        it.run_end.extend_from_slice(&value[..value.len().min(WORD_BYTES_MAX)]);
        let is_secret = is_secret || speaks_of_passwords(&value) || speaks_of_passwords(&it.run_end);
        match value.len() > WORD_BYTES_MAX {
            true => it.run_end = value[value.len() - WORD_BYTES_MAX..].to_vec(),
            false => drop(it.run_end.drain(..it.run_end.len().saturating_sub(WORD_BYTES_MAX))),
        }
        if is_secret {
            found.append(&mut it.run);
            found.push((start, end));
            it.run_is_secret = true;
        } else {
            it.run.push((start, end));
        }
        if it.runs_text {
            it.literals.push((start, end));
            it.text.extend_from_slice(&value);
        }
    }

    /// Ends a sequence of adjacent literals.
    fn end_run(&mut self) {
        let it = &mut self.statement;
        it.run.clear();
        it.run_end.clear();
        it.run_is_secret = false;
    }

    fn end_statement(&mut self, found: &mut Vec<(usize, usize)>) {
        let it = std::mem::take(&mut self.statement);
        if !it.runs_text {
            return;
        }
        let has_secrets = || {
            let mut inner = Vec::new();
            Scan::new(&it.text, self.mode, self.depth + 1).run(&mut inner);
            !inner.is_empty()
        };
        if speaks_of_passwords(&it.text) || self.depth >= DEPTH_MAX || has_secrets() {
            found.extend(it.literals);
        }
    }
}

/// Length of the longest word searched in literals.
const WORD_BYTES_MAX: usize = 10;

impl<'t> Statement<'t> {
    fn word(&mut self, word: &'t [u8]) {
        if self.first_word.is_empty() {
            self.first_word = word;
        }
        let is = |words: &[&str]| words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
        let last_was = |known: &str| self.last_word.eq_ignore_ascii_case(known.as_bytes());
        self.names_plugin = is(&["VIA", "WITH", "OR"]);
        self.follows_word = is(WORDS);
        self.is_function = is(FUNCTIONS);
        // SET PASSWORD may be a statement of a body. A column of UPDATE is not meant.
        let first_is = |known: &str| self.first_word.eq_ignore_ascii_case(known.as_bytes());
        let follows_set = first_is("SET") || last_was("SET") && !first_is("UPDATE");
        self.sets_password |= is(&["PASSWORD"]) && follows_set || is(&["FOR"]) && last_was("PASSWORD");
        self.runs_text |= is(&["PREPARE"]) && (self.first_word == word || last_was("FOR"));
        self.runs_text |= is(&["IMMEDIATE"]) && last_was("EXECUTE");
        if is(&["IDENTIFIED"]) {
            self.is_identified = true;
        } else if is(&["REQUIRE", "ACCOUNT"]) {
            self.is_identified = false;
        }
        self.last_word = word;
    }
}

/// Returns whether the text starts with a string.
fn is_string(text: &[u8]) -> bool {
    matches!(text, [b'\'' | b'"', ..] | [b'n' | b'N', b'\'', ..])
}

fn is_quote(byte: &&u8) -> bool {
    matches!(byte, b'\'' | b'"')
}

/// Returns the contents of a literal, as far as needed to search for words.
fn value_of(token: &[u8], mode: ParseMode) -> Cow<'_, [u8]> {
    match token {
        [b'x' | b'X', b'\'', digits @ .., b'\''] | [b'0', b'x', digits @ ..] => Cow::Owned(unhex(digits)),
        [b'n' | b'N', quoted @ ..] if quoted.first().is_some_and(|byte| is_quote(&byte)) => {
            unescaped(quoted, mode)
        }
        quoted => unescaped(quoted, mode),
    }
}

fn unescaped(quoted: &[u8], mode: ParseMode) -> Cow<'_, [u8]> {
    let is_whole = quoted.len() >= 2 && quoted.first() == quoted.last();
    let inner = &quoted[quoted.len().min(1)..quoted.len() - usize::from(is_whole)];
    let quote = quoted.first().copied().unwrap_or(0);
    if !inner.contains(&b'\\') && !inner.contains(&quote) {
        return Cow::Borrowed(inner);
    }
    match is_whole {
        true => Cow::Owned(literal::text(quoted, mode)),
        false => Cow::Owned(inner.iter().copied().filter(|byte| *byte != b'\\').collect()),
    }
}

fn unhex(digits: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
    digits.rchunks(2).rev().map(|pair| pair.iter().fold(0, |value, byte| value << 4 | digit(*byte))).collect()
}

fn speaks_of_passwords(text: &[u8]) -> bool {
    has(text, b"password") || has(text, b"identified") || has(text, b"authentication_string")
}

/// Returns whether a text contains a word in any case. `word` is in lower case.
fn has(text: &[u8], word: &[u8]) -> bool {
    let mut starts = text.iter().enumerate().filter(|(_, byte)| **byte | 0x20 == word[0]);
    starts.any(|(at, _)| text[at..].get(..word.len()).is_some_and(|w| w.eq_ignore_ascii_case(word)))
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Option<ParseMode> = Some(ParseMode {
        ansi_quotes: false,
        pipes_as_concat: false,
        no_backslash_escapes: false,
        empty_string_is_null: false,
        high_not_precedence: false,
        ignore_space: false,
        oracle: false,
        real_as_float: false,
    });

    fn masked(sql: &str, mode: Option<ParseMode>) -> String {
        let (mut out, mut at) = (String::new(), 0);
        for (start, end) in secret_literals(sql.as_bytes(), mode) {
            out.push_str(&sql[at..start]);
            out.push('#');
            at = end;
        }
        out + &sql[at..]
    }

    #[test]
    fn no_log_shows_a_password() {
        for (sql, expected) in [
            (
                "create user a@'h' identified by 's' 't' require issuer 'i', b identified by password '*0'",
                "create user a@'h' identified by # # require issuer 'i', b identified by password #",
            ),
            (
                "alter user a identified via x or y using password('s')",
                "alter user a identified via x or y using password(#)",
            ),
            (
                "alter user a identified via 'x' using 'h' or y as 'g'",
                "alter user a identified via 'x' using # or y as #",
            ),
            ("alter user u /* it's */ identified by 's'", "alter user u /* it's */ identified by #"),
            ("alter user u \\ identified \\ by 's'", "alter user u \\ identified \\ by #"),
            ("alter user u /*!50000 identified by 's' */", "alter user u /*!50000 identified by # */"),
            ("alter user u /*!999999 identified by 's' */", "alter user u /*!999999 identified by # */"),
            ("select 1 /* grant x to u identified by 's' */", "select 1 /* grant x to u identified by # */"),
            ("select 1 -- set password = 's'\n, 'a'", "select 1 -- set password = #\n, 'a'"),
            ("alter user u /* identified by 's'", "alter user u /*#"),
            ("alter user u x'0g identified by 's'", "alter user u x#"),
            ("set password for 'a'@'b' = password(\"s\")", "set password for 'a'@'b' = password(#)"),
            ("SET  PASSWORD  FOR z := 's'", "SET  PASSWORD  FOR z := #"),
            (
                "set autocommit = 1, password = concat('s', 't')",
                "set autocommit = 1, password = concat(#, #)",
            ),
            (
                "create procedure p() begin if 1 then set password for u = 's'; end if; end",
                "create procedure p() begin if 1 then set password for u = #; end if; end",
            ),
            (
                "begin not atomic set password = concat('s', 't'); select 'a'; end",
                "begin not atomic set password = concat(#, #); select 'a'; end",
            ),
            (
                "create event e on schedule every 1 day do set @a = 'b', password for u = 's'",
                "create event e on schedule every 1 day do set @a = 'b', password for u = #",
            ),
            (
                "update u set password = 's', a = 'b' where c = 'd'",
                "update u set password = #, a = 'b' where c = 'd'",
            ),
            (
                "create table t (a int) connection = 'mysql://u:s@h/d/t' comment = 'c'",
                "create table t (a int) connection = # comment = 'c'",
            ),
            (
                "update mysql.global_priv set priv = json_set(priv, '$.authentication_string', '*0', 'b', 'c')",
                "update mysql.global_priv set priv = json_set(priv, #, #, 'b', 'c')",
            ),
            (
                "select 1 from mysql.user where authentication_string = '*0' and user = 'u'",
                "select 1 from mysql.user where authentication_string = # and user = 'u'",
            ),
            ("set statement a = 1 for set password = 's'", "set statement a = 1 for set password = #"),
            ("select 'a'; set password = 's'; select 'b'", "select 'a'; set password = #; select 'b'"),
            (
                "change master to master_host='h', master_password = 's'",
                "change master to master_host='h', master_password = #",
            ),
            ("start slave user = 'u' password = 's'", "start slave user = 'u' password = #"),
            (
                "create server s options (host 'h', password 's')",
                "create server s options (host 'h', password #)",
            ),
            ("prepare p from 'create user u identified by ''s'''", "prepare p from #"),
            ("prepare p from 'select aes_encrypt(''s'', ''k'')'", "prepare p from #"),
            ("prepare p from 'select ''a'''", "prepare p from 'select ''a'''"),
            ("execute immediate 'alter user u ident' 'ified by ''s'''", "execute immediate # #"),
            (
                "execute immediate concat('alter user u ident', 'ified by ''s''')",
                "execute immediate concat(#, #)",
            ),
            ("execute immediate 'alter user u ident\\ified by ''s'''", "execute immediate #"),
            ("execute immediate x'7365742070617373776f7264203d202773'", "execute immediate #"),
            ("set @a = 'alter user u identified by ''s'''", "set @a = #"),
            (
                "select password('s'), old_password (concat('t', 'r')), 'u'",
                "select password(#), old_password (concat(#, #)), 'u'",
            ),
            (
                "select aes_encrypt(a, 'k'), 'b', encode(upper('s'), x'41')",
                "select aes_encrypt(a, #), 'b', encode(upper(#), #)",
            ),
            ("grant usage on *.* to u identified by 'cut", "grant usage on *.* to u identified by #"),
            ("alter user o'brien identified by 's'", "alter user o#"),
            ("select 'a', \"b\" from t where c = 'd'", "select 'a', \"b\" from t where c = 'd'"),
            (
                "select 'pass', password from t where id = 'x'",
                "select 'pass', password from t where id = 'x'",
            ),
            ("select 'cut", "select 'cut"),
        ] {
            assert_eq!(masked(sql, KNOWN), expected);
        }
    }

    #[test]
    fn a_mode_that_is_not_known_hides_in_every_mode() {
        let ansi = ParseMode { ansi_quotes: true, ..ParseMode::default() };
        let plain = ParseMode { no_backslash_escapes: true, ..ParseMode::default() };
        let text = r"alter user 'a\' identified by 's', b identified by 't'";
        assert_eq!(masked(text, Some(plain)), r"alter user 'a\' identified by #, b identified by #");
        let hidden = masked(text, None);
        assert!(!hidden.contains("'s'") && !hidden.contains("'t'"), "{hidden}");
        assert_eq!(masked("set password = \"s\"; select 'a'", Some(ansi)), "set password = #; select 'a'");
        // A change of the mode by the text affects the rest of it.
        let text = r"set sql_mode = 'NO_BACKSLASH_ESCAPES'; select '\'; set password = 's' -- '";
        assert!(!masked(text, KNOWN).contains("'s'"), "{}", masked(text, KNOWN));
    }

    #[test]
    fn quotes_stay_and_messages_show_nothing() {
        let clean = |text: &str| String::from_utf8(without_secrets(text.as_bytes(), KNOWN).into_owned());
        assert_eq!(clean("set password = 'a\\'b''c'").as_deref(), Ok("set password = '<secret>'"));
        assert_eq!(clean("set password = \"x\"").as_deref(), Ok("set password = \"<secret>\""));
        let message = "You have an error near '\\ BY 'x'' at line 1";
        let sql = b"alter user u identified \\ by 'x'";
        assert_eq!(
            message_without_secrets(message, sql, KNOWN),
            "You have an error near '<secret>' at line 1"
        );
        assert_eq!(message_without_secrets(message, b"select 1", KNOWN), message);
    }

    /// For all bytes, the scan terminates, and the ranges are ordered and within the text.
    #[test]
    fn any_text_is_read_to_its_end() {
        let pieces: [&[u8]; 12] =
            [b"'", b"\"", b"`", b"\\", b"/*", b"*/", b"/*!", b"x'", b"password", b"(", b"--", b";"];
        for n in 0..pieces.len().pow(4) {
            let parts = [n % 12, n / 12 % 12, n / 144 % 12, n / 1728].map(|at| pieces[at]);
            let text = parts.concat();
            for mode in [KNOWN, None] {
                let mut at = 0;
                for (start, end) in secret_literals(&text, mode) {
                    assert!(at <= start && start <= end && end <= text.len());
                    at = end;
                }
            }
        }
    }
}
