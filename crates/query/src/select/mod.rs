//! Execution of query plans. Rows are pushed to the caller.
//!
//! | module | concept |
//! |---|---|
//! | `scan` | direct plans: reads the rows of one table and applies conditions |
//! | `group` | GROUP BY and aggregates of direct plans |
//! | `output` | HAVING, projection, DISTINCT, ORDER BY, LIMIT of direct plans |
//! | `stored` | direct plans on stored rows: sends columns, or adds rows up |
//! | `stored_sort` | sorts stored rows |
//! | `tree` | operator trees, and the storage that they read |
//! | `limited` | that storage under LIMIT ROWS EXAMINED |
//! | `profiled` | that storage with a profile of the reads |
//! | `prepare` | metadata locks, and the check that a plan is current |

mod group;
mod limited;
mod output;
mod prepare;
mod profiled;
mod scan;
mod sink;
mod storage;
mod stored;
mod stored_sort;
mod tree;

use cohort_base::CommitSeq;
use cohort_expr::EvalContext;
use cohort_optimize::LimitCount;
use cohort_run::{PlanParts, Sorted, limit_bounds, spent_since};
use cohort_session::StatementContext;
use cohort_trx::{Counted, SessionCounts};
use cohort_types::{SqlResult, StoredColumns, Value, check_stack, row_memory_bytes};

use crate::plan::{DirectPlan, PlanBody, PlanShape, QueryPlan};

pub use prepare::{Freshness, lock_for_write, lock_names, lock_sequences, lock_tables, lock_views};

/// A sink's request to continue or to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    Stop,
}

/// Consumer of the rows of a query.
pub trait RowSink {
    /// Receives a row, whose values may be moved out. `hold`: the commit that must be published before the
    /// client sees the row.
    fn row(&mut self, eval: &EvalContext<'_>, hold: CommitSeq, values: &mut Vec<Value>) -> SqlResult<Flow>;

    /// Receives stored rows, of which `columns` are the result.
    fn stored_rows(
        &mut self,
        eval: &EvalContext<'_>,
        hold: CommitSeq,
        columns: &StoredColumns<'_>,
        rows: &[&[u8]],
    ) -> SqlResult<Flow> {
        let mut values = Vec::with_capacity(columns.len());
        for row in rows {
            columns.values(row, &mut values)?;
            if self.row(eval, hold, &mut values)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }
}

/// A sink that keeps all rows.
#[derive(Default)]
pub struct Collect {
    pub rows: Vec<Vec<Value>>,
    /// Maximum number of rows.
    pub rows_max: Option<u64>,
}

impl RowSink for Collect {
    fn row(&mut self, eval: &EvalContext<'_>, _: CommitSeq, values: &mut Vec<Value>) -> SqlResult<Flow> {
        eval.keep(row_memory_bytes(values))?;
        self.rows.push(std::mem::take(values));
        let enough = self.rows_max.is_some_and(|max| self.rows.len() as u64 >= max);
        Ok(if enough { Flow::Stop } else { Flow::Continue })
    }
}

/// The LIMIT of one execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub offset: u64,
    pub count: u64,
}

impl Limits {
    /// Returns the number of rows to find, including skipped ones.
    pub(crate) fn reach(self) -> u64 {
        self.offset.saturating_add(self.count)
    }

    fn of(plan: &LimitCount, ctx: &StatementContext<'_>) -> SqlResult<Limits> {
        let (offset, count) = limit_bounds(plan, &ctx.eval)?;
        Ok(Limits { offset, count })
    }
}

/// Row counts of a query.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowCounts {
    /// Number of rows sent.
    pub sent: u64,
    /// For FOUND_ROWS(): rows produced until the limit was reached, including those skipped by OFFSET;
    /// without the limit under SQL_CALC_FOUND_ROWS.
    pub found: u64,
}

