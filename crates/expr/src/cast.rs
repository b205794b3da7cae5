//! CAST and CONVERT.

use std::borrow::Cow;

use cohort_types::{
    Charset, Collation, Decimal, ErrorCode, IntValue, Interrupt, Level, SqlError, SqlMode, SqlResult,
    TypeKind, Value, Warning,
};

use crate::context::{EvalContext, SessionEnv};
use crate::convert::string_value;
use crate::convert::{self, Origin};
use crate::expr::{Cast, CastType, Expr};
use crate::expr_type::int_type;
use crate::expr_type::{Coercibility, ExprType, TypeClass};
use crate::function::NumberOf;
use crate::typing::{byte_width, width};

/// Returns the static type of a cast.
pub(crate) fn type_of(operand: &Expr, to: CastType, _: &SessionEnv) -> ExprType {
    let nullable = operand.ty_cow().nullable;
    let text = |length: Option<u32>, collation: Collation| {
        let natural = u32::try_from(width(operand)).unwrap_or(u32::MAX);
        let bytes_max = u32::MAX / collation.charset().mbmaxlen();
        let length = length.unwrap_or(natural).min(bytes_max);
        let mut ty = ExprType::text(length, collation, Coercibility::Implicit);
        ty.ascii = operand.ty_cow().ascii;
        ty.decimals = 0;
        ty
    };
    let ty = match to {
        CastType::Signed | CastType::Unsigned => {
            let unsigned = to == CastType::Unsigned;
            let is_natural =
                matches!(operand, Expr::Const(c) if matches!(c.value, Value::Int(0..) | Value::UInt(_)));
            let from = operand.ty();
            let from_unsigned = from.unsigned || from.kind == TypeKind::Timestamp;
            let digits = if unsigned && !from_unsigned && !is_natural {
                // A negative number keeps its 64 bits, which take 20 digits.
                20
            } else if from.class() == TypeClass::Real {
                20
            } else {
                u32::try_from(width(operand)).unwrap_or(21).clamp(1 + u32::from(!unsigned), 21)
            };
            let ty = int_type(digits, unsigned).with_nullable(nullable);
            let kind = if unsigned && digits == 10 { TypeKind::Int } else { ty.kind };
            return ExprType { kind, ..ty };
        }
        CastType::Double { size: None } => return ExprType::number(TypeKind::Double, 22, 31),
        CastType::Double { size: Some((length, decimals)) } => {
            return ExprType::double_fixed(length.into(), decimals);
        }
        CastType::Float => return ExprType::number(TypeKind::Float, 12, 31),
        CastType::Decimal { precision, decimals } => {
            return ExprType::decimal(u32::from(precision), decimals, false).with_nullable(nullable);
        }
        CastType::Char { length, collation } => text(length, collation),
        CastType::Binary { length } => {
            let bytes = u32::try_from(byte_width(operand)).unwrap_or(u32::MAX);
            text(Some(length.unwrap_or(bytes)), Collation::BINARY)
        }
        CastType::Date => ExprType::date(),
        CastType::Time { decimals } => ExprType::time(decimals),
        CastType::DateTime { decimals } => ExprType::datetime(decimals),
        CastType::Year => ExprType::number(TypeKind::Year, 4, 0).with_unsigned(true),
        CastType::Fixed(kind) => ExprType::fixed(kind),
        CastType::Json => {
            let mut ty = text(None, Collation::UTF8MB4_BIN);
            ty.kind = TypeKind::Json;
            ty
        }
    };
    // An invalid value becomes NULL.
    ty.with_nullable(true)
}

