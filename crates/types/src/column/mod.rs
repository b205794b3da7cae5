//! A column's declared type.
//!
//! | file | contents |
//! |---|---|
//! | `describe` | SQL text, limits, result metadata, defaults |
//! | `store` | assignment, the only conversion of a value to a column's type |
//! | `store_number`, `store_text`, `store_temporal` | assignment to the types of each family |

mod describe;
mod store;
mod store_number;
mod store_temporal;
mod store_text;

use std::sync::Arc;

use crate::{Collation, Date, FixedKind, SqlMode, TimeZone};

/// Type without its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeKind {
    TinyInt,
    SmallInt,
    MediumInt,
    Int,
    BigInt,
    Decimal,
    Float,
    Double,
    Bit,
    Char,
    VarChar,
    Binary,
    VarBinary,
    TinyText,
    Text,
    MediumText,
    LongText,
    TinyBlob,
    Blob,
    MediumBlob,
    LongBlob,
    /// LONGTEXT with utf8mb4_bin, as in MariaDB.
    Json,
    Date,
    Time,
    DateTime,
    Timestamp,
    Year,
    Enum,
    Set,
    Uuid,
    Inet6,
    Inet4,
}

/// A type with all its attributes. Attributes that do not apply are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnType {
    pub kind: TypeKind,
    /// Characters of CHAR and VARCHAR, bytes of BINARY, VARBINARY, TEXT and BLOB types, digits of DECIMAL and
    /// of FLOAT(m,d), bits of BIT, display width of YEAR and of integers (MariaDB's default width if none was
    /// declared).
    pub length: u32,
    /// Digits after the point of DECIMAL and of FLOAT(m,d) ([`DECIMALS_NOT_FIXED`] without (m,d)), fraction
    /// digits of TIME, DATETIME, TIMESTAMP.
    pub decimals: u8,
    pub unsigned: bool,
    pub zerofill: bool,
    /// Collation of character types, ENUM and SET; binary for the others.
    pub collation: Collation,
    /// Labels of ENUM and SET.
    pub members: Arc<[String]>,
}

/// Context of an assignment, in addition to the type and the value.
#[derive(Clone, Copy)]
pub struct StoreContext<'a> {
    /// The session's mode.
    pub sql_mode: SqlMode,
    /// True if bad values are errors: the mode is strict and the statement has no IGNORE.
    pub strict: bool,
    /// The database. With `table`, `column` and `row` it appears in the error texts.
    pub database: &'a str,
    /// The table.
    pub table: &'a str,
    /// The column.
    pub column: &'a str,
    /// 1-based row of the statement.
    pub row: u64,
    /// Time zone for TIMESTAMP columns.
    pub zone: &'a dyn TimeZone,
    /// Start of the statement, in microseconds since 1970 UTC. A TIME converted to a date falls on that day.
    pub now_micros: i64,
}

impl StoreContext<'_> {
    /// Returns the session's current date.
    pub(crate) fn today(&self) -> Date {
        self.zone.to_local(self.now_micros).date
    }
}

/// Description of a result column for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnMeta {
    /// MYSQL_TYPE_*.
    pub type_code: u8,
    /// UNSIGNED 32, ZEROFILL 64, BINARY 128, ENUM 256, SET 2048, BLOB 16. The caller adds the key and NOT
    /// NULL flags, the client adds NUM.
    pub flags: u16,
    /// Display length; bytes in the result's character set for strings.
    pub length: u32,
    /// Fraction digits, 31 for FLOAT and DOUBLE without (m,d).
    pub decimals: u8,
    /// Collation id of the result for strings, 63 for the others.
    pub charset_id: u16,
}

impl ColumnType {
    fn plain(kind: TypeKind, length: u32, decimals: u8) -> ColumnType {
        ColumnType {
            kind,
            length,
            decimals,
            unsigned: false,
            zerofill: false,
            collation: Collation::BINARY,
            members: Arc::default(),
        }
    }

    /// Returns an integer type. `width` is the declared width; MariaDB's default applies if it is `None`.
    pub fn int(kind: TypeKind, width: Option<u32>, unsigned: bool) -> ColumnType {
        let default = match kind {
            TypeKind::TinyInt => 4,
            TypeKind::SmallInt => 6,
            TypeKind::MediumInt => 9,
            TypeKind::Int => 11,
            _ => 20,
        };
        let no_sign = u32::from(unsigned && kind != TypeKind::BigInt);
        ColumnType { unsigned, ..ColumnType::plain(kind, width.unwrap_or(default - no_sign), 0) }
    }

    /// Returns DECIMAL(precision, scale).
    pub fn decimal(precision: u8, scale: u8) -> ColumnType {
        ColumnType::plain(TypeKind::Decimal, precision.into(), scale)
    }

    /// Returns FLOAT or DOUBLE, with (m,d) if `size` is given.
    pub fn real(kind: TypeKind, size: Option<(u8, u8)>) -> ColumnType {
        let (length, decimals) = size.unwrap_or((0, DECIMALS_NOT_FIXED));
        ColumnType::plain(kind, length.into(), decimals)
    }

    /// Returns BIT(width).
    pub fn bit(width: u8) -> ColumnType {
        ColumnType::plain(TypeKind::Bit, width.into(), 0)
    }

