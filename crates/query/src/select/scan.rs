//! Scans of direct plans: the rows of one table, or one row without columns.

use std::time::Instant;

use cohort_catalog::ROWS;
use cohort_expr::Expr;
use cohort_optimize::ReadMode;
use cohort_row::{CursorOptions, KeySpan, RowChanges, TableCursor, every_row, resolve_exactly, row_done};
use cohort_run::{NodeProfile, nanos_since};
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
    let profile = ctx.session.statement.profile();
    let needs_values = filter.is_some()
        || mode != ReadMode::Snapshot
        || ctx.session.statement.examined.is_limited()
        || profile.is_some();
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
        return sink.take_stored(ctx, way, StoredScan { table: &open, columns, cursor });
    }
    let Some(profile) = profile else {
        return each_row(filter, plan.width, cursor, ctx, sink).map(|_| ());
    };
    let start = Instant::now();
    let mut timed = TimedSink { sink, rows: 0, nanos: 0 };
    let seen = each_row(filter, plan.width, cursor, ctx, &mut timed)?;
    let rows = timed.rows;
    let nanos = nanos_since(start).saturating_sub(timed.nanos);
    let measure = NodeProfile { loops: 1, read: seen, rows, nanos, ..NodeProfile::default() };
    profile.counters(direct).add(measure);
    Ok(())
}

/// A sink whose time is measured.
struct TimedSink<'t> {
    sink: &'t mut dyn ScanSink,
    rows: u64,
    nanos: u64,
}

impl ScanSink for TimedSink<'_> {
    fn scanned(&mut self, ctx: &mut StatementContext<'_>, row: &mut Vec<Value>) -> SqlResult<Flow> {
        let start = Instant::now();
        let flow = self.sink.scanned(ctx, row)?;
        self.rows += 1;
        self.nanos += nanos_since(start);
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

/// Passes each row of the cursor without copying it. Returns the number of rows that the filter was evaluated
/// on.
fn each_row(
    filter: &Option<Expr>,
    width: usize,
    mut cursor: TableCursor,
    ctx: &mut StatementContext<'_>,
    sink: &mut dyn ScanSink,
) -> SqlResult<u64> {
    let mut row = Vec::with_capacity(width);
    let mut seen = 0;
    let examined = &ctx.session.statement.examined;
    loop {
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
        if !found {
            // Without a filter, the missing row was counted, too.
            return Ok(seen - u64::from(filter.is_none()));
        }
        if sink.scanned(ctx, &mut row)? == Flow::Stop {
            return Ok(seen);
        }
        ctx.check_interrupt()?;
    }
}
