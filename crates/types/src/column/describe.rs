//! Types as SQL text and as result metadata, and their limits.

use std::collections::HashSet;

use crate::{
    Collation, ColumnMeta, ColumnType, DECIMALS_NOT_FIXED, Date, DateTime, Decimal, FixedKind, SqlError,
    SqlResult, Str, Time, TypeKind, Value,
};

/// Result metadata flags.
const BLOB: u16 = 16;
const UNSIGNED: u16 = 32;
const ZEROFILL: u16 = 64;
const BINARY: u16 = 128;
const ENUM: u16 = 256;
const SET: u16 = 2048;

/// Maximum characters of CHAR, and bytes of BINARY.
const CHAR_MAX: u32 = 255;
/// Maximum bytes of VARCHAR and VARBINARY.
const VARCHAR_BYTES_MAX: u32 = 65_532;

impl ColumnType {
    /// Checks lengths and scales against MariaDB's limits.
    pub fn check(&self, column: &str) -> SqlResult<()> {
        match self.kind {
            kind if kind.is_integer() && self.length > 255 => Err(SqlError::display_width(column, 255)),
            TypeKind::Decimal if self.decimals > Decimal::MAX_SCALE => {
                Err(SqlError::too_big_scale(column, Decimal::MAX_SCALE))
            }
            TypeKind::Decimal if self.length > Decimal::MAX_PRECISION.into() => {
                Err(SqlError::too_big_precision(column, Decimal::MAX_PRECISION))
            }
            TypeKind::Decimal if u32::from(self.decimals) > self.length => {
                Err(SqlError::scale_above_precision(column))
            }
            TypeKind::Float | TypeKind::Double if self.length > 0 => match self.decimals {
                31.. => Err(SqlError::too_big_scale(column, 30)),
                d if u32::from(d) > self.length => Err(SqlError::scale_above_precision(column)),
                _ if self.length > 255 => Err(SqlError::display_width(column, 255)),
                _ => Ok(()),
            },
            TypeKind::Bit if self.length > 64 => Err(SqlError::display_width(column, 64)),
            TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp if self.decimals > 6 => {
                Err(SqlError::too_big_precision(column, 6))
            }
            TypeKind::Char | TypeKind::Binary if self.length > CHAR_MAX => {
                Err(SqlError::column_too_long(column, CHAR_MAX))
            }
            TypeKind::VarChar | TypeKind::VarBinary => {
                let max = VARCHAR_BYTES_MAX / self.collation.charset().mbmaxlen();
                if self.length > max { Err(SqlError::column_too_long(column, max)) } else { Ok(()) }
            }
            TypeKind::Enum | TypeKind::Set => self.check_members(column),
            _ => Ok(()),
        }
    }

    fn check_members(&self, column: &str) -> SqlResult<()> {
        let max = if self.kind == TypeKind::Enum { 65_535 } else { 64 };
        if self.members.len() > max {
            return Err(SqlError::new(
                crate::ErrorCode::TooBigSet,
                format!("Too many strings for column {column} and SET"),
            ));
        }
        for member in self.members.iter() {
            if self.kind == TypeKind::Set && member.contains(',') {
                return Err(SqlError::new(
                    crate::ErrorCode::IllegalValueForType,
                    format!("Illegal set '{member}' value found during parsing"),
                ));
            }
        }
        Ok(())
    }

    /// Returns error 1291 for each ENUM or SET member that a later member repeats. If the mode is not strict,
    /// the caller reports it as a note.
    pub fn duplicated_members(&self, column: &str) -> Vec<SqlError> {
        let kind = if self.kind == TypeKind::Enum { "ENUM" } else { "SET" };
        let mut later_keys = HashSet::with_capacity(self.members.len());
        let comes_again = |member: &&String| {
            let mut key = Vec::new();
            self.collation.sort_key(member.as_bytes(), &mut key);
            !later_keys.insert(key)
        };
        let again: Vec<&String> = self.members.iter().rev().filter(comes_again).collect();
        again.into_iter().rev().map(|member| SqlError::duplicated_member(column, member, kind)).collect()
    }

    /// Formats the type as SHOW CREATE TABLE does, without the character set clause: `int(10) unsigned
    /// zerofill`.
    pub fn sql_text(&self) -> String {
        let mut text = String::from(self.type_name());
        match self.kind {
            kind if kind.is_integer() => text += &format!("({})", self.length),
            TypeKind::Decimal => text += &format!("({},{})", self.length, self.decimals),
            TypeKind::Float | TypeKind::Double if self.length > 0 => {
                text += &format!("({},{})", self.length, self.decimals);
            }
            TypeKind::Bit
            | TypeKind::Char
            | TypeKind::VarChar
            | TypeKind::Binary
            | TypeKind::VarBinary
            | TypeKind::Year => text += &format!("({})", self.length),
            TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp if self.decimals > 0 => {
                text += &format!("({})", self.decimals);
            }
            TypeKind::Enum | TypeKind::Set => {
                let quoted: Vec<String> = self.members.iter().map(|m| quote(m)).collect();
                text += &format!("({})", quoted.join(","));
            }
            _ => {}
        }
        // The type of an expression may have `unsigned` set without being a number.
        let is_number = self.kind.is_integer()
            || matches!(self.kind, TypeKind::Decimal | TypeKind::Float | TypeKind::Double);
        if is_number {
            if self.unsigned {
                text += " unsigned";
            }
            if self.zerofill {
                text += " zerofill";
            }
        }
        text
    }

