//! The locks and privileges of a plan, and the tables that it names.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_dml::Returning;
use cohort_query::guards::check_read_only;
use cohort_query::{
    Freshness, QueryPlan, lock_for_write, lock_names, lock_sequences, lock_tables, lock_views,
};
use cohort_session::{Reached, RowChange, SessionState, StatementContext, TableUse, TransactionState};
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::cached_plan::{CachedPlan, Planned};

/// Returns whether a plan reads or writes tables.
pub(crate) fn tables_used(plan: &Planned) -> TransactionState {
    let none = TransactionState::default();
    let of_query = |plan: &QueryPlan| match plan.locks() {
        _ if plan.tables().is_empty() => none,
        cohort_optimize::ReadMode::LockExclusive(_) => TransactionState::WRITE,
        _ => TransactionState::READ,
    };
    match plan {
        Planned::Query(plan) => of_query(plan),
        Planned::Insert(plan) => TransactionState::WRITE.with(plan.query().map_or(none, of_query)),
        Planned::Update(_) | Planned::Delete(_) => TransactionState::WRITE,
        Planned::Joined(plan) => {
            let reads_others = plan.source().tables().len() > plan.written().count();
            TransactionState::WRITE.with(if reads_others { TransactionState::READ } else { none })
        }
    }
}

/// Checks that the session has the privileges that the plan needs.
pub(crate) fn check_needs(ctx: &StatementContext<'_>, cached: &CachedPlan) -> SqlResult<()> {
    cached.needs.iter().try_for_each(|need| need.check(ctx.session))?;
    cached.routines.iter().try_for_each(|need| need.check(ctx.session))
}

/// Locks everything that a plan names, and checks that the plan may use it.
#[inline]
pub(crate) fn lock_and_check(ctx: &mut StatementContext<'_>, cached: &CachedPlan) -> SqlResult<Freshness> {
    if lock_names(ctx, |ctx| lock_plan(ctx, cached))? == Freshness::Stale {
        return Ok(Freshness::Stale);
    }
    if ctx.trx.has_locked_tables() && !ctx.trx.is_inside() {
        check_uses(ctx, cached)?;
    }
    if ctx.trx.is_inside() {
        let programs = ctx.session.programs.borrow();
        let mut changed = cached.tables().into_iter().filter(|(_, is_changed)| *is_changed);
        changed.try_for_each(|(table, _)| programs.check_change(table))?;
    }
    report_tables(ctx.session, cached);
    Ok(Freshness::Fresh)
}