/// Evaluates a cast.
pub(crate) fn eval<'a>(
    node: &'a Cast,
    row: &'a [Value],
    ctx: &'a EvalContext<'_>,
) -> SqlResult<Cow<'a, Value>> {
    if let CastType::Char { length, collation } = node.to {
        return to_char(node, length, collation, row, ctx).map(Cow::Owned);
    }
    if let CastType::Binary { length } = node.to {
        return to_binary(node, length, row, ctx).map(Cow::Owned);
    }
    let value = match node.to {
        // CAST of JSON to an integer parses its text.
        CastType::Signed | CastType::Unsigned if node.operand.number_view() == Some(NumberOf::Json) => {
            node.operand.eval(row, ctx)?
        }
        CastType::Signed
        | CastType::Unsigned
        | CastType::Double { .. }
        | CastType::Float
        | CastType::Decimal { .. } => node.operand.eval_number(row, ctx)?,
        _ => node.operand.eval(row, ctx)?,
    };
    if value.is_null() {
        return Ok(value);
    }
    let cast = match node.to {
        CastType::Signed => to_signed(&value, ctx)?,
        CastType::Unsigned => to_unsigned(&value, ctx)?,
        CastType::Double { size } => {
            convert::to_f64(&value, ctx)?.map(|v| Value::Double(to_size(node, v, size, ctx)))
        }
        CastType::Float => convert::to_f64(&value, ctx)?.map(|v| to_float(node, v, ctx)),
        CastType::Decimal { precision, decimals } => to_decimal(node, &value, precision, decimals, ctx)?,
        CastType::Date => {
            convert::to_whole_datetime(&value, Origin::of(&node.operand), ctx)?.map(|d| Value::Date(d.date))
        }
        CastType::DateTime { decimals } => {
            let mode = rounding(ctx);
            convert::to_whole_datetime(&value, Origin::of(&node.operand), ctx)?
                .and_then(|d| d.with_decimals(decimals, mode))
                .map(Value::DateTime)
        }
        CastType::Time { decimals } => convert::to_time(&value, Origin::of(&node.operand), ctx)?
            .map(|t| Value::Time(t.with_decimals(decimals, rounding(ctx)))),
        CastType::Year => convert::to_int(&value, ctx)?.map(|v| Value::UInt(convert::bits_of(v))),
        CastType::Fixed(kind) => convert::to_fixed(&value, kind, ctx)?.map(Value::Fixed),
        CastType::Json | CastType::Char { .. } | CastType::Binary { .. } => {
            let bytes = convert::text_of(&value, node.operand.ty_cow().decimals).map(Cow::into_owned);
            bytes.map(|bytes| string_value(bytes, node.ty.collation))
        }
    };
    Ok(Cow::Owned(cast.unwrap_or(Value::Null)))
}

fn rounding(ctx: &EvalContext<'_>) -> SqlMode {
    ctx.env.sql_mode
}

/// Casts to SIGNED. An unsigned integer keeps its bits; a text beyond BIGINT becomes its low 64 bits, as in
/// MariaDB.
pub(crate) fn to_signed(value: &Value, ctx: &EvalContext<'_>) -> SqlResult<Option<Value>> {
    if let Value::Double(_) | Value::Float(_) = value {
        let v = convert::to_f64(value, ctx)?.unwrap_or(0.0);
        return Ok(Some(Value::Int(double_to_signed(v, ctx)?)));
    }
    if let Value::Decimal(d) = value {
        let (whole, lost) = d.to_i64();
        if lost == cohort_types::Lost::Range {
            overflow_warning(value, "INT", ctx)?;
        }
        return Ok(Some(Value::Int(whole)));
    }
    Ok(convert::to_int(value, ctx)?.map(|v| match v {
        IntValue::Signed(v) => Value::Int(v),
        IntValue::Unsigned(v) => Value::Int(v as i64),
    }))
}

fn double_to_signed(v: f64, ctx: &EvalContext<'_>) -> SqlResult<i64> {
    let rounded = v.round_ties_even();
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
        return Ok(rounded as i64);
    }
    overflow_note(v, "SIGNED BIGINT", ctx);
    Ok(if v < 0.0 { i64::MIN } else { i64::MAX })
}

fn overflow_warning(value: &Value, to: &str, ctx: &EvalContext<'_>) -> SqlResult<()> {
    let text = value.to_text();
    ctx.warn(
        ErrorCode::DataOverflow,
        format!("Got overflow when converting '{text}' to {to}. Value truncated"),
    )
}

fn overflow_note(v: f64, to: &str, ctx: &EvalContext<'_>) {
    let text = Value::Double(v).to_text();
    ctx.note(
        ErrorCode::DataOverflow,
        format!("Got overflow when converting '{text}' to {to}. Value truncated"),
    );
}

