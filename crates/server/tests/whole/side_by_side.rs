//! The same statements on Cohort and on MariaDB, by text and as prepared statements: the answers are the
//! same.
//!
//! What is compared: names, rows, counts, errors, warnings; types and the rest of the metadata are compared
//! by `crates/server/tests/metadata`. A line `-- differs: why` before a statement of a script says that its
//! answer is known to be another one.

use mysql::prelude::{Protocol, Queryable};
use mysql::{Conn, QueryResult, Row};

use crate::support::{Cohort, Maria, shown};

/// What a client is told.
#[derive(Clone, Debug, PartialEq)]
struct Answer {
    lines: Vec<String>,
}

fn error_answer(error: &mysql::error::MySqlError) -> Answer {
    Answer { lines: vec![format!("ERROR {} ({}): {}", error.code, error.state, error.message)] }
}

fn answer_of<P: Protocol>(result: mysql::Result<QueryResult<'_, '_, '_, P>>) -> Answer {
    let mut lines = Vec::new();
    match result {
        Err(mysql::Error::MySqlError(error)) => return error_answer(&error),
        Err(other) => lines.push(format!("the connection failed: {other}")),
        Ok(mut result) => {
            while let Some(set) = result.iter() {
                let names: Vec<String> =
                    set.columns().as_ref().iter().map(|column| column.name_str().into_owned()).collect();
                lines.push(names.join("\t"));
                let counts = format!("{} affected, {} warnings", set.affected_rows(), set.warnings());
                let rows: Vec<mysql::Result<Row>> = set.collect();
                for row in rows {
                    lines.push(match row {
                        Ok(row) => row.unwrap().iter().map(cell).collect::<Vec<_>>().join("\t"),
                        // MariaDB has sent columns and rows before it met the error; ours come after the last
                        // row is known.
                        Err(mysql::Error::MySqlError(error)) => return error_answer(&error),
                        Err(other) => format!("the connection failed: {other}"),
                    });
                }
                lines.push(counts);
            }
        }
    }
    Answer { lines }
}

/// A value, whatever number type carries it.
fn cell(value: &mysql::Value) -> String {
    match value {
        mysql::Value::Int(n) => n.to_string(),
        mysql::Value::UInt(n) => n.to_string(),
        mysql::Value::Float(n) => n.to_string(),
        mysql::Value::Double(n) => n.to_string(),
        other => shown(other),
    }
}

fn normal(answer: Answer) -> Answer {
    let lines = answer.lines.into_iter().map(|line| line.replace("ENGINE=ROCKSDB", "ENGINE=InnoDB"));
    Answer { lines: lines.collect() }
}

fn by_text(client: &mut Conn, sql: &str) -> Answer {
    let answer = normal(answer_of(client.query_iter(sql)));
    let has_some = answer.lines.last().is_some_and(|line| !line.ends_with(" 0 warnings"));
    if !has_some {
        return answer;
    }
    let warnings = answer_of(client.query_iter("SHOW WARNINGS"));
    Answer { lines: [answer.lines, warnings.lines].concat() }
}

fn prepared(client: &mut Conn, sql: &str) -> Answer {
    normal(answer_of(client.exec_iter(sql, ())))
}

/// Statements and whether they are known to differ.
fn marked(script: &str) -> Vec<(&str, bool)> {
    let mut out = Vec::new();
    let mut differs = false;
    for line in script.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with("--") {
            differs = line.starts_with("-- differs:");
            continue;
        }
        out.push((line.trim_end().trim_end_matches(';'), differs));
        differs = false;
    }
    out
}

fn compare(script: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, mariadb) = (Cohort::start(folder.path(), "data", &[]), Maria::new(&[]));
    let (mut ours, mut theirs) = (server.client(), mariadb.client());
    for client in [&mut ours, &mut theirs] {
        client.query_drop("SET NAMES utf8mb4").expect("known");
    }
    let mut differing = Vec::new();
    for (sql, may_differ) in marked(script) {
        let mut kinds = vec![("text", by_text(&mut ours, sql), by_text(&mut theirs, sql))];
        if sql.starts_with("SELECT") {
            kinds.push(("prepared", prepared(&mut ours, sql), prepared(&mut theirs, sql)));
        }
        for (kind, ours, theirs) in kinds {
            if ours == theirs || may_differ {
                continue;
            }
            let parts = |answer: &Answer| answer.lines.join("\n").split('\n').map(str::to_owned).collect();
            let only = |left: &Answer, right: &Answer| -> String {
                let (left, right): (Vec<String>, Vec<String>) = (parts(left), parts(right));
                let lines = left.iter().filter(|line| !right.contains(line));
                lines.map(|line| format!("\n    {line:.300}")).collect()
            };
            let (here, there) = (only(&ours, &theirs), only(&theirs, &ours));
            differing.push(format!("{kind}: {sql:.200}\n  Cohort only:{here}\n  MariaDB only:{there}"));
        }
    }
    assert!(differing.is_empty(), "{} answers differ:\n{}", differing.len(), differing.join("\n"));
}

#[test]
fn every_type_with_its_edge_values() {
    compare(include_str!("scripts/types.sql"));
}

#[test]
fn changes_and_ddl() {
    compare(include_str!("scripts/changes.sql"));
}

#[test]
fn what_tools_ask() {
    compare(include_str!("scripts/asked.sql"));
}

#[test]
fn joins_sets_and_names() {
    compare(include_str!("scripts/joins_and_sets.sql"));
}

#[test]
fn generated_columns_and_checks() {
    compare(include_str!("scripts/rules.sql"));
}

#[test]
fn views_are_those_of_mariadb() {
    compare(include_str!("scripts/views.sql"));
}

#[test]
fn rows_change_through_views_as_in_mariadb() {
    compare(include_str!("scripts/view_changes.sql"));
}
