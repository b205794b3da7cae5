//! Tests of subqueries in expressions.

mod support;

use cohort_expr::{
    BinaryOp, CompareHow, CompareOp, EvalContext, Expr, SessionEnv, SubqueryTest, compare_exprs,
};
use cohort_optimize::{Join, JoinKind, JoinMethod, Node, Plan, Scan, Span, Spans};
use cohort_types::{Decimal, ErrorCode, SqlResult, Value};
use std::ops::Bound;
use support::*;

/// Returns the plan of `SELECT *, <item> FROM table`.
fn with_item(table: &str, width: usize, item: Expr) -> Plan {
    let mut items: Vec<Expr> = (0..width).map(col).collect();
    items.push(item);
    plan(Node::Project { input: Box::new(of(table, width)), items, kept: Vec::new() }, width + 1)
}

fn storage() -> Memory {
    Memory::new(&[
        ("t", table(&[&[1], &[2], &[3], &[1]])),
        ("u", table(&[&[1, 10], &[2, 20], &[2, 21], &[4, 40]])),
        ("none", Vec::new()),
    ])
}

/// Returns the plan of `SELECT y FROM u WHERE u.x = <slot 0>`.
fn correlated() -> Node {
    let filter = Node::Filter { input: Box::new(of("u", 2)), condition: eq(col(0), outer(0)) };
    Node::Project { input: Box::new(filter), items: vec![col(1)], kept: Vec::new() }
}

#[test]
fn a_scalar_is_the_value_of_the_only_row() {
    let item = subquery(0, SubqueryTest::Column(0), vec![(0, col(0))]);
    let mut root = with_item("t", 1, item);
    root.frame = 1;
    root.subqueries.push(subplan(correlated(), 1, &[0]));
    let mut one = storage();
    one.tables.insert("u".to_string(), table(&[&[1, 10], &[3, 30]]));
    assert_eq!(shown_all(&rows_of(&root, &mut one)), ["1 10", "2 NULL", "3 30", "1 10"]);
    assert_eq!(one.opened, 4, "t, and u for each value of t's column");
    let outcome = run_in(&root, &mut storage(), &Session::default());
    let error = outcome.expect_err("two rows for 2");
    assert_eq!(
        (error.code, error.message.as_str()),
        (ErrorCode::SubqueryNo1Row, "Subquery returns more than 1 row")
    );
}

#[test]
fn an_uncorrelated_subquery_runs_once_and_only_when_asked() {
    let item = subquery(0, SubqueryTest::Column(0), vec![]);
    let first = Node::Limit(Box::new(cohort_optimize::LimitNode {
        input: of("u", 2),
        limit: cohort_optimize::LimitCount { count: Some(lit(1)), offset: None },
        ties: None,
        count_all: false,
        reports_found: false,
    }));
    let mut root = with_item("t", 1, item);
    root.subqueries.push(subplan(first, 2, &[]));
    let mut all = storage();
    assert_eq!(shown_all(&rows_of(&root, &mut all)), ["1 1", "2 1", "3 1", "1 1"]);
    assert_eq!(all.opened, 2);
    let mut none = storage();
    none.tables.insert("t".to_string(), Vec::new());
    assert!(rows_of(&root, &mut none).is_empty());
    assert_eq!(none.opened, 1, "the subquery is not evaluated");
}

#[test]
fn the_columns_of_one_subquery_share_a_run() {
    let part = |n| subquery(0, SubqueryTest::Column(n), vec![]);
    let mut root = with_item("t", 1, binary(BinaryOp::Add, part(0), part(1)));
    let only = Node::Filter { input: Box::new(of("u", 2)), condition: eq(col(0), lit(4)) };
    root.subqueries.push(subplan(only, 2, &[]));
    let mut all = storage();
    assert_eq!(shown_all(&rows_of(&root, &mut all))[0], "1 44");
    assert_eq!(all.opened, 2);
}

