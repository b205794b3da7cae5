//! UPDATE and DELETE over joins, or with subqueries ([`JoinedChange`]).
//!
//! The source query finds all rows under exclusive locks and computes the new values, before the first row is
//! changed. The statement may therefore read the tables that it writes, and each row is changed once, however
//! often it occurs in the join. Each row is read again by its key before it is changed.

use std::collections::HashSet;
use std::sync::Arc;

use crate::asked::PlanQuery;
use crate::assign::{Assigner, Default, NullRule, Strictness};
use crate::outcome::DmlOutcome;
use crate::returning::{FixedAnswers, Returned, Returning, scope_of_view};
use crate::row_change::{Outcome, RowChange, RowPipeline, RowSteps};
use crate::rules::refuse_generated;
use cohort_catalog::Table;
use cohort_optimize::{PartId, Plan, Spans};
use cohort_plan::{
    Binder, ChangeAssignment, ChangeClauses, ChangeTarget, Clause, PlanContext, Scope, bind_insert_view,
    bind_joined_delete, bind_joined_update,
};
use cohort_query::guards::refuse_without_key;
use cohort_query::{PlanBody, PlanShape, QueryPlan, rows};
use cohort_row::TableWriter;
use cohort_session::{PlanStatistics, SessionState, StatementContext};
use cohort_sql::ast;
use cohort_types::{ErrorCode, Privilege, SqlError, SqlMode, SqlResult, Value};

/// An UPDATE or DELETE of joined rows.
pub struct JoinedChange {
    source: QueryPlan,
    targets: Vec<ChangeTarget>,
    /// Parallel to the targets.
    steps: Vec<RowSteps>,
    what: What,
}

enum What {
    Update {
        assignments: Vec<ChangeAssignment>,
        /// The DEFAULT of each assigned column, parallel to `assignments`.
        defaults: Vec<Default>,
        /// The statement joins tables, also within a view.
        is_multi: bool,
        ignore: bool,
    },
    Delete {
        returning: Option<Returning>,
        ignore: bool,
    },
}

/// The rows that the statement has changed, as target number and key.
type Seen = HashSet<(usize, Vec<u8>), ahash::RandomState>;

impl JoinedChange {
    /// Returns whether hooks run for the changed rows.
    pub fn has_hooks(&self) -> bool {
        self.steps.iter().any(RowSteps::has_hooks)
    }

    /// Binds and plans an UPDATE.
    pub fn update(
        ctx: &PlanContext<'_>,
        session: &SessionState,
        update: &ast::Update,
    ) -> SqlResult<JoinedChange> {
        let clauses = ChangeClauses {
            from: &update.tables,
            filter: update.filter.as_ref(),
            order_by: &update.order_by,
            limit: update.limit.as_ref(),
        };
        let at_once = session.settings.env.sql_mode.has(SqlMode::SIMULTANEOUS_ASSIGNMENT);
        let bound = bind_joined_update(ctx, &clauses, &update.assignments, at_once)?;
        let mut defaults = Vec::with_capacity(bound.assignments.len());
        for assignment in &bound.assignments {
            let table = &bound.targets[assignment.target].table;
            let scope = Scope::of_table(table.clone(), None);
            defaults.push(Default::of(&Binder::new(ctx, &scope, Clause::Set), table, assignment.column)?);
        }
        let mut targets = bound.targets;
        let mut steps = Vec::with_capacity(targets.len());
        for (n, target) in targets.iter_mut().enumerate() {
            let checks = std::mem::take(&mut target.checks);
            let updated = bound.assignments.iter().filter(|a| a.target == n).map(|a| a.column);
            let updated: Vec<usize> = updated.collect();
            steps.push(RowSteps::of(ctx, session, &target.table, checks, &updated)?);
        }
        let (source, is_multi) = source(ctx, session, bound.query, targets.len())?;
        let what = What::Update { assignments: bound.assignments, defaults, is_multi, ignore: update.ignore };
        Ok(JoinedChange { source, targets, steps, what })
    }

