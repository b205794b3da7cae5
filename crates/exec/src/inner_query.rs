//! Queries that run inside statements of other kinds: expressions in SET and similar statements, and the rows
//! that a change of an account table affects.

use cohort_query::{Collect, Freshness, run_query};
use cohort_session::Job;
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
        let rows = self.query_some_rows(query, job, Some(1))?;
        Ok(rows.into_iter().next().unwrap_or_default())
    }

    /// Returns all rows of a query with a small result.
    pub(crate) fn query_rows(&mut self, query: &ast::Query, job: &Job<'_>) -> SqlResult<Vec<Vec<Value>>> {
        self.query_some_rows(query, job, None)
    }

    fn query_some_rows(
        &mut self,
        query: &ast::Query,
        job: &Job<'_>,
        rows_max: Option<u64>,
    ) -> SqlResult<Vec<Vec<Value>>> {
        let statement = Statement::Query(Box::new(query.clone()));
        for _ in 0..PLAN_ATTEMPTS {
            let catalog = self.state.db.catalog();
            let found = self.with_context(job, |ctx| {
                let made = make_inner_plan(&catalog, ctx.session, job.params, job.source, &statement)?;
                check_needs(ctx, &made)?;
                let Planned::Query(plan) = &made.plan else { return Ok(Some(Vec::new())) };
                if ctx.session.transactions.is_on() {
                    ctx.session.transactions.add(tables_used(&made.plan), ctx.trx.autocommit());
                }
                if lock_and_check(ctx, &made)? == Freshness::Stale {
                    return Ok(None);
                }
                let mut found = Collect { rows_max, ..Collect::default() };
                with_tables_in_use(ctx, &made, |ctx| run_query(plan, ctx, u64::MAX, &mut found).map(drop))?;
                Ok(Some(found.rows))
            })?;
            if let Some(rows) = found {
                return Ok(rows);
            }
        }
        Err(definition_changed())
    }
}
