//! Calculations with dates and times.

use std::borrow::Cow;

use cohort_types::{
    Class, Date, DateTime, Decimal, ErrorCode, IntValue, Interval, IntervalUnit, Span, SqlMode, SqlResult,
    Time, TypeKind, Value,
};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::convert;
use crate::date_part::real_datetime;
use crate::expr::Expr;
use crate::expr_type::{ExprType, TypeClass};
use crate::function::{Anywhere, Extra, Function, NumberOf, Rows, Text};
use crate::typing::temporal_decimals;
use crate::typing::{any_nullable, ascii_string};

pub(crate) static DATE_ADD: Function =
    Function::new("date_add", 2, 2, type_date_arith, date_add, Text, Anywhere)
        .of_statement()
        .with_number(NumberOf::DateTime);
pub(crate) static DATE_SUB: Function =
    Function::new("date_sub", 2, 2, type_date_arith, date_sub, Text, Anywhere)
        .of_statement()
        .with_number(NumberOf::DateTime);
pub(crate) static TIMESTAMP_DIFF: Function =
    Function::new("timestampdiff", 2, 2, type_bigint, timestamp_diff, Rows, Anywhere).of_statement();

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("addtime", 2, 2, type_add_time, add_time, Rows, Anywhere)
        .of_statement()
        .with_number(NumberOf::DateTime),
    Function::new("subtime", 2, 2, type_add_time, sub_time, Rows, Anywhere)
        .of_statement()
        .with_number(NumberOf::DateTime),
    Function::new("timediff", 2, 2, type_time_diff, time_diff, Rows, Anywhere).of_statement(),
    Function::new("datediff", 2, 2, type_days, date_diff, Text, Anywhere).of_statement(),
    Function::new("makedate", 2, 2, type_date, make_date, Rows, Anywhere),
    Function::new("maketime", 3, 3, type_make_time, make_time, Rows, Anywhere),
    Function::new("sec_to_time", 1, 1, type_sec_to_time, sec_to_time, Rows, Anywhere),
    Function::new("period_add", 2, 2, type_period, period_add, Rows, Anywhere),
    Function::new("period_diff", 2, 2, type_period, period_diff, Rows, Anywhere),
    Function::new("date", 1, 1, type_date, date, Text, Anywhere).of_statement(),
    Function::new("time", 1, 1, type_time, time, Rows, Anywhere).of_statement(),
    Function::new("timestamp", 1, 2, type_timestamp, timestamp, Rows, Anywhere).of_statement(),
];

/// Returns the type of `date +/- INTERVAL`: a DATE remains one unless the unit is less than a day, a string
/// remains a string. The unit is not known yet, so `build` refines the type.
fn type_date_arith(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(date_arith_type(&args[0], &args[1], IntervalUnit::Day, env))
}

/// Returns the type of `operand +/- INTERVAL amount unit`.
pub(crate) fn date_arith_type(
    operand: &Expr,
    amount: &Expr,
    unit: IntervalUnit,
    env: &SessionEnv,
) -> ExprType {
    let amount_decimals = amount_decimals(amount, unit);
    let decimals = temporal_decimals(operand).max(amount_decimals);
    match operand.ty_cow().class() {
        TypeClass::DateTime => ExprType::datetime(decimals),
        TypeClass::Time if is_calendar_unit(unit) => ExprType::datetime(decimals),
        TypeClass::Time => ExprType::time(decimals),
        TypeClass::Date if unit.has_time() => ExprType::datetime(amount_decimals),
        TypeClass::Date => ExprType::date(),
        _ => datetime_text(decimals, decimals, env),
    }
}

/// Returns true for units that TIME does not support.
fn is_calendar_unit(unit: IntervalUnit) -> bool {
    use IntervalUnit::{Month, Quarter, Week, Year, YearMonth};
    matches!(unit, Year | Quarter | Month | Week | YearMonth)
}

