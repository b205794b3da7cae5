//! UPDATE and DELETE over joins or with subqueries: binds the query that finds the rows, their keys and the
//! new values.
//!
//! The rows are found under locks and stored before the first is changed, so the query may read the tables
//! that the statement writes.

use std::sync::Arc;

use cohort_catalog::{DefaultValue, Table, View};
use cohort_expr::{Expr, ExprType};
use cohort_sql::ast;
use cohort_types::{Privilege, SqlError, SqlResult};

use crate::bind::{Binder, Clause, PlanContext, Relation, Scope, ScopeTable};
use crate::block::{Assigned, AssignedTo, Body, From, FromTable, Order, OrderBy, Query, Select, Source};
use crate::call_back::calls_back;
use crate::common_tables::CommonTables;
use crate::conjuncts;
use crate::from::bind_from_for;
use crate::query::bind_plain_limit;
use crate::written::{Refusal, RowCheck, base_tables, written};

/// A table whose rows are changed.
pub struct ChangeTarget {
    pub table: Arc<Table>,
    /// Its name or alias in the statement.
    pub name: Arc<str>,
    /// The item that holds the row's key; NULL in rows padded by an outer join.
    pub key_at: usize,
    /// WITH CHECK OPTION conditions on the written rows.
    pub checks: Vec<RowCheck>,
}

/// A column to assign.
pub struct ChangeAssignment {
    /// Position of its target.
    pub target: usize,
    pub column: usize,
    /// The item that holds its value; `None` for DEFAULT.
    pub value_at: Option<usize>,
}

/// A bound change of joined rows.
pub struct JoinedChange {
    pub query: Query,
    pub targets: Vec<ChangeTarget>,
    pub assignments: Vec<ChangeAssignment>,
}

/// The clauses of the statement other than its targets.
pub struct ChangeClauses<'c> {
    pub from: &'c ast::TableRef,
    pub filter: Option<&'c ast::Expr>,
    pub order_by: &'c [ast::OrderItem],
    pub limit: Option<&'c ast::Limit>,
}

/// Binds an assignment over the binder's scope. Returns the slot, and the value or `None` for DEFAULT.
pub fn bind_assignment(
    binder: &Binder<'_>,
    assignment: &ast::Assignment,
) -> SqlResult<(usize, Option<Expr>)> {
    let slot = binder.ctx.column(binder.scope, &assignment.column, binder.clause, Privilege::Update)?;
    binder.ctx.use_column(binder.scope, slot, Privilege::Update)?;
    let value = bind_new_value(binder, slot, &assignment.value)?;
    if value.is_none() && binder.clause == Clause::Set {
        check_default(binder.scope, slot)?;
    }
    Ok((slot, value))
}

/// Returns error 1364, in every mode, if UPDATE assigns a DEFAULT that does not exist.
fn check_default(scope: &Scope, slot: usize) -> SqlResult<()> {
    let table = &scope.tables[scope.table_of(slot)];
    let Relation::Base(base) = &table.relation else { return Ok(()) };
    let column = &base.columns[slot - table.first_slot];
    let is_missing = matches!(column.default, DefaultValue::None)
        && !(column.nullable || column.auto_increment || column.generated.is_some());
    if !is_missing {
        return Ok(());
    }
    Err(SqlError::no_default(&column.name))
}

/// Binds a value for the column of a slot. Returns `None` for DEFAULT.
pub fn bind_new_value(binder: &Binder<'_>, slot: usize, value: &ast::Expr) -> SqlResult<Option<Expr>> {
    Ok(match value {
        ast::Expr::Default(None) => None,
        value => Some(binder.value(value)?.for_column(binder.scope.slot(slot).ty.kind)),
    })
}

/// Returns the column that an assignment to a slot writes, also through a view: its number, table and name.
fn written_column(scope: &Scope, slot: usize) -> (usize, &str, &str) {
    let table = &scope.tables[scope.table_of(slot)];
    let merged = table.merged.as_ref().and_then(|merged| merged[slot - table.first_slot].base.as_ref());
    match merged {
        Some((first, base, n)) => (first + n, &base.name.table, &base.columns[*n].name),
        None => (slot, &table.name, &scope.slot(slot).name),
    }
}

