//! Columns that query blocks produce, and columns that they read from outer blocks.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use cohort_expr::Expr;
use cohort_plan::{Body, CommonTable, From, FromTable, Query, Source};
pub(crate) use cohort_plan::{each_expr, each_expr_mut};

/// Column numbers.
pub(crate) type ColumnSet = BTreeSet<usize>;

/// The subqueries and common table expressions of a statement, by number.
pub(crate) struct Statement<'s> {
    pub subqueries: &'s [Query],
    pub common: &'s [CommonTable],
    /// Properties of each subquery, computed on first use.
    facts: Vec<OnceCell<Facts>>,
}

/// Properties of a subquery as seen by its outer queries.
struct Facts {
    free: ColumnSet,
    is_volatile: bool,
}

impl<'s> Statement<'s> {
    pub(crate) fn new(subqueries: &'s [Query], common: &'s [CommonTable]) -> Statement<'s> {
        Statement { subqueries, common, facts: subqueries.iter().map(|_| OnceCell::new()).collect() }
    }

    /// Returns the columns that an expression reads, including outer columns read by its subqueries.
    pub(crate) fn columns(&self, expr: &Expr) -> ColumnSet {
        let mut found = ColumnSet::new();
        self.add_columns(expr, &mut found);
        found
    }

    fn add_columns(&self, expr: &Expr, found: &mut ColumnSet) {
        expr.walk(&mut |node| {
            match node {
                Expr::Column(column) => {
                    found.insert(column.ordinal);
                }
                Expr::Subquery(subquery) => found.extend(self.free(subquery.id)),
                _ => {}
            }
            true
        });
    }

    /// Returns the outer columns that a subquery reads. Common table expressions read none, because they are
    /// bound without the outer query.
    pub(crate) fn free(&self, id: usize) -> &ColumnSet {
        &self.facts(id).free
    }

    /// Returns true if a subquery may return different rows each time it runs.
    pub(crate) fn is_volatile(&self, id: usize) -> bool {
        self.facts(id).is_volatile
    }

    /// Returns the properties of a subquery. They are needed at each of its uses and in all outer blocks, so
    /// they are computed once.
    fn facts(&self, id: usize) -> &Facts {
        self.facts[id].get_or_init(|| {
            let query = &self.subqueries[id];
            let (mut free, mut brought) = (ColumnSet::new(), ColumnSet::new());
            let mut is_volatile = false;
            each_expr(query, &mut |expr| {
                self.add_columns(expr, &mut free);
                is_volatile |= self.is_volatile_expr(expr);
            });
            each_brought(query, &mut |first, count| brought.extend(first..first + count));
            free.retain(|column| !brought.contains(column));
            Facts { free, is_volatile }
        })
    }

    /// Returns whether an expression, or a subquery in it, may have another value each time.
    pub(crate) fn is_volatile_expr(&self, expr: &Expr) -> bool {
        let mut found = expr.is_volatile();
        expr.walk(&mut |node| {
            if let Expr::Subquery(subquery) = node {
                found |= self.is_volatile(subquery.id);
            }
            !found
        });
        found
    }
}

/// Returns true if a column belongs to the table.
pub(crate) fn brings(table: &FromTable, column: usize) -> bool {
    (table.first..table.first + table.width).contains(&column)
}

/// Calls `see` with the first number and the count of the columns that a query defines: its own and its
/// tables'.
fn each_brought(query: &Query, see: &mut dyn FnMut(usize, usize)) {
    see(query.first_column, query.types.len());
    match &query.body {
        Body::Select(select) => {
            if let Some(from) = &select.from {
                from_brought(from, see);
            }
            if let Some(group) = &select.group {
                see(group.first_key, group.keys.len());
                group.aggregates.iter().for_each(|collected| see(collected.column, 1));
            }
            select.windows.iter().for_each(|window| see(window.column, 1));
            select.assigned.iter().for_each(|assigned| see(assigned.column, 1));
        }
        Body::Set(set) => {
            each_brought(&set.first, see);
            set.rest.iter().for_each(|operand| each_brought(&operand.query, see));
        }
        Body::Values(_) => {}
        Body::Nested(inner) => each_brought(inner, see),
    }
}

fn from_brought(from: &From, see: &mut dyn FnMut(usize, usize)) {
    match from {
        From::Table(table) => {
            see(table.first, table.width);
            if let Source::Derived(query) = &table.source {
                each_brought(query, see);
            }
        }
        From::Join(join) => {
            from_brought(&join.left, see);
            from_brought(&join.right, see);
        }
    }
}
