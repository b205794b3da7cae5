//! Row images of the binary log.

use std::sync::Arc;

use cohort_binlog::event::{RowsKind, TableMap};
use cohort_types::{ErrorCode, ImageError, SqlError, SqlResult, Value, write_value};

use crate::map_metadata::{MapMetadata, table_map};
use crate::open_table::OpenTable;
use crate::presence::{Presence, has_bit};

/// Returns an upper estimate of the bytes of a row image.
fn image_room(row: &[Value]) -> usize {
    let bytes = |value: &Value| match value {
        Value::Str(text) => text.bytes.len() + 4,
        Value::Decimal(_) => 32,
        _ => 8,
    };
    row.len().div_ceil(8) + row.iter().map(bytes).sum::<usize>()
}

/// A row change, with the rows of its image.
#[derive(Clone, Copy)]
pub enum Change<'r> {
    Insert(&'r [Value]),
    Update { before: &'r [Value], after: &'r [Value] },
    Delete(&'r [Value]),
}

impl OpenTable {
    /// Appends the images of a change: full ones, or those of the columns in `presence`.
    pub fn append_change(
        &self,
        change: Change<'_>,
        presence: Option<&mut Presence>,
        out: &mut Vec<u8>,
    ) -> SqlResult<RowsKind> {
        if let Some(presence) = presence {
            return self.append_narrow(change, presence, out);
        }
        match change {
            Change::Insert(row) => {
                self.append_image(row, out)?;
                Ok(RowsKind::Write)
            }
            Change::Delete(row) => {
                self.append_image(row, out)?;
                Ok(RowsKind::Delete)
            }
            Change::Update { before, after } => {
                out.reserve(image_room(before) + image_room(after));
                self.append_image(before, out)?;
                self.append_image(after, out)?;
                Ok(RowsKind::Update)
            }
        }
    }

    fn append_narrow(
        &self,
        change: Change<'_>,
        presence: &mut Presence,
        out: &mut Vec<u8>,
    ) -> SqlResult<RowsKind> {
        match change {
            Change::Insert(row) => {
                self.append_some(row, &presence.after, out)?;
                Ok(RowsKind::Write)
            }
            Change::Delete(row) => {
                self.append_some(row, &presence.before, out)?;
                Ok(RowsKind::Delete)
            }
            Change::Update { before, after } => {
                presence.cover(before, after);
                self.append_some(before, &presence.before, out)?;
                self.append_some(after, &presence.after, out)?;
                Ok(RowsKind::Update)
            }
        }
    }

    /// Returns the table map with the requested metadata.
    pub fn map(&self, metadata: MapMetadata) -> &Arc<TableMap> {
        match metadata {
            MapMetadata::NoLog => &self.map,
            level => {
                let slot = &self.rich_maps[usize::from(level == MapMetadata::Full)];
                slot.get_or_init(|| table_map(&self.table, self.map.table_id, level))
            }
        }
    }

    /// Appends an image of the columns in a bitmap.
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

    /// Appends a full image: the null bitmap, in which unused bits are set as in MariaDB, and the values that
    /// are not NULL.
    pub fn append_image(&self, row: &[Value], out: &mut Vec<u8>) -> SqlResult<()> {
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

    pub fn image_error(&self, column: usize, error: ImageError) -> SqlError {
        let (name, column) = (&self.table.name, &self.table.columns[column].name);
        SqlError::new(
            ErrorCode::UnknownError,
            format!("row image of {}.{}, column {column}: {error:?}", name.schema, name.table),
        )
    }
}
