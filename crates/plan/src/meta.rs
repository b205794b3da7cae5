//! Metadata of result columns.

use cohort_catalog::{OnUpdate, Table};
use cohort_expr::{Expr, ExprType, TypeClass};
use cohort_protocol::{ColumnFlags, ColumnMeta, TypeCode};
use cohort_types::{Collation, ColumnType, FixedKind, TypeKind};

use crate::bind::{Relation, Scope, ScopeTable};

/// Returns the metadata of a select item. For a column of a base table, it names the origin.
pub fn column_meta(name: &str, expr: &Expr, scope: &Scope) -> ColumnMeta {
    let Some((slot, ty)) = column_of(expr).filter(|(slot, _)| scope.holds(*slot)) else {
        let mut meta = expression_meta(name.to_owned(), &expr.ty());
        if expr.is_user_variable() && expr.ty().class() == TypeClass::Decimal {
            // The next execution may find any number.
            (meta.length, meta.decimals) = (83, 38);
        }
        return meta;
    };
    let table = &scope.tables[scope.table_of(slot)];
    let n = slot - table.first_slot;
    if let Some(merged) = &table.merged {
        return merged_meta(name, ty, table, &merged[n].meta, n);
    }
    let mut meta = match &table.relation {
        Relation::Base(base) => column_type_meta(name.to_owned(), &base.columns[n].ty, ty),
        Relation::Virtual(found) => column_type_meta(name.to_owned(), &found.columns()[n].ty, ty),
        Relation::View(_) | Relation::Derived => field_meta(name.to_owned(), ty),
    };
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
            virtual_column(&mut meta);
        }
        Relation::View(view) => {
            meta.schema = view.name.schema.clone();
            meta.org_table = view.name.table.clone();
        }
        Relation::Derived => {}
    }
    meta
}

/// Returns the metadata of a column of a merged view or derived table, which equals the inner column's.
fn merged_meta(name: &str, ty: &ExprType, table: &ScopeTable, inside: &ColumnMeta, n: usize) -> ColumnMeta {
    let is_column = !inside.org_table.is_empty();
    let mut meta = match is_column {
        true => ColumnMeta { name: name.to_owned(), ..inside.clone() },
        false => expression_meta(name.to_owned(), ty),
    };
    if ty.nullable {
        meta.flags = meta.flags.without(ColumnFlags::NOT_NULL);
    }
    meta.table = table.name.to_string();
    meta.org_name = table.columns[n].name.to_string();
    match &table.relation {
        Relation::View(view) => {
            meta.schema = view.name.schema.clone();
            meta.org_table = view.name.table.clone();
        }
        _ => meta.org_table = table.name.to_string(),
    }
    meta
}

fn column_of(expr: &Expr) -> Option<(usize, &ExprType)> {
    match expr {
        Expr::Column(column) => Some((column.ordinal, &column.ty)),
        _ => None,
    }
}

