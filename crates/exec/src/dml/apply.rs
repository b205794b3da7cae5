//! Row events applied to tables: by the primary key when there is one, else by a full match.
//!
//! # Missing
//! Tables of another shape than the source's: more columns than the table has are refused; fewer get their
//! defaults.

use std::sync::Arc;

use cohort_base::Reader;
use cohort_binlog::event::{DecodeError, RowsEvent, RowsKind, TableMap};
use cohort_catalog::{DefaultValue, IndexKind, Table};
use cohort_locks::MetadataMode;
use cohort_types::{BinlogColumn, ErrorCode, SqlError, SqlResult, Value};

use crate::dml::binlog_statement::bad_event;
use crate::statement::StatementContext;
use crate::table::{
    Columns, CursorOptions, KeySpan, KeySpans, OpenTable, ReadMode, TableCursor, TableWriter,
};
use crate::trx::WaitPolicy;

/// A row image: a value for each column that it holds.
type Image = Vec<Option<Value>>;

/// Applies the rows of one event.
pub(super) fn apply_rows(ctx: &mut StatementContext<'_>, map: &TableMap, event: &RowsEvent) -> SqlResult<()> {
    let (schema, name) = (String::from_utf8_lossy(&map.db), String::from_utf8_lossy(&map.table));
    let missing = || SqlError::no_such_table(&schema, &name);
    let table = ctx.db.catalog().table(&schema, &name).cloned().ok_or_else(missing)?;
    ctx.trx.lock_table(&table, MetadataMode::SharedWrite)?;
    // A DDL statement may have had the name until now.
    let table = ctx.db.catalog().table(&schema, &name).cloned().ok_or_else(missing)?;
    let mut applier =
        Applier { columns: columns(&table, map)?, writer: TableWriter::open(ctx.trx, &table)?, table };
    let rows = event.plain_rows().map_err(bad_event)?;
    let mut from = Reader::new(&rows);
    while !from.is_empty() {
        ctx.check_interrupt()?;
        let left = from.remaining();
        let first = applier.read_image(&event.present, &mut from)?;
        match event.kind {
            RowsKind::Write => applier.insert(ctx, first)?,
            RowsKind::Delete => applier.delete(ctx, &first)?,
            RowsKind::Update => {
                let after = applier.read_image(&event.present_after, &mut from)?;
                applier.update(ctx, &first, after)?;
            }
        }
        if from.remaining() == left {
            // Images of no columns: any number of them would fit into the bytes that are left.
            return Err(bad_event(DecodeError::BadValue("row images without columns")));
        }
    }
    Ok(())
}

struct Applier {
    table: Arc<Table>,
    /// As the table map describes them.
    columns: Vec<BinlogColumn>,
    writer: TableWriter,
}

fn columns(table: &Table, map: &TableMap) -> SqlResult<Vec<BinlogColumn>> {
    let mut columns =
        BinlogColumn::parse_all(&map.column_types, &map.metadata).map_err(|_| conversion_failed(table, 0))?;
    if columns.len() > table.columns.len() {
        return Err(conversion_failed(table, table.columns.len()));
    }
    // Without optional metadata the table here says what is unsigned.
    for (column, described) in columns.iter_mut().zip(&table.columns) {
        column.unsigned = described.ty.unsigned;
    }
    Ok(columns)
}

/// Error 1677.
fn conversion_failed(table: &Table, column: usize) -> SqlError {
    let (name, ty) = match table.columns.get(column) {
        Some(described) => (&*described.name, described.ty.sql_text()),
        None => ("?", String::new()),
    };
    SqlError::new(
        ErrorCode::SlaveConversionFailed,
        format!(
            "Column {column} of table '{}.{}' cannot be converted to column '{name}' of type '{ty}'",
            table.name.schema, table.name.table
        ),
    )
}

fn bit(bitmap: &[u8], n: usize) -> bool {
    bitmap.get(n / 8).is_some_and(|byte| byte >> (n % 8) & 1 != 0)
}

impl Applier {
    fn read_image(&self, present: &[u8], from: &mut Reader<'_>) -> SqlResult<Image> {
        let here: Vec<usize> = (0..self.columns.len()).filter(|&n| bit(present, n)).collect();
        let nulls = from.bytes(here.len().div_ceil(8)).map_err(|e| bad_event(e.into()))?;
        let mut image = vec![None; self.table.columns.len()];
        for (n, &column) in here.iter().enumerate() {
            let ty = &self.table.columns[column].ty;
            image[column] = Some(if bit(nulls, n) {
                Value::Null
            } else {
                self.columns[column].read(ty, from).map_err(|_| conversion_failed(&self.table, column))?
            });
        }
        Ok(image)
    }

