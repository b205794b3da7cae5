//! Traversal of a query that can change its names.

use super::{ColumnRef, DataType, Expr, Join, Query, QueryBody, Select, SequenceCall, TableFactor, TableRef};

/// A visitor that can change the names of a query.
pub trait Rename {
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
}

impl Query {
    /// Visits all names of the query with `by`, including those of subqueries.
    pub fn rename(&mut self, by: &mut dyn Rename) {
        self.rename_as(by, false);
    }

    fn rename_as(&mut self, by: &mut dyn Rename, is_operand: bool) {
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
    for item in &mut select.items {
        if let super::SelectItem::Expr { expr, .. } = item {
            rename_in(expr, by);
        }
    }
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
            Expr::UserVariable(_) | Expr::SystemVariable { .. } | Expr::Param(_) | Expr::Assign { .. } => {
                by.variable()
            }
            _ => {}
        }
        expr.push_operands(&mut open, &mut queries);
    }
    queries.into_iter().for_each(|query| query.rename_as(by, true));
}
