//! A table's rows as the binlog carries them.

use std::sync::Arc;

use cohort_binlog::event::{RowsKind, TableMap};
use cohort_catalog::Table;
use cohort_types::{BinlogColumn, ErrorCode, ImageError, SqlError, SqlResult, Value, write_value};

use crate::table::OpenTable;
use crate::trx::{LoggedRow, SessionTrx, image};

/// The table is described with exact BIT lengths: the only flag MariaDB sets.
const TABLE_MAP_FLAGS: u16 = 1;

/// The table map event of a version of a table.
pub(crate) fn table_map(table: &Table, map_id: u64) -> Arc<TableMap> {
    let mut map = TableMap {
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

/// The rows of one change: of an update both, else the one there is.
#[derive(Clone, Copy)]
pub(crate) enum Change<'r> {
    Insert(&'r [Value]),
    Update { before: &'r [Value], after: &'r [Value] },
    Delete(&'r [Value]),
}

impl OpenTable {
    /// Adds the change to the transaction's binlog events, if it logs. `buffer` is scratch memory.
    pub(crate) fn log(
        &self,
        trx: &mut SessionTrx,
        change: Change<'_>,
        buffer: &mut Vec<u8>,
    ) -> SqlResult<()> {
        if !trx.logs_rows() {
            return Ok(());
        }
        buffer.clear();
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
                self.append_image(before, buffer)?;
                self.append_image(after, buffer)?;
                RowsKind::Update
            }
        };
        trx.log_row(LoggedRow { map: &self.map, image: image(kind, &self.all_columns, buffer) })
    }

    /// A full image: null bitmap, in which unused bits are set as MariaDB does, and the values that are not NULL.
    fn append_image(&self, row: &[Value], out: &mut Vec<u8>) -> SqlResult<()> {
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
