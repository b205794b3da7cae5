//! Tests of each operator on a few rows, with literal expected results.

mod support;

use cohort_expr::{AggregateKind, BinaryOp, CompareOp, Expr, ExprType};
use cohort_locks::WaitPolicy;
use cohort_optimize::{
    AggregateNode, HashKey, Join, JoinKind, JoinMethod, LimitCount, LimitNode, Node, PartId, ReadMode,
    RecursiveStep, Scan, SetOperation, Sort, VirtualScan,
};
use cohort_run::{Batch, Event, Sorted};
use cohort_types::{Decimal, ErrorCode, NoWarnings, Str, TypeKind, Value};
use support::*;

fn limit(input: Node, offset: Option<i64>, count: Option<i64>, count_all: bool) -> Node {
    let limit = LimitCount { count: count.map(lit), offset: offset.map(lit) };
    Node::Limit(Box::new(LimitNode { input, limit, ties: None, count_all, reports_found: count_all }))
}

fn numbers(last: u64) -> Node {
    Node::Series { first: 1, last, step: 1 }
}

#[test]
fn rows_of_nothing_and_of_expressions() {
    let mut storage = Memory::new(&[]);
    let unit = plan(Node::Project { input: Box::new(Node::Unit), items: vec![lit(7)], kept: Vec::new() }, 1);
    assert_eq!(shown_all(&rows_of(&unit, &mut storage)), ["7"]);
    assert!(rows_of(&plan(Node::Empty, 1), &mut storage).is_empty());
    let values = plan(Node::Values(vec![vec![lit(1), lit(2)], vec![lit(3), Expr::null()]]), 1);
    assert_eq!(shown_all(&rows_of(&values, &mut storage)), ["1", "3"], "one column of two is the result");
    for (first, last, step, wanted) in [
        (1, 5, 2, vec!["1", "3", "5"]),
        (5, 1, -2, vec!["5", "3", "1"]),
        (2, 1, 1, vec![]),
        (3, 3, -1, vec!["3"]),
    ] {
        assert_eq!(shown_all(&rows_of(&plan(Node::Series { first, last, step }, 1), &mut storage)), wanted);
    }
    let top = plan(Node::Series { first: u64::MAX - 1, last: u64::MAX, step: 1 }, 1);
    assert_eq!(rows_of(&top, &mut storage).len(), 2, "the end of the numbers is no overflow");
    let both = plan(Node::Concat(vec![numbers(2), Node::Empty, numbers(1)]), 1);
    assert_eq!(shown_all(&rows_of(&both, &mut storage)), ["1", "2", "1"]);
}

#[test]
fn limits_read_no_more_than_they_need() {
    let rows: Rows = (0..5000).map(|n| ints(&[Some(n), Some(n % 10)])).collect();
    let mut storage = Memory::new(&[("t", rows)]);
    let read = |storage: &mut Memory, root: Node| {
        storage.reads = 0;
        let (rows, found) = run_in(&plan(root, 2), storage, &Session::default()).expect("runs");
        (rows.len(), found, storage.reads)
    };
    let table = || Node::Scan(Box::new(scan("t", 2)));
    assert_eq!(read(&mut storage, limit(table(), None, Some(3), false)), (3, 3, 3));
    assert_eq!(read(&mut storage, limit(table(), Some(1500), Some(2), false)), (2, 2, 1502));
    assert_eq!(read(&mut storage, limit(table(), None, Some(0), false)), (0, 0, 0));
    assert_eq!(read(&mut storage, limit(table(), Some(4990), None, false)), (10, 10, 5000));
    assert_eq!(read(&mut storage, limit(table(), Some(2), Some(3), true)), (3, 5000, 5000));
    // One row of ten passes: reading stops at the last wanted row.
    let some = Node::Filter { input: Box::new(table()), condition: eq(col(1), lit(4)) };
    assert_eq!(read(&mut storage, limit(some, None, Some(3), false)), (3, 3, 25));
    storage.opened = 0;
    read(&mut storage, limit(table(), None, Some(0), false));
    assert_eq!(storage.opened, 0, "nothing is opened for no rows");
}

