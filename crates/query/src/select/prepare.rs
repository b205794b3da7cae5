//! Preparation of a query: locks the names of its tables (metadata locks) and checks that the plan is
//! current.
//!
//! Autocommit reads need the locks, too: if a table were dropped during a scan, its index would be freed and
//! the scan would end early.

use std::sync::Arc;
use std::time::Duration;

use cohort_catalog::{Catalog, Table, View};
use cohort_locks::{MetadataKey, MetadataMode, WaitPolicy};
use cohort_optimize::ReadMode;
use cohort_session::StatementContext;
use cohort_table::is_current;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::guards::check_read_only;
use crate::plan::QueryPlan;

/// Result of the check that a plan is current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    Fresh,
    /// A table changed between planning and locking: the statement must be planned again.
    Stale,
}

/// Locks all names of a plan by `lock`. A deadlock with a DDL statement that locks the same names in another
/// order is resolved here: if the transaction held no names before, it releases those just taken and the
/// statement is planned again. This is not done if the session has other locks, because it would keep them.
#[inline]
pub fn lock_names(
    ctx: &mut StatementContext<'_>,
    lock: impl FnOnce(&mut StatementContext<'_>) -> SqlResult<Freshness>,
) -> SqlResult<Freshness> {
    let held = ctx.trx.names_held();
    match lock(ctx) {
        Ok(Freshness::Fresh) => Ok(Freshness::Fresh),
        Err(error) if error.code != ErrorCode::LockDeadlock || held > 0 || ctx.trx.has_other_locks() => {
            Err(error)
        }
        // Nothing was read.
        Ok(Freshness::Stale) | Err(_) => {
            ctx.trx.unlock_names_after(held);
            Ok(Freshness::Stale)
        }
    }
}

/// Locks the names of views for reading, until the transaction ends.
pub fn lock_views(views: &[Arc<View>], ctx: &mut StatementContext<'_>) -> SqlResult<Freshness> {
    if views.is_empty() {
        return Ok(Freshness::Fresh);
    }
    for view in views {
        let key = MetadataKey::Table(view.name.schema.as_str().into(), view.name.table.as_str().into());
        ctx.trx.lock_metadata(&key, MetadataMode::SharedRead)?;
    }
    let is_current = |catalog: &Arc<Catalog>, view: &Arc<View>| {
        catalog.view(&view.name.schema, &view.name.table).is_some_and(|now| Arc::ptr_eq(now, view))
    };
    let are_current = ctx.db.read_catalog(|catalog| views.iter().all(|view| is_current(catalog, view)));
    Ok(if are_current { Freshness::Fresh } else { Freshness::Stale })
}

/// Locks the names of sequences; those whose numbers are generated are locked like written tables.
pub fn lock_sequences(
    sequences: &[(Arc<Table>, bool)],
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Freshness> {
    for (table, is_written) in sequences.iter().filter(|(table, _)| !table.is_temporary()) {
        if *is_written {
            check_read_only(ctx.session)?;
            if ctx.trx.may_only_read(false) {
                return Err(SqlError::read_only_transaction());
            }
        }
        let mode = if *is_written { MetadataMode::SharedWrite } else { MetadataMode::SharedRead };
        ctx.trx.lock_table(table, mode)?;
    }
    let are_current = sequences.is_empty()
        || ctx.db.read_catalog(|catalog| sequences.iter().all(|(table, _)| is_current(catalog, table)));
    Ok(if are_current { Freshness::Fresh } else { Freshness::Stale })
}

/// Locks the tables of a query for reading, until the transaction ends.
pub fn lock_tables(plan: &QueryPlan, ctx: &mut StatementContext<'_>) -> SqlResult<Freshness> {
    let tables = plan.tables();
    if tables.is_empty() {
        return Ok(Freshness::Fresh);
    }
    let Some(own_wait) = name_wait(plan.locks()) else { return lock_tables_now(plan, &tables, ctx) };
    let wait = std::mem::replace(&mut ctx.trx.settings.metadata_lock_wait, own_wait);
    let outcome = lock_tables_now(plan, &tables, ctx);
    ctx.trx.settings.metadata_lock_wait = wait;
    outcome
}

/// Returns the wait limit for names: NOWAIT and WAIT n also limit the wait for a table locked by another
/// session.
fn name_wait(mode: ReadMode) -> Option<Duration> {
    match mode.locks()? {
        WaitPolicy::NoWait => Some(Duration::ZERO),
        WaitPolicy::WaitFor(seconds) => Some(Duration::from_secs(seconds.into())),
        WaitPolicy::Wait | WaitPolicy::SkipLocked | WaitPolicy::IfItMatches => None,
    }
}

fn lock_tables_now(
    plan: &QueryPlan,
    tables: &[(&Arc<Table>, &str)],
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Freshness> {
    // Locking rows for a change counts as a change, as in MariaDB.
    if matches!(plan.locks(), ReadMode::LockExclusive(_)) {
        if tables.iter().any(|(table, _)| !table.is_temporary()) {
            check_read_only(ctx.session)?;
            if ctx.trx.may_only_read(false) {
                return Err(SqlError::read_only_transaction());
            }
        }
        ctx.trx.pass_global_lock_to_write()?;
    }
    for (table, alias) in tables.iter().filter(|(table, _)| !table.is_temporary()) {
        let open = ctx.trx.open_table(table)?;
        ctx.trx.lock_under_alias(&open.table_key, alias, MetadataMode::SharedRead)?;
    }
    let is_behind = |table: &Arc<Table>| ctx.trx.view_is_older(table.rows().since);
    let are_current =
        ctx.db.read_catalog(|catalog| tables.iter().all(|(table, _)| is_current(catalog, table)));
    let is_fresh = are_current && !tables.iter().any(|(table, _)| is_behind(table));
    Ok(if is_fresh { Freshness::Fresh } else { Freshness::Stale })
}

/// Takes the metadata locks of a data change.
pub fn lock_for_write(
    (table, alias): (&Arc<Table>, &str),
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Freshness> {
    ctx.trx.check_writable(table)?;
    if table.is_temporary() {
        return Ok(Freshness::Fresh);
    }
    check_read_only(ctx.session)?;
    if table.is_sequence() {
        return Err(SqlError::not_for_sequences(&table.name.schema, &table.name.table));
    }
    let open = ctx.trx.open_table(table)?;
    ctx.trx.pass_global_lock_to_write()?;
    ctx.trx.lock_under_alias(&open.table_key, alias, MetadataMode::SharedWrite)?;
    let is_current = ctx.db.read_catalog(|catalog| is_current(catalog, table));
    let current = is_current && !ctx.trx.view_is_older(table.rows().since);
    Ok(if current { Freshness::Fresh } else { Freshness::Stale })
}