/// Returns the type of a datetime or time as text, with this many fraction digits.
fn datetime_text(digits: u8, decimals: u8, env: &SessionEnv) -> ExprType {
    let length = if digits > 0 { 20 + u64::from(digits) } else { 19 };
    ExprType { kind: TypeKind::Char, decimals, ..ascii_string(env, length) }
}

/// Returns the fraction digits of an operand that is converted to a datetime.
fn datetime_decimals(operand: &Expr) -> u8 {
    match operand {
        Expr::Const(node) => match &node.value {
            Value::Str(text) => DateTime::parse(&text.bytes, SqlMode::NONE).decimals,
            _ => temporal_decimals(operand),
        },
        _ => temporal_decimals(operand),
    }
}

/// Returns the fraction digits that an interval may add.
fn amount_decimals(amount: &Expr, unit: IntervalUnit) -> u8 {
    match unit {
        _ if unit.has_micros() => 6,
        IntervalUnit::Second => match (amount, amount.ty_cow().class()) {
            (_, TypeClass::Int) => 0,
            (_, TypeClass::String) => 6,
            _ => amount.ty_cow().decimals.min(6),
        },
        _ => 0,
    }
}

fn type_bigint(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::bigint(21))
}

fn type_days(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::number(TypeKind::Int, 8, 0))
}

fn type_period(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::number(TypeKind::Int, 6, 0).with_nullable(any_nullable(args)))
}

fn type_date(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::date())
}

fn type_time(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::time(temporal_decimals(&args[0])))
}

fn type_timestamp(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::datetime(args.iter().map(temporal_decimals).max().unwrap_or(0)))
}

fn type_add_time(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let decimals = temporal_decimals(&args[0]).max(temporal_decimals(&args[1]));
    Ok(match args[0].ty_cow().class() {
        TypeClass::DateTime | TypeClass::Date => ExprType::datetime(decimals),
        TypeClass::Time => ExprType::time(decimals),
        // A text may have any format.
        TypeClass::String => datetime_text(6, crate::expr_type::STRING_DECIMALS, env),
        _ => datetime_text(decimals, decimals, env),
    })
}

fn type_time_diff(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::time(temporal_decimals(&args[0]).max(temporal_decimals(&args[1]))))
}

fn type_make_time(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    let ty = args[2].ty_cow();
    Ok(ExprType::time(match ty.class() {
        TypeClass::Int => 0,
        TypeClass::String => 6,
        _ => ty.decimals.min(6),
    }))
}

fn type_sec_to_time(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    let ty = args[0].ty_cow();
    Ok(ExprType::time(match ty.class() {
        TypeClass::Int => 0,
        TypeClass::String => 6,
        _ => ty.decimals.min(6),
    }))
}

fn date_add(a: Args<'_>) -> SqlResult<Value> {
    date_arith(a, |interval| interval)
}

fn date_sub(a: Args<'_>) -> SqlResult<Value> {
    date_arith(a, Interval::neg)
}

/// Returns NULL with warning 1441.
fn overflow(a: &Args<'_>, field: &str) -> SqlResult<Value> {
    a.ctx.warn(ErrorCode::DatetimeFunctionOverflow, format!("Datetime function: {field} field overflow"))?;
    Ok(Value::Null)
}

fn date_arith(a: Args<'_>, turn: fn(Interval) -> Interval) -> SqlResult<Value> {
    let Extra::Unit(unit) = a.call.extra else { return Ok(Value::Null) };
    let operand = a.value(0)?;
    if let Value::Time(time) = operand.as_ref() {
        return later_time(&a, *time, turn, unit);
    }
    let datetime = or_null!(convert::to_datetime(&operand, a.origin(0), a.ctx));
    let interval = turn(or_null!(interval_of(&a, unit)));
    if !datetime.date.is_real() {
        // The warning shows a number as the date that it represents.
        let shown = match operand.class() {
            Class::Int | Class::Real | Class::Decimal => Cow::Owned(Value::DateTime(datetime)),
            _ => operand,
        };
        a.ctx.warn(ErrorCode::TruncatedWrongValue, a.origin(0).warning("datetime", &shown, a.ctx))?;
        return Ok(Value::Null);
    }
    let Some(sum) = datetime.add_interval(&interval) else { return overflow(&a, "datetime") };
    date_arith_result(&a, &operand, unit, sum)
}

