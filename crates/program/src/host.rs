//! [`Host`]: the interface to the session, or to the running statement, in which a program runs.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cohort_expr::ExprType;
use cohort_plan::{Names, ParamSource, Parameter, Variables};
use cohort_session::{Diagnostics, SessionState};
use cohort_sql::ast::{ObjectName, Statement, Variable};
use cohort_types::{ColumnType, SqlError, SqlResult, Value};

/// A statement of a body, bound to the places of its variables.
pub struct BodyStatement {
    pub statement: Statement,
    /// The text, with `?` in place of variables, and the positions of these.
    pub text: Box<[u8]>,
    pub param_at: Box<[u32]>,
    /// For each parameter, the place of its variable and its declared type.
    pub places: Box<[u32]>,
    pub types: Box<[ExprType]>,
    /// The places that it must not assign.
    fixed: Box<[u32]>,
    plan: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
    known: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl BodyStatement {
    pub(crate) fn new(
        statement: Statement,
        (text, param_at): (Vec<u8>, Vec<u32>),
        (places, types, fixed): (Vec<u32>, Vec<ExprType>, Vec<u32>),
    ) -> BodyStatement {
        BodyStatement {
            statement,
            text: text.into(),
            param_at: param_at.into(),
            places: places.into(),
            types: types.into(),
            fixed: fixed.into(),
            plan: Mutex::new(None),
            known: OnceLock::new(),
        }
    }

    /// Returns another statement with the variables of this one, for a part of it.
    pub fn with(&self, statement: Statement) -> BodyStatement {
        BodyStatement {
            statement,
            text: self.text.clone(),
            param_at: self.param_at.clone(),
            places: self.places.clone(),
            types: self.types.clone(),
            fixed: self.fixed.clone(),
            plan: Mutex::new(None),
            known: OnceLock::new(),
        }
    }

    /// Returns the variables that are its parameters.
    pub fn source(&self) -> ParamSource<'_> {
        ParamSource::Variables(Variables { types: &self.types, places: &self.places, fixed: &self.fixed })
    }

    /// Returns what the host has kept with the statement: its plan.
    pub fn kept<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let kept = self.plan.lock().unwrap_or_else(PoisonError::into_inner).clone();
        kept.and_then(|kept| kept.downcast().ok())
    }

    /// Returns what the host knows about the statement for good: its digest. `make` is called once.
    pub fn known<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        let known = Arc::clone(self.known.get_or_init(|| make() as _));
        known.downcast().expect("a host keeps values of one type")
    }

    /// Keeps a plan with the statement.
    pub fn keep(&self, plan: Arc<dyn Any + Send + Sync>) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = Some(plan);
    }

    /// Returns the values of the parameters, out of the places of a frame.
    pub fn params(&self, places: &[Value]) -> Vec<Value> {
        self.places.iter().map(|place| places[*place as usize].clone()).collect()
    }
}

/// A column of a query's result.
#[derive(Clone, Debug)]
pub struct ResultColumn {
    pub name: String,
    pub ty: ColumnType,
}

/// The use of a query's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsFor {
    /// All rows.
    Cursor,
    /// All rows of WHERE of SHOW, whose functions may assign OUT arguments.
    Listing,
    /// The first row, as the value of an expression. With `is_strict`, the first warning is the error.
    Value { is_strict: bool },
}

impl RowsFor {
    /// Returns the maximum number of rows.
    pub fn rows_max(self) -> Option<u64> {
        match self {
            RowsFor::Cursor | RowsFor::Listing => None,
            RowsFor::Value { .. } => Some(1),
        }
    }

    /// Returns whether a warning is an error.
    pub fn is_strict(self) -> bool {
        self == RowsFor::Value { is_strict: true }
    }
}

/// The rows of a cursor or of an expression's query, in order.
pub trait QueryRows: Send {
    /// Returns the next row, or `None` after the last.
    fn row(&self) -> Option<&[Value]>;
    /// Goes on to the row after the next one.
    fn advance(&mut self);
    /// Returns the next row, or `None` after the last, and goes on.
    fn next_row(&mut self) -> SqlResult<Option<Vec<Value>>>;
    /// Returns the number of columns.
    fn columns(&self) -> usize;
}

/// The session or statement in which a program runs. A procedure's statements run one after the other in the
/// session. Those of functions and triggers run inside the calling statement.
pub trait Host {
    /// Returns the state of the session. Its settings are those of the program while it runs.
    fn session(&self) -> &SessionState;

    /// Runs `work` with the names that the program's expressions may refer to.
    fn with_names(&mut self, work: &mut dyn FnMut(&dyn Names) -> SqlResult<()>) -> SqlResult<()>;

    /// Returns the conditions of the last statement.
    fn diagnostics(&mut self) -> &mut Diagnostics;

    /// Fails if the program was killed or has timed out. Lets the time of NOW() pass, unless the program runs
    /// inside a statement.
    fn check_interrupt(&mut self) -> SqlResult<()>;

    /// Returns whether a handler may handle the error. KILL and time limits pass every handler. So does an
    /// error inside a statement that has rolled back the transaction.
    fn may_handle(&self, error: &SqlError) -> bool;

    /// Runs a statement and sends its rows to the client. Its conditions are in the diagnostics area
    /// afterwards, except an error, which is returned. Returns the values for local variables
    /// (`StatementState::assigned`). SIGNAL, RESIGNAL and CALL never reach it. The values that functions have
    /// returned in their parameters are in `StatementState::out`.
    fn run(&mut self, statement: &BodyStatement, params: &[Value]) -> SqlResult<Vec<(Variable, Value)>>;

    /// Runs a query whose rows the program reads. Leaves `StatementState::out` as [`Host::run`] does.
    fn query(
        &mut self,
        query: &BodyStatement,
        params: &[Value],
        rows_for: RowsFor,
    ) -> SqlResult<Box<dyn QueryRows>>;

    /// Returns the columns of a query's result.
    fn describe(&mut self, query: &BodyStatement) -> SqlResult<Vec<ResultColumn>>;

    /// Returns the columns of a table, for ROW TYPE OF, or at least the given one, for TYPE OF. Errors 1142
    /// and 1143 without SELECT on them.
    fn columns_of(&mut self, table: &ObjectName, column: Option<&str>) -> SqlResult<Vec<ResultColumn>>;

    /// Returns the parameters of a procedure.
    fn parameters(&mut self, procedure: &ObjectName) -> SqlResult<Vec<Parameter>>;

    /// Calls a procedure with the values of its arguments, that of an OUT argument being NULL. `is_variable`
    /// says which arguments are variables, which OUT and INOUT parameters need (error 1414). Returns the
    /// values of OUT and INOUT parameters, and `None` for the others.
    fn call(
        &mut self,
        procedure: &ObjectName,
        args: Vec<Value>,
        is_variable: &[bool],
    ) -> SqlResult<Vec<Option<Value>>>;
}
