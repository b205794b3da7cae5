//! Conversion between a condition and the list of its conjuncts.

use cohort_expr::{Expr, and};

/// Returns the conjuncts of a condition.
pub fn split(condition: Expr) -> Vec<Expr> {
    match condition {
        Expr::And(parts) => parts.into_iter().flat_map(split).collect(),
        other => vec![other],
    }
}

/// Returns the conjunction of the conditions, or `None` if there are none.
pub fn all_of(conditions: Vec<Expr>) -> Option<Expr> {
    (!conditions.is_empty()).then(|| and(conditions))
}
