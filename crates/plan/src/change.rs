//! UPDATE and DELETE over joins, or with subqueries: the query that finds the rows, with their keys and the
//! new values.
//!
//! The rows are found under locks and kept before the first is changed, so the query may read what the
//! statement writes.

use std::sync::Arc;

use cohort_catalog::{Table, View};
use cohort_expr::{Expr, ExprType, TypeClass};
use cohort_sql::ast;
use cohort_types::{ErrorCode, Privilege, SqlError, SqlResult};

use crate::bind::{Binder, Clause, PlanContext, Relation, Scope, ScopeTable, not_supported};
use crate::block::{Body, From, FromTable, Order, OrderBy, Query, Select, Source};
use crate::conjuncts;
use crate::from::bind_from_for;
use crate::query::bind_limit;
use crate::with::CommonTables;
use crate::written::{Refusal, RowCheck, base_tables, written};

/// A table whose rows are changed.
pub struct ChangeTarget {
    pub table: Arc<Table>,
    /// What the statement calls it.
    pub name: Arc<str>,
    /// The item that is its row's key, NULL where an outer join has padded.
    pub key_at: usize,
    /// What views ask of rows that are written.
    pub checks: Vec<RowCheck>,
}

/// A column to be assigned.
pub struct ChangeAssignment {
    /// Its target.
    pub target: usize,
    pub column: usize,
    /// The item that is its value; None for DEFAULT.
    pub value_at: Option<usize>,
}

/// A change of joined rows, bound.
pub struct JoinedChange {
    pub query: Query,
    pub targets: Vec<ChangeTarget>,
    pub assignments: Vec<ChangeAssignment>,
}

/// What stands around the tables of the statement.
pub struct ChangeClauses<'c> {
    pub from: &'c ast::TableRef,
    pub filter: Option<&'c ast::Expr>,
    pub order_by: &'c [ast::OrderItem],
    pub limit: Option<&'c ast::Limit>,
}

/// Binds an UPDATE. `at_once`: assignments see the row as it was, not what those before assigned.
pub fn bind_joined_update(
    ctx: &PlanContext<'_>,
    clauses: &ChangeClauses<'_>,
    assignments: &[ast::Assignment],
    at_once: bool,
) -> SqlResult<JoinedChange> {
    let mut change = Change::bind(ctx, clauses, Privilege::Update)?;
    let is_single = change.scope.tables.len() == 1;
    let mut bound: Vec<(usize, Option<Expr>)> = Vec::new();
    for assignment in assignments {
        let slot = change.scope.column(&assignment.column, Clause::Set)?;
        ctx.use_column(&change.scope, slot, Privilege::Update)?;
        let value = match &assignment.value {
            ast::Expr::Default(None) => None,
            value => {
                let kind = change.scope.slot(slot).ty.kind;
                let value = change.binder(Clause::Set).value(value)?.for_column(kind);
                match is_single && !at_once {
                    true => Some(change.after_assignments(value, &bound)?),
                    false => Some(value),
                }
            }
        };
        bound.push((slot, value));
    }
    let mut written_of_view = Vec::new();
    let mut targets = Vec::with_capacity(bound.len());
    for (slot, _) in &bound {
        let number = change.scope.table_of(*slot);
        let target = change.target(*slot, "UPDATE", Some(Privilege::Update))?;
        if matches!(change.scope.tables[number].relation, Relation::View(_)) {
            written_of_view.push((number, target.0));
        }
        targets.push(target);
    }
    change.check_keys_of_aliases(&targets)?;
    for (number, target) in &written_of_view {
        if written_of_view.iter().any(|(other, of)| other == number && of != target) {
            return Err(more_than_one(&change.scope.tables[*number]));
        }
    }
    let mut made = Vec::with_capacity(bound.len());
    for ((_, value), (target, column)) in bound.into_iter().zip(targets) {
        let value_at = value.map(|value| {
            change.items.push(value);
            change.items.len() - 1
        });
        made.push(ChangeAssignment { target, column, value_at });
    }
    Ok(change.finish(made))
}

