//! The current date and time. All functions but SYSDATE return the time at which the statement started.

use cohort_types::{DateTime, FixedOffset, SqlMode, SqlResult, TimeZone as _, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::convert;
use crate::expr::Expr;
use crate::expr_type::{ExprType, TypeClass};
use crate::function::{Anywhere, Function, NotGenerated, NotIndexed, Rows, Text, Unsafe};
use crate::typing::temporal_decimals;

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("now", 0, 1, type_datetime, now, Text, NotGenerated).of_statement(),
    Function::new("current_timestamp", 0, 1, type_datetime, now, Text, NotGenerated).of_statement(),
    Function::new("localtime", 0, 1, type_datetime, now, Text, NotGenerated).of_statement(),
    Function::new("localtimestamp", 0, 1, type_datetime, now, Text, NotGenerated).of_statement(),
    Function::new("utc_timestamp", 0, 1, type_utc_timestamp, utc_timestamp, Text, NotGenerated)
        .of_statement(),
    Function::new("sysdate", 0, 1, type_datetime, sysdate, Unsafe, NotGenerated).volatile(),
    Function::new("curdate", 0, 0, type_date, curdate, Text, NotGenerated).of_statement(),
    Function::new("current_date", 0, 0, type_date, curdate, Text, NotGenerated).of_statement(),
    Function::new("utc_date", 0, 0, type_date, utc_date, Text, NotGenerated).of_statement(),
    Function::new("curtime", 0, 1, type_time, curtime, Text, NotGenerated).of_statement(),
    Function::new("current_time", 0, 1, type_time, curtime, Text, NotGenerated).of_statement(),
    Function::new("utc_time", 0, 1, type_utc_time, utc_time, Text, NotGenerated).of_statement(),
    Function::new("unix_timestamp", 0, 1, type_unix, unix_timestamp, Text, NotGenerated)
        .of_statement()
        .only_with(0),
    Function::new("from_unixtime", 1, 2, type_from_unix, from_unixtime, Text, NotIndexed).of_statement(),
    Function::new("convert_tz", 3, 3, type_convert_tz, convert_tz, Rows, Anywhere).of_statement(),
];

/// Returns the constant number of fraction digits in the parentheses.
pub(crate) fn fraction_digits(arg: Option<&Expr>) -> u8 {
    match arg {
        Some(Expr::Const(c)) => match c.value {
            Value::Int(v) => v.clamp(0, 6) as u8,
            Value::UInt(v) => v.min(6) as u8,
            _ => 0,
        },
        _ => 0,
    }
}

/// Returns the number of fraction digits. Error 1426 for more than six.
fn checked_digits(args: &[Expr], name: &str) -> SqlResult<u8> {
    let wanted = match args.first() {
        Some(Expr::Const(c)) => c.value.to_int(&mut cohort_types::NoWarnings).map_or(0, |n| n.wide()),
        _ => 0,
    };
    if wanted > 6 {
        let text = format!("Too big precision specified for '{name}'. Maximum is 6");
        return Err(cohort_types::SqlError::new(cohort_types::ErrorCode::TooBigPrecision, text));
    }
    Ok(fraction_digits(args.first()))
}

fn type_datetime(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::datetime(checked_digits(args, "current_timestamp")?).with_nullable(false))
}

fn type_utc_timestamp(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::datetime(checked_digits(args, "utc_timestamp")?).with_nullable(false))
}

fn type_utc_time(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::time(checked_digits(args, "utc_time")?).with_nullable(false))
}

fn type_date(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::date().with_nullable(false))
}

fn type_time(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::time(checked_digits(args, "curtime")?).with_nullable(false))
}

fn type_unix(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    let Some(arg) = args.first() else { return Ok(ExprType::bigint(17)) };
    let decimals = match arg {
        Expr::Const(node) if arg.ty_cow().class() == TypeClass::String => {
            datetime_literal_decimals(&node.value)
        }
        _ => temporal_decimals(arg),
    };
    Ok(if decimals == 0 {
        ExprType::bigint(17)
    } else {
        ExprType { length: 18 + u32::from(decimals), ..ExprType::decimal(15, decimals, false) }
    })
}

/// Returns the number of fraction digits of a constant text; six if it is no datetime.
fn datetime_literal_decimals(value: &Value) -> u8 {
    let parsed = DateTime::parse(value.as_bytes().unwrap_or_default(), cohort_types::SqlMode::NONE);
    if parsed.value.is_some() { parsed.decimals } else { 6 }
}

fn type_from_unix(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    if args.len() == 2 {
        return crate::date_format::type_formatted(args, env);
    }
    Ok(ExprType::datetime(temporal_decimals(&args[0])))
}

fn type_convert_tz(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::datetime(temporal_decimals(&args[0])))
}