#[test]
fn a_locking_read_below_a_limit_locks_one_row_at_a_time() {
    let rows: Rows = (0..100).map(|n| ints(&[Some(n), Some(n)])).collect();
    let mut storage = Memory::new(&[("t", rows.clone()), ("u", rows)]);
    let locking =
        Scan { mode: ReadMode::LockExclusive(WaitPolicy::SkipLocked), with_key: true, ..scan("t", 2) };
    let matched = Scan { mode: ReadMode::LockExclusive(WaitPolicy::SkipLocked), ..lookup("u", 2, 0, col(0)) };
    let join = Join {
        kind: JoinKind::Inner,
        left: Node::Scan(Box::new(locking)),
        method: JoinMethod::Lookup(Box::new(matched)),
        on: None,
    };
    let one = plan(limit(Node::Join(Box::new(join)), None, Some(1), false), 5);
    let rows = rows_of(&one, &mut storage);
    assert_eq!(shown_all(&rows), ["0 0 Int(0) 0 0"], "the key comes after the columns");
    assert_eq!(storage.reads, 2, "one row of each table");
}

#[test]
fn scans_yield_the_columns_they_are_asked_for() {
    let mut storage = Memory::new(&[("t", table(&[&[1, 2, 3]]))]);
    let columns = |columns: &[usize]| Scan { columns: columns.to_vec(), ..scan("t", 3) };
    let yielded = |storage: &mut Memory, of: &[usize]| {
        shown_all(&rows_of(&plan(Node::Scan(Box::new(columns(of))), of.len()), storage))
    };
    assert_eq!(yielded(&mut storage, &[2, 0]), ["3 1"]);
    assert_eq!(yielded(&mut storage, &[1, 1]), ["2 2"]);
    assert_eq!(yielded(&mut storage, &[]), [""]);
    let node = VirtualScan {
        schema: "t".into(),
        table: "t".into(),
        name: "t".into(),
        block: 1,
        filter: Some(eq(col(0), lit(1))),
        columns: vec![2, 2],
        part: PartId::default(),
    };
    assert_eq!(shown_all(&rows_of(&plan(Node::Virtual(Box::new(node)), 2), &mut storage)), ["3 3"]);
}

#[test]
fn projections_move_what_is_read_once() {
    let rows = vec![vec![Value::text("a"), Value::text("b")]];
    let mut storage = Memory::new(&[("t", rows)]);
    let items = vec![text_col(1), text_col(0), text_col(1), text_col(0)];
    let node = Node::Project { input: Box::new(of("t", 2)), items, kept: Vec::new() };
    assert_eq!(shown_all(&rows_of(&plan(node, 4), &mut storage)), ["b a b a"]);
}

fn people() -> Memory {
    Memory::new(&[
        ("l", vec![ints(&[Some(1), Some(10)]), ints(&[Some(2), Some(20)]), ints(&[None, Some(30)])]),
        ("r", vec![ints(&[Some(1), Some(5)]), ints(&[Some(1), Some(15)]), ints(&[None, Some(0)])]),
    ])
}

/// Returns the three methods of joining the two tables by their first columns.
fn ways(kind: JoinKind, on: Option<Expr>) -> Vec<Node> {
    let conjunction = |on: &Option<Expr>| {
        let equal = eq(col(0), col(2));
        Some(match on {
            Some(on) => binary(BinaryOp::And, equal, on.clone()),
            None => equal,
        })
    };
    let join = |method, on| Node::Join(Box::new(Join { kind, left: of("l", 2), method, on }));
    let key = HashKey { left: col(0), right: col(0), collation: CI };
    let hash = JoinMethod::Hash { right: of("r", 2), keys: vec![key], right_width: 2 };
    let nested = JoinMethod::Loop { right: of("r", 2), right_width: 2, gate: None };
    let index = JoinMethod::Lookup(Box::new(lookup("r", 2, 0, col(0))));
    vec![join(hash, on.clone()), join(index, on.clone()), join(nested, conjunction(&on))]
}

