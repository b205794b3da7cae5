//! Tests of window functions: expected results of MariaDB 10.11, and results computed row by row from the
//! definition.

mod support;

use cohort_expr::{AggregateKind, Expr, ExprType};
use cohort_optimize::{Frame, FrameBound, FrameUnit, Node, WindowCall, WindowFunction, WindowNode};
use cohort_types::{Decimal, ErrorCode, Value};
use support::*;

use FrameBound::{CurrentRow, UnboundedFollowing, UnboundedPreceding};

fn preceding(n: i64) -> FrameBound {
    FrameBound::Preceding(lit(n))
}

fn following(n: i64) -> FrameBound {
    FrameBound::Following(lit(n))
}

fn rows(start: FrameBound, end: FrameBound) -> Frame {
    Frame { unit: FrameUnit::Rows, start, end }
}

fn range(start: FrameBound, end: FrameBound) -> Frame {
    Frame { unit: FrameUnit::Range, start, end }
}

/// Returns the frame that applies without a frame clause.
fn default_frame() -> Frame {
    range(UnboundedPreceding, CurrentRow)
}

fn call(function: WindowFunction, frame: Frame) -> WindowCall {
    WindowCall { function, frame, ty: ExprType::bigint(20) }
}

fn sum(column: usize) -> WindowFunction {
    WindowFunction::Aggregate(aggregate(AggregateKind::Sum, vec![col(column)]))
}

fn count() -> WindowFunction {
    WindowFunction::Aggregate(aggregate(AggregateKind::CountStar, vec![]))
}

/// Returns the rows of `CREATE TABLE w (p INT, o INT, v INT)` and `CREATE TABLE f (o INT, v INT)`.
fn tables() -> Memory {
    let w = [
        [Some(1), Some(1), Some(10)],
        [Some(1), Some(1), Some(20)],
        [Some(1), Some(2), Some(30)],
        [Some(1), None, Some(5)],
        [Some(2), Some(1), Some(7)],
        [Some(2), Some(3), Some(8)],
        [Some(2), Some(3), None],
        [Some(2), Some(7), Some(1)],
    ];
    let f = [
        [Some(1), Some(10)],
        [Some(2), Some(20)],
        [Some(2), Some(25)],
        [Some(4), Some(40)],
        [Some(7), None],
        [Some(8), Some(80)],
        [None, Some(1)],
        [None, Some(2)],
    ];
    let w = w.iter().map(|row| ints(row)).collect();
    Memory::new(&[("w", w), ("f", f.iter().map(|row| ints(row)).collect())])
}

/// Runs calls over w or f. w is partitioned by its first column; both are ordered by the given columns.
fn answers(table: &str, order: &[(usize, bool)], calls: Vec<WindowCall>) -> Vec<String> {
    let (width, partition) = if table == "w" { (3, vec![(col(0), CI)]) } else { (2, Vec::new()) };
    let key = |(n, down): &(usize, bool)| (col(*n), if *down { desc() } else { asc() });
    let order = order.iter().map(key).collect();
    let yielded = width + calls.len();
    let root = plan(
        Node::Window(Box::new(WindowNode { input: of(table, width), partition, order, calls })),
        yielded,
    );
    let in_memory = shown_all(&rows_of(&root, &mut tables()));
    let mut small = tables();
    small.memory = 1;
    assert_eq!(shown_all(&rows_of(&root, &mut small)), in_memory, "from disk");
    assert!(small.spilled > 0);
    in_memory
}

#[test]
fn ranks_answer_as_mariadb() {
    let calls = [
        WindowFunction::Rank,
        WindowFunction::DenseRank,
        WindowFunction::PercentRank,
        WindowFunction::CumeDist,
    ];
    let calls = calls.into_iter().map(|function| call(function, default_frame())).collect();
    let wanted = [
        "1 NULL 5 1 1 0 0.25",
        "1 1 10 2 2 0.3333333333333333 0.75",
        "1 1 20 2 2 0.3333333333333333 0.75",
        "1 2 30 4 3 1 1",
        "2 1 7 1 1 0 0.25",
        "2 3 8 2 2 0.3333333333333333 0.75",
        "2 3 NULL 2 2 0.3333333333333333 0.75",
        "2 7 1 4 3 1 1",
    ];
    assert_eq!(answers("w", &[(1, false)], calls), wanted);
}

