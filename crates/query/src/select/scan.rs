//! Scans of direct plans: the rows of one table, or one row without columns.

use cohort_catalog::ROWS;
use cohort_expr::Expr;
use cohort_optimize::ReadMode;
use cohort_row::{CursorOptions, KeySpan, RowChanges, TableCursor, every_row, resolve_exactly, row_done};
use cohort_run::{NodeCounters, PlanParts, PlanProfile, Spent, spent_since};
use cohort_session::StatementContext;
use cohort_trx::WaitPolicy;
use cohort_types::{SqlResult, Value};

use crate::plan::{DirectPlan, StoredWay};
use crate::select::Flow;
use crate::select::limited::found_within;
use crate::select::sink::{ScanSink, StoredScan};

/// Runs the scan of a direct plan.
pub(super) fn run(
    plan: &DirectPlan,
    ctx: &mut StatementContext<'_>,
    rows_expected: Option<u64>,
    parts: Option<PlanParts<'_>>,
    sink: &mut dyn ScanSink,
) -> SqlResult<()> {
    let Some(direct) = &plan.table else { return sink.scanned(ctx, &mut Vec::new()).map(|_| ()) };
    let mode = match plan.read {
        ReadMode::Snapshot if ctx.trx.plain_reads_lock() => ReadMode::LockShare(WaitPolicy::Wait),
        mode => mode,
    };
    let open = ctx.trx.open_table(&direct.table)?;
    let (spans, is_exact) = resolve_exactly(&direct.access, &open, &[], &ctx.eval)?;
    let (filter, columns) = match &direct.exact {
        Some(exact) if is_exact && mode == ReadMode::Snapshot => (&exact.filter, &exact.columns),
        _ => (&direct.filter, &direct.columns),
    };
    let needs_values = filter.is_some()
        || mode != ReadMode::Snapshot
        || ctx.session.statement.examined.is_limited()
        || parts.is_some_and(|parts| parts.profile.is_timed());
    let way = plan.stored.as_ref().filter(|_| !needs_values);
    if let (Some(way), ROWS, [KeySpan::Point(key)]) = (way, spans.index, &*spans.spans)
        && sink.take_point(ctx, way, &open, key)?
    {
        return Ok(());
    }
    let options = CursorOptions { mode, columns: columns.clone(), changes: RowChanges::Any, rows_expected };
    let cursor = TableCursor::open(ctx.trx, &direct.table, spans, options)?;
    if let Some(way) = way
        && cursor.gives_stored()
    {
        let counters = parts.map(|parts| parts.counters(DirectPlan::READS));
        counters.inspect(|counters| counters.count(1, 0, 0));
        return sink.take_stored(ctx, way, StoredScan { table: &open, columns, cursor, counters });
    }
    let Some(parts) = parts else {
        return each_row(filter, plan.width, cursor, ctx, None, sink);
    };
    let counters = parts.counters(DirectPlan::READS);
    counters.count(1, 0, 0);
    let start = parts.profile.clock();
    let mut timed = TimedSink { sink, profile: parts.profile, spent: Spent::default() };
    each_row(filter, plan.width, cursor, ctx, Some(counters), &mut timed)?;
    counters.spend(&spent_since(start).less(&timed.spent));
    Ok(())
}

/// A sink whose time is measured.
struct TimedSink<'t> {
    sink: &'t mut dyn ScanSink,
    profile: &'t PlanProfile,
    spent: Spent,
}

impl ScanSink for TimedSink<'_> {
    fn scanned(&mut self, ctx: &mut StatementContext<'_>, row: &mut Vec<Value>) -> SqlResult<Flow> {
        let start = self.profile.clock();
        let flow = self.sink.scanned(ctx, row)?;
        self.spent.add(&spent_since(start));
        Ok(flow)
    }

    fn take_stored(
        &mut self,
        ctx: &mut StatementContext<'_>,
        way: &StoredWay,
        scan: StoredScan<'_>,
    ) -> SqlResult<()> {
        self.sink.take_stored(ctx, way, scan)
    }
}

/// Passes each row of the cursor without copying it. Counts the rows that the filter was evaluated on, and
/// those that passed.
fn each_row(
    filter: &Option<Expr>,
    width: usize,
    mut cursor: TableCursor,
    ctx: &mut StatementContext<'_>,
    counters: Option<&NodeCounters>,
    sink: &mut dyn ScanSink,
) -> SqlResult<()> {
    let mut row = Vec::with_capacity(width);
    let mut seen = 0;
    let examined = &ctx.session.statement.examined;
    loop {
        let before = seen;
        let found = match filter {
            Some(filter) => {
                let eval = &ctx.eval;
                let mut passes = |row: &[Value]| {
                    examined.examine()?;
                    seen += 1;
                    eval.set_row_number(seen);
                    row_done(eval)?;
                    filter.passes(row, eval)
                };
                let found = cursor.next(ctx.trx, &mut passes, &mut row);
                found_within(examined, found)?
            }
            None if examined.is_limited() => {
                seen += 1;
                ctx.eval.set_row_number(seen);
                let mut passes = |_: &[Value]| examined.examine().map(|()| true);
                let found = cursor.next(ctx.trx, &mut passes, &mut row);
                found_within(examined, found)?
            }
            None => {
                seen += 1;
                ctx.eval.set_row_number(seen);
                cursor.next(ctx.trx, &mut every_row, &mut row)?
            }
        };
        if let Some(counters) = counters {
            // Without a filter, the missing row was counted, too.
            let missing = u64::from(!found && filter.is_none());
            counters.count(0, seen - before - missing, found.into());
        }
        if !found || sink.scanned(ctx, &mut row)? == Flow::Stop {
            return Ok(());
        }
        ctx.check_interrupt()?;
    }
}
