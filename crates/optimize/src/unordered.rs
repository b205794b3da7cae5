//! Removes the ordering of groups where it cannot be observed.
//!
//! GROUP BY without ORDER BY returns groups in key order. If they only feed another grouping that does not
//! depend on the order, they need not be sorted.

use cohort_expr::{Aggregate, AggregateKind, Expr, TypeClass};

use crate::physical::{AggregateNode, Node};

/// Drops the order of the groups below this grouping, if its result stays the same.
pub(crate) fn forget_order(node: &mut AggregateNode) {
    let has_order = node.ordered || !node.is_grouped;
    if has_order
        && node.first.is_empty()
        && node.keys.iter().all(|(key, _)| has_one_form(key))
        && node.aggregates.iter().all(is_of_a_bag)
    {
        forget_below(&mut node.input);
    }
}

fn forget_below(node: &mut Node) {
    match node {
        Node::Aggregate(groups) if !groups.rollup => groups.ordered = false,
        Node::OneTimeFilter { input, .. } => forget_below(input),
        Node::Filter { input, condition } if !condition.is_volatile() => forget_below(input),
        Node::Project { input, items, .. } if !items.iter().any(Expr::is_volatile) => forget_below(input),
        _ => {}
    }
}

/// Returns true if equal values are identical. For texts the group shows the first of several forms.
fn has_one_form(expr: &Expr) -> bool {
    matches!(expr.ty().class(), TypeClass::Int | TypeClass::Date | TypeClass::DateTime)
}

/// Returns true if the aggregate does not depend on the order of its input.
fn is_of_a_bag(aggregate: &Aggregate) -> bool {
    match aggregate.kind {
        AggregateKind::CountStar | AggregateKind::Count => true,
        AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor => true,
        AggregateKind::Min | AggregateKind::Max => aggregate.args.iter().all(has_one_form),
        // Sums of doubles depend on the order.
        AggregateKind::Sum | AggregateKind::Avg => {
            let is_exact = |arg: &Expr| matches!(arg.ty().class(), TypeClass::Int | TypeClass::Decimal);
            aggregate.args.iter().all(is_exact)
        }
        _ => false,
    }
}
