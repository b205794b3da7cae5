//! Conversion of values to numbers and text.

use super::number::{self, Numeric};
use super::{IntValue, Str, Value};
use crate::DECIMALS_NOT_FIXED;
use crate::{Decimal, FixedOffset, Lost, SqlError, TimeZone, Warning, WarningSink};

impl Value {
    /// Appends the value as the text protocol sends it, in UTF-8. NULL appends nothing. `decimals` is the
    /// number of fraction digits of temporals and of DOUBLE(m,d), or [`DECIMALS_NOT_FIXED`]. Zero-filled
    /// columns print with [`crate::ColumnType::write_text`]. A TIMESTAMP prints in UTC: convert it to the
    /// session's zone first.
    pub fn write_text(&self, decimals: u8, out: &mut Vec<u8>) {
        match self {
            Value::Null => {}
            Value::Int(v) => number::write_i64(*v, out),
            Value::UInt(v) => number::write_u64(*v, out),
            Value::Float(v) if decimals < DECIMALS_NOT_FIXED => {
                number::write_fixed((*v).into(), decimals, out)
            }
            Value::Float(v) => number::write_f32(*v, out),
            Value::Double(v) if decimals < DECIMALS_NOT_FIXED => number::write_fixed(*v, decimals, out),
            Value::Double(v) => number::write_f64(*v, out),
            Value::Decimal(v) => v.write_text(out),
            Value::Str(s) | Value::Enum { label: s, .. } | Value::Set { label: s, .. } => {
                out.extend_from_slice(&s.bytes);
            }
            Value::Date(v) => v.write_text(out),
            Value::Fixed(v) => v.write_text(out),
            Value::Time(v) => v.write_text(fraction(decimals, v.microsecond()), out),
            Value::DateTime(v) => v.write_text(fraction(decimals, v.micros), out),
            Value::Timestamp(v) => {
                let local = FixedOffset::UTC.to_local(*v);
                local.write_text(fraction(decimals, local.micros), out);
            }
            Value::Bit { bits, width } => {
                out.extend_from_slice(
                    &bits.to_be_bytes()[8 - usize::from((*width).clamp(1, 64).div_ceil(8))..],
                );
            }
        }
    }

    /// Returns the text of [`Value::write_text`] with [`DECIMALS_NOT_FIXED`]. Invalid UTF-8 is replaced.
    pub fn to_text(&self) -> String {
        let mut out = Vec::new();
        self.write_text(DECIMALS_NOT_FIXED, &mut out);
        String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
    }

    /// Converts to a double, `None` for NULL. Bad text warns 1292 "Truncated incorrect DOUBLE value: 'abc'".
    pub fn to_f64(&self, sink: &mut dyn WarningSink) -> Option<f64> {
        Some(match self {
            Value::Null => return None,
            Value::Int(v) => *v as f64,
            Value::UInt(v) | Value::Bit { bits: v, .. } | Value::Set { bits: v, .. } => *v as f64,
            Value::Enum { index, .. } => f64::from(*index),
            Value::Float(v) => f64::from(*v),
            Value::Double(v) => *v,
            Value::Decimal(v) => v.to_f64(),
            Value::Str(s) => {
                let (v, numeric) = number::parse_f64(&s.bytes);
                warn_unless_whole(numeric, "DOUBLE", s, sink);
                v
            }
            Value::Date(v) => f64::from(v.to_number()),
            Value::Fixed(_) => Value::text(self.to_text()).to_f64(sink)?,
            Value::Time(_) | Value::DateTime(_) | Value::Timestamp(_) => self.to_decimal(sink)?.to_f64(),
        })
    }

