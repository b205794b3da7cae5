//! Tests of MariaDB's own suite `main`, run by its client `mariadb-test` against this server: the answers of
//! each are those that MariaDB's result file has, byte for byte but for the names of engines.
//!
//! `passing.txt` names the tests that must pass; it only grows. `COHORT_MTR=one,two` runs others instead, and
//! `COHORT_MTR_LIST=FILE` those of a file, a name a line; their failures are printed and the names of those
//! that passed are written to `FILE.passed`.

#[path = "../support/mod.rs"]
mod support;

mod suite;

use suite::{Outcome, Suite};

/// Tests that must pass.
const PASSING: &str = include_str!("passing.txt");

/// After so many tests the server is a new one, so that what one leaves behind disturbs few others.
const TESTS_PER_SERVER: usize = 40;

fn names(list: &str) -> Vec<String> {
    let lines = list.split(['\n', ',']).filter_map(|line| line.split_whitespace().next());
    lines.filter(|name| !name.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn tests_of_mariadb_pass() {
    let listed = std::env::var("COHORT_MTR_LIST").ok();
    let chosen = match (&listed, std::env::var("COHORT_MTR")) {
        (Some(file), _) => names(&std::fs::read_to_string(file).expect("a list of names")),
        (None, Ok(list)) => names(&list),
        (None, Err(_)) => names(PASSING),
    };
    assert!(!chosen.is_empty(), "no test is chosen");
    let (mut passed, mut failed) = (Vec::new(), Vec::new());
    for part in chosen.chunks(TESTS_PER_SERVER) {
        let mut suite = Suite::new();
        for name in part {
            match suite.run(name) {
                Outcome::Passed => passed.push(name.clone()),
                Outcome::Failed(why) => failed.push(format!("{name}: {why}")),
            }
        }
    }
    println!("{} of {} tests pass", passed.len(), chosen.len());
    if let Some(file) = listed {
        failed.iter().for_each(|line| println!("FAILED {line}"));
        std::fs::write(format!("{file}.passed"), passed.join("\n") + "\n").expect("written");
        return;
    }
    assert!(failed.is_empty(), "{} of {} fail:\n{}", failed.len(), chosen.len(), failed.join("\n\n"));
}
