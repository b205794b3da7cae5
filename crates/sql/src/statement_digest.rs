//! Statement digests: the normalised text of a statement, by which statistics group statements.
//!
//! The normalised text is MariaDB's `DIGEST_TEXT`. Comments are left out, keywords are in upper case,
//! identifiers are in backquotes. Values become `?`, with their sign where it cannot be an operator. Lists of
//! values and of rows of values become one token, so that their lengths do not matter:
//!
//! | text | normalised |
//! |---|---|
//! | `1, 2` | `?, ...` |
//! | `(1)`, and `(1), (2)` | `(?)`, and `(?) /* , ... */` |
//! | `(1, 2)`, and `(1, 2), (3, 4)` | `(...)`, and `(...) /* , ... */` |
//!
//! Tokens are normalised from left to right. A new value or `)` may replace the last tokens
//! ([`Normalised::value`], [`Normalised::right_paren`]), which takes constant time. NULL is a value only as
//! an operand: MariaDB's grammar decides, here the token before it ([`Normalised::is_operand_next`]).
//!
//! As in MariaDB, the text is cut when its tokens take `max_digest_length` bytes: two for each token, and the
//! length of the name and two for each identifier.
//!
//! The hash is the MD5 of the normalised text. MariaDB hashes the numbers of its grammar's tokens instead,
//! which differ between its versions.

use std::sync::Arc;

use cohort_types::Charset;
use md5::{Digest as _, Md5};

use crate::ParseMode;
use crate::keywords::{keyword, shown};
use crate::lexer::{Kind, Lexer, Token, is_name_byte};
use crate::parser::words::bound_function;

/// Bytes of a token, for the limit.
const TOKEN_BYTES: usize = 2;

/// Normalised text of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementDigest {
    /// MD5 of the text.
    pub hash: u128,
    pub text: Arc<str>,
}

impl StatementDigest {
    /// Returns the digest of a statement that was parsed, cut at `bytes_max`.
    pub fn of(sql: &[u8], mode: ParseMode, bytes_max: usize) -> StatementDigest {
        let text = normalised(sql, mode, bytes_max);
        let hash = u128::from_be_bytes(Md5::digest(text.as_bytes()).into());
        StatementDigest { hash, text: text.into() }
    }
}

/// A normalised token.
#[derive(Clone, Copy, PartialEq)]
enum Part<'s> {
    /// A keyword or an operator.
    Word(&'static str),
    /// An identifier without quotes.
    Name(&'s [u8]),
    /// `?`
    Value,
    /// `?, ...`
    Values,
    /// `(?)`
    Row,
    /// `(?) /* , ... */`
    Rows,
    /// `(...)`
    WideRow,
    /// `(...) /* , ... */`
    WideRows,
}

/// Schemas that only name functions.
const FUNCTION_SCHEMAS: [&[u8]; 3] = [b"mariadb_schema", b"oracle_schema", b"maxdb_schema"];

/// Longest name in bytes. MariaDB shows longer ones as dots.
const NAME_BYTES_MAX: usize = 64;

/// Tokens that an expression follows, so that a sign after them is not an operator.
const BEFORE_SIGNS: &[&str] = &[
    "%", "&", "&&", "(", "*", "+", ",", "-", "/", "<<", ">>", "AND", "AT", "BETWEEN", "CASE", "DEFAULT",
    "DIV", "ELSEIF", "ENDS", "EVERY", "IF", "INTERVAL", "LIKE", "MOD", "NOT", "OR", "RETURN", "RLIKE",
    "SELECT", "STARTS", "UNTIL", "WHEN", "WHILE", "XOR", "^", "|", "||",
];

/// Words after which NULL is an attribute or part of an operator: types, attributes of columns, and IS.
const BEFORE_NULL_ATTRIBUTE: &[&str] = &[
    "ASCII",
    "AUTO_INCREMENT",
    "BINARY",
    "BIT",
    "BLOB",
    "BOOL",
    "BOOLEAN",
    "BYTE",
    "CHARACTER",
    "COMPRESSED",
    "DATE",
    "DATETIME",
    "DECIMAL",
    "END",
    "FALSE",
    "FIXED",
    "FLOAT4",
    "FLOAT8",
    "INT8",
    "INTEGER",
    "INVISIBLE",
    "IS",
    "JSON",
    "KEY",
    "LONG",
    "LONGBLOB",
    "LONGTEXT",
    "MEDIUMBLOB",
    "MEDIUMTEXT",
    "MIDDLEINT",
    "NCHAR",
    "NOW",
    "NULL",
    "NUMBER",
    "NUMERIC",
    "NVARCHAR",
    "PERSISTENT",
    "PRECISION",
    "RAW",
    "REAL",
    "SERIAL",
    "SET",
    "SIGNED",
    "SMALLINT",
    "STORED",
    "TEXT",
    "TIME",
    "TIMESTAMP",
    "TINYBLOB",
    "TINYINT",
    "TINYTEXT",
    "TRUE",
    "UNICODE",
    "UNIQUE",
    "UNSIGNED",
    "VARBINARY",
    "VARCHAR2",
    "VARCHARACTER",
    "VARYING",
    "VIRTUAL",
    "YEAR",
    "ZEROFILL",
];

fn is_in(list: &[&str], word: &str) -> bool {
    list.binary_search(&word).is_ok()
}

/// Normalised tokens so far.
struct Normalised<'s> {
    parts: Vec<Part<'s>>,
    bytes: usize,
    bytes_max: usize,
    is_full: bool,
}

