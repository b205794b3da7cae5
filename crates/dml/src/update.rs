//! UPDATE of one table.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_sql::ast;
use cohort_types::{Privilege, SqlError, SqlMode, SqlResult, Value};

use crate::assign::{Assigner, Default, NullRule, Strictness};
use crate::insert_plan::Cell;
use crate::outcome::DmlOutcome;
use crate::rules::{RowRules, is_foreign, refuse_generated};
use crate::target_plan::{TargetPlan, check_safe_update, plan_target};
use cohort_plan::{Binder, Clause, PlanContext, bind_assignment, not_supported};
use cohort_row::TableWriter;
use cohort_session::{SessionState, StatementContext};
use cohort_table::OpenTable;
use cohort_trx::WaitPolicy;

/// UPDATE.
pub struct UpdatePlan {
    target: TargetPlan,
    assignments: Vec<(usize, Cell)>,
    /// The DEFAULT of each assigned column, parallel to `assignments`.
    defaults: Vec<Default>,
    ignore: bool,
    rules: RowRules,
}

/// The counts in the info text.
#[derive(Default)]
struct Counts {
    matched: u64,
    changed: u64,
}

impl UpdatePlan {
    /// Binds and plans the statement.
    pub fn plan(
        ctx: &PlanContext<'_>,
        session: &SessionState,
        update: &ast::Update,
    ) -> SqlResult<UpdatePlan> {
        let ast::TableRef::Table(table) = &update.tables else {
            return Err(not_supported("an UPDATE over joins here"));
        };
        let (filter, limit) = (update.filter.as_ref(), update.limit.as_ref());
        let target = plan_target(ctx, session, table, filter, &update.order_by, limit, Privilege::Update)?;
        let binder = Binder::new(ctx, &target.scope, Clause::Set);
        let (mut assignments, mut defaults) = (Vec::new(), Vec::new());
        for assignment in &update.assignments {
            let (column, value) = bind_assignment(&binder, assignment)?;
            if session.env.sql_mode.has(SqlMode::SIMULTANEOUS_ASSIGNMENT)
                && assignments.iter().any(|(before, _)| *before == column)
            {
                let name = &target.table.columns[column].name;
                return Err(SqlError::updated_twice(target.alias(), name));
            }
            assignments.push((column, value.into()));
            defaults.push(Default::of(&binder, &target.table, column)?);
        }
        let rules = RowRules::of(ctx, &target.table)?;
        Ok(UpdatePlan { target, assignments, defaults, ignore: update.ignore, rules })
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
        let assigner = Assigner { table: &self.target.table, strictness, null: NullRule::Adjust };
        let mut assigned: Vec<usize> = self.assignments.iter().map(|(column, _)| *column).collect();
        let touched =
            |c: &usize| self.target.table.columns[*c].on_update == cohort_catalog::OnUpdate::CurrentTimestamp;
        assigned.extend((0..self.target.table.columns.len()).filter(touched));
        assigned.extend(self.rules.generated());
        let order = self.target.order_for(&assigned);
        let mut counts = Counts::default();
        let mut after = Vec::new();
        let wait = WaitPolicy::IfItMatches;
        let outcome = self.target.for_each(ctx, wait, order, &assigned, &mut |ctx, writer, key, before| {
            self.change(ctx, writer, key, before, &mut after, &assigner, &mut counts)
        });
        ctx.eval.set_abort_on_warning(false);
        outcome?;
        let Counts { matched, changed } = counts;
        let warnings = ctx.eval.warning_count();
        Ok(DmlOutcome {
            affected: changed,
            found: matched,
            insert_id: ctx.session.next_insert_id.get().unwrap_or(0),
            info: format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}"),
            ..DmlOutcome::default()
        })
    }

    #[allow(clippy::too_many_arguments)] // one row of the loop above
    fn change(
        &self,
        ctx: &mut StatementContext<'_>,
        writer: &mut TableWriter,
        key: &[u8],
        before: &[Value],
        after: &mut Vec<Value>,
        assigner: &Assigner<'_>,
        counts: &mut Counts,
    ) -> SqlResult<()> {
        counts.matched += 1;
        // Of the rows that were looked at, or of those that were found before any was changed.
        let number = ctx.eval.row_number();
        after.clear();
        after.extend_from_slice(before);
        let at_once = ctx.eval.env.sql_mode.has(SqlMode::SIMULTANEOUS_ASSIGNMENT);
        for ((column, cell), default) in self.assignments.iter().zip(&self.defaults) {
            if self.rules.generates(*column) {
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
        let assigned = |column| self.assignments.iter().any(|(c, _)| *c == column);
        let row = WrittenRow { key, before, after, number, is_generated: false };
        if write_row(ctx, writer, &self.rules, assigner, &assigned, row)? {
            counts.changed += 1;
        }
        Ok(())
    }
}

/// A row with new values.
pub(super) struct WrittenRow<'r> {
    pub key: &'r [u8],
    pub before: &'r [Value],
    pub after: &'r mut Vec<Value>,
    /// The 1-based position among the rows that the statement matched.
    pub number: u64,
    /// Whether the generated columns were computed, with their warnings.
    pub is_generated: bool,
}

/// Writes an updated row. Returns false if it did not change, or if IGNORE skips it because of a duplicate
/// key or a foreign key.
pub(super) fn write_row(
    ctx: &mut StatementContext<'_>,
    writer: &mut TableWriter,
    rules: &RowRules,
    assigner: &Assigner<'_>,
    assigned: &dyn Fn(usize) -> bool,
    row: WrittenRow<'_>,
) -> SqlResult<bool> {
    let WrittenRow { key, before, after, number, is_generated } = row;
    if after == before {
        return Ok(false);
    }
    touch_on_update(ctx, writer.table(), assigner, assigned, after)?;
    // What is touched may change them once more.
    let quiet = is_generated.then(|| ctx.eval.quiet());
    rules.generate(quiet.as_ref().unwrap_or(&ctx.eval), assigner, after, number)?;
    if !rules.admits(ctx, assigner, after)? {
        return Ok(false);
    }
    let updated = writer.update(ctx.trx, key, before, after);
    // MariaDB reports nothing for these rows, either.
    if assigner.strictness == Strictness::Ignore && updated.as_ref().is_err_and(is_foreign) {
        return Ok(false);
    }
    match updated? {
        Ok(()) => Ok(true),
        // MariaDB reports nothing for rows that UPDATE IGNORE skips.
        Err(_) if assigner.strictness == Strictness::Ignore => Ok(false),
        Err(duplicate) => {
            let zone = &ctx.session.env.time_zone;
            Err(writer.table().duplicate_error(duplicate.index, after, zone))
        }
    }
}

/// Sets the ON UPDATE CURRENT_TIMESTAMP columns that the statement does not assign itself.
pub(super) fn touch_on_update(
    ctx: &mut StatementContext<'_>,
    table: &OpenTable,
    assigner: &Assigner<'_>,
    assigned: impl Fn(usize) -> bool,
    row: &mut [Value],
) -> SqlResult<()> {
    for &column in table.on_update.iter().filter(|column| !assigned(**column)) {
        row[column] = assigner.store(&ctx.eval, column, Value::Timestamp(ctx.eval.env.now_micros), 1)?;
    }
    Ok(())
}
