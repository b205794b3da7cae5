//! Tests of operators that run out of a resource: disk space, memory, or time (KILL).

mod support;

use std::sync::Arc;

use cohort_base::Budget;
use cohort_expr::{AggregateKind, CompareOp, ExprType};
use cohort_optimize::{
    AggregateNode, Frame, FrameBound, FrameUnit, HashKey, Join, JoinKind, JoinMethod, Node, Plan, Sort,
    WindowCall, WindowFunction, WindowNode,
};
use cohort_types::ErrorCode;
use support::*;

/// Returns plans that need memory for all their rows; each has its own way to work without it.
fn plans() -> Vec<(&'static str, Plan)> {
    let join = |method, on| Node::Join(Box::new(Join { kind: JoinKind::Left, left: of("t", 2), method, on }));
    let key = HashKey { left: col(0), right: col(0), collation: CI };
    let hash = JoinMethod::Hash { right: of("t", 2), keys: vec![key], right_width: 2 };
    let nested = JoinMethod::Loop { right: of("few", 2), right_width: 2, gate: None };
    let group = |rollup, ordered| {
        Node::Aggregate(Box::new(AggregateNode {
            input: of("t", 2),
            keys: vec![(col(0), CI)],
            is_grouped: true,
            first: vec![col(1)],
            aggregates: vec![aggregate(AggregateKind::Sum, vec![col(1)])],
            rollup,
            ordered,
            descending: Vec::new(),
        }))
    };
    let frame = Frame { unit: FrameUnit::Rows, start: FrameBound::CurrentRow, end: FrameBound::CurrentRow };
    let calls = vec![WindowCall { function: WindowFunction::RowNumber, frame, ty: ExprType::bigint(20) }];
    let window = WindowNode { input: of("t", 2), partition: vec![], order: vec![(col(0), desc())], calls };
    let sort = Sort { input: of("t", 2), keys: vec![(col(0), desc())], limit: None };
    let mut twice = plan(Node::Concat(vec![Node::Common { number: 0 }, Node::Common { number: 0 }]), 2);
    twice.common.push(common(of("t", 2)));
    vec![
        ("sort", plan(Node::Sort(Box::new(sort)), 2)),
        ("hash", plan(join(hash, None), 4)),
        ("loop", plan(join(nested, Some(cmp(CompareOp::Lt, col(0), col(2)))), 4)),
        ("group", plan(group(false, false), 3)),
        ("ordered", plan(group(false, true), 3)),
        ("rollup", plan(group(true, true), 3)),
        ("distinct", plan(Node::Distinct { input: Box::new(of("t", 2)), collations: vec![CI; 2] }, 2)),
        ("window", plan(Node::Window(Box::new(window)), 3)),
        ("common", twice),
    ]
}

fn storage(memory: usize) -> Memory {
    let rows: Rows = (0..3000).map(|n| ints(&[Some(n * 7919 % 3000), Some(n)])).collect();
    let few = rows[..50].to_vec();
    let mut storage = Memory::new(&[("t", rows), ("few", few)]);
    storage.memory = memory;
    storage
}

fn session(budget: &Arc<Budget>) -> Session {
    Session { budget: Some(Arc::clone(budget)), ..Session::default() }
}

#[test]
fn a_full_disk_is_error_1021() {
    for (name, plan) in plans() {
        let budget = Budget::of_session(&Budget::of_server());
        let in_memory = run_in(&plan, &mut storage(usize::MAX), &session(&budget)).expect("runs").0;
        let mut ample = storage(2000);
        let spilled = run_in(&plan, &mut ample, &session(&budget)).expect("runs").0;
        assert!(ample.spilled > 0, "{name}");
        assert_eq!(sorted(&in_memory), sorted(&spilled), "{name}");
        for bytes in [0, 20_000] {
            let mut full = storage(2000);
            full.files.set_capacity_bytes(bytes);
            match run_in(&plan, &mut full, &session(&budget)) {
                Err(error) => {
                    assert_eq!(error.code, ErrorCode::DiskFull, "{name}: {}", error.message);
                    assert!(error.message.contains("No space left on device"), "{}", error.message);
                }
                Ok((rows, _)) => assert_eq!(rows.len(), in_memory.len(), "{name}: it needs no more"),
            }
        }
        assert_eq!(budget.used(), 0, "{name}: all memory is given back");
    }
}

#[test]
fn the_sessions_limit_ends_a_statement_that_may_not_spill_in_time() {
    for (name, plan) in plans() {
        let budget = Budget::of_session(&Budget::of_server());
        budget.set_limit(64 << 10);
        let outcome = run_in(&plan, &mut storage(usize::MAX), &session(&budget));
        assert_eq!(code(outcome), ErrorCode::OptionPreventsStatement, "{name}");
        assert_eq!(budget.used(), 0, "{name}: all memory is given back");
    }
}

#[test]
fn a_statement_can_be_killed_at_any_question() {
    for memory in [usize::MAX, 2000] {
        for (name, plan) in plans() {
            let counting = Session::default();
            counting.patience.set(Some(1_000_000));
            let rows = run_in(&plan, &mut storage(memory), &counting).expect("runs").0.len() as u64;
            let asked = 1_000_000 - counting.patience.get().expect("it was set");
            assert!(asked >= rows / 1000, "{name}: {asked} questions for {rows} rows");
            // The partitioning of rows varies from run to run, and so does the number of checks.
            for patience in (0..=asked / 2).step_by(1 + asked as usize / 24) {
                let impatient = Session::default();
                impatient.patience.set(Some(patience));
                let outcome = run_in(&plan, &mut storage(memory), &impatient);
                assert_eq!(code(outcome), ErrorCode::QueryInterrupted, "{name} {patience} of {asked}");
            }
        }
    }
}
