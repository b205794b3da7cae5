//! Query scripts in the format of SQLite's sqllogictest (`script.rs`), with results recorded from a real
//! MariaDB; and TPC-H and the Star Schema Benchmark at a small scale, compared with MariaDB.
//!
//! `COHORT_RECORD=1` records MariaDB's results in the scripts. `COHORT_LOGIC=PATH` runs a file, or all
//! `*.test` below a directory, instead; for example those of SQLite's suite.

#[path = "../support/mod.rs"]
mod support;

mod benchmarks;
#[allow(dead_code)] // the benchmarks use only a part of it
#[path = "../../../bench/src/random.rs"]
mod random;
mod runner;
mod script;
#[path = "../../../bench/src/ssb/mod.rs"]
mod ssb;
#[path = "../../../bench/src/tpch/mod.rs"]
mod tpch;

use std::path::{Path, PathBuf};

use runner::{Asked, Tally};
use support::{Cohort, Maria};

/// Returns the directory of our scripts.
fn own_scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logic/scripts")
}

/// Returns the scripts below a path, ordered by name.
fn scripts(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(path).expect("a folder").map(|entry| entry.expect("listed").path()).collect();
    paths.sort();
    let is_script = |path: &PathBuf| path.is_dir() || path.extension().is_some_and(|end| end == "test");
    paths.iter().filter(|path| is_script(path)).flat_map(|path| scripts(path)).collect()
}

fn records(path: &Path) -> Vec<script::Record> {
    let text = std::fs::read_to_string(path).expect("readable");
    script::parsed(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs the scripts below a path. Errors fail the test.
fn check(path: &Path, asked: &mut Asked<'_>) -> usize {
    let (mut count, mut wrong) = (0, Vec::new());
    for path in scripts(path) {
        let tally: Tally = asked.run(&records(&path));
        count += tally.asked;
        wrong.extend(tally.wrong.iter().map(|text| format!("{}, {text}", path.display())));
    }
    println!("{count} statements and queries");
    assert!(wrong.is_empty(), "{} of {count} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    count
}

#[test]
fn answers_are_those_that_mariadb_gave() {
    let server = Cohort::new(&[]);
    let other = std::env::var_os("COHORT_LOGIC").map(PathBuf::from);
    let path = other.clone().unwrap_or_else(own_scripts);
    let count = check(&path, &mut Asked { client: &mut server.client(), names: &["mysql", "cohort"] });
    assert!(count > 1500 || other.is_some(), "{count} are few");
}

#[test]
fn recorded_answers_equal_mariadbs() {
    let mariadb = Maria::new(&[]);
    let mut client = mariadb.client();
    let mut asked = Asked { client: &mut client, names: &["mysql", "mariadb"] };
    if std::env::var_os("COHORT_RECORD").is_some() {
        for path in scripts(&own_scripts()) {
            let (recorded, tally) = asked.record(&records(&path));
            assert!(tally.wrong.is_empty(), "{}: {}", path.display(), tally.wrong.join("\n"));
            std::fs::write(&path, script::written(&recorded)).expect("written");
        }
    }
    check(&own_scripts(), &mut asked);
}

#[test]
fn wrong_answers_are_reported() {
    let server = Cohort::new(&[]);
    let mut client = server.client();
    let mut asked = Asked { client: &mut client, names: &["mysql", "cohort"] };
    let mut wrong = |text: &str| asked.run(&script::parsed(text).expect("a script")).wrong;
    assert!(wrong("query I\nSELECT 1\n----\n1\n").is_empty());
    for (text, expected) in [
        ("query I\nSELECT 1\n----\n2\n", "line 1: SELECT 1\n  expected\n    2\n  given\n    1"),
        ("query I\nSELECT 1\n----\n1\n1\n", "expected\n    1\n    1"),
        ("query II\nSELECT 1\n----\n1\n", "1 columns instead of 2"),
        ("query I\nSELECT a\n----\n1\n", "error 1054"),
        ("statement ok\nSELECT a\n", "error 1054"),
        ("statement error\nSELECT 1\n", "it succeeds"),
        ("statement error 1054\nSELECT\n", "error 1064"),
        (
            "query I nosort x\nSELECT 1\n----\n1\n\nquery I nosort x\nSELECT 2\n----\n2\n",
            "of line 1 with the label x",
        ),
        (
            "hash-threshold 1\n\nquery I\nSELECT 1 UNION SELECT 2\n----\n2 values hashing to 0\n",
            "given\n    2 values hashing to 6ddb4095eb719e2a9f0a3f95677d24e0",
        ),
    ] {
        let wrong = wrong(text);
        assert_eq!(wrong.len(), 1, "{text}: {wrong:?}");
        assert!(wrong[0].contains(expected), "{text}: {wrong:?}");
    }
    // Skipped records, and those after `halt`, are not run.
    assert!(
        wrong("skipif cohort\nquery I\nSELECT 1\n----\n2\n\nhalt\n\nquery I\nSELECT 1\n----\n2\n").is_empty()
    );
}
