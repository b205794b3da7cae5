//! JSON documents. MariaDB stores them as text: numbers and strings keep their notation. Functions that
//! change or extract documents print a space after `:` and `,`.

use cohort_types::{ErrorCode, Interrupt, SqlResult};

use crate::args::Args;

/// A parsed document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// In its original notation.
    Number(Vec<u8>),
    /// In its original notation, without the quotes.
    String(Vec<u8>),
    Array(Vec<Json>),
    /// Members in order; keys in their original notation, without the quotes.
    Object(Vec<(Vec<u8>, Json)>),
}

/// The reason why a text is not a JSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonError {
    /// The text ended too early.
    Ended,
    /// A syntax error at this byte.
    Syntax(usize),
    /// Nested too deeply; the array or object at this byte exceeds the limit.
    Depth(usize),
}

/// MariaDB's limit of the nesting depth.
const DEPTH_MAX: usize = 32;

impl Json {
    /// Parses a whole document.
    pub fn parse(text: &[u8]) -> Result<Json, JsonError> {
        let mut parser = Parser { text, at: 0 };
        let json = parser.value(0)?;
        parser.skip_spaces();
        if parser.at < text.len() { Err(JsonError::Syntax(parser.at)) } else { Ok(json) }
    }

    /// Appends the text with a space after `:` and `,`.
    pub fn write_loose(&self, out: &mut Vec<u8>) {
        self.write(out, b", ", b": ");
    }

    /// Appends the text without spaces.
    pub fn write_compact(&self, out: &mut Vec<u8>) {
        self.write(out, b",", b":");
    }

    fn write(&self, out: &mut Vec<u8>, comma: &[u8], colon: &[u8]) {
        match self {
            Json::Null => out.extend_from_slice(b"null"),
            Json::Bool(v) => out.extend_from_slice(if *v { b"true" } else { b"false" }),
            Json::Number(raw) => out.extend_from_slice(raw),
            Json::String(raw) => quoted(raw, out),
            Json::Array(items) => {
                out.push(b'[');
                for (n, item) in items.iter().enumerate() {
                    if n > 0 {
                        out.extend_from_slice(comma);
                    }
                    item.write(out, comma, colon);
                }
                out.push(b']');
            }
            Json::Object(members) => {
                out.push(b'{');
                for (n, (key, value)) in members.iter().enumerate() {
                    if n > 0 {
                        out.extend_from_slice(comma);
                    }
                    quoted(key, out);
                    out.extend_from_slice(colon);
                    value.write(out, comma, colon);
                }
                out.push(b'}');
            }
        }
    }

    /// Appends the text in several lines, indented by `tab` spaces per level. Stops soon after `limit` bytes.
    pub fn write_detailed(&self, level: usize, tab: usize, limit: u64, out: &mut Vec<u8>) {
        if out.len() as u64 > limit {
            return;
        }
        let indent = |out: &mut Vec<u8>, level: usize| {
            out.push(b'\n');
            out.extend(std::iter::repeat_n(b' ', level * tab));
        };
        match self {
            Json::Array(items) if !items.is_empty() => {
                out.push(b'[');
                for (n, item) in items.iter().enumerate() {
                    if n > 0 {
                        out.push(b',');
                    }
                    indent(out, level + 1);
                    item.write_detailed(level + 1, tab, limit, out);
                }
                indent(out, level);
                out.push(b']');
            }
            Json::Object(members) => {
                out.push(b'{');
                for (n, (key, value)) in members.iter().enumerate() {
                    if n > 0 {
                        out.push(b',');
                    }
                    indent(out, level + 1);
                    quoted(key, out);
                    out.extend_from_slice(b": ");
                    if !value.is_scalar() {
                        indent(out, level + 1);
                    }
                    value.write_detailed(level + 1, tab, limit, out);
                }
                indent(out, level);
                out.push(b'}');
            }
            other => other.write_compact(out),
        }
    }

