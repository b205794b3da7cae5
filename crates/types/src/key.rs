//! Memcomparable index keys: comparing the bytes compares the values as ORDER BY does, NULL first.
//!
//! ```text
//! nullable part   0 for NULL, else 1 and the value
//! integers        big-endian, sign bit flipped when signed
//! FLOAT, DOUBLE   big-endian bits; all flipped when negative, else the sign bit
//! DECIMAL         packed, which is memcomparable
//! BIT, ENUM, SET  big-endian
//! DATE, YEAR, TIME, DATETIME, TIMESTAMP   big-endian packed
//! strings         the collation's sort key, which is self-delimiting; for BINARY and VARBINARY the bytes,
//!                 each 0 escaped as 00 ff, then 00 00
//! ```
//!
//! Every value can be decoded from its key, except texts with a collation and prefixes of columns
//! ([`KeyPart::is_reversible`]); those values are read from the row. A key ends where its last part ends: no
//! key of an index is a prefix of another.

use crate::scalar::{self, year_byte, year_value};
use crate::temporal as t;
use crate::{Collation, ColumnType, Decimal, FixedKind, Str, TypeKind, Value, Vector, VectorType};

/// A key that cannot be encoded or decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// The bytes are not a valid key. An operator must investigate.
    Corrupt,
    /// The value is not of its column's class: it did not pass through [`ColumnType::store`].
    WrongClass,
    /// The encoding keeps the order, not the value ([`KeyPart::is_reversible`]). Read the value from the row.
    NotReversible,
}

impl std::fmt::Display for KeyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            KeyError::Corrupt => "the key does not decode",
            KeyError::WrongClass => "the value is not of its column's type",
            KeyError::NotReversible => "the key holds the order of the value only",
        })
    }
}

impl std::error::Error for KeyError {}

impl From<scalar::WrongClass> for KeyError {
    fn from(_: scalar::WrongClass) -> KeyError {
        KeyError::WrongClass
    }
}

/// One column of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// The column's type.
    pub ty: ColumnType,
    /// Prefix length, `KEY (col(10))`: characters, or bytes for binary strings.
    pub prefix: Option<u32>,
    /// True if the column is nullable. A nullable part takes one more byte.
    pub nullable: bool,
}

const NULL: u8 = 0;
const NOT_NULL: u8 = 1;

impl KeyPart {
    /// Appends the value's key bytes, which sort as ORDER BY does, NULL first.
    pub fn encode(&self, value: &Value, out: &mut Vec<u8>) -> Result<(), KeyError> {
        if self.nullable {
            out.push(if value.is_null() { NULL } else { NOT_NULL });
            if value.is_null() {
                return Ok(());
            }
        }
        let ty = &self.ty;
        match (ty.kind, value) {
            (kind, _) if kind.is_integer() => {
                let bits = scalar::integer_bits(ty, value).ok_or(KeyError::WrongClass)?;
                let len = self.fixed_len();
                let start = out.len();
                out.extend_from_slice(&bits.to_be_bytes()[8 - len..]);
                if !ty.unsigned {
                    out[start] ^= 0x80;
                }
            }
            (TypeKind::Float, Value::Float(v)) => {
                let bits = (v + 0.0).to_bits();
                let ordered = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
                out.extend_from_slice(&ordered.to_be_bytes());
            }
            (TypeKind::Double, Value::Double(v)) => {
                let bits = (v + 0.0).to_bits();
                let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
                out.extend_from_slice(&ordered.to_be_bytes());
            }
            (TypeKind::Date, Value::Date(v)) => t::write_date(*v, out),
            (TypeKind::Year, Value::UInt(v)) => out.push(year_byte(*v).ok_or(KeyError::WrongClass)?),
            (TypeKind::Enum, Value::Enum { index, .. }) => out.extend_from_slice(&index.to_be_bytes()),
            (kind, Value::Fixed(v)) if v.kind().type_kind() == kind => {
                out.extend_from_slice(&v.order()[..v.kind().order_len()]);
            }
            (TypeKind::Set, Value::Set { bits, .. }) => {
                out.extend_from_slice(&bits.to_be_bytes()[8 - self.fixed_len()..]);
            }
            (_, Value::Str(s)) if scalar::len(ty).is_none() => {
                ty.collation.sort_key(self.prefix_of(&s.bytes), out)
            }
            _ => scalar::encode(ty, value, out)?,
        }
        Ok(())
    }