/// Truncates a datetime to the fraction digits of the call's type.
fn cut(a: &Args<'_>, value: DateTime) -> DateTime {
    value.with_decimals(a.call.ty.decimals, SqlMode::NONE).unwrap_or(value)
}

fn now(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::DateTime(cut(&a, a.ctx.now())))
}

fn utc(a: &Args<'_>) -> DateTime {
    FixedOffset::UTC.to_local(a.ctx.env.now_micros)
}

fn utc_timestamp(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::DateTime(cut(&a, utc(&a))))
}

fn sysdate(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::DateTime(cut(&a, a.ctx.env.time_zone.to_local(a.ctx.hooks.clock_micros()))))
}

fn curdate(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::Date(a.ctx.now().date))
}

fn utc_date(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::Date(utc(&a).date))
}

fn curtime(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::Time(cut(&a, a.ctx.now()).time()))
}

fn utc_time(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::Time(cut(&a, utc(&a)).time()))
}

/// UNIX_TIMESTAMP([datetime]): NULL outside the range of TIMESTAMP.
fn unix_timestamp(a: Args<'_>) -> SqlResult<Value> {
    if a.count() == 0 {
        return Ok(Value::Int(a.ctx.env.now_micros.div_euclid(1_000_000)));
    }
    let local = or_null!(a.datetime(0));
    if local.date.is_zero() && a.expr(0).ty_cow().kind == cohort_types::TypeKind::Timestamp {
        return seconds(&a, 0);
    }
    if !local.date.is_real() {
        return Ok(Value::Null);
    }
    match a.ctx.env.time_zone.to_utc(&local) {
        cohort_types::LocalToUtc::Exact(micros) | cohort_types::LocalToUtc::Gap(micros) => {
            seconds(&a, micros)
        }
        cohort_types::LocalToUtc::OutOfRange if local == epoch(&a) => seconds(&a, 0),
        cohort_types::LocalToUtc::OutOfRange => Ok(Value::Null),
    }
}

/// Returns 1970-01-01 00:00 UTC in the session's time zone; as a TIMESTAMP it would be the zero value.
fn epoch(a: &Args<'_>) -> DateTime {
    DateTime { micros: 0, ..a.ctx.env.time_zone.to_local(1) }
}

fn seconds(a: &Args<'_>, micros: i64) -> SqlResult<Value> {
    if a.call.ty.class() == TypeClass::Int {
        return Ok(Value::Int(micros.div_euclid(1_000_000)));
    }
    let exact = cohort_types::Decimal::from_i128(i128::from(micros), 6);
    Ok(Value::Decimal(exact.truncate(i32::from(a.call.ty.decimals))))
}

/// FROM_UNIXTIME(seconds [, format]).
fn from_unixtime(a: Args<'_>) -> SqlResult<Value> {
    let number = or_null!(a.decimal(0));
    let micros =
        number.mul(&cohort_types::Decimal::from_i64(1_000_000)).ok().map(|d| d.truncate(0).to_i64().0);
    let Some(micros) = micros.filter(|m| (0..=cohort_types::TIMESTAMP_MICROS_MAX).contains(m)) else {
        if !number.is_negative() {
            let text = format!("Truncated incorrect unixtime value: '{number}'");
            a.ctx.warn(cohort_types::ErrorCode::TruncatedWrongValue, text)?;
        }
        return Ok(Value::Null);
    };
    let local = if micros == 0 { epoch(&a) } else { a.ctx.env.time_zone.to_local(micros) };
    if a.count() == 2 {
        let format = or_null!(a.text(1));
        return match crate::date_format::format_datetime(&local, &format) {
            Some(text) => a.string(text),
            None => Ok(Value::Null),
        };
    }
    Ok(Value::DateTime(cut(&a, local)))
}

/// CONVERT_TZ(datetime, from, to): NULL for unknown zones. A time outside the range of TIMESTAMP is returned
/// unchanged.
fn convert_tz(a: Args<'_>) -> SqlResult<Value> {
    let local = or_null!(a.datetime(0));
    let from = or_null!(a.text(1));
    let to = or_null!(a.text(2));
    let zone = |name: &[u8]| std::str::from_utf8(name).ok().and_then(crate::context::TimeZone::parse);
    let (Some(from), Some(to)) = (zone(&from), zone(&to)) else { return Ok(Value::Null) };
    if convert::not_zero(local.date).is_none() {
        return Ok(Value::Null);
    }
    Ok(Value::DateTime(match from.to_utc(&local) {
        cohort_types::LocalToUtc::Exact(micros) | cohort_types::LocalToUtc::Gap(micros) => {
            to.to_local(micros)
        }
        cohort_types::LocalToUtc::OutOfRange => local,
    }))
}
