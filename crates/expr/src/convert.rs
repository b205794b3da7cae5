//! A value as number, text or date, with MariaDB's warnings for what is lost.

use std::borrow::Cow;

use cohort_types::{
    Date, DateTime, Decimal, ErrorCode, IntValue, Issues, Parsed, SqlMode, SqlResult, Str, Time,
    TimeZone as _, Value,
};

use crate::context::EvalContext;
use crate::expr_type::{ExprType, TypeClass};

/// As a double.
pub(crate) fn to_f64(value: &Value, ctx: &EvalContext<'_>) -> SqlResult<Option<f64>> {
    match value {
        Value::Null => Ok(None),
        Value::Int(v) => Ok(Some(*v as f64)),
        Value::UInt(v) => Ok(Some(*v as f64)),
        Value::Double(v) => Ok(Some(*v)),
        other => ctx.converting(|sink| other.to_f64(sink)),
    }
}

/// As an exact number.
pub(crate) fn to_decimal(value: &Value, ctx: &EvalContext<'_>) -> SqlResult<Option<Decimal>> {
    match value {
        Value::Null => Ok(None),
        Value::Decimal(v) => Ok(Some(*v)),
        Value::Int(v) => Ok(Some(Decimal::from_i64(*v))),
        other => ctx.converting(|sink| other.to_decimal(sink)),
    }
}

/// As an integer, rounded.
pub(crate) fn to_int(value: &Value, ctx: &EvalContext<'_>) -> SqlResult<Option<IntValue>> {
    match value {
        Value::Null => Ok(None),
        Value::Int(v) => Ok(Some(IntValue::Signed(*v))),
        Value::UInt(v) => Ok(Some(IntValue::Unsigned(*v))),
        other => ctx.converting(|sink| other.to_int(sink)),
    }
}

/// As a condition.
pub(crate) fn to_bool(value: &Value, ctx: &EvalContext<'_>) -> SqlResult<Option<bool>> {
    match value {
        Value::Null => Ok(None),
        Value::Int(v) => Ok(Some(*v != 0)),
        Value::UInt(v) => Ok(Some(*v != 0)),
        other => ctx.converting(|sink| other.to_bool(sink)),
    }
}

/// The nearest BIGINT.
pub(crate) fn clamp_signed(value: IntValue) -> i64 {
    match value {
        IntValue::Signed(v) => v,
        IntValue::Unsigned(v) => i64::try_from(v).unwrap_or(i64::MAX),
    }
}

/// The 64 bits of an integer, as bit operators see it.
pub(crate) fn bits_of(value: IntValue) -> u64 {
    match value {
        IntValue::Signed(v) => v as u64,
        IntValue::Unsigned(v) => v,
    }
}

/// As text; `decimals` is that of the expression the value came from. `None` for NULL.
pub(crate) fn text_of(value: &Value, decimals: u8) -> Option<Cow<'_, [u8]>> {
    match value {
        Value::Null => None,
        Value::Str(s) => Some(Cow::Borrowed(&s.bytes)),
        Value::Enum { label, .. } | Value::Set { label, .. } => Some(Cow::Borrowed(&label.bytes)),
        other => Some(Cow::Owned(owned_text(other, decimals))),
    }
}

