//! Encoding of fixed-length values, shared by rows and row events:
//!
//! ```text
//! integers        1, 2, 3, 4 or 8 bytes, little-endian, two's complement
//! FLOAT, DOUBLE   IEEE bits, little-endian
//! DECIMAL         packed (`decimal::packed`)
//! BIT             whole bytes, big-endian
//! DATE            3 bytes little-endian: year 15 bits, month 4, day 5
//! TIME, DATETIME, TIMESTAMP   `temporal::packed`
//! YEAR            1 byte: 0, or year - 1900
//! ENUM            1 byte, or 2 little-endian above 255 members
//! UUID, INET6     16 bytes in the order of the text; INET4 4 bytes
//! SET             1, 2, 3, 4 or 8 bytes by the number of members, little-endian
//! ```

use crate::temporal as t;
use crate::{ColumnType, Date, Decimal, FixedKind, Str, TypeKind, Value};

/// Returns the length of a value of the type in bytes, or `None` for strings.
pub(crate) fn len(ty: &ColumnType) -> Option<usize> {
    Some(match ty.kind {
        TypeKind::TinyInt | TypeKind::Year => 1,
        TypeKind::SmallInt => 2,
        TypeKind::MediumInt | TypeKind::Date => 3,
        TypeKind::Int | TypeKind::Float => 4,
        TypeKind::BigInt | TypeKind::Double => 8,
        TypeKind::Decimal => Decimal::packed_len(ty.length as u8, ty.decimals),
        TypeKind::Bit => (ty.length as usize).clamp(1, 64).div_ceil(8),
        TypeKind::Time => t::time_len(ty.decimals),
        TypeKind::DateTime => t::datetime_len(ty.decimals),
        TypeKind::Timestamp => t::timestamp_len(ty.decimals),
        TypeKind::Enum => enum_len(ty.members.len()),
        TypeKind::Uuid | TypeKind::Inet6 => 16,
        TypeKind::Inet4 => 4,
        TypeKind::Set => set_len(ty.members.len()),
        _ => return None,
    })
}

/// Returns the length of an ENUM with `members` members in bytes.
pub(crate) fn enum_len(members: usize) -> usize {
    if members < 256 { 1 } else { 2 }
}

/// Returns the length of a SET with `members` members in bytes.
pub(crate) fn set_len(members: usize) -> usize {
    match members.div_ceil(8) {
        0 => 1,
        n @ 1..=4 => n,
        _ => 8,
    }
}

/// The value is not of the column's class, or is out of the column's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongClass;

