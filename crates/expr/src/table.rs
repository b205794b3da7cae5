//! The function table: what each function is called, how many arguments it takes, its type, its evaluation.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use cohort_types::{IntervalUnit, SqlResult, Value};

use crate::args::Args;
use crate::build::TrimSide;
use crate::context::{SessionEnv, VariableScope};
use crate::expr::Expr;
use crate::expr_type::ExprType;
use crate::full_text::Match;

/// Computes a call for a row.
pub(crate) type EvalFn = for<'a> fn(Args<'a>) -> SqlResult<Value>;

/// Derives a call's type; may rewrite the arguments.
pub(crate) type TypeFn = fn(&mut [Expr], &SessionEnv) -> SqlResult<ExprType>;

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

/// How a call is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// `name(a, b)`.
    Call,
    /// `a name b`, or `name a` with one argument.
    Operator,
}

/// What number the text of an answer counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberOf {
    /// The one it starts with.
    Text,
    /// A JSON value: that of a string's text, 1 for true, 0 for what is no scalar.
    Json,
    /// A date or time: its digits.
    Moment,
    /// That of the call over its arguments' numbers: LEAST and GREATEST of strings.
    OfArguments,
}

/// One function.
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

/// `args_max` of functions with open ends.
pub(crate) const ANY: usize = usize::MAX;

impl Function {
    /// A function of its arguments alone.
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

    /// A function that is fixed while a statement runs.
    pub const fn of_statement(
        name: &'static str,
        args_min: usize,
        args_max: usize,
        typing: TypeFn,
        eval: EvalFn,
    ) -> Function {
        Function { stability: Stability::Statement, ..Function::pure(name, args_min, args_max, typing, eval) }
    }

    /// A function that answers anew each time, or has an effect.
    pub const fn volatile(
        name: &'static str,
        args_min: usize,
        args_max: usize,
        typing: TypeFn,
        eval: EvalFn,
    ) -> Function {
        Function { stability: Stability::Volatile, ..Function::pure(name, args_min, args_max, typing, eval) }
    }

    /// The same, whose text counts as a number in another way.
    pub const fn with_number(self, number: NumberOf) -> Function {
        Function { number, ..self }
    }

    /// An operator; its number of arguments is the parser's business.
    pub const fn operator(name: &'static str, typing: TypeFn, eval: EvalFn) -> Function {
        Function { notation: Notation::Operator, ..Function::pure(name, 1, 2, typing, eval) }
    }
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
    Match(Arc<Match>),
}

/// The families.
static FAMILIES: &[&[Function]] = &[
    crate::arith::FUNCTIONS,
    crate::bits::FUNCTIONS,
    crate::control::FUNCTIONS,
    crate::math::FUNCTIONS,
    crate::text_size::FUNCTIONS,
    crate::text_cut::FUNCTIONS,
    crate::text_build::FUNCTIONS,
    crate::text_code::FUNCTIONS,
    crate::regex::FUNCTIONS,
    crate::hash::FUNCTIONS,
    crate::info::FUNCTIONS,
    crate::replication::FUNCTIONS,
    crate::load_file::FUNCTIONS,
    crate::date_now::FUNCTIONS,
    crate::date_part::FUNCTIONS,
    crate::date_calc::FUNCTIONS,
    crate::date_format::FUNCTIONS,
    crate::to_char::FUNCTIONS,
    crate::date_parse::FUNCTIONS,
    crate::json_read::FUNCTIONS,
    crate::json_write::FUNCTIONS,
    crate::json_search::FUNCTIONS,
    crate::net::FUNCTIONS,
    crate::text_zip::FUNCTIONS,
    crate::text_secret::FUNCTIONS,
    crate::text_weight::FUNCTIONS,
    crate::text_oracle::FUNCTIONS,
    crate::sformat::FUNCTIONS,
    crate::dynamic_columns::FUNCTIONS,
    crate::xml_functions::FUNCTIONS,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static Function>> =
    LazyLock::new(|| FAMILIES.iter().flat_map(|family| family.iter()).map(|f| (f.name, f)).collect());

/// All functions, in no order: name in lower case, fewest and most arguments.
pub fn functions() -> impl Iterator<Item = (&'static str, usize, usize)> {
    BY_NAME.values().map(|function| (function.name, function.args_min, function.args_max))
}

/// The function of a name in lower case.
pub(crate) fn lookup(name: &str) -> Option<&'static Function> {
    BY_NAME.get(name).copied()
}