/// Casts to UNSIGNED. A negative integer keeps its bits, with a note; negative decimals and doubles become 0.
fn to_unsigned(value: &Value, ctx: &EvalContext<'_>) -> SqlResult<Option<Value>> {
    if let Value::Double(_) | Value::Float(_) = value {
        let v = &convert::to_f64(value, ctx)?.unwrap_or(0.0);
        let rounded = v.round_ties_even();
        if (0.0..18_446_744_073_709_551_616.0).contains(&rounded) {
            return Ok(Some(Value::UInt(rounded as u64)));
        }
        overflow_note(*v, "UNSIGNED BIGINT", ctx);
        return Ok(Some(Value::UInt(if *v < 0.0 { 0 } else { u64::MAX })));
    }
    if let Value::Decimal(d) = value {
        let (whole, lost) = d.to_u64();
        if lost == cohort_types::Lost::Range {
            overflow_warning(value, "UNSIGNED INT", ctx)?;
        }
        return Ok(Some(Value::UInt(whole)));
    }
    Ok(convert::to_int(value, ctx)?.map(|v| {
        if matches!(v, IntValue::Signed(n) if n < 0) {
            ctx.note(
                ErrorCode::UnknownError,
                "Cast to unsigned converted negative integer to it's positive complement",
            );
        }
        Value::UInt(convert::bits_of(v))
    }))
}

/// Returns the nearest DOUBLE(m,d).
fn to_size(node: &Cast, v: f64, size: Option<(u8, u8)>, ctx: &EvalContext<'_>) -> f64 {
    let Some((length, decimals)) = size else { return v };
    let unit = 10f64.powi(i32::from(decimals));
    let max = (10f64.powi(i32::from(length)) - 1.0) / unit;
    let rounded = (v * unit).round_ties_even() / unit;
    if rounded.abs() <= max {
        return rounded;
    }
    let shown = Expr::Cast(Box::new(node.clone()));
    let text = format!("Out of range value for column '{shown}' at row 1");
    ctx.note(ErrorCode::WarnDataOutOfRange, text);
    max.copysign(v)
}

/// Returns the nearest FLOAT.
fn to_float(node: &Cast, v: f64, ctx: &EvalContext<'_>) -> Value {
    let max = f64::from(f32::MAX);
    if v.abs() > max {
        let shown = Expr::Cast(Box::new(node.clone()));
        let text = format!("Out of range value for column '{shown}' at row 1");
        ctx.note(ErrorCode::WarnDataOutOfRange, text);
    }
    Value::Float(v.clamp(-max, max) as f32)
}

