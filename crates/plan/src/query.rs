//! Binds queries of the AST: set operations, VALUES, and the clauses around a SELECT.

use std::cell::RefCell;

use cohort_expr::{Expr, ExprType, SortKey, union_type};
use cohort_protocol::ColumnMeta;
use cohort_sql::ast;
use cohort_types::{SqlError, SqlResult};

use crate::bind::{
    Binder, Clause, PlanContext, Scope, item_position, param_position, same_name, unknown_column,
};
use crate::block::{Body, Limit, Operand, Order, OrderBy, Query, SetOperation};
use crate::common_tables::CommonTables;
use crate::meta::{expression_meta, field_meta, joined_meta};
use crate::select::bind_select;
use crate::sound::check_statement;

/// Binds a query. `outer` is the binder of the expression that contains it.
pub fn bind_query(
    ctx: &PlanContext<'_>,
    with: &CommonTables<'_>,
    outer: Option<&Binder<'_>>,
    query: &ast::Query,
) -> SqlResult<Query> {
    ctx.enter()?;
    let with = with.with(query.with.as_ref())?;
    let bound = bind_within(ctx, &with, outer, query)?;
    if let Some(named) = &query.with {
        with.check_unused(ctx, named)?;
    }
    // A subquery is checked with the query around it, whose columns it reads.
    if outer.is_none() {
        check_statement(&bound, &ctx.subqueries.borrow(), &ctx.common.borrow());
    }
    Ok(bound)
}

fn bind_within(
    ctx: &PlanContext<'_>,
    with: &CommonTables<'_>,
    outer: Option<&Binder<'_>>,
    query: &ast::Query,
) -> SqlResult<Query> {
    let mut bound = match &query.body {
        ast::QueryBody::Select(select) => bind_select(ctx, with, outer, select, query)?,
        _ if outer.is_none() && query.order_by.iter().any(|item| is_computed(&item.expr)) => {
            bind_ordered_set(ctx, with, query)?
        }
        body => {
            if query.locking.is_some() {
                return Err(SqlError::not_supported("FOR UPDATE of a set operation"));
            }
            let mut bound = bind_body(ctx, with, outer, body)?;
            if query.limit.is_some() {
                // Rows are counted before this LIMIT.
                bound.count_all = counts_all(&mut bound).map(std::mem::take).unwrap_or_default();
            }
            bound.order = order_over_result(ctx, &bound, &query.order_by)?;
            if !bound.order.is_empty() {
                bound = bound.kept_in_table();
            }
            check_ties(query)?;
            bound.limit = bind_limit(ctx, query.limit.as_ref())?;
            bound
        }
    };
    bound.into = query.into.clone();
    // One local variable may be a row, which receives all columns.
    let may_be_row = matches!(&*bound.into, [ast::Target::Local(ast::Variable::Slot(_))]);
    if !bound.into.is_empty() && !may_be_row && bound.into.len() != bound.columns.len() {
        return Err(wrong_columns());
    }
    if !bound.into.is_empty() {
        bound.keep_digits();
    }
    Ok(bound)
}

/// Returns true if an ORDER BY of a set operation is not a column of its result.
fn is_computed(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Column(name) => name.table.is_some(),
        other => !matches!(other, ast::Expr::Literal(_) | ast::Expr::Param(_)),
    }
}

/// Binds a set operation with ORDER BY expressions: as a table in the FROM of a SELECT that sorts.
fn bind_ordered_set(ctx: &PlanContext<'_>, with: &CommonTables<'_>, query: &ast::Query) -> SqlResult<Query> {
    if query.locking.is_some() {
        return Err(SqlError::not_supported("FOR UPDATE of a set operation"));
    }
    for item in &query.order_by {
        let table = RefCell::new(None);
        let names_table = |part: &ast::Expr| match part {
            ast::Expr::Column(ast::ColumnRef { table: Some(name), .. }) => {
                table.replace(Some(name.clone()));
                true
            }
            _ => false,
        };
        item.expr.has_part(names_table);
        if let Some(table) = table.into_inner() {
            return Err(SqlError::table_in_order_of_union(&table));
        }
    }
    let mut body = query.body.clone();
    let calc_found_rows =
        first_select(&mut body).is_some_and(|select| std::mem::take(&mut select.options.calc_found_rows));
    let body = Box::new(ast::Query::of(body));
    let from = ast::TableRef::Derived { query: body, alias: String::new(), columns: Vec::new() };
    let mut select = ast::Select { from: Some(from), ..ast::Select::of(vec![ast::SelectItem::Wildcard]) };
    select.options.calc_found_rows = calc_found_rows;
    let mut bound = bind_select(ctx, with, None, &select, query)?;
    let names = bound.columns.iter().map(|column| column.name.clone());
    bound.columns = names.zip(&bound.types).map(|(name, ty)| expression_meta(name, ty)).collect();
    Ok(bound)
}