#[test]
fn numbers_and_buckets_answer_as_mariadb() {
    let ntile = |n| call(WindowFunction::Ntile(n), default_frame());
    let calls =
        vec![call(WindowFunction::RowNumber, default_frame()), ntile(lit(3)), ntile(col(0)), ntile(lit(20))];
    let wanted = [
        "1 NULL 5 1 1 1 1",
        "1 1 10 2 1 1 2",
        "1 1 20 3 2 1 3",
        "1 2 30 4 3 1 4",
        "2 1 7 1 1 1 1",
        "2 3 NULL 2 1 1 2",
        "2 3 8 3 2 2 3",
        "2 7 1 4 3 2 4",
    ];
    assert_eq!(answers("w", &[(1, false), (2, false)], calls), wanted);
    for n in [lit(0), lit(-1), Expr::null()] {
        let node = WindowNode { input: of("w", 3), partition: vec![], order: vec![], calls: vec![ntile(n)] };
        let outcome = run_in(&plan(Node::Window(Box::new(node)), 4), &mut tables(), &Session::default());
        assert_eq!(code(outcome), ErrorCode::InvalidNtileArgument);
    }
}

#[test]
fn rows_before_and_after_answer_as_mariadb() {
    let lag = |offset: Option<Expr>, is_lead| {
        call(WindowFunction::Lag { value: col(2), offset, is_lead }, default_frame())
    };
    let calls = vec![
        lag(None, false),
        lag(Some(lit(2)), true),
        lag(Some(lit(0)), false),
        lag(Some(lit(-1)), false),
        lag(Some(Expr::null()), false),
    ];
    let wanted = [
        "1 NULL 5 NULL 20 5 10 5",
        "1 1 10 5 30 10 20 10",
        "1 1 20 10 NULL 20 30 20",
        "1 2 30 20 NULL 30 NULL 30",
        "2 1 7 NULL 8 7 NULL 7",
        "2 3 NULL 7 1 NULL 8 NULL",
        "2 3 8 NULL NULL 8 1 8",
        "2 7 1 8 NULL 1 NULL 1",
    ];
    assert_eq!(answers("w", &[(1, false), (2, false)], calls), wanted);
}

#[test]
fn frames_answer_as_mariadb() {
    let calls = vec![
        call(sum(1), range(preceding(2), preceding(1))),
        call(sum(1), range(following(1), following(3))),
        call(sum(1), range(CurrentRow, UnboundedFollowing)),
        call(sum(1), range(UnboundedPreceding, following(1))),
        call(sum(1), range(preceding(1), UnboundedFollowing)),
        call(count(), range(UnboundedPreceding, preceding(1))),
        call(count(), range(following(2), UnboundedFollowing)),
    ];
    let wanted = [
        "NULL 1 3 3 178 3 178 2 8",
        "NULL 2 3 3 178 3 178 2 8",
        "1 10 NULL 85 175 58 175 2 3",
        "2 20 10 40 165 58 175 3 3",
        "2 25 10 40 165 58 175 3 3",
        "4 40 45 NULL 120 98 120 5 2",
        "7 NULL NULL 80 80 178 80 6 0",
        "8 80 NULL NULL 80 178 80 7 0",
    ];
    assert_eq!(answers("f", &[(0, false)], calls), ordered_as_inserted(&wanted));
}

/// Rows with equal keys of f stay in insertion order, which is the order of v.
fn ordered_as_inserted(rows: &[&str]) -> Vec<String> {
    rows.iter().map(|row| (*row).to_string()).collect()
}