    /// Returns whether the value is neither an array nor an object.
    pub fn is_scalar(&self) -> bool {
        !matches!(self, Json::Array(_) | Json::Object(_))
    }

    /// Returns the number of elements or members; 1 for a scalar.
    pub fn len(&self) -> usize {
        match self {
            Json::Array(items) => items.len(),
            Json::Object(members) => members.len(),
            _ => 1,
        }
    }

    /// Returns the nesting depth; 1 for a scalar.
    pub fn depth(&self) -> usize {
        let below = match self {
            Json::Array(items) => items.iter().map(Json::depth).max(),
            Json::Object(members) => members.iter().map(|(_, v)| v.depth()).max(),
            _ => None,
        };
        1 + below.unwrap_or(0)
    }

    /// Returns whether two documents are equal: numbers by value, members in any order. The number of steps
    /// is at most the product of the lengths.
    pub fn equals(&self, other: &Json, interrupt: &dyn Interrupt) -> SqlResult<bool> {
        interrupt.step()?;
        Ok(match (self, other) {
            (Json::Number(a), Json::Number(b)) => number(a) == number(b),
            (Json::String(a), Json::String(b)) => unescape(a) == unescape(b),
            (Json::Array(a), Json::Array(b)) => {
                a.len() == b.len() && all(a.iter().zip(b), |(x, y)| x.equals(y, interrupt))?
            }
            (Json::Object(a), Json::Object(b)) => {
                a.len() == b.len()
                    && all(a, |(key, x)| member(b, key, |y| x.equals(y, interrupt), interrupt))?
            }
            (a, b) => a == b,
        })
    }
}