#[test]
fn joins_of_all_kinds() {
    let less = || Some(cmp(CompareOp::Lt, col(1), col(3)));
    for (kind, on, wanted) in [
        (JoinKind::Inner, None, vec!["1 10 1 5", "1 10 1 15"]),
        (JoinKind::Inner, less(), vec!["1 10 1 15"]),
        (JoinKind::Left, None, vec!["1 10 1 5", "1 10 1 15", "2 20 NULL NULL", "NULL 30 NULL NULL"]),
        (JoinKind::Left, less(), vec!["1 10 1 15", "2 20 NULL NULL", "NULL 30 NULL NULL"]),
        (JoinKind::Semi, None, vec!["1 10"]),
        (JoinKind::Semi, less(), vec!["1 10"]),
        (JoinKind::Anti, None, vec!["2 20", "NULL 30"]),
        (JoinKind::Anti, less(), vec!["2 20", "NULL 30"]),
        (JoinKind::Anti, Some(cmp(CompareOp::Gt, col(3), lit(99))), vec!["1 10", "2 20", "NULL 30"]),
        (
            JoinKind::Left,
            Some(cmp(CompareOp::Gt, col(3), lit(99))),
            vec!["1 10 NULL NULL", "2 20 NULL NULL", "NULL 30 NULL NULL"],
        ),
    ] {
        let width = if matches!(kind, JoinKind::Semi | JoinKind::Anti) { 2 } else { 4 };
        for node in ways(kind, on.clone()) {
            let node = plan(node, width);
            assert_eq!(shown_all(&rows_of(&node, &mut people())), wanted, "{kind:?} {on:?} {node:?}");
        }
    }
}

#[test]
fn hash_keys_of_two_types_are_equal_when_their_values_are() {
    let typed = |value: &Value| Expr::column(0, Expr::constant(value.clone()).ty(), "c");
    let decimal = |text: &[u8]| Value::Decimal(Decimal::parse(text).0);
    let label = Str { bytes: b"A".to_vec(), collation: CI };
    let in_enum = Value::Enum { index: 7, label };
    let enum_type = ExprType { kind: TypeKind::Enum, ..Expr::constant(Value::text("a")).ty() };
    for (left, right, matches) in [
        (int(2), decimal(b"2.00"), true),
        (Value::UInt(2), int(2), true),
        (decimal(b"2.5"), Value::Double(2.5), true),
        (int(2), Value::Double(2.0), true),
        (int(2), decimal(b"2.01"), false),
        (Value::text("a"), in_enum, true),
    ] {
        let key = |value: &Value| match value {
            Value::Enum { .. } => Expr::column(0, enum_type.clone(), "c"),
            other => typed(other),
        };
        let key = HashKey { left: key(&left), right: key(&right), collation: CI };
        let method = JoinMethod::Hash { right: of("r", 1), keys: vec![key], right_width: 1 };
        let node = Node::Join(Box::new(Join { kind: JoinKind::Semi, left: of("l", 1), method, on: None }));
        let mut storage = Memory::new(&[("l", vec![vec![left.clone()]]), ("r", vec![vec![right.clone()]])]);
        assert_eq!(rows_of(&plan(node, 1), &mut storage).len(), usize::from(matches), "{left:?} {right:?}");
    }
}

#[test]
fn a_right_side_is_not_read_for_no_left_rows() {
    for kind in [JoinKind::Inner, JoinKind::Left] {
        for node in ways(kind, None) {
            let mut storage = people();
            storage.tables.insert("l".to_string(), Vec::new());
            assert!(rows_of(&plan(node, 4), &mut storage).is_empty());
            assert_eq!(storage.opened, 1, "the left side only");
        }
    }
}

