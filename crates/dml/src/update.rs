//! UPDATE of one table.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_plan::{Binder, Clause, PlanContext, bind_assignment};
use cohort_row::TableWriter;
use cohort_session::{SessionState, StatementContext};
use cohort_sql::ast;
use cohort_trx::WaitPolicy;
use cohort_types::{Privilege, SqlError, SqlMode, SqlResult, Value};

use crate::asked::Cell;
use crate::assign::{Assigner, Default, NullRule, Strictness};
use crate::outcome::DmlOutcome;
use crate::row_change::{Outcome, RowChange, RowPipeline, RowSteps};
use crate::rules::refuse_generated;
use crate::target_plan::{TargetPlan, check_safe_update, plan_target};

/// UPDATE.
pub struct UpdatePlan {
    target: TargetPlan,
    assignments: Vec<(usize, Cell)>,
    /// The DEFAULT of each assigned column, parallel to `assignments`.
    defaults: Vec<Default>,
    ignore: bool,
    steps: RowSteps,
}

/// The counts in the info text.
#[derive(Default)]
struct Counts {
    matched: u64,
    changed: u64,
}

impl UpdatePlan {
    /// Returns whether hooks run for the changed rows.
    pub fn has_hooks(&self) -> bool {
        self.steps.has_hooks()
    }

    /// Binds and plans the statement.
    pub fn plan(
        ctx: &PlanContext<'_>,
        session: &SessionState,
        update: &ast::Update,
    ) -> SqlResult<UpdatePlan> {
        let ast::TableRef::Table(table) = &update.tables else {
            return Err(SqlError::not_supported("an UPDATE over joins here"));
        };
        let (filter, limit) = (update.filter.as_ref(), update.limit.as_ref());
        let target = plan_target(ctx, session, table, filter, &update.order_by, limit, Privilege::Update)?;
        let binder = Binder::new(ctx, &target.scope, Clause::Set);
        let (mut assignments, mut defaults) = (Vec::new(), Vec::new());
        for assignment in &update.assignments {
            let (column, value) = bind_assignment(&binder, assignment)?;
            if session.settings.env.sql_mode.has(SqlMode::SIMULTANEOUS_ASSIGNMENT)
                && assignments.iter().any(|(before, _)| *before == column)
            {
                let name = &target.table.columns[column].name;
                return Err(SqlError::updated_twice(target.alias(), name));
            }
            assignments.push((column, value.into()));
            defaults.push(Default::of(&binder, &target.table, column)?);
        }
        let updated: Vec<usize> = assignments.iter().map(|(column, _)| *column).collect();
        let steps = RowSteps::of(ctx, session, &target.table, Vec::new(), &updated)?;
        Ok(UpdatePlan { target, assignments, defaults, ignore: update.ignore, steps })
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
        check_safe_update(ctx.session, &self.target, false)?;
        ctx.annotate();
        let strictness = Assigner::strictness(&ctx.eval, self.ignore);
        ctx.eval.set_abort_on_warning(strictness == Strictness::Error);
        ctx.eval.set_forgiving(self.ignore);
        let pipeline = RowPipeline::new(&self.steps, &self.target.table, strictness, NullRule::Adjust);
        let mut assigned: Vec<usize> = self.assignments.iter().map(|(column, _)| *column).collect();
        assigned.extend(self.steps.changed(&self.target.table));
        let order = self.target.order_for(&assigned);
        let mut counts = Counts::default();
        let mut after = Vec::new();
        let wait = WaitPolicy::IfItMatches;
        let outcome = self.target.for_each(ctx, wait, order, &assigned, &mut |ctx, writer, key, before| {
            self.change(ctx, writer, (key, before), &mut after, &pipeline, &mut counts)
        });
        ctx.eval.set_abort_on_warning(false);
        outcome?;
        let Counts { matched, changed } = counts;
        let warnings = ctx.eval.warning_count();
        Ok(DmlOutcome {
            affected: changed,
            found: matched,
            insert_id: ctx.session.statement.next_insert_id.get().unwrap_or(0),
            info: format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}"),
            ..DmlOutcome::default()
        })
    }

    fn change(
        &self,
        ctx: &mut StatementContext<'_>,
        writer: &mut TableWriter,
        (key, before): (&[u8], &[Value]),
        after: &mut Vec<Value>,
        pipeline: &RowPipeline<'_>,
        counts: &mut Counts,
    ) -> SqlResult<()> {
        let assigner = &pipeline.assigner;
        // Of the rows that were looked at, or of those that were found before any was changed.
        let number = ctx.eval.row_number();
        after.clear();
        after.extend_from_slice(before);
        let at_once = ctx.eval.env.sql_mode.has(SqlMode::SIMULTANEOUS_ASSIGNMENT);
        for ((column, cell), default) in self.assignments.iter().zip(&self.defaults) {
            if self.steps.rules.generates(*column) {
                if let Cell::Expr(expr) = cell {
                    let value = expr.eval(after.as_slice(), &ctx.eval)?.into_owned();
                    refuse_generated(&ctx.eval, assigner, *column, &value)?;
                }
                continue;
            }
            let value = match cell {
                Cell::Default => {
                    let row = if at_once { before } else { after.as_slice() };
                    assigner.default_in_change(&ctx.eval, *column, default, row, number)?
                }
                Cell::Expr(expr) => {
                    let row = if at_once { before } else { after.as_slice() };
                    let value = expr.eval(row, &ctx.eval)?.into_owned();
                    assigner.store(&ctx.eval, *column, value, number)?
                }
            };
            after[*column] = value;
        }
        let outcome = pipeline.update(ctx, writer, key, RowChange::update(before, after, number))?;
        // As in MariaDB, IGNORE reports nothing for a row with a refused key, and counts it as matched.
        counts.matched += u64::from(!matches!(outcome, Outcome::FailsCheck));
        counts.changed += u64::from(matches!(outcome, Outcome::Done));
        Ok(())
    }
}
