//! Walks over query blocks: the expressions in them, the columns that they bring and those that they read
//! from around.

use std::collections::BTreeSet;

use cohort_expr::Expr;
use cohort_plan::{Body, CommonTable, From, OrderBy, Query, Select, Source, WindowUse};

/// Column numbers.
pub(crate) type ColumnSet = BTreeSet<usize>;

/// The subqueries and common tables of a statement, by number.
#[derive(Clone, Copy)]
pub(crate) struct Statement<'s> {
    pub subqueries: &'s [Query],
    pub common: &'s [CommonTable],
}

/// Calls `see` for each expression of a query, those of its derived tables included.
pub(crate) fn each_expr(query: &Query, see: &mut dyn FnMut(&Expr)) {
    for order in &query.order {
        if let OrderBy::Expr(expr) = &order.by {
            see(expr);
        }
    }
    query.limit.count.iter().chain(&query.limit.offset).for_each(&mut *see);
    match &query.body {
        Body::Select(select) => each_of_select(select, see),
        Body::Set(set) => {
            each_expr(&set.first, see);
            set.rest.iter().for_each(|operand| each_expr(&operand.query, see));
        }
        Body::Values(rows) => rows.iter().flatten().for_each(see),
        Body::Nested(inner) => each_expr(inner, see),
    }
}

fn each_of_select(select: &Select, see: &mut dyn FnMut(&Expr)) {
    if let Some(from) = &select.from {
        each_of_from(from, see);
    }
    select.conditions.iter().chain(&select.having).chain(&select.items).for_each(&mut *see);
    if let Some(group) = &select.group {
        group.keys.iter().for_each(&mut *see);
        for collected in &group.aggregates {
            collected.aggregate.args.iter().for_each(&mut *see);
            collected.aggregate.options.order.iter().for_each(|key| see(&key.expr));
        }
    }
    select.windows.iter().for_each(|window| each_of_window(window, see));
}

/// Calls `change` for each expression of a query, those of its derived tables included.
pub(crate) fn each_expr_mut(query: &mut Query, change: &mut dyn FnMut(&mut Expr)) {
    for order in &mut query.order {
        if let OrderBy::Expr(expr) = &mut order.by {
            change(expr);
        }
    }
    match &mut query.body {
        Body::Select(select) => {
            if let Some(from) = &mut select.from {
                each_of_from_mut(from, change);
            }
            select.conditions.iter_mut().chain(&mut select.having).for_each(&mut *change);
            select.items.iter_mut().for_each(&mut *change);
            if let Some(group) = &mut select.group {
                group.keys.iter_mut().for_each(&mut *change);
                for collected in &mut group.aggregates {
                    collected.aggregate.args.iter_mut().for_each(&mut *change);
                    collected.aggregate.options.order.iter_mut().for_each(|key| change(&mut key.expr));
                }
            }
            select.windows.iter_mut().for_each(|window| window.each_mut(change));
        }
        Body::Set(set) => {
            each_expr_mut(&mut set.first, change);
            set.rest.iter_mut().for_each(|operand| each_expr_mut(&mut operand.query, change));
        }
        Body::Values(rows) => rows.iter_mut().flatten().for_each(change),
        Body::Nested(inner) => each_expr_mut(inner, change),
    }
}

fn each_of_from_mut(from: &mut From, change: &mut dyn FnMut(&mut Expr)) {
    match from {
        From::Table(table) => {
            if let Source::Derived(query) = &mut table.source {
                each_expr_mut(query, change);
            }
        }
        From::Join(join) => {
            join.on.iter_mut().for_each(&mut *change);
            each_of_from_mut(&mut join.left, change);
            each_of_from_mut(&mut join.right, change);
        }
    }
}

fn each_of_window(window: &WindowUse, see: &mut dyn FnMut(&Expr)) {
    window.clone().each_mut(&mut |expr| see(expr));
}

fn each_of_from(from: &From, see: &mut dyn FnMut(&Expr)) {
    match from {
        From::Table(table) => {
            if let Source::Derived(query) = &table.source {
                each_expr(query, see);
            }
        }
        From::Join(join) => {
            join.on.iter().for_each(&mut *see);
            each_of_from(&join.left, see);
            each_of_from(&join.right, see);
        }
    }
}

impl Statement<'_> {
    /// The columns that an expression reads, those that its subqueries read from around included.
    pub(crate) fn columns(&self, expr: &Expr) -> ColumnSet {
        let mut found = ColumnSet::new();
        self.add_columns(expr, &mut found);
        found
    }

    fn add_columns(&self, expr: &Expr, found: &mut ColumnSet) {
        expr.walk(&mut |node| {
            match node {
                Expr::Column(column) => {
                    found.insert(column.ordinal);
                }
                Expr::Subquery(subquery) => found.extend(self.free(&self.subqueries[subquery.id])),
                _ => {}
            }
            true
        });
    }

    /// The columns that a query reads from around. Common tables read none: they are bound without the query
    /// around them.
    pub(crate) fn free(&self, query: &Query) -> ColumnSet {
        let (mut read, mut brought) = (ColumnSet::new(), ColumnSet::new());
        each_expr(query, &mut |expr| self.add_columns(expr, &mut read));
        each_brought(query, &mut |first, count| brought.extend(first..first + count));
        read.retain(|column| !brought.contains(column));
        read
    }

    /// Whether the query may have other rows each time it runs.
    pub(crate) fn is_volatile(&self, query: &Query) -> bool {
        let mut found = false;
        each_expr(query, &mut |expr| found |= self.is_volatile_expr(expr));
        found
    }

    fn is_volatile_expr(&self, expr: &Expr) -> bool {
        let mut found = expr.is_volatile();
        expr.walk(&mut |node| {
            if let Expr::Subquery(subquery) = node {
                found |= self.is_volatile(&self.subqueries[subquery.id]);
            }
            !found
        });
        found
    }
}

/// Whether an expression asks a subquery.
pub(crate) fn has_subquery(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |node| {
        found |= matches!(node, Expr::Subquery(_));
        !found
    });
    found
}

/// Calls `see` with the first number and the count of columns that a query brings: its own, its tables'.
fn each_brought(query: &Query, see: &mut dyn FnMut(usize, usize)) {
    see(query.first_column, query.types.len());
    match &query.body {
        Body::Select(select) => {
            if let Some(from) = &select.from {
                from_brought(from, see);
            }
            if let Some(group) = &select.group {
                see(group.first_key, group.keys.len());
                group.aggregates.iter().for_each(|collected| see(collected.column, 1));
            }
            select.windows.iter().for_each(|window| see(window.column, 1));
        }
        Body::Set(set) => {
            each_brought(&set.first, see);
            set.rest.iter().for_each(|operand| each_brought(&operand.query, see));
        }
        Body::Values(_) => {}
        Body::Nested(inner) => each_brought(inner, see),
    }
}

fn from_brought(from: &From, see: &mut dyn FnMut(usize, usize)) {
    match from {
        From::Table(table) => {
            see(table.first, table.width);
            if let Source::Derived(query) = &table.source {
                each_brought(query, see);
            }
        }
        From::Join(join) => {
            from_brought(&join.left, see);
            from_brought(&join.right, see);
        }
    }
}
