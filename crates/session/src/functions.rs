//! Functions that run statements ([`StatementFunctions`]).

use std::sync::Arc;

use cohort_catalog::{AccountName, Catalog, Routine};
use cohort_expr::ExprType;
use cohort_plan::Parameter;
use cohort_types::{SqlResult, Value};

use crate::roots::{ReachedNames, Roots};
use crate::session_state::SessionState;
use crate::statement::StatementContext;

/// A function that an expression calls.
pub struct FoundFunction {
    /// Its schema and name, as plans show them.
    pub schema: Arc<str>,
    pub name: Arc<str>,
    pub ty: ExprType,
    pub function: Box<dyn StatementFunction>,
    /// The stored function, for privileges and locks.
    pub routine: Option<Arc<Routine>>,
    /// The parameters. Empty if they are not known.
    pub parameters: Vec<Parameter>,
    /// Whether each parameter is OUT or INOUT. Empty if none is.
    pub is_out: Vec<bool>,
}

/// A function that runs statements.
pub trait StatementFunction: Send + Sync {
    /// Runs the function within the transaction of the calling statement, and within that statement.
    fn call(&self, args: &[Value], ctx: &mut StatementContext<'_>) -> SqlResult<Returned>;

    /// Runs a function that the statement has called before and that uses the values of its arguments alone.
    /// Returns `None` without any effect if [`StatementFunction::call`] must run it. `check` looks at KILL
    /// and the time limit.
    fn call_again(
        &self,
        args: &[Value],
        session: &SessionState,
        check: &mut dyn FnMut() -> SqlResult<()>,
    ) -> SqlResult<Option<Value>> {
        let _ = (args, session, check);
        Ok(None)
    }
}

/// The result of a function.
pub struct Returned {
    pub value: Value,
    /// The values of OUT and INOUT parameters; `None` for the others. Empty if there are none.
    pub out: Vec<Option<Value>>,
}

impl From<Value> for Returned {
    fn from(value: Value) -> Returned {
        Returned { value, out: Vec::new() }
    }
}

/// The functions that run statements.
///
/// An expression with a call of one is planned and evaluated like one with a subquery: not within a scan,
/// not vectorized, not when the statement is planned. Generated columns, defaults and CHECK constraints
/// contain no such call.
pub trait StatementFunctions: Send + Sync {
    /// Returns a function of a schema, or `None` if there is no such function. Fails if the number of
    /// arguments is wrong. `definer` is that of the view that calls the function.
    fn find(
        &self,
        of: (&Catalog, &SessionState),
        name: (&str, &str),
        args: usize,
        definer: Option<AccountName>,
    ) -> SqlResult<Option<FoundFunction>>;

    /// Returns the names that the programs of a statement may use.
    fn reach(&self, of: (&Catalog, &SessionState), roots: &Roots) -> ReachedNames {
        let _ = (of, roots);
        ReachedNames::default()
    }
}