/// Adds an interval to a TIME. Weeks, months and longer units overflow, because TIME has no calendar.
fn later_time(
    a: &Args<'_>,
    time: Time,
    turn: fn(Interval) -> Interval,
    unit: IntervalUnit,
) -> SqlResult<Value> {
    use IntervalUnit::{Month, Quarter, Week, Year, YearMonth};
    if matches!(unit, Week | Month | Quarter | Year | YearMonth) {
        return overflow(a, "time");
    }
    let interval = turn(or_null!(interval_of(a, unit)));
    let micros = interval.days.checked_mul(86_400_000_000).and_then(|d| d.checked_add(interval.micros));
    let sum = micros.and_then(|m| m.checked_add(time.micros));
    match sum.filter(|m| m.unsigned_abs() <= Time::MAX.micros.unsigned_abs()) {
        Some(micros) => Ok(Value::Time(Time { micros })),
        None => overflow(a, "time"),
    }
}

/// Returns the sum in the class of the operand. A string without a time of day remains without one.
fn date_arith_result(a: &Args<'_>, operand: &Value, unit: IntervalUnit, sum: DateTime) -> SqlResult<Value> {
    match a.call.ty.class() {
        TypeClass::Date => return Ok(Value::Date(sum.date)),
        TypeClass::DateTime => return Ok(Value::DateTime(sum)),
        _ => {}
    }
    let had_time = match operand {
        Value::Str(s) => DateTime::parse(&s.bytes, a.ctx.env.sql_mode).has_time,
        Value::Date(_) => false,
        Value::DateTime(_) => true,
        other => convert::to_decimal(other, a.ctx)?.is_some_and(|d| d.int_digits() > 8),
    };
    let decimals = datetime_decimals(a.expr(0)).max(amount_decimals(a.expr(1), unit));
    let mut out = Vec::new();
    if had_time || unit.has_time() {
        sum.write_text(decimals, &mut out);
    } else {
        sum.date.write_text(&mut out);
    }
    a.string(out)
}

/// Returns the interval of argument 1. An integer is a number of units; other values are parsed as text.
fn interval_of(a: &Args<'_>, unit: IntervalUnit) -> SqlResult<Option<Interval>> {
    let value = a.number(1)?;
    let interval = match value.as_ref() {
        Value::Null => return Ok(None),
        Value::Int(v) => Interval::from_int(*v, unit),
        Value::UInt(v) => i64::try_from(*v).ok().and_then(|v| Interval::from_int(v, unit)),
        Value::Decimal(_) | Value::Double(_) | Value::Float(_) if unit == IntervalUnit::Second => {
            let seconds = convert::to_decimal(&value, a.ctx)?.unwrap_or(Decimal::ZERO);
            let micros = seconds.mul(&Decimal::from_i64(1_000_000)).unwrap_or(Decimal::ZERO).truncate(0);
            Some(Interval { months: 0, days: 0, micros: micros.to_i64().0 })
        }
        other if is_simple(unit) && !matches!(other, Value::Str(_)) => {
            convert::to_int(other, a.ctx)?.and_then(|v| Interval::from_int(convert::clamp_signed(v), unit))
        }
        Value::Str(_) if is_simple(unit) && unit != IntervalUnit::Second => {
            convert::to_int(&value, a.ctx)?.and_then(|v| Interval::from_int(convert::clamp_signed(v), unit))
        }
        _ => a.text(1)?.and_then(|text| Interval::parse(&text, unit)),
    };
    // A text with too many fields is invalid, but gets no warning.
    if interval.is_none() && is_simple(unit) {
        overflow(a, "datetime")?;
    }
    Ok(interval)
}

fn is_simple(unit: IntervalUnit) -> bool {
    use IntervalUnit::*;
    matches!(unit, Year | Quarter | Month | Week | Day | Hour | Minute | Second | Microsecond)
}