#[test]
fn frames_of_descending_keys_answer_as_mariadb() {
    let calls = vec![
        call(sum(1), range(preceding(2), preceding(1))),
        call(sum(1), range(following(1), following(3))),
        call(count(), range(UnboundedPreceding, preceding(1))),
        call(count(), range(following(2), UnboundedFollowing)),
    ];
    let wanted = [
        "8 80 NULL NULL 0 6",
        "7 NULL 80 40 1 6",
        "4 40 NULL 55 2 5",
        "2 20 40 10 3 2",
        "2 25 40 10 3 2",
        "1 10 45 NULL 5 2",
        "NULL 1 3 3 8 2",
        "NULL 2 3 3 8 2",
    ];
    assert_eq!(answers("f", &[(0, true)], calls), wanted);
}

#[test]
fn values_of_frames_answer_as_mariadb() {
    let ahead = || rows(following(1), following(2));
    let calls = vec![
        call(WindowFunction::FirstValue(col(1)), ahead()),
        call(WindowFunction::LastValue(col(1)), ahead()),
        call(WindowFunction::NthValue { value: col(1), n: lit(2) }, rows(preceding(1), following(2))),
        call(WindowFunction::FirstValue(col(1)), rows(preceding(3), preceding(2))),
        call(WindowFunction::LastValue(col(1)), rows(preceding(3), preceding(2))),
        call(WindowFunction::NthValue { value: col(1), n: lit(0) }, ahead()),
        call(WindowFunction::NthValue { value: col(1), n: Expr::null() }, default_frame()),
    ];
    let wanted = [
        "NULL 1 2 10 2 NULL NULL NULL 1",
        "NULL 2 10 20 2 NULL NULL NULL 1",
        "1 10 20 25 10 1 1 NULL 1",
        "2 20 25 40 20 1 2 NULL 1",
        "2 25 40 NULL 25 2 10 NULL 1",
        "4 40 NULL 80 40 10 20 NULL 1",
        "7 NULL 80 80 NULL 20 25 NULL 1",
        "8 80 NULL NULL 80 25 40 NULL 1",
    ];
    assert_eq!(answers("f", &[(0, false), (1, false)], calls), wanted);
}

#[test]
fn a_distance_with_a_fraction_is_rounded_for_integers_as_in_mariadb() {
    let fraction = |text: &[u8]| Expr::constant(Value::Decimal(Decimal::parse(text).0));
    let frame = range(FrameBound::Preceding(fraction(b"1.5")), FrameBound::Following(fraction(b"0.5")));
    let got = answers("f", &[(0, false)], vec![call(sum(1), frame)]);
    let sums: Vec<&str> = got.iter().filter_map(|row| row.rsplit(' ').next()).collect();
    assert_eq!(sums, ["3", "3", "55", "55", "55", "40", "80", "80"]);
}

#[test]
fn percentiles_answer_as_mariadb() {
    let fraction = |f: f64| Expr::constant(Value::Double(f));
    let over = |down: bool| {
        let calls = [
            WindowFunction::PercentileCont { fraction: fraction(0.5) },
            WindowFunction::PercentileCont { fraction: fraction(0.25) },
            WindowFunction::PercentileDisc { fraction: fraction(0.25) },
            WindowFunction::PercentileDisc { fraction: fraction(0.0) },
            WindowFunction::PercentileDisc { fraction: fraction(1.0) },
        ];
        let calls = calls.into_iter().map(|function| call(function, default_frame())).collect();
        let mut got = answers("w", &[(2, down)], calls);
        got.iter_mut().for_each(|row| *row = row.splitn(4, ' ').skip(3).collect());
        got.dedup();
        got
    };
    assert_eq!(over(false), ["15 8.75 5 5 30", "7 4 1 1 8"]);
    assert_eq!(over(true), ["15 22.5 30 30 5", "7 7.5 8 8 1"]);
    for f in [-0.1, 1.5] {
        let function = WindowFunction::PercentileCont { fraction: fraction(f) };
        let calls = vec![call(function, default_frame())];
        let node = WindowNode { input: of("w", 3), partition: vec![], order: vec![(col(2), asc())], calls };
        let outcome = run_in(&plan(Node::Window(Box::new(node)), 4), &mut tables(), &Session::default());
        let error = outcome.expect_err("out of range");
        assert_eq!(
            error.message,
            "Argument to the percentile_cont function does not belong to the range [0,1]"
        );
    }
}

