//! The operator interface, and the construction of operators from a plan.
//!
//! # Concepts
//! - **Operator** ([`Operator`]): returns the rows of a plan node. Operators form a tree, and rows are
//!   pulled: an operator calls its inputs when its own caller requests rows.
//! - **Input** ([`Input`]): an operator as its caller sees it. All calls go through `Input`, which checks the
//!   stack, counts steps, and limits how many rows are requested at once.
//! - **Row mode and vector mode**: an operator returns rows in a [`Batch`], or columns in [`Vectors`].
//!
//! # Life cycle
//! ```text
//! open -> next*, skip*                      row mode; the end is a call that returns no rows
//!      -> vector_types -> next_vectors*     vector mode, if it returned types; the end is `false`
//!      -> vector_types -> next*, skip*      row mode, if it returned `None`
//! open again, in any state                  restarts; outer values may have changed
//! close, in any state                       releases cursors and memory; `open` restarts
//! ```
//! The caller chooses the mode: it calls `vector_types` right after `open`, or never. In vector mode it calls
//! only `next_vectors` until the next `open`. `open` need not read anything: most operators begin their work
//! with the first call after it.
//!
//! # How many rows a call requests
//! - `next` appends at most `want` rows. It may append fewer before the end, for example if the rows contain
//!   much text ([`Batch::has_room`]).
//! - [`Input::refill`] requests rows of which the caller may not need all, and [`Input::refill_all`] rows
//!   that are all needed. Both are limited to `State::batch_rows`: 1024 rows, or 1 if an expression of the
//!   plan is volatile or has side effects.
//! - **Row-locking inputs** (`locks`): reading locks the rows, so a row that may not be needed must not be
//!   read. `refill` therefore reads one row at a time from them. `refill_all` reads whole batches. They are
//!   never read in vector mode, and neither is an input of a plan whose batches have one row.
//! - `skip` lets a caller (LIMIT with an offset) pass rows without reading them, if the operator can.
//!   Otherwise the caller reads them and drops them.
//!
//! # Stack and interruption
//! [`build`], [`Input::open`] and [`Input::next`] recurse along the plan, so each checks the stack (error
//! 1436). `next` and `next_vectors` count one step for the call and one for each row. After a certain number
//! of steps the evaluation context checks whether the statement was killed or has run out of time. Operators
//! count further steps in loops that return no rows.
//!
//! # On failure
//! An error passes up through all operators. `out` may then contain rows, which are not part of the result.
//! After an error an operator may only be closed, opened again, or dropped. An operator whose `open` failed
//! is usually dropped without `close`: its cursors are released with the storage, and its memory is given
//! back at the end of the statement.

use cohort_optimize::{JoinMethod, Node, ReadMode};
use cohort_types::{Interrupt, SqlResult, VectorType};

use crate::aggregate::AggregateOperator;
use crate::batch::Batch;
use crate::common::CommonReader;
use crate::extend::Extend;
use crate::limit::Limit;
use crate::measure::{Measured, Measures};
use crate::nodes::varies;
use crate::project::{Convert, Filter, Gate, Project};
use crate::runtime::Run;
use crate::scan::{ScanOperator, Virtual};
use crate::set_chain::SetChainOperator;
use crate::set_operation::SetOperator;
use crate::sort::SortOperator;
use crate::source::{Concat, Constants, Empty, Series, Unit};
use crate::vectors::Vectors;
use crate::window::Window;

/// An operator: returns rows in batches.
pub(crate) trait Operator<'p>: Send {
    /// Starts or restarts. Outer values may have changed.
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()>;

    /// Appends rows: at most `want`, and no more than [`Batch::has_room`] allows. Appends none at the end.
    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()>;

    /// Skips at most `rows` of the next rows and returns the number skipped; 0 at the end. Returns `None`,
    /// with no effect, if the rows must be read instead.
    fn skip(&mut self, run: Run<'_, 'p>, rows: u64) -> SqlResult<Option<u64>> {
        let _ = (run, rows);
        Ok(None)
    }

    /// Switches to vectorized output and returns the column types, or returns `None` if unsupported. Call it
    /// right after `open`; afterwards call only [`Operator::next_vectors`].
    fn vector_types(&mut self, run: Run<'_, 'p>) -> SqlResult<Option<Vec<VectorType>>> {
        let _ = run;
        Ok(None)
    }

    /// Replaces the vectors with those of the next rows. Returns false at the end.
    fn next_vectors(&mut self, run: Run<'_, 'p>, vectors: &mut Vectors) -> SqlResult<bool> {
        let _ = (run, vectors);
        Ok(false)
    }

    /// Releases cursors and memory. [`Operator::open`] restarts.
    fn close(&mut self, run: Run<'_, 'p>);
}

/// An operator as the input of another operator.
pub(crate) struct Input<'p> {
    operator: Box<dyn Operator<'p> + 'p>,
    /// Reading locks the rows, so rows that may not be needed are never requested.
    locks: bool,
}

