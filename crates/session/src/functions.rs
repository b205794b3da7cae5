//! Functions that run statements ([`StatementFunctions`]).

use cohort_expr::ExprType;
use cohort_types::{SqlResult, Value};

use crate::statement::StatementContext;

/// The functions that run statements, by their names in lower case.
///
/// An expression with a call of one is planned and evaluated like one with a subquery: not within a scan,
/// not vectorized, not when the statement is planned. Generated columns, defaults and CHECK constraints
/// contain no such call.
pub trait StatementFunctions: Send + Sync {
    /// Returns the type of a function's result, or `None` if there is no such function. Fails if
    /// the number of arguments is wrong.
    fn result_type(&self, name: &str, args: usize) -> SqlResult<Option<ExprType>>;

    /// Runs a function within the transaction of the calling statement, and within that statement.
    fn call(&self, name: &str, args: &[Value], ctx: &mut StatementContext<'_>) -> SqlResult<Value>;
}
