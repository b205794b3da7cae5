//! Values as row events encode them.
//!
//! ```text
//! type        code  metadata                              value
//! integers    1 2 9 3 8  -                                little-endian (`scalar`)
//! FLOAT       4     4                                     `scalar`
//! DOUBLE      5     8                                     `scalar`
//! DECIMAL     246   precision, scale                      packed
//! BIT         16    bits % 8, bits / 8                    big-endian
//! DATE        10    -                                     `scalar`
//! YEAR        13    -                                     `scalar`
//! TIME        19    fraction digits                       packed
//! DATETIME    18    fraction digits                       packed
//! TIMESTAMP   17    fraction digits                       packed
//! CHAR,BINARY 254   254 ^ (len >> 4 & 0x30), len & 0xff   length 1 byte (2 if len > 255), unpadded bytes
//! VARCHAR..   15    len u16                               length 1 byte (2 when len > 255), bytes
//! BLOB, TEXT  252   length bytes (1 to 4)                 length, bytes
//! ENUM        254   247, bytes                            little-endian
//! SET         254   248, bytes                            little-endian
//! ```
//!
//! `len` is the column's maximum length in bytes of its own character set. The bytes are encoded in that
//! character set.

use std::borrow::Cow;

use cohort_base::Reader;

use crate::scalar;
use crate::{Charset, Collation, ColumnType, Decimal, FixedKind, SqlMode, Str, TypeKind, Value};

pub(crate) const TINY: u8 = 1;
pub(crate) const SHORT: u8 = 2;
pub(crate) const LONG: u8 = 3;
pub(crate) const FLOAT: u8 = 4;
pub(crate) const DOUBLE: u8 = 5;
pub(crate) const LONGLONG: u8 = 8;
pub(crate) const INT24: u8 = 9;
pub(crate) const DATE: u8 = 10;
const YEAR: u8 = 13;
pub(crate) const NEWDATE: u8 = 14;
pub(crate) const VARCHAR: u8 = 15;
pub(crate) const BIT: u8 = 16;
const TIMESTAMP2: u8 = 17;
pub(crate) const DATETIME2: u8 = 18;
const TIME2: u8 = 19;
pub(crate) const NEWDECIMAL: u8 = 246;
pub(crate) const ENUM: u8 = 247;
pub(crate) const SET: u8 = 248;
pub(crate) const BLOB: u8 = 252;
pub(crate) const STRING: u8 = 254;

/// Description of a column in a table map event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinlogColumn {
    /// The binlog type code.
    pub code: u8,
    /// Zero to two metadata bytes, first byte lowest.
    pub metadata: u16,
    /// Signedness from the optional metadata. Only numeric columns have it.
    pub unsigned: bool,
}

/// A value that cannot be encoded or decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// The bytes are not a value of the type.
    Corrupt,
    /// The value is not of its column's class, or the wire type cannot be converted to the column's type.
    WrongClass,
    /// A type code that this server does not know.
    UnknownType(u8),
}

impl std::fmt::Display for ImageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ImageError::Corrupt => write!(f, "the row image does not decode"),
            ImageError::WrongClass => write!(f, "the value and its column are of different types"),
            ImageError::UnknownType(code) => write!(f, "the table map has a column of unknown type {code}"),
        }
    }
}

impl std::error::Error for ImageError {}

impl From<cohort_base::Truncated> for ImageError {
    fn from(_: cohort_base::Truncated) -> ImageError {
        ImageError::Corrupt
    }
}

/// Encoding of a wire value.
enum Layout {
    /// A fixed number of bytes.
    Fixed(usize),
    /// A string after its length, which has this number of bytes.
    Counted(usize),
}

