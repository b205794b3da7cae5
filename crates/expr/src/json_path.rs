//! JSON paths: `$.key[0].*`, `$**.key`, `$[last]`, `$[1 to 3]`.

use std::collections::HashSet;

use cohort_types::{ErrorCode, Interrupt, SqlResult};

use crate::args::Args;
use crate::json::{Json, unescape};

/// A step of a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// `.key`.
    Key(Vec<u8>),
    /// `.*`.
    AnyKey,
    /// `[n]`, `[-n]`, `[last-n]`.
    Index(Index),
    /// `[n to m]`.
    Range(Index, Index),
    /// `[*]`.
    AnyIndex,
    /// `**`.
    Deep,
}

/// A position in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    /// Counted from the start.
    First(usize),
    /// Counted from the end; 0 is the last element.
    Last(usize),
}

impl Index {
    /// Returns the position in an array of `len` elements, `None` if it is before the first.
    pub fn resolve(self, len: usize) -> Option<usize> {
        match self {
            Index::First(n) => Some(n),
            Index::Last(n) => len.checked_sub(n + 1),
        }
    }
}

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path {
    pub steps: Vec<Step>,
}

/// A syntax error in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathError {
    Ended,
    /// Position of the error in bytes.
    Syntax(usize),
}

impl Path {
    /// Parses a path.
    pub fn parse(text: &[u8]) -> Result<Path, PathError> {
        let mut parser = Parser { text, at: 0 };
        parser.skip_spaces();
        // The mode words of the SQL standard have no effect in MariaDB.
        for mode in [&b"lax"[..], b"strict"] {
            if parser.text[parser.at..].starts_with(mode) {
                parser.at += mode.len();
                parser.skip_spaces();
            }
        }
        if parser.next()? != b'$' {
            return Err(PathError::Syntax(parser.at - 1));
        }
        let mut steps = Vec::new();
        loop {
            if parser.at >= text.len() {
                return Ok(Path { steps });
            }
            steps.push(parser.step()?);
        }
    }

    /// Returns true if the path may match several values.
    pub fn is_wild(&self) -> bool {
        self.steps.iter().any(|s| matches!(s, Step::AnyKey | Step::AnyIndex | Step::Range(..) | Step::Deep))
    }

    /// Returns all matching values in document order without duplicates.
    pub fn find<'j>(&self, root: &'j Json, interrupt: &dyn Interrupt) -> SqlResult<Vec<&'j Json>> {
        self.find_members(root, Members::First, interrupt)
    }

    /// Variant that matches all members of a duplicate name: JSON_VALUE and JSON_QUERY take the first
    /// suitable one.
    pub fn find_every<'j>(&self, root: &'j Json, interrupt: &dyn Interrupt) -> SqlResult<Vec<&'j Json>> {
        self.find_members(root, Members::Every, interrupt)
    }

    fn find_members<'j>(
        &self,
        root: &'j Json,
        members: Members,
        interrupt: &dyn Interrupt,
    ) -> SqlResult<Vec<&'j Json>> {
        let mut found = vec![root];
        for step in &self.steps {
            let mut next = Vec::new();
            for json in found {
                interrupt.step()?;
                match step {
                    Step::Deep => deep(json, &mut next, interrupt)?,
                    step => select(json, step, members, &mut next),
                }
            }
            if *step == Step::Deep {
                // Nested values have descendants in common. Without this, each further `**` step would
                // multiply their number.
                let mut known = HashSet::with_capacity(next.len());
                next.retain(|place| known.insert(std::ptr::from_ref(*place)));
            }
            found = next;
        }
        Ok(found)
    }
}

/// Members of a duplicate name that a path matches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Members {
    First,
    Every,
}

