//! Runs operator trees in the session's transaction. [`TrxStorage`] gives them the rows of base tables and
//! virtual tables.

use std::cell::Cell;
use std::ops::ControlFlow;

use cohort_optimize::{PartId, Plan};
use cohort_run::PlanParts;
use cohort_session::StatementContext;
use cohort_types::{SqlResult, Value};

use super::limited::{LeftOut, LimitedStorage};
use super::profiled::ProfiledStorage;
use crate::select::storage::TrxStorage;
use crate::select::{Flow, RowCounts, RowSink};

/// Runs a tree. `row` is the outer row that it was bound with.
pub(super) fn run(
    (plan, first): (&Plan, PartId),
    row: &[Value],
    ctx: &mut StatementContext<'_>,
    limit_default: u64,
    sink: &mut dyn RowSink,
) -> SqlResult<RowCounts> {
    if limit_default == 0 {
        return Ok(RowCounts::default());
    }
    let hold = Cell::new(ctx.trx.hold_until());
    let session = ctx.session;
    let profile = ctx.session.statement.profile();
    let mut storage = TrxStorage {
        db: ctx.db,
        session: ctx.session,
        process: ctx.process,
        text: (ctx.text, ctx.param_at, ctx.params),
        trx: ctx.trx,
        cursors: Vec::new(),
        hold: &hold,
    };
    let eval = &ctx.eval;
    let mut sent = 0;
    let mut values = Vec::with_capacity(plan.width);
    let examined = &session.statement.examined;
    let left_out = examined.is_limited().then(|| LeftOut::of(&plan.root));
    let is_whole = || match left_out {
        Some(left_out) if examined.is_over() => left_out.keeps_rows(),
        _ => Ok(true),
    };
    let mut push = |row: &mut [Value]| {
        if left_out.is_some() && !is_whole()? {
            return Ok(ControlFlow::Break(()));
        }
        values.clear();
        values.extend(row.iter_mut().map(|value| std::mem::replace(value, Value::Null)));
        sent += 1;
        let flow = sink.row(eval, hold.get(), &mut values)?;
        let goes_on = flow == Flow::Continue && sent < limit_default;
        Ok(if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    };
    let found = match &profile {
        // LIMIT ROWS EXAMINED counts by itself.
        _ if left_out.is_some() => {
            let mut storage = LimitedStorage::new(storage, examined);
            cohort_run::run(plan, row, &mut storage, eval, &mut push)
        }
        None => cohort_run::run(plan, row, &mut storage, eval, &mut push),
        Some(profile) => {
            let parts = PlanParts { profile, first };
            let mut storage = ProfiledStorage::new(storage, parts);
            cohort_run::run_measured(plan, row, parts, &mut storage, eval, &mut push)
        }
    }?;
    // Even if there was nothing to push.
    Ok(RowCounts { sent, found: if is_whole()? { found } else { 0 } })
}