    /// Converts to an exact number, `None` for NULL. Bad text warns 1292 "Truncated incorrect DECIMAL value:
    /// 'abc'".
    pub fn to_decimal(&self, sink: &mut dyn WarningSink) -> Option<Decimal> {
        Some(match self {
            Value::Null => return None,
            Value::Int(v) => Decimal::from_i64(*v),
            Value::UInt(v) | Value::Bit { bits: v, .. } | Value::Set { bits: v, .. } => Decimal::from_u64(*v),
            Value::Enum { index, .. } => Decimal::from_u64((*index).into()),
            Value::Float(v) => Decimal::from_f64((*v).into()).0,
            Value::Double(v) => Decimal::from_f64(*v).0,
            Value::Decimal(v) => *v,
            Value::Str(s) => {
                let (v, lost) = Decimal::parse(&s.bytes);
                if lost != Lost::Nothing {
                    sink.warn(Warning::new(SqlError::truncated_incorrect("DECIMAL", &s.shown())));
                } else if s.bytes.last() == Some(&b' ') {
                    sink.warn(Warning::note(SqlError::truncated_incorrect("DECIMAL", &s.shown())));
                }
                v
            }
            Value::Date(v) => Decimal::from_u64(v.to_number().into()),
            Value::Fixed(_) => return Value::text(self.to_text()).to_decimal(sink),
            Value::Time(v) => {
                let micros =
                    i128::from(v.to_number().unsigned_abs()) * 1_000_000 + i128::from(v.microsecond());
                with_fraction(if v.micros < 0 { -micros } else { micros }, v.microsecond())
            }
            Value::DateTime(v) => {
                with_fraction(i128::from(v.to_number()) * 1_000_000 + i128::from(v.micros), v.micros)
            }
            Value::Timestamp(v) => return Value::DateTime(FixedOffset::UTC.to_local(*v)).to_decimal(sink),
        })
    }

    /// Converts to an integer, `None` for NULL. Fractions are rounded (doubles half to even), but those of
    /// text and temporals are truncated. [`IntValue`] distinguishes the two 64-bit types; numbers out of both
    /// are clamped. Bad text warns 1292 "Truncated incorrect INTEGER value: 'abc'".
    pub fn to_int(&self, sink: &mut dyn WarningSink) -> Option<IntValue> {
        Some(match self {
            Value::Null => return None,
            Value::Int(v) => IntValue::Signed(*v),
            Value::UInt(v) | Value::Bit { bits: v, .. } | Value::Set { bits: v, .. } => {
                IntValue::Unsigned(*v)
            }
            Value::Enum { index, .. } => IntValue::Unsigned((*index).into()),
            Value::Float(_) | Value::Double(_) => IntValue::from_f64(self.to_f64(sink)?),
            Value::Decimal(v) => match v.to_i64() {
                (_, Lost::Range) if !v.is_negative() => IntValue::Unsigned(v.to_u64().0),
                (v, _) => IntValue::Signed(v),
            },
            Value::Str(s) => {
                let (v, numeric) = number::parse_int(&s.bytes);
                warn_unless_whole(numeric, "INTEGER", s, sink);
                i64::try_from(v).map_or(IntValue::Unsigned(v as u64), IntValue::Signed)
            }
            Value::Date(v) => IntValue::Signed(v.to_number().into()),
            Value::Fixed(_) => return Value::text(self.to_text()).to_int(sink),
            Value::Time(v) => IntValue::Signed(v.to_number()),
            Value::DateTime(v) => IntValue::Signed(v.to_number() as i64),
            Value::Timestamp(v) => IntValue::Signed(FixedOffset::UTC.to_local(*v).to_number() as i64),
        })
    }

    /// Returns whether the value is true, `None` for NULL.
    pub fn to_bool(&self, sink: &mut dyn WarningSink) -> Option<bool> {
        match self {
            Value::Int(v) => Some(*v != 0),
            Value::Decimal(v) => Some(!v.is_zero()),
            _ => self.to_f64(sink).map(|v| v != 0.0),
        }
    }
}

impl IntValue {
    /// Rounds half to even and clamps.
    pub fn from_f64(v: f64) -> IntValue {
        // As MariaDB, which uses rint.
        let v = v.round_ties_even();
        if v < 9_223_372_036_854_775_808.0 {
            IntValue::Signed(v as i64)
        } else {
            IntValue::Unsigned(v as u64)
        }
    }
}

/// Returns the number of fraction digits to print.
fn fraction(decimals: u8, micros: u32) -> u8 {
    match decimals {
        0..=6 => decimals,
        _ if micros == 0 => 0,
        _ => 6,
    }
}

/// Converts microseconds to a number. A zero fraction is omitted.
fn with_fraction(micros: i128, fraction: u32) -> Decimal {
    if fraction == 0 { Decimal::from_i128(micros / 1_000_000, 0) } else { Decimal::from_i128(micros, 6) }
}

fn warn_unless_whole(numeric: Numeric, kind: &str, text: &Str, sink: &mut dyn WarningSink) {
    let error = || SqlError::truncated_incorrect(kind, &text.shown());
    if numeric != Numeric::Whole {
        sink.warn(Warning::new(error()));
    } else if text.bytes.last() == Some(&b' ') {
        // A space after a number adds a note; spaces before it do not.
        sink.warn(Warning::note(error()));
    }
}