    /// Returns CHAR, VARCHAR (length in characters), BINARY, VARBINARY (bytes), TEXT and BLOB types (length
    /// ignored) or JSON. The collation of binary types is binary, that of JSON utf8mb4_bin.
    pub fn string(kind: TypeKind, length: u32, collation: Collation) -> ColumnType {
        let length = match kind {
            TypeKind::TinyText | TypeKind::TinyBlob => 0xff,
            TypeKind::Text | TypeKind::Blob => 0xffff,
            TypeKind::MediumText | TypeKind::MediumBlob => 0xff_ffff,
            TypeKind::LongText | TypeKind::LongBlob | TypeKind::Json => 0xffff_ffff,
            _ => length,
        };
        let collation = match kind {
            TypeKind::Json => Collation::UTF8MB4_BIN,
            kind if kind.is_binary_string() => Collation::BINARY,
            _ => collation,
        };
        ColumnType { collation, ..ColumnType::plain(kind, length, 0) }
    }

    /// Returns the type for TEXT(length), or BLOB(length) if the collation is binary: the smallest type that
    /// holds `length` characters.
    pub fn text_of_length(length: u32, collation: Collation) -> ColumnType {
        use TypeKind as K;
        let bytes = u64::from(length) * u64::from(collation.charset().mbmaxlen());
        let (text, blob) = match bytes {
            0..=0xff => (K::TinyText, K::TinyBlob),
            0x100..=0xffff => (K::Text, K::Blob),
            0x1_0000..=0xff_ffff => (K::MediumText, K::MediumBlob),
            _ => (K::LongText, K::LongBlob),
        };
        ColumnType::string(if collation == Collation::BINARY { blob } else { text }, 0, collation)
    }

    /// Returns DATE, TIME, DATETIME, TIMESTAMP (with fraction digits) or YEAR.
    pub fn temporal(kind: TypeKind, decimals: u8) -> ColumnType {
        match kind {
            TypeKind::Year => ColumnType { unsigned: true, zerofill: true, ..ColumnType::plain(kind, 4, 0) },
            TypeKind::Date => ColumnType::plain(kind, 0, 0),
            _ => ColumnType::plain(kind, 0, decimals),
        }
    }

    /// Returns UUID, INET6 or INET4.
    pub fn fixed(kind: FixedKind) -> ColumnType {
        ColumnType::plain(kind.type_kind(), 0, 0)
    }

    /// Returns ENUM or SET.
    pub fn members(kind: TypeKind, members: Vec<String>, collation: Collation) -> ColumnType {
        ColumnType { collation, members: members.into(), ..ColumnType::plain(kind, 0, 0) }
    }

    /// Makes the type UNSIGNED.
    pub fn unsigned(mut self) -> ColumnType {
        self.unsigned = true;
        self
    }
}

impl FixedKind {
    /// Returns the kind for a column type.
    pub fn of(kind: TypeKind) -> Option<FixedKind> {
        match kind {
            TypeKind::Uuid => Some(FixedKind::Uuid),
            TypeKind::Inet6 => Some(FixedKind::Inet6),
            TypeKind::Inet4 => Some(FixedKind::Inet4),
            _ => None,
        }
    }

    /// Returns the column type for the kind.
    pub fn type_kind(self) -> TypeKind {
        match self {
            FixedKind::Uuid => TypeKind::Uuid,
            FixedKind::Inet6 => TypeKind::Inet6,
            FixedKind::Inet4 => TypeKind::Inet4,
        }
    }
}

impl TypeKind {
    /// Returns whether the type is BINARY, VARBINARY or a BLOB type.
    pub fn is_binary_string(self) -> bool {
        use TypeKind as K;
        matches!(self, K::Binary | K::VarBinary | K::TinyBlob | K::Blob | K::MediumBlob | K::LongBlob)
    }

    /// Returns whether the type is numeric, including BIT and YEAR.
    pub fn is_number(self) -> bool {
        use TypeKind as K;
        self.is_integer() || matches!(self, K::Decimal | K::Float | K::Double | K::Bit | K::Year)
    }

    /// Returns whether the type is CHAR, VARCHAR, a TEXT type or JSON.
    pub fn is_text(self) -> bool {
        use TypeKind as K;
        matches!(self, K::Char | K::VarChar | K::TinyText | K::Text | K::MediumText | K::LongText | K::Json)
    }

    /// Returns whether the type is a TEXT or BLOB type or JSON. Indexes of these need a prefix length, and
    /// literals cannot be their defaults.
    pub fn is_blob(self) -> bool {
        (self.is_text() || self.is_binary_string())
            && !matches!(self, TypeKind::Char | TypeKind::VarChar | TypeKind::Binary | TypeKind::VarBinary)
    }

    /// Returns whether the type is DATE, TIME, DATETIME, TIMESTAMP or YEAR.
    pub fn is_temporal(self) -> bool {
        use TypeKind as K;
        matches!(self, K::Date | K::Time | K::DateTime | K::Timestamp | K::Year)
    }
}

/// The value of `decimals` for doubles that print with as many digits as they need, and for temporals that
/// print a fraction only if it is not zero (MariaDB's number for "not fixed").
pub const DECIMALS_NOT_FIXED: u8 = 31;
