//! DELETE from one table.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_sql::ast;
use cohort_types::SqlResult;

use crate::bind::PlanContext;
use crate::dml::insert_plan::not_supported;
use crate::dml::outcome::DmlOutcome;
use crate::dml::target::Order;
use crate::guards::check_safe_update;
use crate::plan::{TargetPlan, plan_target};
use crate::statement::StatementContext;

/// DELETE.
pub struct DeletePlan {
    target: TargetPlan,
}

impl DeletePlan {
    /// Binds and plans the statement.
    pub fn plan(ctx: &PlanContext<'_>, delete: &ast::Delete) -> SqlResult<DeletePlan> {
        let ast::TableRef::Table(table) = &delete.from else {
            return Err(not_supported("multi-table DELETE"));
        };
        if !delete.targets.is_empty() {
            return Err(not_supported("multi-table DELETE"));
        }
        if !delete.returning.is_empty() {
            return Err(not_supported("DELETE...RETURNING"));
        }
        let target =
            plan_target(ctx, table, delete.filter.as_ref(), &delete.order_by, delete.limit.as_ref())?;
        Ok(DeletePlan { target })
    }

    /// The table that is written; the statement locks its name.
    pub fn table(&self) -> &Arc<Table> {
        self.target.written()
    }

    /// How the rows are found, for EXPLAIN.
    pub fn target(&self) -> &TargetPlan {
        &self.target
    }

    /// Runs the statement.
    pub fn run(&self, ctx: &mut StatementContext<'_>) -> SqlResult<DmlOutcome> {
        let decides = |filter: &cohort_expr::Expr| !filter.is_const_per_execution();
        check_safe_update(ctx.session, &self.target, !self.target.filter.as_ref().is_some_and(decides))?;
        ctx.annotate();
        let mut deleted = 0;
        self.target.for_each(ctx, Order::WhileScanning, &[], &mut |ctx, writer, key, row| {
            deleted += 1;
            writer.delete(ctx.trx, key, row)
        })?;
        Ok(DmlOutcome { affected: deleted, found: deleted, ..DmlOutcome::default() })
    }
}
