//! Runs scripts against a server.

use std::collections::BTreeMap;

use md5::{Digest, Md5};
use mysql::prelude::Queryable;
use mysql::{Conn, Value};

use crate::script::{Kind, Outcome, Query, Record, Sort};

/// The outcome of a script.
#[derive(Default)]
pub struct Tally {
    pub asked: usize,
    /// The failures, each with its line.
    pub wrong: Vec<String>,
}

/// A server, and the names that scripts use for it.
pub struct Asked<'a> {
    pub client: &'a mut Conn,
    pub names: &'a [&'a str],
}

/// A query's result as written in scripts.
struct Given {
    lines: Vec<String>,
    hash: String,
}

impl Asked<'_> {
    /// Runs a script in a new database.
    pub fn run(&mut self, records: &[Record]) -> Tally {
        self.walk(records, &mut |record, answer, tally| {
            if let Some(wrong) = judged(record, answer) {
                tally.wrong.push(format!("line {}: {}\n{wrong}", record.line, record.sql));
            }
        })
    }

    /// Returns the script with this server's results. Failing queries are reported.
    pub fn record(&mut self, records: &[Record]) -> (Vec<Record>, Tally) {
        let mut recorded = records.to_vec();
        let tally = self.walk(records, &mut |record, answer, tally| {
            let at = records.iter().position(|other| other.line == record.line).expect("one of them");
            let copy = &mut recorded[at];
            match (&mut copy.kind, answer) {
                (Kind::Query(query), Ok(given)) => query.expected = given.lines.clone(),
                (Kind::Statement(Outcome::Fails(code)), Err((error_code, _))) => {
                    *code = Some(*error_code);
                    let line = copy.head.iter_mut().find(|line| line.starts_with("statement"));
                    *line.expect("its first line") = format!("statement error {error_code}");
                }
                _ => {
                    if let Some(wrong) = judged(record, answer) {
                        tally.wrong.push(format!("line {}: {}\n{wrong}", record.line, record.sql));
                    }
                }
            }
        });
        (recorded, tally)
    }

    fn walk(
        &mut self,
        records: &[Record],
        take: &mut dyn FnMut(&Record, &Result<Given, (u16, String)>, &mut Tally),
    ) -> Tally {
        let mut tally = Tally::default();
        for sql in [
            "DROP DATABASE IF EXISTS logic",
            "CREATE DATABASE logic CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
            "USE logic",
            "SET NAMES utf8mb4",
        ] {
            self.client.query_drop(sql).expect("a fresh database");
        }
        let mut threshold = usize::MAX;
        let mut labels: BTreeMap<String, (usize, String)> = BTreeMap::new();
        for record in records.iter().filter(|record| record.counts_for(self.names)) {
            let empty = Query { types: Vec::new(), sort: Sort::No, label: None, expected: Vec::new() };
            let query = match &record.kind {
                Kind::Text => continue,
                Kind::Halt => break,
                Kind::HashThreshold(count) => {
                    // 0 disables the threshold.
                    threshold = if *count == 0 { usize::MAX } else { *count };
                    continue;
                }
                Kind::Statement(_) => &empty,
                Kind::Query(query) => query,
            };
            tally.asked += 1;
            let answer = self.ask(&record.sql, query, threshold);
            take(record, &answer, &mut tally);
            if let (Some(label), Ok(given)) = (&query.label, &answer) {
                let (line, hash) =
                    labels.entry(label.clone()).or_insert_with(|| (record.line, given.hash.clone()));
                if *hash != given.hash {
                    tally.wrong.push(format!(
                        "line {}: {}\n  other values than the query of line {line} with the label {label}",
                        record.line, record.sql
                    ));
                }
            }
        }
        tally
    }

    fn ask(&mut self, sql: &str, query: &Query, threshold: usize) -> Result<Given, (u16, String)> {
        let rows: Vec<mysql::Row> = self.client.query(sql).map_err(|error| match error {
            mysql::Error::MySqlError(error) => (error.code, error.message),
            other => (0, format!("the connection failed: {other}")),
        })?;
        let shown = |row: mysql::Row| -> Vec<String> {
            let types = query.types.iter().copied().chain(std::iter::repeat(b'T'));
            row.unwrap().iter().zip(types).map(|(value, letter)| shown(value, letter)).collect()
        };
        let mut rows: Vec<Vec<String>> = rows.into_iter().map(shown).collect();
        if let Some(row) = rows.first()
            && !query.types.is_empty()
            && row.len() != query.types.len()
        {
            return Err((0, format!("{} columns instead of {}", row.len(), query.types.len())));
        }
        if query.sort == Sort::Rows {
            rows.sort();
        }
        let mut values: Vec<String> = rows.into_iter().flatten().collect();
        if query.sort == Sort::Values {
            values.sort();
        }
        let mut digest = Md5::new();
        for value in &values {
            digest.update(value.as_bytes());
            digest.update(b"\n");
        }
        let hash: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let lines = match values.len() > threshold {
            true => vec![format!("{} values hashing to {hash}", values.len())],
            false => values,
        };
        Ok(Given { lines, hash })
    }
}

