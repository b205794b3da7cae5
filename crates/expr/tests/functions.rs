//! Checks the documentation page of functions against the functions that exist. `UPDATE_GOLDEN=1` rewrites
//! it.

mod support;

use std::fmt::Write as _;
use std::path::Path;

use cohort_types::ErrorCode;
use support::{bind, bind_aggregate, session_env};

const NAMES: &str = include_str!("golden/function_names.txt");
const SPATIAL: &str = include_str!("golden/spatial_names.txt");

/// Calls of functions whose arguments are not a plain list of values.
const CALLS: &[(&str, &str)] = &[
    ("avg", "AVG(1)"),
    ("cast", "CAST(1 AS CHAR)"),
    ("column_get", "COLUMN_GET('', 'a' AS CHAR)"),
    ("convert", "CONVERT('a' USING utf8mb4)"),
    ("default", "DEFAULT(c)"),
    ("date_add", "DATE_ADD('2020-01-01', INTERVAL 1 DAY)"),
    ("date_sub", "DATE_SUB('2020-01-01', INTERVAL 1 DAY)"),
    ("extract", "EXTRACT(DAY FROM '2020-01-01')"),
    ("get_format", "GET_FORMAT(DATE, 'EUR')"),
    ("lastval", "LASTVAL(s)"),
    ("match", "MATCH(c) AGAINST ('a')"),
    ("nextval", "NEXTVAL(s)"),
    ("regexp", "'a' REGEXP 'a'"),
    ("position", "POSITION('a' IN 'b')"),
    ("setval", "SETVAL(s, 1)"),
    ("sysdate", "SYSDATE()"),
    ("timestampadd", "TIMESTAMPADD(DAY, 1, '2020-01-01')"),
    ("timestampdiff", "TIMESTAMPDIFF(DAY, '2020-01-01', '2020-01-02')"),
];

/// Functions of a column or a sequence, which other crates bind.
const OF_STATEMENTS: &[&str] = &["default", "lastval", "nextval", "setval"];

/// Returns the error that refuses a function: none, unknown name, or not supported. Other errors concern
/// arguments.
fn refusal(name: &str) -> Option<u16> {
    let env = session_env();
    let listed = CALLS.iter().find(|(known, _)| *known == name).map(|(_, call)| vec![(*call).to_owned()]);
    let arguments = |n: usize| vec!["'1'"; n].join(", ");
    let calls = listed.unwrap_or_else(|| (0..5).map(|n| format!("{name}({})", arguments(n))).collect());
    let mut refused = None;
    for call in calls {
        if let Ok(Some(_)) = bind_aggregate(&call, &env) {
            return None;
        }
        match bind(&call, &env) {
            Ok(_) => return None,
            Err(error) if error.code == ErrorCode::WrongParamcountToNativeFct => return None,
            // Statements of other crates bind these; docs/compatibility.md has examples.
            Err(error) if OF_STATEMENTS.contains(&name) && error.code.number() == 1235 => return None,
            // Names are bound by another crate, but the parser knew the function.
            Err(error) if error.message.starts_with("not one expression") => return None,
            Err(error) => refused = Some(error.code.number()).filter(|code| *code != 1064).or(refused),
        }
    }
    refused.or(Some(1064))
}

#[test]
fn the_page_of_functions_is_true() {
    let mut page = String::from(
        "# Functions\n\nBuilt-in functions of MariaDB 10.11, without window functions. Made by \
         `UPDATE_GOLDEN=1 cargo test -p cohort-expr --test functions`.\n\n",
    );
    let listed = |list: &'static str| list.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = listed(NAMES).collect();
    let refusals: Vec<(&str, Option<u16>)> = names.iter().map(|name| (*name, refusal(name))).collect();
    let shown = |name: &str| format!("`{}`", name.to_ascii_uppercase());
    page += "## Not supported\n\n| function | error |\n|---|---|\n";
    for (name, code) in &refusals {
        if let Some(code) = code {
            writeln!(page, "| {} | {code} |", shown(name)).expect("a string");
        }
    }
    let spatial: Vec<String> = listed(SPATIAL).map(shown).collect();
    let accepted: Vec<&str> = listed(SPATIAL).filter(|name| refusal(name) != Some(1305)).collect();
    assert!(accepted.is_empty(), "no longer error 1305: {accepted:?}");
    write!(page, "\nError 1305, spatial functions: {}\n", spatial.join(", ")).expect("a string");
    let supported: Vec<String> =
        refusals.iter().filter(|(_, code)| code.is_none()).map(|(name, _)| shown(name)).collect();
    write!(page, "\n## Supported\n\n{} of {}:\n\n{}\n", supported.len(), names.len(), supported.join(", "))
        .expect("a string");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/functions.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &page).expect("writable");
    }
    let written = std::fs::read_to_string(&path).expect("the page is there");
    assert_eq!(written, page, "docs/functions.md is not what the functions are");
}
