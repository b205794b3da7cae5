//! SQL values: results of expressions and column values of rows.
//!
//! Text is UTF-8 in memory and in rows, for every character set of its column. Result sets and row events
//! convert when they are encoded. A string of the `binary` collation can contain any bytes.

mod compare;
mod convert;
pub(crate) mod number;

use crate::FixedKind;
use crate::{Collation, Date, DateTime, Decimal, Fixed, SqlMode, Time};

/// A string with its collation.
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
    /// An unsigned integer, or a YEAR.
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
    /// DATETIME, or a TIMESTAMP converted to the session's time zone.
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
        /// 1-based index.
        index: u16,
        /// Text of the member.
        label: Str,
    },
    /// SET: the bits in numeric context, the labels joined by commas in string context.
    Set {
        /// Bit n is set if the set contains member n.
        bits: u64,
        /// The labels, `a,b`.
        label: Str,
    },
}

impl Str {
    /// Returns the text for an error message. Non-ASCII bytes of the binary collation print as `\xHH`.
    pub fn shown(&self) -> Vec<u8> {
        if self.collation != Collation::BINARY || self.bytes.is_ascii() {
            return self.bytes.clone();
        }
        let show = |&b: &u8| if b.is_ascii() { vec![b] } else { format!("\\x{b:02X}").into_bytes() };
        self.bytes.iter().flat_map(show).collect()
    }
}

impl FixedKind {
    /// Converts a value. A binary string contains the bytes; any other value is parsed as text.
    pub fn of_value(self, value: &Value) -> Option<Fixed> {
        match value {
            Value::Fixed(fixed) if fixed.kind == self => Some(*fixed),
            Value::Str(s) if s.collation == Collation::BINARY => self.of_bytes(&s.bytes),
            other => self.parse(other.to_text().as_bytes()),
        }
    }
}

impl Value {
    /// Returns the value as seen outside its column: ENUM and SET become texts without an index.
    #[must_use]
    pub fn of_no_column(self) -> Value {
        match self {
            Value::Enum { label, .. } | Value::Set { label, .. } => Value::Str(label),
            value => value,
        }
    }

    /// Returns whether it is a stored date that NO_ZERO_DATE or NO_ZERO_IN_DATE rejects.
    pub fn is_refused_date(&self, mode: SqlMode) -> bool {
        match self {
            Value::Date(date) => date.is_refused(mode),
            Value::DateTime(datetime) => datetime.date.is_refused(mode),
            Value::Timestamp(micros) => *micros == 0 && mode.has(SqlMode::NO_ZERO_DATE),
            _ => false,
        }
    }

    /// Makes a text of the server's default collation.
    pub fn text(text: impl Into<String>) -> Value {
        Value::Str(Str { bytes: text.into().into_bytes(), collation: Collation::UTF8MB4_GENERAL_CI })
    }

    /// Makes a byte string.
    pub fn binary(bytes: impl Into<Vec<u8>>) -> Value {
        Value::Str(Str { bytes: bytes.into(), collation: Collation::BINARY })
    }

    /// Returns the type's name in error messages.
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

    /// Returns whether the value is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
}

/// Comparison class. Values of one class are compared without conversion.
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
    /// Makes a truth value.
    pub fn bool(v: bool) -> Value {
        Value::Int(i64::from(v))
    }

    /// Returns the bytes of a string, enum label or set label.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Str(s) | Value::Enum { label: s, .. } | Value::Set { label: s, .. } => Some(&s.bytes),
            _ => None,
        }
    }

    /// Returns the collation of a string, enum or set.
    pub fn collation(&self) -> Option<Collation> {
        match self {
            Value::Str(s) | Value::Enum { label: s, .. } | Value::Set { label: s, .. } => Some(s.collation),
            _ => None,
        }
    }
}

/// An integer of either 64-bit type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntValue {
    /// BIGINT.
    Signed(i64),
    /// BIGINT UNSIGNED.
    Unsigned(u64),
}

impl IntValue {
    /// Widens to a type that holds the values of both.
    pub fn wide(self) -> i128 {
        match self {
            IntValue::Signed(v) => v.into(),
            IntValue::Unsigned(v) => v.into(),
        }
    }
}
