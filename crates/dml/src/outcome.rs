//! The result of a statement that changed rows.

use cohort_types::Value;

/// The contents of the OK packet, or of the result set that RETURNING sends in its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DmlOutcome {
    /// The number of changed rows, as in ROW_COUNT().
    pub affected: u64,
    /// `affected` for a client with CLIENT_FOUND_ROWS: rows that an UPDATE matched count even if they did not
    /// change.
    pub found: u64,
    /// The insert id of the OK packet, generated or set by `LAST_INSERT_ID(n)`; 0 if none.
    pub insert_id: u64,
    /// The first value that the statement generated, for LAST_INSERT_ID(). `None` leaves that unchanged.
    pub generated_id: Option<u64>,
    /// `Rows matched: 1  Changed: 1  Warnings: 0`.
    pub info: String,
    /// Rows of RETURNING.
    pub returned: Option<Vec<Vec<Value>>>,
}
