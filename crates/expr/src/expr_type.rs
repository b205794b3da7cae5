//! The static type of an expression. MariaDB derives it before any row is read, and sends it as result
//! metadata.

use std::sync::Arc;

use cohort_types::{Charset, Collation, ColumnType, FixedKind, SqlError, SqlResult, TypeKind, Value};

/// Value of `decimals` for an open number of fraction digits: a DOUBLE prints as many as it needs.
pub const NOT_FIXED_DECIMALS: u8 = 31;

/// `decimals` of strings in result metadata.
pub(crate) const STRING_DECIMALS: u8 = 39;

/// Maximum length in bytes that metadata gives to a function's result.
const RESULT_BYTES_MAX: u32 = 1 << 24;

/// Strength of an expression's collation: in a mix the lower one wins. The numbers are the results of
/// `COERCIBILITY()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coercibility {
    /// `COLLATE` was written.
    Explicit = 0,
    /// A mix of two implicit collations: allowed in a concatenation, an error in a comparison.
    NoCollation = 1,
    /// A column.
    Implicit = 2,
    /// `USER()`, `VERSION()` and the like.
    SystemConstant = 3,
    /// A literal.
    Coercible = 4,
    /// A number or a temporal value.
    Numeric = 5,
    /// NULL.
    Ignorable = 6,
}

/// The class of values in which an expression is computed and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeClass {
    /// Integers, BIT, YEAR.
    Int,
    /// DECIMAL.
    Decimal,
    /// FLOAT, DOUBLE.
    Real,
    /// Strings, ENUM, SET.
    String,
    /// DATE.
    Date,
    /// TIME.
    Time,
    /// DATETIME, TIMESTAMP.
    DateTime,
    /// UUID, INET6, INET4.
    Fixed,
}

/// A property of a type in addition to its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Flavor {
    #[default]
    Plain,
    /// An integer that is a truth value: JSON prints it as true or false.
    Boolean,
    /// A literal `0x41` or `b'1000001'`: bytes that are a big-endian number in numeric context.
    Hex,
    /// A JSON document that is stored in a text type other than JSON.
    Json,
    /// A ZEROFILL column: its text has leading zeros, up to the declared width.
    Zerofill(u32),
}

/// The type of an expression with its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprType {
    /// The kind of type.
    pub kind: TypeKind,
    /// The literal NULL: its metadata type is NULL, and any other type takes precedence.
    pub null_literal: bool,
    /// Length of strings in characters (in bytes if binary); display width of other types.
    pub length: u32,
    /// Number of fraction digits; [`NOT_FIXED_DECIMALS`] if open.
    pub decimals: u8,
    /// UNSIGNED, for integers and decimals.
    pub unsigned: bool,
    /// Whether the value may be NULL.
    pub nullable: bool,
    /// Collation of strings; binary for other types, as in the protocol.
    pub collation: Collation,
    /// Strength of `collation`.
    pub coercibility: Coercibility,
    /// Whether the value has ASCII characters only, so that any character set can hold it.
    pub ascii: bool,
    /// Labels of ENUM and SET columns.
    pub members: Arc<[String]>,
    /// A property in addition to `kind`.
    pub flavor: Flavor,
}

impl ExprType {
    /// Returns a numeric type.
    pub fn number(kind: TypeKind, length: u32, decimals: u8) -> ExprType {
        ExprType {
            kind,
            null_literal: false,
            length,
            decimals,
            unsigned: false,
            nullable: true,
            collation: Collation::BINARY,
            coercibility: Coercibility::Numeric,
            ascii: true,
            members: Arc::from([]),
            flavor: Flavor::Plain,
        }
    }

    /// Returns BIGINT with the given width.
    pub fn bigint(length: u32) -> ExprType {
        ExprType::number(TypeKind::BigInt, length, 0)
    }

    /// Returns the type of a comparison: INT(1).
    pub fn boolean() -> ExprType {
        ExprType { flavor: Flavor::Boolean, ..ExprType::number(TypeKind::Int, 1, 0) }
    }

    /// Returns the type of the literals TRUE and FALSE.
    pub fn literal_boolean() -> ExprType {
        ExprType { length: 5, ..ExprType::boolean() }.with_nullable(false)
    }

    /// Returns DOUBLE with an open number of decimals.
    pub fn double() -> ExprType {
        ExprType::number(TypeKind::Double, 23, NOT_FIXED_DECIMALS)
    }

    /// Returns DOUBLE with a fixed number of decimals.
    pub fn double_fixed(length: u32, decimals: u8) -> ExprType {
        ExprType::number(TypeKind::Double, length, decimals)
    }