fn grouped(keys: &[usize], first: &[usize], aggregates: Vec<cohort_expr::Aggregate>) -> AggregateNode {
    AggregateNode {
        input: of("g", 3),
        keys: keys.iter().map(|n| (col(*n), CI)).collect(),
        is_grouped: !keys.is_empty(),
        first: first.iter().map(|n| col(*n)).collect(),
        aggregates,
        rollup: false,
        descending: Vec::new(),
        ordered: false,
    }
}

/// Returns the rows of `CREATE TABLE g (a INT, b INT, c INT)`.
fn groups() -> Memory {
    let rows = [
        [Some(1), Some(1), Some(10)],
        [Some(1), Some(2), Some(20)],
        [Some(2), Some(1), Some(30)],
        [Some(2), Some(1), Some(40)],
        [None, Some(1), Some(50)],
        [Some(2), None, Some(60)],
    ];
    Memory::new(&[("g", rows.iter().map(|row| ints(row)).collect())])
}

#[test]
fn groups_hashed_and_in_order() {
    let aggregates =
        || vec![aggregate(AggregateKind::Sum, vec![col(2)]), aggregate(AggregateKind::CountStar, vec![])];
    let hashed = grouped(&[0], &[1], aggregates());
    let root = plan(Node::Aggregate(Box::new(hashed)), 4);
    assert_eq!(shown_all(&rows_of(&root, &mut groups())), ["1 1 30 2", "2 1 130 3", "NULL 1 50 1"]);
    let ordered = AggregateNode { ordered: true, ..grouped(&[0], &[1], aggregates()) };
    let root = plan(Node::Aggregate(Box::new(ordered)), 4);
    assert_eq!(shown_all(&rows_of(&root, &mut groups())), ["NULL 1 50 1", "1 1 30 2", "2 1 130 3"]);
    let root = plan(Node::Aggregate(Box::new(grouped(&[], &[0], aggregates()))), 3);
    assert_eq!(shown_all(&rows_of(&root, &mut groups())), ["1 210 6"]);
    let mut none = groups();
    none.tables.insert("g".to_string(), Vec::new());
    assert_eq!(shown_all(&rows_of(&root, &mut none)), ["NULL NULL 0"], "one group of no rows");
    let explicit = AggregateNode { is_grouped: true, ..grouped(&[], &[0], aggregates()) };
    assert!(rows_of(&plan(Node::Aggregate(Box::new(explicit)), 3), &mut none).is_empty());
}

#[test]
fn groups_of_vectors_are_those_of_rows() {
    let long = i64::MAX / 2;
    let rows: Vec<Vec<Value>> = (0..200)
        .map(|n| {
            let text = ["x", "X", "y"][n as usize % 3];
            // Sums of these exceed 64 bits.
            let number = if n < 150 { long - n } else { long + n };
            vec![int(n % 7), Value::text(text), if n % 5 == 0 { Value::Null } else { int(number) }]
        })
        .collect();
    // The last one fits for some rows only, which is an error of the statement.
    let too_large = add(col(2), binary(cohort_expr::BinaryOp::Mul, col(0), lit(long / 5)));
    for keys in [vec![], vec![0], vec![1], vec![0, 1]] {
        for sum in [col(2), add(col(2), col(0)), too_large.clone()] {
            let aggregates = vec![
                aggregate(AggregateKind::Sum, vec![sum]),
                aggregate(AggregateKind::Avg, vec![col(0)]),
                aggregate(AggregateKind::Count, vec![col(2)]),
                aggregate(AggregateKind::Min, vec![col(2)]),
                aggregate(AggregateKind::Max, vec![col(2)]),
            ];
            let node = |input| {
                let key = |n: &usize| (if *n == 1 { text_col(1) } else { col(*n) }, CI);
                let placed = keys.iter().map(key).collect();
                let node = AggregateNode {
                    input,
                    keys: placed,
                    ordered: true,
                    ..grouped(&[], &[], aggregates.clone())
                };
                plan(Node::Aggregate(Box::new(node)), 5 + keys.len())
            };
            let by_rows = node(of("g", 3));
            let by_vectors = node(Node::Scan(Box::new(scan("g", 3))));
            for memory in [usize::MAX, 1] {
                let mut tables = Memory::new(&[("g", rows.clone())]);
                tables.memory = memory;
                let mut outcome = |plan| {
                    let outcome = run_in(plan, &mut tables, &Session::default());
                    outcome.map(|(rows, _)| shown_all(&rows)).map_err(|error| error.code)
                };
                let expected = outcome(&by_rows);
                assert_eq!(outcome(&by_vectors), expected, "{keys:?}, {memory} bytes");
            }
        }
    }
}

