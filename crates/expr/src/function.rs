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
    DateTime,
    /// The call evaluated on the numbers of its arguments: LEAST and GREATEST of strings.
    OfArguments,
}

/// Logging of a statement that calls a function, under `binlog_format=STATEMENT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// As text: the result depends on the arguments and the time of the statement only.
    Text,
    /// As row events: the result is not known to be equal on all servers.
    Rows,
    /// As row events. MariaDB calls the statement unsafe, and session tracking reports it.
    Unsafe,
}

/// The clauses of a table's description that may call a function. Each excludes more than the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoredIn {
    Anywhere,
    /// DEFAULT and VIRTUAL columns without an index: the result depends on settings of the session.
    NotIndexed,
    /// DEFAULT. MariaDB also allows VIRTUAL columns.
    NotGenerated,
    OnlyDefault,
    Nowhere,
}

// The words of the columns in the tables of functions.
pub(crate) use Replication::{Rows, Text, Unsafe};
pub(crate) use StoredIn::{Anywhere, NotGenerated, NotIndexed, Nowhere, OnlyDefault};

/// A function.
pub(crate) struct Function {
    pub name: &'static str,
    pub args_min: usize,
    pub args_max: usize,
    pub typing: TypeFn,
    pub eval: EvalFn,
    pub stability: Stability,
    pub replication: Replication,
    stored_in: StoredIn,
    /// Number of arguments of the calls that `stored_in` applies to; `None` for all calls.
    stored_args: Option<usize>,
    pub notation: Notation,
    pub number: NumberOf,
}

/// `args_max` of functions with any number of arguments.
pub(crate) const ANY: usize = usize::MAX;

impl Function {
    /// Defines a function that depends on its arguments only.
    pub const fn new(
        name: &'static str,
        args_min: usize,
        args_max: usize,
        typing: TypeFn,
        eval: EvalFn,
        replication: Replication,
        stored_in: StoredIn,
    ) -> Function {
        Function {
            name,
            args_min,
            args_max,
            typing,
            eval,
            stability: Stability::Pure,
            replication,
            stored_in,
            stored_args: None,
            notation: Notation::Call,
            number: NumberOf::Text,
        }
    }

    /// Makes the function one that is constant during a statement.
    pub const fn of_statement(self) -> Function {
        Function { stability: Stability::Statement, ..self }
    }

    /// Makes the function one with a different result for each call, or with side effects.
    pub const fn volatile(self) -> Function {
        Function { stability: Stability::Volatile, ..self }
    }

    /// Changes the conversion of a text result to a number.
    pub const fn with_number(self, number: NumberOf) -> Function {
        Function { number, ..self }
    }

    /// Restricts `stored_in` to calls with this number of arguments. Other calls may be stored anywhere.
    pub const fn only_with(self, args: usize) -> Function {
        Function { stored_args: Some(args), ..self }
    }

    /// Returns the clauses that may contain a call with this number of arguments.
    pub fn stored_in(&self, args: usize) -> StoredIn {
        if self.stored_args.is_none_or(|only| only == args) { self.stored_in } else { Anywhere }
    }

    /// Defines an operator, which depends on its operands only. The parser checks the number of operands.
    pub const fn operator(name: &'static str, typing: TypeFn, eval: EvalFn) -> Function {
        let function = Function::new(name, 1, 2, typing, eval, Text, Anywhere);
        Function { notation: Notation::Operator, ..function }
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