/// Returns whether all items pass a test.
pub(crate) fn all<T>(
    items: impl IntoIterator<Item = T>,
    mut test: impl FnMut(T) -> SqlResult<bool>,
) -> SqlResult<bool> {
    for item in items {
        if !test(item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether an item passes a test.
pub(crate) fn any<T>(
    items: impl IntoIterator<Item = T>,
    mut test: impl FnMut(T) -> SqlResult<bool>,
) -> SqlResult<bool> {
    Ok(!all(items, |item| Ok(!test(item)?))?)
}

/// Returns whether a member with the key passes a test.
pub(crate) fn member(
    members: &[(Vec<u8>, Json)],
    key: &[u8],
    mut test: impl FnMut(&Json) -> SqlResult<bool>,
    interrupt: &dyn Interrupt,
) -> SqlResult<bool> {
    any(members, |(name, value)| {
        interrupt.step()?;
        Ok(name == key && test(value)?)
    })
}

/// Returns the positions of all values in the text of a valid document, sorted by their start.
pub(crate) fn spans(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut found: Vec<std::ops::Range<usize>> = Vec::new();
    let mut open = Vec::new();
    let mut at = 0;
    while let Some(b) = text.get(at) {
        let start = at;
        at += 1;
        match b {
            b'{' | b'[' => {
                open.push(found.len());
                found.push(start..start);
            }
            b'}' | b']' => {
                if let Some(n) = open.pop() {
                    found[n].end = at;
                }
            }
            b'"' => {
                at = string_end(text, at);
                let rest = text[at..].trim_ascii_start();
                // This string is a key, not a value.
                if rest.first() != Some(&b':') {
                    found.push(start..at);
                }
            }
            b if b.is_ascii_alphanumeric() || *b == b'-' => {
                let more = text[at..].iter().take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b));
                at += more.count();
                found.push(start..at);
            }
            _ => {}
        }
    }
    found
}

/// Returns the position after the quote that ends a string.
fn string_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(b) = text.get(at) {
        match b {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn quoted(raw: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(raw);
    out.push(b'"');
}

/// Returns the value of a number.
pub(crate) fn number(raw: &[u8]) -> f64 {
    std::str::from_utf8(raw).ok().and_then(|t| t.parse().ok()).unwrap_or(0.0)
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
}

impl Parser<'_> {
    fn skip_spaces(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Result<u8, JsonError> {
        self.skip_spaces();
        self.text.get(self.at).copied().ok_or(JsonError::Ended)
    }

    fn expect(&mut self, wanted: u8) -> Result<(), JsonError> {
        if self.peek()? != wanted {
            return Err(JsonError::Syntax(self.at));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Json, JsonError> {
        let first = self.peek()?;
        // An array or object that is too deep is rejected where it begins.
        if depth + 1 >= DEPTH_MAX && matches!(first, b'{' | b'[') {
            return Err(JsonError::Depth(self.at));
        }
        match first {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string().map(Json::String),
            b't' => self.word(b"true", Json::Bool(true)),
            b'f' => self.word(b"false", Json::Bool(false)),
            b'n' => self.word(b"null", Json::Null),
            b'-' | b'0'..=b'9' => self.number(),
            // The position of an error is that of the character's last byte.
            b => {
                let extra = match b {
                    0xC0..=0xDF => 1,
                    0xE0..=0xEF => 2,
                    0xF0.. => 3,
                    _ => 0,
                };
                Err(JsonError::Syntax(self.at + extra))
            }
        }
    }

    fn word(&mut self, word: &[u8], json: Json) -> Result<Json, JsonError> {
        for (n, wanted) in word.iter().enumerate() {
            match self.text.get(self.at + n) {
                None => return Err(JsonError::Ended),
                Some(b) if b != wanted => return Err(JsonError::Syntax(self.at + n)),
                Some(_) => {}
            }
        }
        self.at += word.len();
        Ok(json)
    }

    fn digits(&mut self) -> Result<usize, JsonError> {
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        match self.at - start {
            0 if self.at >= self.text.len() => Err(JsonError::Ended),
            0 => Err(JsonError::Syntax(self.at)),
            count => Ok(count),
        }
    }

    fn number(&mut self) -> Result<Json, JsonError> {
        let start = self.at;
        if self.text[self.at] == b'-' {
            self.at += 1;
        }
        let leading_zero = self.text.get(self.at) == Some(&b'0');
        if self.digits()? > 1 && leading_zero {
            return Err(JsonError::Syntax(start + 1));
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            // Digits after the point are optional.
            if self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
                self.digits()?;
            }
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.text.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Json::Number(self.text[start..self.at].to_vec()))
    }

    fn string(&mut self) -> Result<Vec<u8>, JsonError> {
        self.at += 1;
        let start = self.at;
        loop {
            match self.text.get(self.at) {
                None => return Err(JsonError::Ended),
                Some(b'"') => break,
                Some(b'\\') => {
                    match self.text.get(self.at + 1) {
                        None => return Err(JsonError::Ended),
                        Some(b'u') => self.at += self.unicode(self.at + 2)?,
                        // Any other character stands for itself.
                        Some(b) if *b >= 0x20 => {}
                        Some(_) => return Err(JsonError::Syntax(self.at + 1)),
                    }
                    self.at += 2;
                }
                Some(b) if *b < 0x20 => return Err(JsonError::Syntax(self.at)),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(self.text[start..self.at - 1].to_vec())
    }

    /// Returns the number of bytes of `XXXX`, or of a surrogate pair, after the leading `\u`.
    fn unicode(&self, at: usize) -> Result<usize, JsonError> {
        match self.unit(at).ok_or(JsonError::Syntax(at - 1))? {
            0xd800..=0xdbff if self.text.get(at + 4..at + 6) == Some(b"\\u") => match self.unit(at + 6) {
                Some(0xdc00..=0xdfff) => Ok(10),
                _ => Err(JsonError::Syntax(at + 10)),
            },
            0xd800..=0xdfff => Err(JsonError::Syntax(at + 4)),
            _ => Ok(4),
        }
    }

    fn unit(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }

    fn array(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.at += 1;
        let mut items = Vec::new();
        if self.peek()? == b']' {
            self.at += 1;
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            match self.peek()? {
                b',' => self.at += 1,
                b']' => break,
                _ => return Err(JsonError::Syntax(self.at)),
            }
        }
        self.at += 1;
        Ok(Json::Array(items))
    }

    fn object(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.at += 1;
        let mut members = Vec::new();
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(Json::Object(members));
        }
        loop {
            if self.peek()? != b'"' {
                return Err(JsonError::Syntax(self.at));
            }
            let key = self.string()?;
            self.expect(b':')?;
            members.push((key, self.value(depth + 1)?));
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => break,
                _ => return Err(JsonError::Syntax(self.at)),
            }
        }
        self.at += 1;
        Ok(Json::Object(members))
    }
}

/// Returns the text of a string, with its escapes replaced.
pub(crate) fn unescape(raw: &[u8]) -> Vec<u8> {
    if !raw.contains(&b'\\') {
        return raw.to_vec();
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        if raw[at] != b'\\' {
            out.push(raw[at]);
            at += 1;
            continue;
        }
        let escaped = raw.get(at + 1).copied().unwrap_or(b'\\');
        at += 2;
        match escaped {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => at += unescape_unicode(&raw[at.min(raw.len())..], &mut out),
            other => out.push(other),
        }
    }
    out
}

/// Appends the character of `XXXX` or of a surrogate pair, and returns the number of bytes used.
fn unescape_unicode(rest: &[u8], out: &mut Vec<u8>) -> usize {
    let unit = |from: usize| {
        let digits = rest.get(from..from + 4)?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let Some(first) = unit(0) else { return 0 };
    let pair =
        if (0xD800..0xDC00).contains(&first) && rest.get(4..6) == Some(b"\\u") { unit(6) } else { None };
    let (code, used) = match pair {
        Some(second) if (0xDC00..0xE000).contains(&second) => {
            (0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00), 10)
        }
        _ => (first, 4),
    };
    let mut buffer = [0; 4];
    let c = char::from_u32(code).unwrap_or('?');
    out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
    used
}

/// Parses argument n as a document. Returns `None` for NULL, and with a warning if it is not a document.
pub(crate) fn document(a: &Args<'_>, n: usize) -> SqlResult<Option<Json>> {
    match a.text(n)? {
        Some(text) => parsed(a, n, &text),
        None => Ok(None),
    }
}

/// Parses the text of argument n as a document. Returns `None` with a warning if it is not one.
pub(crate) fn parsed(a: &Args<'_>, n: usize, text: &[u8]) -> SqlResult<Option<Json>> {
    match Json::parse(text) {
        Ok(json) => Ok(Some(json)),
        Err(error) => {
            let (code, message) = complaint(a, n, error);
            a.ctx.warn(code, message)?;
            Ok(None)
        }
    }
}

/// Returns a function's name in messages.
pub(crate) fn shown_name(a: &Args<'_>) -> &'static str {
    match a.call.name() {
        "json_merge" => "json_merge_preserve",
        name => name,
    }
}

/// Returns the message for an invalid argument n of a call.
pub(crate) fn complaint(a: &Args<'_>, n: usize, error: JsonError) -> (ErrorCode, String) {
    complaint_of(shown_name(a), n, error)
}

/// Returns the message for an invalid argument n of the function `name`.
pub(crate) fn complaint_of(name: &str, n: usize, error: JsonError) -> (ErrorCode, String) {
    let argument = n + 1;
    match error {
        JsonError::Ended => (
            ErrorCode::JsonEos,
            format!("Unexpected end of JSON text in argument {argument} to function '{name}'"),
        ),
        JsonError::Syntax(at) => (
            ErrorCode::JsonSyntax,
            format!(
                "Syntax error in JSON text in argument {argument} to function '{name}' at position {}",
                at + 1
            ),
        ),
        JsonError::Depth(at) => (
            ErrorCode::JsonDepth,
            format!(
                "Limit of {DEPTH_MAX} on JSON nested structures depth is reached in argument {argument} to function '{name}' at position {}",
                at + 1
            ),
        ),
    }
}
