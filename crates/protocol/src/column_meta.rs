//! Definitions of result columns.

use cohort_types::Collation;

/// Type of a column in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TypeCode {
    Decimal = 0,
    Tiny = 1,
    Short = 2,
    Long = 3,
    Float = 4,
    Double = 5,
    Null = 6,
    Timestamp = 7,
    LongLong = 8,
    Int24 = 9,
    Date = 10,
    Time = 11,
    DateTime = 12,
    Year = 13,
    NewDate = 14,
    VarChar = 15,
    Bit = 16,
    NewDecimal = 246,
    Enum = 247,
    Set = 248,
    TinyBlob = 249,
    MediumBlob = 250,
    LongBlob = 251,
    Blob = 252,
    VarString = 253,
    String = 254,
    Geometry = 255,
}

impl TypeCode {
    /// Returns whether the type is one of TINYBLOB to LONGBLOB or a TEXT type.
    pub fn is_blob(self) -> bool {
        matches!(self, TypeCode::TinyBlob | TypeCode::MediumBlob | TypeCode::LongBlob | TypeCode::Blob)
    }

    /// Returns whether a parameter of this type may be sent in pieces.
    pub fn takes_long_data(self) -> bool {
        self.is_blob() || matches!(self, TypeCode::VarChar | TypeCode::VarString | TypeCode::String)
    }

    /// Returns the type for a byte that a client sent.
    pub fn from_byte(byte: u8) -> Option<TypeCode> {
        use TypeCode::*;
        const ALL: [TypeCode; 27] = [
            Decimal, Tiny, Short, Long, Float, Double, Null, Timestamp, LongLong, Int24, Date, Time,
            DateTime, Year, NewDate, VarChar, Bit, NewDecimal, Enum, Set, TinyBlob, MediumBlob, LongBlob,
            Blob, VarString, String, Geometry,
        ];
        ALL.into_iter().find(|code| *code as u8 == byte)
    }
}

/// Bits of the flags field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnFlags(pub u16);

impl ColumnFlags {
    pub const NOT_NULL: ColumnFlags = ColumnFlags(1);
    pub const PRI_KEY: ColumnFlags = ColumnFlags(2);
    pub const UNIQUE_KEY: ColumnFlags = ColumnFlags(4);
    pub const MULTIPLE_KEY: ColumnFlags = ColumnFlags(8);
    pub const BLOB: ColumnFlags = ColumnFlags(16);
    pub const UNSIGNED: ColumnFlags = ColumnFlags(32);
    pub const ZEROFILL: ColumnFlags = ColumnFlags(64);
    pub const BINARY: ColumnFlags = ColumnFlags(128);
    pub const ENUM: ColumnFlags = ColumnFlags(256);
    pub const AUTO_INCREMENT: ColumnFlags = ColumnFlags(512);
    pub const TIMESTAMP: ColumnFlags = ColumnFlags(1024);
    pub const SET: ColumnFlags = ColumnFlags(2048);
    pub const NO_DEFAULT_VALUE: ColumnFlags = ColumnFlags(4096);
    pub const ON_UPDATE_NOW: ColumnFlags = ColumnFlags(8192);
    pub const PART_KEY: ColumnFlags = ColumnFlags(16384);
    pub const NUM: ColumnFlags = ColumnFlags(32768);

    /// Returns the union of both sets.
    #[must_use]
    pub const fn with(self, other: ColumnFlags) -> ColumnFlags {
        ColumnFlags(self.0 | other.0)
    }

    /// Returns the bits that are not in `other`.
    #[must_use]
    pub const fn without(self, other: ColumnFlags) -> ColumnFlags {
        ColumnFlags(self.0 & !other.0)
    }

    /// Returns whether all bits of `other` are set.
    pub const fn has(self, other: ColumnFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A column definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMeta {
    /// Database; empty for expressions.
    pub schema: String,
    /// Alias of the table.
    pub table: String,
    /// Name of the table.
    pub org_table: String,
    /// Alias of the column.
    pub name: String,
    /// Name of the column; empty for expressions.
    pub org_name: String,
    /// Collation of the values before conversion for the client; binary for numbers and dates.
    pub collation: Collation,
    /// Maximum length in bytes of that character set (display width of numbers).
    pub length: u32,
    /// Column type.
    pub type_code: TypeCode,
    /// NOT NULL, UNSIGNED, keys.
    pub flags: ColumnFlags,
    /// Digits after the decimal point; 31 for floating point, 39 for string expressions.
    pub decimals: u8,
    /// MariaDB's name of the text format of the values: `json`.
    pub format: Option<&'static str>,
}

impl ColumnMeta {
    /// Creates the definition of an expression without a table.
    pub fn expression(
        name: impl Into<String>,
        type_code: TypeCode,
        length: u32,
        collation: Collation,
    ) -> ColumnMeta {
        ColumnMeta {
            schema: String::new(),
            table: String::new(),
            org_table: String::new(),
            name: name.into(),
            org_name: String::new(),
            collation,
            length,
            type_code,
            flags: ColumnFlags::default(),
            decimals: 0,
            format: None,
        }
    }

    /// Creates the definition of a declared or computed type. The caller sets key and NOT NULL flags, schema
    /// and table.
    pub fn typed(name: impl Into<String>, meta: &cohort_types::ColumnMeta) -> ColumnMeta {
        ColumnMeta {
            flags: ColumnFlags(meta.flags),
            decimals: meta.decimals,
            ..ColumnMeta::expression(
                name,
                TypeCode::from_byte(meta.type_code).unwrap_or(TypeCode::VarString),
                meta.length,
                Collation(meta.charset_id),
            )
        }
    }

    /// Creates a text column of SHOW statements, in the character set of identifiers.
    pub fn text(name: impl Into<String>, characters: u32) -> ColumnMeta {
        let collation = Collation::UTF8MB3_GENERAL_CI;
        ColumnMeta {
            decimals: 39,
            ..ColumnMeta::expression(
                name,
                TypeCode::VarString,
                characters.saturating_mul(collation.charset().mbmaxlen()),
                collation,
            )
        }
    }

    /// Creates a BIGINT column of SHOW statements.
    pub fn integer(name: impl Into<String>, digits: u32) -> ColumnMeta {
        ColumnMeta {
            flags: ColumnFlags::BINARY.with(ColumnFlags::NUM),
            ..ColumnMeta::expression(name, TypeCode::LongLong, digits, Collation::BINARY)
        }
    }
}