    /// Returns DECIMAL(precision, decimals). Its `length` is the printed width.
    pub fn decimal(precision: u32, decimals: u8, unsigned: bool) -> ExprType {
        let length = decimal_width(precision, decimals, unsigned);
        ExprType { unsigned, ..ExprType::number(TypeKind::Decimal, length, decimals) }
    }

    /// Returns UUID, INET6 or INET4.
    pub fn fixed(kind: FixedKind) -> ExprType {
        ExprType::number(kind.type_kind(), kind.text_len(), 0).with_unsigned(true)
    }

    /// Returns whether the type is UUID, INET6 or INET4, and which.
    pub(crate) fn fixed_kind(&self) -> Option<FixedKind> {
        FixedKind::of(self.kind)
    }

    /// Returns DATE.
    pub fn date() -> ExprType {
        ExprType::number(TypeKind::Date, 10, 0)
    }

    /// Returns TIME with fraction digits.
    pub fn time(decimals: u8) -> ExprType {
        let width = if decimals > 0 { 11 + u32::from(decimals) } else { 10 };
        ExprType::number(TypeKind::Time, width, decimals)
    }

    /// Returns DATETIME with fraction digits.
    pub fn datetime(decimals: u8) -> ExprType {
        let width = if decimals > 0 { 20 + u32::from(decimals) } else { 19 };
        ExprType::number(TypeKind::DateTime, width, decimals)
    }

    /// Returns a string of at most `length` characters, limited to the length of function results. Long ones
    /// are TEXT types, as in result sets.
    pub fn string(length: u32, collation: Collation, coercibility: Coercibility) -> ExprType {
        let length = length.min(RESULT_BYTES_MAX / collation.charset().mbmaxlen());
        ExprType::text(length, collation, coercibility)
    }

    /// Returns a text of the same collation and of any length.
    pub(crate) fn into_long_text(self) -> ExprType {
        let is_binary = self.collation == Collation::BINARY;
        let kind = if is_binary { TypeKind::LongBlob } else { TypeKind::LongText };
        let length = (RESULT_BYTES_MAX - 1) / self.collation.charset().mbmaxlen();
        ExprType { kind, length, decimals: STRING_DECIMALS, ..self }
    }

    /// Returns a string of at most `length` characters, like [`ExprType::string`], but without its limit.
    pub(crate) fn text(length: u32, collation: Collation, coercibility: Coercibility) -> ExprType {
        let mut ty = ExprType::number(TypeKind::VarChar, length, STRING_DECIMALS);
        ty.collation = collation;
        ty.coercibility = coercibility;
        ty.ascii = false;
        ty.kind = string_kind(length, collation);
        ty
    }

    /// Returns the type of the literal NULL.
    pub fn null() -> ExprType {
        let mut ty = ExprType::number(TypeKind::VarBinary, 0, 0);
        ty.null_literal = true;
        ty.coercibility = Coercibility::Ignorable;
        ty
    }

    /// Returns the type of a column.
    pub fn of_column(column: &ColumnType, nullable: bool) -> ExprType {
        let is_text = is_string_kind(column.kind);
        let fixed = match column.kind {
            TypeKind::Float | TypeKind::Double if column.decimals == 0 && column.length == 0 => {
                NOT_FIXED_DECIMALS
            }
            TypeKind::Enum | TypeKind::Set => 0,
            _ if is_text => STRING_DECIMALS,
            _ => column.decimals,
        };
        ExprType {
            kind: column.kind,
            null_literal: false,
            length: column_width(column),
            decimals: fixed,
            unsigned: column.unsigned || column.kind == TypeKind::Bit,
            nullable,
            collation: if is_text { column.collation } else { Collation::BINARY },
            // In text context BIT is a binary string.
            coercibility: if is_text || column.kind == TypeKind::Bit {
                Coercibility::Implicit
            } else {
                Coercibility::Numeric
            },
            ascii: !is_text,
            members: column.members.clone(),
            flavor: match column.zerofill {
                true if column.kind.is_integer() => Flavor::Zerofill(column.length),
                true => Flavor::Zerofill(column_width(column)),
                false => Flavor::Plain,
            },
        }
    }

    /// Returns the type of the result of a stored function that returns this type: as a literal, it takes the
    /// collation of a column.
    pub fn as_result_of_function(mut self) -> ExprType {
        if self.coercibility == Coercibility::Implicit {
            self.coercibility = Coercibility::Coercible;
        }
        self
    }

