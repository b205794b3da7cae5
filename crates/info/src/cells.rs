//! Values of cells, and the tables that a session may see.

use cohort_catalog::{Table, TableName};
use cohort_session::access::{Access, sees_table};
use cohort_session::{StatementContext, WantedNames};
use cohort_types::{Charset, Collation, Privilege, Privileges, Str, Value};
use std::sync::Arc;

pub(super) fn text(text: impl Into<String>) -> Value {
    Value::text(text)
}

/// Returns a text in the character set of the client that has sent it.
pub(super) fn as_sent(text: &str, client: Collation) -> Value {
    let mut bytes = Vec::with_capacity(text.len());
    client.charset().encode(text.as_bytes(), &mut bytes);
    Value::Str(Str { bytes, collation: Collation::BINARY })
}

/// Returns the text of a definition. A client that asks for results without conversion, as dumps do, gets it
/// in the character set of the client that has sent it.
pub(super) fn definition(ctx: &StatementContext<'_>, text: String, client: Collation) -> Value {
    match ctx.session.results_collation() {
        Some(results) if results.charset() != Charset::Binary => Value::text(text),
        _ => as_sent(&text, client),
    }
}

pub(super) fn number(n: impl TryInto<u64>) -> Value {
    Value::UInt(n.try_into().unwrap_or(u64::MAX))
}

/// Returns a signed number, for signed columns.
pub(super) fn integer(n: impl TryInto<i64>) -> Value {
    Value::Int(n.try_into().unwrap_or(i64::MAX))
}

pub(super) fn visible_tables(ctx: &StatementContext<'_>, wanted: &WantedNames) -> Vec<Arc<Table>> {
    if let Some(own) = wanted.temporary(ctx.session) {
        return vec![own];
    }
    let (catalog, access) = (ctx.db.catalog(), ctx.session.access());
    let schemas = catalog.schemas.values().filter(|schema| wanted.has_schema(&schema.name));
    let all = schemas.flat_map(|schema| schema.tables.values());
    let named = all.filter(|table| wanted.has_table(&table.name.table));
    named.filter(|table| sees_table(&access, &table.name.schema, &table.name.table)).cloned().collect()
}

pub(super) fn does_more_than_read(access: &Access, table: &TableName) -> bool {
    let columns = access.granted_on_table(&table.schema, &table.table);
    let of_columns = columns.map_or(Privileges::NONE, |grant| grant.on_any_column());
    let held = access.on_table(&table.schema, &table.table).within(Privileges::OF_TABLE).and(of_columns);
    !held.without(Privilege::Select.into()).is_empty()
}