/// Expects MariaDB's results of `SELECT a, b, c, SUM(c), COUNT(*) FROM g GROUP BY a, b WITH ROLLUP`.
#[test]
fn rollups_answer_as_mariadb() {
    let aggregates =
        vec![aggregate(AggregateKind::Sum, vec![col(2)]), aggregate(AggregateKind::CountStar, vec![])];
    let node = AggregateNode { rollup: true, ordered: true, ..grouped(&[0, 1], &[2], aggregates) };
    let root = plan(Node::Aggregate(Box::new(node)), 5);
    let wanted = [
        "NULL 1 50 50 1",
        "NULL NULL 50 50 1",
        "1 1 10 10 1",
        "1 2 20 20 1",
        "1 NULL 20 30 2",
        "2 NULL 60 60 1",
        "2 1 30 70 2",
        "2 NULL 30 130 3",
        "NULL NULL 30 210 6",
    ];
    assert_eq!(shown_all(&rows_of(&root, &mut groups())), wanted);
    let mut small = groups();
    small.memory = 1;
    assert_eq!(shown_all(&rows_of(&root, &mut small)), wanted, "from disk");
    assert!(small.spilled > 0);
    let mut none = groups();
    none.tables.insert("g".to_string(), Vec::new());
    assert!(rows_of(&root, &mut none).is_empty(), "no rows, no total");
}

#[test]
fn distinct_keeps_the_first_of_equal_rows() {
    let rows =
        ["a", "B", "A", "b ", "c"].iter().zip(0..).map(|(t, n)| vec![Value::text(*t), int(n)]).collect();
    let mut storage = Memory::new(&[("t", rows)]);
    let node = Node::Distinct { input: Box::new(of("t", 2)), collations: vec![CI] };
    assert_eq!(shown_all(&rows_of(&plan(node, 2), &mut storage)), ["a 0", "B 1", "c 4"]);
}

/// Expects MariaDB's results of `(VALUES (1),(1),(2),(NULL),(NULL),(3)) op (VALUES (1),(NULL),(4),(1),(1))`.
#[test]
fn set_operations() {
    let left = || {
        vec![
            ints(&[Some(1)]),
            ints(&[Some(1)]),
            ints(&[Some(2)]),
            ints(&[None]),
            ints(&[None]),
            ints(&[Some(3)]),
        ]
    };
    let right =
        || vec![ints(&[Some(1)]), ints(&[None]), ints(&[Some(4)]), ints(&[Some(1)]), ints(&[Some(1)])];
    for (wants_common, all, wanted) in [
        (false, false, vec!["2", "3"]),
        (false, true, vec!["2", "NULL", "3"]),
        (true, false, vec!["1", "NULL"]),
        (true, true, vec!["1", "1", "NULL"]),
    ] {
        let node =
            SetOperation { left: of("l", 1), right: of("r", 1), wants_common, all, collations: vec![CI] };
        let root = plan(Node::SetOperation(Box::new(node)), 1);
        let mut storage = Memory::new(&[("l", left()), ("r", right())]);
        assert_eq!(shown_all(&rows_of(&root, &mut storage)), wanted, "common {wants_common} all {all}");
    }
}

