//! The interface of operators, and how a plan becomes some.

use cohort_optimize::{JoinMethod, Node, ReadMode};
use cohort_types::{Interrupt, SqlResult};

use crate::aggregate::AggregateOperator;
use crate::batch::Batch;
use crate::common::CommonReader;
use crate::extend::Extend;
use crate::limit::Limit;
use crate::nodes::varies;
use crate::project::{Convert, Filter, Gate, Project};
use crate::runtime::Run;
use crate::scan::{ScanOperator, Virtual};
use crate::set_chain::SetChainOperator;
use crate::set_operation::SetOperator;
use crate::sort::SortOperator;
use crate::source::{Concat, Constants, Empty, Series, Unit};
use crate::window::Window;

/// Yields rows.
pub(crate) trait Operator<'p>: Send {
    /// Starts, or starts again: what lies outside may have changed.
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()>;

    /// Appends some rows, at most `want`; none at the end.
    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()>;

    /// Lets go of cursors and memory. [`Operator::open`] starts again.
    fn close(&mut self, run: Run<'_, 'p>);
}

/// An operator as the one above sees it.
pub(crate) struct Input<'p> {
    operator: Box<dyn Operator<'p> + 'p>,
    /// Its rows are locked when they are read, so nobody asks for one that may not be needed.
    locks: bool,
}

impl<'p> Input<'p> {
    pub fn new(operator: impl Operator<'p> + 'p, locks: bool) -> Input<'p> {
        Input { operator: Box::new(operator), locks }
    }

    pub fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        run.eval.check_stack()?;
        self.operator.open(run)
    }

    /// Appends at most `want` rows and says how many; 0 at the end.
    pub fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<usize> {
        run.eval.check_stack()?;
        let before = out.len();
        self.operator.next(run, out, want)?;
        let rows = out.len() - before;
        debug_assert!(rows <= want, "no more rows than asked for");
        run.eval.steps(1 + rows as u32)?;
        Ok(rows)
    }

    /// Replaces the batch by more rows, of which all may turn out to be wanted; false at the end.
    pub fn refill(&mut self, run: Run<'_, 'p>, batch: &mut Batch, want: usize) -> SqlResult<bool> {
        batch.clear();
        let at_once = if self.locks { 1 } else { run.state.batch_rows };
        Ok(self.next(run, batch, want.min(at_once))? > 0)
    }

    /// Replaces the batch by more rows, all of which are wanted; false at the end.
    pub fn refill_all(&mut self, run: Run<'_, 'p>, batch: &mut Batch) -> SqlResult<bool> {
        batch.clear();
        Ok(self.next(run, batch, run.state.batch_rows)? > 0)
    }

    pub fn close(&mut self, run: Run<'_, 'p>) {
        self.operator.close(run);
    }
}

/// The operators of a node and of those below it.
pub(crate) fn build<'p>(node: &'p Node, run: Run<'_, 'p>) -> SqlResult<Input<'p>> {
    run.eval.check_stack()?;
    let below = |node: &'p Node| build(node, run);
    Ok(match node {
        Node::Unit => Input::new(Unit::default(), false),
        Node::Empty => Input::new(Empty, false),
        Node::Values(rows) => Input::new(Constants::new(rows), false),
        Node::Scan(scan) => Input::new(ScanOperator::new(scan), scan.mode != ReadMode::Snapshot),
        Node::Virtual(scan) => Input::new(Virtual::new(scan), false),
        Node::Common { number } => Input::new(CommonReader::new(*number), false),
        Node::Filter { input, condition } => {
            let input = below(input)?;
            let locks = input.locks;
            Input::new(Filter::new(input, condition), locks)
        }
        Node::Gate { input, condition } => {
            let input = below(input)?;
            let locks = input.locks;
            Input::new(Gate::new(input, condition), locks)
        }
        Node::Convert { input, from, to } => {
            let input = below(input)?;
            let locks = input.locks;
            Input::new(Convert::new(input, from, to), locks)
        }
        Node::Project { input, items } => {
            let input = below(input)?;
            let locks = input.locks;
            Input::new(Project::new(input, items), locks)
        }
        Node::Extend { input, more } => {
            let input = below(input)?;
            let locks = input.locks;
            Input::new(Extend::new(input, more), locks)
        }
        Node::Join(join) => {
            let left = below(&join.left)?;
            match &join.method {
                JoinMethod::Lookup(scan) => {
                    let locks = left.locks || scan.mode != ReadMode::Snapshot;
                    Input::new(crate::join::Lookup::new(join, left, scan), locks)
                }
                JoinMethod::Hash { right, keys, right_width } => {
                    let varies = varies(right, run.state.plan);
                    let right = below(right)?;
                    let locks = left.locks || right.locks;
                    Input::new(crate::join::Hash::new(join, left, right, (keys, *right_width), varies), locks)
                }
                JoinMethod::Loop { right, right_width } => {
                    let varies = varies(right, run.state.plan);
                    let right = below(right)?;
                    let locks = left.locks || right.locks;
                    Input::new(crate::join::Loop::new(join, left, right, *right_width, varies), locks)
                }
            }
        }
        Node::Aggregate(node) => Input::new(AggregateOperator::new(node, below(&node.input)?), false),
        Node::Sort(sort) => Input::new(SortOperator::new(sort, below(&sort.input)?), false),
        Node::Limit(limit) => {
            let input = below(&limit.input)?;
            let locks = input.locks;
            Input::new(Limit::new(limit, input), locks)
        }
        Node::Distinct { input, collations } => {
            let input = below(input)?;
            let locks = input.locks;
            Input::new(SetOperator::distinct(input, collations), locks)
        }
        Node::Concat(nodes) => {
            let inputs = nodes.iter().map(below).collect::<SqlResult<Vec<_>>>()?;
            let locks = inputs.iter().any(|input| input.locks);
            Input::new(Concat::new(inputs), locks)
        }
        Node::Series { first, last, step } => Input::new(Series::new(*first, *last, *step), false),
        Node::SetOperation(node) => {
            let (left, right) = (below(&node.left)?, below(&node.right)?);
            let locks = left.locks;
            Input::new(SetOperator::operation(node, left, right), locks)
        }
        Node::SetChain(node) => {
            let inputs = node.inputs.iter().map(|input| below(&input.node)).collect::<SqlResult<Vec<_>>>()?;
            Input::new(SetChainOperator::new(node, inputs), false)
        }
        Node::Window(node) => Input::new(Window::new(node, below(&node.input)?, run)?, false),
    })
}
