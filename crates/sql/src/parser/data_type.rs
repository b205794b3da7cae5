//! Declared types.

use cohort_types::{SqlError, SqlResult, TypeKind};

use super::Parser;
use crate::ast::{DataType, DeclaredKind};
use crate::lexer::Kind;

/// Attributes that may follow a type's keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `(n)`, UNSIGNED, ZEROFILL.
    Integer,
    /// `(m,d)`, UNSIGNED, ZEROFILL.
    Exact,
    /// `(m,d)` or `(p)`, UNSIGNED, ZEROFILL.
    Approximate,
    /// `(n)`, character set and collation.
    Characters,
    /// `(n)`.
    Length,
    /// Labels, character set and collation.
    Labels,
    Nothing,
}

impl Parser<'_> {
    /// Parses a type with its attributes.
    pub(super) fn data_type(&mut self) -> SqlResult<DataType> {
        if self.kind() != Kind::Word {
            return Err(self.error());
        }
        let start = self.at;
        let word = self.upper_word()?;
        let Some((kind, shape)) = self.type_word(&word, start)? else {
            return Err(SqlError::unknown_data_type(&self.name_of(self.token_at(start))));
        };
        let mut data_type = DataType::plain(kind);
        if matches!(word.as_str(), "NCHAR" | "NVARCHAR" | "NATIONAL") {
            data_type.charset = Some("utf8mb3".to_string());
        }
        if matches!(word.as_str(), "BOOL" | "BOOLEAN") {
            data_type.length = Some(1);
        }
        self.type_arguments(&mut data_type, shape)?;
        self.type_attributes(&mut data_type, shape)?;
        Ok(data_type)
    }

    fn type_word(&mut self, word: &str, start: usize) -> SqlResult<Option<(TypeKind, Shape)>> {
        use TypeKind as Type;
        let found = match word {
            "TINYINT" | "INT1" => (Type::TinyInt, Shape::Integer),
            "BOOL" | "BOOLEAN" => (Type::TinyInt, Shape::Nothing),
            "SMALLINT" | "INT2" => (Type::SmallInt, Shape::Integer),
            "MEDIUMINT" | "INT3" | "MIDDLEINT" => (Type::MediumInt, Shape::Integer),
            "INT" | "INTEGER" | "INT4" => (Type::Int, Shape::Integer),
            "BIGINT" | "INT8" => (Type::BigInt, Shape::Integer),
            "DECIMAL" | "DEC" | "NUMERIC" | "FIXED" | "NUMBER" => (Type::Decimal, Shape::Exact),
            "FLOAT" | "FLOAT4" => (Type::Float, Shape::Approximate),
            "REAL" if self.options.mode.real_as_float => (Type::Float, Shape::Approximate),
            "DOUBLE" if self.eat_word("PRECISION") => (Type::Double, Shape::Approximate),
            "DOUBLE" | "FLOAT8" | "REAL" => (Type::Double, Shape::Approximate),
            "BIT" => (Type::Bit, Shape::Length),
            "NCHAR" if self.eat_word("VARCHAR") => (Type::VarChar, Shape::Characters),
            "CHAR" | "CHARACTER" | "NCHAR" => (self.varying(), Shape::Characters),
            "NATIONAL" => {
                if self.eat_word("VARCHAR") || self.eat_word("VARCHARACTER") {
                    (Type::VarChar, Shape::Characters)
                } else {
                    self.expect_any(&["CHAR", "CHARACTER"])?;
                    (self.varying(), Shape::Characters)
                }
            }
            "VARCHAR" | "VARCHARACTER" | "VARCHAR2" | "NVARCHAR" => (Type::VarChar, Shape::Characters),
            "BINARY" => (Type::Binary, Shape::Length),
            "VARBINARY" => (Type::VarBinary, Shape::Length),
            "TINYTEXT" => (Type::TinyText, Shape::Characters),
            "TEXT" => (Type::Text, Shape::Characters),
            "MEDIUMTEXT" => (Type::MediumText, Shape::Characters),
            "LONGTEXT" | "CLOB" => (Type::LongText, Shape::Characters),
            "LONG" => self.long_type(),
            "TINYBLOB" => (Type::TinyBlob, Shape::Nothing),
            "BLOB" => (Type::Blob, Shape::Length),
            "MEDIUMBLOB" => (Type::MediumBlob, Shape::Nothing),
            "LONGBLOB" => (Type::LongBlob, Shape::Nothing),
            "JSON" => (Type::Json, Shape::Nothing),
            "DATE" => (Type::Date, Shape::Nothing),
            "TIME" => (Type::Time, Shape::Length),
            "DATETIME" => (Type::DateTime, Shape::Length),
            "TIMESTAMP" => (Type::Timestamp, Shape::Length),
            "YEAR" => (Type::Year, Shape::Integer),
            "UUID" => (Type::Uuid, Shape::Nothing),
            "INET6" => (Type::Inet6, Shape::Nothing),
            "INET4" => (Type::Inet4, Shape::Nothing),
            "ENUM" => (Type::Enum, Shape::Labels),
            "SET" => (Type::Set, Shape::Labels),
            "GEOMETRY" | "POINT" | "LINESTRING" | "POLYGON" | "MULTIPOINT" | "MULTILINESTRING"
            | "MULTIPOLYGON" | "GEOMETRYCOLLECTION" => {
                return Err(self.unsupported(word));
            }
            // Only variables and parameters are rows, whose fields are none.
            "ROW" => return Err(self.error_at(start + usize::from(!self.is_in_body()))),
            _ if super::words::is_reserved(word.as_bytes()) => return Err(self.error_at(start)),
            _ => return Ok(None),
        };
        Ok(Some(found))
    }

    fn varying(&mut self) -> TypeKind {
        if self.eat_word("VARYING") { TypeKind::VarChar } else { TypeKind::Char }
    }

    /// Parses the rest of LONG, LONG VARCHAR, LONG CHAR VARYING or LONG VARBINARY.
    fn long_type(&mut self) -> (TypeKind, Shape) {
        if self.eat_word("VARBINARY") {
            return (TypeKind::MediumBlob, Shape::Nothing);
        }
        if !self.eat_any(&["VARCHAR", "VARCHARACTER"])
            && (self.is_word_at(1, "VARYING") && self.eat_any(&["CHAR", "CHARACTER"]))
        {
            self.advance();
        }
        (TypeKind::MediumText, Shape::Characters)
    }

    fn type_arguments(&mut self, data_type: &mut DataType, shape: Shape) -> SqlResult<()> {
        if shape == Shape::Labels {
            data_type.members = self.paren_list(Self::label)?;
            return Ok(());
        }
        if shape == Shape::Nothing || !self.eat(Kind::LeftParen) {
            return Ok(());
        }
        data_type.length = Some(match self.kind() {
            // The fraction in `DECIMAL(5.2)` is ignored.
            Kind::Decimal => {
                let text = String::from_utf8_lossy(self.bytes(self.token())).into_owned();
                let whole = text.split('.').next().and_then(|whole| whole.parse().ok());
                let length = whole.ok_or_else(|| self.error())?;
                self.advance();
                length
            }
            _ => self.number()?,
        });
        if matches!(shape, Shape::Exact | Shape::Approximate) && self.eat(Kind::Comma) {
            data_type.decimals = Some(self.number()?);
        }
        self.expect(Kind::RightParen)?;
        Ok(())
    }

    /// Parses a label: a string, or its bytes in hexadecimal or binary digits.
    fn label(&mut self) -> SqlResult<String> {
        let token = self.token();
        if !matches!(token.kind, Kind::Hex | Kind::Bits) {
            return self.text();
        }
        let value = crate::literal::literal_value(self.sql, token, self.options);
        let Some(cohort_types::Value::Str(text)) = value else { return Err(self.error()) };
        self.advance();
        // Invalid bytes become question marks.
        Ok(String::from_utf8_lossy(&text.bytes).replace(char::REPLACEMENT_CHARACTER, "?"))
    }

    fn type_attributes(&mut self, data_type: &mut DataType, shape: Shape) -> SqlResult<()> {
        let numeric = matches!(shape, Shape::Integer | Shape::Exact | Shape::Approximate);
        let characters = matches!(shape, Shape::Characters | Shape::Labels);
        // SIGNED excludes other attributes.
        if numeric && self.eat_word("SIGNED") {
            return Ok(());
        }
        let mut is_unsigned = false;
        loop {
            match () {
                () if numeric && !is_unsigned && self.eat_word("UNSIGNED") => {
                    (data_type.unsigned, is_unsigned) = (true, true);
                }
                () if numeric && !data_type.zerofill && self.eat_word("ZEROFILL") => {
                    (data_type.unsigned, data_type.zerofill) = (true, true);
                }
                () if characters && self.charset_words() => data_type.charset = Some(self.charset_word()?),
                () if characters && self.eat_word("ASCII") => data_type.charset = Some("latin1".into()),
                () if characters && self.eat_word("BINARY") => data_type.binary = true,
                () if characters && self.eat_word("BYTE") => self.byte_type(data_type),
                () if characters && self.eat_word("UNICODE") => data_type.charset = Some("ucs2".into()),
                () if characters && self.eat_word("COLLATE") => {
                    data_type.collation = Some(self.collation_word()?);
                }
                () if self.is("COMPRESSED") => return Err(self.unsupported("COMPRESSED")),
                () => return Ok(()),
            }
        }
    }

    /// Converts a character type with BYTE to the binary type: CHAR BYTE is BINARY.
    fn byte_type(&mut self, data_type: &mut DataType) {
        let kind = match data_type.kind {
            DeclaredKind::Column(TypeKind::Char) => TypeKind::Binary,
            DeclaredKind::Column(TypeKind::VarChar) => TypeKind::VarBinary,
            DeclaredKind::Column(TypeKind::TinyText) => TypeKind::TinyBlob,
            DeclaredKind::Column(TypeKind::MediumText) => TypeKind::MediumBlob,
            DeclaredKind::Column(TypeKind::LongText) => TypeKind::LongBlob,
            _ => TypeKind::Blob,
        };
        data_type.kind = DeclaredKind::Column(kind);
        data_type.charset = None;
    }

    /// Consumes CHARACTER SET, CHAR SET or CHARSET. Returns false if none follows.
    pub(super) fn charset_words(&mut self) -> bool {
        self.eat_words(&["CHARACTER", "SET"]) || self.eat_words(&["CHAR", "SET"]) || self.eat_word("CHARSET")
    }

    /// Parses the name of a character set or collation: a word, including BINARY, or a string.
    pub(super) fn charset_word(&mut self) -> SqlResult<String> {
        if self.eat_word("BINARY") {
            return Ok("binary".to_string());
        }
        self.name_or_text()
    }

    /// Parses the name of a collation, or DEFAULT for the default of the character set.
    pub(super) fn collation_word(&mut self) -> SqlResult<String> {
        if self.eat_word("DEFAULT") { Ok("default".to_owned()) } else { self.charset_word() }
    }
}
