//! SQL scripts, run statement by statement.

use mysql::Conn;
use mysql::prelude::Queryable;

/// Returns the statements of a script: one per line, ended by a semicolon. Lines that begin with `--` are
/// comments.
pub fn statements(script: &str) -> impl Iterator<Item = &str> {
    let lines = script.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("--"));
    lines.map(|line| line.trim_end().strip_suffix(';').expect("a line is a statement and ends with ;"))
}

/// Runs all statements, ignoring errors. Returns the number of statements that succeeded.
pub fn run_all(client: &mut Conn, script: &str) -> usize {
    client.query_drop("SET NAMES utf8mb4").expect("known");
    let is_fine = |result: mysql::Result<()>, sql: &str| match result {
        Ok(()) => true,
        Err(mysql::Error::MySqlError(_)) => false,
        Err(other) => panic!("{sql}: {other}"),
    };
    statements(script).filter(|sql| is_fine(client.query_drop(*sql), sql)).count()
}