/// Appends the value in [`len`] bytes.
pub(crate) fn encode(ty: &ColumnType, value: &Value, out: &mut Vec<u8>) -> Result<(), WrongClass> {
    let len = len(ty).ok_or(WrongClass)?;
    match (ty.kind, value) {
        (kind, Value::Int(v)) if kind.is_integer() && !ty.unsigned => {
            let shift = 64 - 8 * len;
            if v << shift >> shift != *v {
                return Err(WrongClass);
            }
            put_low_bytes(*v as u64, len, out);
        }
        (kind, Value::UInt(v)) if kind.is_integer() && ty.unsigned => {
            if len < 8 && v >> (8 * len) != 0 {
                return Err(WrongClass);
            }
            put_low_bytes(*v, len, out);
        }
        (kind, Value::Int(_) | Value::UInt(_)) if kind.is_integer() => {
            let bits = integer_bits(ty, value).ok_or(WrongClass)?;
            out.extend_from_slice(&bits.to_le_bytes()[..len]);
        }
        (TypeKind::Float, Value::Float(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (TypeKind::Double, Value::Double(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (TypeKind::Decimal, Value::Decimal(v)) => v.write_packed(ty.length as u8, ty.decimals, out),
        (TypeKind::Bit, Value::Bit { bits, .. }) => out.extend_from_slice(&bits.to_be_bytes()[8 - len..]),
        (TypeKind::Date, Value::Date(v)) => out.extend_from_slice(&v.to_packed().to_le_bytes()[..3]),
        (TypeKind::Time, Value::Time(v)) => t::write_time(*v, ty.decimals, out),
        (TypeKind::DateTime, Value::DateTime(v)) => t::write_datetime(v, ty.decimals, out),
        (TypeKind::Timestamp, Value::Timestamp(v)) => t::write_timestamp(*v, ty.decimals, out),
        (TypeKind::Year, Value::UInt(v)) => out.push(year_byte(*v).ok_or(WrongClass)?),
        (kind, Value::Fixed(v)) if v.kind().type_kind() == kind => out.extend_from_slice(v.bytes()),
        (TypeKind::Enum, Value::Enum { index, .. }) => out.extend_from_slice(&index.to_le_bytes()[..len]),
        (TypeKind::Set, Value::Set { bits, .. }) => out.extend_from_slice(&bits.to_le_bytes()[..len]),
        _ => return Err(WrongClass),
    }
    Ok(())
}

/// Appends the low `len` bytes of an integer, little-endian.
#[inline]
fn put_low_bytes(bits: u64, len: usize, out: &mut Vec<u8>) {
    match len {
        1 => out.push(bits as u8),
        4 => out.extend_from_slice(&(bits as u32).to_le_bytes()),
        8 => out.extend_from_slice(&bits.to_le_bytes()),
        len => out.extend_from_slice(&bits.to_le_bytes()[..len]),
    }
}

/// Decodes the first [`len`] bytes. Returns `None` if they are not a value of the type.
pub(crate) fn decode(ty: &ColumnType, bytes: &[u8]) -> Option<Value> {
    decode_exact(ty, bytes.get(..len(ty)?)?)
}

/// Decodes `bytes`, whose length the caller guarantees to be [`len`] of the fixed-length type.
pub(crate) fn decode_exact(ty: &ColumnType, bytes: &[u8]) -> Option<Value> {
    let len = bytes.len();
    Some(match ty.kind {
        TypeKind::Int if !ty.unsigned => Value::Int(i32::from_le_bytes(bytes.try_into().ok()?).into()),
        TypeKind::BigInt if !ty.unsigned => Value::Int(i64::from_le_bytes(bytes.try_into().ok()?)),
        TypeKind::Float => Value::Float(f32::from_le_bytes(bytes.try_into().ok()?)),
        TypeKind::Double => Value::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
        TypeKind::Decimal => Value::Decimal(Decimal::read_packed(ty.length as u8, ty.decimals, bytes)?),
        TypeKind::Bit => {
            let bits = bytes.iter().fold(0, |v, b| v << 8 | u64::from(*b));
            let width = ty.length.clamp(1, 64) as u8;
            Value::Bit { bits, width }
        }
        TypeKind::Date => Value::Date(Date::from_packed(little_endian(bytes) as u32)?),
        TypeKind::Time => Value::Time(t::read_time(bytes, ty.decimals)?),
        TypeKind::DateTime => Value::DateTime(t::read_datetime(bytes, ty.decimals)?),
        TypeKind::Timestamp => Value::Timestamp(t::read_timestamp(bytes, ty.decimals)?),
        TypeKind::Year => year_value(bytes[0]),
        TypeKind::Uuid | TypeKind::Inet6 | TypeKind::Inet4 => {
            Value::Fixed(FixedKind::of(ty.kind)?.of_bytes(bytes)?)
        }
        TypeKind::Enum => ty.enum_value(little_endian(bytes) as u16)?,
        TypeKind::Set => ty.set_value(little_endian(bytes))?,
        _ if ty.unsigned => Value::UInt(little_endian(bytes)),
        _ => {
            let shift = 64 - 8 * len;
            Value::Int((little_endian(bytes) << shift) as i64 >> shift)
        }
    })
}

pub(crate) fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))
}

/// Returns the two's complement bits of an integer, or `None` if it is out of the column's range.
pub(crate) fn integer_bits(ty: &ColumnType, value: &Value) -> Option<u64> {
    let (low, high) = ty.integer_range()?;
    let wide = match value {
        Value::Int(v) => i128::from(*v),
        Value::UInt(v) => i128::from(*v),
        _ => return None,
    };
    (low..=high).contains(&wide).then_some(wide as u64)
}

/// Returns the stored byte of a YEAR.
pub(crate) fn year_byte(year: u64) -> Option<u8> {
    match year {
        0 => Some(0),
        1901..=2155 => Some((year - 1900) as u8),
        _ => None,
    }
}

/// Returns the YEAR of a stored byte.
pub(crate) fn year_value(byte: u8) -> Value {
    Value::UInt(if byte == 0 { 0 } else { u64::from(byte) + 1900 })
}

impl TypeKind {
    /// Returns whether the type is TINYINT to BIGINT.
    pub fn is_integer(self) -> bool {
        use TypeKind as K;
        matches!(self, K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt)
    }
}

impl ColumnType {
    /// Returns the bytes of a stored value, or `None` for strings, whose lengths vary.
    pub fn stored_len(&self) -> Option<usize> {
        len(self)
    }

    /// Returns the bytes of a key part of this type, as MariaDB reports them: strings count with their widest
    /// characters, plus two bytes for the length if it varies. `prefix` is the indexed length in characters.
    pub fn key_bytes(&self, prefix: Option<u32>) -> u32 {
        if let Some(len) = len(self) {
            return len as u32;
        }
        let widest = self.collation.charset().mbmaxlen();
        let characters = prefix.unwrap_or(self.length);
        let counted = if matches!(self.kind, TypeKind::Char | TypeKind::Binary) { 0 } else { 2 };
        characters.saturating_mul(widest).saturating_add(counted)
    }

    /// Returns the smallest and the largest value of an integer type.
    pub fn integer_range(&self) -> Option<(i128, i128)> {
        let bits = match self.kind {
            TypeKind::TinyInt => 8,
            TypeKind::SmallInt => 16,
            TypeKind::MediumInt => 24,
            TypeKind::Int => 32,
            TypeKind::BigInt => 64,
            _ => return None,
        };
        Some(if self.unsigned { (0, (1 << bits) - 1) } else { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) })
    }

    /// Returns the ENUM value of an index, or `None` if there is no such member. Index 0 is the error value.
    pub fn enum_value(&self, index: u16) -> Option<Value> {
        let label = match usize::from(index).checked_sub(1) {
            None => "",
            Some(n) => self.members.get(n)?,
        };
        Some(Value::Enum { index, label: Str { bytes: label.into(), collation: self.collation } })
    }

    /// Returns the SET value of its bits, or `None` if a bit has no member.
    pub fn set_value(&self, bits: u64) -> Option<Value> {
        if self.members.len() < 64 && bits >> self.members.len() != 0 {
            return None;
        }
        let mut label = Vec::new();
        for (n, member) in self.members.iter().enumerate().take(64) {
            if bits >> n & 1 == 1 {
                if !label.is_empty() {
                    label.push(b',');
                }
                label.extend_from_slice(member.as_bytes());
            }
        }
        Some(Value::Set { bits, label: Str { bytes: label, collation: self.collation } })
    }
}