/// Returns the first SELECT of a body.
fn first_select(body: &mut ast::QueryBody) -> Option<&mut ast::Select> {
    match body {
        ast::QueryBody::Select(select) => Some(select),
        ast::QueryBody::SetOperation { first, .. } => first_select(first),
        ast::QueryBody::Nested(query) => first_select(&mut query.body),
        ast::QueryBody::Values(_) => None,
    }
}

/// Binds a query without its ORDER BY and LIMIT.
fn bind_body(
    ctx: &PlanContext<'_>,
    with: &CommonTables<'_>,
    outer: Option<&Binder<'_>>,
    body: &ast::QueryBody,
) -> SqlResult<Query> {
    ctx.enter()?;
    match body {
        ast::QueryBody::Select(select) => bind_select(ctx, with, outer, select, &bare()),
        ast::QueryBody::Nested(query) => {
            let inner = bind_query(ctx, with, outer, query)?;
            let (columns, types) = (inner.columns.clone(), inner.types.clone());
            Ok(Query::new(ctx, Body::Nested(Box::new(inner)), columns, types))
        }
        ast::QueryBody::SetOperation { first, rest } => bind_set_operation(ctx, with, outer, first, rest),
        ast::QueryBody::Values(rows) => bind_values(ctx, with, outer, rows),
    }
}

/// Returns the surroundings of a SELECT without ORDER BY, LIMIT or other clauses.
fn bare() -> ast::Query {
    ast::Query::of(ast::QueryBody::Values(Vec::new()))
}

/// Binds a chain of bodies; a single one is bound as itself.
pub(crate) fn bind_chain(
    ctx: &PlanContext<'_>,
    with: &CommonTables<'_>,
    first: &ast::QueryBody,
    rest: &[ast::SetOperand],
) -> SqlResult<Query> {
    match rest {
        [] => bind_body(ctx, with, None, first),
        rest => bind_set_operation(ctx, with, None, first, rest),
    }
}

fn bind_set_operation(
    ctx: &PlanContext<'_>,
    with: &CommonTables<'_>,
    outer: Option<&Binder<'_>>,
    first: &ast::QueryBody,
    rest: &[ast::SetOperand],
) -> SqlResult<Query> {
    let mut first = bind_body(ctx, with, outer, first)?;
    // SQL_CALC_FOUND_ROWS of the first SELECT counts the rows of all.
    let count_all = counts_all(&mut first).map(std::mem::take).unwrap_or_default();
    let mut operands = Vec::with_capacity(rest.len());
    for operand in rest {
        let query = bind_body(ctx, with, outer, &operand.body)?.not_counted()?;
        if query.types.len() != first.types.len() {
            return Err(wrong_columns());
        }
        operands.push(Operand { op: operand.op, all: operand.all, query });
    }
    let of_all = |n| {
        let sides = std::iter::once(&first).chain(operands.iter().map(|operand| &operand.query));
        union_type(&sides.map(|query| query.item(n)).collect::<Vec<Expr>>(), ctx.names.env())
    };
    let types = (0..first.types.len()).map(of_all).collect::<SqlResult<Vec<ExprType>>>()?;
    debug_assert!(first.columns.len() == types.len(), "a column of a set operation has no name");
    let names = first.columns.iter().map(|c| c.name.clone());
    let columns = names.zip(&types).map(|(name, ty)| joined_meta(name, ty)).collect();
    let is_plain = operands.iter().all(|operand| operand.op == ast::SetOperator::Union && operand.all);
    let body = Body::Set(Box::new(SetOperation { first, rest: operands }));
    let query = Query { count_all, ..Query::new(ctx, body, columns, types) };
    Ok(if is_plain { query } else { query.kept_in_table() })
}

/// Returns the flag that holds SQL_CALC_FOUND_ROWS, if it is set.
fn counts_all(query: &mut Query) -> Option<&mut bool> {
    if query.count_all {
        return Some(&mut query.count_all);
    }
    match &mut query.body {
        Body::Nested(inner) => counts_all(inner),
        Body::Select(_) | Body::Set(_) | Body::Values(_) => None,
    }
}

fn bind_values(
    ctx: &PlanContext<'_>,
    with: &CommonTables<'_>,
    outer: Option<&Binder<'_>>,
    rows: &[Vec<ast::Expr>],
) -> SqlResult<Query> {
    let scope = Scope::default();
    let mut binder = Binder::new(ctx, &scope, Clause::Select);
    (binder.with, binder.outer, binder.subqueries_allowed) = (Some(with), outer, true);
    let mut bound: Vec<Vec<Expr>> = Vec::new();
    for row in rows {
        bound.push(row.iter().map(|e| binder.expression(e)).collect::<SqlResult<_>>()?);
    }
    let first = bound.first().map_or(0, Vec::len);
    if bound.iter().any(|row| row.len() != first) {
        return Err(SqlError::value_counts_differ());
    }
    let column = |n: usize| bound.iter().map(|row| row[n].clone()).collect::<Vec<Expr>>();
    let types = (0..first).map(|n| union_type(&column(n), ctx.names.env()));
    let types = types.collect::<SqlResult<Vec<ExprType>>>()?;
    let names = rows.first().into_iter().flatten().map(|e| match e {
        ast::Expr::Literal(literal) => literal.value.to_text(),
        _ => "expr".to_owned(),
    });
    let columns = names.zip(&types).map(|(name, ty)| expression_meta(name, ty)).collect();
    Ok(Query::new(ctx, Body::Values(bound), columns, types))
}