impl BinlogColumn {
    /// Returns the description of a column of this type.
    pub fn of(ty: &ColumnType) -> BinlogColumn {
        let pair = |low: u32, high: u32| (low & 0xff | high << 8) as u16;
        let bytes = ty.byte_len_max() as u32;
        let (code, metadata) = match ty.kind {
            TypeKind::TinyInt => (TINY, 0),
            TypeKind::SmallInt => (SHORT, 0),
            TypeKind::MediumInt => (INT24, 0),
            TypeKind::Int => (LONG, 0),
            TypeKind::BigInt => (LONGLONG, 0),
            TypeKind::Float => (FLOAT, 4),
            TypeKind::Double => (DOUBLE, 8),
            TypeKind::Decimal => (NEWDECIMAL, pair(ty.length, ty.decimals.into())),
            TypeKind::Bit => (BIT, pair(ty.length % 8, ty.length / 8)),
            TypeKind::Date => (DATE, 0),
            TypeKind::Year => (YEAR, 0),
            TypeKind::Time => (TIME2, ty.decimals.into()),
            TypeKind::DateTime => (DATETIME2, ty.decimals.into()),
            TypeKind::Timestamp => (TIMESTAMP2, ty.decimals.into()),
            TypeKind::Char | TypeKind::Binary => {
                (STRING, pair(u32::from(STRING) ^ (bytes & 0x300) >> 4, bytes & 0xff))
            }
            // As BINARY of the same length.
            TypeKind::Uuid | TypeKind::Inet6 | TypeKind::Inet4 => (STRING, pair(STRING.into(), bytes)),
            TypeKind::VarChar | TypeKind::VarBinary => (VARCHAR, bytes as u16),
            TypeKind::Enum => (STRING, pair(ENUM.into(), scalar::enum_len(ty.members.len()) as u32)),
            TypeKind::Set => (STRING, pair(SET.into(), scalar::set_len(ty.members.len()) as u32)),
            _ => (BLOB, blob_length_bytes(ty.kind) as u16),
        };
        BinlogColumn { code, metadata, unsigned: ty.unsigned && BinlogColumn::has_sign(code) }
    }

    /// Returns the number of metadata bytes of a type code.
    fn metadata_len(code: u8) -> Result<usize, ImageError> {
        match code {
            TINY | SHORT | LONG | LONGLONG | INT24 | DATE | YEAR | NEWDATE => Ok(0),
            FLOAT | DOUBLE | TIME2 | DATETIME2 | TIMESTAMP2 | BLOB => Ok(1),
            NEWDECIMAL | BIT | STRING | VARCHAR => Ok(2),
            _ => Err(ImageError::UnknownType(code)),
        }
    }

    /// Appends the metadata bytes (0 to 2).
    pub fn write_metadata(&self, out: &mut Vec<u8>) {
        let len = BinlogColumn::metadata_len(self.code).unwrap_or(0);
        out.extend_from_slice(&self.metadata.to_le_bytes()[..len]);
    }

    /// Parses the type codes and the metadata block of a table map. All columns are signed until the optional
    /// metadata is applied.
    pub fn parse_all(codes: &[u8], metadata: &[u8]) -> Result<Vec<BinlogColumn>, ImageError> {
        let mut from = Reader::new(metadata);
        let column = |&code: &u8| {
            let bytes = from.bytes(BinlogColumn::metadata_len(code)?)?;
            Ok(BinlogColumn { code, metadata: scalar::little_endian(bytes) as u16, unsigned: false })
        };
        let columns = codes.iter().map(column).collect::<Result<Vec<_>, ImageError>>()?;
        if from.is_empty() { Ok(columns) } else { Err(ImageError::Corrupt) }
    }

    fn has_sign(code: u8) -> bool {
        matches!(code, TINY | SHORT | LONG | LONGLONG | INT24 | FLOAT | DOUBLE | NEWDECIMAL | YEAR)
    }

    /// Returns whether the optional metadata has a signedness bit for the column.
    pub fn is_numeric(&self) -> bool {
        BinlogColumn::has_sign(self.code)
    }