    /// Appends the common key prefix of all texts that begin with `text`.
    pub fn encode_start(&self, text: &[u8], out: &mut Vec<u8>) {
        if self.nullable {
            out.push(NOT_NULL);
        }
        self.ty.collation.sort_key_open(self.prefix_of(text), out);
    }

    /// Returns the indexed prefix of a string.
    fn prefix_of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        match self.prefix {
            Some(chars) => &text[..self.ty.collation.prefix_len(text, chars as usize)],
            None => text,
        }
    }

    /// Returns whether [`KeyPart::decode`] can return the value.
    pub fn is_reversible(&self) -> bool {
        scalar::len(&self.ty).is_some() || (self.ty.collation == Collation::BINARY && self.prefix.is_none())
    }

    /// Returns the length of a fixed-length part, without the NULL byte.
    fn fixed_len(&self) -> usize {
        match self.ty.kind {
            TypeKind::Enum => 2,
            kind if FixedKind::of(kind).is_some() => FixedKind::of(kind).map_or(0, FixedKind::order_len),
            _ => scalar::len(&self.ty).unwrap_or(0),
        }
    }

    /// Consumes the NULL byte, if the part has one, and returns whether the value is NULL.
    fn take_null(&self, key: &mut &[u8]) -> Result<bool, KeyError> {
        if !self.nullable {
            return Ok(false);
        }
        match take(key, 1)? {
            [NULL] => Ok(true),
            [NOT_NULL] => Ok(false),
            _ => Err(KeyError::Corrupt),
        }
    }

    /// Consumes this part from the front of `key` and returns its value.
    pub fn decode(&self, key: &mut &[u8]) -> Result<Value, KeyError> {
        if !self.is_reversible() {
            return Err(KeyError::NotReversible);
        }
        if self.take_null(key)? {
            return Ok(Value::Null);
        }
        let ty = &self.ty;
        if scalar::len(ty).is_none() {
            let bytes = take_bytes(key)?;
            return Ok(Value::Str(Str { bytes, collation: Collation::BINARY }));
        }
        let bytes = take(key, self.fixed_len())?;
        let big_endian = bytes.iter().take(8).fold(0, |v, b| v << 8 | u64::from(*b));
        let value = match ty.kind {
            kind if kind.is_integer() && ty.unsigned => Some(Value::UInt(big_endian)),
            kind if kind.is_integer() => {
                let shift = 64 - 8 * bytes.len();
                Some(Value::Int(((big_endian << shift) ^ 1 << 63) as i64 >> shift))
            }
            TypeKind::Float => {
                let bits = big_endian as u32;
                Some(Value::Float(f32::from_bits(if bits >> 31 == 1 { bits & !(1 << 31) } else { !bits })))
            }
            TypeKind::Double => {
                let bits = big_endian;
                Some(Value::Double(f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })))
            }
            TypeKind::Decimal => {
                Decimal::read_packed(ty.length as u8, ty.decimals, bytes).map(Value::Decimal)
            }
            TypeKind::Date => t::read_date(bytes).map(Value::Date),
            TypeKind::Year => Some(year_value(bytes[0])),
            TypeKind::Uuid | TypeKind::Inet6 | TypeKind::Inet4 => {
                FixedKind::of(ty.kind).and_then(|kind| kind.of_order(bytes)).map(Value::Fixed)
            }
            TypeKind::Enum => ty.enum_value(big_endian as u16),
            TypeKind::Set => ty.set_value(big_endian),
            _ => scalar::decode(ty, bytes),
        };
        value.ok_or(KeyError::Corrupt)
    }

    /// Consumes this part from the front of `key` and appends its value to a vector of the column's type.
    #[inline]
    pub fn decode_into(&self, key: &mut &[u8], vector: &mut Vector, ty: VectorType) -> Result<(), KeyError> {
        if let (TypeKind::Int, VectorType::Int) = (self.ty.kind, ty) {
            if self.take_null(key)? {
                vector.push_null(false);
                return Ok(());
            }
            let (bytes, rest) = key.split_first_chunk::<4>().ok_or(KeyError::Corrupt)?;
            *key = rest;
            vector.push_number(i64::from((u32::from_be_bytes(*bytes) ^ 1 << 31) as i32));
            return Ok(());
        }
        let value = self.decode(key)?;
        if vector.push_value(&value, ty) { Ok(()) } else { Err(KeyError::Corrupt) }
    }

    /// Consumes this part from the front of `key` without decoding it.
    pub fn skip(&self, key: &mut &[u8]) -> Result<(), KeyError> {
        if self.take_null(key)? {
            return Ok(());
        }
        if scalar::len(&self.ty).is_some() {
            take(key, self.fixed_len())?;
        } else if self.ty.collation == Collation::BINARY {
            take_bytes(key)?;
        } else {
            let len = self.ty.collation.sort_key_len(key).ok_or(KeyError::Corrupt)?;
            take(key, len)?;
        }
        Ok(())
    }
}