#[test]
fn sorts_are_stable_and_limited() {
    let rows: Rows = [3, 1, 2, 1, 3, 2].iter().zip(0..).map(|(a, n)| ints(&[Some(*a), Some(n)])).collect();
    let sort = |limit: Option<LimitCount>, key: Expr, order| {
        plan(Node::Sort(Box::new(Sort { input: of("t", 2), keys: vec![(key, order)], limit })), 2)
    };
    let mut storage = Memory::new(&[("t", rows)]);
    let all = ["1 1", "1 3", "2 2", "2 5", "3 0", "3 4"];
    assert_eq!(shown_all(&rows_of(&sort(None, col(0), asc()), &mut storage)), all);
    let down = ["3 0", "3 4", "2 2", "2 5", "1 1", "1 3"];
    assert_eq!(shown_all(&rows_of(&sort(None, col(0), desc()), &mut storage)), down);
    let computed = sort(None, binary(BinaryOp::Sub, lit(0), col(0)), asc());
    assert_eq!(shown_all(&rows_of(&computed, &mut storage)), down, "a key that is no column leaves no trace");
    let three = LimitCount { count: Some(lit(2)), offset: Some(lit(1)) };
    assert_eq!(shown_all(&rows_of(&sort(Some(three), col(0), asc()), &mut storage)), all[..3]);
}

#[test]
fn runs_are_merged_in_levels() {
    let count = 10_000;
    let rows: Rows = (0..count).map(|n| ints(&[Some(n * 7919 % 100), Some(n)])).collect();
    let node = Node::Sort(Box::new(Sort { input: of("t", 2), keys: vec![(col(0), desc())], limit: None }));
    let root = plan(node, 2);
    let mut storage = Memory::new(&[("t", rows)]);
    // A run holds one or two rows, so there are several levels of 64 runs each.
    storage.memory = 200;
    let got = rows_of(&root, &mut storage);
    assert!(storage.spilled > 64, "{}", storage.spilled);
    let merges = storage.events.iter().filter(|event| **event == Event::Merged).count();
    assert!(merges > 64, "{merges}");
    let sorted = Sorted { rows: count as u64, of_range: false, limited: false };
    assert!(storage.events.contains(&Event::Sorted(sorted)));
    let key = |row: &[Value]| {
        (std::cmp::Reverse(row[0].to_decimal(&mut NoWarnings)), row[1].to_decimal(&mut NoWarnings))
    };
    assert!(
        got.windows(2).all(|pair| key(&pair[0]) < key(&pair[1])),
        "in order, and equal ones as they came"
    );
    assert_eq!(got.len() as i64, count);
}

fn counter(limit: i64, distinct: bool, next: Expr) -> (cohort_optimize::Plan, Session) {
    let step = Node::Project {
        input: Box::new(Node::Filter {
            input: Box::new(Node::Common { number: 0 }),
            condition: cmp(CompareOp::Lt, col(0), lit(limit)),
        }),
        items: vec![next],
        kept: Vec::new(),
    };
    let mut table = common(Node::Values(vec![vec![lit(1)]]));
    table.step = Some(RecursiveStep { node: step, distinct, distinct_by: vec![(0, CI)] });
    let mut root = plan(Node::Common { number: 0 }, 1);
    root.common.push(table);
    let session = Session::default();
    session.variables.borrow_mut().insert("max_recursive_iterations".to_string(), Value::UInt(3));
    (root, session)
}

