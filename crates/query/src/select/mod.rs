//! Runs query plans. Rows are pushed to the caller.
//!
//! | module | concept |
//! |---|---|
//! | `scan` | direct plans: the rows of one table; conditions |
//! | `group` | GROUP BY and aggregates of direct plans |
//! | `output` | HAVING, projection, DISTINCT, ORDER BY, LIMIT of direct plans |
//! | `stored` | direct plans over rows as they are stored: sent, or added up |
//! | `stored_sort` | such rows in another order |
//! | `tree` | trees of operators, and where their rows come from |
//! | `limited` | the same under LIMIT ROWS EXAMINED |
//! | `measured` | where those rows come from while they are measured |
//! | `prepare` | metadata locks, and whether the tables are still those of the plan |

mod group;
mod limited;
mod measured;
mod output;
mod prepare;
mod scan;
mod stored;
mod stored_sort;
mod tree;

use std::time::Instant;

use cohort_base::CommitSeq;
use cohort_expr::EvalContext;
use cohort_optimize::LimitCount;
use cohort_run::{Measure, Sorted, limit_bounds, nanos_since};
use cohort_session::StatementContext;
use cohort_trx::{Counted, SessionCounts};
use cohort_types::{SqlResult, StoredColumns, Value, check_stack, row_memory_bytes};

use crate::plan::{DirectPlan, PlanBody, PlanShape, QueryPlan};

pub use prepare::{Freshness, lock_for_write, lock_names, lock_sequences, lock_tables, lock_views};

/// Whether more rows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    Stop,
}

/// Takes the rows of a query.
pub trait RowSink {
    /// A row; its values may be taken out. `hold`: what must be published before the client sees it.
    fn row(&mut self, eval: &EvalContext<'_>, hold: CommitSeq, values: &mut Vec<Value>) -> SqlResult<Flow>;

    /// Rows as they are stored, of which these columns are the result's.
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

/// Keeps all rows.
#[derive(Default)]
pub struct Collect {
    pub rows: Vec<Vec<Value>>,
    /// Stop after so many.
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

    fn of(plan: &LimitCount, ctx: &StatementContext<'_>) -> SqlResult<Limits> {
        let (offset, count) = limit_bounds(plan, &ctx.eval)?;
        Ok(Limits { offset, count })
    }
}

/// How many rows there were.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowCounts {
    /// Rows sent.
    pub sent: u64,
    /// For FOUND_ROWS(): rows that came until the limit was reached, those of OFFSET included; without the
    /// limit when SQL_CALC_FOUND_ROWS asked for it.
    pub found: u64,
}

/// Runs a query; `limit_default` holds when it has no LIMIT of its own.
pub fn run_query(
    plan: &QueryPlan,
    ctx: &mut StatementContext<'_>,
    limit_default: u64,
    sink: &mut dyn RowSink,
) -> SqlResult<RowCounts> {
    // What the transaction has written may rest on rows that are not hardened, and so may the absence of rows
    // that a locking read has missed (I5).
    ctx.trx.reveal();
    let counts = run_within(plan, &[], ctx, limit_default, sink)?;
    ctx.session.rows_found.set(Some(counts.found));
    ctx.trx.reveal();
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
            let Some(measures) = ctx.session.measures() else {
                return run_direct(direct, &plan.shape, ctx, limit_default, sink);
            };
            let start = Instant::now();
            let counts = run_direct(direct, &plan.shape, ctx, limit_default, sink)?;
            let measure =
                Measure { loops: 1, rows: counts.sent, nanos: nanos_since(start), ..Measure::default() };
            measures.tally(&direct.items).add(measure);
            Ok(counts)
        }
        PlanBody::Tree(tree) => {
            if limit_default > 0 {
                begin(&plan.shape, ctx);
            }
            tree::run(tree, row, ctx, limit_default, sink)
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

/// All rows of the query of a statement.
pub fn rows(plan: &QueryPlan, ctx: &mut StatementContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
    let mut all = Collect::default();
    let counts = run_within(plan, &[], ctx, u64::MAX, &mut all)?;
    ctx.session.rows_found.set(Some(counts.found));
    Ok(all.rows)
}

/// All rows of a query that was bound within the scope of a row.
pub fn rows_within(
    plan: &QueryPlan,
    row: &[Value],
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Vec<Vec<Value>>> {
    let mut all = Collect::default();
    run_within(plan, row, ctx, u64::MAX, &mut all)?;
    Ok(all.rows)
}

/// A plan is about to run.
fn begin(shape: &PlanShape, ctx: &StatementContext<'_>) {
    if shape.reads_whole_table {
        ctx.session.reads_whole_table.set(true);
    }
    shape.count(ctx.process.counts());
}

fn run_direct(
    plan: &DirectPlan,
    shape: &PlanShape,
    ctx: &mut StatementContext<'_>,
    limit_default: u64,
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
                scan::run(plan, ctx, output.rows_expected(), &mut output)?;
            }
        }
        Some(group) => {
            let mut groups = group::Groups::new(group, plan.width);
            if possible {
                scan::run(plan, ctx, None, &mut groups)?;
            }
            if !ctx.session.examined.is_over() {
                groups.finish(ctx, &mut output)?;
            }
        }
    }
    if plan.group.is_none() && !plan.sort.is_empty() && ctx.session.examined.is_over() {
        limited::LeftOut::Sort.keeps_rows()?;
    }
    output.finish(ctx)
}
