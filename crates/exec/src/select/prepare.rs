//! Before a query reads: metadata locks on its tables, and whether they are still those of the plan.
//!
//! The lock is taken for autocommit reads too: a table dropped under a scan would have its key space freed,
//! and the scan would end early.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_locks::MetadataMode;
use cohort_types::SqlResult;

use crate::guards::check_read_only;
use crate::plan::{Method, PlanBody, QueryPlan, Source, Step};
use crate::statement::StatementContext;
use crate::table::{ReadMode, Spans, is_current};

/// Whether the plan can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    Fresh,
    /// A table was changed between planning and locking: plan again.
    Stale,
}

/// Locks the tables of a query for reading, until the transaction ends.
pub(crate) fn lock_tables(plan: &QueryPlan, ctx: &mut StatementContext<'_>) -> SqlResult<Freshness> {
    let mut tables = Vec::new();
    tables_of(plan, &mut tables);
    if tables.is_empty() {
        return Ok(Freshness::Fresh);
    }
    // Rows that are locked for a change count as a change, as in MariaDB.
    if plan.locks_rows() {
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

impl QueryPlan {
    /// Whether it reads FOR UPDATE.
    fn locks_rows(&self) -> bool {
        match &self.body {
            PlanBody::Select(select) => {
                let inner = |step: &Step| matches!(&step.source, Source::Derived(plan) if plan.locks_rows());
                matches!(select.read, ReadMode::LockExclusive(_)) || select.steps.iter().any(inner)
            }
            PlanBody::Set(set) => set.operands.iter().any(QueryPlan::locks_rows),
            PlanBody::Nested(inner) => inner.locks_rows(),
            PlanBody::Values(_) => false,
        }
    }
}

/// Base tables and what the query calls them.
fn tables_of<'p>(plan: &'p QueryPlan, tables: &mut Vec<(&'p Arc<Table>, &'p str)>) {
    match &plan.body {
        PlanBody::Select(select) => {
            for step in &select.steps {
                match &step.source {
                    Source::Base { table, .. } => tables.push((table, &step.name)),
                    Source::Derived(inner) => tables_of(inner, tables),
                    Source::Virtual(_) => {}
                }
            }
        }
        PlanBody::Set(set) => set.operands.iter().for_each(|operand| tables_of(operand, tables)),
        PlanBody::Nested(inner) => tables_of(inner, tables),
        PlanBody::Values(_) => {}
    }
}
