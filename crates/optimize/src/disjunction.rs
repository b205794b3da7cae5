//! Simplifies disjunctions: factors out common conjuncts and derives conditions on single tables.
//!
//! `(a AND b) OR (a AND c)` is `a AND (b OR c)`; the common conjunct may be an equality that joins two
//! tables. If every alternative restricts the same table, the disjunction of these restrictions can be
//! applied to the table alone, before the join. The whole disjunction is evaluated later as well.

use cohort_expr::{Expr, and, or};
use cohort_plan::conjuncts::{all_of, split};

/// Returns the condition split into the conjuncts common to all alternatives, and the rest.
pub(crate) fn factored(condition: Expr) -> Vec<Expr> {
    let Expr::Or(alternatives) = condition else { return vec![condition] };
    if alternatives.iter().any(costs_or_varies) {
        return vec![Expr::Or(alternatives)];
    }
    let mut parts: Vec<Vec<Expr>> = alternatives.into_iter().map(split).collect();
    let Some((first, others)) = parts.split_first_mut() else { return vec![or(Vec::new())] };
    let mut common = Vec::new();
    first.retain(|part| {
        // A conjunct that the first alternative repeats is found once.
        let is_known = common.contains(part);
        let is_common = is_known || others.iter().all(|other| other.contains(part));
        if is_common && !is_known {
            others.iter_mut().for_each(|other| other.retain(|known| known != part));
            common.push(part.clone());
        }
        !is_common
    });
    debug_assert!(
        !common.iter().any(|part| parts.iter().flatten().any(|rest| rest == part)),
        "a common conjunct stays in an alternative, and is evaluated twice"
    );
    // An alternative without other conjuncts accepts every row.
    if !parts.iter().any(Vec::is_empty) {
        common.push(or(parts.into_iter().map(and_of).collect()));
    }
    common
}

/// Returns the condition that a disjunction implies for some columns alone, or `None` if an alternative
/// implies nothing for them.
pub(crate) fn implied(condition: &Expr, is_of: &dyn Fn(usize) -> bool) -> Option<Expr> {
    let Expr::Or(alternatives) = condition else { return None };
    if alternatives.iter().any(costs_or_varies) {
        return None;
    }
    let of_one = |alternative: &Expr| {
        let own = |part: &Expr| {
            let columns = part.columns();
            !columns.is_empty() && columns.iter().all(|column| is_of(*column))
        };
        all_of(split(alternative.clone()).into_iter().filter(own).collect())
    };
    let parts: Option<Vec<Expr>> = alternatives.iter().map(of_one).collect();
    parts.map(or)
}

fn and_of(mut parts: Vec<Expr>) -> Expr {
    match parts.len() {
        1 => parts.remove(0),
        _ => and(parts),
    }
}

fn costs_or_varies(expr: &Expr) -> bool {
    expr.calls_back() || expr.is_volatile()
}
