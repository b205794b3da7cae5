//! Expressions with results recorded from MariaDB 10.11; `tests/golden/record.sh` describes how.

mod support;

use std::path::Path;

use support::{answer, row_of_g, world};

fn check(file: &str) {
    check_on(file, &row_of_g(1, 10, 150, 0.5, "b", "2020-01-01 10:00:00.5", (1, "z")));
}

fn check_on(file: &str, row: &[cohort_types::Value]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    let text = std::fs::read_to_string(&path).expect("the golden file is there");
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let (expression, wanted) = line.split_once('\t').expect("expression TAB answer");
        count += 1;
        let got = answer(expression, row);
        if got != wanted {
            wrong.push(format!("{expression}\n   MariaDB: {wanted}\n    Cohort: {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ in {file}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn arithmetic() {
    check("arithmetic.txt");
}

#[test]
fn comparison() {
    check("comparison.txt");
}

#[test]
fn long_texts() {
    check("long_texts.txt");
}

#[test]
fn strings() {
    check("strings.txt");
}

#[test]
fn dates() {
    check("dates.txt");
}

#[test]
fn casts() {
    check("casts.txt");
}

#[test]
fn json() {
    check("json.txt");
}

#[test]
fn information() {
    check("information.txt");
}

#[test]
fn addresses_compression_searches() {
    check("more_functions.txt");
}

#[test]
fn regular_expressions() {
    check("regex.txt");
}

#[test]
fn rows_of_every_type() {
    check_on("every_type.txt", &world::row());
}

#[test]
fn columns() {
    check("columns.txt");
}

#[test]
fn character_sets() {
    check("charsets.txt");
}

#[test]
fn dynamic_columns() {
    check("dynamic_columns.txt");
}

#[test]
fn xml() {
    check("xml.txt");
}

#[test]
fn texts_as_in_oracle() {
    check("oracle.txt");
}
