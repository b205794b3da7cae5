//! Functions that run statements ([`StatementFunctions`]).

use std::sync::Arc;

use cohort_catalog::{Catalog, Routine};
use cohort_expr::ExprType;
use cohort_types::{SqlResult, Value};

use crate::session_state::SessionState;
use crate::statement::StatementContext;

/// A function that an expression calls.
pub struct FoundFunction {
    /// Its schema and name, as it is called later.
    pub schema: Arc<str>,
    pub name: Arc<str>,
    pub ty: ExprType,
    /// The stored function, for privileges and locks.
    pub routine: Option<Arc<Routine>>,
}

/// The functions that run statements.
///
/// An expression with a call of one is planned and evaluated like one with a subquery: not within a scan,
/// not vectorized, not when the statement is planned. Generated columns, defaults and CHECK constraints
/// contain no such call.
pub trait StatementFunctions: Send + Sync {
    /// Returns a function of a schema, or `None` if there is no such function. Fails if the number of
    /// arguments is wrong.
    fn find(
        &self,
        of: (&Catalog, &SessionState),
        schema: &str,
        name: &str,
        args: usize,
    ) -> SqlResult<Option<FoundFunction>>;

    /// Runs a function within the transaction of the calling statement, and within that statement.
    fn call(
        &self,
        schema: &str,
        name: &str,
        args: &[Value],
        ctx: &mut StatementContext<'_>,
    ) -> SqlResult<Value>;
}
