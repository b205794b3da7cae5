//! Operations of planners and executors on trees: columns, folding, equality, strictness, keys; and a check
//! that comparing integers allocates nothing.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::cmp::Ordering;

use cohort_expr::*;
use cohort_types::{Collation, ColumnType, Decimal, ErrorCode, TypeKind, Value};
use support::{TestSession, bind, session_env};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// An allocator that counts the allocations of each thread.
struct Counting;

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller upholds the contract of GlobalAlloc.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn int_column(ordinal: usize) -> Expr {
    let ty = ExprType::of_column(&ColumnType::int(TypeKind::Int, None, false), true);
    Expr::column(ordinal, ty, format!("`t`.`c{ordinal}`"))
}

fn int_param(index: usize) -> Expr {
    Expr::param(index, ExprType::bigint(21))
}

#[test]
fn comparing_an_int_column_allocates_nothing() {
    let env = session_env();
    let hooks = TestSession::default();
    let params = [Value::Int(7)];
    let ctx = EvalContext::new(&env, &hooks, &params);
    let equal = compare_exprs(CompareOp::Eq, int_column(0), int_param(0)).expect("builds");
    let constants = (0..10).map(|n| Expr::constant(Value::Int(n))).collect();
    let in_set = in_list(int_column(0), constants, false).expect("builds");
    let range = between(int_column(0), Expr::constant(Value::Int(1)), int_param(0), false).expect("builds");
    let condition = and(vec![equal, in_set, range]);
    let row = [Value::Int(7)];
    let before = ALLOCATIONS.get();
    for _ in 0..100 {
        assert_eq!(condition.passes(&row, &ctx), Ok(true));
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
}

#[test]
fn columns_are_found_and_renumbered() {
    let env = session_env();
    let sum = build_binary(BinaryOp::Add, int_column(4), int_column(2), &env).expect("builds");
    let both = and(vec![
        compare_exprs(CompareOp::Gt, sum, int_column(4)).expect("builds"),
        is_null(int_column(7), false),
    ]);
    assert_eq!(both.columns(), [2, 4, 7]);
    let moved = both.map_columns(&mut |n| n + 1);
    assert_eq!(moved.columns(), [3, 5, 8]);
    let swapped = moved
        .transform(&mut |node| {
            Ok(if let Expr::Column(_) = node { Expr::constant(Value::Int(1)) } else { node })
        })
        .expect("rewrites");
    assert!(swapped.columns().is_empty() && swapped.is_const());
}

#[test]
fn folding_keeps_what_warns_or_fails_for_its_row() {
    let env = session_env();
    let hooks = TestSession::default();
    let ctx = EvalContext::new(&env, &hooks, &[]);
    let folds = |text: &str| matches!(bind(text, &env).expect("binds").fold(&ctx), Expr::Const(_));
    assert!(folds("1 + 2 * 3"));
    assert!(folds("CONCAT('a', UPPER('b'))"));
    assert!(!folds("1 / 0"));
    assert!(!folds("9223372036854775807 + 1"));
    assert!(!folds("'x' + 1"));
    assert!(!folds("NOW()"));
    assert!(!folds("RAND()"));
    assert_eq!(ctx.warning_count(), 0);
    let now = bind("NOW() + INTERVAL 1 DAY", &env).expect("binds");
    assert!(!now.is_const() && now.is_const_per_execution());
    assert!(!bind("RAND()", &env).expect("binds").is_const_per_execution());
}

#[test]
fn equality_is_structural() {
    let env = session_env();
    let of = |text: &str| bind(text, &env).expect("binds");
    assert_eq!(of("i + 1"), of("i + 1"));
    assert_ne!(of("i + 1"), of("i + 2"));
    assert_ne!(of("i + 1"), of("u + 1"));
    assert_eq!(of("CASE WHEN i > 1 THEN s END"), of("CASE WHEN i > 1 THEN s END"));
    assert_ne!(of("CAST(i AS CHAR)"), of("CAST(i AS SIGNED)"));
    assert_ne!(of("RAND()"), of("RAND()"));
}

#[test]
fn a_strict_data_change_makes_warnings_errors() {
    let env = session_env();
    let hooks = TestSession::default();
    let ctx = EvalContext::new(&env, &hooks, &[]);
    ctx.set_abort_on_warning(true);
    for (text, code) in [
        ("1 / 0", ErrorCode::DivisionByZero),
        ("'abc' + 1", ErrorCode::TruncatedWrongValue),
        ("DATE('x')", ErrorCode::TruncatedWrongValue),
    ] {
        let error = bind(text, &env).expect("binds").eval(&[], &ctx).map(|v| v.into_owned()).unwrap_err();
        assert_eq!(error.code, code, "{text}");
    }
}

#[test]
fn unsigned_subtraction_obeys_the_mode() {
    let mut env = session_env();
    env.sql_mode = env.sql_mode | cohort_types::SqlMode::NO_UNSIGNED_SUBTRACTION;
    let hooks = TestSession::default();
    let ctx = EvalContext::new(&env, &hooks, &[]);
    let expr = bind("CAST(1 AS UNSIGNED) - 2", &env).expect("binds");
    assert_eq!(expr.eval(&[], &ctx).expect("evaluates").into_owned(), Value::Int(-1));
}

#[test]
fn errors_name_columns() {
    let env = session_env();
    let hooks = TestSession::default();
    let ctx = EvalContext::new(&env, &hooks, &[]);
    let row = [Value::Int(i64::MAX)];
    let error = bind("i + 1", &env).expect("binds").eval(&row, &ctx).map(|v| v.into_owned()).unwrap_err();
    assert_eq!(error.message, "BIGINT value is out of range in '`t`.`g`.`i` + 1'");
}

#[test]
fn group_keys_are_equal_for_equal_values() {
    let text = Collation::UTF8MB4_GENERAL_CI;
    let key = |value: Value| {
        let mut out = Vec::new();
        append_group_key(&value, text, &mut out, &cohort_types::Uninterrupted).expect("uninterrupted");
        out
    };
    assert_eq!(key(Value::text("a")), key(Value::text("A ")));
    assert_ne!(key(Value::text("a")), key(Value::text("b")));
    assert_eq!(
        key(Value::Decimal(Decimal::from_i128(150, 2))),
        key(Value::Decimal(Decimal::from_i128(15, 1)))
    );
    assert_eq!(key(Value::Double(0.0)), key(Value::Double(-0.0)));
    assert_eq!(key(Value::Int(5)), key(Value::UInt(5)));
    assert_ne!(key(Value::Int(-1)), key(Value::UInt(u64::MAX)));
    assert_ne!(key(Value::Null), key(Value::text("")));
}

#[test]
fn rows_sort_with_null_first() {
    let keys = [
        SortKey { collation: Collation::UTF8MB4_GENERAL_CI, descending: false },
        SortKey { collation: Collation::BINARY, descending: true },
    ];
    let a = [Value::Null, Value::Int(1)];
    let b = [Value::text("a"), Value::Int(2)];
    let c = [Value::text("A"), Value::Int(1)];
    assert_eq!(compare_rows(&a, &b, &keys), Ordering::Less);
    assert_eq!(compare_rows(&b, &c, &keys), Ordering::Less);
    assert_eq!(compare_rows(&c, &c, &keys), Ordering::Equal);
}

#[test]
fn deep_trees_are_evaluated_as_far_as_the_stack_reaches() {
    let deep = |stack_bytes: usize| {
        let thread = std::thread::Builder::new().stack_size(stack_bytes).spawn(sum_of_a_thousand);
        thread.expect("a thread").join().expect("no overflow")
    };
    assert_eq!(deep(16 << 20), Ok(Value::Int(1001)));
    let small = deep(cohort_base::STACK_RESERVE + (64 << 10)).map_err(|error| error.code);
    assert!(matches!(small, Ok(_) | Err(cohort_types::ErrorCode::StackOverrunNeedMore)), "{small:?}");
}

fn sum_of_a_thousand() -> cohort_types::SqlResult<Value> {
    let env = session_env();
    let hooks = TestSession::default();
    let ctx = EvalContext::new(&env, &hooks, &[]);
    let mut sum = int_column(0);
    for _ in 0..1000 {
        sum = build_binary(BinaryOp::Add, sum, Expr::constant(Value::Int(1)), &env).expect("builds");
    }
    let folded = sum.fold(&ctx);
    folded.eval(&[Value::Int(1)], &ctx).map(std::borrow::Cow::into_owned)
}

#[test]
fn named_zones_judge_the_range_after_the_offset() {
    use cohort_types::{DateTime, LocalToUtc, SqlMode, TimeZone as _};
    let zone = |name| TimeZone::Named(jiff::tz::TimeZone::posix(name).expect("a zone's rule"));
    let new_york = zone("EST5");
    let local = |text: &str| DateTime::parse(text.as_bytes(), SqlMode::NONE).value.expect("a datetime");
    // Five hours west of UTC: its last TIMESTAMP is the evening of 18 January, its first one is in 1969.
    assert_eq!(new_york.to_utc(&local("2038-01-18 22:14:07")), LocalToUtc::Exact(0x7fff_ffff * 1_000_000));
    assert_eq!(new_york.to_utc(&local("2038-01-18 22:14:08")), LocalToUtc::OutOfRange);
    assert_eq!(new_york.to_utc(&local("1969-12-31 19:00:01")), LocalToUtc::Exact(1_000_000));
    let tokyo = zone("JST-9");
    assert_eq!(tokyo.to_utc(&local("2038-01-19 12:14:07")), LocalToUtc::Exact(0x7fff_ffff * 1_000_000));
    assert_eq!(tokyo.to_utc(&local("1970-01-01 08:59:59")), LocalToUtc::OutOfRange);
}
