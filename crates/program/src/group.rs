//! [`Group`]: the rows of a group, which FETCH GROUP NEXT ROW reads.

use cohort_types::{SqlError, SqlMode, SqlResult, Value, take_row};

/// The rows of a group that are not read yet.
pub struct Group<'r> {
    rows: &'r [u8],
    /// The sql_mode of the caller, under which the arguments are converted.
    pub(crate) mode: SqlMode,
    /// The first FETCH has been executed. The parameters have the values of the first row before it.
    pub(crate) is_fetched: bool,
}

impl<'r> Group<'r> {
    /// Creates a group out of the value of [`cohort_expr::AggregateKind::Rows`].
    pub fn new(rows: &'r [u8], mode: SqlMode) -> Group<'r> {
        Group { rows, mode, is_fetched: false }
    }

    /// Returns the arguments of the next row, or `None` after the last one.
    pub(crate) fn next_row(&mut self) -> SqlResult<Option<Vec<Value>>> {
        if self.rows.is_empty() {
            return Ok(None);
        }
        let mut row = Vec::new();
        let length = take_row(self.rows, &mut row).ok_or_else(SqlError::temporary_file_damaged)?;
        self.rows = &self.rows[length..];
        Ok(Some(row))
    }
}