    /// Returns ` CHARACTER SET x COLLATE y`, or an empty text if the table's collation implies it.
    pub fn charset_clause(&self, table: Collation) -> String {
        let has_charset = self.kind.is_text() || matches!(self.kind, TypeKind::Enum | TypeKind::Set);
        // JSON always shows it, because its collation is part of the type.
        if !has_charset || (self.collation == table && self.kind != TypeKind::Json) {
            return String::new();
        }
        match self.collation {
            Collation::BINARY => " CHARACTER SET binary".to_owned(),
            other => format!(" CHARACTER SET {} COLLATE {}", other.charset().name(), other.name()),
        }
    }

    /// Returns the name in information_schema.columns.data_type: `int`.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            TypeKind::TinyInt => "tinyint",
            TypeKind::SmallInt => "smallint",
            TypeKind::MediumInt => "mediumint",
            TypeKind::Int => "int",
            TypeKind::BigInt => "bigint",
            TypeKind::Decimal => "decimal",
            TypeKind::Float => "float",
            TypeKind::Double => "double",
            TypeKind::Bit => "bit",
            TypeKind::Char => "char",
            TypeKind::VarChar => "varchar",
            TypeKind::Binary => "binary",
            TypeKind::VarBinary => "varbinary",
            TypeKind::TinyText => "tinytext",
            TypeKind::Text => "text",
            TypeKind::MediumText => "mediumtext",
            TypeKind::LongText | TypeKind::Json => "longtext",
            TypeKind::TinyBlob => "tinyblob",
            TypeKind::Blob => "blob",
            TypeKind::MediumBlob => "mediumblob",
            TypeKind::LongBlob => "longblob",
            TypeKind::Date => "date",
            TypeKind::Time => "time",
            TypeKind::DateTime => "datetime",
            TypeKind::Timestamp => "timestamp",
            TypeKind::Year => "year",
            TypeKind::Enum => "enum",
            TypeKind::Set => "set",
            TypeKind::Uuid => "uuid",
            TypeKind::Inet6 => "inet6",
            TypeKind::Inet4 => "inet4",
        }
    }

    /// Returns the result metadata, in the column's own character set.
    pub fn meta(&self) -> ColumnMeta {
        let mut meta = ColumnMeta {
            type_code: self.result_type_code(),
            flags: 0,
            length: self.display_length(),
            decimals: self.decimals,
            charset_id: Collation::BINARY.0,
        };
        let is_text = self.kind.is_text() || matches!(self.kind, TypeKind::Enum | TypeKind::Set);
        if is_text {
            meta.charset_id = self.collation.0;
            // The length of TEXT is in bytes.
            if !self.kind.is_blob() {
                meta.length = meta.length.saturating_mul(self.collation.charset().mbmaxlen());
            }
        }
        if FixedKind::of(self.kind).is_some() {
            // Clients receive these values as text.
            meta.charset_id = Collation::LATIN1_SWEDISH_CI.0;
            meta.flags |= UNSIGNED | BINARY;
        }
        if self.unsigned || matches!(self.kind, TypeKind::Bit | TypeKind::Timestamp) {
            meta.flags |= UNSIGNED;
        }
        if self.zerofill {
            meta.flags |= ZEROFILL;
        }
        let is_time = self.kind.is_temporal() && self.kind != TypeKind::Year;
        if is_time || self.kind.is_binary_string() || (is_text && self.collation.is_bin()) {
            meta.flags |= BINARY;
        }
        if self.kind.is_blob() {
            meta.flags |= BLOB;
        }
        match self.kind {
            TypeKind::Enum => meta.flags |= ENUM,
            TypeKind::Set => meta.flags |= SET,
            _ => {}
        }
        meta
    }

    fn result_type_code(&self) -> u8 {
        match self.kind {
            TypeKind::TinyInt => 1,
            TypeKind::SmallInt => 2,
            TypeKind::Int => 3,
            TypeKind::Float => 4,
            TypeKind::Double => 5,
            TypeKind::Timestamp => 7,
            TypeKind::BigInt => 8,
            TypeKind::MediumInt => 9,
            TypeKind::Date => 10,
            TypeKind::Time => 11,
            TypeKind::DateTime => 12,
            TypeKind::Year => 13,
            TypeKind::Bit => 16,
            TypeKind::Decimal => 246,
            TypeKind::VarChar | TypeKind::VarBinary => 253,
            TypeKind::Char | TypeKind::Binary | TypeKind::Enum | TypeKind::Set => 254,
            TypeKind::Uuid | TypeKind::Inet6 | TypeKind::Inet4 => 254,
            _ => 252,
        }
    }

    /// Returns the length in characters of the longest text of a value.
    pub fn display_length(&self) -> u32 {
        let fraction = if self.decimals > 0 { 1 + u32::from(self.decimals) } else { 0 };
        match self.kind {
            TypeKind::Decimal => self.length + u32::from(self.decimals > 0) + u32::from(!self.unsigned),
            TypeKind::Float if self.length == 0 => 12,
            TypeKind::Double if self.length == 0 => 22,
            TypeKind::Date => 10,
            TypeKind::Time => 10 + fraction,
            TypeKind::DateTime | TypeKind::Timestamp => 19 + fraction,
            TypeKind::Uuid | TypeKind::Inet6 | TypeKind::Inet4 => {
                FixedKind::of(self.kind).map_or(0, FixedKind::text_len)
            }
            TypeKind::Enum => self.member_chars().max().unwrap_or(0),
            TypeKind::Set => self.member_chars().sum::<u32>() + (self.members.len() as u32).saturating_sub(1),
            _ => self.length,
        }
    }

    fn member_chars(&self) -> impl Iterator<Item = u32> {
        self.members.iter().map(|m| m.chars().count() as u32)
    }

    /// Returns the maximum bytes of a value in the column's character set. For fixed-length types: in a row.
    pub fn byte_len_max(&self) -> u64 {
        if let Some(len) = crate::scalar::len(self) {
            return len as u64;
        }
        if self.kind.is_blob() {
            return self.length.into();
        }
        u64::from(self.length) * u64::from(self.collation.charset().mbmaxlen())
    }

    /// Returns the value of a NOT NULL column without DEFAULT where MariaDB allows that: 0, '', zero date,
    /// first ENUM member.
    pub fn implicit_default(&self) -> Value {
        match self.kind {
            TypeKind::Decimal => {
                Decimal::ZERO.round(self.decimals.into()).map_or(Value::Null, Value::Decimal)
            }
            TypeKind::Float => Value::Float(0.0),
            TypeKind::Double => Value::Double(0.0),
            TypeKind::Bit => Value::Bit { bits: 0, width: self.length.clamp(1, 64) as u8 },
            TypeKind::Binary => Value::binary(vec![0; self.length as usize]),
            TypeKind::Date => Value::Date(Date::ZERO),
            TypeKind::Time => Value::Time(Time::default()),
            TypeKind::DateTime => Value::DateTime(DateTime::default()),
            TypeKind::Timestamp => Value::Timestamp(0),
            TypeKind::Year => Value::UInt(0),
            TypeKind::Enum => self
                .enum_value(u16::from(!self.members.is_empty()))
                .expect("the first member of those there are"),
            TypeKind::Set => self.set_value(0).expect("the empty set"),
            TypeKind::Uuid | TypeKind::Inet6 | TypeKind::Inet4 => {
                FixedKind::of(self.kind).map_or(Value::Null, |kind| Value::Fixed(kind.zero()))
            }
            kind if kind.is_integer() && self.unsigned => Value::UInt(0),
            kind if kind.is_integer() => Value::Int(0),
            _ => Value::Str(Str { bytes: Vec::new(), collation: self.collation }),
        }
    }

    /// Appends a stored value's text with the column's fraction digits and zero fill.
    pub fn write_text(&self, value: &Value, out: &mut Vec<u8>) {
        let start = out.len();
        value.write_text(self.text_decimals(), out);
        if self.zerofill && !value.is_null() {
            let width = self.display_length() as usize;
            let digits = out.len() - start;
            if digits < width {
                out.splice(start..start, std::iter::repeat_n(b'0', width - digits));
            }
        }
    }

    /// Returns the `decimals` argument of [`Value::write_text`] for this type.
    pub fn text_decimals(&self) -> u8 {
        match self.kind {
            TypeKind::Float
            | TypeKind::Double
            | TypeKind::Time
            | TypeKind::DateTime
            | TypeKind::Timestamp => self.decimals,
            _ => DECIMALS_NOT_FIXED,
        }
    }
}

