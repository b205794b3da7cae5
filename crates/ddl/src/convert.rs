//! CONVERT TO CHARACTER SET: converts the column definitions.

use cohort_catalog::DefaultValue;
use cohort_session::StatementContext;
use cohort_sql::print::quoted_name;
use cohort_types::{Charset, Collation, ColumnType, SqlResult, TypeKind, Value};

use super::column::{ColumnHome, store_default};
use super::draft::{DraftColumn, TableDraft};

/// Gives every text column the collation. A TEXT type grows so that it can hold its current contents. With
/// the character set `binary`, columns get the binary types of the same length.
pub(super) fn convert(ctx: &StatementContext<'_>, draft: &mut TableDraft, to: Collation) -> SqlResult<()> {
    let TableDraft { columns, name, .. } = draft;
    let home = ColumnHome { schema: &name.schema, table: &name.table, collation: to };
    for column in columns {
        match to.charset() == Charset::Binary && column.column.ty.kind.is_text() {
            true => to_binary(ctx, column, home)?,
            false => {
                to_charset(column, to);
                column.column.ty.check(&column.column.name)?;
            }
        }
    }
    Ok(())
}

fn to_charset(column: &mut DraftColumn, to: Collation) {
    let ty = &mut column.column.ty;
    match ty.kind {
        TypeKind::Enum | TypeKind::Set if ty.collation == Collation::BINARY => {}
        TypeKind::Enum | TypeKind::Set => ty.collation = to,
        TypeKind::Json => {}
        kind if kind.is_text() => {
            let grows = to.charset().mbmaxlen() > ty.collation.charset().mbmaxlen();
            *ty = match kind {
                TypeKind::TinyText | TypeKind::Text | TypeKind::MediumText if grows => {
                    ColumnType::text_of_length(ty.length, to)
                }
                _ => ColumnType { collation: to, ..ty.clone() },
            };
        }
        _ => {}
    }
    if let DefaultValue::Value(Value::Str(text)) = &mut column.column.default
        && column.column.ty.kind.is_text()
    {
        text.collation = to;
    }
}

fn to_binary(ctx: &StatementContext<'_>, column: &mut DraftColumn, home: ColumnHome<'_>) -> SqlResult<()> {
    use TypeKind as K;
    let column = &mut column.column;
    let kind = match column.ty.kind {
        K::Char => K::Binary,
        K::VarChar => K::VarBinary,
        K::TinyText => K::TinyBlob,
        K::Text => K::Blob,
        K::MediumText => K::MediumBlob,
        // The implicit CHECK of JSON is kept.
        K::Json => {
            column.check.get_or_insert_with(|| format!("json_valid({})", quoted_name(&column.name)));
            K::LongBlob
        }
        _ => K::LongBlob,
    };
    column.ty = ColumnType::string(kind, column.ty.length, Collation::BINARY);
    if let DefaultValue::Value(value @ Value::Str(_)) = &column.default {
        let (stored, _) = store_default(ctx, &column.name, value.clone(), &column.ty, (home, 1))?;
        column.default = DefaultValue::Value(stored);
    }
    Ok(())
}
