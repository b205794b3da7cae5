//! Runs the same statements on Cohort and on MariaDB, as text and as prepared statements, and compares the
//! results.
//!
//! Names, rows, counts, errors and warnings are compared. Types and the rest of the metadata are compared by
//! `crates/server/tests/metadata`. A line `-- differs: why` before a statement of a script marks a known
//! difference.

use mysql::prelude::{Protocol, Queryable};
use mysql::{Conn, QueryResult, Row};

use crate::support::{Cohort, Maria, shown};

/// The result of a statement as seen by a client.
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
                        // MariaDB has sent columns and rows before it reached the error. Cohort sends them
                        // only after the last row is known.
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

/// Formats a value independently of its number type.
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

/// Splits a script into statements, each with whether it is known to differ.
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
    compare_with_files(script, &[]);
}

/// Compares with a directory of files, which the script calls FILES. It initially contains `given`; the files
/// that the servers leave there are compared, too.
fn compare_with_files(script: &str, given: &[(&str, &[u8])]) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = ["ours", "theirs"].map(|name| folder.path().join(name));
    for files in &files {
        std::fs::create_dir(files).expect("made");
        given.iter().for_each(|(name, bytes)| std::fs::write(files.join(name), bytes).expect("written"));
    }
    let option = |n: usize| format!("--secure-file-priv={}", files[n].display());
    let server = Cohort::start(folder.path(), "data", &[&option(0)]);
    let mariadb = Maria::new(&[&option(1)]);
    let place = |n: usize| files[n].display().to_string();
    let (mut ours, mut theirs) = (server.client(), mariadb.client());
    for client in [&mut ours, &mut theirs] {
        client.query_drop("SET NAMES utf8mb4").expect("known");
    }
    let mut differing = Vec::new();
    for (sql, may_differ) in marked(script) {
        let text = |client: &mut Conn, n: usize| {
            let answer = by_text(client, &sql.replace("FILES", &place(n)));
            Answer { lines: answer.lines.iter().map(|line| line.replace(&place(n), "FILES")).collect() }
        };
        let mut kinds = vec![("text", text(&mut ours, 0), text(&mut theirs, 1))];
        if sql.starts_with("SELECT") && !sql.contains("FILES") {
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
            let (mut here, mut there) = (only(&ours, &theirs), only(&theirs, &ours));
            if here.is_empty() && there.is_empty() {
                // The lines differ only in their order or number, so show all of them.
                (here, there) = (ours.lines.join("\n    "), theirs.lines.join("\n    "));
            }
            differing.push(format!("{kind}: {sql:.200}\n  Cohort only:{here}\n  MariaDB only:{there}"));
        }
    }
    let left = files.map(|files| contents(&files));
    for (ours, theirs) in left[0].iter().zip(&left[1]).filter(|(ours, theirs)| ours != theirs) {
        differing.push(format!("a file\n  Cohort: {ours:?}\n  MariaDB: {theirs:?}"));
    }
    assert_eq!(left[0].len(), left[1].len(), "files");
    assert!(differing.is_empty(), "{} answers differ:\n{}", differing.len(), differing.join("\n"));
}

