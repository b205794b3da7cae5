//! Assignment to numeric columns, BIT and YEAR.

use super::store::Store;
use crate::value::number::{Numeric, parse_f64};
use crate::{
    ColumnType, DECIMALS_NOT_FIXED, Decimal, IntValue, Lost, NoWarnings, SqlError, SqlResult, Str, TypeKind,
    Value,
};

/// Kind of text after a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Nothing,
    Spaces,
    Garbage,
    /// The text does not start with a number.
    NoNumber,
}

/// Returns the length of the number at the start of a text, including leading spaces, and the kind of text
/// after it.
fn number_prefix(text: &[u8]) -> (usize, Rest) {
    let start = text.len() - text.trim_ascii_start().len();
    let digits = |from: usize| text[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = start + usize::from(matches!(text.get(start), Some(b'-' | b'+')));
    let int = digits(end);
    end += int;
    let mut fraction = 0;
    if text.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        if int + fraction > 0 {
            end += 1 + fraction;
        }
    }
    if int + fraction == 0 {
        return (0, Rest::NoNumber);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'-' | b'+')));
        let exponent = if end + 1 + sign <= text.len() { digits(end + 1 + sign) } else { 0 };
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let rest = match &text[end..] {
        [] => Rest::Nothing,
        rest if rest.trim_ascii_start().is_empty() => Rest::Spaces,
        _ => Rest::Garbage,
    };
    (end, rest)
}