/// Returns the flags of a base table column, as reported by COM_FIELD_LIST and SELECT *.
fn column_flags(table: &Table, n: usize) -> ColumnFlags {
    let column = &table.columns[n];
    let mut flags = ColumnFlags::default();
    for index in &table.indexes {
        let Some(part) = index.columns.iter().position(|p| p.column == n) else { continue };
        flags = flags.with(ColumnFlags::PART_KEY).with(match index.kind {
            kind if kind.is_primary() => ColumnFlags::PRI_KEY,
            kind if kind.is_unique() && index.columns.len() == 1 => ColumnFlags::UNIQUE_KEY,
            _ if part == 0 => ColumnFlags::MULTIPLE_KEY,
            _ => ColumnFlags::default(),
        });
    }
    if column.auto_increment {
        flags = flags.with(ColumnFlags::AUTO_INCREMENT);
    }
    let by_itself = column.on_update == OnUpdate::CurrentTimestamp;
    if by_itself {
        flags = flags.with(ColumnFlags::ON_UPDATE_NOW);
    }
    let is_now = column.default == cohort_catalog::DefaultValue::CurrentTimestamp;
    if column.ty.kind == TypeKind::Timestamp && (by_itself || is_now) {
        flags = flags.with(ColumnFlags::TIMESTAMP);
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

/// Adjusts the metadata of a virtual table's column: no default, and text lengths limited to a buffer's.
pub fn virtual_column(meta: &mut ColumnMeta) {
    meta.flags = meta.flags.with(ColumnFlags::NO_DEFAULT_VALUE);
    if meta.type_code.is_blob() {
        meta.length = meta.length.min(u32::from(u16::MAX) * meta.collation.charset().mbmaxlen());
    }
}

/// Returns the metadata of an expression, which is not stored anywhere.
pub fn expression_meta(name: String, ty: &ExprType) -> ColumnMeta {
    if ty.null_literal {
        return ColumnMeta {
            flags: ColumnFlags::BINARY,
            ..ColumnMeta::expression(name, TypeCode::Null, 0, Collation::BINARY)
        };
    }
    let is_text = ty.class() == TypeClass::String;
    let collation = match ty.class() {
        TypeClass::String => ty.collation,
        // Sent as text.
        TypeClass::Fixed => Collation::LATIN1_SWEDISH_CI,
        _ => Collation::BINARY,
    };
    let mut flags = ColumnFlags::default();
    if !ty.nullable {
        flags = flags.with(ColumnFlags::NOT_NULL);
    }
    if collation.is_bin() {
        flags = flags.with(ColumnFlags::BINARY);
    }
    if ty.unsigned {
        flags = flags.with(ColumnFlags::UNSIGNED);
    }
    let bytes = if is_text { collation.charset().mbmaxlen() } else { 1 };
    ColumnMeta {
        flags,
        decimals: ty.decimals,
        format: format_of(ty),
        ..ColumnMeta::expression(name, type_code(ty), ty.length.saturating_mul(bytes), collation)
    }
}

/// Returns the wire type of an expression.
fn type_code(ty: &ExprType) -> TypeCode {
    match ty.kind {
        TypeKind::TinyText | TypeKind::TinyBlob => TypeCode::TinyBlob,
        TypeKind::Text | TypeKind::Blob => TypeCode::Blob,
        TypeKind::MediumText | TypeKind::MediumBlob => TypeCode::MediumBlob,
        // A document is as long as a text of its length.
        TypeKind::Json => match ExprType::string(ty.length, ty.collation, ty.coercibility).kind {
            TypeKind::Json => TypeCode::LongBlob,
            kind => type_code(&ExprType { kind, ..ty.clone() }),
        },
        TypeKind::LongText | TypeKind::LongBlob => TypeCode::LongBlob,
        TypeKind::TinyInt => TypeCode::Tiny,
        TypeKind::SmallInt => TypeCode::Short,
        TypeKind::MediumInt => TypeCode::Int24,
        TypeKind::Int => TypeCode::Long,
        TypeKind::BigInt => TypeCode::LongLong,
        TypeKind::Decimal => TypeCode::NewDecimal,
        TypeKind::Float => TypeCode::Float,
        TypeKind::Double => TypeCode::Double,
        TypeKind::Bit => TypeCode::Bit,
        TypeKind::Year => TypeCode::Year,
        TypeKind::Date => TypeCode::Date,
        TypeKind::Time => TypeCode::Time,
        TypeKind::DateTime => TypeCode::DateTime,
        TypeKind::Timestamp => TypeCode::Timestamp,
        TypeKind::VarChar | TypeKind::VarBinary => TypeCode::VarString,
        TypeKind::Char | TypeKind::Binary | TypeKind::Enum | TypeKind::Set => TypeCode::String,
        TypeKind::Uuid | TypeKind::Inet6 | TypeKind::Inet4 => TypeCode::String,
    }
}

/// Returns the metadata of a set operation's column, as for a table column that could hold its values.
pub fn joined_meta(name: String, ty: &ExprType) -> ColumnMeta {
    let meta = expression_meta(name, ty);
    match ty.kind {
        _ if ty.null_literal => ColumnMeta { type_code: TypeCode::String, ..meta },
        TypeKind::Year => {
            let flags = meta.flags.with(ColumnFlags::UNSIGNED).with(ColumnFlags::ZEROFILL);
            ColumnMeta { flags, ..meta }
        }
        _ => meta,
    }
}

/// Returns MariaDB's name for the format of a type's text.
fn format_of(ty: &ExprType) -> Option<&'static str> {
    FixedKind::of(ty.kind).map(FixedKind::name).or_else(|| ty.is_json().then_some("json"))
}

/// Returns the metadata of a table's column: a base table, or a temporary table that holds a result.
pub fn field_meta(name: String, ty: &ExprType) -> ColumnMeta {
    if ty.null_literal {
        return joined_meta(name, ty);
    }
    column_type_meta(name, &ty.to_column_type(), ty)
}

fn column_type_meta(name: String, column: &ColumnType, ty: &ExprType) -> ColumnMeta {
    let meta = ColumnMeta::typed(name, &column.meta());
    let flags = if ty.nullable { meta.flags } else { meta.flags.with(ColumnFlags::NOT_NULL) };
    ColumnMeta { flags, format: format_of(ty), ..meta }
}
