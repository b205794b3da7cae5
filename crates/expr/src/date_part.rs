//! Functions that return parts of dates and times.

use cohort_types::{Date, DateTime, ErrorCode, IntervalUnit, Span, SqlResult, Time, TypeKind, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::convert::{self, not_zero};
use crate::expr::Expr;
use crate::expr_type::{ExprType, TypeClass};
use crate::function::{Anywhere, Extra, Function, NotIndexed, Rows, Text};
use crate::locale::DateNames;
use crate::typing::ascii_string;

pub(crate) static EXTRACT: Function = Function::new("extract", 1, 1, type_extract, extract, Rows, Anywhere);

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("year", 1, 1, type_4, year, Text, Anywhere).of_statement(),
    Function::new("month", 1, 1, type_2, month, Text, Anywhere).of_statement(),
    Function::new("day", 1, 1, type_2, day, Text, Anywhere).of_statement(),
    Function::new("dayofmonth", 1, 1, type_2, day, Text, Anywhere).of_statement(),
    Function::new("quarter", 1, 1, type_1, quarter, Rows, Anywhere).of_statement(),
    Function::new("dayofweek", 1, 1, type_1, day_of_week, Rows, Anywhere).of_statement(),
    Function::new("weekday", 1, 1, type_1, weekday, Rows, Anywhere).of_statement(),
    Function::new("dayofyear", 1, 1, type_3, day_of_year, Rows, Anywhere).of_statement(),
    Function::new("week", 1, 2, type_2, week, Rows, NotIndexed).of_statement().only_with(1),
    Function::new("weekofyear", 1, 1, type_2, week_of_year, Rows, Anywhere).of_statement(),
    Function::new("yearweek", 1, 2, type_6, yearweek, Rows, Anywhere).of_statement(),
    Function::new("hour", 1, 1, type_2, hour, Text, Anywhere),
    Function::new("minute", 1, 1, type_2, minute, Rows, Anywhere),
    Function::new("second", 1, 1, type_2, second, Rows, Anywhere),
    Function::new("microsecond", 1, 1, type_6, microsecond, Rows, Anywhere),
    Function::new("dayname", 1, 1, type_day_name, day_name, Rows, NotIndexed).of_statement(),
    Function::new("monthname", 1, 1, type_month_name, month_name, Rows, NotIndexed).of_statement(),
    Function::new("last_day", 1, 1, type_date, last_day, Text, Anywhere).of_statement(),
    Function::new("to_days", 1, 1, type_6, to_days, Rows, Anywhere).of_statement(),
    Function::new("to_seconds", 1, 1, type_seconds, to_seconds, Rows, Anywhere).of_statement(),
    Function::new("from_days", 1, 1, type_date, from_days, Rows, Anywhere),
    Function::new("time_to_sec", 1, 1, type_time_to_sec, time_to_sec, Rows, Anywhere),
];

fn int(length: u32) -> SqlResult<ExprType> {
    Ok(ExprType::number(TypeKind::Int, length, 0))
}

fn type_1(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    int(1)
}

fn type_2(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    int(2)
}

fn type_3(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    int(3)
}

fn type_4(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    int(4)
}

fn type_6(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    int(6)
}

fn type_seconds(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::bigint(12))
}

fn type_time_to_sec(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    let decimals = crate::typing::temporal_decimals(&args[0]);
    Ok(if decimals > 0 {
        ExprType { length: 18 + u32::from(decimals), ..ExprType::decimal(10, decimals, false) }
    } else {
        ExprType::bigint(17)
    })
}

fn type_day_name(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(type_name(env, DateNames::day_chars_max))
}

fn type_month_name(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(type_name(env, DateNames::month_chars_max))
}

/// Returns the type of a day or month name in the session's language. English names have at most nine
/// letters.
fn type_name(env: &SessionEnv, chars_max: impl Fn(&DateNames) -> usize) -> ExprType {
    let english = ExprType { decimals: 0, ..ascii_string(env, 9) };
    match env.date_names {
        None => english,
        Some(names) => ExprType { length: chars_max(names) as u32, ascii: false, ..english },
    }
}

fn type_date(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::date())
}

fn type_extract(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::bigint(21))
}

