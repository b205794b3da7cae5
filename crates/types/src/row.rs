//! The row format of the engines.

use crate::{ColumnType, Value};

/// The bytes are not a row of this layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowError {
    /// Ends too early, lengths that contradict each other, or fields out of range.
    Corrupt,
    /// Written by a newer server.
    Version(u8),
    /// A value that is not of its column's class: it was not passed through [`ColumnType::store`].
    WrongClass {
        /// Which column.
        column: usize,
    },
}

/// How the columns of a table lie in a row. Columns are in *storage order*: the order in which they were added to
/// the table; new ones only at the end.
#[derive(Clone, Debug)]
pub struct RowLayout {
    columns: Vec<(ColumnType, Value)>,
}

impl RowLayout {
    /// The layout of columns, each with the value it has in rows that were written before it was added.
    pub fn new(columns: impl IntoIterator<Item = (ColumnType, Value)>) -> RowLayout {
        todo!()
    }
    /// Appends a row; `values` are one per column, as `store` made them.
    pub fn encode(&self, values: &[Value], out: &mut Vec<u8>) -> Result<(), RowError> {
        todo!()
    }
    /// All columns, pushed to `out`.
    pub fn decode(&self, row: &[u8], out: &mut Vec<Value>) -> Result<(), RowError> {
        todo!()
    }
    /// The chosen columns, pushed to `out` in the order of `columns`.
    pub fn decode_some(&self, row: &[u8], columns: &[usize], out: &mut Vec<Value>) -> Result<(), RowError> {
        todo!()
    }
    /// One column.
    pub fn decode_one(&self, row: &[u8], column: usize) -> Result<Value, RowError> {
        todo!()
    }
}
