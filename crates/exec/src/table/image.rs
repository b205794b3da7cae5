//! A table's rows as the binlog carries them.

use std::sync::Arc;

use cohort_binlog::RowImage;
use cohort_binlog::event::{RowsKind, TableMap};
use cohort_catalog::Table;
use cohort_config::VarId;
use cohort_types::{BinlogColumn, ErrorCode, ImageError, SqlError, SqlResult, Value, write_value};

use super::map_metadata::{MapMetadata, optional_metadata};
use super::presence::{Presence, has_bit};
use crate::table::OpenTable;
use crate::trx::{LoggedRow, SessionTrx, image};

/// The table is described with exact BIT lengths: the only flag MariaDB sets.
const TABLE_MAP_FLAGS: u16 = 1;

/// The table map event of a version of a table.
pub(crate) fn table_map(table: &Table, map_id: u64, metadata: MapMetadata) -> Arc<TableMap> {
    let mut map = TableMap {
        optional: optional_metadata(table, metadata),
        table_id: map_id,
        flags: TABLE_MAP_FLAGS,
        db: table.name.schema.as_bytes().to_vec(),
        table: table.name.table.as_bytes().to_vec(),
        null_bits: vec![0; table.columns.len().div_ceil(8)],
        ..TableMap::default()
    };
    for (n, column) in table.columns.iter().enumerate() {
        let described = BinlogColumn::of(&column.ty);
        map.column_types.push(described.code);
        described.write_metadata(&mut map.metadata);
        map.null_bits[n / 8] |= u8::from(column.nullable) << (n % 8);
    }
    Arc::new(map)
}

/// Bytes that the image of a row takes, or a little more.
fn image_room(row: &[Value]) -> usize {
    let bytes = |value: &Value| match value {
        Value::Str(text) => text.bytes.len() + 4,
        Value::Decimal(_) => 32,
        _ => 8,
    };
    row.len().div_ceil(8) + row.iter().map(bytes).sum::<usize>()
}

/// The rows of one change: of an update both, else the one there is.
#[derive(Clone, Copy)]
pub(crate) enum Change<'r> {
    Insert(&'r [Value]),
    Update { before: &'r [Value], after: &'r [Value] },
    Delete(&'r [Value]),
}

impl OpenTable {
    /// Adds the change to the transaction's binlog events, if it logs. `buffer` is scratch memory; without
    /// `presence` the images are full.
    pub(crate) fn log(
        &self,
        trx: &mut SessionTrx,
        change: Change<'_>,
        buffer: &mut Vec<u8>,
        presence: Option<&mut Presence>,
    ) -> SqlResult<()> {
        if self.is_temporary() || !trx.logs_rows(&self.table.name.schema) {
            return Ok(());
        }
        buffer.clear();
        if let Some(presence) = presence {
            return self.log_narrow(trx, change, buffer, presence);
        }
        let kind = match change {
            Change::Insert(row) => {
                self.append_image(row, buffer)?;
                RowsKind::Write
            }
            Change::Delete(row) => {
                self.append_image(row, buffer)?;
                RowsKind::Delete
            }
            Change::Update { before, after } => {
                buffer.reserve(image_room(before) + image_room(after));
                self.append_image(before, buffer)?;
                self.append_image(after, buffer)?;
                RowsKind::Update
            }
        };
        let map = self.map(trx);
        trx.log_row(LoggedRow {
            map,
            image: image(kind, trx.settings.binlog.rows_flags, &self.all_columns, buffer),
        })
    }

    /// The table map as `binlog_row_metadata` wants it now.
    fn map(&self, trx: &SessionTrx) -> &Arc<TableMap> {
        match MapMetadata::of(trx.db.globals.uint(VarId::BinlogRowMetadata)) {
            MapMetadata::NoLog => &self.map,
            level => {
                let slot = &self.rich_maps[usize::from(level == MapMetadata::Full)];
                slot.get_or_init(|| table_map(&self.table, self.map.table_id, level))
            }
        }
    }

    fn log_narrow(
        &self,
        trx: &mut SessionTrx,
        change: Change<'_>,
        buffer: &mut Vec<u8>,
        presence: &mut Presence,
    ) -> SqlResult<()> {
        let (kind, present, present_after) = match change {
            Change::Insert(row) => {
                self.append_some(row, &presence.after, buffer)?;
                (RowsKind::Write, &presence.after, &[][..])
            }
            Change::Delete(row) => {
                self.append_some(row, &presence.before, buffer)?;
                (RowsKind::Delete, &presence.before, &[][..])
            }
            Change::Update { before, after } => {
                presence.cover(before, after);
                self.append_some(before, &presence.before, buffer)?;
                self.append_some(after, &presence.after, buffer)?;
                (RowsKind::Update, &presence.before, &presence.after[..])
            }
        };
        let image =
            RowImage { kind, flags: trx.settings.binlog.rows_flags, present, present_after, image: buffer };
        trx.log_row(LoggedRow { map: self.map(trx), image })
    }

    /// An image of the columns of a bitmap.
    fn append_some(&self, row: &[Value], present: &[u8], out: &mut Vec<u8>) -> SqlResult<()> {
        let count: u32 = present.iter().map(|byte| byte.count_ones()).sum();
        let nulls = out.len();
        out.resize(nulls + (count as usize).div_ceil(8), 0xff);
        let here = row.iter().zip(self.columns()).enumerate().filter(|(n, _)| has_bit(present, *n));
        for (bit, (n, (value, column))) in here.enumerate() {
            if !value.is_null() {
                out[nulls + bit / 8] &= !(1 << (bit % 8));
                write_value(&column.ty, value, out).map_err(|e| self.image_error(n, e))?;
            }
        }
        Ok(())
    }

    /// A full image: null bitmap, in which unused bits are set as MariaDB does, and the values that are not
    /// NULL.
    pub(crate) fn append_image(&self, row: &[Value], out: &mut Vec<u8>) -> SqlResult<()> {
        out.reserve(image_room(row));
        let nulls = out.len();
        out.resize(nulls + row.len().div_ceil(8), 0xff);
        for (n, (value, column)) in row.iter().zip(self.columns()).enumerate() {
            if !value.is_null() {
                out[nulls + n / 8] &= !(1 << (n % 8));
                write_value(&column.ty, value, out).map_err(|e| self.image_error(n, e))?;
            }
        }
        Ok(())
    }

    pub(crate) fn image_error(&self, column: usize, error: ImageError) -> SqlError {
        let (name, column) = (&self.table.name, &self.table.columns[column].name);
        SqlError::new(
            ErrorCode::UnknownError,
            format!("row image of {}.{}, column {column}: {error:?}", name.schema, name.table),
        )
    }
}
