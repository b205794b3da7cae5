//! A value as number, text or date, with MariaDB's warnings for what is lost.

use std::borrow::Cow;

use cohort_types::{
    Collation, CountBytes, Date, DateTime, Decimal, ErrorCode, Fixed, FixedKind, IntValue, Issues, Parsed,
    Span, SqlMode, SqlResult, Str, Time, TimeZone as _, TypeKind, Value, clip, whole_chars,
};

use crate::context::EvalContext;
use crate::eval::zero_filled;
use crate::expr::Expr;
use crate::expr_type::{ExprType, Flavor, TypeClass};

/// As a double.
pub(crate) fn to_f64(value: &Value, ctx: &EvalContext<'_>) -> SqlResult<Option<f64>> {
    match value {
        Value::Null => Ok(None),
        Value::Int(v) => Ok(Some(*v as f64)),
        Value::UInt(v) => Ok(Some(*v as f64)),
        Value::Double(v) => Ok(Some(*v)),
        other => {
            ctx.count_value(other)?;
            ctx.converting(|sink| other.to_f64(sink))
        }
    }
}

/// As an exact number.
pub(crate) fn to_decimal(value: &Value, ctx: &EvalContext<'_>) -> SqlResult<Option<Decimal>> {
    match value {
        Value::Null => Ok(None),
        Value::Decimal(v) => Ok(Some(*v)),
        Value::Int(v) => Ok(Some(Decimal::from_i64(*v))),
        other => {
            ctx.count_value(other)?;
            ctx.converting(|sink| other.to_decimal(sink))
        }
    }
}

/// As an integer, rounded.
pub(crate) fn to_int(value: &Value, ctx: &EvalContext<'_>) -> SqlResult<Option<IntValue>> {
    match value {
        Value::Null => Ok(None),
        Value::Int(v) => Ok(Some(IntValue::Signed(*v))),
        Value::UInt(v) => Ok(Some(IntValue::Unsigned(*v))),
        other => {
            ctx.count_value(other)?;
            ctx.converting(|sink| other.to_int(sink))
        }
    }
}

