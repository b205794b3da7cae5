//! Construction of operators from a plan.

use cohort_optimize::{JoinMethod, Node, PartId, ReadMode};
use cohort_types::SqlResult;

use crate::aggregate::AggregateOperator;
use crate::common::CommonReader;
use crate::extend::Extend;
use crate::limit::Limit;
use crate::nodes::varies;
use crate::operator::Input;
use crate::project::{Convert, Filter, OneTimeFilter, Project};
use crate::runtime::Run;
use crate::scan::{ScanOperator, Virtual};
use crate::set_chain::SetChainOperator;
use crate::set_operation::SetOperator;
use crate::sort::SortOperator;
use crate::source::{Concat, Constants, Empty, Series, Unit};
use crate::window::Window;

/// Builds the operators of a root of the plan and of its inputs. Recursive, so the stack frames are kept
/// small.
pub(crate) fn build<'p>(root: &'p Node, run: Run<'_, 'p>) -> SqlResult<Input<'p>> {
    let mut next = match run.state.profile {
        Some(_) => run.state.plan.first_part(root),
        None => PartId::default(),
    };
    build_numbered(root, &mut next, run)
}

/// Variant that numbers the nodes.
fn build_numbered<'p>(node: &'p Node, next: &mut PartId, run: Run<'_, 'p>) -> SqlResult<Input<'p>> {
    run.eval.check_stack()?;
    let part = next.advance();
    let mut inputs = Vec::new();
    for below in node.inputs() {
        inputs.push(build_numbered(below, next, run)?);
    }
    let input = assemble(node, inputs, run)?;
    let measured = run.state.profile.map(|parts| (parts.profile, parts.counters(part)));
    Ok(Input { measured, ..input })
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
        Node::OneTimeFilter { condition, .. } => Input::new(OneTimeFilter::new(below(), condition), locks),
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
