//! Golden scripts: statements and the parser's results.
//!
//! A file of `tests/golden` consists of blocks. Lines that start with `> ` are a statement; the lines after
//! them are the result: the tree in debug form without empty fields, or the error. A leading `*` means that
//! the statement is cacheable. `REWRITE_GOLDEN=1 cargo test -p cohort-sql` rewrites the results; review the
//! diff.

use std::fmt::Write;
use std::path::Path;

use cohort_sql::{ParseOptions, parse};

#[test]
fn golden_scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut failed = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the scripts are there") {
        let path = entry.expect("a file").path();
        let script = std::fs::read_to_string(&path).expect("a text");
        let answer = run(&script);
        if answer == script {
            continue;
        }
        if std::env::var_os("REWRITE_GOLDEN").is_some() {
            std::fs::write(&path, answer).expect("writable");
        } else {
            let first = script.lines().zip(answer.lines()).find(|(a, b)| a != b);
            failed.push(format!("{}: {first:#?}", path.display()));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Returns the script with the parser's results.
fn run(script: &str) -> String {
    let mut out = String::new();
    let mut statement = String::new();
    for line in script.lines() {
        if let Some(text) = line.strip_prefix("> ") {
            statement.push_str(if statement.is_empty() { "" } else { "\n" });
            statement.push_str(text);
            continue;
        }
        if !statement.is_empty() {
            answer(&statement, &mut out);
            statement.clear();
        }
        if line.starts_with('#') {
            writeln!(out, "{line}\n").expect("a string");
        }
    }
    if !statement.is_empty() {
        answer(&statement, &mut out);
    }
    out
}

fn answer(sql: &str, out: &mut String) {
    for line in sql.lines() {
        writeln!(out, "> {line}").expect("a string");
    }
    match parse(sql.as_bytes(), &ParseOptions::default()) {
        Ok(parsed) => {
            let mark = if parsed.cacheable { "* " } else { "" };
            writeln!(out, "{mark}{}\n", compact(&format!("{:?}", parsed.statement))).expect("a string");
        }
        Err(error) => writeln!(out, "{error}\n").expect("a string"),
    }
}

/// Formats debug text without empty fields and with readable strings.
fn compact(debug: &str) -> String {
    let mut text = debug.to_string();
    while let Some(start) = text.find("Str(Str { bytes: [") {
        let list = start + "Str(Str { bytes: [".len();
        let close = list + text[list..].find(']').expect("a list ends");
        let end = close + text[close..].find("})").expect("a Str ends") + 2;
        let bytes: Vec<u8> = text[list..close].split(", ").filter_map(|b| b.parse().ok()).collect();
        let collation: String = text[close..end].chars().filter(char::is_ascii_digit).collect();
        let collation = if collation == "45" { String::new() } else { format!("@{collation}") };
        text.replace_range(start..end, &format!("'{}'{collation}", bytes.escape_ascii()));
    }
    for empty in ["None", "[]", "false", "Unspecified", "Plain", "All", "Default", "Create"] {
        while let Some(at) = find_field(&text, empty) {
            text.replace_range(at, "");
        }
    }
    for (long, short) in [
        ("Expr::", ""),
        (" {  }", ""),
        ("{ , ", "{ "),
        ("Column(ColumnRef { name: ", "Column({ "),
        ("ObjectName { name: ", "Name { "),
        ("Literal(Literal { value: ", "Lit({ "),
        ("  ", " "),
    ] {
        while text.contains(long) {
            text = text.replace(long, short);
        }
    }
    text
}

/// Returns the range of a `name: empty` field including its comma.
fn find_field(text: &str, empty: &str) -> Option<std::ops::Range<usize>> {
    let pattern = format!(": {empty}");
    let mut from = 0;
    loop {
        let at = from + text[from..].find(&pattern)?;
        let end = at + pattern.len();
        from = end;
        let start = text[..at].rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))? + 1;
        if text[end..].starts_with(", ") {
            return Some(start..end + 2);
        }
        if text[end..].starts_with(" }") {
            let start = if text[..start].ends_with(", ") { start - 2 } else { start };
            return Some(start..end);
        }
    }
}
