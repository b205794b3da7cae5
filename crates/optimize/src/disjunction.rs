//! What a disjunction says of single tables and of all its alternatives.
//!
//! `(a AND b) OR (a AND c)` is `a AND (b OR c)`: a common part may be an equality that joins two tables. And
//! when every alternative says something of one table, the disjunction of that can be asked of the table
//! alone, before it is joined; it is asked again as a part of the whole.

use cohort_expr::{Expr, and, or};
use cohort_plan::conjuncts::{all_of, split};

use crate::visit::has_subquery;

/// The condition with the parts that all alternatives have in common taken out.
pub(crate) fn factored(condition: Expr) -> Vec<Expr> {
    let Expr::Or(alternatives) = condition else { return vec![condition] };
    if alternatives.iter().any(costs_or_varies) {
        return vec![Expr::Or(alternatives)];
    }
    let mut parts: Vec<Vec<Expr>> = alternatives.into_iter().map(split).collect();
    let Some((first, others)) = parts.split_first_mut() else { return vec![or(Vec::new())] };
    let mut common = Vec::new();
    first.retain(|part| {
        let is_common = others.iter().all(|other| other.contains(part));
        if is_common {
            others.iter_mut().for_each(|other| other.retain(|known| known != part));
            common.push(part.clone());
        }
        !is_common
    });
    // An alternative that has nothing else lets all pass.
    if !parts.iter().any(Vec::is_empty) {
        common.push(or(parts.into_iter().map(and_of).collect()));
    }
    common
}

/// What a disjunction says of columns of one kind alone; None if an alternative says nothing of them.
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
    has_subquery(expr) || expr.is_volatile()
}
