//! Rows of values as bytes, within one process: rows that operators write to temporary files, keys of their
//! tables, and the rows of a group for an aggregate function.

use crate::{Collation, Date, DateTime, Decimal, FixedKind, Str, Time, Value};

/// Appends a row: the number of its values, then each value after a type byte.
pub fn append_row(row: &[Value], out: &mut Vec<u8>) {
    put_number(row.len() as u64, out);
    row.iter().for_each(|value| append_value(value, out));
}

/// Appends an encoding that is equal for equal values only.
pub fn append_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Int(v) => {
            out.push(1);
            put_number(((v << 1) ^ (v >> 63)) as u64, out);
        }
        Value::UInt(v) => {
            out.push(2);
            put_number(*v, out);
        }
        Value::Float(v) => {
            out.push(3);
            out.extend_from_slice(&v.to_le_bytes());
        }
        Value::Double(v) => {
            out.push(4);
            out.extend_from_slice(&v.to_le_bytes());
        }
        Value::Decimal(v) => {
            let precision = v.precision().max(v.scale()).max(1);
            out.extend_from_slice(&[5, precision, v.scale()]);
            v.write_packed(precision, v.scale(), out);
        }
        Value::Str(text) => {
            out.push(6);
            put_text(text, out);
        }
        Value::Date(v) => {
            out.push(7);
            out.extend_from_slice(&v.to_packed().to_le_bytes());
        }
        Value::Time(v) => {
            out.push(8);
            out.extend_from_slice(&v.micros.to_le_bytes());
        }
        Value::DateTime(v) => {
            out.push(9);
            out.extend_from_slice(&v.date.to_packed().to_le_bytes());
            out.extend_from_slice(&[v.hour, v.minute, v.second]);
            out.extend_from_slice(&v.micros.to_le_bytes());
        }
        Value::Timestamp(v) => {
            out.push(10);
            out.extend_from_slice(&v.to_le_bytes());
        }
        Value::Fixed(fixed) => {
            out.push(match fixed.kind() {
                FixedKind::Uuid => 14,
                FixedKind::Inet6 => 15,
                FixedKind::Inet4 => 16,
            });
            out.extend_from_slice(fixed.bytes());
        }
        Value::Bit { bits, width } => {
            out.extend_from_slice(&[11, *width]);
            put_number(*bits, out);
        }
        Value::Enum { index, label } => {
            out.push(12);
            put_number((*index).into(), out);
            put_text(label, out);
        }
        Value::Set { bits, label } => {
            out.push(13);
            put_number(*bits, out);
            put_text(label, out);
        }
    }
}

fn put_number(mut v: u64, out: &mut Vec<u8>) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

fn put_text(text: &Str, out: &mut Vec<u8>) {
    put_number(text.collation.0.into(), out);
    put_number(text.bytes.len() as u64, out);
    out.extend_from_slice(&text.bytes);
}

/// Appends the values of the first row in `bytes` and returns the row's length, or `None` if it is damaged.
pub fn take_row(bytes: &[u8], out: &mut Vec<Value>) -> Option<usize> {
    let mut rest = bytes;
    let values = take_number(&mut rest)?;
    out.reserve(values as usize);
    for _ in 0..values {
        out.push(take_value(&mut rest)?);
    }
    Some(bytes.len() - rest.len())
}