impl<'s> Normalised<'s> {
    fn push(&mut self, part: Part<'s>) {
        let bytes = bytes_of(part);
        if self.bytes + bytes > self.bytes_max {
            self.is_full = true;
        }
        if !self.is_full {
            self.bytes += bytes;
            self.parts.push(part);
        }
    }

    fn pop(&mut self, count: usize) {
        for _ in 0..count {
            self.bytes -= self.parts.pop().map_or(0, bytes_of);
        }
    }

    /// Returns the last two tokens.
    fn last(&self) -> (Option<Part<'s>>, Option<Part<'s>>) {
        let from_end = |n: usize| self.parts.len().checked_sub(n).map(|place| self.parts[place]);
        (from_end(2), from_end(1))
    }

    /// Removes the signs of a number.
    fn drop_signs(&mut self) {
        while let (Some(Part::Word(before)), Some(Part::Word("+" | "-"))) = self.last()
            && is_in(BEFORE_SIGNS, before)
        {
            self.pop(1);
        }
    }

    /// Adds a value, which may continue a list.
    fn value(&mut self) {
        match self.last() {
            (Some(Part::Value | Part::Values), Some(Part::Word(","))) => {
                self.pop(2);
                self.push(Part::Values);
            }
            _ => self.push(Part::Value),
        }
    }

    /// Adds `)`, which may end a row of values.
    fn right_paren(&mut self) {
        let (one, several) = match self.last() {
            (Some(Part::Word("(")), Some(Part::Value)) => (Part::Row, Part::Rows),
            (Some(Part::Word("(")), Some(Part::Values)) => (Part::WideRow, Part::WideRows),
            _ => return self.push(Part::Word(")")),
        };
        self.pop(2);
        match self.last() {
            (Some(before), Some(Part::Word(","))) if before == one || before == several => {
                self.pop(2);
                self.push(several);
            }
            _ => self.push(one),
        }
    }