    /// Returns the column type for values of this expression (CREATE TABLE .. SELECT, temporary tables).
    pub fn to_column_type(&self) -> ColumnType {
        let length = match (self.kind, self.flavor) {
            (TypeKind::Decimal, _) => self.precision(),
            (kind, Flavor::Zerofill(width)) if kind.is_integer() => width,
            _ => self.length,
        };
        let decimals = match self.kind {
            TypeKind::Decimal | TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => self.decimals,
            TypeKind::Float | TypeKind::Double => self.decimals.min(NOT_FIXED_DECIMALS),
            _ => 0,
        };
        ColumnType {
            kind: self.kind,
            length,
            decimals,
            unsigned: self.unsigned
                && self.kind != TypeKind::Bit
                && matches!(self.class(), TypeClass::Int | TypeClass::Decimal | TypeClass::Real),
            zerofill: matches!(self.flavor, Flavor::Zerofill(_)),
            collation: self.collation,
            members: self.members.clone(),
        }
    }

    /// Returns the class in which values of this type are computed and compared.
    pub fn class(&self) -> TypeClass {
        use TypeKind::*;
        match self.kind {
            TinyInt | SmallInt | MediumInt | Int | BigInt | Bit | Year => TypeClass::Int,
            Decimal => TypeClass::Decimal,
            Float | Double => TypeClass::Real,
            Date => TypeClass::Date,
            Time => TypeClass::Time,
            DateTime | Timestamp => TypeClass::DateTime,
            Uuid | Inet6 | Inet4 => TypeClass::Fixed,
            _ => TypeClass::String,
        }
    }

    /// Returns whether the values are JSON documents.
    pub fn is_json(&self) -> bool {
        self.kind == TypeKind::Json || self.flavor == Flavor::Json
    }

    /// Returns whether the type is DATE, TIME, DATETIME or TIMESTAMP.
    pub fn is_temporal(&self) -> bool {
        matches!(self.class(), TypeClass::Date | TypeClass::Time | TypeClass::DateTime)
    }

    /// Returns the total number of digits as DECIMAL.
    pub fn precision(&self) -> u32 {
        match self.class() {
            TypeClass::Decimal => {
                let point = u32::from(self.decimals > 0);
                let sign = u32::from(!self.unsigned);
                self.length.saturating_sub(point + sign).clamp(1, 65)
            }
            TypeClass::Int => self.length.saturating_sub(u32::from(!self.unsigned)).clamp(1, 65),
            _ => self.length.clamp(1, 65),
        }
    }

    /// Returns the number of digits before the point as DECIMAL.
    pub fn int_digits(&self) -> u32 {
        match self.class() {
            TypeClass::Decimal => self.precision() - u32::from(self.decimals).min(self.precision()),
            _ => self.precision(),
        }
    }

    /// Returns the maximum length of its text in characters.
    pub fn char_length(&self) -> u32 {
        self.length
    }

    /// Returns the type of the value detached from its column: ENUM and SET become strings, and TIMESTAMP is
    /// unsigned.
    #[must_use]
    pub fn taken(self) -> ExprType {
        match self.kind {
            TypeKind::Enum | TypeKind::Set => ExprType { kind: TypeKind::VarChar, ..self },
            TypeKind::Timestamp => self.with_unsigned(true),
            _ => self,
        }
    }

    /// Sets whether the value may be NULL.
    pub fn with_nullable(mut self, nullable: bool) -> ExprType {
        self.nullable = nullable;
        self
    }

    /// Marks the type as one of JSON documents.
    pub fn with_documents(mut self, are_documents: bool) -> ExprType {
        if are_documents && self.class() == TypeClass::String {
            self.flavor = Flavor::Json;
        }
        self
    }

    /// Returns the type of a column of kept rows: truth values are numbers there.
    pub fn kept(mut self) -> ExprType {
        if self.flavor == Flavor::Boolean {
            self.flavor = Flavor::Plain;
        }
        self
    }

    /// Sets whether the type is unsigned.
    pub fn with_unsigned(mut self, unsigned: bool) -> ExprType {
        self.unsigned = unsigned;
        self
    }
}

/// Returns the printed width of DECIMAL(precision, decimals).
pub(crate) fn decimal_width(precision: u32, decimals: u8, unsigned: bool) -> u32 {
    precision + u32::from(decimals > 0) + u32::from(!unsigned && precision > 0)
}

fn string_kind(length: u32, collation: Collation) -> TypeKind {
    let binary = collation == Collation::BINARY;
    let pick = |text, blob| if binary { blob } else { text };
    // A string that is too long for VARCHAR is sent as the smallest TEXT that holds it.
    match u64::from(length) * u64::from(collation.charset().mbmaxlen()) {
        0..=65_531 => pick(TypeKind::VarChar, TypeKind::VarBinary),
        65_532..=65_535 => pick(TypeKind::Text, TypeKind::Blob),
        65_536..=16_777_215 => pick(TypeKind::MediumText, TypeKind::MediumBlob),
        _ => pick(TypeKind::LongText, TypeKind::LongBlob),
    }
}