/// Binds a DELETE. `targets`: tables whose rows go; none for the only one.
pub fn bind_joined_delete(
    ctx: &PlanContext<'_>,
    clauses: &ChangeClauses<'_>,
    targets: &[ast::ObjectName],
) -> SqlResult<JoinedChange> {
    let mut change = Change::bind(ctx, clauses, Privilege::Delete)?;
    let mut numbers = Vec::new();
    for name in targets {
        let found = change.scope.tables.iter().position(|table| {
            let schema_fits = name
                .db
                .as_ref()
                .is_none_or(|db| table.schema.as_deref().is_some_and(|s| s.eq_ignore_ascii_case(db)));
            table.name.eq_ignore_ascii_case(&name.name) && schema_fits
        });
        let number = found.ok_or_else(|| {
            SqlError::new(ErrorCode::UnknownTable, format!("Unknown table '{}' in MULTI DELETE", name.name))
        })?;
        if numbers.contains(&number) {
            return Err(SqlError::non_unique_table(&name.name));
        }
        numbers.push(number);
    }
    if targets.is_empty() {
        numbers.push(0);
    }
    for number in numbers {
        let mut slot = change.scope.tables[number].first_slot;
        if let Relation::View(view) = &change.scope.tables[number].relation {
            let view = view.clone();
            ctx.names.view(&view.name.schema, &view.name.table, Privilege::Delete.into())?;
            slot = change.only_base_of(slot, &view)?;
        }
        change.target(slot, "DELETE", None)?;
        if let Relation::Base(table) = &change.scope.tables[number].relation {
            ctx.names.base_table(&table.name.schema, &table.name.table, Privilege::Delete.into())?;
        }
    }
    Ok(change.finish(Vec::new()))
}

/// Error 1393.
fn more_than_one(entry: &ScopeTable) -> SqlError {
    let schema = entry.schema.as_deref().unwrap_or_default();
    let text =
        format!("Can not modify more than one base table through a join view '{schema}.{}'", entry.name);
    SqlError::new(ErrorCode::ViewMultiUpdate, text)
}

/// The value with what was assigned before in place of the columns.
fn after_assignments(value: Expr, before: &[(usize, Option<Expr>)]) -> Expr {
    if let Expr::Column(column) = &value
        && let Some((_, Some(assigned))) = before.iter().rev().find(|(slot, _)| *slot == column.ordinal)
    {
        return assigned.clone();
    }
    value.map_children(&mut |child| after_assignments(child, before))
}

struct Change<'c> {
    ctx: &'c PlanContext<'c>,
    with: CommonTables<'c>,
    scope: Scope,
    from: From,
    conditions: Vec<Expr>,
    order: Vec<Order>,
    limit: crate::block::Limit,
    items: Vec<Expr>,
    targets: Vec<ChangeTarget>,
    /// The numbers of their first columns.
    firsts: Vec<usize>,
    block: u32,
}

impl<'c> Change<'c> {
    /// The value with what was assigned before in place of the columns. Refused where a column does not come
    /// to hold what the expression yields, or yields each time anew.
    fn after_assignments(&self, value: Expr, before: &[(usize, Option<Expr>)]) -> SqlResult<Expr> {
        for column in value.columns() {
            let Some((slot, assigned)) = before.iter().rev().find(|(slot, _)| *slot == column) else {
                continue;
            };
            let is_held = assigned.as_ref().is_some_and(|assigned| {
                let (of_column, ty) = (&self.scope.slot(*slot).ty, assigned.ty());
                let is_fraction = of_column.class() != TypeClass::Int && of_column.decimals != ty.decimals;
                !assigned.is_volatile() && of_column.class() == ty.class() && !is_fraction
            });
            if !is_held {
                let what =
                    "an assignment that reads a column assigned before, beside a subquery or in a view";
                return Err(not_supported(what));
            }
        }
        Ok(after_assignments(value, before))
    }

    /// A table that is changed under two names keeps its primary key: error 1706.
    fn check_keys_of_aliases(&self, assigned: &[(usize, usize)]) -> SqlResult<()> {
        let in_key = |(target, column): (usize, usize)| {
            let clustered = self.targets[target].table.clustered();
            clustered.columns.iter().any(|part| part.column == column)
        };
        for &(one, _) in assigned.iter().filter(|assignment| in_key(**assignment)) {
            let same = |&&(other, _): &&(usize, usize)| {
                other != one && self.targets[other].table.id == self.targets[one].table.id
            };
            let Some(&(other, _)) = assigned.iter().find(same) else { continue };
            let (first, second) = (one.min(other), one.max(other));
            let text = format!(
                "Primary key/partition key update is not allowed since the table is updated both as '{}' and '{}'",
                self.targets[first].name, self.targets[second].name
            );
            return Err(SqlError::new(ErrorCode::MultiUpdateKeyConflict, text));
        }
        Ok(())
    }