fn number(v: impl Into<i64>) -> SqlResult<Value> {
    Ok(Value::Int(v.into()))
}

/// Returns argument 0 as a date without zero parts.
fn real_date(a: &Args<'_>) -> SqlResult<Option<Date>> {
    Ok(real_datetime(a, 0)?.map(|m| m.date))
}

/// Returns argument n as a datetime whose date has no zero parts and exists in the calendar, regardless of
/// ALLOW_INVALID_DATES. An invalid text or number warns; an invalid temporal value does not, and temporal
/// values may have days that their month lacks.
pub(crate) fn real_datetime(a: &Args<'_>, n: usize) -> SqlResult<Option<DateTime>> {
    let value = a.value(n)?;
    let Some(datetime) = convert::to_datetime(&value, a.origin(n), a.ctx)? else { return Ok(None) };
    let is_temporal = matches!(*value, Value::Date(_) | Value::DateTime(_) | Value::Timestamp(_));
    let in_calendar = |date: Date| date.day <= Date::days_in_month(date.year, date.month);
    if not_zero(datetime.date).is_some_and(|date| is_temporal || in_calendar(date)) {
        return Ok(Some(datetime));
    }
    if !is_temporal {
        a.ctx.warn(ErrorCode::TruncatedWrongValue, a.origin(n).warning("datetime", &value, a.ctx))?;
    }
    Ok(None)
}

fn year(a: Args<'_>) -> SqlResult<Value> {
    number(or_null!(a.date(0)).year)
}

fn month(a: Args<'_>) -> SqlResult<Value> {
    number(or_null!(a.date(0)).month)
}

fn day(a: Args<'_>) -> SqlResult<Value> {
    number(or_null!(a.date(0)).day)
}

fn quarter(a: Args<'_>) -> SqlResult<Value> {
    number(or_null!(a.date(0)).month.div_ceil(3))
}

/// DAYOFWEEK: 1 is Sunday.
fn day_of_week(a: Args<'_>) -> SqlResult<Value> {
    number((or_null!(real_date(&a)).weekday() + 1) % 7 + 1)
}

/// WEEKDAY: 0 is Monday.
fn weekday(a: Args<'_>) -> SqlResult<Value> {
    number(or_null!(real_date(&a)).weekday())
}

fn day_of_year(a: Args<'_>) -> SqlResult<Value> {
    number(or_null!(real_date(&a)).day_of_year())
}

fn week_mode(a: &Args<'_>) -> SqlResult<Option<u8>> {
    if a.count() < 2 {
        return Ok(Some(a.ctx.env.default_week_format));
    }
    Ok(a.int(1)?.map(|mode| (mode & 7) as u8))
}

fn week(a: Args<'_>) -> SqlResult<Value> {
    let date = or_null!(real_date(&a));
    let mode = or_null!(week_mode(&a));
    number(date.week(mode).1)
}

fn week_of_year(a: Args<'_>) -> SqlResult<Value> {
    number(or_null!(real_date(&a)).week(3).1)
}

/// YEARWEEK: weeks are counted from 1, so the first days of a year may belong to the year before.
fn yearweek(a: Args<'_>) -> SqlResult<Value> {
    let date = or_null!(real_date(&a));
    let mode = if a.count() < 2 { 0 } else { or_null!(week_mode(&a)) };
    let (year, week) = date.week(mode | 2);
    number(i64::from(year) * 100 + i64::from(week))
}

/// Returns the time of day of a datetime, or the TIME, for functions that return parts of a time.
fn time_of(a: &Args<'_>) -> SqlResult<Option<Time>> {
    a.time(0)
}

fn hour(a: Args<'_>) -> SqlResult<Value> {
    number(or_null!(time_of(&a)).hour())
}

fn minute(a: Args<'_>) -> SqlResult<Value> {
    number(or_null!(time_of(&a)).minute())
}

fn second(a: Args<'_>) -> SqlResult<Value> {
    number(or_null!(time_of(&a)).second())
}

fn microsecond(a: Args<'_>) -> SqlResult<Value> {
    number(or_null!(time_of(&a)).microsecond())
}

pub(crate) const DAY_NAMES: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

