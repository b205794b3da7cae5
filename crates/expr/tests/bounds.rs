//! No function makes a text longer than max_allowed_packet out of shorter ones, however calls are nested.

mod support;

use cohort_expr::EvalContext;
use cohort_types::{ErrorCode, Value};
use support::{TestSession, bind, session_env};

const LIMIT: u64 = 1024;

/// Calls whose results would be longer. `?` is a text of 900 bytes.
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
