//! [`Presence`]: the columns in a statement's row images, for `binlog_row_image` NOBLOB and MINIMAL.
//!
//! ```text
//! image    before                      after
//! FULL     all                         all
//! NOBLOB   all but BLOBs               all but BLOBs that the statement does not write
//! MINIMAL  the primary key             the columns that the statement writes
//! ```
//! The primary key is the declared one, or the first unique key without NULLs. A table that has neither logs
//! full images. Columns that REPLACE resets in an existing row count as written; otherwise a replica would
//! keep them.

use cohort_catalog::{DefaultValue, Table};
use cohort_types::Value;

/// The columns in row images (`binlog_row_image`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowImage {
    /// All columns, before and after.
    Full,
    /// All columns except BLOB and TEXT columns that are not needed.
    NoBlob,
    /// The key before, the changed columns after.
    Minimal,
}

/// The columns of a statement's row images, as bitmaps of row events.
pub struct Presence {
    pub before: Vec<u8>,
    pub after: Vec<u8>,
}

/// Returns true if bit n is set.
#[inline]
pub fn has_bit(bits: &[u8], n: usize) -> bool {
    bits[n / 8] >> (n % 8) & 1 != 0
}

fn set_bit(bits: &mut [u8], n: usize) {
    bits[n / 8] |= 1 << (n % 8);
}

impl Presence {
    /// Returns `None` for full images. `written` are the columns that the statement assigns.
    pub fn of(image: RowImage, table: &Table, written: impl Iterator<Item = usize>) -> Option<Presence> {
        if image == RowImage::Full {
            return None;
        }
        let key = table.identifying_key()?;
        let width = table.columns.len();
        let mut before = vec![0; width.div_ceil(8)];
        key.columns.iter().for_each(|part| set_bit(&mut before, part.column));
        let mut after = vec![0; before.len()];
        if image == RowImage::NoBlob {
            for column in (0..width).filter(|&c| !table.columns[c].ty.kind.is_blob()) {
                set_bit(&mut before, column);
            }
            after.clone_from(&before);
        }
        written.for_each(|column| set_bit(&mut after, column));
        Some(Presence { before, after })
    }

    /// Adds columns that a row's change modifies beyond those the statement names.
    pub fn cover(&mut self, before: &[Value], after: &[Value]) {
        for column in 0..before.len() {
            if before[column] != after[column] {
                set_bit(&mut self.after, column);
            }
        }
    }
}

/// Returns the bitmap of all columns of a table.
pub fn all_columns(width: usize) -> Vec<u8> {
    let mut bits = vec![0xff; width.div_ceil(8)];
    if let (Some(last), rest @ 1..) = (bits.last_mut(), width % 8) {
        *last = (1 << rest) - 1;
    }
    bits
}

/// Returns the columns of an inserted row whose values a replica cannot derive.
pub fn computed_columns(table: &Table) -> impl Iterator<Item = usize> {
    let is_computed = |column: &cohort_catalog::Column| {
        column.auto_increment
            || column.generated.is_some()
            || matches!(column.default, DefaultValue::CurrentTimestamp | DefaultValue::Expression(_))
    };
    table.columns.iter().enumerate().filter(move |(_, column)| is_computed(column)).map(|(n, _)| n)
}