    /// Binds and plans a DELETE.
    pub fn delete(
        ctx: &PlanContext<'_>,
        session: &SessionState,
        delete: &ast::Delete,
        query: &mut PlanQuery<'_>,
    ) -> SqlResult<JoinedChange> {
        let clauses = ChangeClauses {
            from: &delete.from,
            filter: delete.filter.as_ref(),
            order_by: &delete.order_by,
            limit: delete.limit.as_ref(),
        };
        let through = returned_view(ctx, delete)?;
        let returned = if through.is_some() { &[][..] } else { &delete.returning };
        let bound = bind_joined_delete(ctx, &clauses, &delete.targets, returned)?;
        // It consumes the subqueries bound so far.
        let (source, _) = source(ctx, session, bound.query, bound.targets.len())?;
        let only = &bound.targets[0];
        let own = || Scope::of_table(only.table.clone(), Some(&only.name));
        let scope = through.unwrap_or_else(own);
        let of = Returned { table: &only.table, scope, statement: "DELETE", items: &delete.returning };
        let returning = Returning::plan(ctx, of, query)?;
        let what = What::Delete { returning, ignore: delete.ignore };
        let steps = bound.targets.iter().map(|target| RowSteps::of_delete(session, &target.table)).collect();
        Ok(JoinedChange { source, targets: bound.targets, steps, what })
    }

    /// Returns the query that finds the rows. The statement must take metadata locks on its tables.
    pub fn source(&self) -> &QueryPlan {
        &self.source
    }

    /// Returns the tables that are written, with the names the statement uses for them.
    pub fn written(&self) -> impl Iterator<Item = (&Arc<Table>, &str)> {
        self.targets.iter().map(|target| (&target.table, &*target.name))
    }

    /// Returns whether this is an UPDATE rather than a DELETE.
    pub fn is_update(&self) -> bool {
        matches!(self.what, What::Update { .. })
    }

    /// Returns the RETURNING clause, which yields the deleted rows.
    pub fn returning(&self) -> Option<&Returning> {
        match &self.what {
            What::Update { .. } => None,
            What::Delete { returning, .. } => returning.as_ref(),
        }
    }

    /// Runs the statement. Its metadata locks must be held.
    pub fn run(&self, ctx: &mut StatementContext<'_>) -> SqlResult<DmlOutcome> {
        if self.reads_target_as_a_whole() {
            refuse_without_key(ctx.session)?;
        }
        ctx.annotate();
        match &self.what {
            What::Update { assignments, defaults, is_multi, ignore } => {
                let strictness = Assigner::strictness(&ctx.eval, *ignore);
                ctx.eval.set_abort_on_warning(strictness == Strictness::Error);
                ctx.eval.set_forgiving(*ignore);
                let outcome = self.run_update(ctx, (assignments, defaults), *is_multi, strictness);
                ctx.eval.set_abort_on_warning(false);
                outcome
            }
            What::Delete { returning, ignore } => {
                ctx.eval.set_forgiving(*ignore);
                self.run_delete(ctx, returning.as_ref(), *ignore)
            }
        }
    }

    fn reads_target_as_a_whole(&self) -> bool {
        let PlanBody::Tree(plan) = &self.source.body else { return false };
        let mut found = false;
        plan.each_scan(&mut |scan| found |= scan.with_key && matches!(scan.access.spans, Spans::Full));
        found
    }

