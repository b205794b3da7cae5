//! Direct plans: the rows of one table, or one row without columns.

use cohort_expr::Expr;
use cohort_optimize::ReadMode;
use cohort_types::{SqlResult, Value};

use crate::plan::DirectPlan;
use crate::select::Flow;
use crate::statement::{StatementContext, row_done};
use crate::table::{CursorOptions, ResolveAccess, RowChanges, TableCursor, every_row};
use crate::trx::WaitPolicy;

/// Takes the rows of a scan.
pub(super) trait ScanSink {
    /// A row of the table; values may be taken out.
    fn scanned(&mut self, ctx: &mut StatementContext<'_>, row: &mut Vec<Value>) -> SqlResult<Flow>;
}

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
    let (spans, is_exact) = direct.access.resolve_exactly(&open, &[], &ctx.eval)?;
    let (filter, columns) = match &direct.exact {
        Some(exact) if is_exact && mode == ReadMode::Snapshot => (&exact.filter, &exact.columns),
        _ => (&direct.filter, &direct.columns),
    };
    let options = CursorOptions { mode, columns: columns.clone(), changes: RowChanges::Any, rows_expected };
    let cursor = TableCursor::open(ctx.trx, &direct.table, spans, options)?;
    each_row(filter, plan.width, cursor, ctx, sink)
}

/// Without any copying: the cursor's row is the row.
fn each_row(
    filter: &Option<Expr>,
    width: usize,
    mut cursor: TableCursor,
    ctx: &mut StatementContext<'_>,
    sink: &mut dyn ScanSink,
) -> SqlResult<()> {
    let mut row = Vec::with_capacity(width);
    let mut seen = 0;
    loop {
        let found = match filter {
            Some(filter) => {
                let eval = &ctx.eval;
                let mut passes = |row: &[Value]| {
                    seen += 1;
                    eval.set_row_number(seen);
                    row_done(eval)?;
                    filter.passes(row, eval)
                };
                cursor.next(ctx.trx, &mut passes, &mut row)?
            }
            None => {
                seen += 1;
                ctx.eval.set_row_number(seen);
                cursor.next(ctx.trx, &mut every_row, &mut row)?
            }
        };
        if !found || sink.scanned(ctx, &mut row)? == Flow::Stop {
            return Ok(());
        }
        ctx.check_interrupt()?;
    }
}
