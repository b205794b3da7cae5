//! Measures operators: `cargo run --release -p cohort-run --example speed [name]`. A synthetic storage
//! generates the rows, so that only the operators are measured.

#[path = "../tests/support/mod.rs"]
mod support;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use cohort_expr::{AggregateKind, BinaryOp, CompareOp, EvalContext, Expr, SessionEnv};
use cohort_optimize::{
    AggregateNode, HashKey, Join, JoinKind, JoinMethod, LimitCount, Node, Plan, Scan, Sort, VirtualScan,
    WindowCall, WindowFunction, WindowNode,
};
use cohort_run::{CursorId, Event, Kept, Storage, run};
use cohort_types::{SqlResult, Str, Value};
use cohort_vfs::{Fs as _, OpenMode, RealFs, SharedFile};
use support::*;

const ROWS: u64 = 1_000_000;

/// Tables of a million rows: a number scattered over `0..groups`, the row number, and a text.
struct Made {
    cursors: Vec<u64>,
    memory: usize,
}

fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}

impl Storage for Made {
    fn open(&mut self, _: &Scan, _: &[Value], _: Option<u64>, _: &EvalContext<'_>) -> SqlResult<CursorId> {
        self.cursors.push(0);
        Ok(CursorId(self.cursors.len() - 1))
    }

    fn reopen(&mut self, cursor: CursorId, _: &Scan, _: &[Value], _: &EvalContext<'_>) -> SqlResult<()> {
        self.cursors[cursor.0] = 0;
        Ok(())
    }

    fn next(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        row: &mut Vec<Value>,
        _: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        let n = &mut self.cursors[cursor.0];
        if *n == ROWS {
            return Ok(false);
        }
        *n += 1;
        let number = scattered(*n);
        row.clear();
        row.extend([Value::Int((number % 100_000) as i64), Value::Int((number % ROWS) as i64)]);
        row.push(match scan.columns.len() {
            3 => {
                let bytes = format!("customer {:07}", number % 100_000).into_bytes();
                Value::Str(Str { bytes, collation: CI })
            }
            _ => Value::Null,
        });
        Ok(true)
    }

    fn key(&self, _: CursorId) -> &[u8] {
        &[]
    }

    fn close(&mut self, _: CursorId) {}

    fn virtual_rows(&mut self, _: &VirtualScan, _: &EvalContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
        Ok(Vec::new())
    }

    fn note(&mut self, _: Event) {}

    fn spill_file(&mut self) -> SqlResult<SharedFile> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("cohort-speed-{}-{number}", std::process::id()));
        let file = RealFs.open(&path, OpenMode::CreateNew).expect("a file");
        RealFs.remove(&path).expect("a file");
        Ok(file)
    }

    fn operator_memory(&self, _: Kept) -> usize {
        self.memory
    }
}

fn table(columns: usize) -> Node {
    Node::Scan(Box::new(scan("t", columns)))
}

fn group(input: Node, key: Expr, aggregates: Vec<cohort_expr::Aggregate>) -> Node {
    let keys = vec![(key, CI)];
    let node = AggregateNode {
        input,
        keys,
        is_grouped: true,
        first: vec![],
        aggregates,
        rollup: false,
        descending: Vec::new(),
        ordered: false,
    };
    Node::Aggregate(Box::new(node))
}

fn total(input: Node, aggregates: Vec<cohort_expr::Aggregate>) -> Node {
    let node = AggregateNode {
        input,
        keys: vec![],
        is_grouped: false,
        first: vec![],
        aggregates,
        rollup: false,
        descending: Vec::new(),
        ordered: false,
    };
    Node::Aggregate(Box::new(node))
}

fn count() -> cohort_expr::Aggregate {
    aggregate(AggregateKind::CountStar, vec![])
}

fn join(columns: usize, key: fn(usize) -> Expr, ordinal: usize) -> Node {
    let key = HashKey { left: key(ordinal), right: key(ordinal), collation: CI };
    let method = JoinMethod::Hash { right: table(columns), keys: vec![key], right_width: columns };
    Node::Join(Box::new(Join { kind: JoinKind::Inner, left: table(columns), method, on: None }))
}

fn sorted(columns: usize, key: Expr, limit: Option<i64>) -> Node {
    let limit = limit.map(|n| LimitCount { count: Some(lit(n)), offset: None });
    Node::Sort(Box::new(Sort { input: table(columns), keys: vec![(key, asc())], limit }))
}

fn plans() -> Vec<(&'static str, Plan)> {
    let sum = |n| aggregate(AggregateKind::Sum, vec![col(n)]);
    let filtered =
        Node::Filter { input: Box::new(table(2)), condition: cmp(CompareOp::Lt, col(0), lit(50_000)) };
    let products = vec![aggregate(AggregateKind::Sum, vec![binary(BinaryOp::Mul, col(0), col(1))])];
    let calls = vec![WindowCall {
        function: WindowFunction::Aggregate(sum(1)),
        frame: cohort_optimize::Frame {
            unit: cohort_optimize::FrameUnit::Range,
            start: cohort_optimize::FrameBound::UnboundedPreceding,
            end: cohort_optimize::FrameBound::CurrentRow,
        },
        ty: cohort_expr::ExprType::bigint(20),
    }];
    let window =
        WindowNode { input: table(2), partition: vec![(col(0), CI)], order: vec![(col(1), asc())], calls };
    let distinct = Node::Distinct {
        input: Box::new(Node::Project { input: Box::new(table(2)), items: vec![col(0)], kept: Vec::new() }),
        collations: vec![CI],
    };
    vec![
        ("scan", plan(table(2), 2)),
        ("count", plan(total(table(2), vec![count()]), 1)),
        ("filter and sum", plan(total(filtered, products), 1)),
        ("100,000 groups of an integer", plan(group(table(2), col(0), vec![count(), sum(1)]), 3)),
        ("100,000 groups of a text", plan(group(table(3), text_col(2), vec![count(), sum(1)]), 3)),
        ("sort by an integer", plan(sorted(2, col(1), None), 2)),
        ("sort by a text", plan(sorted(3, text_col(2), None), 3)),
        ("the first ten", plan(sorted(2, col(1), Some(10)), 2)),
        ("join by an integer", plan(total(join(2, col, 1), vec![count(), sum(0)]), 2)),
        ("join of 10,000,000 pairs", plan(total(join(2, col, 0), vec![count()]), 1)),
        ("distinct", plan(distinct, 1)),
        ("running sums", plan(Node::Window(Box::new(window)), 3)),
    ]
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let env = SessionEnv::new(0);
    let session = Session::default();
    for memory in [usize::MAX, 8 << 20] {
        println!("{}", if memory == usize::MAX { "in memory" } else { "8 MiB for each operator" });
        for (name, plan) in plans() {
            if !wanted.is_empty() && !wanted.iter().any(|part| name.contains(part.as_str())) {
                continue;
            }
            let eval = EvalContext::new(&env, &session, &[]);
            let mut storage = Made { cursors: Vec::new(), memory };
            let start = Instant::now();
            let rows =
                run(&plan, &[], &mut storage, &eval, &mut |_| Ok(ControlFlow::Continue(()))).expect("runs");
            println!("{name:32} {rows:>9} rows {:>8.1} ms", start.elapsed().as_secs_f64() * 1000.0);
        }
    }
}
