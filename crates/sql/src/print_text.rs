//! Text that is being written for a reader: names, strings and constants.

use std::fmt::{Arguments, Write};

use cohort_types::{Charset, Collation, Value};

use crate::ast::{Literal, LiteralKind, ObjectName};

/// How the reader of a text reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// The collation of strings without an introducer.
    pub collation: Collation,
    /// The mark around names: a backquote, or `"` under ANSI_QUOTES.
    pub quote: char,
    /// Names that are read without marks have none.
    pub bare: bool,
}

impl Default for Style {
    fn default() -> Style {
        Style { collation: Collation::UTF8MB4_GENERAL_CI, quote: '`', bare: false }
    }
}

impl Style {
    /// The style of a text whose strings have this collation.
    pub fn of(collation: Collation) -> Style {
        Style { collation, ..Style::default() }
    }

    /// A name with marks around it, marks within it doubled.
    pub fn name(self, name: &str) -> String {
        let quote = self.quote;
        if self.bare && is_plain(name) {
            return name.to_owned();
        }
        match name.contains(quote) {
            true => format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}"))),
            false => format!("{quote}{name}{quote}"),
        }
    }

    /// `` `db`.`name` `` or `` `name` ``.
    pub fn object(self, object: &ObjectName) -> String {
        match &object.db {
            Some(db) => format!("{}.{}", self.name(db), self.name(&object.name)),
            None => self.name(&object.name),
        }
    }

    /// `` `a`,`b` ``.
    pub(crate) fn names(self, names: &[String]) -> String {
        names.iter().map(|name| self.name(name)).collect::<Vec<_>>().join(",")
    }
}

/// Whether a name is read without marks.
pub(crate) fn is_plain(name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    !name.is_empty()
        && name.chars().all(is_word)
        && !name.chars().all(|c| c.is_ascii_digit())
        && !crate::parser::is_reserved(name)
}

/// A text with its style.
pub(crate) struct Text {
    text: String,
    pub(crate) style: Style,
}

impl Text {
    pub(crate) fn new(style: Style) -> Text {
        Text { text: String::new(), style }
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }

    pub(crate) fn name(&mut self, name: &str) {
        let name = self.style.name(name);
        self.text.push_str(&name);
    }
}

impl std::ops::Deref for Text {
    type Target = String;

    fn deref(&self) -> &String {
        &self.text
    }
}

impl std::ops::DerefMut for Text {
    fn deref_mut(&mut self) -> &mut String {
        &mut self.text
    }
}

/// Appends formatted text.
pub(crate) fn push(out: &mut String, text: Arguments<'_>) {
    out.write_fmt(text).expect("writing to a String does not fail");
}

/// `'text'` with quotes and backslashes escaped, as SHOW CREATE TABLE and the binlog's statements need it.
pub fn quoted_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for c in text.chars() {
        match c {
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\x1a' => out.push_str("\\Z"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// A constant, so that the reader gets the same value of the same type and collation.
pub(crate) fn write_literal(literal: &Literal, out: &mut Text) {
    match (&literal.value, literal.kind) {
        (Value::Null, _) => out.push_str("NULL"),
        (Value::Int(n), LiteralKind::Boolean) => out.push_str(if *n == 0 { "false" } else { "true" }),
        (Value::Int(n), _) => push(out, format_args!("{n}")),
        (Value::UInt(n), _) => push(out, format_args!("{n}")),
        (Value::Decimal(n), _) => {
            let text = n.to_string();
            // Digits alone would be an integer.
            let is_integer = text.parse::<u64>().is_ok();
            out.push_str(&text);
            out.push_str(if is_integer { "." } else { "" });
        }
        (Value::Double(n), _) => push(out, format_args!("{n:e}")),
        (Value::Str(text), LiteralKind::Hex | LiteralKind::Bit) if !text.bytes.is_empty() => {
            out.push_str("0x");
            write_hex(&text.bytes, out);
        }
        (Value::Str(text), LiteralKind::HexText | LiteralKind::Hex | LiteralKind::Bit) => {
            out.push_str("X'");
            write_hex(&text.bytes, out);
            out.push('\'');
        }
        (Value::Str(text), kind @ (LiteralKind::Date | LiteralKind::Time | LiteralKind::Timestamp)) => {
            out.push_str(match kind {
                LiteralKind::Date => "DATE",
                LiteralKind::Time => "TIME",
                _ => "TIMESTAMP",
            });
            out.push_str(&quoted_text(&String::from_utf8_lossy(&text.bytes)));
        }
        (Value::Str(text), kind) => {
            let is_given = kind == LiteralKind::Introduced;
            write_string(&text.bytes, text.collation, is_given, out);
        }
        _ => unreachable!("a literal is a number, a string or NULL"),
    }
}

/// A string; an introducer stands before it where one was written and where the reader would take the string
/// for one of another character set. Bytes that are no text for the reader are written in hexadecimal.
fn write_string(bytes: &[u8], collation: Collation, is_introduced: bool, out: &mut Text) {
    let charset = collation.charset();
    let is_own = charset == out.style.collation.charset();
    if is_introduced || !is_own {
        push(out, format_args!("_{}", charset.name()));
        // The bytes between the quotes are those of the character set.
        let mut coded = Vec::new();
        charset.encode(bytes, &mut coded);
        if coded != bytes || (charset.mbminlen() > 1 && !bytes.is_empty()) {
            out.push_str(" 0x");
            write_hex(&coded, out);
            return;
        }
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => out.push_str(&quoted_text(text)),
        Err(_) if is_introduced || !is_own => {
            out.push_str(" 0x");
            write_hex(bytes, out);
        }
        Err(_) if charset == Charset::Binary => {
            out.push_str("_binary 0x");
            write_hex(bytes, out);
        }
        Err(_) => out.push_str(&quoted_text(&String::from_utf8_lossy(bytes))),
    }
}

fn write_hex(bytes: &[u8], out: &mut String) {
    bytes.iter().for_each(|byte| push(out, format_args!("{byte:02x}")));
}
