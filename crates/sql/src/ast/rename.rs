//! Traversal of a query or row change that can change its names.

use super::{
    Assignment, ColumnRef, DataType, Delete, Expr, Insert, InsertSource, Join, Query, QueryBody, Select,
    SelectItem, SequenceCall, SetItem, SetValue, Statement, TableFactor, TableRef, Update,
};

/// A visitor that can change the names of a query or row change.
pub trait Rename {
    /// Called before the names of a query are visited.
    fn begin_query(&mut self, _query: &Query) {}

    fn column(&mut self, _column: &mut ColumnRef) {}

    fn table(&mut self, _table: &mut TableFactor) {}

    /// Called after the names in the join's condition were visited.
    fn join(&mut self, _join: &mut Join) {}

    /// Called after all names of the SELECT were visited. `is_operand` is whether it is part of an
    /// expression.
    fn select(&mut self, _select: &mut Select, _is_operand: bool) {}

    /// Called after all names of the query were visited, including those of its ORDER BY.
    fn query(&mut self, _query: &mut Query) {}

    /// Called for the type of a CAST.
    fn cast(&mut self, _to: &mut DataType) {}

    /// Called for a sequence in an expression.
    fn sequence(&mut self, _call: &mut SequenceCall) {}

    /// Called after the names in a JSON_TABLE were visited.
    fn json_table(&mut self) {}

    /// Called for a variable or a placeholder.
    fn variable(&mut self) {}

    /// Called for a call without a schema: an [`Expr::Function`].
    fn function(&mut self, _call: &mut Expr) {}

    /// Called for a call of a stored function: an [`Expr::StoredFunction`].
    fn stored_function(&mut self, _call: &mut Expr) {}
}

impl Statement {
    /// Visits all names in the queries and expressions of a statement with `by`. The targets of INSERT and of
    /// definitions are not visited.
    pub fn rename(&mut self, by: &mut dyn Rename) {
        match self {
            Statement::Query(query) => query.rename(by),
            Statement::Insert(insert) => insert.rename(by),
            Statement::Update(update) => update.rename(by),
            Statement::Delete(delete) => delete.rename(by),
            Statement::Do(exprs) => exprs.iter_mut().for_each(|expr| rename_in(expr, by)),
            Statement::Set(items) => items.iter_mut().for_each(|item| match item {
                SetItem::UserVariable { value, .. }
                | SetItem::Variable { value: SetValue::Expr(value), .. } => rename_in(value, by),
                _ => {}
            }),
            Statement::CreateTable(create) => {
                create.query.iter_mut().for_each(|select| select.query.rename(by));
            }
            _ => {}
        }
    }
}

impl Expr {
    /// Visits all names of the expression with `by`, including those of subqueries.
    pub fn rename(&mut self, by: &mut dyn Rename) {
        rename_in(self, by);
    }
}

impl Insert {
    fn rename(&mut self, by: &mut dyn Rename) {
        match &mut self.source {
            InsertSource::Values(rows) => rows.iter_mut().flatten().for_each(|expr| rename_in(expr, by)),
            InsertSource::Query(query) => query.rename(by),
        }
        assigned(&mut self.on_duplicate, by);
        items(&mut self.returning, by);
    }
}

impl Update {
    fn rename(&mut self, by: &mut dyn Rename) {
        table(&mut self.tables, by);
        assigned(&mut self.assignments, by);
        self.filter.iter_mut().for_each(|expr| rename_in(expr, by));
        self.order_by.iter_mut().for_each(|item| rename_in(&mut item.expr, by));
    }
}

impl Delete {
    fn rename(&mut self, by: &mut dyn Rename) {
        table(&mut self.from, by);
        self.filter.iter_mut().for_each(|expr| rename_in(expr, by));
        self.order_by.iter_mut().for_each(|item| rename_in(&mut item.expr, by));
        items(&mut self.returning, by);
    }
}

fn assigned(assignments: &mut [Assignment], by: &mut dyn Rename) {
    for Assignment { column, value } in assignments {
        by.column(column);
        rename_in(value, by);
    }
}

fn items(items: &mut [SelectItem], by: &mut dyn Rename) {
    for item in items {
        if let SelectItem::Expr { expr, .. } = item {
            rename_in(expr, by);
        }
    }
}

impl Query {
    /// Visits all names of the query with `by`, including those of subqueries.
    pub fn rename(&mut self, by: &mut dyn Rename) {
        self.rename_as(by, false);
    }

    fn rename_as(&mut self, by: &mut dyn Rename, is_operand: bool) {
        by.begin_query(self);
        for table in self.with.iter_mut().flat_map(|with| &mut with.tables) {
            table.query.rename_as(by, false);
        }
        self.order_by.iter_mut().for_each(|item| rename_in(&mut item.expr, by));
        body(&mut self.body, by, is_operand);
        by.query(self);
    }
}

fn body(node: &mut QueryBody, by: &mut dyn Rename, is_operand: bool) {
    match node {
        QueryBody::Select(inner) => select(inner, by, is_operand),
        QueryBody::SetOperation { first, rest, .. } => {
            body(first, by, is_operand);
            rest.iter_mut().for_each(|operand| body(&mut operand.body, by, is_operand));
        }
        QueryBody::Values(rows) => rows.iter_mut().flatten().for_each(|expr| rename_in(expr, by)),
        QueryBody::Nested(query) => query.rename_as(by, is_operand),
    }
}

fn select(select: &mut Select, by: &mut dyn Rename, is_operand: bool) {
    if let Some(from) = &mut select.from {
        table(from, by);
    }
    items(&mut select.items, by);
    select.filter.iter_mut().chain(&mut select.having).for_each(|expr| rename_in(expr, by));
    select.group_by.iter_mut().for_each(|item| rename_in(&mut item.expr, by));
    for (_, window) in &mut select.windows {
        let mut open = Vec::new();
        window.push_operands(&mut open);
        rename_all(open, by);
    }
    by.select(select, is_operand);
}

fn table(node: &mut TableRef, by: &mut dyn Rename) {
    match node {
        TableRef::Table(factor) => by.table(factor),
        TableRef::Derived { query, .. } => query.rename_as(by, false),
        TableRef::Json(json) => {
            let mut open = Vec::new();
            json.each_expr_mut(&mut |expr| open.push(expr));
            rename_all(open, by);
            by.json_table();
        }
        TableRef::Join(join) => {
            table(&mut join.left, by);
            table(&mut join.right, by);
            if let super::JoinCondition::On(condition) = &mut join.condition {
                rename_in(condition, by);
            }
            by.join(join);
        }
    }
}

fn rename_in(expr: &mut Expr, by: &mut dyn Rename) {
    rename_all(vec![expr], by);
}

fn rename_all(mut open: Vec<&mut Expr>, by: &mut dyn Rename) {
    let mut queries = Vec::new();
    while let Some(expr) = open.pop() {
        match expr {
            Expr::Column(column) | Expr::Default(Some(column)) | Expr::Values(column) => by.column(column),
            Expr::Cast { to, .. } => by.cast(to),
            Expr::Sequence(call) => by.sequence(call),
            Expr::Function { .. } => by.function(expr),
            Expr::StoredFunction { .. } => by.stored_function(expr),
            Expr::UserVariable(_) | Expr::SystemVariable { .. } | Expr::Param(_) | Expr::Assign { .. } => {
                by.variable()
            }
            _ => {}
        }
        expr.push_operands(&mut open, &mut queries);
    }
    queries.into_iter().for_each(|query| query.rename_as(by, true));
}
