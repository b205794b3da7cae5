//! The access plan of a single-table UPDATE or DELETE.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_config::VarId;
use cohort_expr::{Expr, SortKey};
use cohort_optimize::{
    Access, Candidates, Columns, Condition, LOCKED_ENTRIES_MIN, PartId, RowCosts, Spans, Statistics,
    WantedOrder, conditions,
};
use cohort_plan::conjuncts::{self, all_of};
use cohort_plan::{Binder, Clause, PlanContext, Scope, allowed_indexes, bind_plain_limit};
use cohort_query::guards::refuse_without_key;
use cohort_session::{PlanStatistics, SessionState};
use cohort_sql::ast;
use cohort_types::{Privilege, SqlError, SqlResult};

/// The plan to find the rows of one table that a statement changes. Expressions read rows with all columns of
/// the table.
pub struct TargetPlan {
    pub table: Arc<Table>,
    /// Resolves names in the statement's other expressions (SET, RETURNING).
    pub scope: Scope,
    pub access: Access,
    /// The complete WHERE clause. Checked for every row, and again after the row was locked.
    pub filter: Option<Expr>,
    /// Sort order, applied before the limit; empty if the access already returns this order.
    pub sort: Vec<(Expr, SortKey)>,
    /// LIMIT, an unsigned constant during an execution.
    pub limit: Option<Expr>,
    /// Its number among the parts of the statement's plan.
    pub part: PartId,
    /// Estimated number of rows.
    pub rows: f64,
}

/// Binds and plans a single table with its WHERE, ORDER BY and LIMIT. `change` is the privilege needed for
/// the rows.
pub fn plan_target(
    ctx: &PlanContext<'_>,
    session: &SessionState,
    table: &ast::TableFactor,
    filter: Option<&ast::Expr>,
    order_by: &[ast::OrderItem],
    limit: Option<&ast::Limit>,
    change: Privilege,
) -> SqlResult<TargetPlan> {
    let base = ctx.base_table(&table.name, change.into())?;
    if !table.partitions.is_empty() {
        return Err(SqlError::no_partitions());
    }
    let (allowed, forced) = allowed_indexes(&base, table)?;
    let scope = Scope::of_table(base.clone(), table.alias.as_deref());
    let filter = filter.map(|f| Binder::new(ctx, &scope, Clause::Where).condition(f)).transpose()?;
    let conjuncts = filter.clone().map(conjuncts::split).unwrap_or_default();
    let sargs: Vec<Condition> = conjuncts.iter().flat_map(conditions).collect();
    let mut sort = Vec::new();
    for item in order_by {
        let expr = Binder::new(ctx, &scope, Clause::OrderBy).expression(&item.expr)?;
        if !expr.is_const_per_execution() {
            let key = SortKey { collation: expr.ty().collation, descending: item.descending };
            sort.push((expr, key));
        }
    }
    let limit = bind_plain_limit(ctx, limit)?.count;
    let stats = PlanStatistics::new(session, ctx);
    let traced =
        stats.trace().map(|trace| trace.begin_table(1, table.alias.as_deref().unwrap_or(&base.name.table)));
    let choice = Candidates {
        table: &base,
        first_slot: 0,
        stats: &stats,
        entries_min: entries_for_change(session),
        allowed,
        forced,
        conditions: sargs.iter().filter(|c| c.reads.is_empty()).collect(),
        wanted: wanted(&sort, limit.is_some()),
        columns: Columns::All,
        costs: RowCosts::BY_ROWS,
    }
    .choose();
    drop(traced);
    if choice.ordered {
        sort.clear();
    }
    let (part, rows) = (PartId(ctx.new_parts(1)), choice.rows);
    let filter = all_of(conjuncts);
    Ok(TargetPlan { table: base, scope, access: choice.access, filter, sort, limit, part, rows })
}

/// Returns the number of entries to assume for the table at least: enough for the planner to prefer an index
/// to a scan, and with `sql_safe_updates` to take any index that is usable.
fn entries_for_change(session: &SessionState) -> u64 {
    if session.settings.vars.flag(VarId::SqlSafeUpdates) { 1 << 40 } else { LOCKED_ENTRIES_MIN }
}

fn wanted(sort: &[(Expr, SortKey)], limited: bool) -> WantedOrder {
    let descending = sort.first().is_some_and(|(_, key)| key.descending);
    let limit = limited.then_some(100);
    let columns: Option<Vec<usize>> = sort
        .iter()
        .map(|(expr, key)| match expr {
            Expr::Column(c) if key.descending == descending => Some(c.ordinal),
            _ => None,
        })
        .collect();
    WantedOrder { columns: columns.unwrap_or_default(), descending, limit }
}

/// Returns error 1175 under `sql_safe_updates` if the rows are not found by a key. `no_where`: a DELETE is
/// also refused without a WHERE that depends on the row, whatever its LIMIT.
pub fn check_safe_update(session: &SessionState, target: &TargetPlan, no_where: bool) -> SqlResult<()> {
    if !session.settings.vars.flag(VarId::SqlSafeUpdates) {
        return Ok(());
    }
    let uses_key = !matches!(target.access.spans, Spans::Full);
    if !no_where && (uses_key || target.limit.is_some()) {
        return Ok(());
    }
    refuse_without_key(session)
}
