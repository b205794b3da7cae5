//! What the choices cost, in rows of a scan of the clustered index, and how many rows come. Fixed numbers:
//! plans must not depend on the machine.

use std::sync::Arc;

use cohort_catalog::{IndexKind, Table};
use cohort_expr::{CompareOp, Expr};
use cohort_types::SqlResult;

use crate::physical::Access;

/// What is known of tables.
pub trait Statistics {
    /// Rows of a table.
    fn entries(&self, table: &Table) -> u64;

    /// Rows that have the same values in the first key parts of an index, on average; None: unknown.
    fn rows_per_key(&self, table: &Arc<Table>, index: usize, parts: usize) -> Option<f64>;

    /// Rows in spans whose values are known before the statement runs; None: unknown.
    fn rows_in(&self, table: &Arc<Table>, access: &Access) -> Option<f64>;

    /// The share of a table's rows that passes a condition over its columns, which have the numbers from
    /// `first` on; None: unknown.
    fn share(&self, table: &Arc<Table>, first: usize, condition: &Expr) -> Option<f64> {
        let _ = (table, first, condition);
        None
    }

    /// Errors 1317, 1969 and 3024: KILL or a limit of time ended the statement, perhaps while it is planned.
    fn check_interrupt(&self) -> SqlResult<()>;

    /// The plan is another one than it would be with other values: it is not used for them.
    fn depends_on_values(&self);
}

/// A row put into a hash table, and one looked up there.
pub(crate) const BUILD_COST: f64 = 3.5;
pub(crate) const PROBE_COST: f64 = 2.0;
/// A row on the right of a loop, once it is in memory.
pub(crate) const LOOP_COST: f64 = 0.5;
/// An index asked for one row, beside the way to the page where it lies and the rows that come.
const LOOKUP_COST: f64 = 10.0;
/// Rows that are thought to lie in a page.
const PAGE_ROWS: f64 = 100.0;

/// An index of so many entries asked so many times, beside the rows that come ([`found_cost`]).
pub(crate) fn lookup_cost(times: f64, entries: f64) -> f64 {
    times * LOOKUP_COST + page_cost(times, entries)
}

/// The ways to the pages where so many of so many entries lie: the more entries there are, the fewer of their
/// pages are near. Many are asked for in their order, and one that was read a moment ago costs nothing.
fn page_cost(times: f64, entries: f64) -> f64 {
    let pages = (entries / PAGE_ROWS).max(1.0);
    let met = pages * (1.0 - (-times / pages).exp());
    met * 2.0 * entries.max(1.0).log2()
}

/// What so many rows cost that an index of a table with so many entries finds.
pub(crate) fn found_cost(access: &Access, rows: f64, entries: f64) -> f64 {
    match access.index {
        0 => 2.0 * rows,
        // They are read in the order of their own keys.
        _ => 5.0 * rows + 0.5 * page_cost(rows, entries),
    }
}

/// Rows of a table that says nothing about itself.
pub(crate) const UNKNOWN_ROWS: f64 = 1000.0;

/// The share of rows that a condition lets pass.
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

/// Different values of a column of a base table.
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
        if matches!(index.kind, IndexKind::Primary | IndexKind::Unique) && index.columns.len() == 1 {
            return entries.max(1.0);
        }
        match stats.rows_per_key(table, n, 1) {
            Some(rows) => return (entries / rows.max(1.0)).max(1.0),
            None => best = best.max(entries / 10.0),
        }
    }
    best.max(1.0)
}
