//! ONLY_FULL_GROUP_BY: restricts what a grouped SELECT may return. As in MariaDB, a column must be in GROUP
//! BY or be part of an expression that is. Functional dependency on a key does not count.

use cohort_expr::Expr;
use cohort_types::{SqlError, SqlResult};

use crate::bind::Scope;

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
    grouping: Grouping,
    scope: &Scope,
    keys: &[Expr],
    items: impl Iterator<Item = &'e Expr>,
    order: impl Iterator<Item = &'e Expr>,
) -> SqlResult<()> {
    let mut found = None;
    // As in MariaDB, arguments of window functions are not checked.
    let mut look = |expr: &Expr| see(expr, scope, keys, &mut found);
    items.for_each(&mut look);
    if grouping == Grouping::Implicit {
        order.for_each(&mut look);
    }
    match (found, grouping) {
        (None, _) => Ok(()),
        (Some(_), Grouping::Implicit) => Err(SqlError::mix_of_group_columns()),
        (Some(slot), Grouping::Explicit) => {
            let name = scope.slot(slot).full_name.replace("`.`", ".");
            Err(SqlError::not_in_group_by(name.trim_matches('`')))
        }
    }
}

/// Records the first column of the scope that is not part of a key.
fn see(expr: &Expr, scope: &Scope, keys: &[Expr], found: &mut Option<usize>) {
    expr.walk(&mut |part| {
        if found.is_some() || keys.contains(part) {
            return false;
        }
        if let Expr::Column(column) = part
            && scope.holds(column.ordinal)
            // MariaDB does not look into a view or derived table that it merges.
            && scope.tables[scope.table_of(column.ordinal)].merged.is_none()
        {
            *found = Some(column.ordinal);
        }
        true
    });
}
