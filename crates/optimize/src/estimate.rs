//! Cost model and cardinality estimates. The cost unit is one row of a clustered index scan. The constants
//! are fixed, because plans must not depend on the machine.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_expr::{CompareOp, Expr};
use cohort_types::SqlResult;

use crate::physical::Access;
use crate::trace::OptimizerTrace;

/// Statistics of tables.
pub trait Statistics {
    /// Returns the number of rows of a table.
    fn entries(&self, table: &Table) -> u64;

    /// Returns the average number of rows with equal values in the first `parts` key parts of an index, if
    /// known.
    fn rows_per_key(&self, table: &Arc<Table>, index: usize, parts: usize) -> Option<f64>;

    /// Returns the number of rows in spans whose values are known before execution, if known.
    fn rows_in(&self, table: &Arc<Table>, access: &Access) -> Option<f64>;

    /// Returns the fraction of a table's rows that passes a condition, if known. The table's columns are
    /// numbered from `first` on.
    fn share(&self, table: &Arc<Table>, first: usize, condition: &Expr) -> Option<f64> {
        let _ = (table, first, condition);
        None
    }

    /// Returns error 1317, 1969 or 3024 if the statement was ended by KILL or a time limit, possibly during
    /// planning.
    fn check_interrupt(&self) -> SqlResult<()>;

    /// Marks the plan as valid for the current values only.
    fn depends_on_values(&self);

    /// Returns the trace of the statement, if its decisions are traced.
    fn trace(&self) -> Option<&OptimizerTrace> {
        None
    }
}

/// Costs of inserting a row into a hash table, and of looking one up.
pub(crate) const BUILD_COST: f64 = 3.5;
pub(crate) const PROBE_COST: f64 = 2.0;
/// Cost of a right row of a nested loop, once it is in memory.
pub(crate) const LOOP_COST: f64 = 0.5;
/// Cost of an index lookup, without the page access and the rows found.
const LOOKUP_COST: f64 = 10.0;
/// Assumed number of rows per page.
const PAGE_ROWS: f64 = 100.0;

/// Returns the cost of `times` lookups in an index with `entries` entries, without the rows found
/// ([`found_cost`]).
pub(crate) fn lookup_cost(times: f64, entries: f64) -> f64 {
    times * LOOKUP_COST + page_cost(times, entries)
}

/// Returns the cost of reaching the pages of `times` out of `entries` entries. The larger the index, the
/// fewer of its pages are cached. Lookups are made in key order, so a page that was just read costs nothing.
fn page_cost(times: f64, entries: f64) -> f64 {
    let pages = (entries / PAGE_ROWS).max(1.0);
    let met = pages * (1.0 - (-times / pages).exp());
    met * 2.0 * entries.max(1.0).log2()
}

/// Returns the cost of `rows` rows found by an index of a table with `entries` entries.
pub(crate) fn found_cost(access: &Access, rows: f64, entries: f64) -> f64 {
    match access.index {
        0 => 2.0 * rows,
        // The rows are read in the order of their clustered keys.
        _ => 5.0 * rows + 0.5 * page_cost(rows, entries),
    }
}

/// Assumed number of rows of a table without statistics.
pub(crate) const UNKNOWN_ROWS: f64 = 1000.0;

/// Returns the estimated selectivity of a condition.
pub(crate) fn selectivity(condition: &Expr) -> f64 {
    match condition {
        Expr::Compare(node) => match node.op {
            CompareOp::Eq | CompareOp::NullSafeEq => 0.1,
            CompareOp::Ne => 0.9,
            _ => 0.33,
        },
        Expr::Between(node) => {
            if node.negated {
                0.8
            } else {
                0.2
            }
        }
        Expr::In(node) => {
            let share = (0.1 * node.list.len() as f64).min(0.5);
            if node.negated { 1.0 - share } else { share }
        }
        Expr::Like(node) => {
            if node.negated {
                0.9
            } else {
                0.1
            }
        }
        Expr::IsNull(node) => {
            if node.negated {
                0.9
            } else {
                0.1
            }
        }
        Expr::And(parts) => parts.iter().map(selectivity).product(),
        Expr::Or(parts) => (1.0 - parts.iter().map(|part| 1.0 - selectivity(part)).product::<f64>()).max(0.0),
        _ => 0.5,
    }
}

/// Returns the estimated number of distinct values in a column of a base table.
pub(crate) fn distinct_values(
    stats: &dyn Statistics,
    table: &Arc<Table>,
    column: usize,
    entries: f64,
) -> f64 {
    let mut best: f64 = entries.min(200.0);
    for (n, index) in table.indexes.iter().enumerate() {
        if index.columns.first().is_none_or(|part| part.column != column) {
            continue;
        }
        if index.kind.is_unique() && index.columns.len() == 1 {
            return entries.max(1.0);
        }
        if !index.kind.is_sorted() {
            continue;
        }
        match stats.rows_per_key(table, n, 1) {
            Some(rows) => return (entries / rows.max(1.0)).max(1.0),
            None => best = best.max(entries / 10.0),
        }
    }
    best.max(1.0)
}
