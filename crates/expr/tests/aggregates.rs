//! Aggregates over the rows of a table, with the results of MariaDB 10.11:
//!
//! ```sql
//! CREATE TABLE g (i INT, u BIGINT UNSIGNED, d DECIMAL(6,2), f DOUBLE, s VARCHAR(10), t DATETIME(3),
//!   e ENUM('z','a','m'));
//! INSERT INTO g VALUES (1,10,1.50,0.5,'b','2020-01-01 10:00:00.5','z'),(2,20,2.25,1.5,'a','2020-01-02','a'),
//!   (NULL,NULL,NULL,NULL,NULL,NULL,NULL),(2,18446744073709551615,-3.75,2.5,'A','2019-01-01','m'),
//!   (-5,7,0,0.25,'c','2021-05-05 01:02:03','a');
//! ```

mod support;

use cohort_expr::{Aggregate, EvalContext, TypeClass};
use cohort_types::{SqlResult, Value};
use support::{TestSession, bind_aggregate, row_of_g as row, session_env};

fn rows() -> Vec<Vec<Value>> {
    vec![
        row(1, 10, 150, 0.5, "b", "2020-01-01 10:00:00.5", (1, "z")),
        row(2, 20, 225, 1.5, "a", "2020-01-02", (2, "a")),
        vec![Value::Null; 7],
        row(2, u64::MAX, -375, 2.5, "A", "2019-01-01", (3, "m")),
        row(-5, 7, 0, 0.25, "c", "2021-05-05 01:02:03", (2, "a")),
    ]
}

fn run(aggregate: &Aggregate, rows: &[Vec<Value>], ctx: &EvalContext<'_>) -> SqlResult<Value> {
    let mut state = aggregate.new_state();
    for row in rows {
        aggregate.add(&mut state, row, ctx)?;
    }
    aggregate.finish(state, ctx)
}

fn printed(aggregate: &Aggregate, value: &Value) -> String {
    if value.is_null() {
        return "NULL".to_string();
    }
    let rounded = match value {
        Value::Decimal(d) if aggregate.ty.class() == TypeClass::Decimal => {
            Value::Decimal(d.round(i32::from(aggregate.ty.decimals)).expect("fits"))
        }
        other => other.clone(),
    };
    let mut out = Vec::new();
    rounded.write_text(aggregate.ty.decimals, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn aggregates_answer_as_mariadb() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/aggregates.txt");
    let text = std::fs::read_to_string(path).expect("the golden file is there");
    let env = session_env();
    let hooks = TestSession::default();
    let ctx = EvalContext::new(&env, &hooks, &[]);
    let mut wrong = Vec::new();
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let mut fields = line.split('\t');
        let (expression, wanted) = (fields.next().expect("text"), fields.next().expect("answer"));
        let aggregate = bind_aggregate(expression, &env).expect("binds").expect("an aggregate");
        let got = run(&aggregate, &rows(), &ctx).map(|value| printed(&aggregate, &value));
        if got.as_deref() != Ok(wanted) {
            wrong.push(format!("{expression}\n   MariaDB: {wanted}\n    Cohort: {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn empty_groups() {
    let env = session_env();
    let hooks = TestSession::default();
    let ctx = EvalContext::new(&env, &hooks, &[]);
    for (text, wanted) in [
        ("COUNT(*)", "0"),
        ("COUNT(i)", "0"),
        ("SUM(i)", "NULL"),
        ("AVG(d)", "NULL"),
        ("MIN(s)", "NULL"),
        ("BIT_AND(i)", "18446744073709551615"),
        ("BIT_OR(i)", "0"),
        ("STD(i)", "NULL"),
        ("GROUP_CONCAT(s)", "NULL"),
    ] {
        let aggregate = bind_aggregate(text, &env).expect("binds").expect("an aggregate");
        let value = run(&aggregate, &[], &ctx).expect("finishes");
        assert_eq!(printed(&aggregate, &value), wanted, "{text}");
    }
}

#[test]
fn group_concat_is_cut_between_characters() {
    let mut env = session_env();
    env.group_concat_max_len = 4;
    let hooks = TestSession::default();
    let ctx = EvalContext::new(&env, &hooks, &[]);
    let aggregate = bind_aggregate("GROUP_CONCAT(s)", &env).expect("binds").expect("an aggregate");
    let wide = row(1, 1, 0, 0.0, "a\u{e4}\u{e4}", "2020-01-01", (1, "z"));
    let value = run(&aggregate, &[wide], &ctx).expect("finishes");
    assert_eq!(value.to_text(), "a\u{e4}");
    let warnings = ctx.take_warnings();
    assert_eq!(warnings.list()[0].error.message, "Row 1 was cut by GROUP_CONCAT()");
}
