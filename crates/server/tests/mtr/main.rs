//! Runs tests of MariaDB's own suites with its client `mariadb-test` against this server. The results must
//! equal MariaDB's result files byte for byte, except for engine names.
//!
//! `passing.txt` lists the tests that must pass; it only grows. With `COHORT_LONG_TESTS`, every test of the
//! suites `main`, `engines/funcs`, `funcs_1` and `roles` runs, a table of failure reasons is printed, and a
//! test that passes without being listed fails the run.
//!
//! A test of another suite than `main` is named with its suite: `roles.admin`.
//!
//! `COHORT_MTR=one,two` runs the named tests instead, and `COHORT_MTR_LIST=FILE` those listed in a file, one
//! per line. Their failures and the table are printed, and the names of the passed tests are written to
//! `FILE.passed`.
//!
//! `COHORT_MTR_MARIADB=1` runs them on a real MariaDB instead, to find those that it passes with this runner.
//!
//! Several servers run concurrently, each with its own tests.

#[path = "../support/mod.rs"]
mod support;

mod reasons;
mod suite;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use reasons::Reasons;
use suite::{Outcome, Suite};

/// Tests that must pass.
const PASSING: &str = include_str!("passing.txt");

/// Number of tests after which the server is replaced, so that leftovers of one test affect few others.
const TESTS_PER_SERVER: usize = 40;

/// Number of concurrent servers. Some tests only wait.
const SERVERS: usize = 3;

fn names(list: &str) -> Vec<String> {
    let lines = list.lines().filter(|line| !line.starts_with('#')).flat_map(|line| line.split(','));
    lines.filter_map(|name| name.split_whitespace().next()).map(str::to_owned).collect()
}

/// Results of several tests.
#[derive(Default)]
struct Results {
    passed: Vec<String>,
    failed: Vec<(String, String)>,
    /// Number of failed tests that have the right lines in another order.
    unordered: usize,
}

fn run(names: &[String]) -> Results {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Results::default()));
    std::thread::scope(|scope| {
        for _ in 0..SERVERS.min(names.len()) {
            scope.spawn(|| run_some(names, &next, &results));
        }
    });
    let mut results = results.into_inner().expect("no thread has panicked");
    results.passed.sort_unstable();
    results.failed.sort_unstable();
    println!(
        "{} of {} tests pass, {} with their lines sorted and EXPLAIN left out",
        results.passed.len(),
        names.len(),
        results.passed.len() + results.unordered
    );
    results
}

/// Runs tests that no other thread has taken.
fn run_some(names: &[String], next: &AtomicUsize, results: &Mutex<Results>) {
    let mut suite = Suite::new();
    let mut run = 0;
    while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
        if run == TESTS_PER_SERVER {
            (suite, run) = (Suite::new(), 0);
        }
        // Use the options that the test requires. If the server refuses them, run it like other tests.
        let own = Suite::for_test(name).and_then(Result::ok).map(|mut suite| suite.run(name));
        let outcome = match own {
            Some(Outcome::Passed) => Outcome::Passed,
            _ => {
                run += 1;
                suite.run(name)
            }
        };
        let mut results = results.lock().expect("no thread has panicked");
        let why = match outcome {
            Outcome::Passed => {
                results.passed.push(name.clone());
                continue;
            }
            Outcome::Unordered(why) => {
                results.unordered += 1;
                why
            }
            Outcome::Failed(why) => why,
        };
        results.failed.push((name.clone(), why));
        drop(results);
        // The test may have ended before its cleanup.
        (suite, run) = (Suite::new(), 0);
    }
}

impl Results {
    fn failures(&self) -> String {
        let lines: Vec<String> = self.failed.iter().map(|(name, why)| format!("{name}: {why}")).collect();
        lines.join("\n\n")
    }
}

#[test]
fn tests_of_mariadb_pass() {
    if let Ok(file) = std::env::var("COHORT_MTR_LIST") {
        let results = run(&names(&std::fs::read_to_string(&file).expect("a list of names")));
        println!("{}\n\n{}", results.failures(), Reasons::of(&results.failed));
        std::fs::write(format!("{file}.passed"), results.passed.join("\n") + "\n").expect("written");
        return;
    }
    let chosen = std::env::var("COHORT_MTR").map_or_else(|_| names(PASSING), |list| names(&list));
    assert!(!chosen.is_empty(), "no test is chosen");
    let results = run(&chosen);
    assert!(results.failed.is_empty(), "{} fail:\n{}", results.failed.len(), results.failures());
}

#[test]
fn every_test_that_passes_is_listed() {
    if std::env::var_os("COHORT_LONG_TESTS").is_none() {
        return;
    }
    let listed = names(PASSING);
    let results = run(&suite::all_tests());
    println!("{}", Reasons::of(&results.failed));
    let unlisted: Vec<&String> = results.passed.iter().filter(|name| !listed.contains(name)).collect();
    assert!(unlisted.is_empty(), "pass and are not in passing.txt: {unlisted:?}");
}

#[test]
fn required_cases_exist_exactly_once() {
    let listed = names(PASSING);
    let strangers: Vec<&String> = listed.iter().filter(|name| !suite::is_there(name)).collect();
    assert!(strangers.is_empty(), "not in the suite: {strangers:?}");
    assert!(listed.is_sorted_by(|a, b| a < b), "not sorted, or twice");
}