impl<'p> Input<'p> {
    pub fn new(operator: impl Operator<'p> + 'p, locks: bool) -> Input<'p> {
        Input { operator: Box::new(operator), locks }
    }

    /// Wraps the operator to measure it as a part of its plan.
    fn measured(self, measures: &'p Measures, node: &'p Node) -> Input<'p> {
        let tally = measures.tally(node);
        Input { operator: Box::new(Measured { inner: self.operator, measures, tally }), locks: self.locks }
    }

    pub fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        run.eval.check_stack()?;
        self.operator.open(run)
    }

    /// Appends at most `want` rows and returns their number; 0 at the end.
    pub fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<usize> {
        run.eval.check_stack()?;
        let before = out.len();
        out.mark();
        self.operator.next(run, out, want)?;
        let rows = out.len() - before;
        debug_assert!(rows <= want, "no more rows than asked for");
        run.eval.steps(1 + rows as u32)?;
        Ok(rows)
    }

    /// Replaces the batch with the next rows, all of which may be needed. Returns false at the end.
    pub fn refill(&mut self, run: Run<'_, 'p>, batch: &mut Batch, want: usize) -> SqlResult<bool> {
        batch.clear();
        let at_once = if self.locks { 1 } else { run.state.batch_rows };
        Ok(self.next(run, batch, want.min(at_once))? > 0)
    }

    /// Replaces the batch with the next rows, all of which are needed. Returns false at the end.
    pub fn refill_all(&mut self, run: Run<'_, 'p>, batch: &mut Batch) -> SqlResult<bool> {
        batch.clear();
        Ok(self.next(run, batch, run.state.batch_rows)? > 0)
    }

    /// Skips rows, if the operator can do that without reading them.
    pub fn skip(&mut self, run: Run<'_, 'p>, rows: u64) -> SqlResult<Option<u64>> {
        self.operator.skip(run, rows)
    }

    /// Switches to vectorized output and returns the types. Returns `None` if the rows must be read as
    /// batches.
    pub fn vector_types(&mut self, run: Run<'_, 'p>) -> SqlResult<Option<Vec<VectorType>>> {
        match self.locks || run.state.batch_rows == 1 {
            true => Ok(None),
            false => self.operator.vector_types(run),
        }
    }

    /// Replaces the vectors with those of the next rows. Returns false at the end.
    pub fn next_vectors(&mut self, run: Run<'_, 'p>, vectors: &mut Vectors) -> SqlResult<bool> {
        let goes_on = self.operator.next_vectors(run, vectors)?;
        run.eval.steps(1 + vectors.rows as u32)?;
        Ok(goes_on)
    }

    pub fn close(&mut self, run: Run<'_, 'p>) {
        self.operator.close(run);
    }
}

/// Builds the operators of a node and of its inputs. Recursive, so its stack frame is kept small.
pub(crate) fn build<'p>(node: &'p Node, run: Run<'_, 'p>) -> SqlResult<Input<'p>> {
    run.eval.check_stack()?;
    let mut inputs = Vec::new();
    for below in node.inputs() {
        inputs.push(build(below, run)?);
    }
    let input = assemble(node, inputs, run)?;
    Ok(match run.state.measures {
        Some(measures) => input.measured(measures, node),
        None => input,
    })
}

/// Builds the operator of a node from those of its inputs.
#[inline(never)]
fn assemble<'p>(node: &'p Node, inputs: Vec<Input<'p>>, run: Run<'_, 'p>) -> SqlResult<Input<'p>> {
    let locks = inputs.iter().any(|input| input.locks);
    let first_locks = inputs.first().is_some_and(|input| input.locks);
    match node {
        Node::Concat(_) => return Ok(Input::new(Concat::new(inputs), locks)),
        Node::SetChain(node) => return Ok(Input::new(SetChainOperator::new(node, inputs), false)),
        _ => {}
    }
    let mut inputs = inputs.into_iter();
    let mut below = || inputs.next().expect("an operator for each input");
    Ok(match node {
        Node::Unit => Input::new(Unit::default(), false),
        Node::Empty | Node::Concat(_) | Node::SetChain(_) => Input::new(Empty, false),
        Node::Values(rows) => Input::new(Constants::new(rows), false),
        Node::Scan(scan) => Input::new(ScanOperator::new(scan), scan.mode != ReadMode::Snapshot),
        Node::Virtual(scan) => Input::new(Virtual::new(scan), false),
        Node::Common { number } => Input::new(CommonReader::new(*number), false),
        Node::Filter { condition, .. } => Input::new(Filter::new(below(), condition), locks),
        Node::Gate { condition, .. } => Input::new(Gate::new(below(), condition), locks),
        Node::Convert { from, to, .. } => Input::new(Convert::new(below(), from, to), locks),
        Node::Project { items, kept, .. } => Input::new(Project::new(below(), items, kept), locks),
        Node::Extend { more, .. } => Input::new(Extend::new(below(), more), locks),
        Node::Join(join) => {
            let left = below();
            match &join.method {
                JoinMethod::Lookup(scan) => {
                    let locks = locks || scan.mode != ReadMode::Snapshot;
                    Input::new(crate::join::Lookup::new(join, left, scan), locks)
                }
                JoinMethod::Hash { right, keys, right_width } => {
                    let varies = varies(right, run.state.plan);
                    let keys = (keys.as_slice(), *right_width);
                    Input::new(crate::join::Hash::new(join, left, below(), keys, varies), locks)
                }
                JoinMethod::Json(scan) => Input::new(crate::join::JsonRows::new(join, left, scan), locks),
                JoinMethod::Loop { right, right_width, gate } => {
                    let varies = varies(right, run.state.plan);
                    Input::new(
                        crate::join::Loop::new(join, left, below(), (*right_width, gate.as_ref()), varies),
                        locks,
                    )
                }
            }
        }
        Node::Aggregate(node) => Input::new(AggregateOperator::new(node, below()), false),
        Node::Sort(sort) => Input::new(SortOperator::new(sort, below()), false),
        Node::Limit(limit) => Input::new(Limit::new(limit, below()), locks),
        Node::Distinct { collations, .. } => Input::new(SetOperator::distinct(below(), collations), locks),
        Node::Series { first, last, step } => Input::new(Series::new(*first, *last, *step), false),
        Node::SetOperation(node) => {
            let left = below();
            Input::new(SetOperator::operation(node, left, below()), first_locks)
        }
        Node::Window(node) => Input::new(Window::new(node, below(), run)?, false),
    })
}
