//! Conversions of values to numbers, texts and dates, with MariaDB's warnings about losses.

use std::borrow::Cow;

use cohort_base::whole_chars;
use cohort_types::{
    Charset, Collation, CountBytes, Date, DateTime, Decimal, ErrorCode, Fixed, FixedKind, IntValue, Issues,
    Parsed, Span, SqlMode, SqlResult, Str, Time, TimeZone as _, TypeKind, Value, clip,
};

use crate::context::EvalContext;
use crate::expr::Expr;
use crate::expr_type::{ExprType, Flavor, NOT_FIXED_DECIMALS, TypeClass};

/// Converts to a double.
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

/// Converts to an exact number.
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

/// Converts to an integer, rounded.
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

/// Converts to a truth value.
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

/// Returns the nearest BIGINT.
pub(crate) fn clamp_signed(value: IntValue) -> i64 {
    match value {
        IntValue::Signed(v) => v,
        IntValue::Unsigned(v) => i64::try_from(v).unwrap_or(i64::MAX),
    }
}

/// Returns the 64 bits of an integer, as bit operators use them.
pub(crate) fn bits_of(value: IntValue) -> u64 {
    match value {
        IntValue::Signed(v) => v as u64,
        IntValue::Unsigned(v) => v,
    }
}

/// Converts to text. `decimals` belongs to the expression that returned the value. Returns `None` for NULL.
pub(crate) fn text_of(value: &Value, decimals: u8) -> Option<Cow<'_, [u8]>> {
    match value {
        Value::Null => None,
        Value::Str(s) => Some(Cow::Borrowed(&s.bytes)),
        Value::Enum { label, .. } | Value::Set { label, .. } => Some(Cow::Borrowed(&label.bytes)),
        other => Some(Cow::Owned(owned_text(other, decimals))),
    }
}

/// Variant that consumes the value.
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
        // A quotient has more digits than its type; the text shows the type's digits.
        Value::Decimal(d)
            if decimals <= Decimal::MAX_SCALE && decimals != NOT_FIXED_DECIMALS && d.scale() != decimals =>
        {
            d.round(i32::from(decimals)).unwrap_or(*d).write_text(&mut out);
        }
        other => other.write_text(decimals, &mut out),
    }
    out
}

/// Source and use of a value, for the wording of warnings.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'e> {
    expr: Option<&'e Expr>,
    complaint: &'static str,
}

impl<'e> Origin<'e> {
    /// A value of unknown source.
    pub const UNKNOWN: Origin<'static> = Origin { expr: None, complaint: "Incorrect" };