/// Binds an UPDATE. `at_once`: assignments read the old row, not the values of earlier assignments.
pub fn bind_joined_update(
    ctx: &PlanContext<'_>,
    clauses: &ChangeClauses<'_>,
    assignments: &[ast::Assignment],
    at_once: bool,
) -> SqlResult<JoinedChange> {
    let mut change = Change::bind(ctx, clauses, Privilege::Update)?;
    let bound = {
        let binder = change.binder(Clause::Set);
        let bound = assignments.iter().map(|assignment| bind_assignment(&binder, assignment));
        bound.collect::<SqlResult<Vec<_>>>()?
    };
    for (n, (slot, _)) in bound.iter().enumerate() {
        let (column, table, name) = written_column(&change.scope, *slot);
        if at_once && bound[..n].iter().any(|(before, _)| written_column(&change.scope, *before).0 == column)
        {
            return Err(SqlError::updated_twice(table, name));
        }
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
    // With several tables, MariaDB stores the new values before it writes the first of them.
    let in_order = !at_once && change.base_count() == 1;
    let mut made = Vec::with_capacity(bound.len());
    for ((_, value), (target, column)) in bound.into_iter().zip(targets) {
        made.push(change.assign(target, column, value, in_order)?);
    }
    Ok(change.finish(made))
}

/// Binds a DELETE. `targets` are the tables whose rows are deleted; empty for a single-table DELETE.
pub fn bind_joined_delete(
    ctx: &PlanContext<'_>,
    clauses: &ChangeClauses<'_>,
    targets: &[ast::ObjectName],
    returning: &[ast::SelectItem],
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
        let number = found.ok_or_else(|| SqlError::unknown_table_in(&name.name, "MULTI DELETE"))?;
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
            // RETURNING refers to columns of the base table, which the view may hide or rename.
            for item in returning {
                if let ast::SelectItem::Expr { expr, .. } = item
                    && !calls_back(expr)
                {
                    change.binder(Clause::Returning).expression(expr)?;
                }
            }
            if !returning.is_empty() {
                return Err(SqlError::not_supported("RETURNING of a DELETE from a view"));
            }
        }
        change.target(slot, "DELETE", None)?;
        if let Relation::Base(table) = &change.scope.tables[number].relation {
            ctx.names.base_table(&table.name.schema, &table.name.table, Privilege::Delete.into())?;
        }
    }
    Ok(change.finish(Vec::new()))
}

/// Returns error 1393.
fn more_than_one(entry: &ScopeTable) -> SqlError {
    let schema = entry.schema.as_deref().unwrap_or_default();
    SqlError::join_view_with_two_targets(schema, &entry.name)
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
    assigned: Vec<Assigned>,
    targets: Vec<ChangeTarget>,
    /// Numbers of their first columns.
    firsts: Vec<usize>,
    block: u32,
}

impl<'c> Change<'c> {
    /// Returns the number of base tables in FROM, including those of views.
    fn base_count(&self) -> usize {
        let of_table = |table: &FromTable| match &table.source {
            Source::Derived(query) if table.view.is_some() => base_tables(query).len(),
            _ => 1,
        };
        self.from.tables().into_iter().map(of_table).sum()
    }

    /// Adds a value as an item. `in_order`: later assignments read the value that the column then holds.
    fn assign(
        &mut self,
        target: usize,
        column: usize,
        value: Option<Expr>,
        in_order: bool,
    ) -> SqlResult<ChangeAssignment> {
        let (table, first) = (self.targets[target].table.clone(), self.firsts[target]);
        let described = &table.columns[column];
        let is_generated = described.generated.is_some();
        let value = match value {
            None if in_order => match &described.default {
                DefaultValue::CurrentTimestamp | DefaultValue::Expression(_) => {
                    Some(self.binder(Clause::Set).default_of(&table, column, first)?)
                }
                _ => None,
            },
            value => value,
        };
        let is_default = value.is_none();
        let seen_as = (in_order && !is_generated).then(|| {
            let number = first + column;
            AssignedTo { number, table: table.clone(), column }
        });
        if is_default && seen_as.is_none() {
            return Ok(ChangeAssignment { target, column, value_at: None });
        }
        // The constant DEFAULT, or the implicit one.
        let value = value.unwrap_or_else(|| match &described.default {
            DefaultValue::Value(value) => Expr::constant(value.clone()),
            _ if described.nullable => Expr::null(),
            _ => Expr::constant(described.ty.implicit_default()),
        });
        let number = self.ctx.new_columns(1);
        self.assigned.push(Assigned { column: number, value, seen_as });
        if is_default {
            return Ok(ChangeAssignment { target, column, value_at: None });
        }
        // Without a type, so that the value reaches the column with all its digits.
        self.items.push(Expr::column(number, ExprType::null(), ""));
        Ok(ChangeAssignment { target, column, value_at: Some(self.items.len() - 1) })
    }

    /// Returns error 1706 if a table changed under two names has its primary key changed.
    fn check_keys_of_aliases(&self, assigned: &[(usize, usize)]) -> SqlResult<()> {
        let in_key = |(target, column): (usize, usize)| {
            self.targets[target].table.row_key().iter().any(|part| part.column == column)
        };
        for &(one, _) in assigned.iter().filter(|assignment| in_key(**assignment)) {
            let same = |&&(other, _): &&(usize, usize)| {
                other != one && self.targets[other].table.id == self.targets[one].table.id
            };
            let Some(&(other, _)) = assigned.iter().find(same) else { continue };
            let (first, second) = (one.min(other), one.max(other));
            return Err(SqlError::key_updated_through_two_names(
                &self.targets[first].name,
                &self.targets[second].name,
            ));
        }
        Ok(())
    }