/// Quotes a literal as SHOW CREATE TABLE does.
fn quote(text: &str) -> String {
    let mut quoted = String::from("'");
    for c in text.chars() {
        match c {
            '\'' => quoted.push_str("''"),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\0' => quoted.push_str("\\0"),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_print_and_describe_themselves_as_mariadb_has_them() {
        let text = Collation::UTF8MB4_GENERAL_CI;
        let string = |kind, length| ColumnType::string(kind, length, text);
        let zerofilled = ColumnType { zerofill: true, ..ColumnType::int(TypeKind::Int, None, true) };
        let members = |kind, list: &[&str]| {
            ColumnType::members(
                kind,
                list.iter().map(|m| m.to_string()).collect(),
                Collation::LATIN1_SWEDISH_CI,
            )
        };
        use TypeKind as K;
        // Recorded from a MariaDB server: SHOW CREATE TABLE, then type code, flags, length and decimals with
        // character_set_results NULL.
        for (ty, sql, code, flags, length, decimals) in [
            (ColumnType::int(K::TinyInt, None, false), "tinyint(4)", 1, 0, 4, 0),
            (ColumnType::int(K::SmallInt, None, true), "smallint(5) unsigned", 2, UNSIGNED, 5, 0),
            (ColumnType::int(K::MediumInt, None, false), "mediumint(9)", 9, 0, 9, 0),
            (zerofilled, "int(10) unsigned zerofill", 3, UNSIGNED | ZEROFILL, 10, 0),
            (ColumnType::int(K::BigInt, None, true), "bigint(20) unsigned", 8, UNSIGNED, 20, 0),
            (ColumnType::decimal(10, 2), "decimal(10,2)", 246, 0, 12, 2),
            (ColumnType::decimal(5, 0).unsigned(), "decimal(5,0) unsigned", 246, UNSIGNED, 5, 0),
            (ColumnType::real(K::Float, None), "float", 4, 0, 12, 31),
            (ColumnType::real(K::Double, Some((10, 3))), "double(10,3)", 5, 0, 10, 3),
            (ColumnType::bit(12), "bit(12)", 16, UNSIGNED, 12, 0),
            (string(K::Char, 10), "char(10)", 254, 0, 40, 0),
            (ColumnType::string(K::Char, 10, Collation::LATIN1_BIN), "char(10)", 254, BINARY, 10, 0),
            (string(K::VarBinary, 10), "varbinary(10)", 253, BINARY, 10, 0),
            (string(K::TinyText, 0), "tinytext", 252, BLOB, 255, 0),
            (string(K::LongText, 0), "longtext", 252, BLOB, u32::MAX, 0),
            (string(K::Blob, 0), "blob", 252, BLOB | BINARY, 65_535, 0),
            (string(K::Json, 0), "longtext", 252, BLOB | BINARY, u32::MAX, 0),
            (ColumnType::temporal(K::Date, 0), "date", 10, BINARY, 10, 0),
            (ColumnType::temporal(K::Time, 3), "time(3)", 11, BINARY, 14, 3),
            (ColumnType::temporal(K::DateTime, 6), "datetime(6)", 12, BINARY, 26, 6),
            (ColumnType::temporal(K::Timestamp, 0), "timestamp", 7, UNSIGNED | BINARY, 19, 0),
            (ColumnType::temporal(K::Year, 0), "year(4)", 13, UNSIGNED | ZEROFILL, 4, 0),
            (members(K::Enum, &["a", "it's", "x\\y\n"]), r"enum('a','it''s','x\\y\n')", 254, ENUM, 4, 0),
            (members(K::Set, &["a", "bb"]), "set('a','bb')", 254, SET, 4, 0),
        ] {
            let meta = ty.meta();
            assert_eq!(ty.sql_text(), sql);
            assert_eq!(
                (meta.type_code, meta.flags, meta.length, meta.decimals),
                (code, flags, length, decimals),
                "{sql}"
            );
            assert_eq!(ty.check("c"), Ok(()));
        }
    }

    #[test]
    fn limits() {
        assert!(ColumnType::decimal(66, 0).check("c").is_err());
        assert!(ColumnType::decimal(5, 6).check("c").is_err());
        let long = ColumnType::string(TypeKind::VarChar, 20_000, Collation::UTF8MB4_BIN).check("c");
        let text = "Column length too big for column 'c' (max = 16383); use BLOB or TEXT instead";
        assert_eq!(long.map_err(|e| e.message), Err(text.to_string()));
        let twice = vec!["a".to_string(), "b".to_string(), "A".to_string()];
        let twice = ColumnType::members(TypeKind::Enum, twice, Collation::UTF8MB4_GENERAL_CI);
        let messages: Vec<String> = twice.duplicated_members("c").into_iter().map(|e| e.message).collect();
        assert_eq!(messages, ["Column 'c' has duplicated value 'a' in ENUM"]);
    }

    #[test]
    fn zero_fill() {
        let ty = ColumnType { zerofill: true, ..ColumnType::int(TypeKind::Int, Some(5), true) };
        let mut out = Vec::new();
        ty.write_text(&Value::UInt(42), &mut out);
        assert_eq!(out, b"00042");
    }
}