fn take_value(rest: &mut &[u8]) -> Option<Value> {
    Some(match take::<1>(rest)?[0] {
        0 => Value::Null,
        1 => {
            let v = take_number(rest)?;
            Value::Int((v >> 1) as i64 ^ -((v & 1) as i64))
        }
        2 => Value::UInt(take_number(rest)?),
        3 => Value::Float(f32::from_le_bytes(take(rest)?)),
        4 => Value::Double(f64::from_le_bytes(take(rest)?)),
        5 => {
            let [precision, scale] = take(rest)?;
            let (packed, after) = rest.split_at_checked(Decimal::packed_len(precision, scale))?;
            *rest = after;
            Value::Decimal(Decimal::read_packed(precision, scale, packed)?)
        }
        6 => Value::Str(take_text(rest)?),
        7 => Value::Date(take_date(rest)?),
        8 => Value::Time(Time { micros: i64::from_le_bytes(take(rest)?) }),
        9 => {
            let date = take_date(rest)?;
            let [hour, minute, second] = take(rest)?;
            let micros = u32::from_le_bytes(take(rest)?);
            Value::DateTime(DateTime { date, hour, minute, second, micros })
        }
        10 => Value::Timestamp(i64::from_le_bytes(take(rest)?)),
        11 => {
            let [width] = take(rest)?;
            Value::Bit { bits: take_number(rest)?, width }
        }
        12 => Value::Enum { index: take_number(rest)? as u16, label: take_text(rest)? },
        13 => Value::Set { bits: take_number(rest)?, label: take_text(rest)? },
        14 => take_fixed(FixedKind::Uuid, rest)?,
        15 => take_fixed(FixedKind::Inet6, rest)?,
        16 => take_fixed(FixedKind::Inet4, rest)?,
        _ => return None,
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let mut v = 0;
    for shift in (0..64).step_by(7) {
        let byte = take::<1>(rest)?[0];
        v |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(v);
        }
    }
    None
}

fn take_text(rest: &mut &[u8]) -> Option<Str> {
    let collation = Collation(take_number(rest)? as u16);
    let length = take_number(rest)? as usize;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(Str { bytes: bytes.to_vec(), collation })
}

fn take_fixed(kind: FixedKind, rest: &mut &[u8]) -> Option<Value> {
    let (bytes, after) = rest.split_at_checked(kind.byte_len())?;
    *rest = after;
    kind.of_bytes(bytes).map(Value::Fixed)
}

fn take_date(rest: &mut &[u8]) -> Option<Date> {
    Date::from_packed(u32::from_le_bytes(take(rest)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Vec<Value> {
        let text = |bytes: &[u8]| Str { bytes: bytes.to_vec(), collation: Collation::UTF8MB4_GENERAL_CI };
        let date = |year, month, day| Date { year, month, day };
        let decimal = |digits: &str| Value::Decimal(Decimal::parse(digits.as_bytes()).0);
        let datetime = |date, hour, micros| DateTime { date, hour, minute: 59, second: 58, micros };
        let mut values = vec![
            Value::Null,
            Value::Float(-1.5),
            Value::Double(-0.0),
            Value::Double(f64::MAX),
            Value::Str(text(b"")),
            Value::Str(text(&[0xc3; 40_000])),
            Value::binary(vec![0, 255]),
            Value::Date(date(0, 0, 0)),
            Value::Date(date(9999, 12, 31)),
            Value::Date(date(2024, 0, 0)),
            Value::Time(Time { micros: -3_020_399_999_999 }),
            Value::DateTime(datetime(date(0, 0, 0), 0, 0)),
            Value::DateTime(datetime(date(9999, 12, 31), 23, 999_999)),
            Value::Timestamp(i64::MAX),
            Value::Timestamp(0),
            Value::Bit { bits: u64::MAX, width: 64 },
            Value::Bit { bits: 1, width: 1 },
            Value::Enum { index: 0, label: text(b"") },
            Value::Enum { index: 65_535, label: text("ä".as_bytes()) },
            Value::Set { bits: u64::MAX, label: text(b"a,b") },
        ];
        values.extend([0, 1, -1, 63, 64, -64, -65, i64::MAX, i64::MIN].map(Value::Int));
        values.extend([0, 127, 128, u64::MAX].map(Value::UInt));
        let nines = "9".repeat(65);
        let fraction = format!("-0.{}", "9".repeat(38));
        let both = format!("{}.{}", "8".repeat(27), "7".repeat(38));
        let some = ["0", "0.00", "-0.5", "1.50", "1.5", "123456789.000000001", "-99999999999999999999"];
        values.extend(some.into_iter().chain([nines.as_str(), &fraction, &both]).map(decimal));
        values
    }

    #[test]
    fn every_value_comes_back_as_it_was() {
        for value in values() {
            let mut bytes = Vec::new();
            append_row(std::slice::from_ref(&value), &mut bytes);
            let mut back = Vec::new();
            assert_eq!(take_row(&bytes, &mut back), Some(bytes.len()), "{value:?}");
            assert_eq!(format!("{back:?}"), format!("{:?}", [&value]), "with its scale and its sign");
            // A truncated row is never decoded as a complete one.
            for end in 0..bytes.len().min(100) {
                assert_eq!(take_row(&bytes[..end], &mut Vec::new()), None, "{value:?}");
            }
        }
    }

    #[test]
    fn different_values_have_different_bytes() {
        let mut seen = std::collections::BTreeMap::new();
        for value in values() {
            let mut bytes = Vec::new();
            append_value(&value, &mut bytes);
            let before = seen.insert(bytes, format!("{value:?}"));
            assert_eq!(before, None, "{value:?}");
        }
    }
}