#[test]
fn exists_asks_for_one_row() {
    let rows: Rows = (0..5000).map(|n| ints(&[Some(1), Some(n)])).collect();
    let mut storage = Memory::new(&[("t", table(&[&[1], &[2]])), ("u", rows)]);
    let inner =
        Node::Filter { input: Box::new(Node::Scan(Box::new(scan("u", 2)))), condition: eq(col(0), outer(0)) };
    let mut root = with_item("t", 1, subquery(0, SubqueryTest::Exists, vec![(0, col(0))]));
    root.frame = 1;
    root.subqueries.push(subplan(inner, 2, &[0]));
    assert_eq!(shown_all(&rows_of(&root, &mut storage)), ["1 1", "2 0"]);
    assert_eq!(storage.reads, 5001, "one row of the first run, all of the second");
}

#[test]
fn subqueries_in_subqueries_read_the_frames_around() {
    // SELECT x, (SELECT COUNT-like: y FROM u WHERE x = t.x AND EXISTS (SELECT * FROM u WHERE y = t.x * 10))
    let innermost = Node::Filter {
        input: Box::new(of("u", 2)),
        condition: eq(col(1), binary(BinaryOp::Mul, outer(0), lit(10))),
    };
    let exists = subquery(1, SubqueryTest::Exists, vec![]);
    let condition = binary(BinaryOp::And, eq(col(0), outer(0)), exists);
    let middle = Node::Filter { input: Box::new(of("u", 2)), condition };
    let mut root = with_item("t", 1, subquery(0, SubqueryTest::Exists, vec![(0, col(0))]));
    root.frame = 1;
    root.subqueries = vec![subplan(middle, 2, &[0]), subplan(innermost, 2, &[0])];
    assert_eq!(shown_all(&rows_of(&root, &mut storage())), ["1 1", "2 1", "3 0", "1 1"]);
}

#[test]
fn spans_may_name_subqueries() {
    // SELECT * FROM u WHERE x = (SELECT 2), by an index: the two never use the storage at the same time.
    let key = subquery(0, SubqueryTest::Column(0), vec![]);
    let mut root = plan(Node::Scan(Box::new(lookup("u", 2, 0, key))), 2);
    let two =
        Node::Filter { input: Box::new(Node::Scan(Box::new(scan("t", 1)))), condition: eq(col(0), lit(2)) };
    root.subqueries.push(subplan(two, 1, &[]));
    assert_eq!(shown_all(&rows_of(&root, &mut storage())), ["2 20", "2 21"]);
    // A subquery that is evaluated each time, in a lookup join.
    let upper = subquery(0, SubqueryTest::Column(0), vec![]);
    let spans = Spans::List(vec![Span { upper: Bound::Included(upper), ..Span::of_keys(vec![col(0)]) }]);
    let inner = lookup("u", 2, 0, lit(0));
    let inner = Scan { access: cohort_optimize::Access { spans, ..inner.access.clone() }, ..inner };
    let join = Join {
        kind: JoinKind::Inner,
        left: of("t", 1),
        method: JoinMethod::Lookup(Box::new(inner)),
        on: None,
    };
    let mut root = plan(Node::Join(Box::new(join)), 3);
    let max =
        Node::Filter { input: Box::new(Node::Scan(Box::new(scan("t", 1)))), condition: eq(col(0), lit(2)) };
    root.subqueries.push(cohort_optimize::SubqueryPlan { is_volatile: true, ..subplan(max, 1, &[]) });
    assert_eq!(shown_all(&rows_of(&root, &mut storage())), ["1 1 10", "2 2 20", "2 2 21", "1 1 10"]);
}

/// Returns a quantified comparison built as the binder builds it: operand and comparison method.
fn quantified(
    id: usize,
    operand: Expr,
    op: CompareOp,
    all: bool,
    with: Expr,
    outer: Vec<(usize, Expr)>,
) -> Expr {
    let Ok(Expr::Compare(node)) = compare_exprs(op, operand, with) else { panic!("they compare") };
    subquery(id, SubqueryTest::Quantified { operand: node.left, op, all, how: node.how }, outer)
}