    fn run_update(
        &self,
        ctx: &mut StatementContext<'_>,
        (assignments, defaults): (&[ChangeAssignment], &[Default]),
        is_multi: bool,
        strictness: Strictness,
    ) -> SqlResult<DmlOutcome> {
        let found = rows(&self.source, ctx)?;
        let mut writers = self.writers(ctx, |target| {
            let assigned = assignments.iter().filter(|a| a.target == target).map(|a| a.column);
            assigned.chain(self.steps[target].changed(&self.targets[target].table)).collect()
        })?;
        let (mut seen, mut before) = (Seen::default(), Vec::new());
        let (mut matched, mut changed, mut failed) = (0, 0, 0);
        for row in found {
            for (n, target) in self.targets.iter().enumerate() {
                let Some(key) = new_key(n, &row[target.key_at], &mut seen, ctx)? else { continue };
                let writer = &mut writers[n];
                if !writer.fetch(ctx.trx, &key, &mut before)? {
                    continue;
                }
                matched += 1;
                ctx.eval.set_row_number(matched);
                let pipeline = RowPipeline::new(&self.steps[n], &target.table, strictness, NullRule::Adjust);
                let assigner = &pipeline.assigner;
                let mut after = before.clone();
                let at_once = ctx.eval.env.sql_mode.has(SqlMode::SIMULTANEOUS_ASSIGNMENT);
                for (assignment, default) in assignments.iter().zip(defaults).filter(|(a, _)| a.target == n) {
                    let (column, value) = (assignment.column, assignment.value_at.map(|at| &row[at]));
                    if self.steps[n].rules.generates(column) {
                        let refused = value.map(|value| refuse_generated(&ctx.eval, assigner, column, value));
                        refused.transpose()?;
                        continue;
                    }
                    let seen = if at_once { &before } else { &after };
                    after[column] = match value {
                        Some(value) => assigner.store(&ctx.eval, column, value.clone(), matched)?,
                        None => assigner.default_in_change(&ctx.eval, column, default, seen, matched)?,
                    };
                }
                let row = RowChange::update(&before, &mut after, matched);
                match pipeline.update(ctx, writer, &key, row)? {
                    Outcome::Done => changed += 1,
                    Outcome::FailsCheck => failed += 1,
                    _ => {}
                }
                if !is_multi {
                    matched -= std::mem::take(&mut failed);
                }
            }
        }
        // As in MariaDB, the result of a join counts rows that a check refused as matched, without warning.
        let warnings = ctx.eval.warning_count().saturating_sub(failed);
        Ok(DmlOutcome {
            affected: changed,
            found: matched,
            insert_id: ctx.session.statement.next_insert_id.get().unwrap_or(0),
            info: format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}"),
            ..DmlOutcome::default()
        })
    }

    fn run_delete(
        &self,
        ctx: &mut StatementContext<'_>,
        returning: Option<&Returning>,
        ignore: bool,
    ) -> SqlResult<DmlOutcome> {
        let found = rows(&self.source, ctx)?;
        let mut writers = self.writers(ctx, |_| Vec::new())?;
        let (mut seen, mut before) = (Seen::default(), Vec::new());
        let mut returned = returning.map(|_| Vec::new());
        let mut fixed = FixedAnswers::default();
        let mut deleted = 0;
        for pass in self.passes() {
            for row in &found {
                for &n in &pass {
                    let Some(key) = new_key(n, &row[self.targets[n].key_at], &mut seen, ctx)? else {
                        continue;
                    };
                    if !writers[n].fetch(ctx.trx, &key, &mut before)? {
                        continue;
                    }
                    // The subqueries of RETURNING must still see the row.
                    let shown =
                        returning.map(|returning| returning.row(&before, &mut fixed, ctx)).transpose()?;
                    let pipeline = self.steps[n].of_deletes(&self.targets[n].table, ignore);
                    if !pipeline.delete(ctx, &mut writers[n], &key, &before)? {
                        continue;
                    }
                    deleted += 1;
                    if let (Some(shown), Some(rows)) = (shown, &mut returned) {
                        rows.push(shown);
                    }
                }
            }
        }
        Ok(DmlOutcome { affected: deleted, found: deleted, returned, ..DmlOutcome::default() })
    }

    /// Groups the targets into passes. All targets share one pass, unless one refers to another by a foreign
    /// key: then children precede their parents.
    fn passes(&self) -> Vec<Vec<usize>> {
        let refers = |child: usize, parent: usize| {
            let (child, parent) = (&self.targets[child].table, &self.targets[parent].table);
            child.name != parent.name && child.foreign_keys.iter().any(|key| key.parent == parent.name)
        };
        let all: Vec<usize> = (0..self.targets.len()).collect();
        if !all.iter().any(|a| all.iter().any(|b| refers(*a, *b))) {
            return vec![all];
        }
        let (mut left, mut passes) = (all, Vec::new());
        while !left.is_empty() {
            let is_free = |n: &usize| !left.iter().any(|other| refers(*other, *n));
            // Foreign keys that form a cycle have no order.
            let at = left.iter().position(is_free).unwrap_or(0);
            passes.push(vec![left.remove(at)]);
        }
        passes
    }

    /// Opens a writer for each target. `written` returns the columns whose values it changes.
    fn writers(
        &self,
        ctx: &mut StatementContext<'_>,
        written: impl Fn(usize) -> Vec<usize>,
    ) -> SqlResult<Vec<TableWriter>> {
        let mut writers = Vec::with_capacity(self.targets.len());
        for (n, target) in self.targets.iter().enumerate() {
            let mut writer = TableWriter::open(ctx.trx, &target.table)?;
            writer.narrow_images(ctx.trx, written(n).into_iter());
            writers.push(writer);
        }
        Ok(writers)
    }
}

