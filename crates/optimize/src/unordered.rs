//! Groups whose order nobody sees.
//!
//! GROUP BY without ORDER BY answers in the order of its keys. Where the groups only go into other groups
//! that do not depend on it, they need not be sorted.

use cohort_expr::{Aggregate, AggregateKind, Expr, TypeClass};

use crate::physical::{AggregateNode, Node};

/// Lets the groups below come in any order, if this grouping answers the same then.
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
        Node::Gate { input, .. } => forget_below(input),
        Node::Filter { input, condition } if !condition.is_volatile() => forget_below(input),
        Node::Project { input, items, .. } if !items.iter().any(Expr::is_volatile) => forget_below(input),
        _ => {}
    }
}

/// Whether equal values are the same: of texts the first one of a group is shown.
fn has_one_form(expr: &Expr) -> bool {
    matches!(expr.ty().class(), TypeClass::Int | TypeClass::Date | TypeClass::DateTime)
}

/// Whether it makes no difference in which order an aggregate gathers.
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
