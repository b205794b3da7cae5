//! Plans of queries: immutable, shared by sessions, run with other parameters each time.
//!
//! A query of one base table without subqueries has a *direct* plan, a fixed pipeline over one cursor. Any
//! other query is a tree of operators ([`cohort_optimize::Plan`]).
//!
//! # Rows of a direct plan
//! Column n of the table is in slot n; columns that nobody reads stay NULL. Behind the last one come, for a
//! grouped SELECT, the results of its aggregates.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_expr::{Aggregate, Expr, ExprType, SortKey};
use cohort_optimize::{Access, Columns, LimitCount, Plan, ReadMode};
use cohort_protocol::ColumnMeta;
use cohort_session::AuditTables;
use cohort_types::Collation;

use crate::plan::shape::PlanShape;
use crate::plan::stored::StoredWay;

/// A query.
pub struct QueryPlan {
    pub body: PlanBody,
    /// The result's columns.
    pub columns: Vec<ColumnMeta>,
    pub types: Vec<ExprType>,
    /// INTO @a, @b.
    pub into: Vec<String>,
    /// The query has a LIMIT of its own.
    pub has_limit: bool,
    /// What its runs are counted as.
    pub shape: PlanShape,
}

/// What yields the rows.
pub enum PlanBody {
    Direct(Box<DirectPlan>),
    Tree(Box<Plan>),
}

/// A SELECT from one base table, or from none.
pub struct DirectPlan {
    pub table: Option<DirectTable>,
    /// Columns of the table.
    pub width: usize,
    /// Conditions that read no table: when one fails there are no rows.
    pub constant_filter: Option<Expr>,
    pub group: Option<GroupPlan>,
    pub having: Option<Expr>,
    pub items: Vec<Expr>,
    /// The items that keep all digits they are computed with; empty when none does.
    pub kept: Vec<bool>,
    /// The items are different columns, none of which needs conversion: values can be moved out of the row.
    pub items_move: bool,
    pub distinct: bool,
    pub sort: Vec<SortItem>,
    pub limit: LimitCount,
    pub read: ReadMode,
    /// SQL_CALC_FOUND_ROWS.
    pub count_all: bool,
    /// As EXPLAIN numbers it.
    pub block: u32,
    /// How it runs over rows that need not become values.
    pub stored: Option<StoredWay>,
}

/// The table of a direct plan.
pub struct DirectTable {
    pub table: Arc<Table>,
    /// What the statement calls it: for EXPLAIN, and for LOCK TABLES.
    pub name: Arc<str>,
    pub access: Access,
    pub columns: Columns,
    /// Asked of every row.
    pub filter: Option<Expr>,
    /// What is left to do when the spans are exact; if that is less.
    pub exact: Option<ExactStep>,
    /// Rows that the planner expects.
    pub rows_estimate: u64,
}

/// A scan over spans that hold just the rows that the conditions they were made from let pass.
pub struct ExactStep {
    /// The other conditions.
    pub filter: Option<Expr>,
    /// What they and the rest of the statement read.
    pub columns: Columns,
}

/// A sort key.
pub struct SortItem {
    pub value: SortValue,
    pub key: SortKey,
}

/// What a sort key is.
pub enum SortValue {
    /// A column of the result.
    Item(usize),
    /// An expression over the row before the projection.
    Expr(Expr),
}

/// GROUP BY, or aggregates without it.
pub struct GroupPlan {
    /// None: one group, also of no rows.
    pub keys: Vec<(Expr, Collation)>,
    pub aggregates: Vec<Aggregate>,
    /// No ORDER BY was written: groups come in the order of their keys, as MariaDB's do.
    pub sort_by_key: bool,
    /// There was a GROUP BY.
    pub explicit: bool,
}

impl QueryPlan {
    /// Whether it reads any table, computed ones too.
    pub fn reads_tables(&self) -> bool {
        self.shape.reads_tables
    }

    /// Whether it yields the same rows whenever it is run in a statement: it reads no row of a data change,
    /// and nothing that answers anew each time.
    pub fn is_fixed(&self) -> bool {
        match &self.body {
            PlanBody::Direct(_) => true,
            PlanBody::Tree(plan) => {
                plan.given.is_empty() && !plan.subqueries.iter().any(|subquery| subquery.is_volatile)
            }
        }
    }

    /// Its base tables, with what the statement calls them.
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

    /// Whether it locks rows, and whether for a change.
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

    /// Tells the audit log which tables are read, and how.
    pub fn tell_tables(&self, told: &AuditTables<'_>) {
        told.query(self.locks(), self.tables().iter().map(|(table, _)| &***table));
    }
}
