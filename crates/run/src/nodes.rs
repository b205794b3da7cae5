//! Plan analysis that determines how operators execute it.

use cohort_expr::Expr;
use cohort_optimize::{AggregateNode, Extension, JoinMethod, Node, Plan, WindowNode};

use crate::runtime::BATCH_ROWS;
use crate::scan::span_exprs;

/// Returns the number of rows that operators request at once. Returns 1 if evaluations have visible side
/// effects or are volatile; then each row passes through the whole plan before the next is read.
pub(crate) fn batch_rows(plan: &Plan) -> usize {
    let subqueries = plan.subqueries.iter().map(|subquery| &subquery.root);
    let common =
        plan.common.iter().flat_map(|c| std::iter::once(&c.seed).chain(c.step.as_ref().map(|s| &s.node)));
    let mut volatile = false;
    for root in std::iter::once(&plan.root).chain(subqueries).chain(common) {
        walk(root, &mut |node| {
            exprs(node, &mut |expr| volatile |= expr.is_volatile());
            !volatile
        });
    }
    if volatile { 1 } else { BATCH_ROWS }
}

/// Returns true if a node may return different rows when it is opened again in the same run.
pub(crate) fn varies(root: &Node, plan: &Plan) -> bool {
    let mut varies = false;
    walk(root, &mut |node| {
        if let Node::Common { number } = node {
            let common = &plan.common[*number];
            varies |= common.step.is_some();
        }
        exprs(node, &mut |expr| {
            expr.walk(&mut |part| {
                varies |= match part {
                    Expr::Outer(_) => true,
                    Expr::Subquery(node) => node.is_volatile || !plan.subqueries[node.id].reads.is_empty(),
                    _ => false,
                };
                !varies
            });
            varies |= expr.is_volatile();
        });
        !varies
    });
    varies
}

/// Calls `visit` for a node and, if it returns true, for its inputs. Iterative, because the depth of the plan
/// is not checked yet.
fn walk(root: &Node, visit: &mut dyn FnMut(&Node) -> bool) {
    let mut waiting = vec![root];
    while let Some(node) = waiting.pop() {
        if visit(node) {
            waiting.extend(node.inputs());
        }
    }
}

/// Visits the expressions of a node.
fn exprs(node: &Node, visit: &mut dyn FnMut(&Expr)) {
    match node {
        Node::Unit
        | Node::Empty
        | Node::Common { .. }
        | Node::Distinct { .. }
        | Node::Concat(_)
        | Node::SetOperation(_)
        | Node::SetChain(_)
        | Node::Series { .. }
        | Node::Convert { .. } => {}
        Node::Values(rows) => rows.iter().flatten().for_each(visit),
        Node::Scan(scan) => span_exprs(scan).into_iter().chain(&scan.filter).for_each(visit),
        Node::Virtual(scan) => scan.filter.iter().for_each(visit),
        Node::Filter { condition, .. } | Node::OneTimeFilter { condition, .. } => visit(condition),
        Node::Project { items, .. } => items.iter().for_each(visit),
        Node::Extend { more, .. } => {
            for extension in more {
                if let Extension::Value(expr) = extension {
                    visit(expr);
                }
            }
        }
        Node::Join(join) => {
            join.on.iter().for_each(&mut *visit);
            match &join.method {
                JoinMethod::Lookup(scan) => span_exprs(scan).into_iter().chain(&scan.filter).for_each(visit),
                JoinMethod::Hash { keys, .. } => {
                    keys.iter().flat_map(|key| [&key.left, &key.right]).for_each(visit);
                }
                JoinMethod::Loop { gate, .. } => gate.iter().for_each(visit),
                JoinMethod::Json(scan) => visit(&scan.document),
            }
        }
        Node::Aggregate(node) => aggregate_exprs(node, visit),
        Node::Window(node) => window_exprs(node, visit),
        Node::Sort(sort) => {
            sort.keys.iter().map(|key| &key.0).for_each(&mut *visit);
            let limit = sort.limit.iter();
            limit.flat_map(|limit| limit.count.iter().chain(&limit.offset)).for_each(visit);
        }
        Node::Limit(node) => node.limit.count.iter().chain(&node.limit.offset).for_each(visit),
    }
}

fn of_aggregate(aggregate: &cohort_expr::Aggregate) -> impl Iterator<Item = &Expr> {
    aggregate.args.iter().chain(aggregate.options.order.iter().map(|key| &key.expr))
}

fn aggregate_exprs(node: &AggregateNode, visit: &mut dyn FnMut(&Expr)) {
    let keys = node.keys.iter().map(|key| &key.0);
    keys.chain(&node.first).chain(node.aggregates.iter().flat_map(of_aggregate)).for_each(visit);
}

fn window_exprs(node: &WindowNode, visit: &mut dyn FnMut(&Expr)) {
    node.partition.iter().map(|key| &key.0).for_each(&mut *visit);
    node.order.iter().map(|key| &key.0).for_each(&mut *visit);
    for call in &node.calls {
        call.each(visit);
    }
}
