//! A condition as a list of conditions that must all hold.

use cohort_expr::{Expr, and};

/// The conjuncts of a condition.
pub fn split(condition: Expr) -> Vec<Expr> {
    match condition {
        Expr::And(parts) => parts.into_iter().flat_map(split).collect(),
        other => vec![other],
    }
}

/// A conjunction, or nothing.
pub fn all_of(conditions: Vec<Expr>) -> Option<Expr> {
    (!conditions.is_empty()).then(|| and(conditions))
}
