//! Operands in a numeric context: the number of hexadecimal literals, JSON values and computed dates is not
//! that of their text.

use std::borrow::Cow;

use cohort_types::{DateTime, SqlMode, SqlResult, Time, Value};

use crate::context::EvalContext;
use crate::convert::hex_number;
use crate::expr::Expr;
use crate::expr_type::{Flavor, TypeClass};
use crate::function::NumberOf;
use crate::json::{Json, unescape};

impl Expr {
    /// Returns the special conversion of the expression to a number, `None` if its value determines the
    /// number.
    pub(crate) fn number_view(&self) -> Option<NumberOf> {
        match self {
            Expr::Call(call) if call.ty.class() == TypeClass::String => {
                (call.function.number != NumberOf::Text).then_some(call.function.number)
            }
            // A constant that folding made of a JSON function.
            Expr::Const(node) if node.ty.is_json() => Some(NumberOf::Json),
            _ => None,
        }
    }

    /// Evaluates the expression in a numeric context.
    pub(crate) fn eval_number<'a>(
        &'a self,
        row: &'a [Value],
        ctx: &'a EvalContext<'_>,
    ) -> SqlResult<Cow<'a, Value>> {
        if let Expr::Call(call) = self
            && self.number_view() == Some(NumberOf::OfArguments)
        {
            return crate::control::extreme_number(call, row, ctx).map(Cow::Owned);
        }
        let value = self.eval(row, ctx)?;
        self.as_number(value)
    }

    /// Converts a value of this expression for a numeric context.
    pub(crate) fn as_number<'v>(&self, value: Cow<'v, Value>) -> SqlResult<Cow<'v, Value>> {
        if let Expr::Const(node) = self
            && node.ty.flavor == Flavor::Hex
        {
            return Ok(Cow::Owned(hex_number(&node.value)));
        }
        let Some(view) = self.number_view() else { return Ok(value) };
        let Value::Str(text) = value.as_ref() else { return Ok(value) };
        Ok(match view {
            NumberOf::Text | NumberOf::OfArguments => value,
            NumberOf::Json => json_number(&text.bytes).map_or(value, Cow::Owned),
            NumberOf::DateTime => datetime_number(&text.bytes).map_or(value, Cow::Owned),
        })
    }
}

fn json_number(text: &[u8]) -> Option<Value> {
    match Json::parse(text).ok()? {
        Json::Number(_) => None,
        Json::String(raw) => Some(Value::Str(cohort_types::Str {
            bytes: unescape(&raw),
            collation: cohort_types::Collation::UTF8MB4_BIN,
        })),
        Json::Bool(true) => Some(Value::Double(1.0)),
        _ => Some(Value::Double(0.0)),
    }
}

/// Converts the result of a date function to a number: `2020-01-31` becomes 20200131.
fn datetime_number(text: &[u8]) -> Option<Value> {
    if !text.contains(&b'-') || text.first() == Some(&b'-') {
        let time = Time::parse(text, SqlMode::NONE).value?;
        return Value::Time(time).to_f64(&mut cohort_types::NoWarnings).map(Value::Double);
    }
    let parsed = DateTime::parse(text, SqlMode::ALLOW_INVALID_DATES);
    let datetime = parsed.value?;
    let value = if parsed.has_time { Value::DateTime(datetime) } else { Value::Date(datetime.date) };
    value.to_f64(&mut cohort_types::NoWarnings).map(Value::Double)
}