fn select<'j>(json: &'j Json, step: &Step, wanted: Members, out: &mut Vec<&'j Json>) {
    match (step, json) {
        (Step::Key(key), Json::Object(members)) => {
            let most = if wanted == Members::First { 1 } else { usize::MAX };
            out.extend(members.iter().filter(|(k, _)| same_key(k, key)).map(|(_, v)| v).take(most));
        }
        (Step::AnyKey, Json::Object(members)) => out.extend(members.iter().map(|(_, v)| v)),
        (Step::Index(index), Json::Array(items)) => {
            out.extend(index.resolve(items.len()).and_then(|n| items.get(n)));
        }
        // A scalar or an object is treated as an array with one element.
        (Step::Index(Index::First(0)), scalar) => out.push(scalar),
        (Step::Range(from, to), Json::Array(items)) => {
            if let (Some(from), Some(to)) = (from.resolve(items.len()), to.resolve(items.len())) {
                out.extend(items.iter().take(to + 1).skip(from));
            }
        }
        (Step::Range(Index::First(0), _), scalar) => out.push(scalar),
        (Step::AnyIndex, Json::Array(items)) => out.extend(items),
        _ => {}
    }
}

/// Returns true if two keys, as written in a document and in a path, are equal.
pub(crate) fn same_key(written: &[u8], wanted: &[u8]) -> bool {
    written == wanted
        || (written.contains(&b'\\') || wanted.contains(&b'\\')) && unescape(written) == unescape(wanted)
}

/// Appends the value and all its descendants.
fn deep<'j>(json: &'j Json, out: &mut Vec<&'j Json>, interrupt: &dyn Interrupt) -> SqlResult<()> {
    interrupt.step()?;
    out.push(json);
    match json {
        Json::Array(items) => items.iter().try_for_each(|item| deep(item, out, interrupt)),
        Json::Object(members) => members.iter().try_for_each(|(_, value)| deep(value, out, interrupt)),
        _ => Ok(()),
    }
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

    fn next(&mut self) -> Result<u8, PathError> {
        let b = self.text.get(self.at).copied().ok_or(PathError::Ended)?;
        self.at += 1;
        Ok(b)
    }

    fn step(&mut self) -> Result<Step, PathError> {
        match self.next()? {
            b'.' => self.key(),
            b'[' => self.index(),
            b'*' if self.next()? == b'*' => Ok(Step::Deep),
            _ => Err(PathError::Syntax(self.at - 1)),
        }
    }

    /// Parses a key. An unquoted key extends to the next step and may contain spaces.
    fn key(&mut self) -> Result<Step, PathError> {
        match self.next()? {
            b'*' => Ok(Step::AnyKey),
            b'"' => {
                let start = self.at;
                loop {
                    match self.next()? {
                        b'"' => break,
                        b'\\' => {
                            self.next()?;
                        }
                        _ => {}
                    }
                }
                Ok(Step::Key(self.text[start..self.at - 1].to_vec()))
            }
            _ => {
                let start = self.at - 1;
                let is_end = |b: &u8| matches!(b, b'.' | b'[' | b'*');
                while self.text.get(self.at).is_some_and(|b| !is_end(b)) {
                    self.at += 1;
                }
                if is_end(&self.text[start]) {
                    return Err(PathError::Syntax(start));
                }
                Ok(Step::Key(self.text[start..self.at].to_vec()))
            }
        }
    }

    fn index(&mut self) -> Result<Step, PathError> {
        self.skip_spaces();
        let step = if self.text.get(self.at) == Some(&b'*') {
            self.at += 1;
            Step::AnyIndex
        } else {
            let from = self.place()?;
            self.skip_spaces();
            if self.text[self.at.min(self.text.len())..].starts_with(b"to") {
                self.at += 2;
                self.skip_spaces();
                Step::Range(from, self.place()?)
            } else {
                Step::Index(from)
            }
        };
        self.skip_spaces();
        if self.next()? == b']' { Ok(step) } else { Err(PathError::Syntax(self.at - 1)) }
    }

    fn place(&mut self) -> Result<Index, PathError> {
        let rest = &self.text[self.at..];
        if rest.starts_with(b"last") {
            self.at += 4;
            self.skip_spaces();
            if self.text.get(self.at) != Some(&b'-') {
                return Ok(Index::Last(0));
            }
            self.at += 1;
            self.skip_spaces();
            return self.number().map(Index::Last);
        }
        if rest.first() == Some(&b'-') {
            self.at += 1;
            let n = self.number()?;
            return n.checked_sub(1).map(Index::Last).ok_or(PathError::Syntax(self.at - 1));
        }
        self.number().map(Index::First)
    }

    fn number(&mut self) -> Result<usize, PathError> {
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == self.text.len() {
            return Err(PathError::Ended);
        }
        let digits = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        digits.parse().map_err(|_| PathError::Syntax(self.at))
    }
}

