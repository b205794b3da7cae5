//! What an expression yields and a row holds.
//!
//! Text is UTF-8 in memory and in rows, whatever its column's character set; results and row events convert
//! at the edge. A string of the `binary` collation is any bytes.

mod compare;
mod convert;
pub(crate) mod number;

use crate::{Collation, Date, DateTime, Decimal, Fixed, SqlMode, Time};

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
    /// UUID, INET6, INET4.
    Fixed(Fixed),
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

impl Str {
    /// As an error text shows it: bytes of the binary collation that are not ASCII as `\xHH`.
    pub fn shown(&self) -> Vec<u8> {
        if self.collation != Collation::BINARY || self.bytes.is_ascii() {
            return self.bytes.clone();
        }
        let show = |&b: &u8| if b.is_ascii() { vec![b] } else { format!("\\x{b:02X}").into_bytes() };
        self.bytes.iter().flat_map(show).collect()
    }
}

impl Value {
    /// The value outside of its column: ENUM and SET are texts there, and have no index.
    #[must_use]
    pub fn of_no_column(self) -> Value {
        match self {
            Value::Enum { label, .. } | Value::Set { label, .. } => Value::Str(label),
            value => value,
        }
    }

    /// Whether it is a stored date that NO_ZERO_DATE or NO_ZERO_IN_DATE refuses.
    pub fn is_refused_date(&self, mode: SqlMode) -> bool {
        match self {
            Value::Date(date) => date.is_refused(mode),
            Value::DateTime(moment) => moment.date.is_refused(mode),
            Value::Timestamp(micros) => *micros == 0 && mode.has(SqlMode::NO_ZERO_DATE),
            _ => false,
        }
    }

    /// A text value of the server's default collation.
    pub fn text(text: impl Into<String>) -> Value {
        Value::Str(Str { bytes: text.into().into_bytes(), collation: Collation::UTF8MB4_GENERAL_CI })
    }

    /// A byte string.
    pub fn binary(bytes: impl Into<Vec<u8>>) -> Value {
        Value::Str(Str { bytes: bytes.into(), collation: Collation::BINARY })
    }

    /// What errors call its type.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Int(_) => "int",
            Value::UInt(_) => "bigint unsigned",
            Value::Float(_) => "float",
            Value::Double(_) => "double",
            Value::Decimal(_) => "decimal",
            Value::Str(_) => "varchar",
            Value::Date(_) => "date",
            Value::Time(_) => "time",
            Value::DateTime(_) => "datetime",
            Value::Timestamp(_) => "timestamp",
            Value::Fixed(fixed) => fixed.kind().name(),
            Value::Bit { .. } => "bit",
            Value::Enum { .. } => "enum",
            Value::Set { .. } => "set",
        }
    }

    /// Whether this is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
}

/// Fraction digits of doubles that print with as many digits as they need, and of temporals that print a
/// fraction only when they have one (MariaDB's number for "not fixed").
pub const DECIMALS_NOT_FIXED: u8 = 31;

/// Values of one class are compared without conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// NULL.
    Null,
    /// Int, UInt, Bit.
    Int,
    /// Float, Double.
    Real,
    /// Decimal.
    Decimal,
    /// Str, Enum, Set.
    Str,
    /// Date, DateTime, Timestamp.
    DateTime,
    /// Time.
    Time,
    /// Fixed.
    Fixed,
}

impl Value {
    /// A truth value.
    pub fn bool(v: bool) -> Value {
        Value::Int(i64::from(v))
    }

    /// The bytes of a string, enum label or set label.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Str(s) | Value::Enum { label: s, .. } | Value::Set { label: s, .. } => Some(&s.bytes),
            _ => None,
        }
    }

    /// The collation of a string, enum or set.
    pub fn collation(&self) -> Option<Collation> {
        match self {
            Value::Str(s) | Value::Enum { label: s, .. } | Value::Set { label: s, .. } => Some(s.collation),
            _ => None,
        }
    }
}

/// An integer of either 64 bit type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntValue {
    /// BIGINT.
    Signed(i64),
    /// BIGINT UNSIGNED.
    Unsigned(u64),
}

impl IntValue {
    /// Both types' values.
    pub fn wide(self) -> i128 {
        match self {
            IntValue::Signed(v) => v.into(),
            IntValue::Unsigned(v) => v.into(),
        }
    }
}
