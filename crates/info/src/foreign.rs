//! Foreign keys in information_schema.

use cohort_catalog::{Catalog, ForeignAction, ForeignKey, Table};
use cohort_session::access::sees_table;
use cohort_session::{StatementContext, WantedNames};
use cohort_table::fit;
use cohort_types::{SqlResult, Value};

use super::cells::{does_more_than_read, integer, number, text, visible_tables};
use super::schema_table::SchemaTable;

type Rows = SqlResult<Vec<Vec<Value>>>;

/// Returns the rows of TABLE_CONSTRAINTS.
pub(super) fn constraints(out: &SchemaTable, table: &Table) -> Vec<Vec<Value>> {
    let row = |key: &ForeignKey| {
        out.row([
            ("CONSTRAINT_CATALOG", text("def")),
            ("CONSTRAINT_SCHEMA", text(&table.name.schema)),
            ("CONSTRAINT_NAME", text(&key.name)),
            ("TABLE_SCHEMA", text(&table.name.schema)),
            ("TABLE_NAME", text(&table.name.table)),
            ("CONSTRAINT_TYPE", text("FOREIGN KEY")),
        ])
    };
    table.foreign_keys.iter().map(row).collect()
}

/// Returns the rows of KEY_COLUMN_USAGE.
pub(super) fn key_columns(out: &SchemaTable, table: &Table) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for key in &table.foreign_keys {
        for (n, (column, parent)) in key.columns.iter().zip(&key.parent_columns).enumerate() {
            rows.push(out.row([
                ("CONSTRAINT_CATALOG", text("def")),
                ("CONSTRAINT_SCHEMA", text(&table.name.schema)),
                ("CONSTRAINT_NAME", text(&key.name)),
                ("TABLE_CATALOG", text("def")),
                ("TABLE_SCHEMA", text(&table.name.schema)),
                ("TABLE_NAME", text(&table.name.table)),
                ("COLUMN_NAME", text(&table.columns[*column].name)),
                ("ORDINAL_POSITION", integer(n as i64 + 1)),
                ("POSITION_IN_UNIQUE_CONSTRAINT", integer(n as i64 + 1)),
                ("REFERENCED_TABLE_SCHEMA", text(&key.parent.schema)),
                ("REFERENCED_TABLE_NAME", text(&key.parent.table)),
                ("REFERENCED_COLUMN_NAME", text(parent)),
            ]));
        }
    }
    rows
}

/// Returns the name of the parent's index that a foreign key uses.
fn parent_index(catalog: &Catalog, table: &Table, key: &ForeignKey) -> Option<String> {
    let parent = catalog.table(&key.parent.schema, &key.parent.table)?;
    let (_, index) = fit(table, key, parent).ok()?;
    Some(parent.indexes[index].name.clone())
}

pub(super) fn referential_constraints(
    out: &SchemaTable,
    wanted: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> Rows {
    let (catalog, access) = (ctx.db.catalog(), ctx.session.access());
    let mut rows = Vec::new();
    for table in visible_tables(ctx, wanted) {
        ctx.check_interrupt()?;
        // As in TABLE_CONSTRAINTS, an account with only the SELECT privilege on a table does not see its
        // constraints.
        if !does_more_than_read(&access, &table.name) {
            continue;
        }
        for key in &table.foreign_keys {
            let sees_parent = sees_table(&access, &key.parent.schema, &key.parent.table);
            let index = parent_index(&catalog, &table, key);
            rows.push(out.row([
                ("CONSTRAINT_CATALOG", text("def")),
                ("CONSTRAINT_SCHEMA", text(&table.name.schema)),
                ("CONSTRAINT_NAME", text(&key.name)),
                ("UNIQUE_CONSTRAINT_CATALOG", text("def")),
                ("UNIQUE_CONSTRAINT_SCHEMA", text(&key.parent.schema)),
                ("UNIQUE_CONSTRAINT_NAME", index.map_or(Value::Null, text)),
                ("MATCH_OPTION", text("NONE")),
                ("UPDATE_RULE", text(key.on_update.text())),
                ("DELETE_RULE", text(key.on_delete.text())),
                ("TABLE_NAME", text(&table.name.table)),
                ("REFERENCED_TABLE_NAME", if sees_parent { text(&key.parent.table) } else { Value::Null }),
            ]));
        }
    }
    Ok(rows)
}

/// Calls `found` for every foreign key with its table, ordered by InnoDB's ids.
fn each_key(ctx: &StatementContext<'_>, mut found: impl FnMut(String, &Table, &ForeignKey)) {
    let catalog = ctx.db.catalog();
    let tables = || catalog.schemas.values().flat_map(|schema| schema.tables.values());
    let keys = tables().flat_map(|table| table.foreign_keys.iter().map(move |key| (table, key)));
    let id = |table: &Table, key: &ForeignKey| format!("{}/{}", table.name.schema, key.name);
    let mut keys: Vec<_> = keys.map(|(table, key)| (id(table, key), table, key)).collect();
    keys.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    keys.into_iter().for_each(|(id, table, key)| found(id, table, key));
}

pub(super) fn innodb_sys_foreign(out: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let mut rows = Vec::new();
    let bits = |action: ForeignAction, cascade: u64| match action {
        ForeignAction::Restrict => 0,
        ForeignAction::Cascade => cascade,
        ForeignAction::SetNull => cascade << 1,
        ForeignAction::NoAction if cascade == 1 => 16,
        ForeignAction::NoAction => 32,
    };
    each_key(ctx, |id, table, key| {
        rows.push(out.row([
            ("ID", text(id)),
            ("FOR_NAME", text(format!("{}/{}", table.name.schema, table.name.table))),
            ("REF_NAME", text(format!("{}/{}", key.parent.schema, key.parent.table))),
            ("N_COLS", number(key.columns.len() as u64)),
            ("TYPE", number(bits(key.on_delete, 1) | bits(key.on_update, 4))),
        ]));
    });
    Ok(rows)
}

pub(super) fn innodb_sys_foreign_cols(
    out: &SchemaTable,
    _: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> Rows {
    let mut rows = Vec::new();
    each_key(ctx, |id, table, key| {
        for (n, (column, parent)) in key.columns.iter().zip(&key.parent_columns).enumerate() {
            rows.push(out.row([
                ("ID", text(&id)),
                ("FOR_COL_NAME", text(&table.columns[*column].name)),
                ("REF_COL_NAME", text(parent)),
                ("POS", number(n as u64)),
            ]));
        }
    });
    Ok(rows)
}