/// Returns the names that RETURNING may use for a DELETE from a view over the columns of a single table.
fn returned_view(ctx: &PlanContext<'_>, delete: &ast::Delete) -> SqlResult<Option<Scope>> {
    let ast::TableRef::Table(factor) = &delete.from else { return Ok(None) };
    if delete.returning.is_empty() || !delete.targets.is_empty() {
        return Ok(None);
    }
    match bind_insert_view(ctx, &factor.name, &[], Privilege::Delete.into()) {
        Ok(view) => Ok(view.map(|view| scope_of_view(&view.scope, &view.columns))),
        // The view has other columns, too, or reads several tables.
        Err(error)
            if matches!(
                error.code,
                ErrorCode::NonInsertableTable | ErrorCode::ViewNoInsertFieldList | ErrorCode::ViewMultiUpdate
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns the key of a row to change. Returns `None` for a row padded by an outer join, or changed before.
fn new_key(
    target: usize,
    key: &Value,
    seen: &mut Seen,
    ctx: &StatementContext<'_>,
) -> SqlResult<Option<Vec<u8>>> {
    ctx.check_interrupt()?;
    let Value::Str(key) = key else { return Ok(None) };
    ctx.eval.keep(key.bytes.len() + size_of::<(usize, Vec<u8>)>())?;
    Ok(seen.insert((target, key.bytes.clone())).then(|| key.bytes.clone()))
}

/// Plans the query that finds the rows. Returns also whether it joins tables.
fn source(
    ctx: &PlanContext<'_>,
    session: &SessionState,
    mut query: cohort_plan::Query,
    targets: usize,
) -> SqlResult<(QueryPlan, bool)> {
    let (mut subqueries, mut common) = (ctx.subqueries.take(), ctx.common.take());
    cohort_optimize::merge(&mut query, &mut subqueries, &mut common);
    let from = query.select().and_then(|select| select.from.as_ref());
    let is_multi = from.is_some_and(|from| from.tables().len() > 1);
    let keyed = from.map_or(0, |from| from.tables().iter().filter(|table| table.key.is_some()).count());
    if keyed != targets {
        return Err(SqlError::not_supported("a change of rows through a view in a join of that many tables"));
    }
    let stats = PlanStatistics::new(session, ctx);
    let plan: Plan = cohort_optimize::optimize(&query, &subqueries, &common, &stats)?;
    let body = PlanBody::Tree(Box::new(plan));
    let shape = PlanShape::of(&body);
    let first_part = PartId(ctx.new_parts(body.parts()));
    let plan = QueryPlan {
        body,
        shape,
        columns: Vec::new(),
        types: query.types.clone(),
        into: Vec::new(),
        has_limit: query.limit.count.is_some(),
        calls_back: ctx.calls_back.get(),
        first_part,
    };
    Ok((plan, is_multi))
}
