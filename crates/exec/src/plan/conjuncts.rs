//! A condition as a list of conditions that must all hold.

use cohort_expr::Expr;

/// The conjuncts of a condition.
pub(super) fn split(condition: Expr) -> Vec<Expr> {
    match condition {
        Expr::And(parts) => parts.into_iter().flat_map(split).collect(),
        other => vec![other],
    }
}
