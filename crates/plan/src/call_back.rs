//! Parts of statements that call back: subqueries, and functions that run statements.

use cohort_expr::is_native;
use cohort_sql::ast;
use cohort_types::{SqlError, SqlResult};

/// Returns whether an expression itself contains a query, or calls a function that runs statements: one that
/// is not the server's own.
pub fn is_call_back(part: &ast::Expr) -> bool {
    match part {
        ast::Expr::Function { name, .. } => !is_native(name),
        ast::Expr::StoredFunction { .. } => true,
        part => part.is_subquery(),
    }
}

/// Returns whether an expression or one of its parts calls back.
pub fn calls_back(expr: &ast::Expr) -> bool {
    expr.has_part(is_call_back)
}

/// Checks an expression that is no part of a query. Outside of its subqueries it has neither aggregates
/// (error 1111) nor window functions (error 4015).
pub fn check_alone(expr: &ast::Expr) -> SqlResult<()> {
    match () {
        () if expr.has_part(|part| matches!(part, ast::Expr::Window(_))) => {
            Err(SqlError::window_function_misplaced())
        }
        () if expr.has_part(|part| matches!(part, ast::Expr::Aggregate(_))) => {
            Err(SqlError::invalid_group_function())
        }
        () => Ok(()),
    }
}