/// Runs a query. `limit_default` applies if the query has no LIMIT.
pub fn run_query(
    plan: &QueryPlan,
    ctx: &mut StatementContext<'_>,
    limit_default: u64,
    sink: &mut dyn RowSink,
) -> SqlResult<RowCounts> {
    // The transaction's own changes may depend on rows that are not durable. So may the absence of rows that
    // a locking read looked for (I5).
    ctx.trx.mark_observed();
    let counts = run_within(plan, &[], ctx, limit_default, sink)?;
    ctx.session.statement.rows_found.set(Some(counts.found));
    ctx.trx.mark_observed();
    Ok(counts)
}

fn run_within(
    plan: &QueryPlan,
    row: &[Value],
    ctx: &mut StatementContext<'_>,
    limit_default: u64,
    sink: &mut dyn RowSink,
) -> SqlResult<RowCounts> {
    check_stack()?;
    let limit_default = if plan.has_limit { u64::MAX } else { limit_default };
    match &plan.body {
        PlanBody::Direct(direct) => {
            let Some(profile) = ctx.session.statement.profile() else {
                return run_direct(direct, &plan.shape, ctx, limit_default, None, sink);
            };
            let parts = PlanParts { profile: &profile, first: plan.first_part };
            let start = profile.clock();
            let counts = run_direct(direct, &plan.shape, ctx, limit_default, Some(parts), sink)?;
            let whole = parts.counters(DirectPlan::WHOLE);
            whole.count(1, 0, counts.sent);
            whole.spend(&spent_since(start));
            Ok(counts)
        }
        PlanBody::Tree(tree) => {
            if limit_default > 0 {
                begin(&plan.shape, ctx);
            }
            tree::run((tree, plan.first_part), row, ctx, limit_default, sink)
        }
    }
}

/// Counts a sort for SHOW STATUS.
pub fn count_sort(counts: &SessionCounts, sorted: Sorted) {
    counts.count(if sorted.of_range { Counted::SortRange } else { Counted::SortScan });
    counts.count_many(Counted::SortRows, sorted.rows);
    if sorted.limited {
        counts.count(Counted::SortPriorityQueueSorts);
    }
}

/// Returns all rows of a statement's query.
pub fn rows(plan: &QueryPlan, ctx: &mut StatementContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
    let mut all = Collect::default();
    let counts = run_within(plan, &[], ctx, u64::MAX, &mut all)?;
    ctx.session.statement.rows_found.set(Some(counts.found));
    Ok(all.rows)
}

/// Returns all rows of a query that was bound within the scope of `row`.
pub fn rows_within(
    plan: &QueryPlan,
    row: &[Value],
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Vec<Vec<Value>>> {
    let mut all = Collect::default();
    run_within(plan, row, ctx, u64::MAX, &mut all)?;
    Ok(all.rows)
}

/// Counts the start of a run.
fn begin(shape: &PlanShape, ctx: &StatementContext<'_>) {
    if shape.reads_whole_table {
        ctx.session.statement.reads_whole_table.set(true);
    }
    shape.count(ctx.process.counts());
}

fn run_direct(
    plan: &DirectPlan,
    shape: &PlanShape,
    ctx: &mut StatementContext<'_>,
    limit_default: u64,
    parts: Option<PlanParts<'_>>,
    sink: &mut dyn RowSink,
) -> SqlResult<RowCounts> {
    let mut limits = Limits::of(&plan.limit, ctx)?;
    limits.count = limits.count.min(limit_default);
    let mut output = output::Output::new(plan, limits, sink);
    let possible = match &plan.constant_filter {
        Some(filter) => filter.passes(&[], &ctx.eval)?,
        None => true,
    };
    if possible && !output.is_full() {
        begin(shape, ctx);
    }
    match &plan.group {
        None => {
            if possible && !output.is_full() {
                scan::run(plan, ctx, output.rows_expected(), parts, &mut output)?;
            }
        }
        Some(group) => {
            let mut groups = group::Groups::new(group, plan.width);
            if possible {
                scan::run(plan, ctx, None, parts, &mut groups)?;
            }
            if !ctx.session.statement.examined.is_over() {
                groups.finish(ctx, &mut output)?;
            }
        }
    }
    if plan.group.is_none() && !plan.sort.is_empty() && ctx.session.statement.examined.is_over() {
        limited::LeftOut::Sort.keeps_rows()?;
    }
    output.finish(ctx)
}
