//! JSON_TABLE as SQL text, in the form of MariaDB's view definitions.

use std::fmt::Write;

use cohort_types::{ColumnType, TypeKind};

use crate::ast::{DataType, DeclaredKind, JsonColumn, JsonResponse, JsonTable};
use crate::print::{Style, expr_in, quoted_text};

pub(crate) fn json_table(table: &JsonTable, style: Style) -> String {
    let (document, path) = (expr_in(&table.document, style), quoted_text(&table.path));
    format!("JSON_TABLE({document}, {path} {}) {}", columns(&table.columns, style), style.name(&table.alias))
}

fn columns(all: &[JsonColumn], style: Style) -> String {
    let column = |column: &JsonColumn| match column {
        JsonColumn::Ordinality { name } => format!("{} FOR ORDINALITY", style.name(name)),
        JsonColumn::Exists { name, ty, path } => {
            format!("{} {} EXISTS PATH {}", style.name(name), declared(ty), quoted_text(path))
        }
        JsonColumn::Value { name, ty, path, on_empty, on_error } => {
            let mut out = format!("{} {} PATH {}", style.name(name), declared(ty), quoted_text(path));
            for (given, when) in [(on_empty, "EMPTY"), (on_error, "ERROR")] {
                if let Some(given) = given {
                    let _ = write!(out, " {} ON {when}", response(given, style));
                }
            }
            out
        }
        JsonColumn::Nested { path, columns: inner } => {
            format!("NESTED PATH {} {}", quoted_text(path), columns(inner, style))
        }
    };
    format!("COLUMNS ({})", all.iter().map(column).collect::<Vec<_>>().join(", "))
}

fn response(response: &JsonResponse, style: Style) -> String {
    match response {
        JsonResponse::Null => "NULL".to_owned(),
        JsonResponse::Error => "ERROR".to_owned(),
        JsonResponse::Default(value) => format!("DEFAULT {}", expr_in(value, style)),
    }
}

/// Formats a type with MariaDB's default widths where none is declared.
fn declared(ty: &DataType) -> String {
    let DeclaredKind::Column(kind) = ty.kind else { return String::new() };
    let is_unsigned = ty.unsigned || ty.zerofill;
    let width = |n: u64| ty.length.unwrap_or(n);
    let plain = ColumnType { kind, ..ColumnType::int(TypeKind::Int, None, false) };
    let mut out = if kind == TypeKind::Json { "json" } else { plain.type_name() }.to_owned();
    let _ = match kind {
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt | TypeKind::Int | TypeKind::BigInt => {
            write!(out, "({})", width(ColumnType::int(kind, None, is_unsigned).length.into()))
        }
        TypeKind::Decimal => write!(out, "({},{})", width(10), ty.decimals.unwrap_or(0)),
        TypeKind::Char | TypeKind::Binary | TypeKind::Bit => write!(out, "({})", width(1)),
        TypeKind::Year => write!(out, "({})", width(4)),
        TypeKind::Enum | TypeKind::Set => {
            let labels: Vec<String> = ty.members.iter().map(|label| quoted_text(label)).collect();
            write!(out, "({})", labels.join(","))
        }
        _ => match (ty.length, ty.decimals) {
            (Some(length), Some(decimals)) => write!(out, "({length},{decimals})"),
            (Some(length), None) => write!(out, "({length})"),
            _ => Ok(()),
        },
    };
    out.push_str(if ty.zerofill { " unsigned zerofill" } else { "" });
    out.push_str(if ty.unsigned && !ty.zerofill { " unsigned" } else { "" });
    for (word, name) in [("CHARSET", &ty.charset), ("COLLATE", &ty.collation)] {
        if let Some(name) = name {
            let _ = write!(out, " {word} {name}");
        }
    }
    out.push_str(if ty.binary { " BINARY" } else { "" });
    out
}
