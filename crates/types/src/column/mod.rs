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

use crate::{SqlMode, SqlResult, TimeZone, Value, WarningSink};

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
}

/// How a result column is described to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnMeta {
    /// MYSQL_TYPE_*.
    pub type_code: u8,
    /// UNSIGNED 32, ZEROFILL 64, BINARY 128, ENUM 256, SET 2048, BLOB 16, NUM 32768; key and NOT NULL flags are
    /// the caller's.
    pub flags: u16,
    /// Display length; bytes of `charset_id` for strings.
    pub length: u32,
    /// Fraction digits, 31 for FLOAT and DOUBLE without, 39 for nothing known.
    pub decimals: u8,
    /// Collation id for strings, 63 for the rest.
    pub charset_id: u16,
}

impl ColumnType {
    /// An integer type with MariaDB's default width; `width` as declared.
    pub fn int(kind: TypeKind, width: Option<u32>, unsigned: bool) -> ColumnType {
        todo!()
    }
    /// DECIMAL(precision, scale).
    pub fn decimal(precision: u8, scale: u8) -> ColumnType {
        todo!()
    }
    /// FLOAT or DOUBLE, with (m,d) when given.
    pub fn real(kind: TypeKind, size: Option<(u8, u8)>) -> ColumnType {
        todo!()
    }
    /// BIT(width).
    pub fn bit(width: u8) -> ColumnType {
        todo!()
    }
    /// CHAR, VARCHAR (length in characters), BINARY, VARBINARY (bytes), TEXT and BLOB types (length ignored), JSON.
    pub fn string(kind: TypeKind, length: u32, collation: Collation) -> ColumnType {
        todo!()
    }
    /// DATE, TIME, DATETIME, TIMESTAMP (with fraction digits), YEAR.
    pub fn temporal(kind: TypeKind, decimals: u8) -> ColumnType {
        todo!()
    }
    /// ENUM or SET.
    pub fn members(kind: TypeKind, members: Vec<String>, collation: Collation) -> ColumnType {
        todo!()
    }
    /// The same, UNSIGNED.
    pub fn unsigned(mut self) -> ColumnType {
        self.unsigned = true;
        self
    }
    /// Checks lengths and scales against MariaDB's limits.
    pub fn check(&self, column: &str) -> SqlResult<()> {
        todo!()
    }
    /// As SHOW CREATE TABLE prints it, without the character set clause: `int(10) unsigned zerofill`.
    pub fn sql_text(&self) -> String {
        todo!()
    }
    /// ` CHARACTER SET x COLLATE y`, or nothing when the table's collation says the same.
    pub fn charset_clause(&self, table: Collation) -> String {
        todo!()
    }
    /// As information_schema.columns.data_type has it: `int`.
    pub fn type_name(&self) -> &'static str {
        todo!()
    }
    /// For result metadata.
    pub fn meta(&self) -> ColumnMeta {
        todo!()
    }
    /// Most bytes a value takes in the column's character set.
    pub fn byte_len_max(&self) -> u64 {
        todo!()
    }
    /// What a NOT NULL column without DEFAULT gets where MariaDB allows it: 0, '', zero date, first ENUM member.
    pub fn implicit_default(&self) -> Value {
        todo!()
    }
    /// Appends a stored value's text with the column's fraction digits and zero fill.
    pub fn write_text(&self, value: &Value, out: &mut Vec<u8>) {
        todo!()
    }
    /// Assigns a value to a column of this type: the stored value, or in strict mode the error. Otherwise a bad
    /// value is adjusted and `sink` gets the warning. NULL stays NULL: nullability is the caller's.
    pub fn store(
        &self,
        value: Value,
        ctx: &StoreContext<'_>,
        sink: &mut dyn WarningSink,
    ) -> SqlResult<Value> {
        todo!()
    }
}