pub(crate) fn is_string_kind(kind: TypeKind) -> bool {
    use TypeKind::*;
    matches!(
        kind,
        Char | VarChar
            | Binary
            | VarBinary
            | TinyText
            | Text
            | MediumText
            | LongText
            | TinyBlob
            | Blob
            | MediumBlob
            | LongBlob
            | Json
            | Enum
            | Set
    )
}

fn column_width(column: &ColumnType) -> u32 {
    let fraction = |base: u32| if column.decimals > 0 { base + 1 + u32::from(column.decimals) } else { base };
    // The declared width of an integer is for display only; an expression needs all digits.
    let integer = |digits: u32| column.length.max(digits + u32::from(!column.unsigned));
    match column.kind {
        TypeKind::TinyInt => integer(3),
        TypeKind::SmallInt => integer(5),
        TypeKind::MediumInt => integer(8),
        TypeKind::Int => integer(10),
        TypeKind::BigInt => integer(if column.unsigned { 20 } else { 19 }),
        TypeKind::Decimal => decimal_width(column.length, column.decimals, column.unsigned),
        TypeKind::Float if column.length == 0 => 12,
        TypeKind::Double if column.length == 0 => 22,
        TypeKind::Date => 10,
        TypeKind::Time => fraction(10),
        TypeKind::DateTime | TypeKind::Timestamp => fraction(19),
        TypeKind::Year => 4,
        TypeKind::Uuid | TypeKind::Inet6 | TypeKind::Inet4 => column.display_length(),
        TypeKind::TinyText | TypeKind::TinyBlob => 255,
        TypeKind::Text | TypeKind::Blob => 65_535,
        TypeKind::MediumText | TypeKind::MediumBlob => 16_777_215,
        TypeKind::LongText | TypeKind::LongBlob | TypeKind::Json => u32::MAX,
        TypeKind::Enum => column.members.iter().map(|m| m.chars().count() as u32).max().unwrap_or(0),
        TypeKind::Set => {
            let labels: u32 = column.members.iter().map(|m| m.chars().count() as u32).sum();
            labels + (column.members.len() as u32).saturating_sub(1)
        }
        _ => column.length,
    }
}

/// A collation with its strength, for joining several collations to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Derived {
    pub collation: Collation,
    pub coercibility: Coercibility,
    pub ascii: bool,
}

impl Derived {
    pub fn of(ty: &ExprType) -> Derived {
        let ascii = ty.ascii || ty.collation.charset() == Charset::Ascii;
        Derived { collation: ty.collation, coercibility: ty.coercibility, ascii }
    }

    fn is_unicode(self) -> bool {
        self.collation.charset().is_unicode()
    }

    /// Returns whether this character set contains all characters of `other`, and `other` may be converted to
    /// it.
    fn is_superset_of(self, other: Derived) -> bool {
        if self.is_unicode() {
            let (own, its) = (self.collation.charset(), other.collation.charset());
            let wider = own.mbmaxlen() > its.mbmaxlen() && own.mbminlen() == its.mbminlen();
            let equal = self.coercibility == other.coercibility;
            if self.coercibility < other.coercibility || (equal && (!other.is_unicode() || wider)) {
                return true;
            }
        }
        other.ascii
            && (self.coercibility < other.coercibility
                || (self.coercibility == other.coercibility && !self.ascii))
    }
}

/// Joins two collations by MariaDB's coercibility rules. Returns `None` for an illegal mix.
pub(crate) fn join_collations(left: Derived, right: Derived) -> Option<Derived> {
    if left.collation.charset() != right.collation.charset() {
        return join_charsets(left, right);
    }
    if left.coercibility != right.coercibility {
        return Some(if left.coercibility < right.coercibility { left } else { right });
    }
    if left.collation == right.collation {
        return Some(Derived { ascii: left.ascii && right.ascii, ..left });
    }
    if left.coercibility == Coercibility::Explicit {
        return None;
    }
    if left.collation.is_bin() {
        return Some(left);
    }
    if right.collation.is_bin() {
        return Some(right);
    }
    Some(Derived {
        coercibility: Coercibility::NoCollation,
        collation: left.collation.charset().bin_collation(),
        ascii: false,
    })
}

