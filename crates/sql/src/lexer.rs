//! Tokens of SQL text.
//!
//! The parser, the digest and the splitting of multi-statements share this lexer, so that all three agree on
//! the positions of literals. A token is a kind and a byte range; nothing is copied.
//!
//! Comments are skipped: `-- ` to the end of the line, `#`, `/* */`. The text inside `/*!50000 */` and
//! `/*M!100100 */` is read as if the comment marks were absent if the version is at most [`VERSION`] or, as
//! in `/*! */`, missing. As in MariaDB, `/*!` with a version from 50700 to 99999 is for MySQL and skipped;
//! `/*M!` with such a version is not. `/*M!990001` is for this server alone ([`only_here`]).
//!
//! Invalid input (an unterminated string, an unexpected byte) becomes [`Kind::Invalid`], which no grammar
//! rule accepts.

use std::ops::Range;

use crate::ParseMode;

/// The version of comments that only this server executes.
const ONLY_HERE: u32 = 990_001;

/// Returns a statement in a comment that this server executes, and that MariaDB skips. The text has no `*/`.
pub fn only_here(statement: &str) -> String {
    debug_assert!(!statement.contains("*/"), "the end of the comment");
    format!("/*M!{ONLY_HERE} {statement} */")
}

/// The version to which version comments are compared: 10.11.99.
pub(crate) const VERSION: u32 = 101_199;

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword, or an identifier without quotes.
    Word,
    /// An identifier in backquotes, or in double quotes with ANSI_QUOTES. The range includes the quotes.
    Quoted,
    /// A string, `'..'` or `".."`. The range includes the quotes.
    Text,
    /// N'..'.
    NationalText,
    /// 0x.. or x'..'.
    Hex,
    /// 0b.. or b'..'.
    Bits,
    Integer,
    Decimal,
    Float,
    /// `@name`. The range includes the `@`.
    AtName,
    /// `@` before a quoted name.
    At,
    /// `@@`.
    AtAt,
    /// `?`.
    Param,
    /// `\N`.
    Null,
    LeftParen,
    RightParen,
    LeftBrace,
    RightBrace,
    Comma,
    Semicolon,
    Dot,
    /// `..` between the bounds of a FOR loop.
    DotDot,
    /// `:` after a label.
    Colon,
    Equal,
    NullSafeEqual,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Assign,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Pipe,
    PipePipe,
    Ampersand,
    AmpersandAmpersand,
    Caret,
    Tilde,
    Bang,
    ShiftLeft,
    ShiftRight,
    /// Not a token of the language.
    Invalid,
    /// The end of the text.
    End,
}

impl Kind {
    /// Returns whether the token is a literal that [`crate::Digest`] replaces.
    pub(crate) fn is_literal(self) -> bool {
        matches!(
            self,
            Kind::Text
                | Kind::NationalText
                | Kind::Hex
                | Kind::Bits
                | Kind::Integer
                | Kind::Decimal
                | Kind::Float
        )
    }
}

/// A token: its kind and its bytes `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

/// An iterator over the tokens of a text.
pub(crate) struct Lexer<'a> {
    sql: &'a [u8],
    at: usize,
    mode: ParseMode,
    /// True if the position is inside an executed version comment.
    in_version_comment: bool,
    /// True if a version comment was found, executed or not.
    pub saw_version_comment: bool,
    /// True if the last token was a name that ends where the next token starts, or the dot after such a name.
    /// In these positions a dot is a separator, and digits start a name.
    after_name: bool,
    after_name_dot: bool,
}

/// Returns whether the byte may be part of a name.
#[inline]
pub(crate) fn is_name_byte(byte: u8) -> bool {
    CLASSES[byte as usize] & NAME != 0
}

const NAME: u8 = 1;
const SPACE: u8 = 2;
const DIGIT: u8 = 4;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        if b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80 {
            classes[byte] |= NAME;
        }
        if b.is_ascii_digit() {
            classes[byte] |= DIGIT;
        }
        if b == b' ' || (b >= 0x09 && b <= 0x0d) {
            classes[byte] |= SPACE;
        }
        byte += 1;
    }
    classes
};