fn take<'a>(key: &mut &'a [u8], len: usize) -> Result<&'a [u8], KeyError> {
    let (head, tail) = key.split_at_checked(len).ok_or(KeyError::Corrupt)?;
    *key = tail;
    Ok(head)
}

/// Consumes a binary string: bytes with 0 escaped as `00 ff`, terminated by `00 00`.
fn take_bytes(key: &mut &[u8]) -> Result<Vec<u8>, KeyError> {
    let mut bytes = Vec::new();
    loop {
        let zero = key.iter().position(|&b| b == 0).ok_or(KeyError::Corrupt)?;
        bytes.extend_from_slice(take(key, zero)?);
        match take(key, 2)? {
            [0, 0xff] => bytes.push(0),
            [0, 0] => return Ok(bytes),
            _ => return Err(KeyError::Corrupt),
        }
    }
}

/// Returns the smallest key above all keys that start with `prefix`, or `None` if `prefix` is all 0xff bytes.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|&b| b != 0xff)?;
    let mut end = prefix[..=kept].to_vec();
    end[kept] += 1;
    Some(end)
}

/// Returns the smallest key above `key` itself.
pub fn successor(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_keys() {
        let key = |ty: ColumnType, nullable, value: Value| {
            let part = KeyPart { ty, prefix: None, nullable };
            let mut out = Vec::new();
            part.encode(&value, &mut out).expect("of the class");
            let mut rest = &out[..];
            part.skip(&mut rest).expect("a key");
            assert!(rest.is_empty());
            out
        };
        let int = || ColumnType::int(TypeKind::Int, None, false);
        assert_eq!(key(int(), false, Value::Int(1)), [0x80, 0, 0, 1]);
        assert_eq!(key(int(), true, Value::Int(-1)), [1, 0x7f, 0xff, 0xff, 0xff]);
        assert_eq!(key(int(), true, Value::Null), [0]);
        let text = ColumnType::string(TypeKind::VarChar, 10, Collation::UTF8MB4_GENERAL_CI);
        assert_eq!(key(text, false, Value::text("ab")), [0x43, 0x44, 0x21]);
        let bytes = ColumnType::string(TypeKind::VarBinary, 10, Collation::BINARY);
        assert_eq!(key(bytes, false, Value::binary(*b"a\0b")), [b'a', 0, 0xff, b'b', 0, 0]);
    }

    #[test]
    fn prefixes_and_ranges() {
        let ty = ColumnType::string(TypeKind::VarChar, 10, Collation::UTF8MB4_GENERAL_CI);
        let part = KeyPart { ty, prefix: Some(2), nullable: false };
        let (mut a, mut b) = (Vec::new(), Vec::new());
        part.encode(&Value::text("éaX"), &mut a).expect("text");
        part.encode(&Value::text("ÉAY"), &mut b).expect("text");
        assert_eq!(a, b);
        assert!(!part.is_reversible());
        assert_eq!(prefix_end(&[1, 0xff]), Some(vec![2]));
        assert_eq!(prefix_end(&[0xff, 0xff]), None);
        assert!(successor(&[1]) > vec![1] && successor(&[1]) < vec![1, 1]);
        assert_eq!(part.encode(&Value::Int(1), &mut a), Err(KeyError::WrongClass));
    }
}