/// Runs a plan. Programs that it runs may not change its tables.
#[inline]
pub(crate) fn with_tables_in_use<T>(
    ctx: &mut StatementContext<'_>,
    cached: &CachedPlan,
    run: impl FnOnce(&mut StatementContext<'_>) -> SqlResult<T>,
) -> SqlResult<T> {
    let mark = cached.runs_programs().then(|| {
        let tables = cached.tables().into_iter().map(|(table, _)| table.id);
        ctx.session.programs.borrow_mut().use_tables(tables)
    });
    let outcome = run(ctx);
    if let Some(mark) = mark {
        ctx.session.programs.borrow_mut().release_tables(mark);
    }
    outcome
}

/// Locks everything that a plan names, and before that all that its programs may use. Under LOCK TABLES
/// nothing waits, and the statement's own names are checked first. The written table is
/// locked before the tables that are only read. Otherwise there could be a deadlock: the session has a read
/// lock on a table, and its write lock on that table queues after a DDL statement that waits for the read
/// lock.
#[inline]
pub(crate) fn lock_plan(ctx: &mut StatementContext<'_>, cached: &CachedPlan) -> SqlResult<Freshness> {
    let Some(reached) = &cached.reached else { return lock_own(ctx, cached) };
    let is_last = ctx.trx.has_locked_tables();
    if !is_last && !lock_reached(ctx, reached)? {
        return Ok(Freshness::Stale);
    }
    match lock_own(ctx, cached) {
        Ok(Freshness::Fresh) if is_last && !lock_reached(ctx, reached)? => Ok(Freshness::Stale),
        // A table that is not locked at all comes before one that is locked for reading.
        Err(error) if is_last && error.code == ErrorCode::TableNotLockedForWrite => {
            lock_reached(ctx, reached)?;
            Err(error)
        }
        outcome => outcome,
    }
}

/// Locks what the statement itself names.
fn lock_own(ctx: &mut StatementContext<'_>, cached: &CachedPlan) -> SqlResult<Freshness> {
    if lock_views(&cached.views, ctx)? == Freshness::Stale
        || lock_sequences(&cached.sequences, ctx)? == Freshness::Stale
    {
        return Ok(Freshness::Stale);
    }
    match &cached.plan {
        Planned::Query(plan) => lock_tables(plan, ctx),
        Planned::Insert(plan) => match lock_for_write((plan.table(), &plan.table().name.table), ctx)? {
            Freshness::Fresh => {
                for query in plan.query().into_iter().chain(plan.asked()) {
                    if lock_tables(query, ctx)? == Freshness::Stale {
                        return Ok(Freshness::Stale);
                    }
                }
                Ok(Freshness::Fresh)
            }
            Freshness::Stale => Ok(Freshness::Stale),
        },
        Planned::Update(plan) => lock_for_write((plan.table(), plan.alias()), ctx),
        Planned::Delete(plan) => match lock_for_write((plan.table(), plan.alias()), ctx)? {
            Freshness::Fresh => lock_asked(plan.returning.as_ref(), ctx),
            Freshness::Stale => Ok(Freshness::Stale),
        },
        Planned::Joined(plan) => {
            // Rows that the source query reads are locked.
            ctx.trx.begin_writing();
            for written in plan.written() {
                if lock_for_write(written, ctx)? == Freshness::Stale {
                    return Ok(Freshness::Stale);
                }
            }
            match lock_tables(plan.source(), ctx)? {
                Freshness::Fresh => lock_asked(plan.returning(), ctx),
                Freshness::Stale => Ok(Freshness::Stale),
            }
        }
    }
}

/// Locks what the programs of a plan may use. A statement that must not write may not run programs that
/// could, even if they would not: errors 1290 and 1792. Returns false if it must be planned again.
fn lock_reached(ctx: &mut StatementContext<'_>, reached: &Reached) -> SqlResult<bool> {
    if reached.names.tables.iter().any(|(_, is_written)| *is_written) && !ctx.trx.is_inside() {
        check_read_only(ctx.session)?;
        if ctx.trx.may_only_read(false) {
            return Err(SqlError::read_only_transaction());
        }
    }
    reached.lock(ctx)
}

/// Returns error 1100 if the plan uses a table more often than LOCK TABLES has locked it.
fn check_uses(ctx: &StatementContext<'_>, cached: &CachedPlan) -> SqlResult<()> {
    let mut uses: Vec<(&Arc<Table>, &str)> = Vec::new();
    match &cached.plan {
        Planned::Query(plan) => uses.extend(plan.tables()),
        Planned::Insert(plan) => {
            uses.push((plan.table(), &plan.table().name.table));
            plan.query().into_iter().chain(plan.asked()).for_each(|query| uses.extend(query.tables()));
        }
        Planned::Update(plan) => uses.push((plan.table(), plan.alias())),
        Planned::Delete(plan) => uses.push((plan.table(), plan.alias())),
        Planned::Joined(plan) => uses.extend(plan.source().tables()),
    }
    let returning = match &cached.plan {
        Planned::Delete(plan) => plan.returning.as_ref(),
        Planned::Joined(plan) => plan.returning(),
        Planned::Query(_) | Planned::Insert(_) | Planned::Update(_) => None,
    };
    uses.extend(returning.and_then(Returning::asked).into_iter().flat_map(QueryPlan::tables));
    let lasting = uses.into_iter().filter(|(table, _)| !table.is_temporary());
    let named = lasting.map(|(table, alias)| ((table.name.schema.clone(), table.name.table.clone()), alias));
    let reached = cached.reached.iter().flat_map(|reached| &reached.names.uses);
    ctx.trx.check_uses(named.chain(reached.map(|(table, alias, _)| (table.clone(), &**alias))))
}

/// Locks the tables that subqueries of RETURNING read.
fn lock_asked(returning: Option<&Returning>, ctx: &mut StatementContext<'_>) -> SqlResult<Freshness> {
    returning.and_then(Returning::asked).map_or(Ok(Freshness::Fresh), |asked| lock_tables(asked, ctx))
}

/// Reports the tables that the plan uses to the audit log. Written tables come first, as in MariaDB.
pub(crate) fn report_tables(session: &SessionState, cached: &CachedPlan) {
    let Some(tables) = session.audit_tables() else { return };
    match &cached.plan {
        Planned::Query(plan) => plan.report_tables(&tables),
        Planned::Insert(plan) => {
            match (plan.replaces(), plan.updates()) {
                (true, _) => tables.changed(plan.table(), RowChange::Delete),
                (_, true) => tables.changed(plan.table(), RowChange::Update),
                _ => tables.report_use(TableUse::Write, plan.table()),
            }
            plan.query().into_iter().chain(plan.asked()).for_each(|query| query.report_tables(&tables));
        }
        Planned::Update(plan) => tables.changed(plan.table(), RowChange::Update),
        Planned::Delete(plan) => {
            tables.changed(plan.table(), RowChange::Delete);
            plan.returning
                .as_ref()
                .and_then(Returning::asked)
                .into_iter()
                .for_each(|q| q.report_tables(&tables));
        }
        Planned::Joined(plan) => {
            plan.returning().and_then(Returning::asked).into_iter().for_each(|q| q.report_tables(&tables));
            let written: Vec<_> = plan.written().map(|(table, alias)| (table.id, alias)).collect();
            let how = if plan.is_update() { RowChange::Update } else { RowChange::Delete };
            plan.written().for_each(|(table, _)| tables.changed(table, how));
            for (table, alias) in plan.source().tables() {
                if !written.iter().any(|(id, name)| *id == table.id && *name == alias) {
                    tables.report_use(TableUse::Read, table);
                }
            }
        }
    }
    for (table, is_written) in &cached.sequences {
        tables.report_use(if *is_written { TableUse::Write } else { TableUse::Read }, table);
    }
}