fn to_decimal(
    node: &Cast,
    value: &Value,
    precision: u8,
    decimals: u8,
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<Value>> {
    let Some(number) = convert::to_decimal(value, ctx)? else { return Ok(None) };
    let limit = Decimal::max_of(precision, decimals);
    let rounded = number.round(i32::from(decimals));
    if let Ok(fitting) = rounded
        && fitting.abs() <= limit
    {
        return Ok(Some(Value::Decimal(fitting)));
    }
    let shown = Expr::Cast(Box::new(node.clone()));
    ctx.warn(ErrorCode::WarnDataOutOfRange, format!("Out of range value for column '{shown}' at row 1"))?;
    Ok(Some(Value::Decimal(if number.is_negative() { limit.neg() } else { limit })))
}

fn to_char(
    node: &Cast,
    length: Option<u32>,
    collation: Collation,
    row: &[Value],
    ctx: &EvalContext<'_>,
) -> SqlResult<Value> {
    let Some(text) = node.operand.eval_text(row, ctx)? else { return Ok(Value::Null) };
    let mut bytes = match (node.operand.ty_cow().collation.charset(), collation.charset()) {
        (Charset::Binary, Charset::Binary) => text.into_owned(),
        // Bytes become text of the target character set.
        (Charset::Binary, to) if node.operand.ty_cow().class() == TypeClass::String => {
            decoded(&text, to, ctx)?
        }
        // Text becomes the bytes of its character set.
        (_, Charset::Binary) if node.operand.ty_cow().class() == TypeClass::String => {
            crate::convert::encode(text, node.operand.ty_cow().collation).into_owned()
        }
        (_, to) if to.check(&text).is_err() => squeezed(&text, to, ctx)?,
        _ => text.into_owned(),
    };
    if let Some(length) = length {
        let end = collation.prefix_len(&bytes, length as usize);
        warn_cut(node, &bytes, end, &format!("CHAR({length})"), ctx)?;
        bytes.truncate(end);
    }
    Ok(string_value(bytes, collation))
}

/// Decodes bytes of a character set. A unit that is invalid becomes a question mark. Bytes that do not fill
/// complete units are padded with zeros on the left.
fn decoded(bytes: &[u8], to: Charset, ctx: &EvalContext<'_>) -> SqlResult<Vec<u8>> {
    let unit = to.mbminlen() as usize;
    let missing = bytes.len().next_multiple_of(unit) - bytes.len();
    let padded;
    let mut rest = bytes;
    if missing > 0 {
        padded = [&vec![0; missing][..], bytes].concat();
        rest = &padded;
    }
    let mut out = Vec::with_capacity(rest.len());
    let mut is_reported = false;
    while let Err(good) = to.decode(rest, &mut out) {
        ctx.step()?;
        if !is_reported {
            is_reported = true;
            let shown = convert::shown_bytes(&rest[good..], Collation::BINARY);
            let text = format!("Invalid {} character string: '{shown}'", to.name());
            ctx.warn(ErrorCode::InvalidCharacterString, text)?;
        }
        out.extend(std::iter::repeat_n(b'?', unit));
        rest = rest.get(good + unit..).unwrap_or_default();
    }
    Ok(out)
}

/// Returns the text with a question mark, and a warning, for each character that the target character set
/// lacks.
fn squeezed(text: &[u8], to: Charset, ctx: &EvalContext<'_>) -> SqlResult<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut coded = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (bytes, after) = rest.split_at(Collation::UTF8MB4_BIN.prefix_len(rest, 1));
        rest = after;
        if to.encode(bytes, &mut coded) == 0 {
            out.extend_from_slice(bytes);
            continue;
        }
        ctx.step()?;
        out.push(b'?');
        let shown = String::from_utf8_lossy(&crate::convert::hex_text(bytes)).into_owned();
        let message = format!("Cannot convert 'utf8mb4' character 0x{shown} to '{}'", to.name());
        ctx.warn(ErrorCode::CannotConvertCharacter, message)?;
    }
    Ok(out)
}

fn to_binary(node: &Cast, length: Option<u32>, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Value> {
    let packet = u32::try_from(ctx.env.max_allowed_packet).unwrap_or(u32::MAX);
    let length = match length {
        Some(length) if length > packet => {
            let what = "Result of cast_as_binary() was larger than max_allowed_packet";
            ctx.warn(ErrorCode::WarnAllowedPacketOverflowed, format!("{what} ({packet}) - truncated"))?;
            Some(packet)
        }
        other => other,
    };
    if node.operand.ty_cow().class() == TypeClass::Fixed
        && let Value::Fixed(fixed) = &*node.operand.eval(row, ctx)?
    {
        let mut bytes = fixed.bytes().to_vec();
        bytes.resize(length.map_or(bytes.len(), |length| length as usize), 0);
        return Ok(string_value(bytes, Collation::BINARY));
    }
    let Some(text) = node.operand.eval_text(row, ctx)? else { return Ok(Value::Null) };
    let mut bytes = crate::convert::encode(text, node.operand.ty_cow().collation).into_owned();
    if let Some(length) = length {
        let end = bytes.len().min(length as usize);
        warn_cut(node, &bytes, end, &format!("BINARY({length})"), ctx)?;
        bytes.resize(length as usize, 0);
    }
    Ok(string_value(bytes, Collation::BINARY))
}

/// Warns about a truncated value. Truncation of text is a warning even in strict mode, because the statement
/// requests it. Truncation of numbers and dates is an error there.
fn warn_cut(node: &Cast, bytes: &[u8], end: usize, to: &str, ctx: &EvalContext<'_>) -> SqlResult<()> {
    if end == bytes.len() {
        return Ok(());
    }
    let error = SqlError::truncated_text(to, &convert::shown_text(bytes));
    if !matches!(node.operand.ty_cow().class(), TypeClass::String | TypeClass::Fixed) {
        return ctx.warn(error.code, error.message);
    }
    ctx.push_warning(Warning { level: Level::Warning, error });
    Ok(())
}
