//! Aggregate functions: an [`Aggregate`] describes one, an [`AggregateState`] accumulates one group.

use cohort_types::{SqlResult, Value};

use crate::context::{EvalContext, SessionEnv};
use crate::expr::Expr;
use crate::expr_type::ExprType;

/// Which aggregate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateKind {
    /// `COUNT(*)`.
    CountStar,
    Count,
    Sum,
    Avg,
    Min,
    Max,
    BitAnd,
    BitOr,
    BitXor,
    StdPop,
    StdSamp,
    VarPop,
    VarSamp,
    GroupConcat,
    JsonArrayagg,
    JsonObjectagg,
}

impl AggregateKind {
    /// The aggregate of a name in any case; `None` when the name is not one. COUNT is `Count`.
    pub fn of_name(name: &str) -> Option<AggregateKind> {
        let _ = name;
        todo!()
    }
}

/// ALL or DISTINCT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Quantifier {
    #[default]
    All,
    Distinct,
}

/// ORDER BY inside GROUP_CONCAT.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderKey {
    pub expr: Expr,
    pub descending: bool,
}

/// What may be written inside the parentheses besides the arguments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AggregateOptions {
    pub quantifier: Quantifier,
    pub order: Vec<OrderKey>,
    /// Of GROUP_CONCAT; a comma when `None`.
    pub separator: Option<String>,
    /// LIMIT offset, count of GROUP_CONCAT.
    pub limit: Option<(u64, u64)>,
}

/// An aggregate function with its arguments, which are expressions over the rows of the group.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    pub kind: AggregateKind,
    pub args: Vec<Expr>,
    pub options: AggregateOptions,
    pub ty: ExprType,
}

/// The accumulator of one group.
#[derive(Clone, Debug)]
pub struct AggregateState {}

impl Aggregate {
    /// Checks the arguments and derives the type.
    pub fn new(
        kind: AggregateKind,
        args: Vec<Expr>,
        options: AggregateOptions,
        env: &SessionEnv,
    ) -> SqlResult<Aggregate> {
        let _ = (kind, args, options, env);
        todo!()
    }

    /// An empty group.
    pub fn new_state(&self) -> AggregateState {
        todo!()
    }

    /// Takes a row of the group in.
    pub fn add(&self, state: &mut AggregateState, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<()> {
        let _ = (state, row, ctx);
        todo!()
    }

    /// The group's answer.
    pub fn finish(&self, state: AggregateState, ctx: &EvalContext<'_>) -> SqlResult<Value> {
        let _ = (state, ctx);
        todo!()
    }
}
