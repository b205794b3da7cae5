//! The C API tests from MariaDB's sources, run by `mariadb-client-test` against this server: prepared
//! statements, cursors, long data, metadata, bulk execution, changes of user.
//!
//! `passing.txt` lists the tests that must pass; it only grows. With `COHORT_LONG_TESTS` all tests run,
//! failures are printed, and a test that passes without being listed fails the run.

#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;

use mysql::prelude::Queryable;
use support::{Cohort, run, text};

const PASSING: &str = include_str!("passing.txt");

/// Timeout per test; a test normally takes at most a second.
const SECONDS_MAX: &str = "60";

fn all() -> Vec<String> {
    let listing = text(&run("mariadb-client-test", &["--show-tests"]));
    let names = listing.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| name.starts_with("test_")).map(str::to_owned).collect()
}

/// Runs a test. Returns its output if it fails.
fn failure(server: &Cohort, name: &str) -> Option<String> {
    // Leftovers of a failed test must not disturb the next one.
    server.client().query_drop("DROP DATABASE IF EXISTS client_test_db").expect("dropped");
    let socket = format!("--socket={}", server.socket.display());
    let files = format!("--vardir={}", server.datadir.parent().expect("it lies in a folder").display());
    let program = ["mariadb-client-test", "--no-defaults", "--user=root", "--silent", "--testcase"];
    let arguments = [&[SECONDS_MAX], &program[..], &[&socket, &files, name]].concat();
    let output = run("timeout", &arguments);
    (!output.status.success()).then(|| text(&output))
}

#[test]
fn tests_of_the_c_api_pass() {
    let server = Cohort::new(&["--log-bin-trust-function-creators=1"]);
    server.client().query_drop("CREATE DATABASE IF NOT EXISTS test").expect("created");
    let listed: BTreeSet<&str> = PASSING.lines().filter(|line| !line.starts_with('#')).collect();
    let all = all();
    let is_long = std::env::var_os("COHORT_LONG_TESTS").is_some();
    let mut wrong = Vec::new();
    for name in all.iter().filter(|name| is_long || listed.contains(name.as_str())) {
        match (failure(&server, name), listed.contains(name.as_str())) {
            (Some(said), true) => wrong.push(format!("{name} fails:\n{said}")),
            (None, false) => wrong.push(format!("{name} passes and is not listed")),
            (Some(said), false) => println!("{name}: {}", said.lines().nth(2).unwrap_or_default()),
            (None, true) => {}
        }
    }
    let known = |name: &&&str| all.iter().any(|there| there == **name);
    wrong.extend(listed.iter().filter(|name| !known(name)).map(|name| format!("{name} is no test")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
