//! No function returns a text longer than max_allowed_packet, however calls are nested; and KILL ends
//! functions that read or create a long text.

mod support;

use cohort_expr::EvalContext;
use cohort_types::{ErrorCode, Value};
use support::{TestSession, bind, row_of_g, session_env};

const LIMIT: u64 = 1024;

/// Calls with results beyond the limit. `?` is a text of 900 bytes.
const CALLS: &[(&str, &str)] = &[
    ("hex", "HEX(?)"),
    ("quote", "QUOTE(REPLACE(?, 'a', '\\\\'))"),
    ("insert", "INSERT(?, 1, 0, ?)"),
    ("export_set", "EXPORT_SET(-1, ?, 'b')"),
    ("make_set", "MAKE_SET(-1, ?, ?)"),
    ("weight_string", "WEIGHT_STRING(?)"),
    ("sformat", "SFORMAT('{}', ?, ?)"),
    ("column_create", "COLUMN_CREATE('a', ?, 'b', ?)"),
    ("json_array", "JSON_ARRAY(?, ?)"),
    ("json_object", "JSON_OBJECT('a', ?, 'b', ?)"),
    ("json_quote", "JSON_QUOTE(REPLACE(?, 'a', '\"'))"),
    ("json_set", "JSON_SET('{}', '$.a', ?, '$.b', ?)"),
    ("json_insert", "JSON_INSERT('{}', '$.a', ?, '$.b', ?)"),
    ("json_replace", "JSON_REPLACE('[1, 2]', '$[0]', ?, '$[1]', ?)"),
    ("json_array_append", "JSON_ARRAY_APPEND('[]', '$', ?, '$', ?)"),
    ("json_array_insert", "JSON_ARRAY_INSERT('[]', '$[0]', ?, '$[0]', ?)"),
    ("json_merge", "JSON_MERGE(JSON_ARRAY(?), JSON_ARRAY(?))"),
    ("json_merge_preserve", "JSON_MERGE_PRESERVE(JSON_ARRAY(?), JSON_ARRAY(?))"),
    ("json_merge_patch", "JSON_MERGE_PATCH(JSON_OBJECT('a', ?), JSON_OBJECT('b', ?))"),
    ("json_detailed", "JSON_DETAILED(CONCAT('[', REPEAT('1,', 400), '1]'))"),
    ("json_loose", "JSON_LOOSE(CONCAT('[', REPEAT('1,', 400), '1]'))"),
    ("json_normalize", "JSON_NORMALIZE(CONCAT('[', REPEAT('1,', 400), '1]'))"),
    ("json_extract", "JSON_EXTRACT(CONCAT('[[\"', ?, '\"]]'), '$[0]', '$[0][0]')"),
    ("json_search", "JSON_SEARCH(CONCAT('[', REPEAT('\"a\",', 200), '1]'), 'all', 'a')"),
];

#[test]
fn a_result_is_no_longer_than_a_packet() {
    let mut env = session_env();
    env.max_allowed_packet = LIMIT;
    let hooks = TestSession::default();
    for (name, call) in CALLS {
        let ctx = EvalContext::new(&env, &hooks, &[]);
        let expr = bind(&call.replace('?', "REPEAT('a', 900)"), &env).expect(call);
        let value = expr.eval(&[], &ctx).expect(call).into_owned();
        assert_eq!(value, Value::Null, "{call}");
        let warnings = ctx.take_warnings();
        let [warning] = warnings.list() else { panic!("{call}: {:?}", warnings.list()) };
        assert_eq!(warning.error.code, ErrorCode::WarnAllowedPacketOverflowed, "{call}");
        let text = format!("Result of {name}() was larger than max_allowed_packet (1024) - truncated");
        assert_eq!(warning.error.message, text, "{call}");
    }
}

/// Expressions that read the long text `s` of a row or create a long text, in few steps.
const READERS: &[&str] = &[
    "s + 1",
    "NOT s",
    "s = 1",
    "s BETWEEN 1 AND 2",
    "CAST(s AS SIGNED)",
    "CAST(s AS DOUBLE)",
    "CAST(s AS DECIMAL(10, 2))",
    "CONVERT(s USING latin1)",
    "s = s",
    "s < REVERSE(s)",
    "s IN ('a', 'b', 'c', 'd', 'e')",
    "CASE s WHEN s THEN 1 END",
    "LENGTH(s)",
    "REPEAT('a', 1000000)",
    "SPACE(1000000)",
    "SFORMAT('{:1000000}', 1)",
    "SFORMAT('{:.1000000f}', 1.5e0)",
    "CONV(s, 10, 16)",
];

#[test]
fn functions_over_long_texts_check_for_kill() {
    let env = session_env();
    let hooks = TestSession::default();
    let row = row_of_g(1, 10, 150, 0.5, &"1".repeat(1_000_000), "2020-01-01 10:00:00", (1, "z"));
    for text in READERS {
        let expr = bind(text, &env).expect(text);
        for killed in [false, true] {
            hooks.killed.set(killed);
            let ctx = EvalContext::new(&env, &hooks, &[]);
            let answer = expr.eval(&row, &ctx).map_err(|error| error.code);
            assert_eq!(answer.err(), killed.then_some(ErrorCode::QueryInterrupted), "{text}");
        }
    }
}