/// TIMESTAMPDIFF: complete units from the first to the second argument.
fn timestamp_diff(a: Args<'_>) -> SqlResult<Value> {
    let Extra::Unit(unit) = a.call.extra else { return Ok(Value::Null) };
    let from = or_null!(real_datetime(&a, 0));
    let to = or_null!(real_datetime(&a, 1));
    let micros = absolute_micros(&to) - absolute_micros(&from);
    let second = 1_000_000;
    let count = match unit {
        IntervalUnit::Year => months_between(&from, &to) / 12,
        IntervalUnit::Quarter => months_between(&from, &to) / 3,
        IntervalUnit::Month => months_between(&from, &to),
        IntervalUnit::Week => micros / (7 * 86_400 * second),
        IntervalUnit::Day => micros / (86_400 * second),
        IntervalUnit::Hour => micros / (3_600 * second),
        IntervalUnit::Minute => micros / (60 * second),
        IntervalUnit::Second => micros / second,
        _ => micros,
    };
    Ok(Value::Int(count))
}

fn absolute_micros(datetime: &DateTime) -> i64 {
    i64::from(datetime.date.day_number()) * 86_400_000_000 + datetime.micros_of_day()
}

/// Returns the complete months, negative if `to` is earlier.
fn months_between(from: &DateTime, to: &DateTime) -> i64 {
    if to < from {
        return -months_between(to, from);
    }
    let months = |d: &Date| i64::from(d.year) * 12 + i64::from(d.month);
    let whole = months(&to.date) - months(&from.date);
    let begun = (to.date.day, to.micros_of_day()) < (from.date.day, from.micros_of_day());
    whole - i64::from(begun)
}

fn add_time(a: Args<'_>) -> SqlResult<Value> {
    shifted(a, 1)
}

fn sub_time(a: Args<'_>) -> SqlResult<Value> {
    shifted(a, -1)
}

/// ADDTIME and SUBTIME: shifts a datetime or a time by an interval.
fn shifted(a: Args<'_>, sign: i64) -> SqlResult<Value> {
    let start = or_null!(time_span(&a, 0));
    let Some(shift) = shift_of(&a, 1)?.map(|micros| micros * sign) else { return Ok(Value::Null) };
    let is_text = a.expr(0).ty_cow().class() == TypeClass::String;
    let digits = |micros: u32| match (is_text, micros) {
        (true, 0) => 0,
        (true, _) => 6,
        _ => temporal_decimals(a.expr(0)).max(temporal_decimals(a.expr(1))),
    };
    match start {
        Span::DateTime(datetime) => {
            let interval = Interval { months: 0, days: 0, micros: shift };
            let Some(sum) = datetime.add_interval(&interval) else { return Ok(Value::Null) };
            if a.call.ty.class() == TypeClass::DateTime {
                return Ok(Value::DateTime(sum));
            }
            let mut out = Vec::new();
            sum.write_text(digits(sum.micros), &mut out);
            a.string(out)
        }
        Span::Interval(time) => {
            let time = limited_time(&a, time.micros.saturating_add(shift))?;
            if a.call.ty.class() == TypeClass::Time {
                return Ok(Value::Time(time));
            }
            let mut out = Vec::new();
            time.write_text(digits(time.microsecond()), &mut out);
            a.string(out)
        }
    }
}

/// Returns argument n as an interval in microseconds, `None` with a warning for a datetime.
fn shift_of(a: &Args<'_>, n: usize) -> SqlResult<Option<i64>> {
    const WHAT: &str = "INTERVAL DAY TO SECOND";
    let amount = a.value(n)?;
    match convert::to_span(&amount, a.origin(n), WHAT, a.ctx)? {
        Some(Span::Interval(time)) => Ok(Some(time.micros)),
        Some(Span::DateTime(_)) => {
            a.ctx.warn(ErrorCode::TruncatedWrongValue, a.origin(n).warning(WHAT, &amount, a.ctx))?;
            Ok(None)
        }
        None => Ok(None),
    }
}

