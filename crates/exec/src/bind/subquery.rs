//! Subqueries in expressions. Those that depend on nothing outside run while the statement is planned, and
//! their result becomes a constant of a plan that is used once; those that do depend are refused.

use cohort_expr::{Expr, ExprType, build_binary, in_list, row};
use cohort_sql::ast;
use cohort_types::{ErrorCode, SqlError, SqlResult, Value};

use crate::bind::convert;
use crate::bind::expr::{Binder, not_supported};

impl Binder<'_> {
    fn run_subquery(&self, query: &ast::Query, rows_max: u64) -> SqlResult<(Vec<Vec<Value>>, Vec<ExprType>)> {
        let Some(runner) = self.ctx.subqueries else { return Err(not_supported("subqueries here")) };
        self.ctx.reusable.set(false);
        runner.run(query, rows_max).map_err(|e| self.correlated(e))
    }

    /// A column that only the query around has: the subquery is correlated.
    fn correlated(&self, error: SqlError) -> SqlError {
        if error.code == ErrorCode::BadField && self.names_column_of_scope(&error.message) {
            return not_supported("correlated subqueries");
        }
        error
    }

    fn names_column_of_scope(&self, message: &str) -> bool {
        let Some(name) = message.split('\'').nth(1) else { return false };
        let mut parts = name.rsplit('.');
        let column = parts.next().unwrap_or_default().to_owned();
        let name = ast::ColumnRef {
            name: column,
            table: parts.next().map(Into::into),
            db: parts.next().map(Into::into),
        };
        !matches!(self.scope.find(&name, self.clause), Ok(None))
    }

    pub(super) fn scalar_subquery(&self, query: &ast::Query) -> SqlResult<Expr> {
        let (rows, types) = self.run_subquery(query, 2)?;
        if rows.len() > 1 {
            return Err(SqlError::new(ErrorCode::SubqueryNo1Row, "Subquery returns more than 1 row"));
        }
        let values = rows.into_iter().next().unwrap_or_else(|| vec![Value::Null; types.len()]);
        Ok(row(constants(values, &types)))
    }

    pub(super) fn exists(&self, query: &ast::Query) -> SqlResult<Expr> {
        let (rows, _) = self.run_subquery(query, 1)?;
        Ok(Expr::constant(Value::bool(!rows.is_empty())))
    }

    pub(super) fn in_query(&self, operand: Expr, negated: bool, query: &ast::Query) -> SqlResult<Expr> {
        let (rows, types) = self.run_subquery(query, u64::MAX)?;
        let width = if let Expr::Row(items) = &operand { items.len() } else { 1 };
        if types.len() != width {
            let text = format!("Operand should contain {width} column(s)");
            return Err(SqlError::new(ErrorCode::OperandColumns, text));
        }
        if rows.is_empty() {
            return Ok(Expr::constant(Value::bool(negated)));
        }
        let list = rows.into_iter().map(|values| row(constants(values, &types))).collect();
        in_list(operand, list, negated)
    }

    pub(super) fn quantified(
        &self,
        operand: Expr,
        op: ast::BinaryOp,
        quantifier: ast::Quantifier,
        query: &ast::Query,
    ) -> SqlResult<Expr> {
        match (op, quantifier) {
            (ast::BinaryOp::Equal, ast::Quantifier::Any) => return self.in_query(operand, false, query),
            (ast::BinaryOp::NotEqual, ast::Quantifier::All) => return self.in_query(operand, true, query),
            _ => {}
        }
        let (rows, types) = self.run_subquery(query, u64::MAX)?;
        if types.len() != 1 || matches!(operand, Expr::Row(_)) {
            return Err(SqlError::new(ErrorCode::OperandColumns, "Operand should contain 1 column(s)"));
        }
        let mut tests = Vec::with_capacity(rows.len());
        for values in rows {
            let right = row(constants(values, &types));
            tests.push(build_binary(convert::binary_op(op), operand.clone(), right, &self.ctx.session.env)?);
        }
        Ok(match quantifier {
            ast::Quantifier::Any => cohort_expr::or(tests),
            ast::Quantifier::All => cohort_expr::and(tests),
        })
    }
}

fn constants(values: Vec<Value>, types: &[ExprType]) -> Vec<Expr> {
    values.into_iter().zip(types).map(|(value, ty)| Expr::typed_constant(value, ty.clone())).collect()
}