/// Evaluates `operand op ANY|ALL (SELECT values)`, both as a query that never changes and as one that does.
fn ask(operand: Value, op: CompareOp, all: bool, values: &[Value]) -> Value {
    let rows: Rows = values.iter().map(|v| vec![v.clone()]).collect();
    let typed = |value: Option<&Value>| {
        value.map_or(col(0), |value| Expr::column(0, Expr::constant(value.clone()).ty(), "c"))
    };
    let with = typed(values.iter().find(|v| !v.is_null()));
    let answers: Vec<Value> = [false, true]
        .into_iter()
        .map(|is_correlated| {
            let reads: &[usize] = if is_correlated { &[0] } else { &[] };
            let filled = if is_correlated { vec![(0, lit(1))] } else { vec![] };
            let item = quantified(0, Expr::constant(operand.clone()), op, all, with.clone(), filled);
            let mut root = plan(
                Node::Project {
                    input: Box::new(Node::Unit),
                    items: vec![item.clone(), item],
                    kept: Vec::new(),
                },
                2,
            );
            root.frame = 1;
            root.subqueries.push(subplan(of("v", 1), 1, reads));
            let row = rows_of(&root, &mut Memory::new(&[("v", rows.clone())])).remove(0);
            assert_eq!(row[0], row[1], "asked twice");
            row[0].clone()
        })
        .collect();
    assert_eq!(answers[0], answers[1], "{operand:?} {op:?} all {all} {values:?}");
    answers[0].clone()
}

/// Evaluates the definition: a disjunction for ANY, a conjunction for ALL.
fn defined(operand: &Value, op: CompareOp, all: bool, values: &[Value]) -> SqlResult<Value> {
    let env = SessionEnv::new(0);
    let session = Session::default();
    let eval = EvalContext::new(&env, &session, &[]);
    let mut answer = Some(all);
    for value in values {
        let test = compare_exprs(op, Expr::constant(operand.clone()), Expr::constant(value.clone()))?;
        match test.eval_bool(&[], &eval)? {
            Some(holds) if holds != all => return Ok(Value::bool(holds)),
            Some(_) => {}
            None => answer = None,
        }
    }
    Ok(answer.map_or(Value::Null, Value::bool))
}

const OPS: [CompareOp; 6] =
    [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];

#[test]
fn any_and_all_answer_as_their_definition() {
    let decimal = |text: &[u8]| Value::Decimal(Decimal::parse(text).0);
    let families: Vec<Vec<Value>> = vec![
        vec![int(1), int(2), int(3), Value::UInt(2), decimal(b"2.0"), decimal(b"2.5"), Value::Null],
        vec![Value::text("a"), Value::text("B"), Value::text("b "), Value::text("c"), Value::Null],
        vec![Value::Double(0.5), Value::Double(-0.0), Value::Double(0.0), Value::Null],
        vec![int(2), Value::text("2"), Value::text("2x"), Value::text("b"), Value::Null],
    ];
    let mut state = 88172645463325252u64;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % n as u64) as usize
    };
    for round in 0..600 {
        let family = &families[below(families.len())];
        // A column has one type, so the rows are of one class; the operand may have any.
        let kind = |value: &Value| value.class();
        let wanted = kind(&family[below(family.len() - 1)]);
        let rows: Vec<Value> = (0..below(6))
            .map(|_| family[below(family.len())].clone())
            .filter(|value| value.is_null() || kind(value) == wanted)
            .collect();
        let operand = family[below(family.len())].clone();
        for op in OPS {
            for all in [false, true] {
                let expected = defined(&operand, op, all, &rows).expect("compares");
                assert_eq!(
                    ask(operand.clone(), op, all, &rows),
                    expected,
                    "{round}: {operand:?} {op:?} {all} {rows:?}"
                );
            }
        }
    }
}

