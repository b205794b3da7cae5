//! The rows that an UPDATE or DELETE changes.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_expr::Expr;
use cohort_sql::ast;
use cohort_types::SqlResult;

use crate::bind::{PlanContext, Scope};
use crate::table::Access;

/// How the rows of one table that a statement changes are found. Expressions read rows of all columns of the table.
pub struct TargetPlan {
    pub table: Arc<Table>,
    /// Resolves the names of the statement's other expressions (SET, RETURNING).
    pub scope: Scope,
    pub access: Access,
    /// The whole WHERE: to be checked on every row, again when it is locked.
    pub filter: Option<Expr>,
    /// Sort by these, descending where true, before the limit; empty when the access yields the order.
    pub sort: Vec<(Expr, bool)>,
    /// LIMIT, an unsigned constant of the execution.
    pub limit: Option<Expr>,
}

/// Binds and plans a single table with its WHERE, ORDER BY and LIMIT.
pub fn plan_target(
    ctx: &PlanContext<'_>,
    table: &ast::TableFactor,
    filter: Option<&ast::Expr>,
    order_by: &[ast::OrderItem],
    limit: Option<&ast::Limit>,
) -> SqlResult<TargetPlan> {
    let _ = (ctx, table, filter, order_by, limit);
    todo!()
}
