//! Binds subqueries in expressions. A bound subquery is stored with the statement's subqueries; the
//! expression holds its number.

use cohort_expr::{CompareOp, Expr, ExprType, Subquery, SubqueryTest, TypeClass, compare_exprs, row};
use cohort_sql::ast;
use cohort_types::{SqlError, SqlResult, Value};

use crate::bind::convert;
use crate::bind::expr::Binder;
use crate::block::{Body, Limit, Query};
use crate::query::bind_query;

impl Binder<'_> {
    /// Binds a subquery. Returns its number and the types of its columns.
    fn subquery(&self, query: &ast::Query) -> SqlResult<(usize, Vec<ExprType>)> {
        if !self.subqueries_allowed {
            return Err(SqlError::not_supported("subqueries here"));
        }
        let with = self.with.cloned().unwrap_or_default();
        let bound = bind_query(self.ctx, &with, Some(self), query)?.not_counted()?;
        let types = bound.types.clone();
        debug_assert!(bound.into.is_empty(), "INTO of a subquery would assign once for each row");
        let mut known = self.ctx.subqueries.borrow_mut();
        known.push(bound);
        Ok((known.len() - 1, types))
    }

    pub(super) fn scalar_subquery(&self, query: &ast::Query) -> SqlResult<Expr> {
        let (id, types) = self.subquery(query)?;
        self.ctx.subqueries.borrow_mut()[id].keep_digits();
        let value = |(n, ty): (usize, ExprType)| {
            expression(id, SubqueryTest::Column(n), ty.taken().with_nullable(true))
        };
        Ok(row(types.into_iter().enumerate().map(value).collect()))
    }

    pub(super) fn exists(&self, query: &ast::Query) -> SqlResult<Expr> {
        let (id, _) = self.subquery(query)?;
        only_existence(&mut self.ctx.subqueries.borrow_mut()[id]);
        Ok(expression(id, SubqueryTest::Exists, ExprType::boolean().with_nullable(false)))
    }

    pub(super) fn in_query(&self, operand: Expr, negated: bool, query: &ast::Query) -> SqlResult<Expr> {
        let (op, quantifier) = match negated {
            false => (ast::BinaryOp::Equal, ast::Quantifier::Any),
            true => (ast::BinaryOp::NotEqual, ast::Quantifier::All),
        };
        self.quantified(operand, op, quantifier, query)
    }

    pub(super) fn quantified(
        &self,
        operand: Expr,
        op: ast::BinaryOp,
        quantifier: ast::Quantifier,
        query: &ast::Query,
    ) -> SqlResult<Expr> {
        if query.limit.is_some() {
            return Err(SqlError::not_supported("LIMIT & IN/ALL/ANY/SOME subquery"));
        }
        let all = quantifier == ast::Quantifier::All;
        let op = convert::compare_op(op);
        let is_membership = matches!((op, all), (CompareOp::Eq, false) | (CompareOp::Ne, true));
        let (id, types) = self.subquery(query)?;
        let width = if let Expr::Row(items) = &operand { items.len() } else { 1 };
        if types.len() != width || (width > 1 && !is_membership) {
            let width = if is_membership { width } else { 1 };
            return Err(SqlError::operand_columns(width));
        }
        let right = types.iter().enumerate().map(|(n, ty)| Expr::column(n, ty.clone(), "")).collect();
        let nullable = types.iter().any(|ty| ty.nullable) || operand.ty().nullable || width > 1;
        let Expr::Compare(compared) = compare_exprs(op, operand, row(right))? else {
            return Err(SqlError::not_supported("this comparison with a subquery"));
        };
        let made_ready = match compared.right {
            Expr::Row(items) => items,
            item => vec![item],
        };
        self.make_ready(id, made_ready)?;
        if !are_exact(&compared.left, &types) {
            self.ctx.subqueries.borrow_mut()[id].keep_digits();
        }
        let test = SubqueryTest::Quantified { operand: compared.left, op, all, how: compared.how };
        let reads_table = self.ctx.subqueries.borrow()[id].select().is_none_or(|s| s.from.is_some());
        let ty = match reads_table && is_membership && !all {
            // MariaDB reports the display width of BIGINT for IN.
            true => ExprType { length: 21, ..ExprType::boolean() },
            false => ExprType::boolean().with_nullable(nullable),
        };
        Ok(expression(id, test, ty))
    }
}

impl Binder<'_> {
    /// Converts the items of a subquery as the comparison requires: a year compared with a date becomes a
    /// date.
    fn make_ready(&self, id: usize, items: Vec<Expr>) -> SqlResult<()> {
        let mut known = self.ctx.subqueries.borrow_mut();
        let query = &mut known[id];
        let Body::Select(select) = &mut query.body else { return Ok(()) };
        debug_assert_eq!(
            items.len(),
            select.items.len(),
            "a subquery is compared with a row of another width"
        );
        for (n, ready) in items.into_iter().enumerate() {
            if matches!(ready, Expr::Column(_)) {
                continue;
            }
            let item = select.items[n].clone();
            let ready = ready.transform(&mut |node| {
                Ok(match node {
                    Expr::Column(column) if column.ordinal == n => item.clone(),
                    other => other,
                })
            })?;
            debug_assert!(!matches!(ready, Expr::Row(_)), "a column of a subquery becomes a row");
            query.types[n] = ready.ty();
            select.items[n] = ready;
        }
        Ok(())
    }
}

/// Returns true if operand and columns compare as exact numbers, with the digits of their types.
fn are_exact(operand: &Expr, types: &[ExprType]) -> bool {
    let parts = if let Expr::Row(parts) = operand { parts.as_slice() } else { std::slice::from_ref(operand) };
    let is_exact = |ty: &ExprType| matches!(ty.class(), TypeClass::Int | TypeClass::Decimal);
    parts.iter().zip(types).all(|(part, ty)| is_exact(&part.ty()) && is_exact(ty))
}

/// Drops everything that does not affect whether there is a row. MariaDB does not evaluate the items of
/// EXISTS either.
fn only_existence(query: &mut Query) {
    let (count, offset) = (&query.limit.count, &query.limit.offset);
    let is_some_rows = |count: &Expr| match count {
        Expr::Const(node) => matches!(node.value, Value::Int(1..) | Value::UInt(1..)),
        _ => false,
    };
    if offset.is_some() || !count.as_ref().is_none_or(is_some_rows) || query.count_all {
        return;
    }
    let Body::Select(select) = &mut query.body else { return };
    if select.group.is_some() || select.having.is_some() || !select.windows.is_empty() {
        return;
    }
    let one = Expr::constant(Value::Int(1));
    query.columns.truncate(1);
    query.types = vec![one.ty()];
    select.items = vec![one];
    select.distinct = false;
    query.order.clear();
    query.limit = Limit::default();
}

fn expression(id: usize, test: SubqueryTest, ty: ExprType) -> Expr {
    Expr::Subquery(Box::new(Subquery { id, test, ty, outer: Vec::new(), is_volatile: false }))
}