/// Expects MariaDB's results of `SELECT (a, b) IN (SELECT u, d FROM n)` with the rows (1,1.5), (2,1.75),
/// (7,3) and (9,3.25) in n.
#[test]
fn rows_in_a_query_answer_as_mariadb() {
    let n: Rows = [(1, "1.5"), (2, "1.75"), (7, "3"), (9, "3.25")]
        .iter()
        .map(|(u, d)| vec![int(*u), Value::Decimal(Decimal::parse(d.as_bytes()).0)])
        .collect();
    let decimal = Value::Decimal(Decimal::parse(b"1.5").0);
    let mut with_null = n.clone();
    with_null.push(vec![int(5), Value::Null]);
    for (rows, a, b, wanted) in [
        (&n, int(1), Value::Null, Value::Null),
        (&n, int(100), Value::Null, int(0)),
        (&n, Value::Null, int(3), Value::Null),
        (&n, int(1), decimal.clone(), int(1)),
        (&n, int(2), decimal.clone(), int(0)),
        (&with_null, int(5), decimal.clone(), Value::Null),
        (&with_null, int(6), decimal.clone(), int(0)),
        (&with_null, int(1), decimal, int(1)),
    ] {
        for (op, all) in [(CompareOp::Eq, false), (CompareOp::Ne, true)] {
            let operand = Expr::Row(vec![Expr::constant(a.clone()), Expr::constant(b.clone())]);
            let how = CompareHow::Row(vec![CompareHow::scalar(CI), CompareHow::scalar(CI)]);
            let item = subquery(0, SubqueryTest::Quantified { operand, op, all, how }, vec![]);
            let mut root =
                plan(Node::Project { input: Box::new(Node::Unit), items: vec![item], kept: Vec::new() }, 1);
            root.subqueries.push(subplan(of("n", 2), 2, &[]));
            let got = rows_of(&root, &mut Memory::new(&[("n", rows.clone())])).remove(0).remove(0);
            let wanted = match (&wanted, all) {
                (Value::Int(v), true) => int(1 - v),
                (value, _) => value.clone(),
            };
            assert_eq!(got, wanted, "({a:?}, {b:?}) {op:?} {all}");
        }
    }
}

#[test]
fn a_long_list_is_found_by_key_and_not_row_by_row() {
    let rows: Rows = (0..20_000).map(|n| ints(&[Some(n * 2)])).collect();
    let item = quantified(0, col(0), CompareOp::Eq, false, col(0), vec![]);
    let less = quantified(1, col(0), CompareOp::Lt, true, col(0), vec![]);
    let mut root = with_item("v", 1, binary(BinaryOp::Add, item, less));
    root.subqueries = vec![subplan(of("v", 1), 1, &[]), subplan(of("v", 1), 1, &[])];
    for memory in [usize::MAX, 1 << 12] {
        let mut storage = Memory::new(&[("v", rows.clone())]);
        storage.memory = memory;
        let session = Session::default();
        session.patience.set(Some(1000));
        let (got, _) = run_in(&root, &mut storage, &session).expect("far from quadratic");
        assert!(got.iter().all(|row| row[1] == int(1)));
    }
}

#[test]
fn answers_of_many_outer_rows_take_bounded_memory() {
    let budget = cohort_base::Budget::of_session(&cohort_base::Budget::of_server());
    let session = Session { budget: Some(std::sync::Arc::clone(&budget)), ..Session::default() };
    let rows: Rows = (0..100_000).map(|n| ints(&[Some(n % 50_000)])).collect();
    let mut root = with_item("v", 1, subquery(0, SubqueryTest::Column(0), vec![(0, col(0))]));
    root.frame = 1;
    let same = Node::Project { input: Box::new(Node::Unit), items: vec![outer(0)], kept: Vec::new() };
    root.subqueries.push(subplan(same, 1, &[0]));
    let mut storage = Memory::new(&[("v", rows)]);
    let env = SessionEnv::new(0);
    let eval = EvalContext::new(&env, &session, &[]);
    let mut wrong = 0;
    cohort_run::run(&root, &[], &mut storage, &eval, &mut |row| {
        wrong += usize::from(row[0] != row[1]);
        Ok(std::ops::ControlFlow::Continue(()))
    })
    .expect("runs");
    assert_eq!(wrong, 0);
    // The table's rows as returned by the storage, and one MiB of cached results.
    let table = 100_000 * (size_of::<Vec<Value>>() + size_of::<Value>()) as u64;
    assert!(budget.peak() < table + (3 << 20), "{}", budget.peak());
}