    /// Returns the actual type code and length, which CHAR, ENUM and SET store in the metadata of STRING.
    pub(crate) fn real(&self) -> (u8, u32) {
        let [low, high] = self.metadata.to_le_bytes();
        if self.code != STRING {
            return (self.code, self.metadata.into());
        }
        if low & 0x30 != 0x30 {
            return (low | 0x30, u32::from(high) | u32::from(low & 0x30 ^ 0x30) << 4);
        }
        (low, high.into())
    }

    fn layout(&self) -> Result<Layout, ImageError> {
        let [low, high] = self.metadata.to_le_bytes();
        let (code, length) = self.real();
        let fraction = usize::from(low.min(6)).div_ceil(2);
        let counted = |length: u32| Layout::Counted(if length > 0xff { 2 } else { 1 });
        Ok(match code {
            TINY | YEAR => Layout::Fixed(1),
            SHORT => Layout::Fixed(2),
            INT24 | DATE | NEWDATE => Layout::Fixed(3),
            LONG | FLOAT => Layout::Fixed(4),
            LONGLONG | DOUBLE => Layout::Fixed(8),
            NEWDECIMAL => Layout::Fixed(Decimal::packed_len(low, high)),
            BIT => Layout::Fixed(usize::from(high) + usize::from(low > 0)),
            TIME2 => Layout::Fixed(3 + fraction),
            DATETIME2 => Layout::Fixed(5 + fraction),
            TIMESTAMP2 => Layout::Fixed(4 + fraction),
            ENUM | SET if self.code == STRING => Layout::Fixed(length as usize),
            STRING | VARCHAR => counted(length),
            BLOB if (1..=4).contains(&low) => Layout::Counted(low.into()),
            BLOB => return Err(ImageError::Corrupt),
            code => return Err(ImageError::UnknownType(code)),
        })
    }

    /// Consumes a value and returns its bytes, without the length.
    fn take<'a>(&self, from: &mut Reader<'a>) -> Result<&'a [u8], ImageError> {
        let len = match self.layout()? {
            Layout::Fixed(len) => len,
            Layout::Counted(len) => scalar::little_endian(from.bytes(len)?) as usize,
        };
        Ok(from.bytes(len)?)
    }

    /// Skips a value.
    pub fn skip(&self, from: &mut Reader<'_>) -> Result<(), ImageError> {
        self.take(from).map(|_| ())
    }

    /// Consumes a value of a row image and converts it to `ty`. If the types of wire and column differ
    /// ([`BinlogColumn::fit`]), the conversion may be lossy; a caller that must not lose data checks the fit
    /// first.
    pub fn read(&self, ty: &ColumnType, from: &mut Reader<'_>) -> Result<Value, ImageError> {
        let bytes = self.take(from)?;
        match self.read_exactly(ty, bytes) {
            Err(ImageError::WrongClass) => self.convert(ty, bytes),
            read => read,
        }
    }

    fn read_exactly(&self, ty: &ColumnType, bytes: &[u8]) -> Result<Value, ImageError> {
        let local = BinlogColumn::of(ty);
        let (code, local_code) = (self.real().0, local.real().0);
        if let Some(kind) = FixedKind::of(ty.kind) {
            return fixed(kind, code, bytes);
        }
        if scalar::len(ty).is_none() {
            let is_string = |code| matches!(code, STRING | VARCHAR | BLOB);
            return if is_string(code) {
                string(ty, &self.padded(ty, bytes))
            } else {
                Err(ImageError::WrongClass)
            };
        }
        if ty.kind.is_integer() {
            return self.read_integer(ty, bytes);
        }
        let dates = |code| matches!(code, DATE | NEWDATE);
        if code != local_code && !(dates(code) && dates(local_code)) {
            return Err(ImageError::WrongClass);
        }
        let mut wire = ty.clone();
        let [low, high] = self.metadata.to_le_bytes();
        match ty.kind {
            TypeKind::Decimal => (wire.length, wire.decimals) = (low.into(), high),
            TypeKind::Bit => wire.length = u32::from(high) * 8 + u32::from(low),
            TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => wire.decimals = low,
            TypeKind::Enum | TypeKind::Set if self.real() != local.real() => {
                return Err(ImageError::WrongClass);
            }
            _ => {}
        }
        let value = scalar::decode(&wire, bytes).ok_or(ImageError::Corrupt)?;
        fit(ty, value).ok_or(ImageError::WrongClass)
    }

    /// Restores the trailing zeros that CHAR and BINARY omit on the wire: they belong to the value if the
    /// column here does not pad.
    pub(crate) fn padded<'b>(&self, ty: &ColumnType, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        match self.real() {
            (STRING, length) if ty.kind.is_binary_string() && ty.kind != TypeKind::Binary => {
                let mut whole = bytes.to_vec();
                whole.resize(bytes.len().max(length as usize), 0);
                Cow::Owned(whole)
            }
            _ => Cow::Borrowed(bytes),
        }
    }

    fn read_integer(&self, ty: &ColumnType, bytes: &[u8]) -> Result<Value, ImageError> {
        if !matches!(self.code, TINY | SHORT | INT24 | LONG | LONGLONG) {
            return Err(ImageError::WrongClass);
        }
        let bits = scalar::little_endian(bytes);
        let shift = 64 - 8 * bytes.len();
        // The sign is the local column's: old sources do not send it.
        let value = if ty.unsigned { Value::UInt(bits) } else { Value::Int((bits << shift) as i64 >> shift) };
        scalar::integer_bits(ty, &value).map(|_| value).ok_or(ImageError::WrongClass)
    }
}

