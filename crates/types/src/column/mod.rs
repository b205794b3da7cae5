//! A column's declared type.
//!
//! | file | what |
//! |---|---|
//! | `describe` | SQL text, limits, result metadata, defaults |
//! | `store` | assignment: the one way a value gets into a column; `store_number`, `store_text`, `store_temporal` |

mod describe;
mod store;
mod store_number;
mod store_temporal;
mod store_text;

use std::sync::Arc;

use crate::{Collation, DECIMALS_NOT_FIXED, Date, FixedKind, SqlMode, TimeZone};

/// The family of a type.
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
    /// LONGTEXT with utf8mb4_bin, as MariaDB keeps it.
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

/// A type with all its attributes; attributes that do not apply are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnType {
    pub kind: TypeKind,
    /// Characters of CHAR and VARCHAR, bytes of BINARY, VARBINARY, TEXT and BLOB types, digits of DECIMAL and
    /// of FLOAT(m,d), bits of BIT, display width of integers (MariaDB's default width when none was given)
    /// and YEAR.
    pub length: u32,
    /// Digits after the point of DECIMAL and of FLOAT(m,d) ([`DECIMALS_NOT_FIXED`] without (m,d)), fraction
    /// digits of TIME, DATETIME, TIMESTAMP.
    pub decimals: u8,
    pub unsigned: bool,
    pub zerofill: bool,
    /// Of character types, ENUM and SET; binary for the rest.
    pub collation: Collation,
    /// Labels of ENUM and SET.
    pub members: Arc<[String]>,
}

/// What an assignment needs to know besides type and value.
#[derive(Clone, Copy)]
pub struct StoreContext<'a> {
    /// The session's mode.
    pub sql_mode: SqlMode,
    /// Whether bad values are errors: strict mode, and the statement has no IGNORE.
    pub strict: bool,
    /// Names and row for the texts.
    pub database: &'a str,
    /// The table.
    pub table: &'a str,
    /// The column.
    pub column: &'a str,
    /// 1 for the first row of the statement.
    pub row: u64,
    /// For TIMESTAMP columns.
    pub zone: &'a dyn TimeZone,
    /// When the statement began, in microseconds since 1970 UTC: a TIME that becomes a date falls on that
    /// day.
    pub now_micros: i64,
}

impl StoreContext<'_> {
    /// The session's current date.
    pub(crate) fn today(&self) -> Date {
        self.zone.to_local(self.now_micros).date
    }
}

/// How a result column is described to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnMeta {
    /// MYSQL_TYPE_*.
    pub type_code: u8,
    /// UNSIGNED 32, ZEROFILL 64, BINARY 128, ENUM 256, SET 2048, BLOB 16; key and NOT NULL flags are the
    /// caller's, NUM is the client's.
    pub flags: u16,
    /// Display length; bytes in the result's character set for strings.
    pub length: u32,
    /// Fraction digits, 31 for FLOAT and DOUBLE without.
    pub decimals: u8,
    /// Collation id of the result for strings, 63 for the rest.
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

    /// An integer type with MariaDB's default width; `width` as declared.
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

    /// DECIMAL(precision, scale).
    pub fn decimal(precision: u8, scale: u8) -> ColumnType {
        ColumnType::plain(TypeKind::Decimal, precision.into(), scale)
    }

    /// FLOAT or DOUBLE, with (m,d) when given.
    pub fn real(kind: TypeKind, size: Option<(u8, u8)>) -> ColumnType {
        let (length, decimals) = size.unwrap_or((0, DECIMALS_NOT_FIXED));
        ColumnType::plain(kind, length.into(), decimals)
    }

    /// BIT(width).
    pub fn bit(width: u8) -> ColumnType {
        ColumnType::plain(TypeKind::Bit, width.into(), 0)
    }

    /// CHAR, VARCHAR (length in characters), BINARY, VARBINARY (bytes), TEXT and BLOB types (length ignored),
    /// JSON. The collation of binary types is binary, that of JSON utf8mb4_bin.
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

    /// The TEXT (or BLOB, when the collation is binary) type that TEXT(length) stands for: the smallest that
    /// holds as many characters.
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

    /// DATE, TIME, DATETIME, TIMESTAMP (with fraction digits), YEAR.
    pub fn temporal(kind: TypeKind, decimals: u8) -> ColumnType {
        match kind {
            TypeKind::Year => ColumnType { unsigned: true, zerofill: true, ..ColumnType::plain(kind, 4, 0) },
            TypeKind::Date => ColumnType::plain(kind, 0, 0),
            _ => ColumnType::plain(kind, 0, decimals),
        }
    }

    /// UUID, INET6, INET4.
    pub fn fixed(kind: FixedKind) -> ColumnType {
        ColumnType::plain(kind.type_kind(), 0, 0)
    }

    /// ENUM or SET.
    pub fn members(kind: TypeKind, members: Vec<String>, collation: Collation) -> ColumnType {
        ColumnType { collation, members: members.into(), ..ColumnType::plain(kind, 0, 0) }
    }

    /// The same, UNSIGNED.
    pub fn unsigned(mut self) -> ColumnType {
        self.unsigned = true;
        self
    }
}

impl TypeKind {
    /// BINARY, VARBINARY and the BLOB types.
    pub fn is_binary_string(self) -> bool {
        use TypeKind as K;
        matches!(self, K::Binary | K::VarBinary | K::TinyBlob | K::Blob | K::MediumBlob | K::LongBlob)
    }

    /// Numbers, BIT and YEAR among them.
    pub fn is_number(self) -> bool {
        use TypeKind as K;
        self.is_integer() || matches!(self, K::Decimal | K::Float | K::Double | K::Bit | K::Year)
    }

    /// CHAR, VARCHAR, the TEXT types, JSON.
    pub fn is_text(self) -> bool {
        use TypeKind as K;
        matches!(self, K::Char | K::VarChar | K::TinyText | K::Text | K::MediumText | K::LongText | K::Json)
    }

    /// The TEXT and BLOB types and JSON: indexes need a prefix length, literals give no default.
    pub fn is_blob(self) -> bool {
        (self.is_text() || self.is_binary_string())
            && !matches!(self, TypeKind::Char | TypeKind::VarChar | TypeKind::Binary | TypeKind::VarBinary)
    }

    /// DATE, TIME, DATETIME, TIMESTAMP, YEAR.
    pub fn is_temporal(self) -> bool {
        use TypeKind as K;
        matches!(self, K::Date | K::Time | K::DateTime | K::Timestamp | K::Year)
    }
}