    /// Returns the origin of an expression's value.
    pub fn of(expr: &'e Expr) -> Origin<'e> {
        Origin { expr: Some(expr), ..Origin::UNKNOWN }
    }

    /// Returns the origin of an operand of a comparison: MariaDB's warnings word a constant differently.
    pub fn compared(expr: Option<&'e Expr>) -> Origin<'e> {
        let is_const = !matches!(expr, Some(e) if !e.is_const_per_execution());
        Origin { expr, complaint: if is_const { "Truncated incorrect" } else { "Incorrect" } }
    }

    /// Returns true for a value of a YEAR column.
    fn is_year(self) -> bool {
        matches!(self.expr, Some(Expr::Column(column)) if column.ty.kind == TypeKind::Year)
    }

    /// Returns `Incorrect datetime value: 'x' for column ..`, with the value truncated.
    pub fn warning(self, what: &str, value: &Value, ctx: &EvalContext<'_>) -> String {
        let text = format!("{} {what} value: '{}'", self.complaint, shown(value));
        match self.expr {
            // For a temporal column MariaDB shows the value without the column.
            Some(Expr::Column(column)) if !column.ty.is_temporal() => {
                format!("{text} for column {} at row {}", column.name, ctx.row_number())
            }
            _ => text,
        }
    }
}

/// Maximum number of bytes of a value in a warning.
const SHOWN_BYTES: usize = 128;

/// Formats a value for warnings about dates: bytes that are not printable ASCII as `\xHH`.
fn shown(value: &Value) -> String {
    match value {
        Value::Str(s) => shown_bytes(&s.bytes, s.collation),
        Value::Bit { .. } => shown_bytes(&text_of(value, 0).unwrap_or_default(), Collation::BINARY),
        other => clip(&other.to_text(), SHOWN_BYTES),
    }
}

/// Formats a text for warnings about dates.
pub(crate) fn shown_bytes(text: &[u8], collation: Collation) -> String {
    // A character of four bytes in memory may be one byte in its character set.
    let read = text.len().min(4 * (SHOWN_BYTES + 1));
    let bytes = crate::convert::encode(Cow::Borrowed(&text[..read]), collation);
    let mut out = String::new();
    for b in bytes.iter().take(SHOWN_BYTES + 1) {
        match b {
            0x20..=0x7e => out.push(char::from(*b)),
            other => out.push_str(&format!("\\x{other:02X}")),
        }
    }
    clip(&out, SHOWN_BYTES)
}

/// Returns the start of a text for a warning, unescaped and with a mark if it is truncated.
pub(crate) fn shown_text(text: &[u8]) -> String {
    clip(&start_of_text(text, SHOWN_BYTES + 4), SHOWN_BYTES)
}

/// Returns the complete characters in the first bytes of a text, for warnings that do not mark truncation.
pub(crate) fn start_of_text(text: &[u8], bytes: usize) -> String {
    let read = String::from_utf8_lossy(&text[..text.len().min(bytes + 3)]);
    whole_chars(&read, bytes).to_owned()
}

/// Converts to DATETIME. Returns `None` with a warning for an invalid value.
pub(crate) fn to_datetime(
    value: &Value,
    from: Origin<'_>,
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<DateTime>> {
    let mut mode = date_mode(ctx);
    if from.complaint != Origin::UNKNOWN.complaint {
        // Comparisons accept days that their month does not have.
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
        Value::Double(v) => DateTime::from_decimal(&Decimal::of_temporal_number(*v), mode),
        number => match to_decimal(number, ctx)? {
            None => return Ok(None),
            Some(exact) => DateTime::from_decimal(&exact, mode),
        },
    };
    checked(parsed, from, "datetime", value, ctx)
}

/// Converts to DATETIME where the date part matters: CAST, DATE(), TIMESTAMP(). There, NO_ZERO_DATE and
/// NO_ZERO_IN_DATE make the dates that they name invalid.
pub(crate) fn to_whole_datetime(
    value: &Value,
    from: Origin<'_>,
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<DateTime>> {
    let Some(datetime) = to_datetime(value, from, ctx)? else { return Ok(None) };
    let (mode, date) = (ctx.env.sql_mode, datetime.date);
    let is_refused = match date.is_zero() {
        true => mode.has(SqlMode::NO_ZERO_DATE),
        false => mode.has(SqlMode::NO_ZERO_IN_DATE) && (date.month == 0 || date.day == 0),
    };
    if is_refused && !matches!(value, Value::Time(_)) {
        ctx.warn(ErrorCode::TruncatedWrongValue, from.warning("datetime", value, ctx))?;
        return Ok(None);
    }
    Ok(Some(datetime))
}

/// Converts to TIME.
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
        Value::Double(v) => Time::from_decimal(&Decimal::of_temporal_number(*v), mode),
        number => match to_decimal(number, ctx)? {
            None => return Ok(None),
            Some(exact) => Time::from_decimal(&exact, mode),
        },
    };
    checked(parsed, from, "time", value, ctx)
}

/// Converts the operand of EXTRACT to a datetime or an interval. Warns about an invalid value as `what`.
pub(crate) fn to_span(
    value: &Value,
    from: Origin<'_>,
    what: &str,
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<Span>> {
    let mode = date_mode(ctx);
    if let (true, Value::UInt(hours)) = (from.is_year(), value) {
        // MariaDB treats a year as hours here.
        return Ok(Some(Span::Interval(Time { micros: *hours as i64 * 3_600_000_000 })));
    }
    let parsed = match value {
        Value::Null => return Ok(None),
        Value::Time(t) => return Ok(Some(Span::Interval(*t))),
        Value::Date(d) => return Ok(Some(Span::DateTime(d.at_midnight()))),
        Value::DateTime(d) => return Ok(Some(Span::DateTime(*d))),
        Value::Timestamp(t) => return Ok(Some(Span::DateTime(ctx.env.time_zone.to_local(*t)))),
        Value::Str(s) => Span::parse(&s.bytes, mode),
        Value::Enum { label, .. } | Value::Set { label, .. } => Span::parse(&label.bytes, mode),
        Value::Double(v) => Span::from_decimal(&Decimal::of_temporal_number(*v), mode),
        number => match to_decimal(number, ctx)? {
            None => return Ok(None),
            Some(exact) => Span::from_decimal(&exact, mode),
        },
    };
    checked(parsed, from, what, value, ctx)
}

/// Converts the first operand of ADDTIME and TIMEDIFF to a datetime or a TIME.
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
        Value::Double(v) => Span::time_from_decimal(&Decimal::of_temporal_number(*v), mode),
        number => match to_decimal(number, ctx)? {
            None => return Ok(None),
            Some(exact) => Span::time_from_decimal(&exact, mode),
        },
    };
    checked(parsed, from, "time", value, ctx)
}

/// Returns the SQL modes that affect conversions to dates inside an expression, where zero dates are valid.
fn date_mode(ctx: &EvalContext<'_>) -> SqlMode {
    SqlMode(ctx.env.sql_mode.0 & (SqlMode::ALLOW_INVALID_DATES.0 | SqlMode::TIME_ROUND_FRACTIONAL.0))
}

/// Warns about issues of the conversion.
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

/// Adds a TIME in date context to the current date.
fn time_to_datetime(time: Time, ctx: &EvalContext<'_>) -> Option<DateTime> {
    const DAY: i64 = 86_400_000_000;
    let date = ctx.now().date.add_days(time.micros.div_euclid(DAY))?;
    Some(DateTime::from_micros_of_day(date, time.micros.rem_euclid(DAY)))
}

/// Converts to a UUID or an address. Returns `None` with a warning for an invalid value.
pub(crate) fn to_fixed(value: &Value, kind: FixedKind, ctx: &EvalContext<'_>) -> SqlResult<Option<Fixed>> {
    let found = kind.of_value(value);
    if found.is_none() && !value.is_null() {
        let error = kind.incorrect(value.to_text().as_bytes());
        ctx.warn(error.code, error.message)?;
    }
    Ok(found)
}

/// Warns about a division by zero under ERROR_FOR_DIVISION_BY_ZERO.
pub(crate) fn division_by_zero(ctx: &EvalContext<'_>) -> SqlResult<()> {
    if ctx.env.sql_mode.has(SqlMode::ERROR_FOR_DIVISION_BY_ZERO) {
        ctx.warn(ErrorCode::DivisionByZero, "Division by 0")?;
    }
    Ok(())
}

/// Converts the value of a branch to the common type of all branches (IF, CASE, COALESCE, ..).
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
        // With other integers, BIT is a number.
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
            // With bytes, a text is the bytes of its character set.
            let text = match to.collation == Collation::BINARY && from.class() == TypeClass::String {
                true => crate::convert::encode(text, from.collation),
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

/// Returns `None` for a date with a zero month or day, for functions that need a complete date.
pub(crate) fn not_zero(date: Date) -> Option<Date> {
    (date.month != 0 && date.day != 0).then_some(date)
}

/// Pads a number's text with zeros on the left.
pub(crate) fn zero_filled(text: Cow<'_, [u8]>, width: u32) -> Cow<'_, [u8]> {
    let missing = (width as usize).saturating_sub(text.len());
    if missing == 0 {
        return text;
    }
    let mut out = vec![b'0'; missing];
    out.extend_from_slice(&text);
    Cow::Owned(out)
}

/// Returns a string value.
pub(crate) fn string_value(bytes: Vec<u8>, collation: cohort_types::Collation) -> Value {
    Value::Str(Str { bytes, collation })
}

/// Converts UTF-8 text to the character set of a collation.
pub(crate) fn encode(text: std::borrow::Cow<'_, [u8]>, collation: Collation) -> std::borrow::Cow<'_, [u8]> {
    let charset = collation.charset();
    if charset.is_as_in_memory() || (charset == Charset::Latin1 && text.is_ascii()) {
        return text;
    }
    let mut out = Vec::with_capacity(text.len());
    charset.encode(&text, &mut out);
    std::borrow::Cow::Owned(out)
}

/// Returns upper-case hexadecimal digits.
pub(crate) fn hex_text(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]).collect()
}

/// Returns the number of a hexadecimal or bit literal: its last eight bytes.
pub(crate) fn hex_number(value: &Value) -> Value {
    let bytes = value.as_bytes().unwrap_or_default();
    let last = &bytes[bytes.len().saturating_sub(8)..];
    Value::UInt(last.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
}
