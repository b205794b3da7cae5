//! Scripts in the format of SQLite's sqllogictest.
//!
//! A script consists of records separated by empty lines; `#` begins a comment.
//!
//! - `statement ok` and `statement error [code]`: the following lines, up to an empty line, succeed or are
//!   refused.
//! - `query TYPES [nosort|rowsort|valuesort] [label]`: a query, followed by `----` and its values, one per
//!   line.
//! - `hash-threshold n`: from here on, a result with more values is written as `n values hashing to MD5`.
//! - `skipif name` and `onlyif name`: whether the next record applies to a server.
//! - `halt`: ignore the rest.
//!
//! `TYPES` has a letter per column: `I` for an integer, `R` for a number with three decimal places, `T` for
//! text. Queries with the same label have the same values. The code after `error` is an extension of ours.

/// The contents of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Comments and empty lines.
    Text,
    Statement(Outcome),
    Query(Query),
    HashThreshold(usize),
    Halt,
}

/// The expected outcome of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    Succeeds,
    /// With this error code, if one is given.
    Fails(Option<u16>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub types: Vec<u8>,
    pub sort: Sort,
    pub label: Option<String>,
    /// The values, or the line with their hash.
    pub expected: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sort {
    No,
    Rows,
    Values,
}

/// A part of a script. All parts together are its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The number of its first line, starting at 1.
    pub line: usize,
    /// Its lines, without the values of a query.
    pub head: Vec<String>,
    /// Servers that skip the record, and servers to which it is restricted.
    pub skipped: Vec<String>,
    pub only: Vec<String>,
    pub sql: String,
    pub kind: Kind,
}

impl Record {
    /// Returns whether the record applies to a server with these names.
    pub fn counts_for(&self, names: &[&str]) -> bool {
        let has = |list: &[String]| list.iter().any(|name| names.contains(&name.as_str()));
        !has(&self.skipped) && (self.only.is_empty() || has(&self.only))
    }
}

/// Parses the records of a script.
pub fn parsed(text: &str) -> Result<Vec<Record>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut records = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let first = at;
        let (mut skipped, mut only) = (Vec::new(), Vec::new());
        let mut words = words_of(lines[at]);
        while let Some(list) = match words.first().copied() {
            Some("skipif") => Some(&mut skipped),
            Some("onlyif") => Some(&mut only),
            _ => None,
        } {
            list.push(words.get(1).ok_or(format!("line {}: which server?", at + 1))?.to_string());
            at += 1;
            words = words_of(lines.get(at).ok_or(format!("line {at}: there is no record after it"))?);
        }
        let kind = kind_of(&words).ok_or_else(|| format!("line {}: `{}` is no record", at + 1, lines[at]))?;
        at += 1;
        let mut record =
            Record { line: first + 1, head: Vec::new(), skipped, only, sql: String::new(), kind };
        if matches!(record.kind, Kind::Statement(_) | Kind::Query(_)) {
            let body = at;
            let has_ended = |line: &str| line.is_empty() || line == "----";
            at += lines[at..].iter().position(|line| has_ended(line)).unwrap_or(lines.len() - at);
            record.sql = lines[body..at].join("\n");
        }
        record.head = lines[first..at].iter().map(|line| (*line).to_owned()).collect();
        if let Kind::Query(query) = &mut record.kind
            && lines.get(at) == Some(&"----")
        {
            at += 1;
            let values = lines[at..].iter().take_while(|line| !line.is_empty());
            query.expected = values.map(|line| (*line).to_owned()).collect();
            at += query.expected.len();
        }
        records.push(record);
    }
    Ok(records)
}

/// Returns the words of a line; none for a comment.
fn words_of(line: &str) -> Vec<&str> {
    match line.starts_with('#') {
        true => Vec::new(),
        false => line.split_whitespace().collect(),
    }
}

fn kind_of(words: &[&str]) -> Option<Kind> {
    Some(match words {
        [] => Kind::Text,
        ["statement", "ok", ..] => Kind::Statement(Outcome::Succeeds),
        ["statement", "error", rest @ ..] => {
            Kind::Statement(Outcome::Fails(rest.first().and_then(|code| code.parse().ok())))
        }
        ["query", types, rest @ ..] => {
            let sort = match rest.first() {
                None | Some(&"nosort") => Sort::No,
                Some(&"rowsort") => Sort::Rows,
                Some(&"valuesort") => Sort::Values,
                Some(_) => return None,
            };
            let types = types.as_bytes().to_vec();
            let is_known = types.iter().all(|letter| b"IRT".contains(letter));
            let label = rest.get(1).map(|label| (*label).to_owned());
            let query = Query { types, sort, label, expected: Vec::new() };
            return is_known.then_some(Kind::Query(query));
        }
        ["hash-threshold", count] => Kind::HashThreshold(count.parse().ok()?),
        ["halt", ..] => Kind::Halt,
        _ => return None,
    })
}

/// Returns the text of a script.
pub fn written(records: &[Record]) -> String {
    let mut out = String::new();
    for record in records {
        let mut lines: Vec<&str> = record.head.iter().map(String::as_str).collect();
        if let Kind::Query(query) = &record.kind {
            lines.push("----");
            lines.extend(query.expected.iter().map(String::as_str));
        }
        for line in lines {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[test]
fn scripts_are_read_and_written() {
    let text = "# intent\nhash-threshold 8\n\nstatement ok\nCREATE TABLE t (\n  a INT)\n\nskipif mariadb\n\
                statement error 1146\nSELECT 1\n\nonlyif cohort\nquery IT rowsort x\nSELECT a,\n  b\n----\n1\n(empty)\n\nhalt\n";
    let records = parsed(text).expect("it is right");
    assert_eq!(written(&records), text);
    let asked: Vec<&Record> = records.iter().filter(|record| record.kind != Kind::Text).collect();
    assert_eq!(asked[0].kind, Kind::HashThreshold(8));
    assert_eq!((asked[1].line, asked[1].sql.as_str()), (4, "CREATE TABLE t (\n  a INT)"));
    assert_eq!(asked[2].kind, Kind::Statement(Outcome::Fails(Some(1146))));
    assert!(!asked[2].counts_for(&["mysql", "mariadb"]) && asked[2].counts_for(&["cohort"]));
    let Kind::Query(query) = &asked[3].kind else { panic!("{:?}", asked[3]) };
    assert_eq!((query.sort, query.label.as_deref()), (Sort::Rows, Some("x")));
    assert_eq!(query.expected, ["1", "(empty)"]);
    assert!(!asked[3].counts_for(&["mysql", "mariadb"]) && asked[3].counts_for(&["mysql", "cohort"]));
    assert_eq!(asked[4].kind, Kind::Halt);
}

#[test]
fn malformed_records_are_reported() {
    for (text, line) in [
        ("# c\nstatment ok\n", "line 2"),
        ("query X nosort\n", "line 1"),
        ("query I upwards\n", "line 1"),
        ("\nonlyif\n", "line 2"),
        ("skipif mysql\n", "line 1"),
        ("hash-threshold many\n", "line 1"),
    ] {
        let error = parsed(text).expect_err(text);
        assert!(error.starts_with(line), "{text}: {error}");
    }
}
