//! docs/compatibility.md and docs/limits.md: every example must have the result that the page gives; blocks
//! marked `sql there` also on MariaDB.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::support::{Cohort, Maria, shown};

const PAGES: [&str; 2] =
    [include_str!("../../../../docs/compatibility.md"), include_str!("../../../../docs/limits.md")];

/// An example of the page.
struct Example {
    sql: &'static str,
    /// Rows, or `error n`. `None` if the page only claims success, `*` for any rows.
    answer: Option<&'static str>,
    /// MariaDB returns the same.
    is_there: bool,
    line: usize,
}

fn examples() -> Vec<Example> {
    let (mut found, mut block) = (Vec::new(), None);
    for (n, line) in PAGES.iter().flat_map(|page| page.lines().enumerate()) {
        if let Some(kind) = line.strip_prefix("```") {
            block = if block.is_some() { None } else { Some(kind) };
            continue;
        }
        let Some(kind) = block.filter(|kind| kind.starts_with("sql")) else { continue };
        let (sql, answer) = match line.split_once(";  -- ") {
            Some((sql, answer)) => (sql, Some(answer)),
            None => (line.strip_suffix(';').expect("an example ends with ;"), None),
        };
        found.push(Example { sql, answer, is_there: kind == "sql there", line: n + 1 });
    }
    found
}

fn answer(client: &mut Conn, sql: &str) -> String {
    match client.query::<mysql::Row, _>(sql) {
        Ok(rows) => {
            let row = |row: mysql::Row| row.unwrap().iter().map(shown).collect::<Vec<_>>().join(", ");
            rows.into_iter().map(row).collect::<Vec<_>>().join("; ")
        }
        Err(mysql::Error::MySqlError(error)) => format!("error {}", error.code),
        Err(other) => panic!("{sql}: {other}"),
    }
}

/// MariaDB's purge may hold the metadata lock of a table for a moment. A statement with NOWAIT then fails.
fn answer_of_mariadb(client: &mut Conn, sql: &str) -> String {
    const ATTEMPTS: u32 = 20;
    for _ in 1..ATTEMPTS {
        match answer(client, sql) {
            busy if busy == "error 1205" => std::thread::sleep(std::time::Duration::from_millis(100)),
            other => return other,
        }
    }
    answer(client, sql)
}

/// Returns the page's wrong statements about a server.
fn wrong(
    client: &mut Conn,
    asked: impl Fn(&Example) -> bool,
    answer: impl Fn(&mut Conn, &str) -> String,
) -> Vec<String> {
    for sql in ["SET NAMES utf8mb4", "DROP DATABASE IF EXISTS test", "CREATE DATABASE test", "USE test"] {
        client.query_drop(sql).expect(sql);
    }
    let mut wrong = Vec::new();
    for example in examples().iter().filter(|example| asked(example)) {
        let answer = answer(client, example.sql);
        let is_right = match example.answer {
            None => !answer.starts_with("error"),
            Some("*") => !answer.is_empty() && !answer.starts_with("error"),
            Some(expected) => answer == expected.trim_end() || answer == expected,
        };
        if !is_right {
            wrong.push(format!("line {}: {}\n    {answer}", example.line, example.sql));
        }
    }
    wrong
}

#[test]
fn the_page_says_what_the_server_answers() {
    assert!(examples().len() > 80, "the page has examples");
    let server = Cohort::new(&[]);
    let wrong = wrong(&mut server.client(), |_| true, answer);
    assert!(wrong.is_empty(), "{} are answered otherwise:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn mariadb_answers_what_is_there_alike() {
    let mariadb = Maria::source(&["--binlog-format=ROW"]);
    let wrong = wrong(&mut mariadb.client(), |example| example.is_there, answer_of_mariadb);
    assert!(wrong.is_empty(), "{} are answered otherwise:\n{}", wrong.len(), wrong.join("\n"));
}