pub(crate) const MONTH_NAMES: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn day_name(a: Args<'_>) -> SqlResult<Value> {
    let weekday = or_null!(real_date(&a)).weekday();
    let own = a.ctx.env.date_names.and_then(|names| names.weekday(weekday, false));
    a.string(own.unwrap_or(DAY_NAMES[usize::from(weekday)]))
}

fn month_name(a: Args<'_>) -> SqlResult<Value> {
    let month = or_null!(a.date(0)).month;
    if month == 0 {
        return Ok(Value::Null);
    }
    let own = a.ctx.env.date_names.and_then(|names| names.month(month, false));
    a.string(own.unwrap_or(MONTH_NAMES[usize::from(month - 1)]))
}

fn last_day(a: Args<'_>) -> SqlResult<Value> {
    let date = or_null!(a.date(0));
    if date.month == 0 {
        return Ok(Value::Null);
    }
    Ok(Value::Date(Date { day: Date::days_in_month(date.year, date.month), ..date }))
}

fn to_days(a: Args<'_>) -> SqlResult<Value> {
    number(or_null!(real_date(&a)).day_number())
}

fn to_seconds(a: Args<'_>) -> SqlResult<Value> {
    let datetime = or_null!(real_datetime(&a, 0));
    number(i64::from(datetime.date.day_number()) * 86_400 + datetime.micros_of_day() / 1_000_000)
}

fn from_days(a: Args<'_>) -> SqlResult<Value> {
    let days = or_null!(a.int(0));
    let date = u32::try_from(days).ok().and_then(Date::from_day_number);
    Ok(Value::Date(date.unwrap_or(Date::ZERO)))
}

fn time_to_sec(a: Args<'_>) -> SqlResult<Value> {
    let time = or_null!(a.time(0));
    if a.call.ty.class() == TypeClass::Decimal {
        let exact = cohort_types::Decimal::from_i128(i128::from(time.micros), 6);
        return Ok(Value::Decimal(exact.truncate(i32::from(a.call.ty.decimals))));
    }
    number(time.micros / 1_000_000)
}

/// Returns the type of EXTRACT, by the digits of its unit.
pub(crate) fn extract_type(unit: IntervalUnit, operand: &Expr) -> ExprType {
    // A text may be an interval of many days.
    let more = if operand.ty_cow().is_temporal() { 0 } else { 5 };
    let of_days = |length: u32| {
        let kind = if length + more >= 11 { TypeKind::BigInt } else { TypeKind::Int };
        ExprType::number(kind, length + more, 0)
    };
    match unit {
        IntervalUnit::Year => ExprType::number(TypeKind::Int, 4, 0),
        IntervalUnit::YearMonth => ExprType::number(TypeKind::Int, 6, 0),
        IntervalUnit::Quarter | IntervalUnit::Month | IntervalUnit::Week => {
            ExprType::number(TypeKind::Int, 2, 0)
        }
        IntervalUnit::Day => of_days(3),
        IntervalUnit::Hour | IntervalUnit::Minute | IntervalUnit::Second => {
            ExprType::number(TypeKind::Int, 3, 0)
        }
        IntervalUnit::HourMinute | IntervalUnit::MinuteSecond => ExprType::number(TypeKind::Int, 5, 0),
        IntervalUnit::DayHour => of_days(5),
        IntervalUnit::DayMinute => of_days(7),
        IntervalUnit::HourSecond => ExprType::number(TypeKind::Int, 7, 0),
        IntervalUnit::Microsecond => ExprType::number(TypeKind::Int, 7, 0),
        IntervalUnit::DaySecond => of_days(9),
        IntervalUnit::SecondMicrosecond => ExprType::number(TypeKind::Int, 9, 0),
        IntervalUnit::MinuteMicrosecond => ExprType::bigint(11),
        IntervalUnit::HourMicrosecond => ExprType::bigint(13),
        IntervalUnit::DayMicrosecond => of_days(15),
    }
}

