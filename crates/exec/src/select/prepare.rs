//! Before a query reads: metadata locks on its tables, and whether they are still those of the plan.
//!
//! The lock is taken for autocommit reads too: a table dropped under a scan would have its key space freed,
//! and the scan would end early.

use std::collections::HashSet;
use std::sync::Arc;

use cohort_catalog::Table;
use cohort_locks::MetadataMode;
use cohort_types::SqlResult;

use crate::guards::check_read_only;
use crate::plan::{PlanBody, QueryPlan, SelectPlan, Source};
use crate::statement::StatementContext;
use crate::table::{ReadMode, is_current};

/// Whether the plan can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    Fresh,
    /// A table was changed between planning and locking: plan again.
    Stale,
}

/// Locks the tables of a query for reading, until the transaction ends.
pub(crate) fn lock_tables(plan: &QueryPlan, ctx: &mut StatementContext<'_>) -> SqlResult<Freshness> {
    let (mut tables, mut locks_rows) = (Vec::<(&Arc<Table>, &str)>::new(), false);
    selects_of(plan, &mut HashSet::new(), &mut |select| {
        locks_rows |= matches!(select.read, ReadMode::LockExclusive(_));
        for step in &select.steps {
            if let Source::Base { table, .. } = &step.source {
                tables.push((table, &*step.name));
            }
        }
    });
    if tables.is_empty() {
        return Ok(Freshness::Fresh);
    }
    // Rows that are locked for a change count as a change, as in MariaDB.
    if locks_rows {
        check_read_only(ctx.session)?;
        ctx.trx.pass_global_lock()?;
    }
    for (table, alias) in &tables {
        let open = ctx.trx.open_table(table)?;
        ctx.trx.lock_under_alias(&open.table_key, alias, MetadataMode::SharedRead)?;
    }
    // A subquery that ran while the statement was planned may have taken the view before the table was made.
    let is_behind = |table: &Arc<Table>| ctx.trx.view_is_behind(table.clustered().since);
    let are_current =
        ctx.db.read_catalog(|catalog| tables.iter().all(|(table, _)| is_current(catalog, table)));
    let is_fresh = are_current && !tables.iter().any(|(table, _)| is_behind(table));
    Ok(if is_fresh { Freshness::Fresh } else { Freshness::Stale })
}

/// Calls `see` for every SELECT of a query. One that several share is seen once: their number may double with
/// every common table.
fn selects_of<'p>(
    plan: &'p QueryPlan,
    seen: &mut HashSet<*const QueryPlan>,
    see: &mut dyn FnMut(&'p SelectPlan),
) {
    match &plan.body {
        PlanBody::Select(select) => {
            see(select);
            for step in &select.steps {
                if let Source::Derived(inner) = &step.source
                    && seen.insert(Arc::as_ptr(inner))
                {
                    selects_of(inner, seen, see);
                }
            }
        }
        PlanBody::Set(set) => set.operands.iter().for_each(|operand| selects_of(operand, seen, see)),
        PlanBody::Nested(inner) => selects_of(inner, seen, see),
        PlanBody::Values(_) => {}
    }
}