/// Expects MariaDB's results of
/// `WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n+1 FROM r WHERE n<..) SELECT * FROM r`.
#[test]
fn recursion_stops_with_a_warning_at_its_limit() {
    for (limit, rows, warnings) in [(3, 3, 0), (4, 4, 1), (10, 4, 1)] {
        let (root, session) = counter(limit, false, add(col(0), lit(1)));
        let env = cohort_expr::SessionEnv::new(0);
        let eval = cohort_expr::EvalContext::new(&env, &session, &[]);
        let mut got = 0;
        cohort_run::run(&root, &[], &mut Memory::new(&[]), &eval, &mut |_| {
            got += 1;
            Ok(std::ops::ControlFlow::Continue(()))
        })
        .expect("runs");
        assert_eq!((got, eval.warning_count()), (rows, warnings), "n < {limit}");
        if let Some(warning) = eval.take_warnings().list().first() {
            assert_eq!(warning.error.code.number(), 1931);
            assert_eq!(
                warning.error.message,
                "Query execution was interrupted. The query exceeded max_recursive_iterations = 3. The query result \
                 may be incomplete"
            );
        }
    }
}

#[test]
fn a_recursive_union_ends_when_nothing_is_new() {
    let next = binary(BinaryOp::Mod, add(col(0), lit(1)), lit(3));
    let (root, session) = counter(100, true, next);
    let (rows, _) = run_in(&root, &mut Memory::new(&[]), &session).expect("runs");
    assert_eq!(shown_all(&rows), ["1", "2", "0"]);
}

#[test]
fn a_common_table_is_made_once() {
    let mut storage = Memory::new(&[("t", table(&[&[1], &[2]]))]);
    let two = vec![Node::Common { number: 0 }, Node::Common { number: 0 }];
    let mut root = plan(Node::Concat(two), 1);
    root.common.push(common(of("t", 1)));
    assert_eq!(shown_all(&rows_of(&root, &mut storage)), ["1", "2", "1", "2"]);
    assert_eq!(storage.opened, 1);
}

#[test]
fn a_killed_statement_ends() {
    let endless = Node::Series { first: 0, last: u64::MAX, step: 1 };
    let drained = AggregateNode {
        input: endless,
        keys: Vec::new(),
        is_grouped: false,
        first: Vec::new(),
        aggregates: vec![aggregate(AggregateKind::CountStar, vec![])],
        rollup: false,
        descending: Vec::new(),
        ordered: false,
    };
    let session = Session::default();
    session.patience.set(Some(10));
    let outcome = run_in(&plan(Node::Aggregate(Box::new(drained)), 1), &mut Memory::new(&[]), &session);
    assert_eq!(code(outcome), ErrorCode::QueryInterrupted);
}

#[test]
fn rows_are_pulled_as_they_are_wanted() {
    let mut storage = Memory::new(&[("t", (0..10).map(|n| ints(&[Some(n)])).collect())]);
    let root = plan(Node::Scan(Box::new(scan("t", 1))), 1);
    let env = cohort_expr::SessionEnv::new(0);
    let session = Session::default();
    let eval = cohort_expr::EvalContext::new(&env, &session, &[]);
    let mut rows = cohort_run::Rows::new(&root);
    let mut batch = Batch::new();
    for (want, got, read) in [(3, 3, 3), (1, 1, 4), (100, 6, 10), (5, 0, 10)] {
        assert_eq!(rows.next(&mut storage, &eval, &mut batch, want).expect("runs"), got > 0);
        assert_eq!((batch.len(), storage.reads), (got, read));
    }
    assert_eq!(rows.found(), 10);
    rows.close(&mut storage, &eval);
}

#[test]
fn plans_deeper_than_the_stack_are_refused() {
    let mut node = numbers(1);
    for _ in 0..100_000 {
        node = Node::Distinct { input: Box::new(node), collations: Vec::new() };
    }
    let root = std::mem::ManuallyDrop::new(plan(node, 1));
    let outcome = run_in(&root, &mut Memory::new(&[]), &Session::default());
    assert_eq!(code(outcome), ErrorCode::StackOverrunNeedMore);
}