fn join_charsets(left: Derived, right: Derived) -> Option<Derived> {
    if left.collation == Collation::BINARY {
        return Some(if left.coercibility <= right.coercibility { left } else { right });
    }
    if right.collation == Collation::BINARY {
        return Some(if right.coercibility <= left.coercibility { right } else { left });
    }
    if left.is_superset_of(right) {
        return Some(left);
    }
    if right.is_superset_of(left) {
        return Some(right);
    }
    if left.coercibility < right.coercibility && right.coercibility >= Coercibility::SystemConstant {
        return Some(left);
    }
    if right.coercibility < left.coercibility && left.coercibility >= Coercibility::SystemConstant {
        return Some(right);
    }
    None
}

/// Joins the collations of all string arguments. Errors 1267, 1270 and 1271 if they do not mix.
pub(crate) fn aggregate_collations<'t>(
    operation: &str,
    types: impl IntoIterator<Item = &'t ExprType>,
) -> SqlResult<Derived> {
    let types: Vec<&ExprType> = types.into_iter().collect();
    let mut joined: Option<Derived> = None;
    for ty in &types {
        let next = Derived::of(ty);
        joined = Some(match joined {
            None => next,
            Some(before) => join_collations(before, next).ok_or_else(|| illegal_mix(operation, &types))?,
        });
    }
    Ok(joined.unwrap_or(Derived {
        collation: Collation::BINARY,
        coercibility: Coercibility::Numeric,
        ascii: true,
    }))
}

/// Returns the error of collations that do not mix. It names up to three of them.
pub(crate) fn illegal_mix(operation: &str, types: &[&ExprType]) -> SqlError {
    let strength = |ty: &ExprType| match ty.coercibility {
        Coercibility::Explicit => "EXPLICIT",
        Coercibility::NoCollation => "NONE",
        Coercibility::Implicit => "IMPLICIT",
        Coercibility::SystemConstant => "SYSCONST",
        Coercibility::Coercible => "COERCIBLE",
        Coercibility::Numeric => "NUMERIC",
        Coercibility::Ignorable => "IGNORABLE",
    };
    let named: Vec<String> =
        types.iter().map(|ty| format!("({},{})", ty.collation.name(), strength(ty))).collect();
    match named.len() {
        2 => SqlError::mix_of_two_collations(&named[0], &named[1], operation),
        3 => SqlError::mix_of_three_collations(&named.join(", "), operation),
        _ => SqlError::mix_of_collations(operation),
    }
}

/// Returns INT or BIGINT, depending on the display length.
pub(crate) fn int_type(length: u32, unsigned: bool) -> ExprType {
    let kind = if length >= 10 { TypeKind::BigInt } else { TypeKind::Int };
    ExprType::number(kind, length, 0).with_unsigned(unsigned)
}

/// Returns the type of a literal.
pub(crate) fn literal_type(value: &Value) -> ExprType {
    let ty = match value {
        Value::Null => return ExprType::null(),
        Value::Int(v) if i32::try_from(*v).is_err() => ExprType::bigint(printed_width(*v)),
        Value::Int(v) => int_type(printed_width(*v), false),
        Value::UInt(v) => int_type(v.to_string().len() as u32, true),
        Value::Float(_) | Value::Double(_) => ExprType::double(),
        Value::Decimal(d) => {
            ExprType::decimal(u32::from(d.int_digits().max(1) + d.scale()), d.scale(), false)
        }
        Value::Str(s) => {
            let length = s.collation.char_len(&s.bytes) as u32;
            let mut ty = ExprType::string(length, s.collation, Coercibility::Coercible);
            ty.ascii = s.bytes.is_ascii();
            ty
        }
        Value::Date(_) => ExprType::date(),
        Value::Time(t) => ExprType::time(fraction_shown(t.microsecond())),
        Value::DateTime(d) => ExprType::datetime(fraction_shown(d.micros)),
        Value::Timestamp(_) => ExprType::datetime(6),
        Value::Fixed(fixed) => ExprType::fixed(fixed.kind()),
        Value::Bit { width, .. } => ExprType::number(TypeKind::Bit, u32::from(*width), 0).with_unsigned(true),
        Value::Enum { label, .. } | Value::Set { label, .. } => {
            let length = label.collation.char_len(&label.bytes) as u32;
            ExprType::string(length, label.collation, Coercibility::Coercible)
        }
    };
    ty.with_nullable(false)
}

fn printed_width(v: i64) -> u32 {
    v.to_string().len() as u32
}

/// Returns the number of fraction digits without trailing zeros.
fn fraction_shown(micros: u32) -> u8 {
    let mut digits = 6;
    let mut rest = micros;
    while digits > 0 && rest.is_multiple_of(10) {
        rest /= 10;
        digits -= 1;
    }
    digits
}
