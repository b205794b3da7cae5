//! ONLY_FULL_GROUP_BY: restricts what a grouped SELECT may return. As in MariaDB, an item must be in GROUP
//! BY, or refer only to columns that are. Functional dependency on a key does not count.

use cohort_expr::Expr;
use cohort_types::{SqlError, SqlResult};

use crate::bind::{PlanContext, Scope};
use crate::walk::each_expr;

/// The kind of grouping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// GROUP BY.
    Explicit,
    /// Aggregates without GROUP BY.
    Implicit,
}

/// Checks the select items and, without GROUP BY, the ORDER BY expressions. Errors 1055 and 1140.
pub(crate) fn check<'e>(
    ctx: &PlanContext<'_>,
    grouping: Grouping,
    scope: &Scope,
    keys: &[Expr],
    items: impl Iterator<Item = &'e Expr>,
    order: impl Iterator<Item = &'e Expr>,
) -> SqlResult<()> {
    let mut look_for = Ungrouped { ctx, scope, keys, found: None };
    // As in MariaDB, arguments of window functions are not checked.
    let mut look = |expr: &Expr| {
        if !keys.contains(expr) {
            look_for.see(expr, false);
        }
    };
    items.for_each(&mut look);
    if grouping == Grouping::Implicit {
        order.for_each(&mut look);
    }
    match (look_for.found, grouping) {
        (None, _) => Ok(()),
        (Some(_), Grouping::Implicit) => Err(SqlError::mix_of_group_columns()),
        (Some(slot), Grouping::Explicit) => {
            let name = scope.slot(slot).full_name.replace("`.`", ".");
            Err(SqlError::not_in_group_by(name.trim_matches('`')))
        }
    }
}

/// A search for the first column of the scope that is not a key.
struct Ungrouped<'c> {
    ctx: &'c PlanContext<'c>,
    scope: &'c Scope,
    keys: &'c [Expr],
    found: Option<usize>,
}

impl Ungrouped<'_> {
    fn see(&mut self, expr: &Expr, is_in_subquery: bool) {
        expr.walk(&mut |part| {
            match part {
                _ if self.found.is_some() || self.keys.contains(part) && matches!(part, Expr::Column(_)) => {
                    return false;
                }
                Expr::Column(column) => {
                    let is_merged =
                        |scope: &Scope| scope.tables[scope.table_of(column.ordinal)].merged.is_some();
                    // MariaDB checks columns of a merged view or derived table only if a subquery refers to
                    // them.
                    if self.scope.holds(column.ordinal) && (is_in_subquery || !is_merged(self.scope)) {
                        self.found = Some(column.ordinal);
                    }
                }
                Expr::Subquery(subquery) => {
                    let known = self.ctx.subqueries.borrow();
                    each_expr(&known[subquery.id], &mut |expr| self.see(expr, true));
                }
                _ => {}
            }
            true
        });
    }
}