    /// Returns whether an operand comes next, so that NULL is a value.
    fn is_operand_next(&self, parts: &[Part<'s>]) -> bool {
        let Some((last, before)) = parts.split_last() else { return false };
        match last {
            Part::Word("NOT") => self.is_operand_next(before),
            Part::Word(")") => false,
            Part::Word(word) => {
                !is_in(BEFORE_NULL_ATTRIBUTE, word) || *word == "SET" && is_value_of_set(before)
            }
            _ => false,
        }
    }

    /// Adds the name after a dot. A bound function of a schema of functions is a keyword.
    fn qualified(&mut self, name: &'s [u8], rest: &[u8]) {
        let is_own = match self.last().0 {
            Some(Part::Name(schema)) => {
                FUNCTION_SCHEMAS.iter().any(|known| schema.eq_ignore_ascii_case(known))
            }
            _ => false,
        };
        let is_own = is_own && rest.starts_with(b"(");
        let function = bound_function(name).filter(|_| is_own);
        self.push(function.map_or(Part::Name(name), |function| Part::Word(shown(function))));
    }

    fn text(&self) -> String {
        let mut text = String::with_capacity(self.bytes * 3);
        for part in &self.parts {
            let word = match part {
                Part::Name(name) if name.len() > NAME_BYTES_MAX => {
                    text.push_str("...");
                    continue;
                }
                Part::Name(name) => {
                    text.push('`');
                    text.push_str(&String::from_utf8_lossy(name));
                    "`"
                }
                Part::Word(word) => word,
                Part::Value => "?",
                Part::Values => "?, ...",
                Part::Row => "(?)",
                Part::Rows => "(?) /* , ... */",
                Part::WideRow => "(...)",
                Part::WideRows => "(...) /* , ... */",
            };
            text.push_str(word);
            if *part != Part::Word("@") {
                text.push(' ');
            }
        }
        text
    }
}

/// Returns whether NULL after SET would be a value: always, but for the action of a foreign key.
fn is_value_of_set(before: &[Part<'_>]) -> bool {
    !matches!(before.last(), Some(Part::Word("DELETE" | "UPDATE")))
}

fn bytes_of(part: Part<'_>) -> usize {
    match part {
        Part::Name(name) => 2 * TOKEN_BYTES + name.len(),
        _ => TOKEN_BYTES,
    }
}

/// Returns the normalised text of a statement.
fn normalised(sql: &[u8], mode: ParseMode, bytes_max: usize) -> String {
    let mut out = Normalised { parts: Vec::new(), bytes: 0, bytes_max, is_full: false };
    let mut lexer = Lexer::new(sql, mode);
    let (mut dot_end, mut variable_start) = (None, None);
    loop {
        let token = lexer.next();
        let bytes = &sql[token.start..token.end];
        let is_after_dot = dot_end.take() == Some(token.start);
        let is_variable = variable_start.take() == Some(token.start);
        match token.kind {
            Kind::End | Kind::Invalid => break,
            _ if out.is_full => break,
            Kind::Integer | Kind::Decimal | Kind::Float | Kind::Bits => {
                out.drop_signs();
                out.value();
            }
            // MariaDB has no text for the token of x'..'.
            Kind::Hex if bytes[0] != b'0' => out.push(Part::Word("(unknown)")),
            Kind::Hex => {
                out.drop_signs();
                out.value();
            }
            Kind::Text | Kind::NationalText | Kind::Param => out.value(),
            Kind::Null => null(&mut out),
            Kind::Quoted => out.push(Part::Name(&bytes[1..bytes.len() - 1])),
            Kind::Word if is_after_dot => out.qualified(bytes, &sql[token.end..]),
            Kind::Word if is_variable => out.push(keyword(bytes).map_or(Part::Name(bytes), Part::Word)),
            Kind::Word => word(&mut out, sql, token, mode),
            Kind::AtName => {
                out.push(Part::Word("@"));
                out.value();
            }
            Kind::At => out.push(Part::Word("@")),
            Kind::AtAt => {
                out.push(Part::Word("@"));
                out.push(Part::Word("@"));
                variable_start = Some(token.end);
            }
            Kind::RightParen => out.right_paren(),
            Kind::Dot => {
                out.push(Part::Word("."));
                dot_end = Some(token.end);
            }
            kind => out.push(Part::Word(symbol(kind))),
        }
    }
    out.text()
}

fn null(out: &mut Normalised<'_>) {
    match out.is_operand_next(&out.parts) {
        true => out.value(),
        false => out.push(Part::Word("NULL")),
    }
}

/// Adds a keyword, the name of a bound function, the introducer of a character set, or an identifier.
fn word<'s>(out: &mut Normalised<'s>, sql: &'s [u8], token: Token, mode: ParseMode) {
    let bytes = &sql[token.start..token.end];
    let rest = &sql[token.end..];
    if let [b'.', next, ..] = rest
        && is_name_byte(*next)
    {
        return out.push(Part::Name(bytes));
    }
    match keyword(bytes) {
        Some("NULL") => return null(out),
        Some(word) => return out.push(Part::Word(word)),
        None => {}
    }
    let next = if mode.ignore_space { rest.trim_ascii_start() } else { rest };
    if next.first() == Some(&b'(')
        && let Some(function) = bound_function(bytes)
    {
        return out.push(Part::Word(shown(function)));
    }
    let introduced = bytes.strip_prefix(b"_").and_then(|name| std::str::from_utf8(name).ok());
    match introduced.and_then(|name| Charset::by_name(&name.to_ascii_lowercase())) {
        Some(_) => out.push(Part::Word("(_charset)")),
        None => out.push(Part::Name(bytes)),
    }
}

/// Returns the text of an operator or a separator.
fn symbol(kind: Kind) -> &'static str {
    match kind {
        Kind::LeftParen => "(",
        Kind::LeftBrace => "{",
        Kind::RightBrace => "}",
        Kind::Comma => ",",
        Kind::Semicolon => ";",
        // MariaDB has no text for this token.
        Kind::DotDot => "(unknown)",
        Kind::Colon => ":",
        Kind::Equal => "=",
        Kind::NullSafeEqual => "<=>",
        Kind::NotEqual => "!=",
        Kind::Less => "<",
        Kind::LessEqual => "<=",
        Kind::Greater => ">",
        Kind::GreaterEqual => ">=",
        Kind::Assign => ":=",
        Kind::Plus => "+",
        Kind::Minus => "-",
        Kind::Star => "*",
        Kind::Slash => "/",
        Kind::Percent => "%",
        Kind::Pipe => "|",
        Kind::PipePipe => "||",
        Kind::Ampersand => "&",
        Kind::AmpersandAmpersand => "&&",
        Kind::Caret => "^",
        Kind::Tilde => "~",
        Kind::Bang => "!",
        Kind::ShiftLeft => "<<",
        Kind::ShiftRight => ">>",
        _ => "",
    }
}
