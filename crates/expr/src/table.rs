//! The function table: what each function is called, how many arguments it takes, its type, its evaluation.

use std::sync::Arc;

use cohort_types::{SqlResult, Value};

use crate::build::TrimSide;
use crate::context::{EvalContext, SessionEnv, VariableScope};
use crate::expr::{Call, Expr, IntervalUnit};
use crate::expr_type::ExprType;

/// Computes a call for a row.
pub(crate) type EvalFn = fn(&Call, &[Value], &EvalContext<'_>) -> SqlResult<Value>;

/// Derives a call's type; may rewrite the arguments.
pub(crate) type TypeFn = fn(&mut Vec<Expr>, &SessionEnv) -> SqlResult<ExprType>;

/// How long an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stability {
    /// Depends on the arguments only.
    Pure,
    /// Fixed while a statement runs.
    Statement,
    /// New at every call, or with an effect.
    Volatile,
}

/// One function.
pub(crate) struct Function {
    pub name: &'static str,
    pub args_min: usize,
    pub args_max: usize,
    pub typing: TypeFn,
    pub eval: EvalFn,
    pub stability: Stability,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// What a call knows besides its arguments.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Extra {
    #[default]
    None,
    Unit(IntervalUnit),
    Side(TrimSide),
    Name(Arc<str>),
    Variable(VariableScope, Arc<str>),
}
