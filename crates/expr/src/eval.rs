//! Evaluation of the nodes.

use std::borrow::Cow;

use cohort_types::{SqlResult, Value};

use crate::context::EvalContext;
use crate::expr::Expr;

impl Expr {
    /// The expression's value for a row. Columns, constants and parameters come back borrowed. A TIMESTAMP column
    /// comes back as DATETIME in the session's time zone.
    pub fn eval<'a>(&'a self, row: &'a [Value], ctx: &'a EvalContext<'_>) -> SqlResult<Cow<'a, Value>> {
        let _ = (row, ctx);
        todo!()
    }

    /// The expression as a condition: `None` is UNKNOWN.
    pub fn eval_bool(&self, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Option<bool>> {
        let _ = (row, ctx);
        todo!()
    }

    /// Whether a row passes the condition: UNKNOWN does not.
    pub fn passes(&self, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<bool> {
        Ok(self.eval_bool(row, ctx)? == Some(true))
    }
}
