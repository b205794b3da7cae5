//! Golden scripts: `golden/*.sql` contains statements, `golden/*.out` the results of MariaDB 10.11
//! (`golden/record.py` records them). Each script is one scenario, described in its first lines.
//!
//! `GOLDEN_REWRITE=1 cargo test -p cohort-exec --test golden` writes this server's results instead. Use it
//! for scripts whose names start with `own_`, which show features that MariaDB lacks.

mod support;
mod world;

use std::fmt::Write as _;
use std::path::Path;

/// Splits a script into statements, which end with a semicolon at the end of a line. A line that starts with
/// `--` is a comment.
fn statements(script: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut current = String::new();
    for line in script.lines().filter(|line| !line.starts_with("--")) {
        if !current.is_empty() {
            current.push('\n');
        }
        current.push_str(line);
        if let Some(statement) = current.trim().strip_suffix(';') {
            found.push(statement.to_owned());
            current.clear();
        }
    }
    assert!(current.trim().is_empty(), "no semicolon: {current}");
    found
}

fn run_script(path: &Path, run: &mut dyn FnMut(&str) -> String) -> String {
    let script = std::fs::read_to_string(path).expect("readable");
    let mut out = String::new();
    for statement in statements(&script) {
        let _ = writeln!(out, "> {}", statement.replace('\n', " "));
        out.push_str(&run(&statement));
    }
    out
}

fn check(name: &str) {
    let db = support::database();
    let mut session = support::session(&db, 1);
    check_with(name, &mut |statement| support::run(&mut session, statement));
}

/// Checks a script on a server that can change its catalog.
fn check_on_whole_server(name: &str) {
    let mut server = world::Server::open(&world::disk()).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    check_with(name, &mut |statement| support::answer(&mut client.session, statement));
}

fn check_with(name: &str, run: &mut dyn FnMut(&str) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let actual = run_script(&folder.join(format!("{name}.sql")), run);
    let expected_path = folder.join(format!("{name}.out"));
    if std::env::var_os("GOLDEN_REWRITE").is_some() && name.starts_with("own_") {
        std::fs::write(&expected_path, &actual).expect("writable");
        return;
    }
    let expected = std::fs::read_to_string(&expected_path).expect("recorded");
    if actual == expected {
        return;
    }
    let (mut shown, mut statement) = (0, String::new());
    let (mut a, mut e) = (blocks(&actual).into_iter(), blocks(&expected).into_iter());
    let mut report = String::new();
    while let (Some(ours), Some(theirs)) = (a.next(), e.next()) {
        if ours != theirs && shown < 40 {
            shown += 1;
            statement = ours.lines().next().unwrap_or_default().to_owned();
            let _ = writeln!(report, "expected:\n{theirs}\nactual:\n{ours}\n");
        }
    }
    panic!("{name}: {shown} statements differ, the last is {statement}\n{report}");
}

/// Splits a text into statements with their results.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with("> ") || blocks.is_empty() {
            blocks.push(String::new());
        }
        let block = blocks.last_mut().expect("pushed above");
        block.push_str(line);
        block.push('\n');
    }
    blocks
}

/// Runs the script of environment variable GOLDEN_SCRIPT, a path without extension. For searches with random
/// scripts.
#[test]
fn script_of_the_environment() {
    if let Some(path) = std::env::var_os("GOLDEN_SCRIPT") {
        check(path.to_str().expect("a path in UTF-8"));
    }
}

#[test]
fn change_steps() {
    check_on_whole_server("change_steps");
}

#[test]
fn programs() {
    check_on_whole_server("programs");
    check_on_whole_server("programs_language");
}

#[test]
fn programs_typed() {
    check_on_whole_server("programs_typed");
}

#[test]
fn programs_edges() {
    check_on_whole_server("programs_edges");
}

#[test]
fn programs_locked() {
    check_on_whole_server("programs_locked");
}

#[test]
fn programs_inside() {
    check_on_whole_server("programs_inside");
}

#[test]
fn stored_functions() {
    check_on_whole_server("stored_functions");
}

#[test]
fn triggers() {
    check_on_whole_server("triggers");
}

macro_rules! golden {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*
    };
}

golden! {
    plan_reuse
    select_random
    select_one_table
    select_index_conditions
    select_group
    select_join
    select_sysbench
    select_semi
    select_subquery
    select_nested
    select_outer_aggregates
    select_found_rows
    select_windows
    select_tables
    names_and_errors
    variables
    own_settings
    own_plans
    xa
    dml_insert
    dml_update
    dml_returning
    dml_joined
    dml_transaction
    dml_types
    literals_and_dates
    warnings_and_types
}
