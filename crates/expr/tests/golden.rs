//! Expressions whose answers a real MariaDB 10.11 gave. `tests/golden/record.sh` says how they are recorded.

mod support;

use std::path::Path;

use cohort_expr::{EvalContext, Expr, NOT_FIXED_DECIMALS, TypeClass};
use cohort_types::{Level, SqlResult, Value};
use support::{TestSession, bind, row_of_g, session_env};

/// Escapes as the client does in batch mode.
fn batch(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t").replace('\0', "\\0")
}

fn printed(expr: &Expr, value: &Value) -> String {
    let ty = expr.ty();
    let mut out = Vec::new();
    let decimals = match ty.class() {
        TypeClass::Real if ty.decimals >= NOT_FIXED_DECIMALS => NOT_FIXED_DECIMALS,
        _ => ty.decimals,
    };
    if value.is_null() {
        return "NULL".to_string();
    }
    value.write_text(decimals, &mut out);
    batch(&out)
}

/// Answer and warnings as the golden files write them.
fn answer(text: &str) -> String {
    let env = session_env();
    let row = row_of_g(1, 10, 150, 0.5, "b", "2020-01-01 10:00:00.5", (1, "z"));
    let hooks = TestSession::default();
    let ctx = EvalContext::new(&env, &hooks, &[]);
    let evaluated = (|| -> SqlResult<String> {
        let expr = bind(text, &env)?;
        let value = expr.eval_output(&row, &ctx)?;
        Ok(printed(&expr, &value))
    })();
    let mut line = match evaluated {
        Ok(value) => value,
        Err(error) => return error.to_string(),
    };
    let warnings: Vec<String> = ctx
        .take_warnings()
        .list()
        .iter()
        .map(|w| {
            let letter = if w.level == Level::Note { 'N' } else { 'W' };
            format!("{letter}{} {}", w.error.code.number(), w.error.message)
        })
        .collect();
    if !warnings.is_empty() {
        line.push('\t');
        line.push_str(&warnings.join(" | "));
    }
    line
}

fn check(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    let text = std::fs::read_to_string(&path).expect("the golden file is there");
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let (expression, wanted) = line.split_once('\t').expect("expression TAB answer");
        count += 1;
        let got = answer(expression);
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
fn columns() {
    check("columns.txt");
}
