//! Query plans: immutable, shared by sessions, and executed with different parameters each time.
//!
//! A query of one base table without subqueries has a *direct* plan, a fixed pipeline over one cursor. Any
//! other query is a tree of operators ([`cohort_optimize::Plan`]).
//!
//! # Rows of a direct plan
//! Column n of the table is in slot n; columns that are not read stay NULL. In a grouped SELECT, the results
//! of its aggregates follow.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_expr::{Aggregate, Expr, ExprType, SortKey};
use cohort_optimize::{Access, Columns, LimitCount, Plan, ReadMode};
use cohort_protocol::ColumnMeta;
use cohort_session::AuditTables;
use cohort_types::Collation;

use crate::plan::shape::PlanShape;
use crate::plan::stored::StoredWay;

/// A planned query.
pub struct QueryPlan {
    pub body: PlanBody,
    /// Metadata of the result columns.
    pub columns: Vec<ColumnMeta>,
    pub types: Vec<ExprType>,
    /// INTO @a, @b.
    pub into: Vec<String>,
    /// The query has its own LIMIT.
    pub has_limit: bool,
    /// Status counters of its runs.
    pub shape: PlanShape,
    /// The statement calls functions that run statements.
    pub calls_back: bool,
}

/// The executable part of a plan.
pub enum PlanBody {
    Direct(Box<DirectPlan>),
    Tree(Box<Plan>),
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

impl QueryPlan {
    /// Returns true if it reads any table, including virtual tables.
    pub fn reads_tables(&self) -> bool {
        self.shape.reads_tables
    }

    /// Returns true if it returns the same rows each time it runs in a statement: it reads no row of a data
    /// change and nothing volatile.
    pub fn is_fixed(&self) -> bool {
        match &self.body {
            PlanBody::Direct(_) => true,
            PlanBody::Tree(plan) => {
                !self.calls_back
                    && plan.given.is_empty()
                    && !plan.subqueries.iter().any(|subquery| subquery.is_volatile)
            }
        }
    }

    /// Returns its base tables with their names or aliases in the statement.
    pub fn tables(&self) -> Vec<(&Arc<Table>, &str)> {
        match &self.body {
            PlanBody::Direct(direct) => direct.table.iter().map(|t| (&t.table, &*t.name)).collect(),
            PlanBody::Tree(plan) => {
                let mut tables: Vec<(&Arc<Table>, &str)> = Vec::new();
                plan.each_scan(&mut |scan| tables.push((&scan.table, &scan.name)));
                tables
            }
        }
    }

    /// Returns the strongest lock mode of its tables.
    #[inline]
    pub fn locks(&self) -> ReadMode {
        match &self.body {
            PlanBody::Direct(direct) => direct.read,
            PlanBody::Tree(plan) => {
                let mut strongest = ReadMode::Snapshot;
                plan.each_scan(&mut |scan| match (strongest, scan.mode) {
                    (ReadMode::LockExclusive(_), _) | (_, ReadMode::Snapshot) => {}
                    (_, mode) => strongest = mode,
                });
                strongest
            }
        }
    }

    /// Reports the tables that it reads, and their lock mode, to the audit log.
    pub fn report_tables(&self, audit: &AuditTables<'_>) {
        audit.query(self.locks(), self.tables().iter().map(|(table, _)| &***table));
    }
}
