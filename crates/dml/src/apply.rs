//! Applies row events to tables.
//!
//! # Finding a row
//! A row is found by the primary key, else by a unique key. In a table with neither, many rows may have to be
//! examined: one pass over the rows with matching keys in another index, or over the table, finds all rows of
//! the event (`apply_scan`). Rows with NULL in their unique key are located by one pass, too
//! (`apply_locate`).
//!
//! # Tables that differ
//! Columns correspond by position. Extra columns of the source are skipped; extra columns of the local table
//! get their defaults. A column of another type is converted if `slave_type_conversions` allows it, else
//! error 1677. Generated columns that an image leaves out (`binlog_row_image=MINIMAL`) are computed.

use std::sync::Arc;

use cohort_base::Reader;
use cohort_binlog::event::{DecodeError, RowsEvent, RowsKind, TableMap};
use cohort_catalog::Table;
use cohort_locks::MetadataMode;
use cohort_row::{KeySpan, TableWriter};
use cohort_session::{Reached, RootTable, Roots, StatementContext};
use cohort_sql::ast::TriggerEvent;
use cohort_types::{SqlError, SqlResult, Value};

use crate::apply_locate::Located;
use crate::apply_scan::apply_by_scan;
use crate::row_applier::{ApplyRules, RowApplier, bit, columns, steps, without_columns};
use crate::unpack::{bad_event, reserve_to_unpack};

/// Attempts to lock what the triggers of a table use, which may be defined otherwise meanwhile.
const PROGRAM_ATTEMPTS: usize = 20;

/// Applies the rows of one event.
pub fn apply_rows(
    ctx: &mut StatementContext<'_>,
    map: &TableMap,
    event: &RowsEvent,
    rules: &ApplyRules,
) -> SqlResult<()> {
    let (schema, name) = (String::from_utf8_lossy(&map.db), String::from_utf8_lossy(&map.table));
    let missing = || SqlError::no_such_table(&schema, &name);
    let table = ctx.db.catalog().table(&schema, &name).cloned().ok_or_else(missing)?;
    ctx.trx.lock_table(&table, MetadataMode::SharedWrite)?;
    // A DDL statement may have held the metadata lock until now.
    let table = ctx.db.catalog().table(&schema, &name).cloned().ok_or_else(missing)?;
    let columns = columns(&table, map, rules.conversions)?;
    if event.width as usize != columns.len() {
        return Err(bad_event(DecodeError::BadValue("a row event and its table map differ in width")));
    }
    let steps = steps(ctx, &table, (map, event), rules.triggers)?;
    if steps.has_hooks() && !lock_programs(ctx, &table, event.kind)? {
        return Err(cohort_table::definition_changed());
    }
    let writer = TableWriter::open(ctx.trx, &table)?;
    let mut applier = RowApplier { columns, writer, table, rules: *rules, steps };
    let _room = reserve_to_unpack(&ctx.db.globals, ctx.process.memory(), event.inflated_bytes())?;
    let rows = event.plain_rows().map_err(bad_event)?;
    let mut from = Reader::new(&rows);
    let by = applier.index_of(|column| column < applier.columns.len() && bit(&event.present, column));
    if event.kind != RowsKind::Write && applier.needs_scan(by) {
        return apply_by_scan(&mut applier, ctx, event, by, &mut from);
    }
    match event.kind {
        RowsKind::Write => insert_all(&mut applier, ctx, event, from),
        RowsKind::Update | RowsKind::Delete => {
            change_all(&mut applier, ctx, event, by.expect("without a key there is a scan"), from)
        }
    }
}

/// Locks all that the triggers of a table may use.
fn lock_programs(ctx: &mut StatementContext<'_>, table: &Arc<Table>, kind: RowsKind) -> SqlResult<bool> {
    let event = match kind {
        RowsKind::Write => TriggerEvent::Insert,
        RowsKind::Update => TriggerEvent::Update,
        RowsKind::Delete => TriggerEvent::Delete,
    };
    for _ in 0..PROGRAM_ATTEMPTS {
        let root = RootTable { table: Arc::clone(table), is_written: true, events: vec![event] };
        let roots = Roots { tables: vec![root], ..Roots::default() };
        let catalog = ctx.db.catalog();
        match Reached::by(&catalog, ctx.session, roots) {
            Some(reached) if !reached.lock(ctx)? => {}
            _ => return Ok(true),
        }
    }
    Ok(false)
}

fn insert_all(
    applier: &mut RowApplier,
    ctx: &mut StatementContext<'_>,
    event: &RowsEvent,
    mut from: Reader<'_>,
) -> SqlResult<()> {
    while !from.is_empty() {
        ctx.check_interrupt()?;
        let left = from.remaining();
        let image = applier.read_image(&event.present, &mut from)?;
        if applier.table.is_sequence() {
            let row: Vec<Value> = image.into_iter().map(|value| value.unwrap_or(Value::Null)).collect();
            applier.writer.replace(ctx.trx, &cohort_session::sequence::ROW_KEY, &row)?;
            // A statement that needs a number will wait for the row lock, and then read the row.
            ctx.db.sequences.forget(applier.table.rows().id);
        } else {
            applier.insert(ctx, image)?;
        }
        if from.remaining() == left {
            return Err(without_columns());
        }
    }
    Ok(())
}

/// Updates or deletes the rows of an event in its order. `by` is the index used to find them.
fn change_all(
    applier: &mut RowApplier,
    ctx: &mut StatementContext<'_>,
    event: &RowsEvent,
    by: usize,
    mut from: Reader<'_>,
) -> SqlResult<()> {
    let mut located: Option<Located> = None;
    while !from.is_empty() {
        ctx.check_interrupt()?;
        let start = from.clone();
        let before = applier.read_image(&event.present, &mut from)?;
        let found = match applier.span(by, &before)? {
            KeySpan::Point(key) => applier.find(ctx, by, key, &before)?,
            KeySpan::Range(_) => {
                let located = located.get_or_insert_with(|| Located::new(ctx, by));
                located.find(applier, ctx, event, &before, &start)?
            }
        };
        let after = match event.kind {
            RowsKind::Update => Some(applier.read_image(&event.present_after, &mut from)?),
            RowsKind::Write | RowsKind::Delete => None,
        };
        if from.remaining() == start.remaining() {
            return Err(without_columns());
        }
        let Some((key, row)) = found else { continue };
        match after {
            Some(after) => applier.update(ctx, &key, &row, after)?,
            None => applier.delete(ctx, &key, &row)?,
        }
        if let Some(located) = &mut located {
            located.changed();
        }
    }
    Ok(())
}