/// As a condition.
pub(crate) fn to_bool(value: &Value, ctx: &EvalContext<'_>) -> SqlResult<Option<bool>> {
    match value {
        Value::Null => Ok(None),
        Value::Int(v) => Ok(Some(*v != 0)),
        Value::UInt(v) => Ok(Some(*v != 0)),
        other => {
            ctx.count_value(other)?;
            ctx.converting(|sink| other.to_bool(sink))
        }
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

/// Where a value came from and what for, as warnings tell it.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'e> {
    expr: Option<&'e Expr>,
    complaint: &'static str,
}

impl<'e> Origin<'e> {
    /// A value nobody knows more of.
    pub const UNKNOWN: Origin<'static> = Origin { expr: None, complaint: "Incorrect" };

    /// The value of an expression.
    pub fn of(expr: &'e Expr) -> Origin<'e> {
        Origin { expr: Some(expr), ..Origin::UNKNOWN }
    }

    /// The operand of a comparison: MariaDB has other words for one that is constant.
    pub fn compared(expr: Option<&'e Expr>) -> Origin<'e> {
        let is_const = !matches!(expr, Some(e) if !e.is_const_per_execution());
        Origin { expr, complaint: if is_const { "Truncated incorrect" } else { "Incorrect" } }
    }

    /// Whether the value is of a YEAR column.
    fn is_year(self) -> bool {
        matches!(self.expr, Some(Expr::Column(column)) if column.ty.kind == TypeKind::Year)
    }

    /// `Incorrect datetime value: 'x' for column ..`, the value clipped.
    pub fn warning(self, what: &str, value: &Value, ctx: &EvalContext<'_>) -> String {
        let text = format!("{} {what} value: '{}'", self.complaint, shown(value));
        match self.expr {
            // Of a column that holds moments MariaDB tells the value alone.
            Some(Expr::Column(column)) if !column.ty.is_temporal() => {
                format!("{text} for column {} at row {}", column.name, ctx.row_number())
            }
            _ => text,
        }
    }
}

/// Bytes of a value that a warning shows.
const SHOWN_BYTES: usize = 128;

/// A value as warnings about dates show it: bytes that are no printable ASCII as `\xHH`.
fn shown(value: &Value) -> String {
    match value {
        Value::Str(s) => shown_bytes(&s.bytes, s.collation),
        Value::Bit { .. } => shown_bytes(&text_of(value, 0).unwrap_or_default(), Collation::BINARY),
        other => clip(&other.to_text(), SHOWN_BYTES),
    }
}

/// The same of a text.
pub(crate) fn shown_bytes(text: &[u8], collation: Collation) -> String {
    // What takes four bytes in memory may be a byte of its character set.
    let read = text.len().min(4 * (SHOWN_BYTES + 1));
    let bytes = crate::text_size::encode(Cow::Borrowed(&text[..read]), collation);
    let mut out = String::new();
    for b in bytes.iter().take(SHOWN_BYTES + 1) {
        match b {
            0x20..=0x7e => out.push(char::from(*b)),
            other => out.push_str(&format!("\\x{other:02X}")),
        }
    }
    clip(&out, SHOWN_BYTES)
}

/// What a warning shows of a text that it shows as it is.
pub(crate) fn shown_text(text: &[u8]) -> String {
    clip(&start_of_text(text, SHOWN_BYTES + 4), SHOWN_BYTES)
}

/// The whole characters in the first bytes of a text, for warnings that do not tell that there is more.
pub(crate) fn start_of_text(text: &[u8], bytes: usize) -> String {
    let read = String::from_utf8_lossy(&text[..text.len().min(bytes + 3)]);
    whole_chars(&read, bytes).to_owned()
}

/// As DATETIME. What is no date warns and is NULL.
pub(crate) fn to_datetime(
    value: &Value,
    from: Origin<'_>,
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<DateTime>> {
    let mut mode = date_mode(ctx);
    if from.complaint != Origin::UNKNOWN.complaint {
        // A comparison takes dates beyond their month's end as they are.
        mode = mode | SqlMode::ALLOW_INVALID_DATES;
    }
    if let (true, Value::UInt(year)) = (from.is_year(), value) {
        return Ok(Some(Date::new(*year as u16, 0, 0).at_midnight()));
    }
    let parsed = match value {
        Value::Null => return Ok(None),
        Value::Date(d) => return Ok(Some(d.at_midnight())),
        Value::DateTime(d) => return Ok(Some(*d)),
        Value::Timestamp(t) => return Ok(Some(ctx.env.time_zone.to_local(*t))),
        Value::Time(t) => return Ok(time_to_datetime(*t, ctx)),
        Value::Str(s) => DateTime::parse(&s.bytes, mode),
        Value::Enum { label, .. } | Value::Set { label, .. } => DateTime::parse(&label.bytes, mode),
        Value::Int(v) => DateTime::from_number(*v, 0, mode),
        Value::Double(v) => DateTime::from_decimal(&Decimal::of_moment(*v), mode),
        number => match to_decimal(number, ctx)? {
            None => return Ok(None),
            Some(exact) => DateTime::from_decimal(&exact, mode),
        },
    };
    checked(parsed, from, "datetime", value, ctx)
}

/// As DATETIME where the date counts: CAST, DATE(), TIMESTAMP(). NO_ZERO_DATE and NO_ZERO_IN_DATE make what
/// they name no date there.
pub(crate) fn to_whole_datetime(
    value: &Value,
    from: Origin<'_>,
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<DateTime>> {
    let Some(moment) = to_datetime(value, from, ctx)? else { return Ok(None) };
    let (mode, date) = (ctx.env.sql_mode, moment.date);
    let is_refused = match date.is_zero() {
        true => mode.has(SqlMode::NO_ZERO_DATE),
        false => mode.has(SqlMode::NO_ZERO_IN_DATE) && (date.month == 0 || date.day == 0),
    };
    if is_refused && !matches!(value, Value::Time(_)) {
        ctx.warn(ErrorCode::TruncatedWrongValue, from.warning("datetime", value, ctx))?;
        return Ok(None);
    }
    Ok(Some(moment))
}

/// As TIME.
pub(crate) fn to_time(value: &Value, from: Origin<'_>, ctx: &EvalContext<'_>) -> SqlResult<Option<Time>> {
    let mode = date_mode(ctx);
    if let (true, Value::UInt(_)) = (from.is_year(), value) {
        return Ok(Some(Time::default()));
    }
    let parsed = match value {
        Value::Null => return Ok(None),
        Value::Time(t) => return Ok(Some(*t)),
        Value::Date(_) => return Ok(Some(Time::default())),
        Value::DateTime(d) => return Ok(Some(d.time())),
        Value::Timestamp(t) => return Ok(Some(ctx.env.time_zone.to_local(*t).time())),
        Value::Str(s) => Time::parse(&s.bytes, mode),
        Value::Enum { label, .. } | Value::Set { label, .. } => Time::parse(&label.bytes, mode),
        Value::Int(v) => Time::from_number(*v, 0, mode),
        Value::Double(v) => Time::from_decimal(&Decimal::of_moment(*v), mode),
        number => match to_decimal(number, ctx)? {
            None => return Ok(None),
            Some(exact) => Time::from_decimal(&exact, mode),
        },
    };
    checked(parsed, from, "time", value, ctx)
}

/// As what EXTRACT takes apart: a moment or an interval. What is neither warns as `what`.
pub(crate) fn to_span(
    value: &Value,
    from: Origin<'_>,
    what: &str,
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<Span>> {
    let mode = date_mode(ctx);
    if let (true, Value::UInt(hours)) = (from.is_year(), value) {
        // MariaDB takes a year for hours here.
        return Ok(Some(Span::Interval(Time { micros: *hours as i64 * 3_600_000_000 })));
    }
    let parsed = match value {
        Value::Null => return Ok(None),
        Value::Time(t) => return Ok(Some(Span::Interval(*t))),
        Value::Date(d) => return Ok(Some(Span::Moment(d.at_midnight()))),
        Value::DateTime(d) => return Ok(Some(Span::Moment(*d))),
        Value::Timestamp(t) => return Ok(Some(Span::Moment(ctx.env.time_zone.to_local(*t)))),
        Value::Str(s) => Span::parse(&s.bytes, mode),
        Value::Enum { label, .. } | Value::Set { label, .. } => Span::parse(&label.bytes, mode),
        Value::Double(v) => Span::from_decimal(&Decimal::of_moment(*v), mode),
        number => match to_decimal(number, ctx)? {
            None => return Ok(None),
            Some(exact) => Span::from_decimal(&exact, mode),
        },
    };
    checked(parsed, from, what, value, ctx)
}

/// As what ADDTIME and TIMEDIFF start from: a moment or a TIME.
pub(crate) fn to_time_span(
    value: &Value,
    from: Origin<'_>,
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<Span>> {
    let mode = date_mode(ctx);
    let parsed = match value {
        Value::Str(s) => Span::parse_time(&s.bytes, mode),
        Value::Enum { label, .. } | Value::Set { label, .. } => Span::parse_time(&label.bytes, mode),
        Value::Null | Value::Time(_) | Value::Date(_) | Value::DateTime(_) | Value::Timestamp(_) => {
            return to_span(value, from, "time", ctx);
        }
        Value::Double(v) => Span::time_from_decimal(&Decimal::of_moment(*v), mode),
        number => match to_decimal(number, ctx)? {
            None => return Ok(None),
            Some(exact) => Span::time_from_decimal(&exact, mode),
        },
    };
    checked(parsed, from, "time", value, ctx)
}

/// Modes that matter when text becomes a date inside an expression: zero dates are good there.
fn date_mode(ctx: &EvalContext<'_>) -> SqlMode {
    SqlMode(ctx.env.sql_mode.0 & (SqlMode::ALLOW_INVALID_DATES.0 | SqlMode::TIME_ROUND_FRACTIONAL.0))
}

/// Warns about what the parse met.
fn checked<T>(
    parsed: Parsed<T>,
    from: Origin<'_>,
    what: &str,
    value: &Value,
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<T>> {
    if parsed.issues == Issues::default() && parsed.value.is_some() {
        return Ok(parsed.value);
    }
    if parsed.value.is_none() {
        ctx.warn(ErrorCode::TruncatedWrongValue, from.warning(what, value, ctx))?;
        return Ok(None);
    }
    if let Some(warning) = parsed.warning(what, shown(value).as_bytes()) {
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

/// As a UUID or an address; what is none warns and is NULL.
pub(crate) fn to_fixed(value: &Value, kind: FixedKind, ctx: &EvalContext<'_>) -> SqlResult<Option<Fixed>> {
    let found = kind.of_value(value);
    if found.is_none() && !value.is_null() {
        let error = kind.incorrect(value.to_text().as_bytes());
        ctx.warn(error.code, error.message)?;
    }
    Ok(found)
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
        // Among other integers a BIT is its number.
        (TypeClass::Int, Value::Bit { bits, .. }) if to.kind != TypeKind::Bit => Value::UInt(*bits),
        (TypeClass::Int, _) | (TypeClass::Decimal, Value::Decimal(_)) => return Ok(value),
        (TypeClass::Real, Value::Double(_)) => return Ok(value),
        (TypeClass::Decimal, v) => to_decimal(v, ctx)?.map_or(Value::Null, Value::Decimal),
        (TypeClass::Real, v) => to_f64(v, ctx)?.map_or(Value::Null, Value::Double),
        (TypeClass::String, Value::Str(s)) if s.collation == to.collation => return Ok(value),
        (TypeClass::String, Value::Enum { .. } | Value::Set { .. }) if from.kind == to.kind => {
            return Ok(value);
        }
        (TypeClass::String, v) => {
            let text = text_of(v, from.decimals).unwrap_or_default();
            let text = match from.flavor {
                Flavor::Zerofill(width) => zero_filled(text, width),
                _ => text,
            };
            // Beside bytes a text is the bytes of its own character set.
            let text = match to.collation == Collation::BINARY && from.class() == TypeClass::String {
                true => crate::text_size::encode(text, from.collation),
                false => text,
            };
            let bytes = text.into_owned();
            Value::Str(Str { bytes, collation: to.collation })
        }
        (TypeClass::Date, v) => {
            to_datetime(v, Origin::UNKNOWN, ctx)?.map_or(Value::Null, |d| Value::Date(d.date))
        }
        (TypeClass::DateTime, v) => {
            to_datetime(v, Origin::UNKNOWN, ctx)?.map_or(Value::Null, Value::DateTime)
        }
        (TypeClass::Time, v) => to_time(v, Origin::UNKNOWN, ctx)?.map_or(Value::Null, Value::Time),
        (TypeClass::Fixed, v) => match to.fixed_kind() {
            Some(kind) => to_fixed(v, kind, ctx)?.map_or(Value::Null, Value::Fixed),
            None => Value::Null,
        },
    };
    Ok(Cow::Owned(converted))
}

/// The zero date is NULL for functions that need a real one.
pub(crate) fn not_zero(date: Date) -> Option<Date> {
    (date.month != 0 && date.day != 0).then_some(date)
}
