//! Queries that run inside statements of other kinds: expressions in SET and similar statements, and the rows
//! that a change of an account table affects.

use cohort_plan::ParamSource;
use cohort_program::RowsFor;
use cohort_query::{Collect, Freshness, run_query};
use cohort_session::{Job, StatementContext};
use cohort_sql::ast::{self, Statement};
use cohort_table::definition_changed;
use cohort_types::{SqlResult, Value};

use crate::cached_plan::{Planned, make_inner_plan};
use crate::dispatch::PLAN_ATTEMPTS;
use crate::plan_locks::{check_needs, lock_and_check, tables_used, with_tables_in_use};
use crate::session::Session;

impl Session {
    /// Returns the first row of a query.
    pub(crate) fn query_one_row(&mut self, query: &ast::Query, job: &Job<'_>) -> SqlResult<Vec<Value>> {
        self.query_value(query, job, false)
    }

    /// Returns the first row of a query. With `is_strict`, the first warning is the error.
    pub(crate) fn query_value(
        &mut self,
        query: &ast::Query,
        job: &Job<'_>,
        is_strict: bool,
    ) -> SqlResult<Vec<Value>> {
        let rows = self.query_some_rows(query, job, RowsFor::Value { is_strict })?;
        Ok(rows.into_iter().next().unwrap_or_default())
    }

    /// Returns all rows of a query with a small result.
    pub(crate) fn query_rows(&mut self, query: &ast::Query, job: &Job<'_>) -> SqlResult<Vec<Vec<Value>>> {
        self.query_some_rows(query, job, RowsFor::Cursor)
    }

    /// Returns the rows of a listing that a query selects.
    pub(crate) fn query_listing(&mut self, query: &ast::Query, job: &Job<'_>) -> SqlResult<Vec<Vec<Value>>> {
        self.query_some_rows(query, job, RowsFor::Listing)
    }

    fn query_some_rows(
        &mut self,
        query: &ast::Query,
        job: &Job<'_>,
        rows_for: RowsFor,
    ) -> SqlResult<Vec<Vec<Value>>> {
        let statement = Statement::Query(Box::new(query.clone()));
        for _ in 0..PLAN_ATTEMPTS {
            if let Some(rows) = self.with_context(job, |ctx| run_once(ctx, &statement, job, rows_for))? {
                return Ok(rows);
            }
        }
        Err(definition_changed())
    }
}

/// Returns the rows of a query of the server's own, as a part of the statement that is being executed.
pub(crate) fn rows_in(ctx: &mut StatementContext<'_>, text: &str) -> SqlResult<Vec<Vec<Value>>> {
    let statement = cohort_sql::parse_own(text)?.statement;
    let job = Job { text: b"", param_at: &[], params: &[], source: ParamSource::Literals, more: false };
    for _ in 0..PLAN_ATTEMPTS {
        if let Some(rows) = run_once(ctx, &statement, &job, RowsFor::Cursor)? {
            return Ok(rows);
        }
    }
    Err(definition_changed())
}

/// Plans and runs a query. Returns `None` if a DDL statement came between planning and locking.
fn run_once(
    ctx: &mut StatementContext<'_>,
    statement: &Statement,
    job: &Job<'_>,
    rows_for: RowsFor,
) -> SqlResult<Option<Vec<Vec<Value>>>> {
    let catalog = ctx.db.catalog();
    let made = make_inner_plan((&catalog, ctx.session), job.params, job.source, statement, rows_for)?;
    check_needs(ctx, &made)?;
    let Planned::Query(plan) = &made.plan else { return Ok(Some(Vec::new())) };
    if ctx.session.transactions.is_on() {
        ctx.session.transactions.add(tables_used(&made.plan), ctx.trx.autocommit());
    }
    if lock_and_check(ctx, &made)? == Freshness::Stale {
        return Ok(None);
    }
    let mut found = Collect { rows_max: rows_for.rows_max(), ..Collect::default() };
    ctx.eval.set_abort_on_warning(rows_for.is_strict());
    with_tables_in_use(ctx, &made, |ctx| run_query(plan, ctx, u64::MAX, &mut found).map(drop))?;
    Ok(Some(found.rows))
}