/// Relation of a source's column type to the local column type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFit {
    /// The types are equal.
    Same,
    /// The local type can hold every value of the source's type.
    Widens,
    /// Some values of the source do not fit.
    Narrows,
    /// The types are of different families.
    Differs,
}

impl WireFit {
    fn of_sizes(there: u32, here: u32) -> WireFit {
        match there.cmp(&here) {
            std::cmp::Ordering::Less => WireFit::Widens,
            std::cmp::Ordering::Equal => WireFit::Same,
            std::cmp::Ordering::Greater => WireFit::Narrows,
        }
    }
}

impl BinlogColumn {
    /// Returns how the column fits a local column of this type. Signs are not compared: old sources do not
    /// send them.
    pub fn fit(&self, ty: &ColumnType) -> WireFit {
        let local = BinlogColumn::of(ty);
        let ((code, length), (local_code, local_length)) = (self.real(), local.real());
        if code == local_code && self.metadata == local.metadata {
            return WireFit::Same;
        }
        if FixedKind::of(ty.kind).is_some() {
            return WireFit::Differs;
        }
        let integer = |code| [TINY, SHORT, INT24, LONG, LONGLONG].iter().position(|known| *known == code);
        let is_string = |code| matches!(code, STRING | VARCHAR | BLOB);
        let [precision, scale] = self.metadata.to_le_bytes();
        match (integer(code), integer(local_code)) {
            (Some(there), Some(here)) => return WireFit::of_sizes(there as u32, here as u32),
            (None, None) => {}
            _ => return WireFit::Differs,
        }
        match (code, local_code) {
            (DATE | NEWDATE, DATE | NEWDATE) => WireFit::Same,
            (FLOAT | DOUBLE, FLOAT | DOUBLE) => WireFit::of_sizes(code.into(), local_code.into()),
            (NEWDECIMAL, FLOAT | DOUBLE) | (FLOAT | DOUBLE, NEWDECIMAL) => WireFit::Narrows,
            (DATETIME2, DATE | NEWDATE) => WireFit::Narrows,
            (DATE | NEWDATE, DATETIME2) => WireFit::Widens,
            (NEWDECIMAL, NEWDECIMAL) => {
                let [local_precision, local_scale] = local.metadata.to_le_bytes();
                let digits = |precision: u8, scale: u8| i32::from(precision) - i32::from(scale);
                let is_held =
                    scale <= local_scale && digits(precision, scale) <= digits(local_precision, local_scale);
                if is_held { WireFit::Widens } else { WireFit::Narrows }
            }
            (BIT, BIT) => {
                let bits = |column: &BinlogColumn| {
                    let [rest, bytes] = column.metadata.to_le_bytes();
                    u32::from(bytes) * 8 + u32::from(rest)
                };
                WireFit::of_sizes(bits(self), bits(&local))
            }
            (TIME2, TIME2) | (DATETIME2, DATETIME2) | (TIMESTAMP2, TIMESTAMP2) => {
                WireFit::of_sizes(precision.into(), ty.decimals.into())
            }
            (ENUM, ENUM) | (SET, SET) => WireFit::of_sizes(length, local_length),
            (there, here) if is_string(there) && is_string(here) => {
                let most = |code: u8, length: u32| match code {
                    BLOB => u64::MAX >> (64 - 8 * u64::from(length.clamp(1, 4))),
                    _ => length.into(),
                };
                match most(there, length) <= most(here, local_length) {
                    true => WireFit::Widens,
                    false => WireFit::Narrows,
                }
            }
            _ => WireFit::Differs,
        }
    }