impl Store<'_> {
    /// Reports the text after a number.
    fn rest(&mut self, rest: Rest, kind: &str, text: &Str) -> SqlResult<()> {
        match rest {
            Rest::Nothing => Ok(()),
            Rest::Spaces => {
                self.note_truncated();
                Ok(())
            }
            Rest::Garbage => self.truncated(),
            Rest::NoNumber => self.incorrect(kind, &text.shown()),
        }
    }

    pub(super) fn integer(&mut self, value: Value) -> SqlResult<Value> {
        let range = self.ty.integer_range().expect("only called for integer types");
        let is_below_zero = matches!(&value, Value::Decimal(v) if v.is_negative());
        let (wide, rest) = match Store::text_of(self.local(value)) {
            Ok(text) => {
                let (wide, rest) = integer_of_text(&text.bytes);
                (wide, Some((rest, text)))
            }
            Err(value) => (integer_of(&value), None),
        };
        let clamped = wide.clamp(range.0, range.1);
        // As in MariaDB, a decimal below 0 does not fit even if it rounds to 0.
        if clamped != wide || (self.ty.unsigned && is_below_zero) {
            self.out_of_range()?;
        } else if let Some((rest, text)) = rest {
            self.rest(rest, "integer", &text)?;
        }
        Ok(if self.ty.unsigned { Value::UInt(clamped as u64) } else { Value::Int(clamped as i64) })
    }

    pub(super) fn decimal(&mut self, value: Value) -> SqlResult<Value> {
        let (number, lost, rest) = match Store::text_of(self.local(value)) {
            Ok(text) => {
                let (end, rest) = number_prefix(&text.bytes);
                let (number, lost) = Decimal::parse(&text.bytes[..end]);
                (number, lost, Some((rest, text)))
            }
            Err(Value::Double(v)) => {
                let (number, lost) = Decimal::from_f64(v);
                (number, lost, None)
            }
            Err(value) => (value.to_decimal(&mut NoWarnings).unwrap_or(Decimal::ZERO), Lost::Nothing, None),
        };
        let ty = self.ty;
        let text_rest = rest.as_ref().map_or(Rest::Nothing, |(rest, _)| *rest);
        if let Some((rest @ (Rest::Garbage | Rest::NoNumber), text)) = &rest {
            self.rest(*rest, "decimal", text)?;
        }
        let rounded = number.round(ty.decimals.into()).ok().filter(|_| lost != Lost::Range);
        let rounded = rounded.filter(|v| u32::from(v.int_digits()) + u32::from(ty.decimals) <= ty.length);
        let is_refused = ty.unsigned && number.is_negative();
        let Some(rounded) = rounded.filter(|_| !is_refused) else {
            self.out_of_range()?;
            return Ok(Value::Decimal(limit(ty, number.is_negative())));
        };
        let cut = rounded != number || lost == Lost::Fraction;
        if text_rest == Rest::Spaces || (text_rest == Rest::Nothing && cut) {
            self.note_truncated();
        }
        Ok(Value::Decimal(rounded))
    }

    pub(super) fn real(&mut self, value: Value) -> SqlResult<Value> {
        let number = match Store::text_of(self.local(value)) {
            Ok(text) => {
                let (number, numeric) = parse_f64(&text.bytes);
                let rest = number_prefix(&text.bytes).1;
                if numeric == Numeric::Part && number.abs() == f64::MAX {
                    self.out_of_range()?;
                    return Ok(self.finish_real(number).0);
                }
                self.rest(rest, "double", &text)?;
                number
            }
            Err(value) => value.to_f64(&mut NoWarnings).unwrap_or(0.0),
        };
        let (value, fits) = self.finish_real(number);
        if !fits {
            self.out_of_range()?;
        }
        Ok(value)
    }

    /// Returns the nearest value of the column, and whether the number was in its range.
    fn finish_real(&self, number: f64) -> (Value, bool) {
        if number.is_nan() {
            return (Value::Null, false);
        }
        let ty = self.ty;
        let mut v = number;
        let mut max = if ty.kind == TypeKind::Float { f64::from(f32::MAX) } else { f64::MAX };
        if ty.decimals < DECIMALS_NOT_FIXED {
            let unit = 10f64.powi(ty.decimals.into());
            let limit = 10f64.powi(ty.length as i32 - i32::from(ty.decimals)) - 1.0 / unit;
            max = max.min(limit);
            v = v.floor() + ((v - v.floor()) * unit).round_ties_even() / unit;
        }
        let min = if ty.unsigned { 0.0 } else { -max };
        let clamped = v.clamp(min, max);
        // Adding 0 turns -0 into 0 and changes no other number. MariaDB does not store -0, because its
        // replicas could not find a row by it. A number that becomes -0 only by narrowing to FLOAT stays -0
        // in MariaDB.
        let positive = clamped + 0.0;
        let value = match ty.kind {
            TypeKind::Float => Value::Float(positive as f32),
            _ => Value::Double(positive),
        };
        (value, clamped == v)
    }

    pub(super) fn bit(&mut self, value: Value) -> SqlResult<Value> {
        let width = self.ty.length.clamp(1, 64) as u8;
        let max = u64::MAX >> (64 - width);
        let bits = match self.local(value) {
            Value::Int(v) => Some(v as u64),
            Value::UInt(v) | Value::Bit { bits: v, .. } => Some(v),
            Value::Float(v) => Some(truncated_bits(v.into())),
            Value::Double(v) => Some(truncated_bits(v)),
            Value::Decimal(v) if v.is_negative() && !v.round(0).is_ok_and(|r| r.is_zero()) => {
                self.out_of_range()?;
                Some(0)
            }
            Value::Decimal(v) => Some(v.to_u64()).filter(|(_, lost)| *lost != Lost::Range).map(|(v, _)| v),
            other => {
                let mut text = Vec::new();
                other.write_text(DECIMALS_NOT_FIXED, &mut text);
                let significant = &text[text.iter().take_while(|&&b| b == 0).count()..];
                let fits = significant.len() <= 8;
                fits.then(|| significant.iter().fold(0, |v, b| v << 8 | u64::from(*b)))
            }
        };
        match bits {
            Some(bits) if bits <= max => Ok(Value::Bit { bits, width }),
            _ => {
                self.too_long(SqlError::out_of_range)?;
                Ok(Value::Bit { bits: max, width })
            }
        }
    }

    pub(super) fn year(&mut self, value: Value) -> SqlResult<Value> {
        let (wide, rest) = match Store::text_of(self.local(value)) {
            Ok(text) => {
                let (wide, rest) = integer_of_text(&text.bytes);
                // '0' and '00' are 2000; '0000' is the zero year.
                let digits = text.bytes.trim_ascii().len();
                let wide = if wide == 0 && rest != Rest::NoNumber && digits != 4 { 2000 } else { wide };
                (wide, Some((rest, text)))
            }
            Err(value) => match value {
                Value::Date(_) | Value::Time(_) | Value::DateTime(_) => return self.year_of_temporal(value),
                // Doubles are truncated to years, not rounded.
                Value::Float(v) => (f64_integer(v.trunc().into()), None),
                Value::Double(v) => (f64_integer(v.trunc()), None),
                value => (integer_of(&value), None),
            },
        };
        let year = match wide {
            0 => Some(0),
            1..=69 => Some(wide + 2000),
            70..=99 => Some(wide + 1900),
            1901..=2155 => Some(wide),
            _ => None,
        };
        let Some(year) = year else {
            self.out_of_range()?;
            return Ok(Value::UInt(0));
        };
        if let Some((rest, text)) = rest {
            self.rest(rest, "integer", &text)?;
        }
        Ok(Value::UInt(year as u64))
    }

    fn year_of_temporal(&mut self, value: Value) -> SqlResult<Value> {
        let (kind, year) = match &value {
            Value::Date(v) => ("date", v.year),
            Value::DateTime(v) => ("datetime", v.date.year),
            _ => ("time", 0),
        };
        if self.ctx.strict {
            return Err(self.incorrect_temporal(kind, value.to_text().as_bytes()));
        }
        self.truncated()?;
        Ok(Value::UInt(if (1901..=2155).contains(&year) { year.into() } else { 0 }))
    }
}