    fn insert(&mut self, ctx: &mut StatementContext<'_>, image: Image) -> SqlResult<()> {
        let row: Vec<Value> = image
            .into_iter()
            .zip(&self.table.columns)
            .map(|(value, column)| match (value, &column.default) {
                (Some(value), _) => value,
                (None, DefaultValue::Value(value)) => value.clone(),
                (None, _) if column.nullable => Value::Null,
                (None, _) => column.ty.implicit_default(),
            })
            .collect();
        match self.writer.insert(ctx.trx, &row)? {
            Ok(()) => Ok(()),
            Err(duplicate) => {
                Err(self.open().duplicate_error(duplicate.index, &row, &ctx.session.env.time_zone))
            }
        }
    }

    fn delete(&mut self, ctx: &mut StatementContext<'_>, before: &Image) -> SqlResult<()> {
        let (key, row) = self.find(ctx, before)?;
        self.writer.delete(ctx.trx, &key, &row)
    }

    fn update(&mut self, ctx: &mut StatementContext<'_>, before: &Image, after: Image) -> SqlResult<()> {
        let (key, row) = self.find(ctx, before)?;
        let new: Vec<Value> =
            after.into_iter().zip(&row).map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect();
        if new == row {
            return Ok(());
        }
        match self.writer.update(ctx.trx, &key, &row, &new)? {
            Ok(()) => Ok(()),
            Err(duplicate) => {
                Err(self.open().duplicate_error(duplicate.index, &new, &ctx.session.env.time_zone))
            }
        }
    }

    fn open(&self) -> &OpenTable {
        self.writer.table()
    }

    /// The row of a before image, locked: its clustered key and values.
    fn find(&mut self, ctx: &mut StatementContext<'_>, before: &Image) -> SqlResult<(Vec<u8>, Vec<Value>)> {
        let spans = self.spans(before)?;
        let options = CursorOptions {
            mode: ReadMode::LockExclusive(WaitPolicy::Wait),
            columns: Columns::All,
            rows_expected: Some(1),
        };
        let mut cursor = TableCursor::open(ctx.trx, &self.table, spans, options)?;
        let by_key = self.has_primary_key(before);
        let mut same = |row: &[Value]| {
            let equal = |(value, old): (&Value, &Option<Value>)| old.as_ref().is_none_or(|old| old == value);
            Ok(by_key || row.iter().zip(before).all(equal))
        };
        let mut row = Vec::new();
        if cursor.next(ctx.trx, &mut same, &mut row)? {
            return Ok((cursor.key().to_vec(), row));
        }
        let name = &self.table.name.table;
        Err(SqlError::new(ErrorCode::KeyNotFound, format!("Can't find record in '{name}'")))
    }

    fn has_primary_key(&self, before: &Image) -> bool {
        let primary = &self.open().indexes[0];
        primary.kind == IndexKind::Primary && primary.parts.iter().all(|(c, _)| before[*c].is_some())
    }

    /// Where to look: the primary key, else the first index whose columns the image holds, else everywhere.
    fn spans(&self, before: &Image) -> SqlResult<KeySpans> {
        let open = self.open();
        let usable = |n: &usize| {
            let parts = &open.indexes[*n].parts;
            !parts.is_empty() && parts.iter().all(|(column, _)| before[*column].is_some())
        };
        let Some(index) = (0..open.indexes.len()).find(usable) else {
            return Ok(KeySpans { spans: vec![KeySpan::Range(Default::default())], ..KeySpans::default() });
        };
        let row: Vec<Value> = before.iter().map(|value| value.clone().unwrap_or(Value::Null)).collect();
        let mut key = Vec::new();
        open.indexes[index].encode_columns(&row, &mut key).map_err(|e| open.key_error(index, e))?;
        let is_point = match open.indexes[index].kind {
            IndexKind::Primary => true,
            IndexKind::Unique => !open.indexes[index].has_null(&row),
            IndexKind::Secondary | IndexKind::HiddenRowId => false,
        };
        let span = if is_point {
            KeySpan::Point(key)
        } else {
            let end = cohort_types::prefix_end(&key);
            KeySpan::Range(cohort_engine::KeyRange { start: Some(key), end })
        };
        Ok(KeySpans { index, reverse: false, spans: vec![span] })
    }
}
