//! Types of CAST as SQL text.

use cohort_types::TypeKind;

use crate::ast::{DataType, DeclaredKind};
use crate::print_text::push;

/// Formats the type as MariaDB does: a binary string is `char(n) charset binary`.
pub(crate) fn cast_type(to: &DataType) -> String {
    use TypeKind as T;
    let name = match to.kind {
        DeclaredKind::Signed => "signed",
        DeclaredKind::Unsigned => "unsigned",
        DeclaredKind::Column(kind) => match kind {
            T::Binary | T::VarBinary | T::Char | T::VarChar => "char",
            T::Date => "date",
            T::Time => "time",
            T::DateTime => "datetime",
            T::Decimal => "decimal",
            T::Float => "float",
            T::Double => "double",
            T::Uuid => "uuid",
            T::Inet6 => "inet6",
            T::Inet4 => "inet4",
            T::TinyInt
            | T::SmallInt
            | T::MediumInt
            | T::Int
            | T::BigInt
            | T::Bit
            | T::Timestamp
            | T::Year
            | T::TinyText
            | T::Text
            | T::MediumText
            | T::LongText
            | T::TinyBlob
            | T::Blob
            | T::MediumBlob
            | T::LongBlob
            | T::Enum
            | T::Set
            | T::Json => unreachable!("the grammar has no cast to this type"),
        },
    };
    let mut out = name.to_string();
    let is_decimal = to.kind == DeclaredKind::Column(T::Decimal);
    let is_temporal = matches!(to.kind, DeclaredKind::Column(T::Time | T::DateTime));
    match (to.length, to.decimals) {
        (Some(length), Some(decimals)) => push(&mut out, format_args!("({length},{decimals})")),
        (Some(length), None) if is_decimal => push(&mut out, format_args!("({length},0)")),
        (None, None) if is_decimal => out.push_str("(10,0)"),
        (Some(0), None) if is_temporal => {}
        (Some(length), None) => push(&mut out, format_args!("({length})")),
        (None, _) => {}
    }
    if matches!(to.kind, DeclaredKind::Column(T::Binary | T::VarBinary)) {
        out.push_str(" charset binary");
    }
    if let Some(charset) = &to.charset {
        push(&mut out, format_args!(" charset {charset}"));
    }
    out.push_str(if to.binary { " binary" } else { "" });
    if let Some(collation) = &to.collation {
        push(&mut out, format_args!(" collate {collation}"));
    }
    out
}