/// Returns the smallest or largest value of a DECIMAL column.
fn limit(ty: &ColumnType, negative: bool) -> Decimal {
    match (negative, ty.unsigned) {
        (true, true) => Decimal::max_of(0, ty.decimals),
        (true, false) => Decimal::max_of(ty.length as u8, ty.decimals).neg(),
        (false, _) => Decimal::max_of(ty.length as u8, ty.decimals),
    }
}

/// A number far outside both 64-bit types.
const BEYOND: i128 = 1 << 80;

/// Rounds a value to an integer. A value out of both 64-bit types becomes a number that is also out of them.
fn integer_of(value: &Value) -> i128 {
    match value {
        Value::Float(v) => f64_integer((*v).into()),
        Value::Double(v) => f64_integer(*v),
        Value::Decimal(v) => decimal_integer(v),
        _ => value.to_int(&mut NoWarnings).map_or(0, IntValue::wide),
    }
}

/// Returns the integer part of a double as 64 bits. For a double out of range it is i64::MIN, as on MariaDB's
/// x86 servers.
pub(super) fn truncated_bits(v: f64) -> u64 {
    let limit = 9_223_372_036_854_775_808.0;
    if (-limit..limit).contains(&v) { v as i64 as u64 } else { i64::MIN as u64 }
}

fn f64_integer(v: f64) -> i128 {
    v.round_ties_even().clamp(-(BEYOND as f64), BEYOND as f64) as i128
}

fn decimal_integer(v: &Decimal) -> i128 {
    let beyond = if v.is_negative() { -BEYOND } else { BEYOND };
    match (v.to_i64(), v.to_u64()) {
        ((v, lost), _) if lost != Lost::Range => v.into(),
        (_, (v, lost)) if lost != Lost::Range => v.into(),
        _ => beyond,
    }
}

/// Returns the integer at the start of a text, rounded half away from zero.
fn integer_of_text(text: &[u8]) -> (i128, Rest) {
    let (end, rest) = number_prefix(text);
    let (number, lost) = Decimal::parse(&text[..end]);
    let beyond = if number.is_negative() { -BEYOND } else { BEYOND };
    (if lost == Lost::Range { beyond } else { decimal_integer(&number) }, rest)
}