    /// Binds FROM and the clauses. `change` is the privilege on a single table; among several, the targets
    /// are not known yet.
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
        let from = from.ok_or_else(SqlError::no_tables_used)?;
        let mut change = Change {
            ctx,
            with,
            scope,
            from,
            conditions: Vec::new(),
            order: Vec::new(),
            limit: bind_plain_limit(ctx, clauses.limit)?,
            items: Vec::new(),
            assigned: Vec::new(),
            targets: Vec::new(),
            firsts: Vec::new(),
            block,
        };
        if let Some(filter) = clauses.filter {
            change.conditions = conjuncts::split(change.binder(Clause::Where).condition(filter)?);
        }
        for item in clauses.order_by {
            let expr = change.binder(Clause::OrderBy).expression(&item.expr)?;
            if !expr.is_const_per_execution() || expr.calls_back() {
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

    /// Makes the table of a column a target. Returns its position among the targets and the column's ordinal.
    /// Error 1288 if the table has no stored rows, 1348 if a view computes the column.
    fn target(&mut self, slot: usize, statement: &str, how: Option<Privilege>) -> SqlResult<(usize, usize)> {
        let entry = &self.scope.tables[self.scope.table_of(slot)];
        let found = written(&self.from, slot).map_err(|refusal| match refusal {
            // As the view that it is in MariaDB.
            Refusal::Table if matches!(&entry.relation, Relation::Virtual(found) if found.is_view()) => {
                SqlError::column_not_updatable(&self.scope.slot(slot).name)
            }
            Refusal::Table => SqlError::target_not_updatable(&entry.name, statement),
            Refusal::Column => SqlError::column_not_updatable(&self.scope.slot(slot).name),
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
        debug_assert_eq!(
            keys_in(&self.from),
            self.targets.len(),
            "a target's rows are not locked, or others are"
        );
        Ok((self.targets.len() - 1, column))
    }

    /// Returns the column of a view's only base table. Error 1395 if the view joins several.
    fn only_base_of(&self, slot: usize, view: &View) -> SqlResult<usize> {
        let tables = self.from.tables();
        let is_it = |table: &&&FromTable| table.first == slot;
        let Some(FromTable { source: Source::Derived(query), .. }) = tables.iter().find(is_it) else {
            return Ok(slot);
        };
        if query.is_updatable() && base_tables(query).len() > 1 {
            return Err(SqlError::join_view_not_deletable(&view.name.schema, &view.name.table));
        }
        let plain = (0..query.types.len()).find(|n| written(&self.from, slot + n).is_ok());
        Ok(slot + plain.unwrap_or(0))
    }

    fn finish(self, assignments: Vec<ChangeAssignment>) -> JoinedChange {
        let items = self.items.len();
        debug_assert_eq!(self.targets.len(), self.firsts.len(), "a target without columns");
        debug_assert!(self.targets.iter().all(|target| target.key_at < items), "a key that is not returned");
        debug_assert!(!self.targets.is_empty(), "a data change without a table");
        for made in &assignments {
            debug_assert!(made.target < self.targets.len(), "an assignment to a table that is not changed");
            let columns = self.targets[made.target].table.columns.len();
            debug_assert!(made.column < columns, "an assignment to a column that does not exist");
            debug_assert!(made.value_at.is_none_or(|at| at < items), "an assigned value is not returned");
        }
        let types: Vec<ExprType> = self.items.iter().map(Expr::ty).collect();
        let select = Select {
            block: self.block,
            from: Some(self.from),
            conditions: self.conditions,
            group: None,
            having: None,
            windows: Vec::new(),
            assigned: self.assigned,
            items: self.items,
            distinct: false,
            straight_join: false,
        };
        let mut query = Query::new(self.ctx, Body::Select(Box::new(select)), Vec::new(), types);
        (query.order, query.limit) = (self.order, self.limit);
        JoinedChange { query, targets: self.targets, assignments }
    }
}

/// Returns the number of tables whose rows are locked for a change.
fn keys_in(from: &From) -> usize {
    let of_table = |table: &FromTable| match &table.source {
        Source::Derived(query) => query.select().and_then(|select| select.from.as_ref()).map_or(0, keys_in),
        _ => usize::from(table.key.is_some()),
    };
    from.tables().into_iter().map(of_table).sum()
}

/// Marks a table so that its rows are locked for a change and their keys returned.
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