#[test]
fn aggregates_over_sliding_frames_answer_as_mariadb() {
    let n: Vec<Vec<Value>> = [1u64, 2, 7, 9].iter().map(|v| vec![Value::UInt(*v)]).collect();
    let around = |kind| {
        let function = WindowFunction::Aggregate(aggregate(kind, vec![col(0)]));
        call(function, rows(preceding(1), following(1)))
    };
    let calls = vec![
        around(AggregateKind::BitXor),
        around(AggregateKind::Min),
        around(AggregateKind::Max),
        around(AggregateKind::VarPop),
        around(AggregateKind::VarSamp),
        call(
            WindowFunction::Aggregate(aggregate(AggregateKind::BitAnd, vec![col(0)])),
            rows(preceding(3), preceding(2)),
        ),
    ];
    let node = WindowNode { input: of("n", 1), partition: vec![], order: vec![(col(0), asc())], calls };
    let got = rows_of(&plan(Node::Window(Box::new(node)), 7), &mut Memory::new(&[("n", n)]));
    let rounded = |value: &Value| match value {
        Value::Double(v) => format!("{v:.4}"),
        other => shown(std::slice::from_ref(other)),
    };
    let got: Vec<String> =
        got.iter().map(|row| row.iter().map(rounded).collect::<Vec<_>>().join(" ")).collect();
    let wanted = [
        "1 3 1 2 0.2500 0.5000 18446744073709551615",
        "2 4 1 7 6.8889 10.3333 18446744073709551615",
        "7 12 2 9 8.6667 13.0000 1",
        "9 14 7 9 1.0000 2.0000 0",
    ];
    assert_eq!(got, wanted);
}

/// A small random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn random_bound(random: &mut Random, is_end: bool) -> FrameBound {
    let n = random.below(4) as i64;
    match random.below(4) {
        0 if is_end => UnboundedFollowing,
        0 => UnboundedPreceding,
        1 => CurrentRow,
        2 => preceding(n),
        _ => following(n),
    }
}

/// Returns true if a row is in the frame of another one, by the definition.
fn within(frame: &Frame, at: usize, other: usize, keys: &[Option<i64>], down: bool) -> bool {
    let distance = |bound: &FrameBound| match bound {
        UnboundedPreceding => None,
        UnboundedFollowing => None,
        CurrentRow => Some(0),
        FrameBound::Preceding(Expr::Const(n)) => Some(if let Value::Int(n) = n.value { -n } else { 0 }),
        FrameBound::Following(Expr::Const(n)) => Some(if let Value::Int(n) = n.value { n } else { 0 }),
        _ => unreachable!("constants only"),
    };
    let place = |n: usize| match frame.unit {
        FrameUnit::Rows => Some(n as i64),
        FrameUnit::Range => keys[n].map(|v| if down { -v } else { v }),
    };
    // NULL sorts first, in descending order last. Its distance to any value is NULL.
    let null = if down { i64::MAX } else { i64::MIN };
    let of = |n: usize| place(n).unwrap_or(null);
    let limit = |bound: &FrameBound| distance(bound).map(|d| place(at).map_or(null, |p| p + d));
    limit(&frame.start).is_none_or(|limit| of(other) >= limit)
        && limit(&frame.end).is_none_or(|limit| of(other) <= limit)
}