    /// Returns the name of the type for error 1677.
    pub fn type_text(&self) -> String {
        let (code, length) = self.real();
        let [low, high] = self.metadata.to_le_bytes();
        match code {
            TINY => "tinyint".to_owned(),
            SHORT => "smallint".to_owned(),
            INT24 => "mediumint".to_owned(),
            LONG => "int".to_owned(),
            LONGLONG => "bigint".to_owned(),
            FLOAT => "float".to_owned(),
            DOUBLE => "double".to_owned(),
            DATE | NEWDATE => "date".to_owned(),
            YEAR => "year".to_owned(),
            TIME2 => "time".to_owned(),
            DATETIME2 => "datetime".to_owned(),
            TIMESTAMP2 => "timestamp".to_owned(),
            NEWDECIMAL => format!("decimal({low},{high})"),
            BIT => format!("bit({})", u32::from(high) * 8 + u32::from(low)),
            ENUM => "enum".to_owned(),
            SET => "set".to_owned(),
            VARCHAR => format!("varchar({length})"),
            STRING => format!("char({length})"),
            _ => match low {
                1 => "tinyblob".to_owned(),
                2 => "blob".to_owned(),
                3 => "mediumblob".to_owned(),
                _ => "longblob".to_owned(),
            },
        }
    }
}

/// Converts a value of the wire's size to the column's, if it loses nothing but zeros.
fn fit(ty: &ColumnType, value: Value) -> Option<Value> {
    match value {
        Value::Decimal(v) => {
            let scaled = v.round(ty.decimals.into()).ok()?;
            let fits = u32::from(scaled.int_digits()) + u32::from(ty.decimals) <= ty.length.max(1);
            (scaled == v && fits).then_some(Value::Decimal(scaled))
        }
        Value::Time(v) => (v.with_decimals(ty.decimals, SqlMode::NONE) == v).then_some(Value::Time(v)),
        Value::DateTime(v) => {
            (v.with_decimals(ty.decimals, SqlMode::NONE) == Some(v)).then_some(Value::DateTime(v))
        }
        Value::Timestamp(us) => (us % micros_of(ty.decimals) == 0).then_some(Value::Timestamp(us)),
        Value::Float(v) if v.is_nan() => None,
        Value::Double(v) if v.is_nan() => None,
        Value::Bit { bits, .. } => {
            let width = ty.length.clamp(1, 64) as u8;
            (width == 64 || bits >> width == 0).then_some(Value::Bit { bits, width })
        }
        value => Some(value),
    }
}

/// Returns the microseconds of the smallest unit of a column with `decimals` fraction digits.
pub(crate) fn micros_of(decimals: u8) -> i64 {
    10_i64.pow(6 - u32::from(decimals.min(6)))
}

