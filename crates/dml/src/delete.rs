//! DELETE from one table.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_sql::ast;
use cohort_types::{Privilege, SqlError, SqlResult};

use crate::asked::PlanQuery;
use crate::outcome::DmlOutcome;
use crate::returning::{FixedAnswers, Returned, Returning};
use crate::row_change::RowSteps;
use crate::target::Order;
use crate::target_plan::{TargetPlan, check_safe_update, plan_target};
use cohort_plan::{PlanContext, Scope};
use cohort_session::{SessionState, StatementContext};
use cohort_trx::WaitPolicy;

/// DELETE.
pub struct DeletePlan {
    target: TargetPlan,
    ignore: bool,
    steps: RowSteps,
    pub returning: Option<Returning>,
}

impl DeletePlan {
    /// Returns whether hooks run for the changed rows.
    pub fn has_hooks(&self) -> bool {
        self.steps.has_hooks()
    }

    /// Binds and plans the statement.
    pub fn plan(
        ctx: &PlanContext<'_>,
        session: &SessionState,
        delete: &ast::Delete,
        query: &mut PlanQuery<'_>,
    ) -> SqlResult<DeletePlan> {
        let ast::TableRef::Table(table) = &delete.from else {
            return Err(SqlError::not_supported("a DELETE over joins here"));
        };
        let (filter, limit) = (delete.filter.as_ref(), delete.limit.as_ref());
        let target = plan_target(ctx, session, table, filter, &delete.order_by, limit, Privilege::Delete)?;
        let scope = Scope::of_table(target.table.clone(), table.alias.as_deref());
        let of = Returned { table: &target.table, scope, statement: "DELETE", items: &delete.returning };
        let returning = Returning::plan(ctx, of, query)?;
        let steps = RowSteps::of_delete(session, &target.table);
        Ok(DeletePlan { target, ignore: delete.ignore, steps, returning })
    }

    /// Returns the table that is written. The statement must take its metadata lock.
    pub fn table(&self) -> &Arc<Table> {
        self.target.written()
    }

    /// Returns the name that the statement uses for the table.
    pub fn alias(&self) -> &str {
        self.target.alias()
    }

    /// Returns the access to the rows, for EXPLAIN.
    pub fn target(&self) -> &TargetPlan {
        &self.target
    }

    /// Runs the statement.
    pub fn run(&self, ctx: &mut StatementContext<'_>) -> SqlResult<DmlOutcome> {
        let decides = |filter: &cohort_expr::Expr| !filter.is_const_per_execution();
        check_safe_update(ctx.session, &self.target, !self.target.filter.as_ref().is_some_and(decides))?;
        ctx.annotate();
        ctx.eval.set_forgiving(self.ignore);
        let pipeline = self.steps.of_deletes(&self.target.table, self.ignore);
        let order = if self.steps.has_hooks() { Order::AfterScanning } else { Order::WhileScanning };
        let mut deleted = 0;
        let mut returned = self.returning.as_ref().map(|_| Vec::new());
        let mut fixed = FixedAnswers::default();
        self.target.for_each(ctx, WaitPolicy::Wait, order, &[], &mut |ctx, writer, key, row| {
            // The subqueries of RETURNING must still see the row.
            let returning = self.returning.as_ref();
            let shown = returning.map(|returning| returning.row(row, &mut fixed, ctx)).transpose()?;
            if !pipeline.delete(ctx, writer, key, row)? {
                return Ok(());
            }
            deleted += 1;
            if let (Some(shown), Some(rows)) = (shown, &mut returned) {
                rows.push(shown);
            }
            Ok(())
        })?;
        Ok(DmlOutcome { affected: deleted, found: deleted, returned, ..DmlOutcome::default() })
    }
}
