//! Output text for a given style: names, strings and constants.

use std::fmt::{Arguments, Write};

use cohort_types::{Charset, Collation, Value};

use crate::ast::{Literal, LiteralKind, ObjectName};

/// Settings under which the text will be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Collation of strings without an introducer.
    pub collation: Collation,
    /// Quote of names: a backquote, or `"` under ANSI_QUOTES.
    pub quote: char,
    /// True if names are quoted only if necessary.
    pub bare: bool,
}

impl Default for Style {
    fn default() -> Style {
        Style { collation: Collation::UTF8MB4_GENERAL_CI, quote: '`', bare: false }
    }
}

impl Style {
    /// Returns the default style with this collation of strings.
    pub fn of(collation: Collation) -> Style {
        Style { collation, ..Style::default() }
    }

    /// Quotes a name, with quotes inside it doubled.
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

    /// Quotes an object's name: `` `db`.`name` `` or `` `name` ``.
    pub fn object(self, object: &ObjectName) -> String {
        match &object.db {
            Some(db) => format!("{}.{}", self.name(db), self.name(&object.name)),
            None => self.name(&object.name),
        }
    }

    /// Quotes names: `` `a`,`b` ``.
    pub(crate) fn names(self, names: &[String]) -> String {
        names.iter().map(|name| self.name(name)).collect::<Vec<_>>().join(",")
    }
}

/// Returns whether a name needs no quotes.
pub(crate) fn is_plain(name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    !name.is_empty()
        && name.chars().all(is_word)
        && !name.chars().all(|c| c.is_ascii_digit())
        && !crate::parser::is_reserved(name)
}

/// A text and its style.
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

/// Returns `'text'` with quotes and backslashes escaped, as in SHOW CREATE TABLE and in statements of the
/// binlog.
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

/// Writes a constant, so that parsing it returns the same value with the same type and collation.
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

/// Writes a string. An introducer precedes it if the source had one or if the string would be parsed with
/// another character set. Bytes that are not valid text are written in hexadecimal.
fn write_string(bytes: &[u8], collation: Collation, is_introduced: bool, out: &mut Text) {
    let charset = collation.charset();
    let is_own = charset == out.style.collation.charset();
    if is_introduced || !is_own {
        push(out, format_args!("_{}", charset.name()));
        // The bytes between the quotes are in the string's character set.
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