/// Binds ORDER BY after a set operation: names and numbers of result columns.
fn order_over_result(
    ctx: &PlanContext<'_>,
    query: &Query,
    order_by: &[ast::OrderItem],
) -> SqlResult<Vec<Order>> {
    let mut order = Vec::new();
    for item in order_by {
        let n = match &item.expr {
            ast::Expr::Column(name) if name.table.is_none() => {
                let found = query.columns.iter().position(|c| same_name(&c.name, &name.name));
                Some(found.ok_or_else(|| unknown_column(name, Clause::OrderBy))?)
            }
            ast::Expr::Param(n) => param_position(ctx, *n, query.columns.len(), Clause::OrderBy)?,
            ast::Expr::Literal(literal) => item_position(ctx, literal, query.columns.len(), Clause::OrderBy)?,
            _ => return Err(SqlError::not_supported("ORDER BY an expression of a set operation")),
        };
        // A constant does not affect the order.
        let Some(n) = n else { continue };
        debug_assert!(n < query.types.len(), "ORDER BY {n} of {} columns", query.types.len());
        let key = SortKey { collation: query.types[n].collation, descending: item.descending };
        order.push(Order { by: OrderBy::Item(n), key });
    }
    Ok(order)
}

/// Returns error 4180 for WITH TIES without ORDER BY.
pub(crate) fn check_ties(query: &ast::Query) -> SqlResult<()> {
    match query.limit.as_ref().is_some_and(|limit| limit.with_ties) && query.order_by.is_empty() {
        true => Err(SqlError::ties_without_order()),
        false => Ok(()),
    }
}

/// Binds the LIMIT of a data change, which does not support ties.
pub fn bind_plain_limit(ctx: &PlanContext<'_>, limit: Option<&ast::Limit>) -> SqlResult<Limit> {
    match limit.is_some_and(|limit| limit.with_ties) {
        true => Err(SqlError::not_supported("WITH TIES here")),
        false => bind_limit(ctx, limit),
    }
}

/// Binds LIMIT and OFFSET.
pub(crate) fn bind_limit(ctx: &PlanContext<'_>, limit: Option<&ast::Limit>) -> SqlResult<Limit> {
    let Some(limit) = limit else { return Ok(Limit::default()) };
    let scope = Scope::default();
    let binder = Binder::new(ctx, &scope, Clause::Select);
    let offset = limit.offset.as_ref().map(|e| binder.limit(e)).transpose()?;
    Ok(Limit { count: Some(binder.limit(&limit.count)?), offset, with_ties: limit.with_ties })
}

fn wrong_columns() -> SqlError {
    SqlError::select_column_counts_differ()
}

impl Query {
    /// Creates a query without ORDER BY and LIMIT.
    pub(crate) fn new(
        ctx: &PlanContext<'_>,
        body: Body,
        columns: Vec<ColumnMeta>,
        types: Vec<ExprType>,
    ) -> Query {
        Query {
            body,
            order: Vec::new(),
            limit: Limit::default(),
            first_column: ctx.new_columns(types.len()),
            columns,
            types,
            locking: None,
            into: Vec::new(),
            count_all: false,
            apart: false,
            keeps_digits: false,
        }
    }

    /// Checks a query that is a part of the statement. Error 1234 if it counts rows for FOUND_ROWS().
    pub(crate) fn not_counted(mut self) -> SqlResult<Query> {
        match counts_all(&mut self) {
            None => Ok(self),
            Some(_) => Err(SqlError::cant_use_option_here("SQL_CALC_FOUND_ROWS")),
        }
    }

    /// Replaces the metadata with a temporary table's, because such a table holds the rows before they are
    /// sent.
    fn kept_in_table(mut self) -> Query {
        for (column, ty) in self.columns.iter_mut().zip(&self.types) {
            let name = column.name.clone();
            *column = ColumnMeta { org_name: name.clone(), ..field_meta(name, ty) };
        }
        self
    }

    /// Returns column n of the result: a constant as itself, because its digits count; otherwise only a typed
    /// column.
    fn item(&self, n: usize) -> Expr {
        match self.select() {
            Some(select) if matches!(select.items[n], Expr::Const(_)) => select.items[n].clone(),
            _ => Expr::column(self.column(n), self.types[n].clone(), ""),
        }
    }
}
