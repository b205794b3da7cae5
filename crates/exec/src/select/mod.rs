//! Runs query plans. Rows are pushed: a join pushes into grouping or output, that into whoever asked.
//!
//! | module | concept |
//! |---|---|
//! | `join` | the tables' rows, combined; conditions |
//! | `group` | GROUP BY and aggregates |
//! | `output` | HAVING, projection, DISTINCT, ORDER BY, LIMIT |
//! | `set_operation` | UNION, EXCEPT, INTERSECT |
//! | `prepare` | metadata locks, and whether the tables are still those of the plan |
//! | `explain` | EXPLAIN |

mod explain;
mod group;
mod join;
mod output;
mod prepare;
mod set_operation;

use cohort_expr::Expr;
use cohort_types::{ErrorCode, SqlError, SqlResult, Value, check_stack, row_memory_bytes};

use crate::plan::{LimitPlan, PlanBody, QueryPlan, SelectPlan};
use crate::statement::StatementContext;

pub(crate) use explain::explain;
pub(crate) use prepare::{Freshness, lock_tables};

/// Whether more rows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    Stop,
}

/// Takes the rows of a query.
pub(crate) trait RowSink {
    /// A row; its values may be taken out.
    fn row(&mut self, ctx: &mut StatementContext<'_>, values: &mut Vec<Value>) -> SqlResult<Flow>;
}

/// Keeps all rows.
#[derive(Default)]
pub(crate) struct Collect {
    pub rows: Vec<Vec<Value>>,
    /// Stop after so many.
    pub rows_max: Option<u64>,
}

impl RowSink for Collect {
    fn row(&mut self, ctx: &mut StatementContext<'_>, values: &mut Vec<Value>) -> SqlResult<Flow> {
        ctx.eval.keep(row_memory_bytes(values))?;
        self.rows.push(std::mem::take(values));
        let enough = self.rows_max.is_some_and(|max| self.rows.len() as u64 >= max);
        Ok(if enough { Flow::Stop } else { Flow::Continue })
    }
}

/// A limit for one execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub offset: u64,
    pub count: u64,
}

impl Limits {
    /// Rows that have to be found, the skipped ones included.
    pub(crate) fn reach(self) -> u64 {
        self.offset.saturating_add(self.count)
    }

    fn of(plan: &LimitPlan, ctx: &StatementContext<'_>) -> SqlResult<Limits> {
        let number = |expr: &Option<Expr>| expr.as_ref().map(|e| limit_value(e, ctx)).transpose();
        let offset = number(&plan.offset)?.unwrap_or(0);
        Ok(Limits { offset, count: number(&plan.count)?.unwrap_or(u64::MAX) })
    }
}

/// The value of a LIMIT.
pub(crate) fn limit_value(expr: &Expr, ctx: &StatementContext<'_>) -> SqlResult<u64> {
    let value = expr.eval(&[], &ctx.eval)?;
    let bad = || SqlError::new(ErrorCode::WrongArguments, "Incorrect arguments to LIMIT");
    match &*value {
        Value::Int(n) => u64::try_from(*n).map_err(|_| bad()),
        Value::UInt(n) => Ok(*n),
        // A prepared LIMIT ? that was bound to a string or NULL.
        other => match other.to_int(&mut cohort_types::NoWarnings) {
            Some(n) => u64::try_from(n.wide()).map_err(|_| bad()),
            None => Ok(0),
        },
    }
}

/// How many rows there were.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowCounts {
    /// Rows sent; without the limit when SQL_CALC_FOUND_ROWS asked for it.
    pub found: u64,
}

/// Runs a query; `limit_default` holds when it has no LIMIT of its own.
pub(crate) fn run_query(
    plan: &QueryPlan,
    ctx: &mut StatementContext<'_>,
    limit_default: u64,
    sink: &mut dyn RowSink,
) -> SqlResult<RowCounts> {
    check_stack()?;
    let mut limits = Limits::of(&plan.limit, ctx)?;
    if plan.limit.count.is_none() {
        limits.count = limit_default;
    }
    match &plan.body {
        PlanBody::Select(select) => run_select(select, ctx, limits, sink),
        _ => output::run_sorted(plan, ctx, limits, sink),
    }
}

/// All rows of a query.
pub(crate) fn rows(plan: &QueryPlan, ctx: &mut StatementContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
    let mut all = Collect::default();
    run_query(plan, ctx, u64::MAX, &mut all)?;
    Ok(all.rows)
}

fn run_select(
    select: &SelectPlan,
    ctx: &mut StatementContext<'_>,
    limits: Limits,
    sink: &mut dyn RowSink,
) -> SqlResult<RowCounts> {
    let mut output = output::Output::new(select, limits, sink);
    if select.reads_whole_table() && !output.is_full() {
        ctx.session.reads_whole_table.set(true);
    }
    let possible = match &select.constant_filter {
        Some(filter) => filter.passes(&[], &ctx.eval)?,
        None => true,
    };
    match &select.group {
        None => {
            if possible && !output.is_full() {
                join::run(select, ctx, output.rows_expected(), &mut output)?;
            }
        }
        Some(group) => {
            let mut groups = group::Groups::new(group, select.width);
            if possible {
                join::run(select, ctx, None, &mut groups)?;
            }
            groups.finish(ctx, &mut output)?;
        }
    }
    output.finish(ctx)
}
