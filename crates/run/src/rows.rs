//! Execution of a plan: pushes its rows to a sink, or lets the caller pull them.

use std::cell::RefCell;
use std::ops::ControlFlow;

use cohort_expr::EvalContext;
use cohort_optimize::Plan;
use cohort_types::{SqlResult, Value};

use crate::assemble::build;
use crate::batch::Batch;
use crate::nodes::batch_rows;
use crate::operator::Input;
use crate::profile::PlanParts;
use crate::runtime::{Run, Runtime, State};
use crate::storage::Storage;

/// The rows of a plan, for a caller that pulls them in several calls.
pub struct Rows<'p> {
    state: State<'p>,
    root: Option<Input<'p>>,
    yielded: u64,
}

impl<'p> Rows<'p> {
    /// Creates the iterator; nothing is executed yet.
    pub fn new(plan: &'p Plan) -> Rows<'p> {
        Rows::of(plan, &[], None)
    }

    fn of(plan: &'p Plan, row: &[Value], profile: Option<PlanParts<'p>>) -> Rows<'p> {
        Rows { state: State::new(plan, row, batch_rows(plan), profile, build), root: None, yielded: 0 }
    }

    /// Replaces the batch with at most `want` rows. Returns false at the end. Reads no row that was not
    /// requested. After an error, only [`Rows::close`] may be called.
    pub fn next(
        &mut self,
        storage: &mut dyn Storage,
        eval: &EvalContext<'_>,
        out: &mut Batch,
        want: usize,
    ) -> SqlResult<bool> {
        out.clear();
        let want = want.min(self.state.batch_rows);
        let root = &mut self.root;
        let rows = with_run(&self.state, storage, eval, |run| {
            let mut input = match root.take() {
                Some(input) => input,
                None => {
                    let mut input = run.build(&run.state.plan.root)?;
                    input.open(run)?;
                    input
                }
            };
            let rows = input.next(run, out, want);
            *root = Some(input);
            rows
        })?;
        self.yielded += rows as u64;
        Ok(rows > 0)
    }

    /// Returns the number of rows of the result. If the plan counts the rows without its LIMIT, returns that
    /// count once the end was reached.
    pub fn found(&self) -> u64 {
        self.state.found.get().unwrap_or(self.yielded)
    }

    /// Releases cursors and memory.
    pub fn close(&mut self, storage: &mut dyn Storage, eval: &EvalContext<'_>) {
        let root = &mut self.root;
        with_run(&self.state, storage, eval, |run| {
            root.iter_mut().for_each(|root| root.close(run));
            run.state.subqueries.iter().for_each(|state| state.borrow_mut().close(run));
            run.state.common.iter().for_each(|state| state.borrow_mut().close(run));
        });
        self.root = None;
    }
}

/// Combines the state of the run with the references borrowed for one call.
fn with_run<'p, T>(
    state: &State<'p>,
    storage: &mut dyn Storage,
    eval: &EvalContext<'_>,
    call: impl FnOnce(Run<'_, 'p>) -> T,
) -> T {
    let runtime = Runtime { state, storage: RefCell::new(storage) };
    let eval = eval.with_subqueries(&runtime);
    call(runtime.run(&eval))
}

/// Runs a plan and pushes its rows into `sink`, which may stop the run. A row has [`Plan::width`] values,
/// which the sink may move out. Returns the number of rows ([`Rows::found`]). `row` is the outer row that the
/// plan was bound with ([`Plan::given`]).
pub fn run(
    plan: &Plan,
    row: &[Value],
    storage: &mut dyn Storage,
    eval: &EvalContext<'_>,
    sink: &mut dyn FnMut(&mut [Value]) -> SqlResult<ControlFlow<()>>,
) -> SqlResult<u64> {
    run_rows(Rows::of(plan, row, None), plan.width, storage, eval, sink)
}

/// Runs a plan like [`run`], and profiles each operator.
pub fn run_measured(
    plan: &Plan,
    row: &[Value],
    profile: PlanParts<'_>,
    storage: &mut dyn Storage,
    eval: &EvalContext<'_>,
    sink: &mut dyn FnMut(&mut [Value]) -> SqlResult<ControlFlow<()>>,
) -> SqlResult<u64> {
    run_rows(Rows::of(plan, row, Some(profile)), plan.width, storage, eval, sink)
}

fn run_rows(
    mut rows: Rows<'_>,
    width: usize,
    storage: &mut dyn Storage,
    eval: &EvalContext<'_>,
    sink: &mut dyn FnMut(&mut [Value]) -> SqlResult<ControlFlow<()>>,
) -> SqlResult<u64> {
    let outcome = push(&mut rows, width, storage, eval, sink);
    rows.close(storage, eval);
    outcome.map(|()| rows.found())
}

fn push(
    rows: &mut Rows<'_>,
    width: usize,
    storage: &mut dyn Storage,
    eval: &EvalContext<'_>,
    sink: &mut dyn FnMut(&mut [Value]) -> SqlResult<ControlFlow<()>>,
) -> SqlResult<()> {
    let mut batch = Batch::new();
    while rows.next(storage, eval, &mut batch, usize::MAX)? {
        for n in 0..batch.len() {
            if sink(&mut batch.row_mut(n)[..width])?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}