/// The same for a value that is given up.
pub(crate) fn text_of_cow(value: Cow<'_, Value>, decimals: u8) -> Option<Cow<'_, [u8]>> {
    match value {
        Cow::Borrowed(v) => text_of(v, decimals),
        Cow::Owned(Value::Null) => None,
        Cow::Owned(Value::Str(s)) => Some(Cow::Owned(s.bytes)),
        Cow::Owned(v) => text_of(&v, decimals).map(|t| Cow::Owned(t.into_owned())),
    }
}

fn owned_text(value: &Value, decimals: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(24);
    match value {
        // A quotient carries more digits than its type; text shows the type's.
        Value::Decimal(d) if decimals <= Decimal::MAX_SCALE && d.scale() != decimals => {
            d.round(i32::from(decimals)).unwrap_or(*d).write_text(&mut out);
        }
        other => other.write_text(decimals, &mut out),
    }
    out
}

/// As DATETIME. What is no date warns and is NULL.
pub(crate) fn to_datetime(value: &Value, ctx: &EvalContext<'_>) -> SqlResult<Option<DateTime>> {
    read_datetime(value, "Incorrect", ctx)
}

/// The same with the words of a comparison.
pub(crate) fn to_datetime_for_comparison(
    value: &Value,
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<DateTime>> {
    read_datetime(value, "Truncated incorrect", ctx)
}

fn read_datetime(value: &Value, complaint: &str, ctx: &EvalContext<'_>) -> SqlResult<Option<DateTime>> {
    let mode = date_mode(ctx);
    let parsed = match value {
        Value::Null => return Ok(None),
        Value::Date(d) => return Ok(Some(d.at_midnight())),
        Value::DateTime(d) => return Ok(Some(*d)),
        Value::Timestamp(t) => return Ok(Some(ctx.env.time_zone.to_local(*t))),
        Value::Time(t) => return Ok(time_to_datetime(*t, ctx)),
        Value::Str(s) => DateTime::parse(&s.bytes, mode),
        Value::Enum { label, .. } | Value::Set { label, .. } => DateTime::parse(&label.bytes, mode),
        Value::Int(v) => DateTime::from_number(*v, 0, mode),
        number => match to_decimal(number, ctx)? {
            None => return Ok(None),
            Some(exact) => DateTime::from_decimal(&exact, mode),
        },
    };
    checked(parsed, complaint, "datetime", value, ctx)
}

/// As TIME.
pub(crate) fn to_time(value: &Value, ctx: &EvalContext<'_>) -> SqlResult<Option<Time>> {
    read_time(value, "Incorrect", ctx)
}

/// The same with the words of a comparison.
pub(crate) fn to_time_for_comparison(value: &Value, ctx: &EvalContext<'_>) -> SqlResult<Option<Time>> {
    read_time(value, "Truncated incorrect", ctx)
}

fn read_time(value: &Value, complaint: &str, ctx: &EvalContext<'_>) -> SqlResult<Option<Time>> {
    let mode = date_mode(ctx);
    let parsed = match value {
        Value::Null => return Ok(None),
        Value::Time(t) => return Ok(Some(*t)),
        Value::Date(_) => return Ok(Some(Time::default())),
        Value::DateTime(d) => return Ok(Some(d.time())),
        Value::Timestamp(t) => return Ok(Some(ctx.env.time_zone.to_local(*t).time())),
        Value::Str(s) => Time::parse(&s.bytes, mode),
        Value::Enum { label, .. } | Value::Set { label, .. } => Time::parse(&label.bytes, mode),
        Value::Int(v) => Time::from_number(*v, 0, mode),
        number => match to_decimal(number, ctx)? {
            None => return Ok(None),
            Some(exact) => Time::from_decimal(&exact, mode),
        },
    };
    checked(parsed, complaint, "time", value, ctx)
}

/// Modes that matter when text becomes a date inside an expression: zero dates are good there.
fn date_mode(ctx: &EvalContext<'_>) -> SqlMode {
    SqlMode(ctx.env.sql_mode.0 & (SqlMode::ALLOW_INVALID_DATES.0 | SqlMode::TIME_ROUND_FRACTIONAL.0))
}

/// Warns about what the parse met; comparisons say "Truncated" where others say "Incorrect".
fn checked<T>(
    parsed: Parsed<T>,
    complaint: &str,
    what: &str,
    value: &Value,
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<T>> {
    if parsed.issues == Issues::default() && parsed.value.is_some() {
        return Ok(parsed.value);
    }
    let input = value.to_text();
    if parsed.value.is_none() && complaint != "Incorrect" {
        ctx.warn(ErrorCode::TruncatedWrongValue, format!("{complaint} {what} value: '{input}'"))?;
        return Ok(None);
    }
    if let Some(warning) = parsed.warning(what, input.as_bytes()) {
        ctx.converting(|sink| sink.warn(warning))?;
    }
    Ok(parsed.value)
}

/// A TIME in date context: that long after the last midnight.
fn time_to_datetime(time: Time, ctx: &EvalContext<'_>) -> Option<DateTime> {
    const DAY: i64 = 86_400_000_000;
    let date = ctx.now().date.add_days(time.micros.div_euclid(DAY))?;
    Some(DateTime::from_micros_of_day(date, time.micros.rem_euclid(DAY)))
}

/// Warns as ERROR_FOR_DIVISION_BY_ZERO wants it.
pub(crate) fn division_by_zero(ctx: &EvalContext<'_>) -> SqlResult<()> {
    if ctx.env.sql_mode.has(SqlMode::ERROR_FOR_DIVISION_BY_ZERO) {
        ctx.warn(ErrorCode::DivisionByZero, "Division by 0")?;
    }
    Ok(())
}

/// Converts the answer of a branch to the type all branches share (IF, CASE, COALESCE, ..).
pub(crate) fn to_class<'v>(
    value: Cow<'v, Value>,
    from: &ExprType,
    to: &ExprType,
    ctx: &EvalContext<'_>,
) -> SqlResult<Cow<'v, Value>> {
    if value.is_null() {
        return Ok(value);
    }
    let converted = match (to.class(), value.as_ref()) {
        (TypeClass::Int, Value::Int(v)) if to.unsigned && *v >= 0 => Value::UInt(*v as u64),
        (TypeClass::Int, _) | (TypeClass::Decimal, Value::Decimal(_)) => return Ok(value),
        (TypeClass::Real, Value::Double(_)) => return Ok(value),
        (TypeClass::Decimal, v) => to_decimal(v, ctx)?.map_or(Value::Null, Value::Decimal),
        (TypeClass::Real, v) => to_f64(v, ctx)?.map_or(Value::Null, Value::Double),
        (TypeClass::String, Value::Str(s)) if s.collation == to.collation => return Ok(value),
        (TypeClass::String, Value::Enum { .. } | Value::Set { .. }) if from.kind == to.kind => {
            return Ok(value);
        }
        (TypeClass::String, v) => {
            let bytes = text_of(v, from.decimals).map(Cow::into_owned).unwrap_or_default();
            Value::Str(Str { bytes, collation: to.collation })
        }
        (TypeClass::Date, v) => to_datetime(v, ctx)?.map_or(Value::Null, |d| Value::Date(d.date)),
        (TypeClass::DateTime, v) => to_datetime(v, ctx)?.map_or(Value::Null, Value::DateTime),
        (TypeClass::Time, v) => to_time(v, ctx)?.map_or(Value::Null, Value::Time),
    };
    Ok(Cow::Owned(converted))
}

/// The zero date is NULL for functions that need a real one.
pub(crate) fn not_zero(date: Date) -> Option<Date> {
    (date.month != 0 && date.day != 0).then_some(date)
}
