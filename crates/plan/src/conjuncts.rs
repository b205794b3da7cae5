//! Conversion between a condition and the list of its conjuncts.

use cohort_expr::{Expr, and};

/// Returns the conjuncts of a condition.
pub fn split(condition: Expr) -> Vec<Expr> {
    let conjuncts = match condition {
        Expr::And(parts) => parts.into_iter().flat_map(split).collect(),
        other => vec![other],
    };
    debug_assert!(!conjuncts.iter().any(|part| matches!(part, Expr::And(_))), "a conjunct is a conjunction");
    conjuncts
}

/// Returns the conjunction of the conditions, or `None` if there are none.
pub fn all_of(conditions: Vec<Expr>) -> Option<Expr> {
    debug_assert!(!conditions.iter().any(|part| matches!(part, Expr::Row(_))), "a row has no truth value");
    (!conditions.is_empty()).then(|| and(conditions))
}