/// Decodes a UUID or an address. Trailing zeros are omitted on the wire.
fn fixed(kind: FixedKind, code: u8, bytes: &[u8]) -> Result<Value, ImageError> {
    if code != STRING || bytes.len() > kind.byte_len() {
        return Err(ImageError::WrongClass);
    }
    let mut whole = bytes.to_vec();
    whole.resize(kind.byte_len(), 0);
    kind.of_bytes(&whole).map(Value::Fixed).ok_or(ImageError::WrongClass)
}

fn string(ty: &ColumnType, bytes: &[u8]) -> Result<Value, ImageError> {
    let mut text = Vec::with_capacity(bytes.len());
    ty.collation.charset().decode(bytes, &mut text).map_err(|_| ImageError::Corrupt)?;
    if ty.kind == TypeKind::Binary && text.len() < ty.length as usize {
        text.resize(ty.length as usize, 0);
    }
    // BLOB and TEXT lengths are in bytes of their own character set.
    let chars = if ty.kind.is_blob() { bytes.len() } else { ty.collation.char_len(&text) };
    if chars > ty.length as usize {
        return Err(ImageError::WrongClass);
    }
    Ok(Value::Str(Str { bytes: text, collation: ty.collation }))
}

fn blob_length_bytes(kind: TypeKind) -> usize {
    match kind {
        TypeKind::TinyText | TypeKind::TinyBlob => 1,
        TypeKind::Text | TypeKind::Blob => 2,
        TypeKind::MediumText | TypeKind::MediumBlob => 3,
        _ => 4,
    }
}

/// Appends a stored value, not NULL, as a row image encodes it.
pub fn write_value(ty: &ColumnType, value: &Value, out: &mut Vec<u8>) -> Result<(), ImageError> {
    if let Value::Fixed(fixed) = value {
        let bytes = fixed.bytes();
        let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        out.push(len as u8);
        out.extend_from_slice(&bytes[..len]);
        return Ok(());
    }
    if scalar::len(ty).is_some() {
        return scalar::encode(ty, value, out).map_err(|_| ImageError::WrongClass);
    }
    let Value::Str(s) = value else { return Err(ImageError::WrongClass) };
    let mut bytes = s.bytes.as_slice();
    let pad = match ty.kind {
        TypeKind::Char => Some(b' '),
        TypeKind::Binary => Some(0),
        _ => None,
    };
    while pad.is_some() && bytes.last().copied() == pad {
        bytes = &bytes[..bytes.len() - 1];
    }
    let length_bytes = match ty.kind {
        kind if kind.is_blob() => blob_length_bytes(kind),
        _ if ty.byte_len_max() > 0xff => 2,
        _ => 1,
    };
    let start = out.len();
    out.resize(start + length_bytes, 0);
    let charset = if ty.collation == Collation::BINARY { Charset::Binary } else { ty.collation.charset() };
    charset.encode(bytes, out);
    let len = out.len() - start - length_bytes;
    if len as u64 > ty.byte_len_max().max(1) {
        return Err(ImageError::WrongClass);
    }
    out[start..start + length_bytes].copy_from_slice(&(len as u32).to_le_bytes()[..length_bytes]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length of a TEXT column is in bytes of its own character set. A text of that many bytes is longer
    /// in UTF-8.
    #[test]
    fn a_long_text_of_one_byte_characters_is_read_as_it_was_written() {
        let ty = ColumnType::string(TypeKind::Text, 65_535, Collation::LATIN1_SWEDISH_CI);
        let value = Value::Str(Str { bytes: "é".repeat(65_535).into_bytes(), collation: ty.collation });
        let mut image = Vec::new();
        write_value(&ty, &value, &mut image).expect("fits");
        assert_eq!(image.len(), 65_537);
        let read = BinlogColumn::of(&ty).read(&ty, &mut Reader::new(&image));
        assert_eq!(read, Ok(value));
    }
}
