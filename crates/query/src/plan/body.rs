//! The executable part of a query plan: a direct plan, or a tree of operators.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_expr::{Aggregate, Expr, SortKey};
use cohort_optimize::{Access, Columns, LimitCount, PartId, Plan, ReadMode};
use cohort_types::Collation;

/// The executable part of a plan.
pub enum PlanBody {
    Direct(Box<DirectPlan>),
    Tree(Box<Plan>),
}

impl PlanBody {
    /// Returns the number of parts whose work is measured.
    pub fn parts(&self) -> u32 {
        match self {
            PlanBody::Direct(_) => DirectPlan::PARTS,
            PlanBody::Tree(plan) => plan.parts.count,
        }
    }
}

impl DirectPlan {
    /// The reads of the table, as a part whose work is measured.
    pub const READS: PartId = PartId(0);
    /// The whole plan.
    pub const WHOLE: PartId = PartId(1);
    const PARTS: u32 = 2;
}

/// A SELECT from one base table, or from none.
pub struct DirectPlan {
    pub table: Option<DirectTable>,
    /// Number of columns of the table.
    pub width: usize,
    /// Conditions that read no table. If they fail, the result is empty.
    pub constant_filter: Option<Expr>,
    pub group: Option<GroupPlan>,
    pub having: Option<Expr>,
    pub items: Vec<Expr>,
    /// Items that keep all digits of their computation; empty if none does.
    pub kept: Vec<bool>,
    /// The items are distinct columns that need no conversion, so their values can be moved out of the row.
    pub items_move: bool,
    pub distinct: bool,
    pub sort: Vec<SortItem>,
    pub limit: LimitCount,
    pub read: ReadMode,
    /// SQL_CALC_FOUND_ROWS.
    pub count_all: bool,
    /// Number of the SELECT in EXPLAIN.
    pub block: u32,
    /// Execution on stored rows, if possible.
    pub stored: Option<StoredWay>,
}

/// The table of a direct plan.
pub struct DirectTable {
    pub table: Arc<Table>,
    /// Its name or alias in the statement, for EXPLAIN and LOCK TABLES.
    pub name: Arc<str>,
    pub access: Access,
    pub columns: Columns,
    /// Evaluated for every row.
    pub filter: Option<Expr>,
    /// The reduced work if the spans are exact; `None` if nothing is saved.
    pub exact: Option<ExactStep>,
    /// Estimated number of rows.
    pub rows_estimate: u64,
}

/// A scan over exact spans, which contain only rows that satisfy the conditions they were made from.
pub struct ExactStep {
    /// The other conditions.
    pub filter: Option<Expr>,
    /// Columns read by these conditions and by the rest of the statement.
    pub columns: Columns,
}

/// A sort key.
pub struct SortItem {
    pub value: SortValue,
    pub key: SortKey,
}

/// The value of a sort key.
pub enum SortValue {
    /// A column of the result.
    Item(usize),
    /// An expression over the row before the projection.
    Expr(Expr),
}

/// GROUP BY, or aggregation without it.
pub struct GroupPlan {
    /// Empty for a single group, which exists even without rows.
    pub keys: Vec<(Expr, Collation)>,
    pub aggregates: Vec<Aggregate>,
    /// Without ORDER BY, groups are returned in key order, as in MariaDB.
    pub sort_by_key: bool,
    /// There was a GROUP BY.
    pub explicit: bool,
}

/// Operation on stored rows.
#[derive(Debug, PartialEq, Eq)]
pub enum StoredWay {
    /// The result consists of table columns. With DISTINCT, these are also the sort keys, in any order, so
    /// that equal rows become adjacent.
    Columns {
        items: Box<[usize]>,
        /// Column of each sort item.
        keys: Box<[usize]>,
    },
    /// All rows form one group.
    Totals {
        /// One per aggregate.
        aggregates: Box<[StoredAggregate]>,
        /// Columns that are not aggregated have the values of the first row.
        reads_first_row: bool,
    },
}

/// Accumulation of one aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredAggregate {
    pub of: StoredAggregateKind,
    /// The column that it reads; 0 if it reads none.
    pub column: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredAggregateKind {
    Rows,
    /// Rows in which the column is not NULL.
    Present,
    Total,
    Least,
    Greatest,
}
