//! Lossy conversion of a source's values to a local column of another type, as `slave_type_conversions`
//! allows. As in MariaDB, a number that is too large becomes the largest or smallest value, and text and
//! fractions are truncated.

use crate::binlog_image::{
    BIT, BLOB, BinlogColumn, DATE, DATETIME2, DOUBLE, ENUM, FLOAT, INT24, ImageError, LONG, LONGLONG,
    NEWDATE, NEWDECIMAL, SET, SHORT, STRING, TINY, VARCHAR, WireFit, micros_of,
};
use crate::scalar;
use crate::{ColumnType, Decimal, SqlMode, Str, TypeKind, Value};

const OTHER: ImageError = ImageError::WrongClass;

impl BinlogColumn {
    /// Converts a value that the column cannot hold unchanged.
    pub(crate) fn convert(&self, ty: &ColumnType, bytes: &[u8]) -> Result<Value, ImageError> {
        if matches!(self.fit(ty), WireFit::Same | WireFit::Differs) {
            return Err(OTHER);
        }
        let code = self.real().0;
        match code {
            TINY | SHORT | INT24 | LONG | LONGLONG => integer(ty, bytes),
            FLOAT | DOUBLE => float(ty, bytes),
            ENUM | SET => members(ty, bytes),
            STRING | VARCHAR | BLOB => text(ty, &self.padded(ty, bytes)),
            _ => self.number_or_time(ty, bytes),
        }
    }

    /// Converts DECIMAL, BIT, dates and times.
    fn number_or_time(&self, ty: &ColumnType, bytes: &[u8]) -> Result<Value, ImageError> {
        let [low, high] = self.metadata.to_le_bytes();
        let mut wire = ty.clone();
        match self.code {
            NEWDECIMAL => {
                (wire.kind, wire.length, wire.decimals) = (TypeKind::Decimal, low.into(), high);
            }
            BIT => wire.length = u32::from(high) * 8 + u32::from(low),
            DATE | NEWDATE => wire.kind = TypeKind::Date,
            DATETIME2 => (wire.kind, wire.decimals) = (TypeKind::DateTime, low),
            _ => wire.decimals = low,
        }
        Ok(match scalar::decode(&wire, bytes).ok_or(ImageError::Corrupt)? {
            Value::Decimal(value) => match ty.kind {
                TypeKind::Decimal => Value::Decimal(clipped(&value, ty)),
                _ => real(ty, value.to_f64())?,
            },
            Value::Bit { bits, .. } => {
                let width = ty.length.clamp(1, 64) as u8;
                let most = u64::MAX >> (64 - width);
                Value::Bit { bits: bits.min(most), width }
            }
            Value::Time(value) => Value::Time(value.with_decimals(ty.decimals, SqlMode::NONE)),
            Value::DateTime(value) if ty.kind == TypeKind::Date => Value::Date(value.date),
            Value::DateTime(value) => {
                Value::DateTime(value.with_decimals(ty.decimals, SqlMode::NONE).ok_or(OTHER)?)
            }
            Value::Date(value) => Value::DateTime(value.at_midnight()),
            Value::Timestamp(us) => Value::Timestamp(us - us % micros_of(ty.decimals)),
            _ => return Err(OTHER),
        })
    }
}

fn integer(ty: &ColumnType, bytes: &[u8]) -> Result<Value, ImageError> {
    let (low, high) = ty.integer_range().ok_or(OTHER)?;
    let (bits, shift) = (scalar::little_endian(bytes), 64 - 8 * bytes.len());
    // The sign is the local column's: old sources do not send it.
    let value = if ty.unsigned { i128::from(bits) } else { i128::from((bits << shift) as i64 >> shift) };
    let value = value.clamp(low, high);
    Ok(if ty.unsigned { Value::UInt(value as u64) } else { Value::Int(value as i64) })
}

fn float(ty: &ColumnType, bytes: &[u8]) -> Result<Value, ImageError> {
    let value = match bytes {
        [a, b, c, d] => f64::from(f32::from_le_bytes([*a, *b, *c, *d])),
        eight => f64::from_le_bytes(eight.try_into().map_err(|_| ImageError::Corrupt)?),
    };
    if value.is_nan() {
        return Err(ImageError::Corrupt);
    }
    match ty.kind {
        TypeKind::Decimal => Ok(Value::Decimal(clipped(&Decimal::from_f64(value).0, ty))),
        _ => real(ty, value),
    }
}

fn real(ty: &ColumnType, value: f64) -> Result<Value, ImageError> {
    match ty.kind {
        TypeKind::Double => Ok(Value::Double(value)),
        TypeKind::Float => Ok(Value::Float(value.clamp(-f64::from(f32::MAX), f64::from(f32::MAX)) as f32)),
        _ => Err(OTHER),
    }
}

fn clipped(value: &Decimal, ty: &ColumnType) -> Decimal {
    let scale = ty.decimals;
    let fits = |rounded: &Decimal| u32::from(rounded.int_digits()) + u32::from(scale) <= ty.length.max(1);
    value.round(scale.into()).ok().filter(fits).unwrap_or_else(|| {
        let most = Decimal::max_of(ty.length as u8, scale);
        if value.is_negative() { most.neg() } else { most }
    })
}

