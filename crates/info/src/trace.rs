//! The last traces of a session: `information_schema.OPTIMIZER_TRACE` has the decisions of the planner about
//! a statement, `information_schema.COHORT_TRACE` the durations of a statement.
//!
//! In COHORT_TRACE, `execute` contains `lock_wait`, and the steps of a commit up to `order_work`. The other
//! steps pass while the reply is held. `total` ends when the reply may leave. Steps that several statements
//! of a program have passed are added up.

use cohort_session::{StatementContext, WantedNames};
use cohort_types::SqlResult;

use super::cells::{integer, text};
use super::schema_table::SchemaTable;

pub(super) fn rows(
    out: &SchemaTable,
    _: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Vec<Vec<cohort_types::Value>>> {
    let trace = ctx.session.trace.borrow();
    let Some(trace) = &*trace else { return Ok(Vec::new()) };
    let steps = trace.steps.clone().unwrap_or_else(|| ctx.trx.client().trace.steps());
    let stages = [("execute", trace.execute_ns), ("lock_wait", trace.lock_wait_ns)];
    let all = stages.into_iter().chain(steps).chain([("total", trace.total_ns)]);
    let row = |(stage, ns): (&str, u64)| {
        out.row([
            ("STAGE", text(stage)),
            ("DURATION_US", integer(ns / 1000)),
            ("STATEMENT", text(trace.text.as_str())),
        ])
    };
    Ok(all.map(row).collect())
}

pub(super) fn optimizer(
    out: &SchemaTable,
    _: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Vec<Vec<cohort_types::Value>>> {
    let row = |traced: cohort_session::TracedPlan| {
        out.row([
            ("QUERY", text(traced.query)),
            ("TRACE", text(traced.trace)),
            ("MISSING_BYTES_BEYOND_MAX_MEM_SIZE", integer(traced.missing)),
            ("INSUFFICIENT_PRIVILEGES", integer(u64::from(traced.is_hidden))),
        ])
    };
    Ok(ctx.session.optimizer.last().into_iter().map(row).collect())
}