/// Returns the files of a directory in name order.
fn contents(folder: &std::path::Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("listed").path());
    let mut files: Vec<(String, String)> = entries
        .map(|path| {
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            let bytes = std::fs::read(&path).expect("readable");
            (name, bytes.escape_ascii().to_string())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn rows_of_conditions_and_functions_of_schemas() {
    compare(include_str!("scripts/conditions.sql"));
}

#[test]
fn innodbs_tables_of_information_schema_are_mariadbs() {
    compare(include_str!("scripts/innodb_tables.sql"));
}

#[test]
fn tables_need_a_key_if_that_is_asked_for() {
    compare(include_str!("scripts/force_primary_key.sql"));
}

#[test]
fn searches_for_words() {
    compare(include_str!("scripts/full_text.sql"));
}

#[test]
fn prepared_statements_and_definitions_that_change() {
    compare(include_str!("scripts/prepared.sql"));
}

#[test]
fn every_type_with_its_edge_values() {
    compare(include_str!("scripts/types.sql"));
}

#[test]
fn uuids_and_addresses() {
    compare(include_str!("scripts/fixed_types.sql"));
}

#[test]
fn changes_and_ddl() {
    compare(include_str!("scripts/changes.sql"));
}

#[test]
fn statements_of_tools() {
    compare(include_str!("scripts/asked.sql"));
}

#[test]
fn collations_and_cases() {
    compare(include_str!("scripts/collations.sql"));
}

#[test]
fn digits_of_quotients() {
    compare(include_str!("scripts/quotients.sql"));
}

#[test]
fn casts_and_comparisons() {
    compare(include_str!("scripts/casts.sql"));
}

#[test]
fn joins_sets_and_names() {
    compare(include_str!("scripts/joins_and_sets.sql"));
}

#[test]
fn answers_that_once_differed() {
    compare(include_str!("scripts/answers.sql"));
}

#[test]
fn rarely_written_syntax() {
    compare(include_str!("scripts/rarely_written.sql"));
}

#[test]
fn generated_columns_and_checks() {
    compare(include_str!("scripts/rules.sql"));
}

#[test]
fn json_tables() {
    compare(include_str!("scripts/json_table.sql"));
}

#[test]
fn accounts_are_shown_as_by_mariadb() {
    compare(include_str!("scripts/accounts.sql"));
}

#[test]
fn roles_are_those_of_mariadb() {
    compare(include_str!("scripts/roles.sql"));
}

#[test]
fn views_are_those_of_mariadb() {
    compare(include_str!("scripts/views.sql"));
}

#[test]
fn rows_change_through_views_as_in_mariadb() {
    compare(include_str!("scripts/view_changes.sql"));
}

#[test]
fn temporary_tables() {
    compare(include_str!("scripts/temporary_tables.sql"));
}

#[test]
fn sequences() {
    compare(include_str!("scripts/sequences.sql"));
}

#[test]
fn handlers() {
    compare(include_str!("scripts/handlers.sql"));
}

#[test]
fn tables_of_queries() {
    compare(include_str!("scripts/create_select.sql"));
}

#[test]
fn files_of_the_server() {
    let given: [(&str, &[u8]); 7] = [
        ("l1", b"1,\"a,b\",3\n2,\\N,x\n3,\"q\"\"q\",\n4\n5,five,6,extra\n"),
        ("l2", b"\xef\xbb\xbf1\tx\\ty\\\\\t\\0\\Zq\n2\t\\N\tNULL\n\n3\ta\\\nb\tc"),
        ("l3", b"xxx>1;abc\r\nno\r\n>2;def\r\n"),
        ("l4", b"id\tname\n1\t\xe9\n2\t\xc3\xa9\n"),
        ("l5", b"1,2\n1,3\n2,4\n"),
        ("m1", b"1\n2,\\N\n"),
        ("m2", b"1,\\N,NULL,x\n"),
    ];
    compare_with_files(include_str!("scripts/files.sql"), &given);
}

#[test]
fn changes_over_joins_and_of_queries() {
    compare(include_str!("scripts/joined_changes.sql"));
}

#[test]
fn kept_texts_read_back_as_in_mariadb() {
    compare(include_str!("scripts/stored_texts.sql"));
}

#[test]
fn settings_of_one_statement_end_with_it() {
    compare(include_str!("scripts/set_statement.sql"));
}

#[test]
fn statements_commit_where_they_do_in_mariadb() {
    compare(include_str!("scripts/implicit_commits.sql"));
}

#[test]
fn modes_mean_what_they_mean_in_mariadb() {
    compare(include_str!("scripts/sql_modes.sql"));
}

#[test]
fn columns_and_keys_are_defined_as_in_mariadb() {
    compare(include_str!("scripts/columns_and_keys.sql"));
}

#[test]
fn long_unique_keys_are_those_of_mariadb() {
    compare(include_str!("scripts/long_unique.sql"));
}

#[test]
fn foreign_keys_are_defined_as_in_mariadb() {
    compare(include_str!("scripts/foreign_ddl.sql"));
}

#[test]
fn foreign_keys_check_and_act_as_in_mariadb() {
    compare(include_str!("scripts/foreign_dml.sql"));
}

#[test]
fn returning_asks_subqueries_and_views() {
    compare(include_str!("scripts/dml_returning_asked.sql"));
}

#[test]
fn items_below_outer_joins_are_null_without_a_match() {
    compare(include_str!("scripts/select_outer_levels.sql"));
}

#[test]
fn sets_and_common_tables() {
    compare(include_str!("scripts/select_sets_and_tables.sql"));
}

#[test]
fn alter_ignore_leaves_rows_out_as_mariadb_does() {
    compare(include_str!("scripts/alter_ignore.sql"));
}

#[test]
fn programs_are_shown_as_in_mariadb() {
    compare(include_str!("scripts/programs_shown.sql"));
}

#[test]
fn kinds_that_once_differed() {
    compare(include_str!("scripts/kinds.sql"));
}
