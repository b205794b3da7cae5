//! Checks the rows of a table against foreign keys that ALTER TABLE adds.
//!
//! The table is locked exclusively and its parents are locked against writes, so one read view shows all
//! rows. The rows are read as they are before the statement; a column that the statement adds has its default
//! in all of them.

use std::sync::Arc;

use cohort_catalog::{ForeignKey, Table};
use cohort_engine::{Batch, KeyRange, ReadAt, ReadView, ScanRequest};
use cohort_session::StatementContext;
use cohort_table::{OpenTable, counterpart, fit, named_constraint};
use cohort_trx::engine_error;
use cohort_types::{Columns, SqlError, SqlResult, Value, prefix_end, successor};

use super::column::{ColumnHome, value_now};
use super::draft::Described;
use super::foreign::are_checked;

const BATCH_ENTRIES: usize = 1024;

/// The lookup of parent rows for a new key.
struct Lookup {
    /// The key's position among the table's foreign keys.
    key: usize,
    /// For each key column: the column of the old table, or the constant value of all rows.
    columns: Vec<Result<usize, Value>>,
    parent: Arc<OpenTable>,
    index: usize,
    /// The parent's columns.
    theirs: Vec<usize>,
}

/// Returns error 1452 if a row has no parent for a new key.
pub(super) fn check(ctx: &mut StatementContext<'_>, before: &Arc<Table>, after: &Described) -> SqlResult<()> {
    if !are_checked(ctx) || after.new_foreign_keys.is_empty() {
        return Ok(());
    }
    let mut lookups = Vec::new();
    for (n, key) in after.table.foreign_keys.iter().enumerate() {
        if after.new_foreign_keys.contains(&key.name)
            && let Some(lookup) = lookup(ctx, before, after, (n, key))?
        {
            lookups.push(lookup);
        }
    }
    if lookups.is_empty() {
        return Ok(());
    }
    let open = ctx.trx.open_table(before)?;
    let view = ctx.trx.read_view()?;
    let (mut range, mut batch, mut row) = (KeyRange::default(), Batch::default(), Vec::new());
    loop {
        ctx.check_interrupt()?;
        batch.clear();
        let (at, clustered) = (ReadAt::View(&view), open.rows.id);
        let engine = ctx.trx.engine(open.engine);
        let more = engine
            .scan(&ScanRequest::forward(at, clustered, &range, BATCH_ENTRIES), &mut batch)
            .map_err(engine_error)?;
        for (_, value) in batch.iter() {
            open.decode(value, &Columns::All, &mut row)?;
            for lookup in &lookups {
                if !lookup.passes(ctx, &row, &view)? {
                    let constraint = named_constraint(&after.table, &after.table.foreign_keys[lookup.key]);
                    return Err(SqlError::no_parent_row(&constraint));
                }
            }
        }
        if !more || batch.is_empty() {
            return Ok(());
        }
        range.start = Some(successor(batch.get(batch.len() - 1).0));
    }
}

/// Returns the lookup, or `None` if all rows have NULL in the key.
fn lookup(
    ctx: &mut StatementContext<'_>,
    before: &Arc<Table>,
    after: &Described,
    (n, key): (usize, &ForeignKey),
) -> SqlResult<Option<Lookup>> {
    let table = &after.table;
    let mut columns = Vec::new();
    for column in &key.columns {
        let described = &table.columns[*column];
        columns.push(match after.column_origins[*column] {
            Some(origin) if before.columns[origin].ty == described.ty => Ok(origin),
            Some(_) => {
                return Err(SqlError::not_supported("a new type and a foreign key of a column at once"));
            }
            None if described.auto_increment || described.generated.is_some() => {
                return Err(SqlError::not_supported("a computed column and its foreign key at once"));
            }
            None => {
                let name = &table.name;
                let home =
                    ColumnHome { schema: &name.schema, table: &name.table, collation: table.collation };
                Err(value_now(ctx, described, home)?)
            }
        });
    }
    if columns.iter().any(|column| column.as_ref().is_err_and(Value::is_null)) {
        return Ok(None);
    }
    let is_self = key.parent == table.name;
    let catalog = ctx.db.catalog();
    let parent = match is_self {
        true => Some(before),
        false => catalog.table(&key.parent.schema, &key.parent.table),
    };
    // The parent existed when the key was checked, and its metadata lock has been held since.
    let Some(parent) = parent else { return Ok(None) };
    // In a self-reference, rows are found by the indexes that the table already has.
    let fitted = match is_self {
        false => fit(table, key, parent).ok(),
        true => {
            let named = key.parent_columns.iter().map(|name| parent.column(name));
            let theirs: Option<Vec<usize>> = named.collect();
            theirs.and_then(|theirs| {
                let index = cohort_table::leading_index(parent, &theirs)?;
                Some((theirs, index))
            })
        }
    };
    let Some((theirs, index)) = fitted else {
        return Err(SqlError::not_supported("a key and a foreign key that refers to it at once"));
    };
    Ok(Some(Lookup { key: n, columns, parent: ctx.trx.open_table(parent)?, index, theirs }))
}

impl Lookup {
    fn passes(&self, ctx: &mut StatementContext<'_>, row: &[Value], view: &ReadView) -> SqlResult<bool> {
        let mut key = Vec::new();
        for (place, (column, theirs)) in self.columns.iter().zip(&self.theirs).enumerate() {
            let value = match column {
                Ok(column) => &row[*column],
                Err(value) => value,
            };
            if value.is_null() {
                return Ok(true);
            }
            let part = self.parent.key_part(self.index, place, *theirs);
            let Some(value) = counterpart(value, &part.ty) else { return Ok(false) };
            part.encode(&value, &mut key).map_err(|e| self.parent.key_error(self.index, e))?;
        }
        let range = KeyRange { end: prefix_end(&key), start: Some(key) };
        let mut found = Batch::default();
        let engine = ctx.trx.engine(self.parent.engine);
        engine
            .scan(
                &ScanRequest::forward(ReadAt::View(view), self.parent.indexes[self.index].id, &range, 1),
                &mut found,
            )
            .map_err(engine_error)?;
        Ok(!found.is_empty())
    }
}