/// Parses argument n as a path for a single value. Returns `None` with a warning if it has wildcards.
pub(crate) fn single_path(a: &Args<'_>, n: usize) -> SqlResult<Option<Path>> {
    let Some(path) = path(a, n)? else { return Ok(None) };
    if !path.is_wild() {
        return Ok(Some(path));
    }
    let (name, argument) = (crate::json::shown_name(a), n + 1);
    a.ctx.warn(
        ErrorCode::JsonPathNoWildcard,
        format!("Wildcards or range in JSON path not allowed in argument {argument} to function '{name}'"),
    )?;
    Ok(None)
}

/// Parses argument n as a path. Returns `None` with a warning on a syntax error.
pub(crate) fn path(a: &Args<'_>, n: usize) -> SqlResult<Option<Path>> {
    let Some(text) = a.text(n)? else { return Ok(None) };
    let (name, argument) = (crate::json::shown_name(a), n + 1);
    match Path::parse(&text) {
        Ok(path) => return Ok(Some(path)),
        Err(PathError::Ended) => a.ctx.warn(
            ErrorCode::JsonPathEos,
            format!("Unexpected end of JSON path in argument {argument} to function '{name}'"),
        )?,
        Err(PathError::Syntax(at)) => a.ctx.warn(
            ErrorCode::JsonPathSyntax,
            format!(
                "Syntax error in JSON path in argument {argument} to function '{name}' at position {}",
                at + 1
            ),
        )?,
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use cohort_types::Uninterrupted;

    use super::*;

    #[test]
    fn spaces_are_a_part_of_keys() {
        let json = Json::parse(br#"{"a":1, " a":2, "a ":[3], "a b":4, " ":5}"#).expect("a document");
        let find = |path: &str| {
            let Ok(path) = Path::parse(path.as_bytes()) else { return None };
            path.find(&json, &Uninterrupted).expect("not interrupted").first().map(|found| (*found).clone())
        };
        let number = |n: &str| Some(Json::Number(n.as_bytes().to_vec()));
        assert_eq!(find("$. a"), number("2"));
        assert_eq!(find("$.a [ 0 ]"), number("3"));
        assert_eq!(find(" $.a b"), number("4"));
        assert_eq!(find("$. "), number("5"));
        assert_eq!(find("$.  a b"), None);
        for path in ["$ .a", "$ [0]", "$.\"a\" "] {
            assert!(matches!(Path::parse(path.as_bytes()), Err(PathError::Syntax(_))), "{path}");
        }
    }

    #[test]
    fn deep_steps_find_each_place_once() {
        let nested = format!("{}1{}", "[".repeat(30), "]".repeat(30));
        let json = Json::parse(nested.as_bytes()).expect("a document");
        let find = |path: &str| {
            let Ok(path) = Path::parse(path.as_bytes()) else { panic!("{path} is a path") };
            path.find(&json, &Uninterrupted).expect("not interrupted").len()
        };
        assert_eq!(find("$**[0]"), 31);
        // With duplicates there would be C(30, 10) results.
        assert_eq!(find(&format!("${}", "**[*]".repeat(10))), 21);
    }
}
