//! A column's declared type.

use std::sync::Arc;

use crate::Collation;

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
}

/// A type with all its attributes; attributes that do not apply are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnType {
    pub kind: TypeKind,
    /// Characters of CHAR and VARCHAR, bytes of BINARY and VARBINARY, digits of DECIMAL, bits of BIT, display
    /// width of integers (MariaDB's default width when none was given).
    pub length: u32,
    /// Digits after the point of DECIMAL (and of FLOAT(m,d)), fraction digits of TIME, DATETIME, TIMESTAMP.
    pub decimals: u8,
    pub unsigned: bool,
    pub zerofill: bool,
    /// Of character types, ENUM and SET; binary for the rest.
    pub collation: Collation,
    /// Labels of ENUM and SET.
    pub members: Arc<[String]>,
}