/// Converts argument n of ADDTIME and TIMEDIFF to a datetime or a TIME.
fn time_span(a: &Args<'_>, n: usize) -> SqlResult<Option<Span>> {
    let value = a.value(n)?;
    convert::to_time_span(&value, a.origin(n), a.ctx)
}

/// Clamps to the range of TIME, with a warning.
fn limited_time(a: &Args<'_>, micros: i64) -> SqlResult<Time> {
    let clamped = micros.clamp(-Time::MAX.micros, Time::MAX.micros);
    if clamped != micros {
        let hours = micros.unsigned_abs() / 3_600_000_000;
        let rest = Time { micros: (micros.unsigned_abs() % 3_600_000_000) as i64 };
        let sign = if micros < 0 { "-" } else { "" };
        let mut shown = format!("{sign}{hours:02}:{:02}:{:02}", rest.minute(), rest.second());
        if rest.microsecond() > 0 {
            shown.push_str(&format!(".{:06}", rest.microsecond()));
        }
        a.ctx.warn(ErrorCode::TruncatedWrongValue, format!("Truncated incorrect time value: '{shown}'"))?;
    }
    Ok(Time { micros: clamped })
}

/// TIMEDIFF: both arguments must be times, both dates, or both datetimes.
fn time_diff(a: Args<'_>) -> SqlResult<Value> {
    let (x, y) = (or_null!(time_span(&a, 0)), or_null!(time_span(&a, 1)));
    let is_date = |n: usize| a.value(n).map(|v| matches!(*v, Value::Date(_)));
    if is_date(0)? != is_date(1)? {
        return Ok(Value::Null);
    }
    let difference = match (x, y) {
        (Span::DateTime(x), Span::DateTime(y)) => absolute_micros(&x) - absolute_micros(&y),
        (Span::Interval(x), Span::Interval(y)) => x.micros - y.micros,
        _ => return Ok(Value::Null),
    };
    Ok(Value::Time(limited_time(&a, difference)?))
}

fn date_diff(a: Args<'_>) -> SqlResult<Value> {
    let (x, y) = (real_datetime(&a, 0)?, real_datetime(&a, 1)?);
    let (Some(x), Some(y)) = (x, y) else { return Ok(Value::Null) };
    let (x, y) = (x.date, y.date);
    Ok(Value::Int(i64::from(x.day_number()) - i64::from(y.day_number())))
}

/// MAKEDATE(year, day of year).
fn make_date(a: Args<'_>) -> SqlResult<Value> {
    let year = or_null!(a.int(0));
    let day = or_null!(a.int(1));
    if !(0..=9999).contains(&year) || day <= 0 {
        return Ok(Value::Null);
    }
    let year = match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    };
    let start = Date::new(year as u16, 1, 1).day_number();
    let wanted = u32::try_from(day - 1).ok().and_then(|d| start.checked_add(d));
    Ok(wanted.and_then(Date::from_day_number).map_or(Value::Null, Value::Date))
}

/// MAKETIME(hour, minute, second with fraction).
fn make_time(a: Args<'_>) -> SqlResult<Value> {
    let hour = or_null!(a.integer(0));
    let minute = or_null!(a.int(1));
    let second = or_null!(a.decimal(2));
    let micros = second.mul(&Decimal::from_i64(1_000_000)).unwrap_or(Decimal::ZERO).truncate(0).to_i64().0;
    if !(0..60).contains(&minute) || !(0..60_000_000).contains(&micros) {
        return Ok(Value::Null);
    }
    let negative = matches!(hour, IntValue::Signed(v) if v < 0);
    let hours = hour.wide().unsigned_abs();
    if hours > 838 {
        let shown = format!("{}:{minute:02}:{:02}", hour.wide(), micros / 1_000_000);
        a.ctx.warn(ErrorCode::TruncatedWrongValue, format!("Truncated incorrect time value: '{shown}'"))?;
        let places = 10i64.pow(6 - u32::from(a.call.ty.decimals.min(6)));
        let limit = Time::MAX.micros / places * places;
        return Ok(Value::Time(Time { micros: if negative { -limit } else { limit } }));
    }
    let magnitude = (hours as i64 * 3600 + minute * 60) * 1_000_000 + micros;
    Ok(Value::Time(Time { micros: if negative { -magnitude } else { magnitude } }))
}

