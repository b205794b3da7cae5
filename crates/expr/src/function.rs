//! The description of a function: name, number of arguments, typing and evaluation.

use std::sync::Arc;

use cohort_types::{IntervalUnit, SqlResult, Value};

use crate::args::Args;
use crate::context::{SessionEnv, VariableScope};
use crate::expr::Expr;
use crate::expr_type::ExprType;
use crate::search::Match;

/// Evaluates a call for a row.
pub(crate) type EvalFn = for<'a> fn(Args<'a>) -> SqlResult<Value>;

/// Derives the type of a call; may rewrite its arguments.
pub(crate) type TypeFn = fn(&mut [Expr], &SessionEnv) -> SqlResult<ExprType>;

/// Validity of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stability {
    /// Depends on the arguments only.
    Pure,
    /// Constant during a statement.
    Statement,
    /// May differ between calls, or the call has side effects.
    Volatile,
}

/// Notation of a call in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// `name(a, b)`.
    Call,
    /// `a name b`, or `name a` with one argument.
    Operator,
}

/// Conversion of a text result to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberOf {
    /// The number at the start of the text.
    Text,
    /// The number of a JSON value: that of a string's text, 1 for true, 0 for values that are not scalars.
    Json,
    /// The digits of a date or time.
    Moment,
    /// The call evaluated on the numbers of its arguments: LEAST and GREATEST of strings.
    OfArguments,
}

/// A function.
pub(crate) struct Function {
    pub name: &'static str,
    pub args_min: usize,
    pub args_max: usize,
    pub typing: TypeFn,
    pub eval: EvalFn,
    pub stability: Stability,
    pub notation: Notation,
    pub number: NumberOf,
}

/// `args_max` of functions with any number of arguments.
pub(crate) const ANY: usize = usize::MAX;

impl Function {
    /// Defines a function that depends on its arguments only.
    pub const fn pure(
        name: &'static str,
        args_min: usize,
        args_max: usize,
        typing: TypeFn,
        eval: EvalFn,
    ) -> Function {
        Function {
            name,
            args_min,
            args_max,
            typing,
            eval,
            stability: Stability::Pure,
            notation: Notation::Call,
            number: NumberOf::Text,
        }
    }

    /// Defines a function that is constant during a statement.
    pub const fn of_statement(
        name: &'static str,
        args_min: usize,
        args_max: usize,
        typing: TypeFn,
        eval: EvalFn,
    ) -> Function {
        Function { stability: Stability::Statement, ..Function::pure(name, args_min, args_max, typing, eval) }
    }

    /// Defines a function with a different result for each call, or with side effects.
    pub const fn volatile(
        name: &'static str,
        args_min: usize,
        args_max: usize,
        typing: TypeFn,
        eval: EvalFn,
    ) -> Function {
        Function { stability: Stability::Volatile, ..Function::pure(name, args_min, args_max, typing, eval) }
    }

    /// Changes the conversion of a text result to a number.
    pub const fn with_number(self, number: NumberOf) -> Function {
        Function { number, ..self }
    }

    /// Defines an operator; the parser checks its number of arguments.
    pub const fn operator(name: &'static str, typing: TypeFn, eval: EvalFn) -> Function {
        Function { notation: Notation::Operator, ..Function::pure(name, 1, 2, typing, eval) }
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Properties of a call in addition to its arguments.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Extra {
    #[default]
    None,
    Unit(IntervalUnit),
    Side(TrimSide),
    Name(Arc<str>),
    Variable(VariableScope, Arc<str>),
    Match(Arc<Match>),
}

/// Sides that TRIM removes characters from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrimSide {
    Both,
    Leading,
    Trailing,
}