#[test]
fn random_frames_answer_as_the_definition_says() {
    let seed = 0x9E37_79B9_7F4A_7C15;
    println!("seed {seed}");
    let mut random = Random(seed);
    for round in 0..400 {
        let count_rows = random.below(30) as usize;
        let table: Rows = (0..count_rows)
            .map(|_| {
                let key = (random.below(8) > 0).then(|| random.below(10) as i64);
                let value = (random.below(6) > 0).then(|| random.below(100) as i64 - 50);
                ints(&[Some(random.below(3) as i64), key, value])
            })
            .collect();
        let down = random.below(2) == 1;
        let unit = if random.below(2) == 0 { FrameUnit::Rows } else { FrameUnit::Range };
        let frame =
            Frame { unit, start: random_bound(&mut random, false), end: random_bound(&mut random, true) };
        let of_kind = |kind| WindowFunction::Aggregate(aggregate(kind, vec![col(2)]));
        let calls = [
            of_kind(AggregateKind::Sum),
            of_kind(AggregateKind::Count),
            of_kind(AggregateKind::Min),
            of_kind(AggregateKind::Max),
            WindowFunction::FirstValue(col(2)),
            WindowFunction::LastValue(col(2)),
            WindowFunction::NthValue { value: col(2), n: lit(2) },
        ];
        let calls = calls.into_iter().map(|function| call(function, frame.clone())).collect();
        let key = if down { desc() } else { asc() };
        let node = WindowNode {
            input: of("t", 3),
            partition: vec![(col(0), CI)],
            order: vec![(col(1), key)],
            calls,
        };
        let root = plan(Node::Window(Box::new(node)), 10);
        let mut storage = Memory::new(&[("t", table)]);
        if round % 2 == 1 {
            storage.memory = 1 << random.below(12);
        }
        let got = rows_of(&root, &mut storage);
        assert_eq!(got.len(), count_rows);
        let int_of = |value: &Value| if let Value::Int(v) = value { Some(*v) } else { None };
        for partition in 0..3 {
            let rows: Vec<&Vec<Value>> = got.iter().filter(|row| row[0] == int(partition)).collect();
            let keys: Vec<Option<i64>> = rows.iter().map(|row| int_of(&row[1])).collect();
            let ordered = |a: Option<i64>, b: Option<i64>| if down { a >= b } else { a <= b };
            assert!(keys.windows(2).all(|pair| ordered(pair[0], pair[1])), "in order");
            for (at, row) in rows.iter().enumerate() {
                let frame_rows: Vec<Option<i64>> = (0..rows.len())
                    .filter(|other| within(&frame, at, *other, &keys, down))
                    .map(|other| int_of(&rows[other][2]))
                    .collect();
                let present: Vec<i64> = frame_rows.iter().flatten().copied().collect();
                let text = |v: Option<i64>| v.map_or("NULL".to_string(), |v| v.to_string());
                let wanted = [
                    text((!present.is_empty()).then(|| present.iter().sum())),
                    present.len().to_string(),
                    text(present.iter().min().copied()),
                    text(present.iter().max().copied()),
                    text(frame_rows.first().copied().flatten()),
                    text(frame_rows.last().copied().flatten()),
                    text(frame_rows.get(1).copied().flatten()),
                ];
                assert_eq!(shown(&row[3..]), wanted.join(" "), "round {round} {frame:?} down {down} {row:?}");
            }
        }
    }
}

#[test]
fn sliding_aggregates_take_each_row_in_a_few_times() {
    let count_rows = 100_000;
    let table: Rows = (0..count_rows).map(|n| ints(&[Some(n)])).collect();
    let function = || WindowFunction::Aggregate(aggregate(AggregateKind::Sum, vec![col(0)]));
    let calls = vec![
        call(function(), rows(preceding(40_000), following(40_000))),
        call(function(), rows(CurrentRow, UnboundedFollowing)),
        call(function(), default_frame()),
        call(function(), rows(UnboundedPreceding, UnboundedFollowing)),
    ];
    let node = WindowNode { input: of("t", 1), partition: vec![], order: vec![(col(0), asc())], calls };
    let session = Session::default();
    // Each step counts at least one row, so there are a thousand rows between two checks.
    session.patience.set(Some(5000));
    let (rows, _) =
        run_in(&plan(Node::Window(Box::new(node)), 5), &mut Memory::new(&[("t", table)]), &session)
            .expect("far from quadratic");
    let all = count_rows * (count_rows - 1) / 2;
    assert_eq!(shown(&rows[0]), format!("0 {} {all} 0 {all}", 40_000i64 * 40_001 / 2));
    assert_eq!(shown(&rows[99_999][2..]), format!("99999 {all} {all}"));
}