/// Converts ENUM and SET, whose length is the smallest that fits their members.
fn members(ty: &ColumnType, bytes: &[u8]) -> Result<Value, ImageError> {
    let number = scalar::little_endian(bytes);
    let value = match ty.kind {
        TypeKind::Enum => ty.enum_value(u16::try_from(number).unwrap_or(0)).or_else(|| ty.enum_value(0)),
        // Members that the local column lacks are dropped.
        TypeKind::Set => ty.set_value(number & !(u64::MAX.checked_shl(ty.members.len() as u32).unwrap_or(0))),
        _ => None,
    };
    value.ok_or(OTHER)
}

fn text(ty: &ColumnType, bytes: &[u8]) -> Result<Value, ImageError> {
    let mut text = Vec::with_capacity(bytes.len());
    ty.collation.charset().decode(bytes, &mut text).map_err(|_| ImageError::Corrupt)?;
    let most = ty.length as usize;
    let cut = match ty.kind.is_blob() {
        true if ty.kind.is_binary_string() => Some(most),
        // The limit is in bytes, but no character is split.
        true => (0..=most.min(text.len()))
            .rev()
            .find(|&at| ty.collation.char_len(&text[..at]) == 0 || crate::is_text(&text[..at])),
        false => Some(ty.collation.prefix_len(&text, most)),
    };
    text.truncate(cut.unwrap_or(0));
    Ok(Value::Str(Str { bytes: text, collation: ty.collation }))
}

#[cfg(test)]
mod tests {
    use cohort_base::Reader;

    use super::*;
    use crate::{Collation, DateTime, write_value};

    fn converted(from: &ColumnType, value: &Value, to: &ColumnType) -> Value {
        let mut image = Vec::new();
        write_value(from, value, &mut image).expect("a value of the type");
        BinlogColumn::of(from).read(to, &mut Reader::new(&image)).expect("converts")
    }

    #[test]
    fn a_column_holds_what_it_can_of_a_value() {
        let int = |kind, unsigned| ColumnType::int(kind, None, unsigned);
        let (wide, narrow) = (int(TypeKind::BigInt, false), int(TypeKind::TinyInt, false));
        for (value, expected) in [(7, 7), (1000, 127), (-1000, -128)] {
            assert_eq!(converted(&wide, &Value::Int(value), &narrow), Value::Int(expected));
        }
        assert_eq!(converted(&narrow, &Value::Int(-7), &wide), Value::Int(-7));
        let text = |kind, length| ColumnType::string(kind, length, Collation::UTF8MB4_GENERAL_CI);
        let string = |ty: &ColumnType, text: &str| {
            Value::Str(Str { bytes: text.as_bytes().to_vec(), collation: ty.collation })
        };
        let (long, short) = (text(TypeKind::VarChar, 20), text(TypeKind::VarChar, 3));
        assert_eq!(converted(&long, &string(&long, "äöüß"), &short), string(&short, "äöü"));
        let tiny = text(TypeKind::TinyText, 255);
        let blob = text(TypeKind::Text, 65_535);
        let words = "ä".repeat(200);
        assert_eq!(converted(&blob, &string(&blob, &words), &tiny), string(&tiny, &"ä".repeat(127)));
        let binary = |kind, length| ColumnType::string(kind, length, Collation::BINARY);
        let (fixed, varying) = (binary(TypeKind::Binary, 5), binary(TypeKind::VarBinary, 20));
        assert_eq!(converted(&fixed, &string(&fixed, "a\0\0\0\0"), &varying), string(&varying, "a\0\0\0\0"));
        let float = |kind| ColumnType { kind, ..wide.clone() };
        let (single, double) = (float(TypeKind::Float), float(TypeKind::Double));
        assert_eq!(converted(&single, &Value::Float(1.5), &double), Value::Double(1.5));
        assert_eq!(converted(&double, &Value::Double(1e300), &single), Value::Float(f32::MAX));
        let decimal =
            |length, decimals| ColumnType { kind: TypeKind::Decimal, length, decimals, ..wide.clone() };
        let number = |text: &str| Value::Decimal(Decimal::parse(text.as_bytes()).0);
        let (large, small) = (decimal(10, 4), decimal(4, 2));
        assert_eq!(converted(&large, &number("1.2355"), &small), number("1.24"));
        assert_eq!(converted(&large, &number("-123456.5000"), &small), number("-99.99"));
        assert_eq!(converted(&large, &number("12.7500"), &double), Value::Double(12.75));
        assert_eq!(converted(&large, &number("12.7500"), &single), Value::Float(12.75));
        assert_eq!(converted(&single, &Value::Float(-3.5), &small), number("-3.50"));
        assert_eq!(converted(&double, &Value::Double(1e300), &small), number("99.99"));
        let (day, datetime) = (float(TypeKind::Date), float(TypeKind::DateTime));
        let date = crate::Date::new(2024, 5, 6);
        let later = DateTime { hour: 7, ..date.at_midnight() };
        assert_eq!(converted(&datetime, &Value::DateTime(later), &day), Value::Date(date));
        assert_eq!(converted(&day, &Value::Date(date), &datetime), Value::DateTime(date.at_midnight()));
        let stamp = |decimals| ColumnType { kind: TypeKind::Timestamp, decimals, ..wide.clone() };
        let cut = converted(&stamp(6), &Value::Timestamp(1_999_999), &stamp(2));
        assert_eq!(cut, Value::Timestamp(1_990_000));
    }
}
