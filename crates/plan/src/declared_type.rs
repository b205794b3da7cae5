//! Converts a column's declared type.

use cohort_sql::ast::{DataType, DeclaredKind};
use cohort_types::{Collation, ColumnType, SqlError, SqlResult, TypeKind};

use crate::charset;

/// Returns the declared type, with the table's collation if none was written.
pub fn column_type(declared: &DataType, column: &str, table: Collation) -> SqlResult<ColumnType> {
    let DeclaredKind::Column(kind) = declared.kind else { return Err(SqlError::wrong_column_spec(column)) };
    let length = declared.length.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let small = |n: Option<u64>, default: u8| n.map_or(default, |n| u8::try_from(n).unwrap_or(u8::MAX));
    use TypeKind as K;
    let mut ty = match kind {
        K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt => {
            let width = length.filter(|n| *n > 0);
            ColumnType::int(kind, width, declared.unsigned || declared.zerofill)
        }
        K::Decimal if declared.length == Some(0) && declared.decimals.is_some_and(|n| n > 0) => {
            return Err(SqlError::scale_above_precision(column));
        }
        K::Decimal => {
            let precision = small(declared.length, 10);
            ColumnType::decimal(if precision == 0 { 10 } else { precision }, small(declared.decimals, 0))
        }
        K::Float | K::Double => real_type(declared, kind, column)?,
        K::Bit => ColumnType::bit(small(declared.length, 1).max(1)),
        K::Date | K::Year => ColumnType::temporal(kind, 0),
        K::Time | K::DateTime | K::Timestamp => ColumnType::temporal(kind, small(declared.length, 0)),
        K::Enum | K::Set => {
            let members = declared.members.iter().map(|m| m.trim_end_matches(' ').to_owned());
            ColumnType::members(kind, members.collect(), collation_of(declared, table)?)
        }
        K::Text | K::Blob if declared.length.is_some_and(|length| length > u32::MAX.into()) => {
            return Err(SqlError::display_width(column, u32::MAX));
        }
        _ => string_type(declared, kind, length, table)?,
    };
    ty.unsigned |= declared.unsigned || declared.zerofill;
    ty.zerofill |= declared.zerofill;
    Ok(ty)
}

fn real_type(declared: &DataType, kind: TypeKind, column: &str) -> SqlResult<ColumnType> {
    let small = |n: u64| u8::try_from(n).unwrap_or(u8::MAX);
    match (declared.length, declared.decimals) {
        (Some(length), Some(decimals @ ..=30)) if decimals > length => {
            Err(SqlError::scale_above_precision(column))
        }
        (Some(length), Some(decimals)) => Ok(ColumnType::real(kind, Some((small(length), small(decimals))))),
        (Some(bits), None) if kind == TypeKind::Float => match bits {
            0..=24 => Ok(ColumnType::real(TypeKind::Float, None)),
            25..=53 => Ok(ColumnType::real(TypeKind::Double, None)),
            _ => Err(SqlError::wrong_column_spec(column)),
        },
        _ => Ok(ColumnType::real(kind, None)),
    }
}

fn collation_of(declared: &DataType, table: Collation) -> SqlResult<Collation> {
    let collation = charset::resolve(declared.charset.as_deref(), declared.collation.as_deref(), table)?;
    Ok(if declared.binary { collation.charset().bin_collation() } else { collation })
}

fn string_type(
    declared: &DataType,
    kind: TypeKind,
    length: Option<u32>,
    table: Collation,
) -> SqlResult<ColumnType> {
    use TypeKind as K;
    let collation = if kind.is_text() { collation_of(declared, table)? } else { Collation::BINARY };
    // The character set `binary` turns a text type into the corresponding binary type.
    let kind = match (kind, collation == Collation::BINARY) {
        (K::Char, true) => K::Binary,
        (K::VarChar, true) => K::VarBinary,
        (K::TinyText, true) => K::TinyBlob,
        (K::Text, true) => K::Blob,
        (K::MediumText, true) => K::MediumBlob,
        (K::LongText, true) => K::LongBlob,
        (kind, _) => kind,
    };
    Ok(match (kind, length) {
        (K::Text | K::Blob, Some(length)) if length > 0 => ColumnType::text_of_length(length, collation),
        (K::Char | K::Binary, length) => ColumnType::string(kind, length.unwrap_or(1), collation),
        (kind, length) => ColumnType::string(kind, length.unwrap_or(0), collation),
    })
}
