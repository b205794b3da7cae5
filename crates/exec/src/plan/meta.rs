//! What clients are told about result columns.

use cohort_catalog::{IndexKind, OnUpdate, Table};
use cohort_expr::{Expr, ExprType};
use cohort_protocol::{ColumnFlags, ColumnMeta, TypeCode};
use cohort_types::Collation;

use crate::bind::{Relation, Scope};

/// A select item's metadata; columns of base tables say where they are from.
pub(crate) fn column_meta(name: &str, expr: &Expr, scope: &Scope, results: Collation) -> ColumnMeta {
    let mut meta = expression_meta(name.to_owned(), &expr.ty(), results);
    let Expr::Column(column) = expr else { return meta };
    if column.ordinal >= scope.width() {
        return meta;
    }
    let table = &scope.tables[scope.table_of(column.ordinal)];
    let n = column.ordinal - table.first_slot;
    meta.table = table.name.to_string();
    meta.org_name = table.columns[n].name.to_string();
    match &table.relation {
        Relation::Base(base) => {
            meta.schema = base.name.schema.clone();
            meta.org_table = base.name.table.clone();
            meta.flags = meta.flags.with(column_flags(base, n));
        }
        Relation::Virtual(found) => {
            meta.schema = found.schema().to_owned();
            meta.org_table = found.name().to_owned();
        }
        Relation::Derived(_) => {}
    }
    meta
}

/// Metadata of a column of a base table, as COM_FIELD_LIST and SELECT * tell it.
fn column_flags(table: &Table, n: usize) -> ColumnFlags {
    let column = &table.columns[n];
    let mut flags = ColumnFlags::default();
    for index in &table.indexes {
        let Some(part) = index.columns.iter().position(|p| p.column == n) else { continue };
        flags = flags.with(match index.kind {
            IndexKind::Primary => ColumnFlags::PRI_KEY.with(ColumnFlags::PART_KEY),
            IndexKind::Unique if part == 0 && index.columns.len() == 1 => {
                ColumnFlags::UNIQUE_KEY.with(ColumnFlags::PART_KEY)
            }
            IndexKind::HiddenRowId => ColumnFlags::default(),
            _ if part == 0 => ColumnFlags::MULTIPLE_KEY.with(ColumnFlags::PART_KEY),
            _ => ColumnFlags::PART_KEY,
        });
    }
    if column.auto_increment {
        flags = flags.with(ColumnFlags::AUTO_INCREMENT);
    }
    if column.on_update == OnUpdate::CurrentTimestamp {
        flags = flags.with(ColumnFlags::ON_UPDATE_NOW);
    }
    if column.ty.zerofill {
        flags = flags.with(ColumnFlags::ZEROFILL);
    }
    let no_default = column.default == cohort_catalog::DefaultValue::None;
    if !column.nullable && no_default && !column.auto_increment {
        flags = flags.with(ColumnFlags::NO_DEFAULT_VALUE);
    }
    flags
}

/// The metadata of an expression of a type; `results`: collation of the character set in which strings are
/// sent.
pub(crate) fn expression_meta(name: String, ty: &ExprType, results: Collation) -> ColumnMeta {
    if ty.null_literal {
        return ColumnMeta {
            flags: ColumnFlags::BINARY,
            ..ColumnMeta::expression(name, TypeCode::Null, 0, Collation::BINARY)
        };
    }
    let meta = ty.to_column_type().meta(results);
    let type_code = TypeCode::from_byte(meta.type_code).unwrap_or(TypeCode::VarString);
    let mut flags = ColumnFlags(meta.flags);
    if !ty.nullable {
        flags = flags.with(ColumnFlags::NOT_NULL);
    }
    let collation = Collation(meta.charset_id);
    ColumnMeta {
        flags,
        decimals: meta.decimals,
        ..ColumnMeta::expression(name, type_code, meta.length, collation)
    }
}