fn sec_to_time(a: Args<'_>) -> SqlResult<Value> {
    let value = a.number(0)?;
    let mut exact = None;
    let micros = match value.as_ref() {
        Value::Null => return Ok(Value::Null),
        // A double is truncated by its binary value, not by its shortest text.
        Value::Double(seconds) => {
            (seconds.trunc() as i64).saturating_mul(1_000_000).saturating_add((seconds.fract() * 1e6) as i64)
        }
        _ => {
            let seconds = or_null!(a.decimal(0));
            exact = Some(seconds);
            seconds.mul(&Decimal::from_i64(1_000_000)).map_or(i64::MAX, |d| d.truncate(0).to_i64().0)
        }
    };
    // The largest value has nines in all fraction digits of its type.
    let places = 10i64.pow(6 - u32::from(a.call.ty.decimals.min(6)));
    let limit = Time::MAX.micros / places * places;
    if micros.unsigned_abs() > limit.unsigned_abs() {
        // For a text, the warning shows the number at its start.
        let shown = exact.map_or_else(|| value.to_text(), |seconds| seconds.to_string());
        a.ctx
            .warn(ErrorCode::TruncatedWrongValue, format!("Truncated incorrect seconds value: '{shown}'"))?;
    }
    Ok(Value::Time(Time { micros: micros.clamp(-limit, limit) }))
}

/// Maps two-digit years to 1970 to 2069.
fn full_year(year: u32) -> u32 {
    match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    }
}

/// Returns the months since year 0 of a period YYMM or YYYYMM, whose month may be out of range; 0 if it is
/// invalid.
fn period_months(period: i64) -> u32 {
    match u32::try_from(period) {
        Ok(period @ 1..=999_912) => full_year(period / 100) * 12 + period % 100 - 1,
        _ => 0,
    }
}

/// PERIOD_ADD: computes with 32 bits and wraps, as in MariaDB.
fn period_add(a: Args<'_>) -> SqlResult<Value> {
    let period = or_null!(a.int(0));
    let add = or_null!(a.int(1));
    let months = period_months(period).wrapping_add(add as u32);
    if period == 0 || months == 0 {
        return Ok(Value::Int(0));
    }
    Ok(Value::Int(i64::from(full_year(months / 12)) * 100 + i64::from(months % 12) + 1))
}

fn period_diff(a: Args<'_>) -> SqlResult<Value> {
    let (x, y) = (or_null!(a.int(0)), or_null!(a.int(1)));
    Ok(Value::Int(i64::from(period_months(x)) - i64::from(period_months(y))))
}

/// Returns the first argument as a datetime with a date that sql_mode accepts.
fn complete_datetime(a: &Args<'_>) -> SqlResult<Option<DateTime>> {
    convert::to_whole_datetime(a.value(0)?.as_ref(), convert::Origin::of(a.expr(0)), a.ctx)
}

fn date(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::Date(or_null!(complete_datetime(&a)).date))
}

fn time(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::Time(or_null!(a.time(0))))
}

/// TIMESTAMP(datetime [, time]).
fn timestamp(a: Args<'_>) -> SqlResult<Value> {
    let datetime = or_null!(complete_datetime(&a));
    if a.count() == 1 {
        return Ok(Value::DateTime(datetime));
    }
    let Some(micros) = shift_of(&a, 1)? else { return Ok(Value::Null) };
    let interval = Interval { months: 0, days: 0, micros };
    match datetime.add_interval(&interval) {
        Some(sum) => Ok(Value::DateTime(sum)),
        None => overflow(&a, "datetime"),
    }
}
