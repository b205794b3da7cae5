//! Rows of COM_STMT_EXECUTE.
//!
//! ```text
//! 00 | null bitmap, (count + 7 + 2) / 8 bytes, the first column is bit 2 | non-NULL values, by type
//! ```
//!
//! Integers are little-endian with the width of their type. Dates and times have the format of `params`. All
//! other values are strings with a length prefix.

use cohort_base::Write;
use cohort_types::{Date, DateTime, NoWarnings, SqlMode, Time, Value};

use crate::column_meta::TypeCode;
use crate::text_row::{ColumnEncoding, put_string, write_value};

/// Appends the payload of a row.
pub(crate) fn write_binary_row(values: &[Value], columns: &[ColumnEncoding], out: &mut Vec<u8>) {
    out.put_u8(0);
    let bitmap = out.len();
    out.resize(bitmap + (columns.len() + 9) / 8, 0);
    for (n, (value, column)) in values.iter().zip(columns).enumerate() {
        match value {
            Value::Null => out[bitmap + (n + 2) / 8] |= 1 << ((n + 2) % 8),
            value => write_typed(value, column, out),
        }
    }
}

pub(crate) fn write_typed(value: &Value, column: &ColumnEncoding, out: &mut Vec<u8>) {
    use TypeCode::*;
    match column.code {
        Tiny => out.put_u8(integer(value) as u8),
        Short | Year => out.put_u16(integer(value) as u16),
        Long | Int24 => out.put_u32(integer(value) as u32),
        LongLong => out.put_u64(integer(value)),
        Float => {
            let v = match value {
                Value::Float(v) => *v,
                other => real(other) as f32,
            };
            out.put_u32(v.to_bits());
        }
        Double => out.put_u64(real(value).to_bits()),
        Date | NewDate => put_datetime(midnight(datetime(value).date), out),
        DateTime | Timestamp => put_datetime(datetime(value), out),
        Time => put_time(time(value), out),
        Null => {}
        Decimal | NewDecimal | VarChar | Bit | Enum | Set | TinyBlob | MediumBlob | LongBlob | Blob
        | VarString | String | Geometry => match value {
            Value::Str(s) if column.convert.is_none() && column.zerofill == 0 => {
                out.put_lenenc_bytes(&s.bytes)
            }
            other => put_string(out, |out| write_value(other, column, out)),
        },
    }
}

/// Returns the bits of a signed or unsigned integer.
fn integer(value: &Value) -> u64 {
    match value {
        Value::Int(v) => *v as u64,
        Value::UInt(v) => *v,
        other => other.to_int(&mut NoWarnings).map_or(0, |v| v.wide() as u64),
    }
}

fn real(value: &Value) -> f64 {
    match value {
        Value::Double(v) => *v,
        Value::Float(v) => f64::from(*v),
        other => other.to_f64(&mut NoWarnings).unwrap_or(0.0),
    }
}

fn datetime(value: &Value) -> DateTime {
    match value {
        Value::DateTime(v) => *v,
        Value::Date(date) => midnight(*date),
        Value::Str(text) => DateTime::parse(&text.bytes, SqlMode::default()).value.unwrap_or_default(),
        _ => DateTime::default(),
    }
}

fn midnight(date: Date) -> DateTime {
    DateTime { date, ..DateTime::default() }
}

fn time(value: &Value) -> Time {
    match value {
        Value::Time(v) => *v,
        Value::Str(text) => Time::parse(&text.bytes, SqlMode::default()).value.unwrap_or_default(),
        _ => Time::default(),
    }
}

fn put_datetime(v: DateTime, out: &mut Vec<u8>) {
    let Date { year, month, day } = v.date;
    let length = if v.micros != 0 {
        11
    } else if (v.hour, v.minute, v.second) != (0, 0, 0) {
        7
    } else if (year, month, day) != (0, 0, 0) {
        4
    } else {
        0
    };
    out.put_u8(length);
    if length >= 4 {
        out.put_u16(year);
        out.extend_from_slice(&[month, day]);
    }
    if length >= 7 {
        out.extend_from_slice(&[v.hour, v.minute, v.second]);
    }
    if length >= 11 {
        out.put_u32(v.micros);
    }
}

fn put_time(v: Time, out: &mut Vec<u8>) {
    if v.micros == 0 {
        return out.put_u8(0);
    }
    let total = v.micros.unsigned_abs();
    let (seconds, micros) = (total / 1_000_000, (total % 1_000_000) as u32);
    out.put_u8(if micros == 0 { 8 } else { 12 });
    out.put_u8(u8::from(v.micros < 0));
    out.put_u32((seconds / 86_400) as u32);
    out.extend_from_slice(&[(seconds / 3600 % 24) as u8, (seconds / 60 % 60) as u8, (seconds % 60) as u8]);
    if micros != 0 {
        out.put_u32(micros);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[(TypeCode, Value)]) -> Vec<u8> {
        let columns: Vec<ColumnEncoding> = values
            .iter()
            .map(|(code, _)| ColumnEncoding { code: *code, decimals: 0, zerofill: 0, convert: None })
            .collect();
        let values: Vec<Value> = values.iter().map(|(_, value)| value.clone()).collect();
        let mut out = Vec::new();
        write_binary_row(&values, &columns, &mut out);
        out
    }

    #[test]
    fn values_are_as_wide_as_their_types() {
        assert_eq!(row(&[(TypeCode::Tiny, Value::Int(-1)), (TypeCode::Long, Value::Null)]), b"\x00\x08\xff");
        assert_eq!(row(&[(TypeCode::LongLong, Value::UInt(u64::MAX))]), [&[0; 2][..], &[0xff; 8]].concat());
        assert_eq!(row(&[(TypeCode::VarString, Value::text("hi"))]), b"\x00\x00\x02hi");
        let seven = vec![(TypeCode::Null, Value::Null); 7];
        assert_eq!(row(&seven), b"\x00\xfc\x01", "nine bits need two bytes");
    }

    #[test]
    fn dates_and_times_leave_out_zero_parts() {
        let date = Date { year: 2026, month: 1, day: 2 };
        let at = |hour, micros| Value::DateTime(DateTime { date, hour, minute: 0, second: 0, micros });
        assert_eq!(row(&[(TypeCode::DateTime, at(0, 0))]), b"\0\0\x04\xea\x07\x01\x02");
        assert_eq!(row(&[(TypeCode::DateTime, at(3, 0))]), b"\0\0\x07\xea\x07\x01\x02\x03\0\0");
        assert_eq!(row(&[(TypeCode::DateTime, at(0, 1))]), b"\0\0\x0b\xea\x07\x01\x02\0\0\0\x01\0\0\0");
        assert_eq!(row(&[(TypeCode::Date, Value::Date(Date::default()))]), b"\0\0\0");
        let time = Value::Time(Time { micros: -(26 * 3600 + 61) * 1_000_000 });
        assert_eq!(row(&[(TypeCode::Time, time)]), b"\0\0\x08\x01\x01\0\0\0\x02\x01\x01");
    }
}
