//! What an expression yields and a row holds.
//!
//! Text is UTF-8 while it is in memory, whatever its column's character set; rows, keys and results convert at
//! the edge. A string of the `binary` collation is any bytes.

use crate::{Collation, Date, DateTime, Decimal, Time};

/// A string with the collation it compares by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Str {
    /// UTF-8, or any bytes when `collation` is binary.
    pub bytes: Vec<u8>,
    /// Order and character set.
    pub collation: Collation,
}

/// One SQL value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// A signed integer; TRUE and FALSE are 1 and 0.
    Int(i64),
    /// An unsigned integer; YEAR columns too.
    UInt(u64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL, and literals such as `1.5`.
    Decimal(Decimal),
    /// CHAR, VARCHAR, TEXT, BINARY, VARBINARY, BLOB, JSON.
    Str(Str),
    /// DATE.
    Date(Date),
    /// TIME, a signed interval.
    Time(Time),
    /// DATETIME, and a TIMESTAMP once it is in the session's time zone.
    DateTime(DateTime),
    /// TIMESTAMP as stored: microseconds since 1970-01-01 00:00 UTC; 0 is the zero timestamp.
    Timestamp(i64),
    /// BIT(width): a number that prints as `ceil(width / 8)` bytes.
    Bit {
        /// The bits, right aligned.
        bits: u64,
        /// 1 to 64.
        width: u8,
    },
    /// ENUM: the index in numeric context (0 is the error value ''), the label in string context.
    Enum {
        /// 1-based.
        index: u16,
        /// The member's text.
        label: Str,
    },
    /// SET: the bits in numeric context, the labels joined by commas in string context.
    Set {
        /// Bit n stands for member n.
        bits: u64,
        /// `a,b`.
        label: Str,
    },
}

impl Value {
    /// A text value of the server's default collation.
    pub fn text(text: impl Into<String>) -> Value {
        Value::Str(Str { bytes: text.into().into_bytes(), collation: Collation::UTF8MB4_GENERAL_CI })
    }

    /// A byte string.
    pub fn binary(bytes: impl Into<Vec<u8>>) -> Value {
        Value::Str(Str { bytes: bytes.into(), collation: Collation::BINARY })
    }

    /// Whether this is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
}
