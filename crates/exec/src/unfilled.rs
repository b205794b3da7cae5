//! Parameters without a value: DEFAULT and IGNORE in place of a `?`.
//!
//! An execution with such parameters runs a variant of the statement: DEFAULT replaces the `?`, or, if an
//! UPDATE ignores a column, the column itself does. A `?` may have no value only where it is the whole
//! assigned expression.

use cohort_protocol::Parameter;
use cohort_sql::ast::{Assignment, Expr, InsertSource, Statement};
use cohort_types::{SqlError, SqlResult, Value};

/// The substitutes for values: one entry per `?`, `None` for a `?` that has a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfilled(Vec<Option<Gap>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    Default,
    Ignore,
}

/// Splits parameters into values and substitutes. A parameter without a value becomes NULL.
pub(crate) fn split(params: Vec<Parameter>) -> (Vec<Value>, Option<Unfilled>) {
    let gap = |param: &Parameter| match param {
        Parameter::Value(_) => None,
        Parameter::Default => Some(Gap::Default),
        Parameter::Ignore => Some(Gap::Ignore),
    };
    let gaps: Vec<Option<Gap>> = params.iter().map(gap).collect();
    let unfilled = gaps.iter().any(Option::is_some).then_some(Unfilled(gaps));
    let value = |param| match param {
        Parameter::Value(value) => value,
        Parameter::Default | Parameter::Ignore => Value::Null,
    };
    (params.into_iter().map(value).collect(), unfilled)
}

impl Unfilled {
    /// Returns the variant of the statement. Error 4032 if a `?` without a value is only part of an
    /// expression.
    pub(crate) fn fill(&self, statement: &Statement) -> SqlResult<Statement> {
        let mut statement = statement.clone();
        let mut left = self.0.iter().flatten().count();
        let mut fill = |value: &mut Expr, ignored: Option<Expr>| {
            let Expr::Param(n) = value else { return };
            let Some(gap) = self.0.get(*n as usize).copied().flatten() else { return };
            left -= 1;
            *value = match (gap, ignored) {
                (Gap::Ignore, Some(ignored)) => ignored,
                _ => Expr::Default(None),
            };
        };
        match &mut statement {
            Statement::Insert(insert) => {
                if let InsertSource::Values(rows) = &mut insert.source {
                    rows.iter_mut().flatten().for_each(|value| fill(value, None));
                }
                insert.on_duplicate.iter_mut().for_each(|assignment| fill(&mut assignment.value, None));
            }
            Statement::Update(update) => {
                for Assignment { column, value } in &mut update.assignments {
                    fill(value, Some(Expr::Column(column.clone())));
                }
            }
            _ => {}
        }
        if left > 0 { Err(SqlError::invalid_default_param()) } else { Ok(statement) }
    }
}
