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
use cohort_expr::ExprType;
use cohort_optimize::{PartId, ReadMode};
use cohort_protocol::ColumnMeta;
use cohort_session::AuditTables;

use crate::plan::body::PlanBody;
use crate::plan::shape::PlanShape;

/// A planned query.
pub struct QueryPlan {
    pub body: PlanBody,
    /// Metadata of the result columns.
    pub columns: Vec<ColumnMeta>,
    pub types: Vec<ExprType>,
    /// INTO @a, @b.
    pub into: Vec<cohort_sql::ast::Target>,
    /// The query has its own LIMIT.
    pub has_limit: bool,
    /// Status counters of its runs.
    pub shape: PlanShape,
    /// The statement calls functions that run statements.
    pub calls_back: bool,
    /// First number of its parts within the statement, for measurements.
    pub first_part: PartId,
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