    /// `change`: what is done to the only table; of several those that are only read are not known yet.
    fn bind(
        ctx: &'c PlanContext<'c>,
        clauses: &ChangeClauses<'_>,
        change: Privilege,
    ) -> SqlResult<Change<'c>> {
        let with = CommonTables::default();
        let block = ctx.new_block();
        let wanted = match clauses.from {
            ast::TableRef::Table(_) => change,
            _ => Privilege::Select,
        };
        let (from, scope) = bind_from_for(ctx, &with, None, Some(clauses.from), wanted)?;
        let from = from.ok_or_else(|| SqlError::new(ErrorCode::NoTablesUsed, "No tables used"))?;
        let mut change = Change {
            ctx,
            with,
            scope,
            from,
            conditions: Vec::new(),
            order: Vec::new(),
            limit: bind_limit(ctx, clauses.limit)?,
            items: Vec::new(),
            targets: Vec::new(),
            firsts: Vec::new(),
            block,
        };
        if let Some(filter) = clauses.filter {
            change.conditions = conjuncts::split(change.binder(Clause::Where).condition(filter)?);
        }
        for item in clauses.order_by {
            let expr = change.binder(Clause::OrderBy).expression(&item.expr)?;
            if !expr.is_const_per_execution() {
                let collation = expr.ty().collation;
                let key = cohort_expr::SortKey { collation, descending: item.descending };
                change.order.push(Order { by: OrderBy::Expr(expr), key });
            }
        }
        Ok(change)
    }

    fn binder(&self, clause: Clause) -> Binder<'_> {
        let mut binder = Binder::new(self.ctx, &self.scope, clause);
        (binder.with, binder.subqueries_allowed) = (Some(&self.with), true);
        binder
    }

    /// Makes the table of a column a target: its number among the targets, and the column of the table. Error
    /// 1288 when it is none that rows lie in, 1348 when a view computes the column.
    fn target(&mut self, slot: usize, statement: &str, how: Option<Privilege>) -> SqlResult<(usize, usize)> {
        let entry = &self.scope.tables[self.scope.table_of(slot)];
        let found = written(&self.from, slot).map_err(|refusal| match refusal {
            Refusal::Table => {
                let text = format!("The target table {} of the {statement} is not updatable", entry.name);
                SqlError::new(ErrorCode::NonUpdatableTable, text)
            }
            Refusal::Column => {
                let text = format!("Column '{}' is not updatable", self.scope.slot(slot).name);
                SqlError::new(ErrorCode::NonUpdatableColumn, text)
            }
        })?;
        match how {
            Some(how) => found.use_column(self.ctx, how)?,
            None => found.want(self.ctx, Privilege::Delete.into())?,
        }
        let (first, column) = (found.base.first, found.column);
        if let Some(n) = self.firsts.iter().position(|known| *known == first) {
            return Ok((n, column));
        }
        let key = self.ctx.new_columns(1);
        self.targets.push(ChangeTarget {
            table: found.table.clone(),
            name: found.base.name.clone(),
            key_at: self.items.len(),
            checks: found.checks()?,
        });
        self.items.push(Expr::column(key, ExprType::null(), "key"));
        self.firsts.push(first);
        mark_target(&mut self.from, first, key);
        Ok((self.targets.len() - 1, column))
    }

    /// A column that is one of the only base table of a view: error 1395 when it joins several.
    fn only_base_of(&self, slot: usize, view: &View) -> SqlResult<usize> {
        let tables = self.from.tables();
        let is_it = |table: &&&FromTable| table.first == slot;
        let Some(FromTable { source: Source::Derived(query), .. }) = tables.iter().find(is_it) else {
            return Ok(slot);
        };
        if query.is_updatable() && base_tables(query).len() > 1 {
            let text = format!("Can not delete from join view '{}.{}'", view.name.schema, view.name.table);
            return Err(SqlError::new(ErrorCode::ViewDeleteMergeView, text));
        }
        let plain = (0..query.types.len()).find(|n| written(&self.from, slot + n).is_ok());
        Ok(slot + plain.unwrap_or(0))
    }

    fn finish(self, assignments: Vec<ChangeAssignment>) -> JoinedChange {
        let types: Vec<ExprType> = self.items.iter().map(Expr::ty).collect();
        let select = Select {
            block: self.block,
            from: Some(self.from),
            conditions: self.conditions,
            group: None,
            having: None,
            windows: Vec::new(),
            items: self.items,
            distinct: false,
            straight_join: false,
        };
        let mut query = Query::new(self.ctx, Body::Select(Box::new(select)), Vec::new(), types);
        (query.order, query.limit) = (self.order, self.limit);
        JoinedChange { query, targets: self.targets, assignments }
    }
}

/// Has the rows of a table locked for a change, and their key yielded.
fn mark_target(from: &mut From, first: usize, key: usize) {
    match from {
        From::Table(table) if table.first == first => table.key = Some(key),
        From::Table(table) => {
            if let Source::Derived(query) = &mut table.source
                && let Body::Select(select) = &mut query.body
                && let Some(from) = &mut select.from
            {
                mark_target(from, first, key);
            }
        }
        From::Join(join) => {
            mark_target(&mut join.left, first, key);
            mark_target(&mut join.right, first, key);
        }
    }
}