/// Returns the reason why a result is wrong.
fn judged(record: &Record, answer: &Result<Given, (u16, String)>) -> Option<String> {
    let indented = |lines: &[String]| lines.iter().map(|line| format!("\n    {line}")).collect::<String>();
    match (&record.kind, answer) {
        (Kind::Statement(Outcome::Succeeds), Ok(_)) => None,
        (Kind::Statement(Outcome::Fails(code)), Err((error_code, _)))
            if code.is_none_or(|code| code == *error_code) =>
        {
            None
        }
        (Kind::Statement(Outcome::Fails(_)), Ok(_)) => Some("  it succeeds".to_owned()),
        (Kind::Query(query), Ok(given)) if query.expected == given.lines => None,
        (Kind::Query(query), Ok(given)) => {
            Some(format!("  expected{}\n  given{}", indented(&query.expected), indented(&given.lines)))
        }
        (_, Err((code, message))) => Some(format!("  error {code}: {message}")),
        (Kind::Text | Kind::Halt | Kind::HashThreshold(_), Ok(_)) => unreachable!("it asks nothing"),
    }
}

/// Formats a value as in scripts.
fn shown(value: &Value, letter: u8) -> String {
    let text = match value {
        Value::NULL => return "NULL".to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Int(n) => n.to_string(),
        Value::UInt(n) => n.to_string(),
        other => unreachable!("the text protocol has no {other:?}"),
    };
    match letter {
        // The integer part of a number; 0 for other text.
        b'I' => match text.split('.').next().map(str::parse::<i128>) {
            Some(Ok(n)) => n.to_string(),
            _ => text.parse::<f64>().map_or(0, |n| n as i128).to_string(),
        },
        b'R' => format!("{:.3}", text.parse::<f64>().unwrap_or(0.0)),
        _ if text.is_empty() => "(empty)".to_owned(),
        _ => text.chars().map(|c| if c.is_control() { '@' } else { c }).collect(),
    }
}

#[test]
fn values_are_written_by_their_letters() {
    let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
    assert_eq!(shown(&Value::NULL, b'I'), "NULL");
    assert_eq!(shown(&text("-12.75"), b'I'), "-12");
    assert_eq!(shown(&text("18446744073709551615"), b'I'), "18446744073709551615");
    assert_eq!(shown(&text("x"), b'I'), "0");
    assert_eq!(shown(&text("2e3"), b'I'), "2000");
    assert_eq!(shown(&text("2.0005"), b'R'), "2.001");
    assert_eq!(shown(&text(""), b'T'), "(empty)");
    assert_eq!(shown(&text("a\nb"), b'T'), "a@b");
}
