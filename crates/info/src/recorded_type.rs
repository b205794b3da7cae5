//! Column types as recorded from MariaDB: `varchar(64)`, `enum('N','Y')`.

use cohort_types::{Collation, ColumnType, TypeKind};

/// Parses a recorded type. Text types get `collation`.
pub(super) fn column_type(text: &str, collation: Collation) -> ColumnType {
    let is_unsigned = text.ends_with(" unsigned");
    let (name, rest) = text.split_once('(').unwrap_or((text, ""));
    let arguments = rest.rsplit_once(')').map_or("", |(inside, _)| inside);
    let name = name.strip_suffix(" unsigned").unwrap_or(name);
    let mut numbers = arguments.split(',').filter_map(|n| n.parse::<u32>().ok());
    let (first, second) = (numbers.next(), numbers.next().unwrap_or(0));
    let int = |kind| ColumnType::int(kind, first, is_unsigned);
    let string = |kind| ColumnType::string(kind, first.unwrap_or(0), collation);
    let bytes = |kind| ColumnType::string(kind, first.unwrap_or(0), Collation::BINARY);
    let temporal = |kind| ColumnType::temporal(kind, first.unwrap_or(0) as u8);
    let members = |kind| {
        let member = |quoted: &str| quoted.trim_matches('\'').to_owned();
        ColumnType::members(kind, arguments.split("','").map(member).collect(), collation)
    };
    match name {
        "tinyint" => int(TypeKind::TinyInt),
        "smallint" => int(TypeKind::SmallInt),
        "int" => int(TypeKind::Int),
        "bigint" => int(TypeKind::BigInt),
        "decimal" => ColumnType::decimal(first.unwrap_or(10) as u8, second as u8),
        "float" => ColumnType::real(TypeKind::Float, None),
        "double" => {
            let ty = ColumnType::real(TypeKind::Double, first.map(|length| (length as u8, second as u8)));
            if is_unsigned { ty.unsigned() } else { ty }
        }
        "datetime" => temporal(TypeKind::DateTime),
        "timestamp" => temporal(TypeKind::Timestamp),
        "time" => temporal(TypeKind::Time),
        "char" => string(TypeKind::Char),
        "text" => string(TypeKind::Text),
        "mediumtext" => string(TypeKind::MediumText),
        "longtext" => string(TypeKind::LongText),
        "varbinary" => bytes(TypeKind::VarBinary),
        "binary" => bytes(TypeKind::Binary),
        "blob" => bytes(TypeKind::Blob),
        "longblob" => bytes(TypeKind::LongBlob),
        "enum" => members(TypeKind::Enum),
        "set" => members(TypeKind::Set),
        _ => string(TypeKind::VarChar),
    }
}