impl<'a> Lexer<'a> {
    pub(crate) fn new(sql: &'a [u8], mode: ParseMode) -> Lexer<'a> {
        Lexer {
            sql,
            at: 0,
            mode,
            in_version_comment: false,
            saw_version_comment: false,
            after_name: false,
            after_name_dot: false,
        }
    }

    /// Continues at `at`, which is inside or after an invalid token.
    pub(crate) fn resume_at(&mut self, at: usize) {
        self.at = at;
        (self.after_name, self.after_name_dot) = (false, false);
    }

    #[inline]
    fn byte(&self, ahead: usize) -> u8 {
        self.sql.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Returns the next token. At the end it returns `End` in every call.
    #[inline]
    pub(crate) fn next(&mut self) -> Token {
        let before = self.at;
        if let Err(start) = self.skip_space() {
            self.at = self.sql.len();
            return Token { kind: Kind::Invalid, start, end: self.at };
        }
        let start = self.at;
        let Some(&byte) = self.sql.get(start) else {
            // An unterminated version comment is reported once.
            let is_open = std::mem::take(&mut self.in_version_comment);
            let kind = if is_open { Kind::Invalid } else { Kind::End };
            return Token { kind, start, end: start };
        };
        let adjacent = before == start;
        let after_name = self.after_name && adjacent;
        let after_name_dot = self.after_name_dot && adjacent;
        (self.after_name, self.after_name_dot) = (false, false);
        let class = CLASSES[byte as usize];
        let kind = if class & NAME != 0 {
            if class & DIGIT != 0 && !after_name_dot { self.number() } else { self.word(byte) }
        } else if byte == b'.' && after_name && self.byte(1) != b'.' {
            self.at += 1;
            self.after_name_dot = true;
            Kind::Dot
        } else {
            self.other(byte)
        };
        self.after_name = matches!(kind, Kind::Word | Kind::Quoted);
        Token { kind, start, end: self.at }
    }

    /// Skips spaces and comments. `Err` is the start of an unterminated comment.
    #[inline]
    fn skip_space(&mut self) -> Result<(), usize> {
        loop {
            while self.at < self.sql.len() && CLASSES[self.sql[self.at] as usize] & SPACE != 0 {
                self.at += 1;
            }
            match self.byte(0) {
                b'#' => self.skip_line(),
                b'-' if self.byte(1) == b'-' && (self.byte(2) <= b' ' || self.byte(2) == 0x7f) => {
                    self.skip_line();
                }
                b'/' if self.byte(1) == b'*' => self.skip_comment()?,
                b'*' if self.in_version_comment && self.byte(1) == b'/' => {
                    self.in_version_comment = false;
                    self.at += 2;
                }
                _ => return Ok(()),
            }
        }
    }

    fn skip_line(&mut self) {
        while self.at < self.sql.len() && self.sql[self.at] != b'\n' {
            self.at += 1;
        }
    }

    /// Skips a comment. The position is at `/*`.
    fn skip_comment(&mut self) -> Result<(), usize> {
        let start = self.at;
        let own = self.byte(2) == b'M' && self.byte(3) == b'!';
        if own || self.byte(2) == b'!' {
            self.saw_version_comment = true;
            self.at += if own { 4 } else { 3 };
            let digits = self.sql[self.at..].iter().take(6).take_while(|b| b.is_ascii_digit()).count();
            let version = if digits >= 5 {
                let text = &self.sql[self.at..self.at + digits];
                self.at += digits;
                text.iter().fold(0u32, |v, b| v * 10 + u32::from(b - b'0'))
            } else {
                0
            };
            let foreign = !own && (50_700..=99_999).contains(&version);
            if version <= VERSION && !foreign || own && version == ONLY_HERE {
                self.in_version_comment = true;
                return Ok(());
            }
            return self.skip_to_comment_end(1).ok_or(start);
        }
        self.at += 2;
        self.skip_to_comment_end(0).ok_or(start)
    }

    /// Moves after the `*/`, skipping at most `nested` levels of inner comments (a version comment may
    /// contain comments).
    fn skip_to_comment_end(&mut self, nested: u32) -> Option<()> {
        while self.at < self.sql.len() {
            match (self.sql[self.at], self.byte(1)) {
                (b'*', b'/') => {
                    self.at += 2;
                    return Some(());
                }
                (b'/', b'*') if nested > 0 => {
                    self.at += 2;
                    self.skip_to_comment_end(nested - 1)?;
                }
                _ => self.at += 1,
            }
        }
        None
    }

    fn skip_name(&mut self) {
        while self.at < self.sql.len() && CLASSES[self.sql[self.at] as usize] & NAME != 0 {
            self.at += 1;
        }
    }

    fn word(&mut self, first: u8) -> Kind {
        if self.byte(1) == b'\'' {
            match first {
                b'n' | b'N' => {
                    self.at += 1;
                    let kind = self.text(b'\'');
                    return if kind == Kind::Text { Kind::NationalText } else { kind };
                }
                b'x' | b'X' => return self.radix_text(Kind::Hex, |b| b.is_ascii_hexdigit()),
                b'b' | b'B' => return self.radix_text(Kind::Bits, |b| matches!(b, b'0' | b'1')),
                _ => {}
            }
        }
        self.skip_name();
        Kind::Word
    }

    /// Reads x'..' or b'..'. The position is at the letter.
    fn radix_text(&mut self, kind: Kind, digit: fn(u8) -> bool) -> Kind {
        self.at += 2;
        let start = self.at;
        while self.at < self.sql.len() && digit(self.sql[self.at]) {
            self.at += 1;
        }
        let even = kind == Kind::Bits || (self.at - start).is_multiple_of(2);
        if self.byte(0) == b'\'' && even {
            self.at += 1;
            kind
        } else {
            self.at = self.sql.len();
            Kind::Invalid
        }
    }

    /// Reads a number. The position is at a digit, or at a dot before a digit.
    fn number(&mut self) -> Kind {
        let start = self.at;
        self.skip_digits();
        let leading_zero = self.at == start + 1 && self.sql[start] == b'0';
        if leading_zero && matches!(self.byte(0), b'x' | b'b') {
            let (kind, digit): (Kind, fn(&u8) -> bool) = match self.byte(0) {
                b'x' => (Kind::Hex, |b| b.is_ascii_hexdigit()),
                _ => (Kind::Bits, |b| matches!(b, b'0' | b'1')),
            };
            let digits = self.sql[self.at + 1..].iter().take_while(|b| digit(b)).count();
            if digits > 0 && !is_name_byte(self.byte(1 + digits)) {
                self.at += 1 + digits;
                return kind;
            }
        }
        // In `1..3` the number ends before the dots.
        if self.byte(0) == b'.' && self.byte(1) != b'.' {
            self.at += 1;
            self.skip_digits();
            return if self.skip_exponent() { Kind::Float } else { Kind::Decimal };
        }
        if !is_name_byte(self.byte(0)) {
            return Kind::Integer;
        }
        if self.skip_exponent() {
            return Kind::Float;
        }
        self.skip_name();
        Kind::Word
    }

    fn skip_digits(&mut self) {
        while self.at < self.sql.len() && self.sql[self.at].is_ascii_digit() {
            self.at += 1;
        }
    }

    fn skip_exponent(&mut self) -> bool {
        if !matches!(self.byte(0), b'e' | b'E') {
            return false;
        }
        let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
        if !self.byte(1 + sign).is_ascii_digit() {
            return false;
        }
        self.at += 1 + sign;
        self.skip_digits();
        true
    }

    /// Reads a string. The position is at the opening quote.
    fn text(&mut self, quote: u8) -> Kind {
        self.at += 1;
        let escape = if self.mode.no_backslash_escapes { quote } else { b'\\' };
        loop {
            self.at += find_either(&self.sql[self.at..], quote, escape);
            match self.sql.get(self.at) {
                None => return Kind::Invalid,
                Some(&byte) if byte == quote => {
                    self.at += 1;
                    if self.byte(0) != quote {
                        return Kind::Text;
                    }
                    self.at += 1;
                }
                Some(_) => self.at = (self.at + 2).min(self.sql.len()),
            }
        }
    }

    /// Reads a quoted identifier. The position is at the opening quote.
    fn quoted(&mut self, quote: u8) -> Kind {
        self.at += 1;
        loop {
            self.at += find_either(&self.sql[self.at..], quote, quote);
            if self.at >= self.sql.len() {
                return Kind::Invalid;
            }
            self.at += 1;
            if self.byte(0) != quote {
                return Kind::Quoted;
            }
            self.at += 1;
        }
    }

    fn other(&mut self, byte: u8) -> Kind {
        match byte {
            b'\'' => self.text(byte),
            b'"' if self.mode.ansi_quotes => self.quoted(byte),
            b'"' => self.text(byte),
            b'`' => self.quoted(byte),
            b'@' => self.at_sign(),
            b'.' if self.byte(1).is_ascii_digit() => self.number(),
            b'\\' if self.byte(1) == b'N' => {
                self.at += 2;
                Kind::Null
            }
            _ => {
                let (kind, length) = self.symbol(byte);
                self.at += length;
                kind
            }
        }
    }

    fn at_sign(&mut self) -> Kind {
        self.at += 1;
        match self.byte(0) {
            b'@' => {
                self.at += 1;
                Kind::AtAt
            }
            b'\'' | b'"' | b'`' => Kind::At,
            _ => {
                while is_name_byte(self.byte(0)) || self.byte(0) == b'.' {
                    self.at += 1;
                }
                Kind::AtName
            }
        }
    }

    fn symbol(&self, byte: u8) -> (Kind, usize) {
        match (byte, self.byte(1), self.byte(2)) {
            (b'<', b'=', b'>') => (Kind::NullSafeEqual, 3),
            (b'<', b'=', _) => (Kind::LessEqual, 2),
            (b'<', b'>', _) | (b'!', b'=', _) => (Kind::NotEqual, 2),
            (b'<', b'<', _) => (Kind::ShiftLeft, 2),
            (b'>', b'=', _) => (Kind::GreaterEqual, 2),
            (b'>', b'>', _) => (Kind::ShiftRight, 2),
            (b':', b'=', _) => (Kind::Assign, 2),
            (b'|', b'|', _) => (Kind::PipePipe, 2),
            (b'&', b'&', _) => (Kind::AmpersandAmpersand, 2),
            (b'(', ..) => (Kind::LeftParen, 1),
            (b')', ..) => (Kind::RightParen, 1),
            (b'{', ..) => (Kind::LeftBrace, 1),
            (b'}', ..) => (Kind::RightBrace, 1),
            (b',', ..) => (Kind::Comma, 1),
            (b';', ..) => (Kind::Semicolon, 1),
            (b'.', next, _) if next != b'.' => (Kind::Dot, 1),
            (b'?', ..) => (Kind::Param, 1),
            (b'=', ..) => (Kind::Equal, 1),
            (b'<', ..) => (Kind::Less, 1),
            (b'>', ..) => (Kind::Greater, 1),
            (b'+', ..) => (Kind::Plus, 1),
            (b'-', ..) => (Kind::Minus, 1),
            (b'*', ..) => (Kind::Star, 1),
            (b'/', ..) => (Kind::Slash, 1),
            (b'%', ..) => (Kind::Percent, 1),
            (b'|', ..) => (Kind::Pipe, 1),
            (b'&', ..) => (Kind::Ampersand, 1),
            (b'^', ..) => (Kind::Caret, 1),
            (b'~', ..) => (Kind::Tilde, 1),
            (b'!', ..) => (Kind::Bang, 1),
            (b'.', ..) => (Kind::DotDot, 2),
            (b':', ..) => (Kind::Colon, 1),
            _ => (Kind::Invalid, 1),
        }
    }
}

/// Returns the offset of the first `a` or `b`, or the length. Compares eight bytes at a time, because string
/// literals may be long.
#[inline]
pub(crate) fn find_either(bytes: &[u8], a: u8, b: u8) -> usize {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (wide_a, wide_b) = (LOW * u64::from(a), LOW * u64::from(b));
    let has_zero = |word: u64| word.wrapping_sub(LOW) & !word & HIGH;
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        let hits = has_zero(word ^ wide_a) | has_zero(word ^ wide_b);
        if hits != 0 {
            return at + hits.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + bytes[at..].iter().position(|&byte| byte == a || byte == b).unwrap_or(bytes.len() - at)
}

/// Returns the text between two tokens without the marks of executed version comments and without the other
/// version comments.
pub(crate) fn without_version_comments(gap: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(gap.len());
    let mut at = 0;
    while at < gap.len() {
        let rest = &gap[at..];
        let mark = [&b"/*M!"[..], b"/*!"].into_iter().find(|mark| rest.starts_with(mark)).map(<[u8]>::len);
        at += match mark {
            Some(mark) => {
                let digits = rest[mark..].iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
                comment_len(rest).unwrap_or(mark + if digits >= 5 { digits } else { 0 })
            }
            None if rest.starts_with(b"*/") => 2,
            None if rest.starts_with(b"#") || rest.starts_with(b"--") => {
                let len = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                kept.extend_from_slice(&rest[..len]);
                len
            }
            None => {
                let len = if rest.starts_with(b"/*") { comment_len(rest).unwrap_or(rest.len()) } else { 1 };
                kept.extend_from_slice(&rest[..len]);
                len
            }
        };
    }
    kept
}

/// Returns a part of a statement as the server executes it: without the marks of executed version comments
/// and without the other version comments. The part starts and ends outside of tokens.
pub fn executed_text(sql: &[u8], part: Range<usize>, mode: ParseMode) -> Vec<u8> {
    let text = sql.get(part.clone()).unwrap_or_default();
    if !text.windows(2).any(|two| two == b"/*" || two == b"*/") {
        return text.to_vec();
    }
    let (mut lexer, mut kept, mut at) = (Lexer::new(sql, mode), Vec::with_capacity(text.len()), part.start);
    loop {
        let token = lexer.next();
        if matches!(token.kind, Kind::End | Kind::Invalid) || token.start >= part.end {
            break;
        }
        if token.start >= at {
            kept.extend(without_version_comments(&sql[at..token.start]));
            kept.extend_from_slice(&sql[token.start..token.end]);
            at = token.end;
        }
    }
    kept.extend(without_version_comments(&sql[at.min(part.end)..part.end]));
    kept
}

/// Returns where the comments in front of a token start.
pub fn comments_before(sql: &[u8], token: usize, mode: ParseMode) -> usize {
    let (mut lexer, mut end) = (Lexer::new(sql, mode), 0);
    loop {
        let next = lexer.next();
        if next.start >= token || matches!(next.kind, Kind::End | Kind::Invalid) {
            break;
        }
        end = next.end;
    }
    let gap = &sql[end..token];
    end + gap.len() - gap.trim_ascii_start().len()
}

/// Returns the length of a comment including nested ones, or `None` if it is unterminated.
fn comment_len(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0);
    while at + 1 < text.len() {
        match &text[at..at + 2] {
            b"/*" => (at, depth) = (at + 2, depth + 1),
            b"*/" => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(sql: &str) -> Vec<(Kind, String)> {
        let mut lexer = Lexer::new(sql.as_bytes(), ParseMode::default());
        let mut out = Vec::new();
        loop {
            let token = lexer.next();
            if token.kind == Kind::End {
                return out;
            }
            out.push((token.kind, sql[token.start..token.end].to_string()));
        }
    }

    fn check(sql: &str, expected: &[(Kind, &str)]) {
        let expected: Vec<_> = expected.iter().map(|(k, t)| (*k, t.to_string())).collect();
        assert_eq!(kinds(sql), expected, "{sql}");
    }

    #[test]
    fn numbers_and_names_that_look_like_numbers() {
        use Kind::*;
        check(
            "1 1.5 .5 1e3 1.5e-3 1. 0x1F 0b01",
            &[
                (Integer, "1"),
                (Decimal, "1.5"),
                (Decimal, ".5"),
                (Float, "1e3"),
                (Float, "1.5e-3"),
                (Decimal, "1."),
                (Hex, "0x1F"),
                (Bits, "0b01"),
            ],
        );
        check(
            "1a 1e t.1 0xg t .5",
            &[
                (Word, "1a"),
                (Word, "1e"),
                (Word, "t"),
                (Dot, "."),
                (Word, "1"),
                (Word, "0xg"),
                (Word, "t"),
                (Decimal, ".5"),
            ],
        );
    }

    #[test]
    fn strings_and_quotes() {
        use Kind::*;
        check(
            r#"'a''b' "c\"d" `e``f` N'g' x'4A' b'1'"#,
            &[
                (Text, "'a''b'"),
                (Text, r#""c\"d""#),
                (Quoted, "`e``f`"),
                (NationalText, "N'g'"),
                (Hex, "x'4A'"),
                (Bits, "b'1'"),
            ],
        );
        check("1..3", &[(Integer, "1"), (DotDot, ".."), (Integer, "3")]);
        check("a..b :c", &[(Word, "a"), (DotDot, ".."), (Word, "b"), (Colon, ":"), (Word, "c")]);
        check("'open", &[(Invalid, "'open")]);
        check(r"'open\'", &[(Invalid, r"'open\'")]);
        check("x'4'", &[(Invalid, "x'4'")]);
        check("'12345678901234567\\'x'1", &[(Text, "'12345678901234567\\'x'"), (Integer, "1")]);
    }

    #[test]
    fn comments() {
        use Kind::*;
        check(
            "1 -- x\n2 # y\n3 /* z */ 4 --5",
            &[
                (Integer, "1"),
                (Integer, "2"),
                (Integer, "3"),
                (Integer, "4"),
                (Minus, "-"),
                (Minus, "-"),
                (Integer, "5"),
            ],
        );
        check(
            "/*! 1 *//*!40101 2 */ /*!50700 3 */ /*M!100100 4 */ /*M!110000 5 */",
            &[(Integer, "1"), (Integer, "2"), (Integer, "4")],
        );
        check("/*!99999 a /* b */ c */ 1", &[(Integer, "1")]);
        check("1 /* open", &[(Integer, "1"), (Invalid, "/* open")]);
    }

    #[test]
    fn executed_texts_lack_the_marks_of_version_comments() {
        let cases = [
            ("SELECT 1", "SELECT 1"),
            ("SELECT /* a */ 1 -- /*!\n + 2", "SELECT /* a */ 1 -- /*!\n + 2"),
            ("SELECT '/*!50000 */' # */\n", "SELECT '/*!50000 */' # */\n"),
            ("/*!50003 SELECT */ /*!99999 nothing */ 2", " SELECT   2"),
            ("SELECT /*M!100100 1 /* in */ + */ 2", "SELECT  1 /* in */ +  2"),
        ];
        for (sql, expected) in cases {
            let text = executed_text(sql.as_bytes(), 0..sql.len(), ParseMode::default());
            assert_eq!(String::from_utf8_lossy(&text), expected, "{sql}");
        }
        let sql = "/*!50003 CREATE */ /*!50003 PROCEDURE p() SELECT 1 */";
        let from = sql.find("PROCEDURE").unwrap();
        let text = executed_text(sql.as_bytes(), from..sql.len() - 3, ParseMode::default());
        assert_eq!(text, b"PROCEDURE p() SELECT 1");
    }

    #[test]
    fn variables() {
        use Kind::*;
        check(
            "@a @a.b @'x' @@global.y @",
            &[
                (AtName, "@a"),
                (AtName, "@a.b"),
                (At, "@"),
                (Text, "'x'"),
                (AtAt, "@@"),
                (Word, "global"),
                (Dot, "."),
                (Word, "y"),
                (AtName, "@"),
            ],
        );
    }
}