/// EXTRACT(unit FROM x). A TIME has no year and no month; its days come from its hours.
fn extract(a: Args<'_>) -> SqlResult<Value> {
    let Extra::Unit(unit) = a.call.extra else { return Ok(Value::Null) };
    let value = a.value(0)?;
    if is_date_unit(unit) {
        let date = match value.as_ref() {
            Value::Time(_) => Date::ZERO,
            _ => or_null!(a.date(0)),
        };
        return match date_part(unit, date, a.ctx.env.default_week_format) {
            Some(part) => number(part),
            None => Ok(Value::Null),
        };
    }
    let span = or_null!(extract_span(&a, &value, unit));
    let (days, time) = match span {
        Span::DateTime(datetime) => (i64::from(datetime.date.day), datetime.time()),
        Span::Interval(time) => {
            const DAY: i64 = 86_400_000_000;
            (time.micros / DAY, Time { micros: time.micros % DAY })
        }
    };
    if unit == IntervalUnit::Day {
        return number(days);
    }
    number(days * day_scale(unit) + interval_part(unit, time))
}

/// Converts the operand. With units from days to seconds, a text that is a single number is a date.
fn extract_span(a: &Args<'_>, value: &Value, unit: IntervalUnit) -> SqlResult<Option<Span>> {
    use IntervalUnit::{Day, DayHour, DayMinute, DaySecond};
    if let (Value::Str(text), Day | DayHour | DayMinute | DaySecond) = (value, unit)
        && is_bare_number(&text.bytes)
    {
        let parsed = DateTime::parse(&text.bytes, a.ctx.env.sql_mode);
        let Some(datetime) = parsed.value.filter(|_| text.bytes.len() >= 5) else {
            let warning = a.origin(0).warning("interval", value, a.ctx);
            a.ctx.warn(ErrorCode::TruncatedWrongValue, warning)?;
            return Ok(None);
        };
        if let Some(warning) = parsed.warning("date", &text.bytes) {
            a.ctx.converting(|sink| sink.warn(warning))?;
        }
        return Ok(Some(Span::DateTime(datetime)));
    }
    convert::to_span(value, a.origin(0), "interval", a.ctx)
}

/// Returns true for digits, optionally with a sign, surrounding spaces or letters after them, but without
/// separators of a time.
fn is_bare_number(text: &[u8]) -> bool {
    let trimmed = text.trim_ascii();
    let digits = trimmed.strip_prefix(b"-").unwrap_or(trimmed);
    digits.first().is_some_and(u8::is_ascii_digit)
        && !digits.iter().any(|byte| byte.is_ascii_punctuation() || byte.is_ascii_whitespace())
}

fn is_date_unit(unit: IntervalUnit) -> bool {
    use IntervalUnit::*;
    matches!(unit, Year | Quarter | Month | Week | YearMonth)
}

fn date_part(unit: IntervalUnit, date: Date, week_format: u8) -> Option<i64> {
    let (year, month) = (i64::from(date.year), i64::from(date.month));
    Some(match unit {
        IntervalUnit::Year => year,
        IntervalUnit::Quarter => (month + 2) / 3,
        IntervalUnit::Month => month,
        IntervalUnit::Week => i64::from(not_zero(date)?.week(week_format).1),
        IntervalUnit::YearMonth => year * 100 + month,
        _ => i64::from(date.day),
    })
}

/// Returns the factor of a day in the result of EXTRACT.
fn day_scale(unit: IntervalUnit) -> i64 {
    match unit {
        IntervalUnit::DayHour => 100,
        IntervalUnit::DayMinute => 10_000,
        IntervalUnit::DaySecond => 1_000_000,
        IntervalUnit::DayMicrosecond => 1_000_000_000_000,
        _ => 0,
    }
}

fn interval_part(unit: IntervalUnit, time: Time) -> i64 {
    use IntervalUnit::*;
    let (h, m, s) = (i64::from(time.hour()), i64::from(time.minute()), i64::from(time.second()));
    let micros = i64::from(time.microsecond());
    let magnitude = match unit {
        Hour | DayHour => h,
        Minute => m,
        Second => s,
        Microsecond => micros,
        HourMinute | DayMinute => h * 100 + m,
        HourSecond | DaySecond => h * 10_000 + m * 100 + s,
        MinuteSecond => m * 100 + s,
        HourMicrosecond | DayMicrosecond => (h * 10_000 + m * 100 + s) * 1_000_000 + micros,
        MinuteMicrosecond => (m * 100 + s) * 1_000_000 + micros,
        SecondMicrosecond => s * 1_000_000 + micros,
        _ => 0,
    };
    if time.micros < 0 { -magnitude } else { magnitude }
}
